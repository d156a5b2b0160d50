"""VerbTool: a verb and how its caller is opened, as models are offered it over MCP and by any function-calling API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from commonplace.agents.tool import Tool
from commonplace.model.errors import CommonplaceError, InvalidInput
from commonplace.model.values import Value
from commonplace.verbs import Verb
from commonplace.wire import encode, object_schema, preview, schema_of

Opener: TypeAlias = Callable[[], AbstractContextManager[Any]]  # of the caller, for one call
MEMORY = {"type": "string", "description": "What memory says, quoted as data between marks."}


class ToolAnswer(Value):
    """What a call returns."""

    text: str  #: for a model that reads
    data: Mapping[str, Any]  #: the same for a program, as the tool's output schema says


class VerbTool:
    """One verb as a tool."""

    def __init__(
        self,
        verb: Verb[Any, Any, Any],
        open_caller: Opener,
        *,
        bound: Mapping[str, Any] | None = None,
        quote: bool = False,
        **words: object,
    ) -> None:
        """Offer a verb.

        Args:
            verb: What it does.
            open_caller: Opens the caller that it is called with.
            bound: Arguments that are decided already; the verb does not offer them.
            quote: Quote what it reads as data between marks, if the verb does not do that itself.
            words: What the names in braces mean in its descriptions.
        """
        self.verb = verb
        self.name, self.title = verb.name, verb.title
        self.reads, self.destroys, self.repeats = verb.reads, verb.destroys, verb.repeats
        self.description = verb.guide.format(**words) if words else verb.guide
        self._open_caller, self._bound = open_caller, bound or {}
        self._quote = quote and verb.reads and verb.text is None
        self._words = words

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        schema = self.verb.parameters(for_models=True)
        for argument in schema["properties"].values() if self._words else ():
            argument["description"] = argument["description"].format(**self._words)
        return schema

    @property
    def output(self) -> dict[str, Any]:
        """The JSON Schema of ``Answer.data``."""
        schema = schema_of(self.verb.result, for_models=True)
        if schema["type"] != "object":
            schema = object_schema({"result": schema}, ["result"])
        if self._shows_memory:
            schema["properties"] = {"memory": MEMORY, **schema["properties"]}
            schema["required"] = ["memory", *schema["required"]]
        return schema

    def schema(self) -> dict[str, Any]:
        """Return the tool as function-calling APIs want it."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    def to_tool(self, function: Callable[..., Any]) -> Tool:
        """Return it as the model loop takes tools, with a function that answers calls."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters, function=function)

    def call(self, sent: str | Mapping[str, Any]) -> ToolAnswer:
        """Call it with arguments as JSON or parsed; raise a ``CommonplaceError`` that a model can act on."""
        arguments = self.verb.check(_parse(self.name, sent), for_models=True)
        with self._open_caller() as caller:
            result = self.verb(caller, **self._bound, **arguments)
            text = self._text(caller, result)
        data = text if isinstance(result, str) else encode(result, for_models=True)
        fields = data if isinstance(data, dict) else {"result": data}
        return ToolAnswer(text=text, data=({"memory": text} if self._shows_memory else {}) | fields)

    @property
    def _shows_memory(self) -> bool:
        return self.verb.reads and self.verb.text is not None

    def _text(self, caller: Any, result: Any) -> str:
        if self.verb.text is not None:
            return self.verb.text(caller, result)
        text = result if isinstance(result, str) else json.dumps(encode(result), ensure_ascii=False)
        return _quote(text, caller.secret()) if self._quote else text


def tools_of(verbs: Iterable[Verb[Any, Any, Any]], open_caller: Opener, **options: Any) -> tuple[VerbTool, ...]:
    """Return the verbs that models are offered, as tools; the options are those of ``VerbTool``."""
    return tuple(VerbTool(verb, open_caller, **options) for verb in verbs if verb.is_tool)


def call_tool(tools: Sequence[VerbTool], name: str, sent: str | Mapping[str, Any]) -> ToolAnswer:
    """Call a tool as a model asks for it, by name and JSON; raise a ``CommonplaceError`` that it can act on."""
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        raise InvalidInput(f"there is no tool {name!r}; there are {', '.join(tool.name for tool in tools)}")
    return tool.call(sent)


def answer_call(tools: Sequence[VerbTool], name: str, sent: str | Mapping[str, Any]) -> str:
    """Call a tool and return its text; a mistake in the call is a sentence, so that no run ends on one."""
    try:
        return call_tool(tools, name, sent).text
    except CommonplaceError as error:
        return f"Error: {error}"


def _parse(name: str, sent: str | Mapping[str, Any]) -> object:
    if not isinstance(sent, str):
        return sent
    try:
        return json.loads(sent or "{}")
    except ValueError as error:
        raise InvalidInput(f"the arguments of {name} are not JSON: {error} ({preview(sent)})") from error


def _quote(text: str, secret: bytes) -> str:
    from commonplace.engine.rendering import STANDING, fence  # noqa: PLC0415 - with the first call

    return fence([STANDING, text], secret)
