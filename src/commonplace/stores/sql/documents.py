"""Documents with their chunks, and mirrored files, inside a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.model.changes import (
    AppendChunks,
    DeleteChunks,
    DropFiles,
    Outcome,
    PutDocument,
    PutFiles,
    TrimDocuments,
)
from commonplace.model.documents import Chunk, Document
from commonplace.model.errors import ADVICE, Conflict, NotFound
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Source
from commonplace.stores.rows import (
    FILE,
    from_json,
    insert_sql,
    is_sound,
    micros,
    moment,
    scope_at,
    to_json,
    values_hash,
)
from commonplace.stores.scoring import CHUNK
from commonplace.stores.sql import vectors
from commonplace.stores.sql.filters import documents_sql, rows_limit, scope_row
from commonplace.stores.sql.search import KINDS, SELECT_CHUNK, TRUSTS, chunk_at, sound_chunks

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

#: The columns of a document but for its identity: scope, kind, name.
DOCUMENT = ("digest", "content", "metadata", "channel", "ref", "parents", "trust", "created_at", "updated_at", "hash")

_HELD = "select row, digest, created_at from document where scope = ? and kind = ? and name = ?"


# Reading


def list_documents(db: Db, where: DocumentFilter, *, limit: int) -> list[Document]:
    """Return the documents meant, newest first."""
    condition, values = documents_sql(db, where)
    sql = (
        f"select s.path, d.kind, d.name, {', '.join(f'd.{field}' for field in DOCUMENT)} from document d"
        f" join scope s on s.id = d.scope where {condition} order by d.updated_at desc, d.name limit ?"
    )
    return [_document(row) for row in _sound(db, db.every(sql, [*values, rows_limit(limit)]))]


def _sound(db: Db, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the documents that are what was written, and name the others."""
    for row in rows:
        if is_sound(row[:-1], row[-1]):
            yield row
        else:
            db.damaged.append(f"{row[1]} {row[2]!r} is damaged, so it is left out{ADVICE}")


def chunks(db: Db, where: DocumentFilter, *, limit: int, after: int) -> list[Chunk]:
    """Return the chunks of the documents meant, in order."""
    condition, values = documents_sql(db, where)
    sql = f"{SELECT_CHUNK} where {condition} and c.seq > ? order by s.path, d.kind, d.name, c.seq limit ?"
    return [chunk_at(row) for row in sound_chunks(db, db.every(sql, [*values, after, rows_limit(limit)]))]


def _document(row: Sequence[Any]) -> Document:
    path, kind, name, digest, content, metadata, channel, ref, parents, trust, created, updated, _ = row
    source = Source(channel=Channel(channel), ref=ref, parents=tuple(from_json(parents)))
    return Document(
        scope=scope_at(path), kind=KINDS[kind], name=name, digest=digest, content=content,
        metadata=from_json(metadata), source=source, trust=TRUSTS[trust], created_at=moment(created),
        updated_at=moment(updated),
    )  # fmt: skip


# Writing


def put(db: Db, change: PutDocument) -> Outcome:
    """Save a document in place of the one of the same name."""
    document = change.document
    scope = scope_row(db, document.scope)
    identity = [scope, document.kind.value, document.name]
    held = db.first(f"{_HELD}{db.for_update}", identity)
    if held and held[1] == document.digest:
        return Outcome(deduped=True)
    if held:
        db.run("delete from document where row = ?", [held[0]])
    source = document.source
    row = [
        *identity, document.digest, document.content, to_json(dict(document.metadata)), source.channel.value,
        source.ref, to_json(source.parents), int(document.trust), held[2] if held else micros(document.created_at),
        micros(document.updated_at),
    ]  # fmt: skip
    row.append(values_hash([str(document.scope), *row[1:]]))
    [(number,)] = db.every(f"{insert_sql('document', ('scope', 'kind', 'name', *DOCUMENT))} returning row", row)
    _put_chunks(db, change, document=number, scope=scope)
    return Outcome()


def append(db: Db, change: AppendChunks) -> Outcome:
    """Add chunks to a document, if it is still what it was when it was read."""
    row, scope = _replace(db, change)
    _put_chunks(db, change, document=row, scope=scope)
    return Outcome()


