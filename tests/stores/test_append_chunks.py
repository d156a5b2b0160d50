"""``AppendChunks``: a document that grows."""

import pytest

from commonplace.model.changes import AppendChunks, PutDocument
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.queries import DocumentFilter


@pytest.fixture
def grow(store, make):
    """Keep a document with one chunk, and let it grow by another."""

    def grow(*, expect="d1", put=True):
        document = make.document("0b1c", metadata={"offset": 1})
        if put:
            store.apply([PutDocument(document=document, **make.chunks(document, "first words"))])
        after = document.replace(digest="d2", metadata={"offset": 2}, updated_at=make.clock.forward())
        added = make.chunks(after, "first words", "more words")
        store.apply(
            [AppendChunks(document=after, chunks=added["chunks"][1:], terms=added["terms"][1:], expect_digest=expect)]
        )
        return document, after

    return grow


def where(make):
    """Ada's documents."""
    return DocumentFilter(scopes=frozenset({make.scope}))


def test_a_document_grows_by_its_new_chunks(store, make, grow, query):
    """What was there stays and is found, what is new follows it and is found."""
    before, after = grow()

    assert [chunk.text for chunk in store.chunks(where(make), limit=9)] == ["first words", "more words"]
    assert store.documents(where(make), limit=9) == [after.replace(created_at=before.created_at)]
    found = store.match(make.where(chunks=True), query("words"), limit=9)
    assert {match.id for match in found} == {"session:0b1c#0", "session:0b1c#1"}


def test_a_document_that_was_changed_meanwhile_does_not_grow(store, make, grow):
    """Two who read the same file do not add the same chunk twice."""
    with pytest.raises(Conflict, match="was changed meanwhile"):
        grow(expect="d0")
    assert [chunk.text for chunk in store.chunks(where(make), limit=9)] == ["first words"]


def test_a_document_that_is_not_there_cannot_grow(grow):
    """It is named."""
    with pytest.raises(NotFound, match="there is no session '0b1c'"):
        grow(put=False)
