"""Records in and out as JSON Lines, whole: versions, dates, sources, use.

The first line says what the file is; every other line is one record with its earlier versions.  A file is read to its
end before anything of it is kept, and keeping it twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.domain.changes import Load
from commonplace.domain.errors import Forbidden, InvalidInput
from commonplace.domain.ports import Store, Tell, silent
from commonplace.domain.queries import ANY_STATE, Filter, Order
from commonplace.domain.records import Channel, Kind, Record, Source, Trust, Usage
from commonplace.domain.scopes import Scope
from commonplace.domain.values import Value
from commonplace.engine.admission import Gate, searchable
from commonplace.engine.redact import Finding
from commonplace.engine.render import record_json

FORMAT = "commonplace-records"
FORMAT_VERSION = 1
PAGE = 500


class Imported(Value):
    """What came of an import."""

    kept: int = 0
    present: int = 0  #: there already, as new or newer
    redactions: tuple[Finding, ...] = ()


def exported(store: Store, scopes: frozenset[Scope], *, now: datetime) -> Iterator[str]:
    """The lines of an export, one page of records at a time."""
    yield json.dumps({"format": FORMAT, "version": FORMAT_VERSION, "scopes": sorted(str(scope) for scope in scopes)})
    after: str | None = None
    while True:
        where = Filter(scopes=scopes, at=now, states=ANY_STATE, after=after)
        page = store.find(where, order=Order.ID, limit=PAGE)
        for record in page:
            yield _line(record, _earlier(store, record, now))
        if len(page) < PAGE:
            return
        after = page[-1].id


def _earlier(store: Store, record: Record, now: datetime) -> Sequence[Record]:
    if record.version == 1:
        return []
    where = Filter(
        scopes=frozenset({record.scope}), at=now, states=ANY_STATE, ids=frozenset({record.id}), versions=True
    )
    versions = store.find(where, order=Order.ID, limit=record.version + 1)
    return [version for version in versions if version.version < record.version]


def _line(record: Record, earlier: Sequence[Record]) -> str:
    said = record_json(record)
    if earlier:
        said["versions"] = [record_json(version) for version in earlier]
    return json.dumps(said, ensure_ascii=False, sort_keys=True)


def imported(
    store: Store,
    lines: Iterable[str],
    *,
    allowed: Collection[Scope],
    into: Scope | None,
    name: str,
    secret: bytes,
    tell: Tell = silent,
) -> Imported:
    """Keep every record of an export, in its own scope or all of them in one.

    Nothing is kept if one line cannot be read, or belongs where the caller may not write.
    """
    gate = Gate(secret)
    loads = [_load(said, into, gate) for said in _read(lines, name)]
    kept = present = 0
    for foreign in {load.versions[-1].scope for load in loads} - {*allowed}:
        raise Forbidden(f"{name} holds records of {foreign}, which is not kept here; --scope says where they go")
    for start in range(0, len(loads), PAGE):
        tell(start, len(loads))
        for outcome in store.apply(loads[start : start + PAGE]):
            present, kept = (present + 1, kept) if outcome.deduped else (present, kept + 1)
    return Imported(kept=kept, present=present, redactions=tuple(gate.findings))


def _read(lines: Iterable[str], name: str) -> list[Sequence[Record]]:
    """Every record of the file, each with its versions, oldest first."""
    found: list[Sequence[Record]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{name}:{number}: not JSON: {error.msg}") from error
        if number == 1:
            _check_header(said, name)
            continue
        try:
            found.append(_versions(said))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"{name}:{number}: not a record: {_reason(error)}") from error
    return found


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _check_header(said: Any, name: str) -> None:
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise InvalidInput(f"{name} is not an export of Commonplace: its first line does not say {FORMAT!r}")
    if said.get("version") != FORMAT_VERSION:
        raise InvalidInput(f"{name} has version {said.get('version')!r} of the format; this can read {FORMAT_VERSION}")


def _versions(said: Mapping[str, Any]) -> Sequence[Record]:
    earlier = [record_of(version) for version in said.get("versions", [])]
    present = record_of(said)
    if any(version.id != present.id or version.scope != present.scope for version in earlier):
        raise ValueError("an earlier version belongs to another record")
    return sorted([*earlier, present], key=lambda version: version.version)


def record_of(said: Mapping[str, Any]) -> Record:
    """A record from what ``record_json`` wrote."""
    source, usage = said["source"], said["usage"]
    return Record(
        id=_text(said["id"]),
        scope=Scope.parse(said["scope"]),
        kind=Kind(said["kind"]),
        category=_text(said["category"]),
        content=_text(said["content"]),
        key=said["key"],
        value=said["value"],
        tags=frozenset(_text(tag) for tag in said["tags"]),
        metadata=dict(said["metadata"]),
        source=Source(
            channel=Channel(source["channel"]), ref=source["ref"], parents=tuple(map(_text, source["parents"]))
        ),
        trust=Trust[said["trust"].upper()],
        pinned=bool(said["pinned"]),
        version=int(said["version"]),
        created_at=datetime.fromisoformat(said["created_at"]),
        updated_at=datetime.fromisoformat(said["updated_at"]),
        occurred_at=_moment(said["occurred_at"]),
        expires_at=_moment(said["expires_at"]),
        archived_at=_moment(said["archived_at"]),
        superseded_by=said["superseded_by"],
        held=bool(said["held"]),
        consolidated_at=_moment(said["consolidated_at"]),
        usage=Usage(recalls=int(usage["recalls"]), last_recalled_at=_moment(usage["last_recalled_at"])),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _load(versions: Sequence[Record], into: Scope | None, gate: Gate) -> Load:
    """An imported record passes the same gate; what it says was clean when it was exported stays as it is."""
    passed = tuple(_passed(version, into, gate) for version in versions)
    return Load(versions=passed, terms=tuple(searchable(version) for version in passed))


def _passed(record: Record, into: Scope | None, gate: Gate) -> Record:
    metadata = gate.json(dict(record.metadata), what="the metadata")
    content = gate.text(record.content, what=f"the content of {record.id}")
    if not content:
        raise InvalidInput(f"the content of record {record.id!r} is blank")
    return record.replace(
        scope=into or record.scope,
        content=content,
        key=None if record.key is None else gate.text(record.key, what="the key"),
        value=gate.json(record.value, what="the value"),
        tags=frozenset(gate.text(tag, what="a tag") for tag in record.tags),
        metadata=metadata if isinstance(metadata, dict) else {},
    )
