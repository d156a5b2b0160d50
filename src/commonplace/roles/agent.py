"""The agent of a role: the shared model loop with the role's prompt, model, memory tools and guardrails.

The prompt, the procedures and the recalled memories are instructions, made anew for each run: they reach the model on
the first turn and on every later one, resumed or not, and none of them is part of the history that is saved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.agents.loop import AgentReply, Limits, Message, ModelLoop, ObservedToolCall, OnText, Watch, ignore
from commonplace.agents.models import AgentModel, load_model
from commonplace.agents.tool import Tool
from commonplace.agents.verb_tools import answer_call
from commonplace.config.paths import home
from commonplace.engine.memory import Memory
from commonplace.engine.rendering import quoted_line
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError
from commonplace.model.records import Kind
from commonplace.model.values import Value
from commonplace.roles.dialect import ModelSettings, Role
from commonplace.roles.memory import RoleMemory, role_memory
from commonplace.roles.operator import environment, ignored_variables, require_trusted_role, role_key_hosts
from commonplace.roles.verbs import BREAK, list_memories, recall, role_tools
from commonplace.text.cleaning import one_line

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings as PydanticSettings

    from commonplace.roles.project import ProjectMemory

PROCEDURES = 20  # the newest
RECALLED = 10  # the best
PROCEDURES_HEAD = "## Learned Procedures and Policies"
RECALLED_HEAD = "## Recalled Memories (from previous sessions)"
CALL_CHARS = 100  # of a call's answer, in its one line
NO_MODEL = "no model is named; add `model:` with `provider:` and `name:`, or pass --model PROVIDER:NAME"
WITHOUT = "memory commands, such as `commonplace role list`, work without it"
PROMPT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "What is asked: it knows nothing of this conversation."}
    },
    "required": ["prompt"],
    "additionalProperties": False,
}


class DelegateAgent(Value):
    """Another agent, as the one that may ask it sees it."""

    tool: str  #: the name of the tool that asks it
    description: str
    ask: Callable[[str], Awaitable[tuple[str, int]]]  #: returns its answer and the tokens it used; errors are answers


class RoleAgent:
    """The agent of a role, ready to be asked."""

    def __init__(
        self,
        role: Role,
        held: RoleMemory | None = None,
        *,
        env: Mapping[str, str],
        watch: Watch = ignore,
        delegates: Sequence[DelegateAgent] = (),
        project: ProjectMemory | None = None,
    ) -> None:
        """Prepare an agent with its memory, if it has one.  Raises ``ProviderError`` without its key."""
        self.role = role
        self.held = held
        self.memory = held.memory() if held else None
        self.project = project  #: what it has of the project around it
        self.env = env  #: with the role's .env
        self._delegated = 0
        self._tools = role_tools(self.memory) if self.memory else ()
        named = _named_model(role)
        self._loop = ModelLoop(
            role.name, _model(role, named, env), instructions=role.prompt, settings=_settings(named), watch=watch,
            tools=[
                *(tool.to_tool(partial(self._answer, tool.name)) for tool in self._tools),
                *([project.tool] if project else ()),
            ],
            parallel_tools=[self._delegate_tool(one) for one in delegates],
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The role's name."""
        return self.role.name

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know before it starts, as sentences."""
        return self.held.notes if self.held else ignored_variables(self.role)

    @property
    def used(self) -> int:
        """Tokens of all its runs, failed ones included, and of the delegates that it asked."""
        return self._loop.tokens + self._delegated

    async def answer(
        self,
        prompt: str,
        history: Sequence[Message] = (),
        *,
        context: Sequence[str] = (),
        on_text: OnText = ignore,
        finishing: bool = False,
        tokens: int | None = None,
    ) -> AgentReply:
        """Run to the end of one answer; see ``ModelLoop.run``.  ``tokens`` lowers what the role allows for a run."""
        rails = self.role.guardrails
        most = rails.max_tokens_per_run if tokens is None else min(tokens, rails.max_tokens_per_run)
        limits = Limits(tool_calls=rails.max_tool_calls, tokens=most, seconds=float(rails.timeout_seconds))
        return await self._loop.run(
            prompt, history, context=context, limits=limits, on_text=on_text, finishing=finishing
        )

    def context(self, about: str = "") -> list[str]:
        """Return what stands before the model in the next run: the brief, procedures, memories about a text."""
        brief = [self.project.brief()] if self.project and self.project.brief() else []
        return brief + (_own_context(self.memory, about) if self.memory is not None else [])

    def _answer(self, name: str, **arguments: Any) -> str:
        return answer_call(self._tools, name, arguments)

    def _delegate_tool(self, delegate: DelegateAgent) -> Tool:
        async def ask(**arguments: Any) -> str:
            prompt = arguments.get("prompt")
            if not isinstance(prompt, str) or not prompt.strip():
                return f"Error: {delegate.tool} needs a prompt: what is asked"
            answer, tokens = await delegate.ask(prompt)
            self._delegated += tokens
            return answer

        return Tool(name=delegate.tool, description=delegate.description, parameters=PROMPT_SCHEMA, function=ask)


@contextmanager
def open_agent(
    role: Role,
    *,
    env: Mapping[str, str],
    watch: Watch = ignore,
    delegates: Sequence[DelegateAgent] = (),
    project: ProjectMemory | None = None,
) -> Iterator[RoleAgent]:
    """Open the agent of a role with its memory, if it has one; ``env`` is the process's, without the role's .env."""
    if role.memory is None:
        require_trusted_role(role, env)
        given = environment(role, env, home=home(env))
        yield RoleAgent(role, env=given, watch=watch, delegates=delegates, project=project)
        return
    with role_memory(role, env=env) as held:
        yield RoleAgent(role, held, env=held.env, watch=watch, delegates=delegates, project=project)


def call_line(call: ObservedToolCall) -> str:
    """Return a call in one line; memories that were found are counted and not repeated."""
    who = f"{call.agent}: {call.tool}" if call.agent else call.tool
    answer = str(call.answer)
    if call.tool == recall.name and answer.startswith("[Type: "):
        return f"{who}: {memories(len(answer.split(BREAK)))}"
    if call.tool == list_memories.name and answer.startswith(("[", "#")):
        return f"{who}: {memories(len(answer.splitlines()))}"
    line = one_line(answer)
    return f"{who}: {line[: CALL_CHARS - 3] + '...' if len(line) > CALL_CHARS else line}"


def memories(count: int) -> str:
    """Return a number of memories in words."""
    return "1 memory" if count == 1 else f"{count} memories"


def _own_context(memory: Memory, about: str) -> list[str]:
    """Return the blocks of an agent's own memory."""
    blocks = [procedures(memory)] if Kind.PROCEDURAL in memory.binding.writes else []
    blocks += [recall_block(memory, about)] if about.strip() else []
    return [block for block in blocks if block]


