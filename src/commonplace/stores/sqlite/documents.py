"""Documents that grow, inside a transaction: what is there stays, what is new follows it."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from commonplace.model.changes import AppendChunks, Outcome, PutDocument
from commonplace.model.errors import Conflict, NotFound
from commonplace.stores.rows import micros, packed
from commonplace.stores.sqlite.connection import first, scope_row


def append(db: apsw.Connection, change: AppendChunks, *, put_chunks: Callable[..., None]) -> Outcome:
    """Add chunks to a document, if it is still what it was when it was read."""
    document = change.document
    scope = scope_row(db, document.scope)
    sql = "select row, digest from document where scope = ? and kind = ? and name = ?"
    held = first(db, sql, (scope, document.kind.value, document.name))
    if held is None:
        raise NotFound(f"there is no {document.kind} {document.name!r} that could grow")
    row, digest = held
    if digest != change.expect_digest:
        raise Conflict(f"the {document.kind} {document.name!r} was changed meanwhile")
    db.execute(
        "update document set digest = ?, content = ?, metadata = ?, updated_at = ? where row = ?",
        (document.digest, document.content, packed(dict(document.metadata)), micros(document.updated_at), row),
    )
    added = PutDocument(document=document, chunks=change.chunks, terms=change.terms, vectors=change.vectors)
    put_chunks(db, added, document=row, scope=scope)
    return Outcome()
