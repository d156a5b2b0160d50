"""The methods of the protocol over a surface: parameters in, result out, as the wire has them.  No transport.

The one table from errors to what a client sees is here.  An error that a model can correct is a result with ``isError``
and a sentence; an error that only a program can make is an error of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from commonplace.agents.surface import Prompt, Resource, Surface
from commonplace.model.errors import (
    CommonplaceError,
    ConfigError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    StoreBusy,
)
from commonplace.version import VERSION

if TYPE_CHECKING:  # schemas are derived when they are asked for
    from commonplace.agents.verb_tools import VerbTool

NAME = "commonplace"
TITLE = "Commonplace memory"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # those that begin with a handshake
PARSE, REQUEST, METHOD, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_RESOURCE = -32002


class ProtocolError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer_request(surface: Surface, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a request.  Raises ``ProtocolError``."""
    verb = METHODS.get(method)
    if verb is None:
        raise ProtocolError(METHOD, f"there is no method {method!r}")
    return verb(surface, params)


def sentence(error: CommonplaceError | OSError) -> str:
    """Return what went wrong and what a model can do about it."""
    reason = str(error) if isinstance(error, CommonplaceError) else _system_reason(error)
    match error:
        case Conflict(current=int(version)):
            advice = f"it is at version {version} now: read it again with get, then decide anew"
        case StoreBusy():
            advice = "nothing was written; try again in a moment"
        case NotFound():
            advice = "recall shows what there is"
        case Forbidden() | ConfigError():
            advice = "only the user can change that; tell them"
        case _:
            return f"{reason.rstrip('.')}."
    return f"{reason.rstrip('.')}; {advice}."


