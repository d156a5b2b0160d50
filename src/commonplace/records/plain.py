"""Plain data as a source of records: JSON Lines, JSON arrays, CSV with a header, a folder of Markdown notes.

A row has its words under ``text`` (or another usual name); other known columns say what they are, unknown ones become
metadata.  A row that cannot be read is named by its line and passed over, so that one bad row costs one row.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import Any

from commonplace.engine.arguments import to_moment
from commonplace.engine.transfer import Arrival, Incoming, Unreadable, parse_json
from commonplace.files.user_files import read_text
from commonplace.model.binding import CONTENT_BYTES
from commonplace.model.errors import InvalidInput
from commonplace.model.records import CATEGORIES, Draft, Json
from commonplace.records.foreign import FRONTMATTER, find_files, guess_category, guidance, label_category
from commonplace.text.cleaning import one_line

EXPORT, JSONL, ARRAY, TABLE, NOTES = "export", "jsonl", "json", "csv", "notes"
TEXTS = ("text", "content", "memory", "note", "body", "fact")  # the first that a row has holds its words
CREATED = ("created_at", "created", "date", "timestamp")
TITLES = ("title", "name")  # of a note: another name by which it is found
KNOWN = frozenset({"category", "tags", "tag", "key", "occurred_at", "expires_at", "aliases", "keywords", "metadata"})
SHORT_DIGEST = 16
DELIMITERS = {".tsv": "\t"}


def detect_format(file: str, lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """Return what a file is, and all its lines; raises ``InvalidInput`` for what none of ours reads."""
    read: list[str] = []
    for line in lines:
        read.append(line)
        if line.strip("\ufeff \t\r\n"):
            break
    first, every = (read[-1] if read else "").strip("\ufeff \t\r\n"), chain(read, lines)
    if os.path.splitext(file)[1].lower() in (".csv", ".tsv"):
        return TABLE, every
    if first.startswith("["):
        return ARRAY, every
    if first.startswith("{"):
        return (EXPORT if _is_export(first) else JSONL), every
    if _columns(first, ","):
        return TABLE, every
    kinds = "an export of Commonplace, JSON Lines, a JSON array, CSV with a header, or a folder of Markdown notes"
    raise InvalidInput(
        f"{file}:1: not JSON: {file} is not an export of Commonplace, nor plain data; import reads {kinds}"
    )


def _is_export(line: str) -> bool:
    """Whether a first line says that it is an export, of whatever version; a row of plain data has words."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return not any(f'"{name}"' in line for name in TEXTS)
    return isinstance(data, dict) and ("format" in data or "seal" in data) and not any(name in data for name in TEXTS)


def read_plain(form: str, file: str, lines: Iterator[str], *, category: str | None = None) -> Iterator[Incoming]:
    """Yield the records of plain data; what cannot be read is yielded with its line and the reason."""
    name = "stdin" if file == "-" else os.path.basename(file)
    rows = {JSONL: _json_lines, ARRAY: _json_array, TABLE: _table}[form](name, lines)
    for place, row in rows:
        if isinstance(row, str):
            yield Unreadable(place=place, reason=row)
            continue
        try:
            yield _to_arrival(name, place, row, category)
        except InvalidInput as error:
            yield Unreadable(place=place, reason=str(error))


Row = tuple[str, Mapping[str, Any] | str]  # its place, and what it holds or why it cannot be read


