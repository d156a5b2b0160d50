"""Erased means gone from every byte of the folder: rows, versions, index, vectors, log, and the gaps between rows."""

import random
import string
from array import array
from contextlib import closing

import apsw
import pytest

from commonplace.model.changes import (
    AdoptEmbedder,
    Delete,
    DeleteDocuments,
    DropScope,
    PutDocument,
    Trim,
    TrimDocuments,
)
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import DocumentFilter, Order
from commonplace.model.records import Channel, Source
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance

TOKEN = "xylophonequokka"
VECTOR = tuple(0.123 + number / 1000 for number in range(16))


def left(folder, *needles):
    """In how many places the bytes of a folder still hold any of these."""
    data = [path.read_bytes() for path in folder.iterdir()]
    return sum(
        content.count(needle.encode() if isinstance(needle, str) else needle) for needle in needles for content in data
    )


def secret(make, token=TOKEN, **fields):
    """A record that says a unique word wherever a record can say something."""
    said = {"key": f"key-{token}", "tags": frozenset({f"tag-{token}"}), "metadata": {"m": token}, "value": [token]}
    return make(f"we say {token} here", source=Source(channel=Channel.USER, ref=token), **said | fields)


@pytest.fixture
def full(file_store, make):
    """A store with a secret among other records, and an earlier version that told it as well."""
    file_store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=len(VECTOR)))])
    file_store.apply([make.put(f"other text {number}") for number in range(50)])
    record = secret(make)
    file_store.apply([make.put(record, vector=VECTOR)])
    file_store.apply([make.put(record.replace(content=f"{TOKEN} again"), expect=1, vector=VECTOR[::-1])])
    return file_store


def only(make, record):
    """A filter that means this one, whatever its state."""
    return make.anything(ids=frozenset({record.id}))


def the_secret(store, make):
    """The record that tells it."""
    return next(record for record in store.find(make.where(), order=Order.ID, limit=99) if TOKEN in record.content)


def test_an_erased_record_leaves_no_byte(full, make, tmp_path):
    """After erasure no file holds the text, a term, a tag, the key or the vector, of any version."""
    needles = (TOKEN, array("f", VECTOR).tobytes(), array("f", VECTOR[::-1]).tobytes())
    assert left(tmp_path, *needles) > 5
    [outcome] = full.apply([Delete(where=only(make, the_secret(full, make)))])
    assert not outcome.erasing
    assert left(tmp_path, *needles) == 0
    assert SqliteMaintenance(full).check() == []


@pytest.mark.parametrize("chunks", [(), (f"{TOKEN} one", f"two {TOKEN}")])
def test_erased_documents_leave_no_byte(file_store, make, tmp_path, chunks):
    """Documents that are deleted or dropped with their scope are gone with their chunks."""
    meant = DocumentFilter(scopes=frozenset({make.scope}))
    for change in (DeleteDocuments(where=meant), DropScope(scope=make.scope)):
        document = make.document(f"name {TOKEN}", content=TOKEN, metadata={"m": TOKEN})
        file_store.apply([PutDocument(document=document, **make.chunks(document, *chunks))])
        assert left(tmp_path, TOKEN)
        [outcome] = file_store.apply([change])
        assert (left(tmp_path, TOKEN), outcome.erasing) == (0, False), change


def test_a_dropped_scope_leaves_no_byte(full, make, tmp_path):
    """A scope that is dropped takes all its bytes along."""
    full.apply([DropScope(scope=make.scope)])
    assert left(tmp_path, TOKEN, "other text") == 0


def test_what_made_room_is_gone_from_every_answer_and_leaves_with_the_next_erasure(full, make, tmp_path):
    """Eviction does not wait for the disk; the bytes of what was evicted are out of the file by the next scrub."""
    full.apply([PutDocument(document=make.document(f"name {TOKEN}", content=TOKEN))])
    [trimmed, documents] = full.apply(
        [
            Trim(where=make.where(), keep=0, order=Order.OLDEST),
            TrimDocuments(where=DocumentFilter(scopes=frozenset({make.scope})), keep=0),
        ]
    )
    assert (trimmed.erasing, documents.erasing) == (False, False)
    assert full.find(make.anything(), order=Order.ID, limit=9) == []
    assert full.scrub()
    assert left(tmp_path, TOKEN, "other text") == 0


