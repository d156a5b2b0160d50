"""An agent with a past, at work on PydanticAI: what it is told before every run, what it may call, what it has said.

The role's prompt, its procedures and what was recalled are instructions, made anew for each run: they reach the model
on the first turn and on every later one, resumed or not, and none of them is part of the history that is saved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.agents.models import TEST, Spoken, offered, spoken, whole
from commonplace.agents.quietly import Tell, quietly
from commonplace.agents.verb_tools import VerbTool, answer_call
from commonplace.engine import embedding
from commonplace.engine.memory import Memory
from commonplace.engine.rendering import quoted_line
from commonplace.model.errors import ConfigError, Forbidden, ProviderError, StoreError
from commonplace.model.records import Kind, Record
from commonplace.model.values import Value
from commonplace.roles.dialect import MemorySettings, ModelSettings, Role
from commonplace.roles.memory import RoleMemory
from commonplace.roles.sessions import Message, Sessions, new_session, recent_words, window
from commonplace.roles.verbs import BREAK, list_memories, recall, role_tools
from commonplace.text.cleaning import clean, one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from pydantic_ai import Agent, RunContext
    from pydantic_ai import Tool as OfferedTool
    from pydantic_ai.messages import AgentStreamEvent, ModelMessage
    from pydantic_ai.settings import ModelSettings as Wishes
    from pydantic_ai.usage import UsageLimits

RETRIES = 3  # of a tool call that nobody can follow: one is soon used up
PROCEDURES = 20  # the newest
RECALLED = 10  # the best
PROCEDURES_HEAD = "## Learned Procedures and Policies"
RECALLED_HEAD = "## Recalled Memories (from previous sessions)"
CALL_CHARS = 100  # of a call's outcome, in its one line
FINISH = "finish_task"
NO_MODEL = "no model is named; add `model:` with `provider:` and `name:`, or say --model PROVIDER:NAME"
WITHOUT = "memory commands, such as `commonplace memory list`, work without it"
NO_MEMORY = "This agent has no memory."
UNSAVED = "the conversation was not saved and cannot be resumed"
UNPRUNED = "old sessions were not erased"
UNCONSOLIDATED = "episodes were not consolidated, and wait for the next time"
UNTOLD = "the agent runs without what it remembers"
INTERRUPTED = "(interrupted)"
UNEMBEDDED = "older memories are found by their words alone"
CAUGHT_UP = 256  # texts that get their vectors when an agent starts: a second or two, the rest the next time
PROMPTED: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "What is asked: it knows nothing of this conversation."}
    },
    "required": ["prompt"],
    "additionalProperties": False,
}


class Call(Value):
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, Any]
    answer: str
    agent: str = ""  #: who made it, if it is not the one that somebody talks with

    def __str__(self) -> str:
        """The call in one quiet line; what was found is counted and not repeated."""
        made = f"{self.agent}: {self.tool}" if self.agent else self.tool
        if self.tool == recall.name and self.answer.startswith("[Type: "):
            return f"{made}: {_memories(len(self.answer.split(BREAK)))}"
        if self.tool == list_memories.name and self.answer.startswith(("[", "#")):
            return f"{made}: {_memories(len(self.answer.splitlines()))}"
        told = one_line(self.answer)
        return f"{made}: {told[: CALL_CHARS - 3] + '...' if len(told) > CALL_CHARS else told}"


class Turn(Value):
    """What came of one run."""

    output: str  #: what the agent said at last
    finished: str | None = None  #: the summary it gave to finish_task; None: it did not call it
    messages: tuple[Message, ...] = ()  #: the whole history, as JSON has it
    tokens: int = 0  #: of this run and of those that it asked others for, as providers count them
    cut: bool = False  #: the model used up its tokens before it had said everything


Watch = Callable[[Call], None]
Hear = Callable[[str], None]


class Asked(Value):
    """What another agent said."""

    answer: str
    tokens: int = 0


class Helper(Value):
    """Another agent, as the one that may ask it sees it."""

    tool: str  #: what the call is named
    description: str
    ask: Callable[[str], Awaitable[Asked]]  #: never raises what a model could act on


def unwatched(_call: Call) -> None:
    """Nobody looks on."""


def unheard(_piece: str) -> None:
    """Nobody listens while it speaks."""


class RoleAgent:
    """The agent of a role, ready to be asked."""

    def __init__(
        self,
        role: Role,
        held: RoleMemory | None = None,
        *,
        env: Mapping[str, str],
        watch: Watch = unwatched,
        helpers: Sequence[Helper] = (),
    ) -> None:
        """Of a role, what it remembers, if it does, and whom it may ask.  Raises ``ProviderError`` without its key."""
        self.role = role
        self.held = held
        self.memory = held.memory() if held else None
        self._tools = role_tools(self.memory) if self.memory else ()
        self.env = env  #: as its role sees it
        self.used = 0  #: tokens of all its runs, those that failed among them, and of those that it asked others for
        self._helpers = tuple(helpers)
        self._watch = watch
        self._who = speaking(role, env)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.role.name

    async def answer(
        self,
        prompt: str,
        history: Sequence[Message] = (),
        *,
        told: Sequence[str] = (),
        hear: Hear = unheard,
        finishing: bool = False,
        tokens: int | None = None,
    ) -> Turn:
        """Run to the end of one answer; ``told`` stands before it and is not kept.

        ``finishing`` gives it the tool that says that a task is done, ``tokens`` lowers what the role allows for a run.
        Raises ``ProviderError``, and ``Forbidden`` if that is used up; what the agent saved until then stays saved.
        """
        from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError  # noqa: PLC0415 - see speaking
        from pydantic_ai.usage import RunUsage  # noqa: PLC0415

        elsewhere, usage = list[int](), RunUsage()
        agent = self._agent(elsewhere, finishing=finishing)
        try:
            async with agent:
                result = await agent.run(
                    prompt, message_history=read(history), instructions=list(told), usage_limits=self._limits(tokens),
                    timeout=float(self.role.guardrails.timeout_seconds), event_stream_handler=_listening(hear),
                    usage=usage,
                )  # fmt: skip
        except UsageLimitExceeded as error:
            raise Forbidden(f"agent {self.name!r} was stopped by its guardrails: {one_line(str(error))}") from error
        except (AgentRunError, UserError) as error:
            failed = self._who.failure(error)
            raise ProviderError(f"agent {self.name!r}: {failed}") from failed
        finally:
            self.used += usage.total_tokens + sum(elsewhere)
        ended = isinstance(result.output, _Finished)
        return Turn(
            output=whole(result.output.summary if ended else str(result.output)),
            finished=whole(result.output.summary) if ended else None,
            messages=tuple(written(result.all_messages())), tokens=usage.total_tokens + sum(elsewhere),
            cut=result.response.finish_reason == "length",
        )  # fmt: skip

    def told(self, about: str = "") -> list[str]:
        """What stands before the model in the next run: its procedures, and what bears on something if it is named."""
        if self.memory is None:
            return []
        blocks = [procedures(self.memory)] if Kind.PROCEDURAL in self.memory.binding.writes else []
        blocks += [recalled(self.memory, about)] if about.strip() else []
        return [block for block in blocks if block]

    def listed(self, limit: int) -> str:
        """Its newest memories, one line each."""
        return NO_MEMORY if self.memory is None else list_memories(self.memory, limit=limit, show_ids=True)

    def _agent(self, elsewhere: list[int], *, finishing: bool) -> Agent[None, Any]:
        """The framework's agent; ``elsewhere`` gets the tokens of those that it asks."""
        from pydantic_ai import Agent, ToolOutput  # noqa: PLC0415 - see speaking

        every = [self._offered(tool) for tool in self._tools]
        every += [self._asking(helper, elsewhere) for helper in self._helpers]
        return Agent(
            self._who.model, name=self.name, instructions=self.role.prompt, retries=RETRIES,
            tools=every, model_settings=_wishes(self.role.model),
            output_type=[str, ToolOutput(finish_task, name=FINISH)] if finishing else str,
            end_strategy="exhaustive",  # what it calls beside finish_task is done too
        )  # fmt: skip

    def _offered(self, tool: VerbTool) -> OfferedTool[None]:
        """The tool as PydanticAI wants it; a mistake is told to the model, which can mend it."""

        def call(**arguments: Any) -> str:
            made = Call(tool=tool.name, arguments=arguments, answer=answer_call(self._tools, tool.name, arguments))
            self._watch(made)
            return made.answer

        # One after the other: what is recalled beside a remember should know of it.
        return offered(call, tool.name, tool.description, tool.parameters)

    def _asking(self, helper: Helper, elsewhere: list[int]) -> OfferedTool[None]:
        """Another agent as PydanticAI wants it; several that are asked at once work at once."""

        async def call(**arguments: Any) -> str:
            prompt = arguments.get("prompt")
            if not isinstance(prompt, str) or not prompt.strip():
                return f"Error: {helper.tool} needs a prompt: what is asked"
            told = await helper.ask(prompt)
            elsewhere.append(told.tokens)
            self._watch(Call(tool=helper.tool, arguments={"prompt": prompt}, answer=told.answer))
            return told.answer

        return offered(call, helper.tool, helper.description, PROMPTED, sequential=False)

    def _limits(self, tokens: int | None) -> UsageLimits:
        from pydantic_ai.usage import UsageLimits  # noqa: PLC0415 - see speaking

        rails = self.role.guardrails
        most = rails.max_tokens_per_run if tokens is None else min(tokens, rails.max_tokens_per_run)
        return UsageLimits(
            request_limit=rails.max_tool_calls + 1, tool_calls_limit=rails.max_tool_calls, total_tokens_limit=most
        )


