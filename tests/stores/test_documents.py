"""``Store.documents``, ``PutDocument``, ``DeleteDocuments`` and ``TrimDocuments``."""

import pytest

from commonplace.model.changes import DeleteDocuments, Outcome, PutDocument, TrimDocuments
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import DocumentFilter, Order
from commonplace.model.records import Channel, Source, Trust
from commonplace.model.scopes import Scope

BOB = Scope.parse("user:bob")


def where(make, *scopes, **fields):
    """A filter for documents: Ada's unless others are given."""
    return DocumentFilter(scopes=frozenset(scopes or {make.scope}), **fields)


def names(store, where):
    """The names of the documents meant."""
    return [document.name for document in store.documents(where, limit=99)]


@pytest.fixture
def file(store, make):
    """Keep a document with chunks of these texts."""

    def file(document, *texts):
        [outcome] = store.apply([PutDocument(document=document, **make.chunks(document, *texts))])
        return outcome

    return file


def test_a_document_comes_back_as_it_was_put(store, make, file):
    """Every field of a document survives the way into the store and back."""
    document = make.document(
        "skills/x/SKILL.md",
        kind=DocumentKind.ARTIFACT,
        digest="sha256:1",
        content="# x\n\0",
        metadata={"a": [1, {"b": None}]},
        source=Source(channel=Channel.CONSOLIDATION, ref="r", parents=("0" * 20, "1" * 20)),
        trust=Trust.EXTERNAL,
        updated_at=make.clock.forward(),
    )
    file(document)
    assert store.documents(where(make), limit=9) == [document]


def test_documents_are_listed_newest_first(store, make, file):
    """The latest change leads; documents of one moment go by name."""
    for name in ("b", "a"):
        file(make.document(name))
    make.clock.forward()
    file(make.document("c"))
    assert names(store, where(make)) == ["c", "a", "b"]
    assert [document.name for document in store.documents(where(make), limit=2)] == ["c", "a"]


def test_a_filter_chooses_by_scope_kind_and_name(store, make, file):
    """Every field of the filter is met by value."""
    file(make.document("a"))
    file(make.document("a", kind=DocumentKind.TICKET))
    file(make.document("a%"))
    file(make.document("a", scope=BOB))
    assert len(names(store, where(make))) == 3
    assert len(names(store, where(make, names=frozenset({"a"})))) == 2
    assert names(store, where(make, kinds=frozenset({DocumentKind.TICKET, "none"}))) == ["a"]
    assert names(store, where(make, names=frozenset({"a%"}))) == ["a%"]
    assert names(store, where(make, BOB)) == ["a"]
    assert names(store, where(make, names=frozenset())) == []


def test_a_filter_for_documents_needs_a_scope():
    """Nothing can be read everywhere."""
    with pytest.raises(InvalidInput):
        DocumentFilter(scopes=frozenset())


def test_the_same_digest_again_is_no_change(store, make, file):
    """Indexing what is unchanged does nothing, whatever else comes with it."""
    document = make.document()
    assert file(document, "sky") == Outcome()
    make.clock.forward()
    assert file(document.replace(updated_at=make.clock(), metadata={"m": 1}), "sea") == Outcome(deduped=True)
    assert store.documents(where(make), limit=9) == [document]


def test_another_digest_replaces_the_document(store, make, file, query):
    """The new text is in the old one's place; only the moment of creation stays."""
    document = make.document()
    file(document, "sky one", "sky two")
    changed = make.document(digest="d2", updated_at=make.clock.forward(), created_at=make.clock())
    file(changed, "sea")
    assert store.documents(where(make), limit=9) == [changed.replace(created_at=document.created_at)]
    assert store.match(make.where(chunks=True), query("sky"), limit=9) == []
    assert [match.chunk.text for match in store.match(make.where(chunks=True), query("sea"), limit=9)] == ["sea"]


def test_the_identity_is_scope_kind_and_name(store, make, file):
    """Documents that share a name but not their scope or kind are different ones."""
    for document in (make.document(), make.document(kind=DocumentKind.TICKET), make.document(scope=BOB)):
        assert not file(document, "text").deduped
    assert len(store.documents(where(make, make.scope, BOB), limit=9)) == 3


