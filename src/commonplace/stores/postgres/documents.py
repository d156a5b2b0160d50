"""Documents with their chunks, and mirrored files, inside a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.changes import (
    AppendChunks,
    DropFiles,
    Outcome,
    PutDocument,
    PutFiles,
    Terms,
    TrimDocuments,
)
from commonplace.model.documents import Chunk, Document
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.queries import DocumentFilter, Vector
from commonplace.stores.postgres import entries, vectors
from commonplace.stores.postgres.connection import Db, every, first, run, run_each
from commonplace.stores.postgres.filters import documents_sql, most
from commonplace.stores.postgres.scopes import scope_row
from commonplace.stores.rows import marks, micros, packed
from commonplace.stores.scoring import CHUNK, chunk_at, document_at

_HELD = "select row, digest, created_at from document where scope = ? and kind = ? and name = ? for update"


def listed(db: Db, where: DocumentFilter, *, limit: int) -> list[Document]:
    """The documents meant, newest first."""
    condition, values = documents_sql(where)
    names = "d.digest, d.content, d.metadata, d.channel, d.ref, d.parents, d.trust, d.created_at, d.updated_at"
    sql = (
        f"select s.path, d.kind, d.name, {names} from document d join scope s on s.id = d.scope where {condition}"
        " order by d.updated_at desc, d.name limit ?"
    )
    return [document_at(row) for row in every(db, sql, [*values, most(limit)])]


def chunks(db: Db, where: DocumentFilter, *, limit: int, after: int) -> list[Chunk]:
    """The chunks of the documents meant."""
    condition, values = documents_sql(where)
    sql = f"{CHUNK} where {condition} and c.seq > ? order by s.path, d.kind, d.name, c.seq limit ?"
    return [chunk_at(row) for row in every(db, sql, [*values, after, most(limit)])]


def put(db: Db, change: PutDocument) -> Outcome:
    """Keep a document in place of the one of the same name."""
    document = change.document
    scope = scope_row(db, document.scope)
    identity = (scope, document.kind.value, document.name)
    held = first(db, _HELD, identity)
    if held and held[1] == document.digest:
        return Outcome(deduped=True)
    if held:
        run(db, "delete from document where row = ?", [held[0]])
    source = document.source
    said = (document.digest, document.content, packed(dict(document.metadata)))
    origin = (source.channel.value, source.ref, packed(source.parents), int(document.trust))
    times = (held[2] if held else micros(document.created_at), micros(document.updated_at))
    names = "scope, kind, name, digest, content, metadata, channel, ref, parents, trust, created_at, updated_at"
    sql = f"insert into document ({names}) values ({marks(range(12))}) returning row"
    [(row,)] = every(db, sql, (*identity, *said, *origin, *times))
    _put_chunks(db, change.chunks, change.terms, change.vectors, document=row, scope=scope)
    return Outcome()


def append(db: Db, change: AppendChunks) -> Outcome:
    """Add chunks to a document, if it is still what it was when it was read."""
    document = change.document
    scope = scope_row(db, document.scope)
    held = first(db, _HELD, (scope, document.kind.value, document.name))
    if held is None:
        raise NotFound(f"there is no {document.kind} {document.name!r} that could grow")
    said = (document.digest, document.content, packed(dict(document.metadata)), micros(document.updated_at))
    sql = "update document set digest = ?, content = ?, metadata = ?, updated_at = ? where row = ? and digest = ?"
    if not run(db, sql, (*said, held[0], change.expect_digest)):
        raise Conflict(f"the {document.kind} {document.name!r} was changed meanwhile")
    _put_chunks(db, change.chunks, change.terms, change.vectors, document=held[0], scope=scope)
    return Outcome()


def _put_chunks(
    db: Db,
    chunks: Sequence[Chunk],
    terms: Sequence[Terms],
    given: Mapping[int, Vector],
    *,
    document: int,
    scope: int,
) -> None:
    names = "document, scope, seq, ref, text, speaker, occurred_at, trust"
    sql = f"insert into chunk ({names}) values ({marks(range(8))}) returning row"
    for chunk, words in zip(chunks, terms, strict=True):
        said = (chunk.seq, chunk.ref, chunk.text, chunk.speaker, micros(chunk.occurred_at), int(chunk.trust))
        [(row,)] = every(db, sql, (document, scope, *said))
        entries.put_chunk(db, row, words, scope=scope)
        if chunk.seq in given:
            vectors.put(db, row * 4 + entries.CHUNK, given[chunk.seq])


def delete(db: Db, where: DocumentFilter) -> Outcome:
    """Erase documents with their chunks."""
    condition, values = documents_sql(where)
    return _dropped(db, every(db, f"select d.row, d.name from document d where {condition} order by d.name", values))


def trim(db: Db, change: TrimDocuments) -> Outcome:
    """Erase all but the newest."""
    condition, values = documents_sql(change.where)
    newest = "order by d.updated_at desc, d.name offset ?"
    return _dropped(
        db, every(db, f"select d.row, d.name from document d where {condition} {newest}", [*values, change.keep])
    )


def _dropped(db: Db, rows: Sequence[tuple[Any, ...]]) -> Outcome:
    run(db, "delete from document where row = any(?::bigint[])", [[row for row, _ in rows]])
    return Outcome(gone=tuple(name for _, name in rows))


def put_files(db: Db, change: PutFiles) -> Outcome:
    """Note what a mirrored folder holds."""
    rows = [(change.folder, f.path, f.record, f.version, f.digest, f.stamp) for f in change.files]
    sql = (
        "insert into file values (?, ?, ?, ?, ?, ?) on conflict (folder, path, tenant)"
        " do update set record = excluded.record, version = excluded.version, digest = excluded.digest,"
        " stamp = excluded.stamp"
    )
    run_each(db, sql, sorted(rows, key=lambda row: row[1]))  # in one order: nobody waits in a circle
    return Outcome()


def drop_files(db: Db, change: DropFiles) -> Outcome:
    """Forget what it held."""
    sql = "delete from file where folder = ? and path = any(?::text[])"
    run(db, sql, [change.folder, sorted(change.paths)])
    return Outcome()
