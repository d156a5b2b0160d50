"""What a room offers to hosts of models: tools, resources and prompts.  The MCP server mounts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.model.values import Value

if TYPE_CHECKING:  # schemas are derived when they are asked for, not at start-up
    from commonplace.agents.verb_tools import VerbTool


class Text(Value):
    """What a resource holds."""

    uri: str
    text: str
    mime_type: str = "text/markdown"


class Resource(Value):
    """One resource by its address, or many by a template of one."""

    uri: str  #: an address, or with ``{name}`` in it a template
    name: str
    title: str
    description: str
    mime_type: str = "text/markdown"


class Prompt(Value):
    """One prompt that a person can start by name."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str] = {}  #: name -> description; none is ever required
    call: Callable[[Mapping[str, str]], str]  #: returns the message for the model; raises ``CommonplaceError``


class Surface(Value):
    """Everything that one server offers."""

    instructions: str  #: what a host tells its model about the server as a whole
    tools: Callable[[], Sequence[VerbTool]]
    tool_list: str | None = None  #: the file where a server may keep their descriptions, if they are always the same
    templates: tuple[Resource, ...] = ()
    resources: Callable[[], Sequence[Resource]] | None = None  #: those that there are now; None: no resources at all
    read: Callable[[str], Text] | None = None  #: by address; raises ``CommonplaceError``
    prompts: tuple[Prompt, ...] = ()
