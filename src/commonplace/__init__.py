"""Persistent memory for AI agents, which their people can read, edit and trust.

The names below are the library; each is loaded when it is first used, because the command pays for every import.
"""

from __future__ import annotations

from commonplace import version
from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from commonplace.app import App, open, open_app  # noqa: A004 - `commonplace.open` is what it is called
    from commonplace.engine.asynchronous import AsyncMemory
    from commonplace.engine.memory import Memory
    from commonplace.intents import AsyncClient, Client
    from commonplace.model.errors import (
        CapacityExceeded,
        CommonplaceError,
        ConfigError,
        Conflict,
        DimensionMismatch,
        EmbeddingModelChanged,
        ErasedBefore,
        Forbidden,
        InvalidInput,
        LeaseLost,
        NotFound,
        ProviderError,
        SchemaTooNew,
        StoreBusy,
        StoreDamaged,
        StoreError,
        StoreReadOnly,
        StoreReplaced,
    )
    from commonplace.model.queries import Hit
    from commonplace.model.records import Kind, Record
    from commonplace.model.scopes import Scope

__version__ = version.VERSION

__getattr__ = lazy_names(
    __name__,
    {
        "app": "App open open_app",
        "engine.asynchronous": "AsyncMemory",
        "engine.memory": "Memory",
        "intents": "AsyncClient Client",
        "model.errors": """
            CapacityExceeded CommonplaceError ConfigError Conflict DimensionMismatch EmbeddingModelChanged
            ErasedBefore Forbidden
            InvalidInput LeaseLost NotFound ProviderError SchemaTooNew StoreBusy StoreDamaged StoreError
            StoreReadOnly StoreReplaced""",
        "model.queries": "Hit",
        "model.records": "Kind Record",
        "model.scopes": "Scope",
    },
)

__all__ = [
    "App",
    "AsyncClient",
    "AsyncMemory",
    "CapacityExceeded",
    "Client",
    "CommonplaceError",
    "ConfigError",
    "Conflict",
    "DimensionMismatch",
    "EmbeddingModelChanged",
    "ErasedBefore",
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
    "StoreReadOnly",
    "StoreReplaced",
    "__version__",
    "open",
    "open_app",
]
