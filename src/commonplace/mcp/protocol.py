"""The methods of the protocol over a surface: parameters in, result out, as the wire has them.  No transport.

The one table from errors to what a client sees is here.  A call that a model can correct comes back as a result that
says ``isError`` with a sentence; what only a program can have got wrong is an error of the protocol.
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
    """A request that is handle with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle(surface: Surface, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a request; raise ``ProtocolError``."""
    function = METHODS.get(method)
    if function is None:
        raise ProtocolError(METHOD, f"there is no method {method!r}")
    return function(surface, params)


def error_text(error: CommonplaceError | OSError) -> str:
    """Return what went wrong, with what a model could do about it."""
    text = str(error) if isinstance(error, CommonplaceError) else _os_error_text(error)
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
            return f"{text.rstrip('.')}."
    return f"{text.rstrip('.')}; {advice}."


def _os_error_text(error: OSError) -> str:
    """Return the reason and the file; without a file, the folder that the process runs in is gone."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the folder that this server was started in is gone; start the server again where the project is now"
    of = "" if error.filename is None else f" ({error.filename!r})"
    return f"the disk failed: {error.strerror or error}{of}"


def _initialize(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    revision = params.get("protocolVersion")
    if not isinstance(revision, str):
        raise ProtocolError(PARAMS, "initialize needs 'protocolVersion'")
    capabilities: dict[str, Any] = {"tools": {"listChanged": False}}
    capabilities |= {"resources": {"subscribe": False, "listChanged": False}} if surface.read else {}
    capabilities |= {"prompts": {"listChanged": False}} if surface.prompts else {}
    return {
        "protocolVersion": revision if revision in REVISIONS else REVISIONS[-1],
        "capabilities": capabilities,
        "serverInfo": {"name": NAME, "title": TITLE, "version": VERSION},
        "instructions": surface.instructions,
    }


def _ping(_surface: Surface, _params: Mapping[str, Any]) -> dict[str, Any]:
    return {}


# Tools


def _list_tools(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_cursor(params)
    if surface.tool_list is None:
        return {"tools": _describe_tools(surface)}
    from commonplace.mcp.tool_list_cache import load_or_derive  # noqa: PLC0415 - only servers without a bound agent

    return {"tools": load_or_derive(surface.tool_list, lambda: _describe_tools(surface))}


def _describe_tools(surface: Surface) -> list[dict[str, Any]]:
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
            "openWorldHint": False,  # a tool reaches the store and nothing else
        },
    }


def _call_tool(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    name = _string_of(params, "name")
    tools = surface.tools()
    tool = next((one for one in tools if one.name == name), None)
    if tool is None:
        raise ProtocolError(PARAMS, f"there is no tool {name!r}; there are {', '.join(one.name for one in tools)}")
    from commonplace.agents.tolerance import tolerate  # noqa: PLC0415 - it logs, and logging is slow to load

    trouble: list[str] = []
    with tolerate(f"{name} failed by a fault of its own", notify=trouble.append):  # one call must not end all others
        return _run_tool(tool, params.get("arguments"))
    return _failure(f"{trouble[0]}.")


def _run_tool(tool: VerbTool, sent: Any) -> dict[str, Any]:
    try:
        answer = tool.call({} if sent is None else sent)
    except (CommonplaceError, OSError) as error:
        return _failure(error_text(error))
    return {"content": [_content(answer.text)], "structuredContent": answer.data, "isError": False}


def _failure(reason: str) -> dict[str, Any]:
    return {"content": [_content(f"Not done: {reason}")], "isError": True}


def _content(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# Resources


def _list_resources(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_cursor(params)
    if surface.resources is None:
        raise ProtocolError(METHOD, "there are no resources here")
    listed = _with_protocol_errors(surface.resources)()
    return {"resources": [_resource(one, "uri") for one in listed]}


def _list_templates(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_cursor(params)
    return {"resourceTemplates": [_resource(one, "uriTemplate") for one in surface.templates]}


def _resource(one: Resource, key: str) -> dict[str, Any]:
    about = {"name": one.name, "title": one.title, "description": one.description, "mimeType": one.mime_type}
    return {key: one.uri, **about}


def _read_resource(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    if surface.read is None:
        raise ProtocolError(METHOD, "there are no resources here")
    text = _with_protocol_errors(surface.read)(_string_of(params, "uri"))
    return {"contents": [{"uri": text.uri, "mimeType": text.mime_type, "text": text.text}]}


# Prompts


def _list_prompts(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_cursor(params)
    return {"prompts": [_prompt(one) for one in surface.prompts]}


def _prompt(one: Prompt) -> dict[str, Any]:
    arguments = [{"name": name, "description": text, "required": False} for name, text in one.arguments.items()]
    return {"name": one.name, "title": one.title, "description": one.description, "arguments": arguments}


def _get_prompt(surface: Surface, params: Mapping[str, Any]) -> dict[str, Any]:
    name = _string_of(params, "name")
    prompt = next((one for one in surface.prompts if one.name == name), None)
    if prompt is None:
        raise ProtocolError(PARAMS, f"there is no prompt {name!r}")
    text = _with_protocol_errors(lambda: prompt.call(_prompt_arguments(prompt, params.get("arguments"))))()
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": _content(text)}],
    }


def _prompt_arguments(prompt: Prompt, sent: Any) -> dict[str, str]:
    """Return the arguments of a prompt, each a text; null leaves one out."""
    from commonplace.wire import decode  # noqa: PLC0415 - no host starts a prompt while it waits for the server

    given = decode(Mapping[str, Any], {} if sent is None else sent, name=f"the arguments of {prompt.name}")
    for name in given:
        if name not in prompt.arguments:
            raise InvalidInput(f"{prompt.name} takes no {name!r}; it takes {', '.join(prompt.arguments)}")
    return {name: decode(str, text, name=name) for name, text in given.items() if text is not None}


# What they share


def _with_protocol_errors(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call whose failures are errors of the protocol: only results of tools can say ``isError``."""

    def call_or_raise(*given: Any) -> Any:
        try:
            return call(*given)
        except NotFound as error:
            raise ProtocolError(NO_RESOURCE, str(error)) from error
        except (InvalidInput, Forbidden, ConfigError) as error:
            raise ProtocolError(PARAMS, str(error)) from error
        except (CommonplaceError, OSError) as error:
            raise ProtocolError(INTERNAL, error_text(error)) from error

    return call_or_raise


def _string_of(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ProtocolError(PARAMS, f"{name!r} is missing" if value is None else f"{name!r} must be a string")
    return value


def _refuse_cursor(params: Mapping[str, Any]) -> None:
    """Refuse cursors: every list is one page, so that this server never gave one."""
    if params.get("cursor") is not None:
        raise ProtocolError(PARAMS, f"the cursor {str(params['cursor'])[:40]!r} was not made by this server")


METHODS: Mapping[str, Callable[[Surface, Mapping[str, Any]], dict[str, Any]]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
}