class Conversation:
    """Turns of one agent, one after the other, each with what was said before it."""

    def __init__(self, agent: RoleAgent, *, tell: Tell, sessions: Sessions | None = None) -> None:
        """A new session, kept where the agent's are unless told otherwise; ``tell`` hears what the user should know."""
        self.id = new_session()
        self.agent = agent
        self.history: list[Message] = []
        self._sessions = sessions or (agent.held.sessions if agent.held else None)
        self._tell = tell
        self._about = ""

    @property
    def _most(self) -> int:
        return (self.agent.role.memory or MemorySettings()).max_resume_messages

    def resume(self) -> int:
        """Go on with the session that was saved last, under a new name; returns how many messages it brought."""
        found = self._sessions.newest() if self._sessions else None
        self.history = window(found.read(), self._most) if found else []
        read(self.history)  # says so now if they are not what they should be
        self._about = recent_words(self.history)
        return len(self.history)

    def recalls(self) -> bool:
        """Whether memory has something that bears on what is gone on with."""
        memory = self.agent.memory
        with quietly(UNTOLD, tell=self._tell):
            return bool(memory and self._about and recalled(memory, self._about))
        return False

    def told(self) -> list[str]:
        """What the agent is told before the next turn."""
        return self.agent.told(self._about)

    async def say(
        self, prompt: str, *, hear: Hear = unheard, finishing: bool = False, tokens: int | None = None
    ) -> Turn:
        """One turn; a turn that fails leaves the history as it was."""
        asked, _ = clean(prompt, what="the prompt")
        told: list[str] = []
        with quietly(UNTOLD, tell=self._tell):
            told = self.told()
        turn = await self.agent.answer(
            asked, self.history, told=told, hear=hear, finishing=finishing, tokens=tokens
        )  # fmt: skip
        self.history = window(turn.messages, 2 * self._most)
        return turn

    def interrupted(self, prompt: str, heard: str) -> None:
        """Keep what was said until somebody interrupted it."""
        asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": prompt}]}
        said = {"kind": "response", "parts": [{"part_kind": "text", "content": f"{heard} {INTERRUPTED}".strip()}]}
        self.history = window([*self.history, asked, whole(said)], 2 * self._most)

    def save(self) -> None:
        """Keep the session as it is now; that it fails is told and ends nothing."""
        if self._sessions is not None and self.history:
            with quietly(UNSAVED, tell=self._tell):
                self._sessions.save(self.id, self.history)

    def close(self, *moments: str) -> int:
        """End it: only the newest sessions stay, and episodes become facts if this is one of the role's moments for it.

        Returns how many facts are new.  What goes wrong is told, and never taken for nothing to do.
        """
        memory = self.agent.role.memory
        if self._sessions is None or memory is None:
            return 0
        with quietly(UNPRUNED, tell=self._tell):
            self._sessions.prune(memory.max_sessions)
        if memory.consolidation.enabled and memory.consolidation.interval in moments:
            with quietly(UNCONSOLIDATED, tell=self._tell):
                return self._consolidated()
        return 0

    def _consolidated(self) -> int:
        held, model = self.agent.held, self.agent.role.model
        both = frozenset({Kind.EPISODIC, Kind.SEMANTIC})  # what is read, and what is written
        if held is None or model is None or model.provider == TEST or not both <= held.memory().binding.writes.keys():
            return 0
        return held.consolidate().created