def procedures(memory: Memory) -> str:
    """Return the block of the newest procedures; empty if there are none."""
    found = memory.list(kinds=[Kind.PROCEDURAL], limit=PROCEDURES)
    return _block(PROCEDURES_HEAD, [f"- [{record.category}] {quoted_line(record.content)}" for record in found])


def recall_block(memory: Memory, about: str) -> str:
    """Return the block of memories about a text; empty if there are none.  It does not count as a recall."""
    hits = memory.recall(about, kinds=[Kind.SEMANTIC, Kind.EPISODIC], limit=RECALLED, count=False)
    records = [hit.record for hit in hits if hit.record]
    return _block(RECALLED_HEAD, [f"- [{record.kind}] {quoted_line(record.content)}" for record in records])


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, "", *lines]) if lines else ""


def _named_model(role: Role) -> ModelSettings:
    if role.model is None:
        raise ConfigError(NO_MODEL, file=role.file, path=role.path("model"))
    return role.model


def _model(role: Role, named: ModelSettings, env: Mapping[str, str]) -> AgentModel:
    """Return the model of a role; a key that may not go to its address is a mistake of the file."""
    pairs = role_key_hosts(role, env)
    try:
        return load_model(
            named.spec, base_url=named.base_url, api_key_env=named.api_key_env, env=env, key_hosts=pairs
        )  # fmt: skip
    except InvalidInput as error:
        raise ConfigError(str(error), file=role.file, path=role.path("model")) from error
    except ProviderError as error:
        raise ProviderError(f"{error}; {WITHOUT}") from error


def _settings(named: ModelSettings) -> PydanticSettings:
    """Return what a role sets for its model; the rest is the provider's to decide."""
    settings: PydanticSettings = {"timeout": float(named.timeout_seconds)}
    if named.temperature is not None:
        settings["temperature"] = named.temperature
    if named.max_tokens is not None:
        settings["max_tokens"] = named.max_tokens
    return settings
