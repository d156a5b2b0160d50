"""The format of ``commonplace export``: JSON Lines, every record whole: its versions, dates, source and use.

The first line names the format; every other line is one record with its earlier versions.  The last line is the seal of
all others, made with a key of this machine: an export with our seal says what this machine once knew, so its records
come back as they were.  Everything else is a text from outside, whatever trust it claims.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import Any

from commonplace.engine.transfer import SPOOL_BYTES, History, histories, parse_json
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Store
from commonplace.model.records import Channel, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.cleaning import slug
from commonplace.wire import decode, decode_known, encode

FORMAT = "commonplace-records"
FORMAT_VERSION = 2
_LATER = frozenset({"approved_at"})
READABLE = (1, 2)  # version 1 had no seal
SEAL = "seal"
PURPOSE = b"commonplace export"  # the same key seals other things, which must not pass for this one
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


def sealed_lines(lines: Iterable[str], secret: bytes) -> Iterator[str]:
    """Yield the lines of an export and, as the last one, their seal."""
    seal = _new_seal(secret)
    for line in lines:
        seal.update(f"{line}\n".encode())
        yield line
    yield json.dumps({SEAL: seal.hexdigest()})


class Export(Value):
    """An export that is being read."""

    is_ours: bool  #: it has the seal of this machine, and nothing in it was changed
    items: Iterator[History]

    def external_items(self) -> Iterator[History]:
        """Yield its records without what they claim: from outside, and not pinned."""
        return map(_as_external, self.items)


@contextmanager
def open_export(lines: Iterable[str], name: str, *, secret: bytes) -> Iterator[Export]:
    """Read an export to its end, to check its seal, and yield its records."""
    with SpooledTemporaryFile(max_size=SPOOL_BYTES, mode="w+", encoding="utf-8", newline="") as spool:
        seal, last = _new_seal(secret), ""
        for number, line in enumerate(lines):
            spool.write(last)
            seal.update(last.encode())
            last = line if number else line.removeprefix("\ufeff")  # what an editor of Windows puts there
        given = _seal_in(last)
        if given is None:
            spool.write(last)
        spool.seek(0)
        is_ours = given is not None and hmac.compare_digest(given.encode(), seal.hexdigest().encode())
        yield Export(is_ours=is_ours, items=read_export(spool, name))


def _new_seal(secret: bytes) -> hmac.HMAC:
    return hmac.new(hmac.digest(secret, PURPOSE, sha256), digestmod=sha256)


def _seal_in(line: str) -> str | None:
    """Return the seal that a line holds; None: it holds something else."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    seal = data.get(SEAL) if isinstance(data, dict) and len(data) == 1 else None
    return seal if isinstance(seal, str) else None


def _as_external(history: History) -> History:
    return history.replace(versions=tuple(map(_external_version, history.versions)))


def _external_version(record: Record) -> Record:
    source = Source(channel=Channel.IMPORT, ref=record.source.ref, parents=record.source.parents)
    return record.replace(source=source, trust=Trust.EXTERNAL, pinned=False, approved_at=None)


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
    if (version := header.get("version")) not in READABLE:
        raise InvalidInput(f"{name} has version {version!r} of the format; this can read {FORMAT_VERSION} and older")


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