def _system_reason(error: OSError) -> str:
    """Return the system's error with its file; without a file it means that the working directory is gone."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the folder that this server was started in is gone; start the server again where the project is now"
    of = "" if error.filename is None else f" ({error.filename!r})"
    return f"the disk failed: {error.strerror or error}{of}"


def _initialize(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise ProtocolError(PARAMS, "initialize needs 'protocolVersion'")
    able: dict[str, Any] = {"tools": {"listChanged": False}}
    able |= {"resources": {"subscribe": False, "listChanged": False}} if surface.read else {}
    able |= {"prompts": {"listChanged": False}} if surface.prompts else {}
    return {
        "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
        "capabilities": able,
        "serverInfo": {"name": NAME, "title": TITLE, "version": VERSION},
        "instructions": surface.instructions,
    }


def _ping(_surface: Surface, _params: Mapping[str, Any]) -> dict[str, Any]:
    return {}


# Tools


def _tools(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _first_page(params)
    if surface.tool_list is None:
        return {"tools": _tool_list(surface)}
    from commonplace.mcp.tool_list_cache import load_or_derive  # noqa: PLC0415 - only servers without a bound agent

    return {"tools": load_or_derive(surface.tool_list, lambda: _tool_list(surface))}


def _tool_list(surface: Surface) -> list[dict[str, Any]]:
    return [_tool(tool) for tool in surface.tools()]


def _tool(tool: VerbTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "outputSchema": tool.output,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.reads,
            "destructiveHint": tool.destroys,
            "idempotentHint": tool.repeats,
            "openWorldHint": False,  # tools reach nothing beyond the store
        },
    }


def _call(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    name = _text(params, "name")
    tools = surface.tools()
    tool = next((one for one in tools if one.name == name), None)
    if tool is None:
        raise ProtocolError(PARAMS, f"there is no tool {name!r}; there are {', '.join(one.name for one in tools)}")
    from commonplace.agents.tolerance import tolerate  # noqa: PLC0415 - it logs, and logging is slow to load

    trouble: list[str] = []
    with tolerate(f"{name} failed because of a bug", notify=trouble.append):  # one call must not end all others
        return _call_tool(tool, params.get("arguments"))
    return _failure(f"{trouble[0]}.")


def _call_tool(tool: VerbTool, sent: Any) -> dict[str, Any]:
    try:
        answer = tool.call({} if sent is None else sent)
    except (CommonplaceError, OSError) as error:
        return _failure(sentence(error))
    return {"content": [_content(answer.text)], "structuredContent": answer.data, "isError": False}


def _failure(reason: str) -> dict[str, Any]:
    return {"content": [_content(f"Not done: {reason}")], "isError": True}


def _content(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# Resources


def _resources(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _first_page(params)
    if surface.resources is None:
        raise ProtocolError(METHOD, "there are no resources here")
    with_refusals = _with_protocol_errors(surface.resources)
    return {"resources": [_resource(one, "uri") for one in with_refusals()]}


def _templates(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _first_page(params)
    return {"resourceTemplates": [_resource(one, "uriTemplate") for one in surface.templates]}


def _resource(one: Resource, key: str) -> dict[str, Any]:
    about = {"name": one.name, "title": one.title, "description": one.description, "mimeType": one.mime_type}
    return {key: one.uri, **about}


def _read(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    if surface.read is None:
        raise ProtocolError(METHOD, "there are no resources here")
    text = _with_protocol_errors(surface.read)(_text(params, "uri"))
    return {"contents": [{"uri": text.uri, "mimeType": text.mime_type, "text": text.text}]}


# Prompts


def _prompts(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _first_page(params)
    return {"prompts": [_prompt(one) for one in surface.prompts]}


def _prompt(one: Prompt) -> dict[str, Any]:
    arguments = [{"name": name, "description": reason, "required": False} for name, reason in one.arguments.items()]
    return {"name": one.name, "title": one.title, "description": one.description, "arguments": arguments}


def _get_prompt(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    name = _text(params, "name")
    prompt = next((one for one in surface.prompts if one.name == name), None)
    if prompt is None:
        raise ProtocolError(PARAMS, f"there is no prompt {name!r}")
    text = _with_protocol_errors(lambda: prompt.call(_texts(prompt, params.get("arguments"))))()
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": _content(text)}],
    }


def _texts(prompt: Prompt, sent: Any) -> dict[str, str]:
    """Return the arguments of a prompt, each a text; null leaves one out."""
    from commonplace.wire import decode  # noqa: PLC0415 - no host starts a prompt while it waits for the server

    given = decode(Mapping[str, Any], {} if sent is None else sent, name=f"the arguments of {prompt.name}")
    for name in given:
        if name not in prompt.arguments:
            raise InvalidInput(f"{prompt.name} takes no {name!r}; it takes {', '.join(prompt.arguments)}")
    return {name: decode(str, text, name=name) for name, text in given.items() if text is not None}


# What they share


def _with_protocol_errors(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call with its errors as protocol errors: resources and prompts have no ``isError``."""

    def call_or_refuse(*given: Any) -> Any:
        try:
            return call(*given)
        except NotFound as error:
            raise ProtocolError(NO_RESOURCE, str(error)) from error
        except (InvalidInput, Forbidden, ConfigError) as error:
            raise ProtocolError(PARAMS, str(error)) from error
        except (CommonplaceError, OSError) as error:
            raise ProtocolError(INTERNAL, sentence(error)) from error

    return call_or_refuse


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ProtocolError(PARAMS, f"{name!r} is missing" if value is None else f"{name!r} must be a string")
    return value


def _first_page(params: Mapping[str, Any]) -> None:
    """Refuse a cursor: every list is one page, so this server issues none."""
    if params.get("cursor") is not None:
        raise ProtocolError(PARAMS, f"the cursor {str(params['cursor'])[:40]!r} is not one of this server's")


METHODS: Mapping[str, Callable[[Surface, Mapping[str, Any]], dict[str, Any]]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _tools,
    "tools/call": _call,
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "resources/read": _read,
    "prompts/list": _prompts,
    "prompts/get": _get_prompt,
}