def _replace(db: Db, change: AppendChunks | DeleteChunks) -> tuple[int, int]:
    """Give a document its new state, if it is still what it was when it was read; return its row and its scope's."""
    document = change.document
    scope = scope_row(db, document.scope)
    held = db.first(f"{_HELD}{db.for_update}", [scope, document.kind.value, document.name])
    if held is None:
        raise NotFound(f"there is no {document.kind} {document.name!r} that could grow")
    values = [document.digest, document.content, to_json(dict(document.metadata)), micros(document.updated_at)]
    sql = "update document set digest = ?, content = ?, metadata = ?, updated_at = ? where row = ? and digest = ?"
    if not db.run(sql, [*values, held[0], change.expect_digest]):
        raise Conflict(f"the {document.kind} {document.name!r} was changed meanwhile")
    rehash_document(db, held[0])
    return int(held[0]), scope


def rehash_document(db: Db, number: int) -> None:
    """Give a document the hash of what it is now."""
    fields = ", ".join(f"d.{field}" for field in DOCUMENT[:-1])
    sql = f"select s.path, d.kind, d.name, {fields} from document d join scope s on s.id = d.scope where d.row = ?"
    [row] = db.every(sql, [number])
    db.run("update document set hash = ? where row = ?", [values_hash(row), number])


def _put_chunks(db: Db, change: PutDocument | AppendChunks, *, document: int, scope: int) -> None:
    for chunk, terms in zip(change.chunks, change.terms, strict=True):
        values = [chunk.seq, chunk.ref, chunk.text, chunk.speaker, micros(chunk.occurred_at), int(chunk.trust)]
        number = db.insert_chunk([document, scope, *values, values_hash(values)], terms, scope=scope)
        if chunk.seq in change.vectors:
            vectors.put(db, number * 4 + CHUNK, change.vectors[chunk.seq])


def delete(db: Db, where: DocumentFilter) -> Outcome:
    """Erase documents with their chunks."""
    condition, values = documents_sql(db, where)
    return _drop(db, db.every(f"select d.row, d.name from document d where {condition} order by d.name", values))


def delete_chunks(db: Db, change: DeleteChunks) -> Outcome:
    """Erase some chunks of a document, if it is still what it was when it was read."""
    row, _ = _replace(db, change)
    condition, values = db.among("seq", change.seqs)
    refs = db.every(f"select ref from chunk where document = ? and {condition} order by seq", [row, *values])
    db.run(f"delete from chunk where document = ? and {condition}", [row, *values])
    return Outcome(gone=tuple(ref for (ref,) in refs))


def trim(db: Db, change: TrimDocuments) -> Outcome:
    """Erase all but the newest."""
    condition, values = documents_sql(db, change.where)
    newest = "order by d.updated_at desc, d.name limit ? offset ?"
    sql = f"select d.row, d.name from document d where {condition} {newest}"
    return _drop(db, db.every(sql, [*values, rows_limit(-1), change.keep]))


def _drop(db: Db, rows: Sequence[tuple[Any, ...]]) -> Outcome:
    condition, values = db.among("row", [row for row, _ in rows])
    db.run(f"delete from document where {condition}", values)
    return Outcome(gone=tuple(name for _, name in rows))


def put_files(db: Db, change: PutFiles) -> Outcome:
    """Note what a mirrored folder holds."""
    rows = [(change.folder, f.path, f.record, f.version, f.digest, f.stamp) for f in change.files]
    replaced = ", ".join(f"{column} = excluded.{column}" for column in FILE)
    sql = f"{insert_sql('file', ('folder', 'path', *FILE))} on conflict (folder, path{db.own}) do update set {replaced}"
    db.run_each(sql, sorted(rows))  # in one order: no two writers wait in a circle
    return Outcome()


def drop_files(db: Db, change: DropFiles) -> Outcome:
    """Forget what a mirrored folder held."""
    condition, values = db.among("path", change.paths)
    db.run(f"delete from file where folder = ? and {condition}", [change.folder, *values])
    return Outcome()