def _json_lines(name: str, lines: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if text := line.strip("\ufeff \t\r\n"):
            yield f"{name}:{number}", _to_row(text)


def _to_row(text: str) -> Mapping[str, Any] | str:
    try:
        data = parse_json(text, "")
    except InvalidInput as error:
        return str(error).removeprefix(": ")
    return data if isinstance(data, dict) else {"text": data} if isinstance(data, str) else "it is no object"


def _json_array(name: str, lines: Iterable[str]) -> Iterator[Row]:
    """Yield the items of an array, each by the line where it begins; after one that is broken nothing can be read."""
    text = "".join(lines).lstrip("\ufeff")
    at, line, decoder = text.find("[") + 1, 1, json.JSONDecoder()
    counted = 0
    while (at := _skip(text, at)) < len(text) and text[at] != "]":
        line += text.count("\n", counted, at)
        counted = at
        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            yield f"{name}:{line}", f"not JSON: {error}"
            return
        yield f"{name}:{line}", item if isinstance(item, dict) else {"text": item}
    if at >= len(text):
        yield f"{name}:{line}", "not JSON: the array has no end"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _table(name: str, lines: Iterator[str]) -> Iterator[Row]:
    """Yield the rows of a table by their header; raises ``InvalidInput`` if no column holds the words."""
    first = next(lines, "").lstrip("\ufeff")
    commonest = ";" if first.count(";") > first.count(",") else ","
    delimiter = DELIMITERS.get(os.path.splitext(name)[1].lower(), commonest)
    if not _columns(first, delimiter):
        raise InvalidInput(f"{name}:1: no column is called {' or '.join(TEXTS)}; name the one that holds the words")
    header = [column.strip().lower() for column in next(csv.reader([first], delimiter=delimiter))]
    reader, before = csv.reader(lines, delimiter=delimiter), 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield f"{name}:{before + 1}", f"not CSV: {error}"
            return
        place, before = f"{name}:{before + 1}", reader.line_num + 1
        if cells is None:
            return
        if not cells:
            continue
        if len(cells) > len(header):
            yield place, f"it has {len(cells)} cells, and the header {len(header)}"
            continue
        yield place, {column: cell for column, cell in zip(header, cells, strict=False) if cell.strip()}


def _columns(line: str, delimiter: str) -> bool:
    """Whether a line is a header with a column of words."""
    names = next(csv.reader([line], delimiter=delimiter), [])
    return bool({name.strip().lower() for name in names} & {*TEXTS})


def _to_arrival(name: str, place: str, row: Mapping[str, Any], category: str | None) -> Arrival:
    """Return the record that a row describes."""
    fields = {str(column): value for column, value in row.items() if value is not None and value != ""}
    column = next((one for one in TEXTS if one in fields), None)
    if column is None:
        raise InvalidInput(f"it has no words under {' or '.join(TEXTS)}")
    content = fields.pop(column)
    if not isinstance(content, str):
        raise InvalidInput(f"{column!r} must be text, not {type(content).__name__}")
    created = next((fields.pop(one) for one in CREATED if one in fields), None)
    tags = [*_words(fields, "tags"), *_words(fields, "tag")]
    draft = Draft(
        content=content, category=_category(fields.get("category"), content, category), tags=frozenset(tags),
        key=_optional_text(fields, "key"), occurred_at=to_moment(fields.get("occurred_at"), "occurred_at"),
        expires_at=to_moment(fields.get("expires_at"), "expires_at"), metadata=_metadata(fields),
        ref=f"{name}#{_digest(content)}",
    )  # fmt: skip
    return Arrival(place=place, draft=draft, created_at=_moment(created))


def _metadata(fields: Mapping[str, Any]) -> dict[str, Json]:
    """Return the metadata of a row: what it calls so, its other names, and every column that we do not know."""
    given = fields.get("metadata", {})
    if not isinstance(given, dict):
        raise InvalidInput("'metadata' must be an object")
    named = {name: _words(fields, name) for name in ("aliases", "keywords") if name in fields}
    label = fields.get("category")
    own = {"category": label} if isinstance(label, str) and label not in CATEGORIES else {}
    return {name: value for name, value in fields.items() if name not in KNOWN} | own | given | named


def _words(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return the words in a field: a list, or a text with commas between them."""
    value = fields.get(name, [])
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidInput(f"{name!r} must be a list of texts, or one text with commas")
    return [word.strip() for word in words if word.strip()]


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else str(value)


def _category(label: Any, content: str, asked: str | None) -> str:
    """Return the category of a row: the one asked for, its own, or what its label or its words mean."""
    if asked:
        return asked
    if label is None:
        return guess_category(content)
    if not isinstance(label, str):
        raise InvalidInput("'category' must be text")
    return label if label in CATEGORIES else label_category(label) or guess_category(content)


def _moment(value: Any) -> datetime | None:
    moment = to_moment(value, "the date")
    if moment is not None and moment.tzinfo is None:
        raise InvalidInput(f"the date {value!r} has no time zone")
    return moment


def _digest(content: str) -> str:
    return sha256(content.encode(errors="surrogatepass")).hexdigest()[:SHORT_DIGEST]


# Notes


def read_notes(folder: str, *, category: str | None = None) -> Iterator[Incoming]:
    """Yield the Markdown notes below a folder: each is a record, a long one a record per paragraph."""
    for file in find_files(NOTES, folder):
        name = os.path.relpath(file, folder)
        try:
            yield from _note(name, read_text(file), category)
        except InvalidInput as error:
            yield Unreadable(place=name, reason=str(error).removeprefix(f"{name}: "))


def _note(name: str, text: str, category: str | None) -> Iterator[Incoming]:
    head, body = _split_note(text, name)
    if not body.strip():
        yield Unreadable(place=name, reason="it has no text")
        return
    title = next((head.pop(one) for one in TITLES if isinstance(head.get(one), str)), os.path.basename(name)[:-3])
    aliases = list(dict.fromkeys([one_line(str(title)), *_words(head, "aliases")]))
    arrival = _to_arrival(name, name, {**head, "text": body.strip(), "aliases": aliases}, category)
    if len(body.encode()) <= CONTENT_BYTES:
        yield arrival
        return
    for piece in guidance(name, body, default=None):
        metadata = {**arrival.draft.metadata, **piece.draft.metadata}
        draft = piece.draft.replace(tags=arrival.draft.tags, metadata=metadata)
        yield piece.replace(draft=draft.replace(category=category or draft.category), created_at=arrival.created_at)


def _split_note(text: str, name: str) -> tuple[dict[str, Any], str]:
    """Return the frontmatter of a note, and the rest."""
    plain = text.replace("\r\n", "\n")
    found = FRONTMATTER.match(plain)
    if found is None:
        return {}, plain
    from commonplace.text.strict_yaml import load  # noqa: PLC0415 - only notes with frontmatter need it

    head = load(found[0].strip().strip("-"), file=name, first_line=1)
    fields = {str(key): value for key, value in head.items()} if isinstance(head, dict) else {}
    return {key: value if _is_json(value) else str(value) for key, value in fields.items()}, plain[found.end() :]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