def test_chunks_come_back_as_they_were_put(store, make, query):
    """A chunk that is found leads back to its document and its place in it."""
    document = make.document("0b1c", trust=Trust.EXTERNAL)
    parts = make.chunks(document, "sky", "sea")
    chunks = tuple(c.replace(ref=f"turn-{c.seq}", occurred_at=make.clock.forward()) for c in parts["chunks"])
    store.apply([PutDocument(document=document, chunks=chunks, terms=parts["terms"])])
    [match] = store.match(make.where(chunks=True), query("sea"), limit=9)
    assert (match.chunk, match.id) == (chunks[1], "session:0b1c#turn-1")


def test_every_chunk_needs_its_terms(store, make):
    """A chunk without terms would be lost to search: the document is refused, whole."""
    document = make.document()
    parts = make.chunks(document, "sky", "sea")
    with pytest.raises(ValueError, match="shorter"):
        store.apply([PutDocument(document=document, chunks=parts["chunks"], terms=parts["terms"][:1])])
    assert names(store, where(make)) == []


def test_deleted_documents_are_gone_with_their_chunks(store, make, file, query):
    """What the filter means is erased, and nothing else."""
    for name in ("a", "b"):
        file(make.document(name), "sky " + name)
    file(make.document("a", scope=BOB), "sky")
    assert store.apply([DeleteDocuments(where=where(make, names=frozenset({"a", "x"})))]) == [Outcome(gone=("a",))]
    assert names(store, where(make, make.scope, BOB)) == ["a", "b"]
    assert [match.chunk.text for match in store.match(make.where(chunks=True), query("sky"), limit=9)] == ["sky b"]


def test_trimming_keeps_the_newest(store, make, file, query):
    """All but so many of the documents meant are erased, the oldest change first."""
    for name in "abcd":
        make.clock.forward()
        file(make.document(name), "sky " + name)
    file(make.document("t", kind=DocumentKind.TICKET))
    file(make.document("a", digest="d2", updated_at=make.clock.forward()), "sky a")
    sessions = where(make, kinds=frozenset({DocumentKind.SESSION}))
    [outcome] = store.apply([TrimDocuments(where=sessions, keep=2)])
    assert set(outcome.gone) == {"b", "c"}
    assert names(store, where(make)) == ["a", "d", "t"]
    assert len(store.match(make.where(chunks=True), query("sky"), limit=9)) == 2


def test_trimming_what_fits_does_nothing(store, make, file):
    """As many as may be kept are kept."""
    file(make.document())
    assert store.apply([TrimDocuments(where=where(make), keep=1)]) == [Outcome()]


def test_documents_are_not_records(store, make, file, query):
    """No list of records and no search for records shows a document or a chunk."""
    file(make.document(content="sky"), "sky")
    assert store.find(make.anything(), order=Order.ID, limit=9) == []
    assert store.match(make.anything(), query("sky"), limit=9) == []


def test_chunks_come_back_in_their_order(store, make):
    """Every field of a chunk survives; documents go by name, and reading can go on from any place."""
    for name in ("b", "a"):
        document = make.document(name)
        parts = make.chunks(document, "one", "two", "three")
        said = tuple(chunk.replace(speaker="user", occurred_at=make.clock()) for chunk in parts["chunks"])
        store.apply([PutDocument(document=document, chunks=said, terms=parts["terms"])])

    assert [(chunk.document, chunk.text) for chunk in store.chunks(where(make), limit=4)] == [
        *(("a", "one"), ("a", "two"), ("a", "three"), ("b", "one")),
    ]
    assert store.chunks(where(make, names=frozenset({"a"})), limit=9) == list(said)
    assert [chunk.text for chunk in store.chunks(where(make, names=frozenset({"b"})), limit=9, after=0)] == [
        *("two", "three"),
    ]
    assert store.chunks(where(make, BOB), limit=9) == []
