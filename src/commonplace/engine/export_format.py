"""The format of ``commonplace export``: JSON Lines, every record whole: its versions, dates, source and use.

The first line names the format; every other line is one record with its earlier versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from commonplace.engine.transfer import History, histories, parse_json
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Store
from commonplace.model.records import Record
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import slug
from commonplace.wire import decode, decode_known, encode

FORMAT = "commonplace-records"
FORMAT_VERSION = 1
_LATER = frozenset({"approved_at"})
MAX_COUNT = 2**53  # what every reader of JSON takes for the same number


def export_lines(store: Store, scopes: frozenset[Scope], *, now: datetime) -> Iterator[str]:
    """Yield the lines of an export of some scopes."""
    yield json.dumps({"format": FORMAT, "version": FORMAT_VERSION, "scopes": sorted(map(str, scopes))})
    for *earlier, present in histories(store, scopes, now=now):
        versions = {"versions": [_fields(version) for version in earlier[::-1]]} if earlier else {}
        yield json.dumps(_fields(present) | versions, ensure_ascii=False, sort_keys=True)


def _fields(record: Record) -> dict[str, Any]:
    """Return a version as JSON; fields that the first exports did not have are left out where they are null."""
    encoded: dict[str, Any] = encode(record)
    return {name: value for name, value in encoded.items() if value is not None or name not in _LATER}


def read_export(lines: Iterable[str], name: str) -> Iterator[History]:
    """Yield the records of an export; raise ``InvalidInput`` naming the file and the line."""
    numbered = ((f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip())
    place, header = next(numbered, (name, "null"))
    _check_header(parse_json(header.removeprefix("\ufeff"), place), name)
    for place, line in numbered:
        data = parse_json(line, place)
        try:
            yield History(place=place, versions=_versions(data))
        except InvalidInput as error:
            raise InvalidInput(f"{place}: not a record: {error}") from error


def _check_header(header: Any, name: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InvalidInput(f"{name} is not an export of Commonplace: its first line does not say {FORMAT!r}")
    if (version := header.get("version")) != FORMAT_VERSION:
        raise InvalidInput(f"{name} has version {version!r} of the format; this can read {FORMAT_VERSION}")


def _versions(data: Any) -> tuple[Record, ...]:
    present = _record(data)
    earlier = [_record(version) for version in decode(list[Any], data.get("versions", []), name="versions")]
    if any(version.id != present.id or version.scope != present.scope for version in earlier):
        raise InvalidInput("an earlier version belongs to another record")
    versions = sorted([*earlier, present], key=lambda version: version.version)
    if versions[-1] is not present or len({version.version for version in versions}) < len(versions):
        raise InvalidInput("its versions are not numbered one after the other, the present one last")
    return tuple(versions)


def _record(data: Any) -> Record:
    """Return the record of a line; fields that this version does not know are passed over."""
    record = decode_known(Record, data)
    if slug(record.category) != record.category:
        raise InvalidInput(f"{record.category!r} is not a category")
    for number, least in ((record.version, 1), (record.usage.recalls, 0)):
        if not least <= number < MAX_COUNT:
            raise InvalidInput(f"{number!r} is not a number from {least} on")
    return record
