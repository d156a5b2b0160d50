"""Persistent memory for AI agents, which their people can read, edit and trust.

The names below are the library; each is loaded when it is first used, because the command pays for every import.
"""

from __future__ import annotations

from commonplace import version

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from typing import Any

    from commonplace.app import open  # noqa: A004 - `commonplace.open` is what it is called
    from commonplace.engine.asynchronous import AsyncMemory
    from commonplace.engine.memory import Memory
    from commonplace.intents.client import AsyncClient, Client
    from commonplace.model.errors import (
        CapacityExceeded,
        CommonplaceError,
        ConfigError,
        Conflict,
        DimensionMismatch,
        EmbeddingModelChanged,
        Forbidden,
        InvalidInput,
        LeaseLost,
        NotFound,
        ProviderError,
        SchemaTooNew,
        StoreBusy,
        StoreDamaged,
        StoreError,
    )
    from commonplace.model.queries import Hit
    from commonplace.model.records import Kind, Record
    from commonplace.model.scopes import Scope

__version__ = version.VERSION

_HOMES = {
    "AsyncClient": "intents.client",
    "AsyncMemory": "engine.asynchronous",
    "Client": "intents.client",
    "Hit": "model.queries",
    "Kind": "model.records",
    "Memory": "engine.memory",
    "Record": "model.records",
    "Scope": "model.scopes",
    "open": "app",
} | dict.fromkeys(
    (
        "CapacityExceeded", "CommonplaceError", "ConfigError", "Conflict", "DimensionMismatch",
        "EmbeddingModelChanged", "Forbidden", "InvalidInput", "LeaseLost", "NotFound", "ProviderError",
        "SchemaTooNew", "StoreBusy", "StoreDamaged", "StoreError",
    ),
    "model.errors",
)  # fmt: skip

__all__ = [
    "AsyncClient",
    "AsyncMemory",
    "CapacityExceeded",
    "Client",
    "CommonplaceError",
    "ConfigError",
    "Conflict",
    "DimensionMismatch",
    "EmbeddingModelChanged",
    "Forbidden",
    "Hit",
    "InvalidInput",
    "Kind",
    "LeaseLost",
    "Memory",
    "NotFound",
    "ProviderError",
    "Record",
    "SchemaTooNew",
    "Scope",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "__version__",
    "open",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - paid for only by those who ask

    return getattr(import_module(f"commonplace.{_HOMES[name]}"), name)
