"""Records in and out as JSON Lines, whole: versions, dates, sources, use.

The first line says what the file is; every other line is one record with its earlier versions.  A file is read to its
end before anything of it is kept, and keeping it twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.engine.admission import Gate, fits, named_by, searchable
from commonplace.engine.rendering import record_json
from commonplace.model.changes import Load
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.ports import Store, Tell, silent
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Channel, Json, Kind, Record, Source, Trust, Usage
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.cleaning import one_line, slug

FORMAT = "commonplace-records"
FORMAT_VERSION = 1
PAGE = 500
COUNT_MOST = 2**53  # what every reader of JSON takes for the same number


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
    loads = _loads(lines, name, into, gate)
    kept = present = 0
    for foreign in {load.versions[-1].scope for load in loads} - {*allowed}:
        raise Forbidden(f"{name} holds records of {foreign}, which is not kept here; --scope says where they go")
    for start in range(0, len(loads), PAGE):
        tell(start, len(loads))
        for outcome in store.apply(loads[start : start + PAGE]):
            present, kept = (present + 1, kept) if outcome.deduped else (present, kept + 1)
    return Imported(kept=kept, present=present, redactions=tuple(gate.findings))


def _loads(lines: Iterable[str], name: str, into: Scope | None, gate: Gate) -> list[Load]:
    """Every record of the file, passed through the gate; whatever is wrong is said with its line."""
    found: list[Load] = []
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    number, header = next(numbered, (1, "null"))
    _check_header(_parsed(header.removeprefix("\ufeff"), f"{name}:{number}"), name)
    for number, line in numbered:
        said = _parsed(line, f"{name}:{number}")
        try:
            found.append(_load(_versions(said), into, gate))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidInput(f"{name}:{number}: not a record: {_reason(error)}") from error
    return found


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON: {error}") from error


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _check_header(said: Any, name: str) -> None:
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise InvalidInput(f"{name} is not an export of Commonplace: its first line does not say {FORMAT!r}")
    if said.get("version") != FORMAT_VERSION:
        raise InvalidInput(f"{name} has version {said.get('version')!r} of the format; this can read {FORMAT_VERSION}")


def _versions(said: Mapping[str, Any]) -> Sequence[Record]:
    present = record_of(_mapping(said))
    earlier = [record_of(_mapping(version)) for version in said.get("versions", [])]
    if any(version.id != present.id or version.scope != present.scope for version in earlier):
        raise ValueError("an earlier version belongs to another record")
    versions = sorted([*earlier, present], key=lambda version: version.version)
    if versions[-1] is not present or len({version.version for version in versions}) < len(versions):
        raise ValueError("its versions are not numbered one after the other, the present one last")
    return versions


def record_of(said: Mapping[str, Any]) -> Record:
    """A record from what ``record_json`` wrote."""
    source, usage = said["source"], said["usage"]
    return Record(
        id=_text(said["id"]),
        scope=Scope.parse(said["scope"]),
        kind=Kind(said["kind"]),
        category=_slug(said["category"]),
        content=_text(said["content"]),
        key=_text_or_none(said["key"]),
        value=said["value"],
        tags=frozenset(_texts(said["tags"])),
        metadata=_mapping(said["metadata"]),
        source=Source(
            channel=Channel(source["channel"]), ref=_text_or_none(source["ref"]), parents=_texts(source["parents"])
        ),
        trust=_trust(said["trust"]),
        pinned=_flag(said["pinned"]),
        version=_count(said["version"], least=1),
        created_at=_date(said["created_at"]),
        updated_at=_date(said["updated_at"]),
        occurred_at=_moment(said["occurred_at"]),
        expires_at=_moment(said["expires_at"]),
        archived_at=_moment(said["archived_at"]),
        superseded_by=_text_or_none(said["superseded_by"]),
        held=_flag(said["held"]),
        consolidated_at=_moment(said["consolidated_at"]),
        usage=Usage(recalls=_count(usage["recalls"], least=0), last_recalled_at=_moment(usage["last_recalled_at"])),
    )


def _moment(text: Any) -> datetime | None:
    return None if text is None else _date(text)


def _date(text: Any) -> datetime:
    moment = datetime.fromisoformat(_text(text))
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.astimezone(UTC)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of texts")
    return tuple(_text(item) for item in value)


def _mapping(value: Any) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not keys and values")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def _count(value: Any, *, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < COUNT_MOST:
        raise ValueError(f"{value!r} is not a number from {least} on")
    return value


def _trust(value: Any) -> Trust:
    if _text(value).upper() not in Trust.__members__:
        raise ValueError(f"{value!r} is no trust; there are {', '.join(name.lower() for name in Trust.__members__)}")
    return Trust[value.upper()]


def _slug(value: Any) -> str:
    if slug(_text(value)) != value:
        raise ValueError(f"{value!r} is not a category")
    return str(value)


def _load(versions: Sequence[Record], into: Scope | None, gate: Gate) -> Load:
    """An imported record passes the same gate; what it says was clean when it was exported stays as it is."""
    passed = tuple(_passed(version, into, gate) for version in versions)
    return Load(versions=passed, terms=tuple(searchable(version) for version in passed))


def _passed(record: Record, into: Scope | None, gate: Gate) -> Record:
    metadata = gate.json(dict(record.metadata), what="the metadata")
    content = gate.text(record.content, what="the content", name=named_by(record.key, record.content))
    if not content:
        raise InvalidInput("the content is blank")
    source, key = record.source, record.key
    passed = record.replace(
        scope=into or record.scope,
        content=content,
        key=None if key is None else one_line(gate.text(key, what="the key")) or None,
        value=gate.json(record.value, what="the value", name=named_by(key, record.value)),
        tags=frozenset(gate.text(tag, what="a tag") for tag in record.tags if tag.strip()),
        metadata=metadata if isinstance(metadata, dict) else {},
        source=source.replace(ref=None if source.ref is None else gate.text(source.ref, what="the reference")),
    )
    fits(passed)
    return passed
