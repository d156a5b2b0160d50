"""Role memory: agents described by a role.yaml that remember facts, episodes and procedures."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from commonplace.roles.commands.lance import import_lance
    from commonplace.roles.commands.memory import ROLE_COMMANDS, clear_role
    from commonplace.roles.commands.template import ROLE_MODEL, init_role
    from commonplace.roles.memory import role_memory
    from commonplace.roles.surface import role_surface
    from commonplace.roles.verbs import VERBS, role_tools

COMMANDS = {
    "role": ("commands.memory:role", "List, clear, move and consolidate what the agent of a role remembers.", "Agents"),
    "run": ("commands.run:run", "Run an agent with a memory: talk to it, ask it once, or let it work.", "Agents"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "commands.lance": "import_lance",
        "commands.memory": "ROLE_COMMANDS clear_role",
        "commands.template": "ROLE_MODEL init_role",
        "memory": "role_memory",
        "surface": "role_surface",
        "verbs": "VERBS role_tools",
    },
)

__all__ = [
    "ROLE_COMMANDS",
    "ROLE_MODEL",
    "VERBS",
    "clear_role",
    "import_lance",
    "init_role",
    "role_memory",
    "role_surface",
    "role_tools",
]
