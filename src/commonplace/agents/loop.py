"""The one model loop, run by role agents, pipeline agents and workflow agents.

A loop has a model, instructions and tools; a run takes a prompt, the history and limits, and returns the reply with
all messages.  What is recalled before a run and saved after it belongs to the rooms.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.agents.models import AgentModel
from commonplace.agents.tool import Tool
from commonplace.model.errors import Forbidden, ProviderError, StoreError
from commonplace.model.values import Value
from commonplace.text.cleaning import one_line

if TYPE_CHECKING:
    from pydantic_ai import Agent, RunContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.messages import AgentStreamEvent, ModelMessage
    from pydantic_ai.settings import ModelSettings

RETRIES = 3  # of a call with unusable arguments or of an unknown tool: a single one is soon used up
FINISH = "finish_task"

Message = dict[str, Any]  #: as JSON has it
OnText = Callable[[str], None]


class ObservedToolCall(Value):
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, Any]
    answer: Any
    agent: str = ""  #: who made it, where several agents are at work


Watch = Callable[[ObservedToolCall], None]


class Limits(Value):
    """How much one run may use."""

    tool_calls: int
    tokens: int
    seconds: float


class AgentReply(Value):
    """What came of one run."""

    output: str  #: the agent's last words
    finished: str | None = None  #: the summary that it passed to finish_task; None: it did not call it
    messages: tuple[Message, ...] = ()  #: the whole history
    truncated: bool = False  #: the model used up its tokens before its answer was complete


def ignore(*_: object) -> None:
    """Do nothing: the default of every callback."""


class ModelLoop:
    """One agent: its model, its instructions and its tools."""

    def __init__(
        self,
        name: str,
        model: AgentModel,
        *,
        instructions: str | None = None,
        settings: ModelSettings | None = None,
        tools: Sequence[Tool] = (),
        parallel_tools: Sequence[Tool] = (),
        watch: Watch = ignore,
    ) -> None:
        """Prepare a loop; nothing is sent yet.

        ``settings`` are PydanticAI's model settings.  ``tools`` run one after the other, since a recall next to a save
        should find what was saved; ``parallel_tools`` run at once.  Their functions return errors as answers.
        """
        self.name = name
        self.tokens = 0  #: used by all runs, failed ones included
        self._model = model
        self._instructions = instructions
        self._settings = settings
        self._tools, self._parallel_tools = tools, parallel_tools
        self._watch = watch

    async def run(
        self,
        prompt: str,
        history: Sequence[Message] = (),
        *,
        context: Sequence[str] = (),
        limits: Limits | None = None,
        on_text: OnText | None = None,
        finishing: bool = False,
    ) -> AgentReply:
        """Run to the end of one answer.

        ``context`` is added to the instructions of this run and is not part of its messages.  ``on_text`` gets the
        answer in pieces as it is streamed.  ``finishing`` offers ``finish_task``.  Raises ``ProviderError``, and
        ``Forbidden`` where one of ``limits`` is reached.
        """
        from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError  # noqa: PLC0415 - see models
        from pydantic_ai.usage import RunUsage  # noqa: PLC0415

        usage = RunUsage()
        try:
            async with self._agent(finishing=finishing) as agent:
                result = await agent.run(
                    prompt, message_history=load_messages(history), instructions=list(context), usage=usage,
                    event_stream_handler=_stream(on_text) if on_text else None, **_to_usage_limits(limits),
                )  # fmt: skip
        except (AgentRunError, UserError) as error:
            if limits is not None and isinstance(error, UsageLimitExceeded):
                raise Forbidden(f"agent {self.name!r} was stopped by its guardrails: {one_line(str(error))}") from error
            failure = self._model.failure(error)
            raise ProviderError(f"agent {self.name!r}: {failure}") from failure
        finally:
            self.tokens += usage.total_tokens
        finished = result.output.summary if isinstance(result.output, _Finished) else None
        return AgentReply(
            output=repair(str(result.output) if finished is None else finished), finished=repair(finished),
            messages=tuple(dump_messages(result.all_messages())),
            truncated=result.response.finish_reason == "length",
        )  # fmt: skip

    def _agent(self, *, finishing: bool) -> Agent[None, Any]:
        from pydantic_ai import Agent, ToolOutput  # noqa: PLC0415 - see models

        tools = [self._tool(tool, sequential=True) for tool in self._tools]
        tools += [self._tool(tool, sequential=False) for tool in self._parallel_tools]
        return Agent(
            self._model.model, name=self.name or None, instructions=self._instructions, tools=tools, retries=RETRIES,
            model_settings=self._settings,
            output_type=[str, ToolOutput(finish_task, name=FINISH)] if finishing else str,
            end_strategy="exhaustive",  # tools that are called together with finish_task run too
        )  # fmt: skip

    def _tool(self, tool: Tool, *, sequential: bool) -> PydanticTool[None]:
        def record(arguments: Mapping[str, Any], answer: Any) -> Any:
            self._watch(ObservedToolCall(tool=tool.name, arguments=arguments, answer=answer))
            return answer

        def call(**arguments: Any) -> Any:
            return record(arguments, tool.function(**arguments))

        async def call_async(**arguments: Any) -> Any:
            return record(arguments, await tool.function(**arguments))

        function = call_async if inspect.iscoroutinefunction(tool.function) else call
        return pydantic_tool(tool.replace(function=function), sequential=sequential)


def pydantic_tool(tool: Tool, *, sequential: bool = True) -> PydanticTool[None]:
    """Return a tool as PydanticAI takes it; arguments that are no object are reported to the model.

    PydanticAI does not check tools that come with a schema, and would break down on a list or a null.
    """
    from pydantic_ai import Tool as PydanticTool  # noqa: PLC0415 - see models
    from pydantic_core import SchemaValidator, core_schema  # noqa: PLC0415

    made: PydanticTool[None] = PydanticTool.from_schema(
        tool.function, tool.name, tool.description, dict(tool.parameters), sequential=sequential
    )
    made.function_schema.validator = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
    return made


class _Finished(NamedTuple):
    """The task is done; a type that PydanticAI can describe."""

    summary: str


def finish_task(summary: str) -> _Finished:
    """Say that the task is done, and end it.

    Args:
        summary: What was done and what came of it, in a few sentences: it is remembered as an episode.
    """
    from pydantic_ai.exceptions import ModelRetry  # noqa: PLC0415 - see models

    if not summary.strip():
        raise ModelRetry("summary is required")
    return _Finished(summary=summary.strip())


def load_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Convert messages to PydanticAI's.  Raises ``StoreError`` if they are not what ``dump_messages`` wrote."""
    from pydantic import ValidationError  # noqa: PLC0415 - see models
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

    try:
        return ModelMessagesTypeAdapter.validate_python(list(messages))
    except ValidationError as error:
        raise StoreError(f"the session that was saved cannot be read: {error.error_count()} things in it") from error


