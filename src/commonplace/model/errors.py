"""Every error that Commonplace raises, as one tree.

CommonplaceError
├─ InvalidInput (ValueError)      bad scope, kind, category, oversize, blank
├─ NotFound (LookupError)         no such record, or none that this binding may see
├─ Conflict                       .current: the stored version, or the record that holds the key
├─ Forbidden (PermissionError)    outside the binding
│  └─ ErasedBefore                .erasures, .at: a person has erased this, and only they can let it come back
├─ CapacityExceeded               .current, .limit: the store is full, and nothing may be evicted
├─ ConfigError (ValueError)       .file, .path, .reason
├─ EmbeddingModelChanged          .stored, .offered
├─ DimensionMismatch              .stored, .offered
├─ LeaseLost                      another worker took the job over; nothing of this one was written
├─ ProviderError                  a model or an embedder failed; the cause is kept
└─ StoreError                     the database failed; the cause is kept
   ├─ StoreBusy                   worth retrying
   ├─ StoreReadOnly               it can be read, and not written to
   ├─ StoreReplaced               another file lies in the place of the database; worth retrying on that one
   ├─ StoreDamaged                refuses to write; `commonplace doctor` reports what is wrong
   └─ SchemaTooNew                written by a newer Commonplace; nothing was changed

Expected outcomes are values, not errors: ``Skipped``, ``Outcome.deduped``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


ADVICE = "; run `commonplace doctor`"  # at the end of what is said about damage


class CommonplaceError(Exception):
    """The base of every error that Commonplace raises on purpose."""


class InvalidInput(CommonplaceError, ValueError):
    """The input cannot be stored or searched for."""


class NotFound(CommonplaceError, LookupError):
    """There is no such thing, or none that this binding may see."""


class Conflict(CommonplaceError):
    """Another process changed it first."""

    def __init__(self, message: str, *, current: int | None = None, holder: str | None = None) -> None:
        super().__init__(message)
        self.current = current
        self.holder = holder


class Forbidden(CommonplaceError, PermissionError):
    """The binding does not allow it."""


class ErasedBefore(Forbidden):
    """A person has erased this, and only a person can let it come back."""

    def __init__(self, *, erasures: tuple[str, ...], at: datetime) -> None:
        super().__init__(
            f"this was erased on {at:%Y-%m-%d} and is not stored again;"
            f" `commonplace forget --allow {erasures[0]}` lets it come back"
        )
        self.erasures = erasures
        self.at = at


class CapacityExceeded(CommonplaceError):
    """The limit is reached, and nothing may be evicted."""

    def __init__(self, message: str, *, current: int, limit: int) -> None:
        super().__init__(message)
        self.current = current
        self.limit = limit


class ConfigError(CommonplaceError, ValueError):
    """A configuration file holds an invalid setting."""

    def __init__(self, reason: str, *, file: str, path: str = "") -> None:
        super().__init__(f"{file}: {path + ': ' if path else ''}{reason}")
        self.file = file
        self.path = path
        self.reason = reason


class EmbeddingModelChanged(CommonplaceError):
    """The store's vectors come from another embedder."""

    def __init__(self, *, stored: str, offered: str) -> None:
        super().__init__(
            f"the store holds vectors of {stored!r}, the embedder in use is {offered!r};"
            " `commonplace reembed` changes over"
        )
        self.stored = stored
        self.offered = offered


class DimensionMismatch(CommonplaceError):
    """A vector has another length than those in the store."""

    def __init__(self, *, stored: int, offered: int) -> None:
        super().__init__(
            f"the store holds vectors of {stored} dimensions, this one has {offered};"
            " `commonplace reembed` changes over"
        )
        self.stored = stored
        self.offered = offered


class LeaseLost(CommonplaceError):
    """Another worker took the job over; nothing of this one was written."""


class ProviderError(CommonplaceError):
    """A model or an embedder failed."""


class StoreError(CommonplaceError):
    """The database failed."""


class StoreBusy(StoreError):
    """The database was locked for too long; the write was not made and can be tried again."""


class StoreReadOnly(StoreError):
    """The database can be read, and not written to."""


class StoreReplaced(StoreError):
    """The file of the database was removed or replaced while it was open; nothing was written."""


class StoreDamaged(StoreError):
    """The database is damaged; it is not written to."""


class SchemaTooNew(StoreError):
    """The store was written by a newer Commonplace; nothing was changed."""