def catch_up(held: RoleMemory, *, tell: Tell) -> int:
    """Give memories the vectors that they lack, since their embedder could not be asked; returns how many got one.

    Nobody is asked if nothing is missing.  An embedder that still fails is tried the next time.
    """
    stored = held.store.embedder()
    missing = held.store.count_unembedded(stored) if stored else len(held.memory().list(limit=1))
    if held.embedder is None or not missing:
        return 0
    try:
        return embedding.catch_up(held.store, held.embedder, most=CAUGHT_UP)
    except ProviderError as error:
        if not held.notes:  # else it has been said
            tell(f"{UNEMBEDDED}: {error}")
        return 0


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def speaking(role: Role, env: Mapping[str, str]) -> Spoken:
    """The model of a role.  Without its key, or without PydanticAI, that is said here, before anything is asked."""
    if role.model is None:
        raise ConfigError(NO_MODEL, file=role.file, path=role.path("model"))
    model = role.model
    try:
        return spoken(model.spec, base_url=model.base_url, api_key_env=model.api_key_env, env=env)
    except ProviderError as error:
        raise ProviderError(f"{error}; {WITHOUT}") from error


# What an agent is told of its memory


def procedures(memory: Memory) -> str:
    """The block of the newest procedures; empty if there are none."""
    found = memory.list(kinds=[Kind.PROCEDURAL], limit=PROCEDURES)
    return _block(PROCEDURES_HEAD, [f"- [{record.category}] {quoted_line(record.content)}" for record in found])


