"""Rewrite the texts of items (``model.items``): every text that a caller gave, and nothing that a machine made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.items import Item, TextCleaner
from commonplace.stores.rows import (
    CHUNK_FIELDS,
    FIELDS,
    SHARED_COLUMNS,
    from_json,
    row_hash,
    sha256_of,
    to_json,
    values_hash,
)
from commonplace.stores.sql.documents import DOCUMENT
from commonplace.stores.sql.items import EVENT, JOB, indexed_term

_JSON = frozenset({"value", "tags", "metadata", "detail"})  # columns that hold JSON
_RECORD = ("category", "content", "key", "value", "tags", "metadata", "ref")
_DOCUMENT = ("content", "metadata", "ref")
_CHUNK = ("ref", "text", "speaker")
_JOB = ("error", "input")
_EVENT = ("key", "tags", "detail")


def rewrite_item(item: Item, cleaner: TextCleaner) -> Item | None:
    """Return an item with its texts as the cleaner leaves them; None if it leaves them as they are."""
    match item.sort:
        case "record":
            used, versions = item.data
            data: tuple[Any, ...] = (used, tuple(_version(one, cleaner) for one in versions))
            after = item.replace(data=data)
        case "document":
            after = _document(item, cleaner)
        case "job":
            path, kind, key = item.key
            job = _columns(JOB, item.data, _JOB, cleaner)
            after = item.replace(key=(path, kind, cleaner.clean("the key of a job", key)), data=job)
        case "event":
            after = item.replace(data=_columns(EVENT, item.data, _EVENT, cleaner))
        case "scope":
            cleaner.refuse("the name of a scope", item.key[0])
            return None
        case _:
            return None
    return None if after == item else after


def _columns(
    names: Sequence[str], row: Sequence[Any], which: Sequence[str], cleaner: TextCleaner, *, under: str = ""
) -> tuple[Any, ...]:
    """Return a row with some of its columns cleaned."""
    cleaned = list(row)
    for name in which:
        at = names.index(name)
        if isinstance(row[at], str):
            cleaned[at] = _column(name, row[at], cleaner, under=under if name in {"content", "value"} else "")
    return tuple(cleaned)


def _column(name: str, text: str, cleaner: TextCleaner, *, under: str) -> str:
    if name not in _JSON:
        return str(cleaner.clean(name, text, under=under))
    value = from_json(text)
    after = cleaner.clean(name, value, under=under)
    if after == value:
        return text
    return to_json(sorted(set(map(str, after))) if name == "tags" and isinstance(after, list) else after)


def _version(row: Sequence[Any], cleaner: TextCleaner) -> tuple[Any, ...]:
    """Return one version of a record; what changed gets new hashes and terms, and no vector of the old words."""
    *columns, terms, vector, coming = row
    number = columns[FIELDS.index("version")]
    with cleaner.at(f"record {columns[0][:10]}, version {number}"):
        after = list(_columns(SHARED_COLUMNS, columns, _RECORD, cleaner, under=columns[FIELDS.index("key")] or ""))
    if after == columns:
        return tuple(row)
    known = dict(zip(SHARED_COLUMNS, after, strict=True))
    value = None if known["value"] is None else from_json(known["value"])
    after[SHARED_COLUMNS.index("digest")] = sha256_of(to_json([known["content"], known["key"], value]))
    after[SHARED_COLUMNS.index("hash")] = row_hash(after[: len(FIELDS)])
    words = _index(cleaner, [known["content"], *_names(from_json(known["metadata"])), known["key"] or ""])
    same = known["content"] == columns[FIELDS.index("content")]
    return (*after, words if terms else terms, vector if same else None, coming if same else None)


def _names(metadata: Mapping[str, Any]) -> list[str]:
    lists = [metadata.get(name) for name in ("aliases", "keywords")]
    return [str(word) for words in lists if isinstance(words, list) for word in words]


def _index(cleaner: TextCleaner, texts: Sequence[str]) -> str:
    return " ".join(map(indexed_term, cleaner.terms("\n".join(texts))))


def _document(item: Item, cleaner: TextCleaner) -> Item:
    path, kind, name = item.key
    document, chunks = item.data
    cleaned = str(cleaner.clean(f"the name of a {kind}", name))
    with cleaner.at(f"{kind} {cleaned}"):
        after = _columns(DOCUMENT, document, _DOCUMENT, cleaner)
        if (after, cleaned) != (tuple(document), name):
            after = (*after[:-1], values_hash([path, kind, cleaned, *after[:-1]]))
        parts = tuple(_chunk(chunk, cleaner) for chunk in chunks)
    return item.replace(key=(path, kind, cleaned), data=(after, parts))


def _chunk(row: Sequence[Any], cleaner: TextCleaner) -> tuple[Any, ...]:
    *columns, terms, vector, coming = row
    after = _columns(CHUNK_FIELDS, columns, _CHUNK, cleaner)
    if after == tuple(columns):
        return tuple(row)
    after = (*after[:-1], values_hash(after[:-1]))
    text = after[CHUNK_FIELDS.index("text")]
    same = text == columns[CHUNK_FIELDS.index("text")]
    return (*after, _index(cleaner, [text]) if terms else terms, *((vector, coming) if same else (None, None)))