def dump_messages(messages: Sequence[ModelMessage]) -> list[Message]:
    """Convert PydanticAI's messages to JSON values."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - see models

    found: list[Message] = repair(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))
    return found


def repair(value: Any) -> Any:
    """Return a model's text, also inside lists and dicts, without lone surrogates.

    Some services send a character in two pieces: two that belong together are joined, a single one becomes a
    replacement mark, since it can be neither stored nor sent.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [repair(one) for one in value]
    return {name: repair(one) for name, one in value.items()} if isinstance(value, dict) else value


def _to_usage_limits(limits: Limits | None) -> dict[str, Any]:
    """Return limits as PydanticAI takes them; without any, its own limit of requests holds."""
    from pydantic_ai.usage import UsageLimits  # noqa: PLC0415 - see models

    if limits is None:
        return {}
    usage = UsageLimits(
        request_limit=limits.tool_calls + 1, tool_calls_limit=limits.tool_calls, total_tokens_limit=limits.tokens
    )
    return {"usage_limits": usage, "timeout": limits.seconds}


def _stream(on_text: OnText) -> Callable[[RunContext[None], AsyncIterable[AgentStreamEvent]], Any]:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta  # noqa: PLC0415

    async def handle(_context: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                on_text(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                on_text(event.delta.content_delta)

    return handle