def recalled(memory: Memory, about: str) -> str:
    """The block of what bears on a conversation; empty if nothing does.  It counts as no use: nobody asked."""
    kinds = [Kind.SEMANTIC, Kind.EPISODIC]
    hits = memory.recall(about, kinds=kinds, limit=RECALLED, count=False)
    return _block(RECALLED_HEAD, [_recalled_line(hit.record) for hit in hits if hit.record])


def _recalled_line(record: Record) -> str:
    return f"- [{record.kind}] {quoted_line(record.content)}"


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, "", *lines]) if lines else ""


# Between us and PydanticAI


class _Finished(NamedTuple):
    """The task is done; a type that the framework can describe."""

    summary: str


def finish_task(summary: str) -> _Finished:
    """Say that the task is done, and end it.

    Args:
        summary: What was done and what came of it, in a few sentences: it is remembered as an episode.
    """
    from pydantic_ai.exceptions import ModelRetry  # noqa: PLC0415 - see speaking

    if not summary.strip():
        raise ModelRetry("summary is required")
    return _Finished(summary=summary.strip())


def read(messages: Sequence[Message]) -> list[ModelMessage]:
    """Messages as the framework has them."""
    from pydantic import ValidationError  # noqa: PLC0415 - see speaking
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

    try:
        return ModelMessagesTypeAdapter.validate_python(list(messages))
    except ValidationError as error:
        raise StoreError(f"the session that was saved cannot be read: {error.error_count()} things in it") from error


def written(messages: Sequence[ModelMessage]) -> list[Message]:
    """Messages as JSON has them."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - see speaking

    found: list[Message] = whole(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))
    return found


def _wishes(model: ModelSettings | None) -> Wishes:
    """What a role asks of its model; what it does not say is the provider's to decide."""
    if model is None:
        return {}
    wishes: Wishes = {"timeout": float(model.timeout_seconds)}
    if model.temperature is not None:
        wishes["temperature"] = model.temperature
    if model.max_tokens is not None:
        wishes["max_tokens"] = model.max_tokens
    return wishes


def _listening(hear: Hear) -> Callable[[RunContext[None], AsyncIterable[AgentStreamEvent]], Any]:
    """Pass on what the model says, piece by piece, as it says it."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta  # noqa: PLC0415

    async def listen(_context: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                hear(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                hear(event.delta.content_delta)

    return listen
