"""Intent memory: entries with tiers, keys, versions and namespaces; agents, workflows, client and server routes.

Nothing is imported before it is used: commands that run no agent must not pay for one.
"""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.intents.assignments import Intent, Runner, assign, runner
    from commonplace.intents.client import AsyncClient, Client
    from commonplace.intents.decorators import Agent, Memory, on_assignment
    from commonplace.intents.entries import Caller
    from commonplace.intents.event_routes import EVENT_ROUTES
    from commonplace.intents.intents import Intents
    from commonplace.intents.opening import open_intents
    from commonplace.intents.openintent_sdk import equip
    from commonplace.intents.rfc_routes import RFC_ROUTES
    from commonplace.intents.sdk_routes import SDK_ROUTES
    from commonplace.intents.surface import intent_surface
    from commonplace.intents.verbs import VERBS, IntentAccess
    from commonplace.intents.workflow import run_workflow

COMMANDS = {
    "workflow": ("command:workflow", "Run workflows: phases of agents that hand memory on.", "Agents"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "assignments": "Intent Runner assign runner",
        "client": "AsyncClient Client",
        "decorators": "Agent Memory on_assignment",
        "entries": "Caller",
        "event_routes": "EVENT_ROUTES",
        "intents": "Intents",
        "opening": "open_intents",
        "openintent_sdk": "equip",
        "rfc_routes": "RFC_ROUTES",
        "sdk_routes": "SDK_ROUTES",
        "surface": "intent_surface",
        "verbs": "VERBS IntentAccess",
        "workflow": "run_workflow",
    },
)

__all__ = [
    "EVENT_ROUTES",
    "RFC_ROUTES",
    "SDK_ROUTES",
    "VERBS",
    "Agent",
    "AsyncClient",
    "Caller",
    "Client",
    "Intent",
    "IntentAccess",
    "Intents",
    "Memory",
    "Runner",
    "assign",
    "equip",
    "intent_surface",
    "on_assignment",
    "open_intents",
    "run_workflow",
    "runner",
]
