"""Undo what came from one origin, or since a time: nothing is erased, so an undo can be undone in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from commonplace.engine.admission import search_terms
from commonplace.engine.edits import require_person
from commonplace.engine.memory import Memory
from commonplace.engine.review import comes_from
from commonplace.model.changes import Archive, Audit, Change, Put, Require, versions_digest
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.cleaning import plural

ALL = -1
ARCHIVE, REVERT, LEAVE = "archive", "revert", "leave"


class Undo(Value):
    """What a rollback does with one record."""

    action: str  #: archive (it was new), revert (to the version before), or leave
    record: Record  #: as it is now
    to: Record | None = None  #: the version before
    why: str = ""  #: why it is left as it is


class Rollback(Value):
    """What a rollback does, or would do."""

    undone: tuple[Undo, ...]
    left: tuple[Undo, ...] = ()  #: what was changed since by others
    notes: tuple[str, ...] = ()


def plan_rollback(memory: Memory, *, origin: str | None = None, since: datetime | None = None) -> Rollback:
    """Return what a rollback would do; exactly one of ``origin`` and ``since`` is given."""
    if (origin is None) == (since is None):
        raise InvalidInput("a rollback needs an origin or a time, and not both")
    meant = _by_time(memory, since) if since is not None else _by_origin(str(origin))
    found = [undo for scope in memory.binding.reads for undo in _plan_scope(memory, scope, meant)]
    replaced = {undo.record.id for undo in found if undo.action == ARCHIVE}
    if since is None:
        found += [undo for scope in memory.binding.reads for undo in _restored(memory, scope, replaced, meant)]
    return Rollback(
        undone=tuple(undo for undo in found if undo.action != LEAVE),
        left=tuple(undo for undo in found if undo.action == LEAVE),
        notes=_erased_note(memory, since) if since is not None else (),
    )


def roll_back(memory: Memory, *, origin: str | None = None, since: datetime | None = None) -> Rollback:
    """Undo what came from an origin or since a time, in one transaction for each scope.

    Raises ``Conflict`` if one of the records is changed meanwhile: nothing of its scope is undone then.
    """
    planned = plan_rollback(memory, origin=origin, since=since)
    notes: list[str] = []
    for scope in memory.binding.reads:
        undone = [undo for undo in planned.undone if undo.record.scope == scope]
        if undone:
            require_person(memory, undone[0].record)
            notes += memory.writer.apply(_changes(memory, scope, undone)).notes
    return planned.replace(notes=tuple(dict.fromkeys([*planned.notes, *notes])))


# Planning


def _erased_note(memory: Memory, since: datetime) -> tuple[str, ...]:
    erased = sum(one.verb == "erase" and one.at >= since for one in memory.store.audit_log(limit=ALL))
    return (f"{plural(erased, 'record')} erased since then cannot be brought back",) if erased else ()


def _by_time(memory: Memory, since: datetime) -> Callable[[Record], bool]:
    """What was written since then, also under an earlier date, such as an import or a file."""
    logged = {(one.record, one.version) for one in memory.store.audit_log(limit=ALL) if one.at >= since}
    return lambda version: version.updated_at >= since or (version.id, version.version) in logged


def _by_origin(origin: str) -> Callable[[Record], bool]:
    return lambda version: comes_from(version, origin)


def _plan_scope(memory: Memory, scope: Scope, meant: Callable[[Record], bool]) -> list[Undo]:
    every = _every(memory, scope, versions=True)
    histories: dict[str, list[Record]] = {}
    for version in every:
        histories.setdefault(version.id, []).append(version)
    plans = [_plan(sorted(found, key=lambda one: one.version), meant) for found in histories.values()]
    return [undo for undo in plans if undo is not None]


def _plan(versions: Sequence[Record], meant: Callable[[Record], bool]) -> Undo | None:
    """Decide about one record, of which these are all versions, oldest first."""
    present = versions[-1]
    first = next((number for number, version in enumerate(versions) if meant(version)), None)
    if first is None:
        return None
    if not _is_still(present, versions[first:], meant):
        return Undo(action=LEAVE, record=present, why="it was changed since by somebody else")
    if first == 0:
        return None if present.archived_at is not None else Undo(action=ARCHIVE, record=present)
    before = versions[first - 1]
    return None if _says_the_same(before, present) else Undo(action=REVERT, record=present, to=before)


def _is_still(present: Record, since: Sequence[Record], meant: Callable[[Record], bool]) -> bool:
    """Whether the words of a record are still those that are to be undone."""
    return meant(present) or any(
        meant(version) and (version.content, version.value) == (present.content, present.value) for version in since
    )


def _says_the_same(one: Record, other: Record) -> bool:
    ignored = {"version", "updated_at", "usage", "consolidated_at"}
    return all(getattr(one, field) == getattr(other, field) for field in Record.fields if field not in ignored)


def _restored(memory: Memory, scope: Scope, replaced: set[str], meant: Callable[[Record], bool]) -> list[Undo]:
    """Bring back what records that go had replaced, unless it goes as well."""
    found = [one for one in _every(memory, scope, versions=False) if one.superseded_by in replaced]
    return [
        Undo(action=REVERT, record=one, to=one.replace(archived_at=None, superseded_by=None))
        for one in found
        if not meant(one)
    ]


def _every(memory: Memory, scope: Scope, *, versions: bool) -> list[Record]:
    where = Filter(scopes=frozenset({scope}), at=memory.clock(), states=ANY_STATE, versions=versions)
    return list(memory.store.find(where, order=Order.ID, limit=ALL))


# Doing


def _changes(memory: Memory, scope: Scope, undone: Sequence[Undo]) -> list[Change]:
    """The changes of one scope: what is archived goes first, because a version before may have its key."""
    now = memory.clock()
    ids = frozenset(undo.record.id for undo in undone)
    where = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE, ids=ids)
    digest = versions_digest((undo.record.id, undo.record.version) for undo in undone)
    gone = frozenset(undo.record.id for undo in undone if undo.action == ARCHIVE)
    changes: list[Change] = [Require(where=where, digest=digest)]
    changes += [Archive(where=where.replace(ids=gone), at=now)] if gone else []
    changes += [_revert(undo.record, undo.to, now) for undo in undone if undo.to is not None]
    return [*changes, Audit(verb="rollback")]


def _revert(present: Record, to: Record, now: datetime) -> Put:
    after = to.replace(version=present.version, updated_at=now, usage=present.usage)
    return Put(record=after, terms=search_terms(after), expect=present.version)
