"""Agents at work.  Nothing is imported here before it is used: commands that run no agent must not pay for one."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from typing import Any

    from commonplace.agents.intent_agents import Agent, Memory, on_assignment
    from commonplace.agents.intents import Intent, Runner, assign, runner

_HOMES = {
    "Agent": "intent_agents",
    "Intent": "intents",
    "Memory": "intent_agents",
    "Runner": "intents",
    "assign": "intents",
    "on_assignment": "intent_agents",
    "runner": "intents",
}

__all__ = ["Agent", "Intent", "Memory", "Runner", "assign", "on_assignment", "runner"]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'commonplace.agents' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - paid for only by those who ask

    return getattr(import_module(f"commonplace.agents.{_HOMES[name]}"), name)