def test_while_somebody_reads_an_erasure_is_pending(full, make, tmp_path):
    """With a reader open a record is gone from every answer, and the outcome says that bytes remain until a scrub."""
    with closing(apsw.Connection(full.path)) as reader:
        reader.execute("begin; select count(*) from record").fetchall()
        record = the_secret(full, make)
        [outcome] = full.apply([Delete(where=only(make, record))])
        assert (outcome.erasing, full.get(record.id), full.scrub()) == (True, None, False)
        assert left(tmp_path, TOKEN)
        assert any("erasure" in problem.what for problem in SqliteMaintenance(full).check())
        full.apply([make.put("life goes on")])
        reader.execute("commit")
    assert full.scrub()
    assert left(tmp_path, TOKEN) == 0
    assert SqliteMaintenance(full).check() == []


def test_an_erasure_outlives_the_process(full, make, tmp_path):
    """An erasure that was pending when the store was closed is known, and ended by whoever opens it next."""
    with closing(apsw.Connection(full.path)) as reader:
        reader.execute("begin; select count(*) from record").fetchall()
        full.apply([Delete(where=only(make, the_secret(full, make)))])
        full.close()
    again = SqliteStore(full.path)
    assert any("erasure" in problem.what for problem in SqliteMaintenance(again).check())
    assert again.scrub()
    assert left(tmp_path, TOKEN) == 0
    again.close()


def test_a_scrub_of_a_clean_store_changes_nothing(full, make):
    """Emptying the log and wiping the gaps loses no record."""
    before = full.find(make.anything(versions=True), order=Order.ID, limit=999)
    assert full.scrub()
    assert full.find(make.anything(versions=True), order=Order.ID, limit=999) == before
    assert SqliteMaintenance(full).check() == []


def purge(folder, make, *, seed, records, purges):
    """Fill a store in random order, change a third, and erase at random; return what is left of what was erased."""
    chance = random.Random(seed)
    stores = [SqliteStore(f"{folder}/memory.db") for _ in range(2)]
    stores[0].apply([AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=16))])
    tokens, needles = {}, []
    for start in range(0, records, 20):
        batch = [secret(make, "".join(chance.choices(string.ascii_lowercase, k=14))) for _ in range(20)]
        tokens |= {record.id: record.metadata["m"] for record in batch}
        texts = [f"{record.content} {'filler ' * chance.randrange(300)}" for record in batch]
        vectors = [[chance.random() for _ in range(16)] for _ in batch]
        puts = zip(batch, texts, vectors, strict=True)
        stores[start // 20 % 2].apply(
            [make.put(record.replace(content=text), vector=vector) for record, text, vector in puts]
        )
    for record in chance.sample(stores[0].find(make.where(), order=Order.ID, limit=records), records // 3):
        stores[1].apply([make.update(record, content=f"{tokens[record.id]}x changed")])
    for count, name in enumerate(chance.sample(sorted(tokens), purges)):
        with stores[0].using() as connection:
            entries = "select row * 4 from record where id = ?1 union all select row * 4 + 2 from version where id = ?1"
            rows = connection.execute(f"select data from vector where entry in ({entries})", (name,))
            needles += [data for (data,) in rows]
        stores[count % 2].apply([Delete(where=make.anything(ids=frozenset({name})))])
        needles += [tokens[name][:9]]
    assert SqliteMaintenance(stores[0]).check() == []
    found = left(folder, *needles)
    for store in stores:
        store.close()
    return found, left(folder, *needles)


def test_many_erasures_leave_no_byte(tmp_path, make):
    """Also what was copied when pages were split is gone, though two stores hold copies of the pages."""
    assert purge(tmp_path, make, seed=1, records=200, purges=40) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_very_many_erasures_leave_no_byte(tmp_path, make, seed):
    """The same at length: two hundred erasures each time."""
    assert purge(tmp_path, make, seed=seed, records=600, purges=200) == (0, 0)
