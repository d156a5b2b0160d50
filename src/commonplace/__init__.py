"""Persistent memory for AI agents, which their people can read, edit and trust.

The names below are the library; each is loaded when it is first used, because the command pays for every import.
"""

from __future__ import annotations

from commonplace import version
from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from commonplace.app import App, open, open_app, open_async  # noqa: A004 - `commonplace.open` is what it is called
    from commonplace.engine.asynchronous import AsyncMemory
    from commonplace.engine.bulk import Transaction
    from commonplace.engine.memory import Memory
    from commonplace.engine.results import BulkResult, LearnResult, WriteResult
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
    from commonplace.model.records import Kind, Record, Trust
    from commonplace.model.scopes import Scope

__version__ = version.VERSION

__getattr__ = lazy_names(
    __name__,
    {
        "app": "App open open_app open_async",
        "engine.asynchronous": "AsyncMemory",
        "engine.bulk": "Transaction",
        "engine.memory": "Memory",
        "engine.results": "BulkResult LearnResult WriteResult",
        "intents": "AsyncClient Client",
        "model.errors": """
            CapacityExceeded CommonplaceError ConfigError Conflict DimensionMismatch EmbeddingModelChanged
            ErasedBefore Forbidden
            InvalidInput LeaseLost NotFound ProviderError SchemaTooNew StoreBusy StoreDamaged StoreError
            StoreReadOnly StoreReplaced""",
        "model.queries": "Hit",
        "model.records": "Kind Record Trust",
        "model.scopes": "Scope",
    },
)

__all__ = [
    "App",
    "AsyncClient",
    "AsyncMemory",
    "BulkResult",
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
    "LearnResult",
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
    "Transaction",
    "Trust",
    "WriteResult",
    "__version__",
    "open",
    "open_app",
    "open_async",
]


def __dir__() -> list[str]:
    return __all__  # what loads when it is used is not there yet; what is there is not the library
