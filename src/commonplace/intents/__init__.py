"""Intent memory: entries with tiers, keys, versions and namespaces; agents, workflows, client and server routes.

Nothing is imported before it is used: commands that run no agent must not pay for one.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from typing import Any

    from commonplace.intents.assignments import Intent, Runner, assign, runner
    from commonplace.intents.decorators import Agent, Memory, on_assignment

COMMANDS = {
    "workflow": ("command:workflow", "Run workflows: phases of agents that hand memory on."),
}  #: name -> where it lives in this package, what it does

_HOMES = {
    "Agent": "decorators",
    "Intent": "assignments",
    "Memory": "decorators",
    "Runner": "assignments",
    "assign": "assignments",
    "on_assignment": "decorators",
    "runner": "assignments",
}

__all__ = ["Agent", "Intent", "Memory", "Runner", "assign", "on_assignment", "runner"]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'commonplace.intents' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - paid for only by those who ask

    return getattr(import_module(f"commonplace.intents.{_HOMES[name]}"), name)
