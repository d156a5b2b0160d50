"""``LanceStore``: the index beside the records can lag, lie, break or be gone, and no answer is ever wrong."""

import fcntl
import glob
import os
import random
import shutil
import subprocess
import sys
from array import array
from math import hypot
from pathlib import Path

import pytest

from commonplace.install import hint
from commonplace.model.changes import AdoptEmbedder, Archive, Delete, SetVectors, SwitchEmbedder, Trim
from commonplace.model.errors import StoreBusy, StoreError
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order
from commonplace.model.records import Kind
from commonplace.stores.lance.store import LanceStore
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance

SIZE, MANY = 32, 300
IDENTITY = EmbedderIdentity(name="crowd", dimensions=SIZE)


def crowd(seed, count):
    """Vectors of unit length."""
    chance = random.Random(seed)
    drawn = [[chance.gauss(0, 1) for _ in range(SIZE)] for _ in range(count)]
    return [[number / hypot(*vector) for number in vector] for vector in drawn]


VECTORS, QUESTIONS = crowd(1, MANY), crowd(2, 8)


@pytest.fixture
def folder(tmp_path):
    """Where a store lies."""
    return tmp_path / "memory.lance"


@pytest.fixture
def opened(folder):
    """Open the store there, as often as a test wants."""
    made = []

    def opened(**options):
        made.append(LanceStore(os.fspath(folder), **{"tail_least": 50} | options))
        return made[-1]

    yield opened
    for store in made:
        store.close()


@pytest.fixture
def lance(opened, make):
    """A store with many records and an index of all of them."""
    store = opened()
    store.apply([AdoptEmbedder(identity=IDENTITY)])
    store.apply([make.put(make(str(number)), vector=vector) for number, vector in enumerate(VECTORS)])
    assert store.count_indexed() == MANY
    return store


def answers(store, where, limit=10):
    """What every question finds, with the scores."""
    asked = [store.nearest(where, question, limit=limit) for question in QUESTIONS]
    return [[(match.record.content, round(match.score, 5)) for match in matches] for matches in asked]


def agrees(store, where):
    """Whether a store finds what is found when each of its records is compared."""
    plain = SqliteStore(store.path)
    try:
        return answers(store, where) == [found[:10] for found in answers(plain, where, limit=9_999)]
    finally:
        plain.close()


def tables(folder):
    """The folders of the index."""
    return glob.glob(os.fspath(folder / "vectors_*.lance"))


def data_file(folder):
    """The largest file of the index: the one with the vectors."""
    [table] = tables(folder)
    files = glob.glob(os.path.join(table, "**", "*.lance"), recursive=True)
    return max((path for path in files if os.path.isfile(path)), key=os.path.getsize)


def test_the_index_answers_as_the_records_do(lance, make):
    """Asked through the index the best are the same, with the same scores, and it stays in use."""
    assert agrees(lance, make.where())
    assert lance.count_indexed() == MANY


def test_few_vectors_need_no_index(opened, folder, make):
    """Until there are many, nothing is written for LanceDB, and everything is found."""
    store = opened()
    store.apply([AdoptEmbedder(identity=IDENTITY)])
    store.apply([make.put(str(number), vector=vector) for number, vector in enumerate(VECTORS[:50])])
    assert (store.count_indexed(), tables(folder)) == (0, [])
    assert agrees(store, make.where())


def test_many_small_writes_make_few_tables(opened, folder, make):
    """One write at a time, the index is one table of few files, and lacks no more than it may."""
    store = opened()
    store.apply([AdoptEmbedder(identity=IDENTITY)])
    for number, vector in enumerate(VECTORS):
        store.apply([make.put(str(number), vector=vector)])
    assert MANY - store.count_indexed() <= max(50, store.count_indexed() // 4)
    [table] = tables(folder)
    assert len(glob.glob(os.path.join(table, "data", "*"))) == 1
    assert agrees(store, make.where())


def test_what_changed_since_is_found_as_it_is_now(lance, make):
    """New, reworded, archived, recategorised, expired and erased: each is seen at once, without a new index."""
    records = lance.find(make.where(), order=Order.ID, limit=10)
    lance.apply([make.put("new", vector=QUESTIONS[0])])
    lance.apply([make.put(records[0].replace(content="reworded"), expect=1, vector=QUESTIONS[1])])
    lance.apply([Archive(where=make.where(ids=frozenset({records[1].id})), at=make.clock())])
    lance.apply([make.update(records[2], category="other"), make.update(records[3], expires_at=make.clock())])
    lance.apply([make.update(records[4], kind=Kind.EPISODIC)])
    assert lance.count_indexed() == MANY
    for fields in ({}, {"categories": frozenset({"other"})}, {"kinds": frozenset({Kind.EPISODIC})}):
        assert agrees(lance, make.where(**fields)), fields
    assert agrees(lance, make.anything())
    assert answers(lance, make.where(), limit=1)[:2] == [[("new", 1.0)], [("reworded", 1.0)]]


def test_a_writer_that_knows_no_index_is_noticed(lance, make):
    """The record store itself notes what changes, whoever changes it."""
    plain = SqliteStore(lance.path)
    plain.apply([make.put("beside", vector=QUESTIONS[0])])
    plain.close()
    assert answers(lance, make.where(), limit=1)[0] == [("beside", 1.0)]


@pytest.mark.parametrize("reopened", [False, True], ids=["at once", "opened anew"])
def test_an_index_that_is_gone_is_not_missed(lance, opened, folder, make, reopened):
    """Delete the tables: every answer is right, and the next write builds them anew."""
    store = opened() if reopened else lance
    for table in tables(folder):
        shutil.rmtree(table)
    assert agrees(store, make.where())
    assert store.count_indexed() == 0
    store.apply([make.put("new", vector=QUESTIONS[0])])
    assert store.count_indexed() == MANY + 1
    assert agrees(store, make.where())


def flipped(path):
    """Flip bits all over a file."""
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        for place in range(100, len(content), 997):
            content[place] ^= 0x55
        file.seek(0)
        file.write(content)


def halved(path):
    """Cut a file off."""
    os.truncate(path, os.path.getsize(path) // 2)


@pytest.mark.usefixtures("lance")
@pytest.mark.parametrize("damage", [flipped, halved, os.unlink])
def test_a_damaged_index_is_not_believed(opened, folder, make, damage):
    """Bits, a lost end, a lost file: who opens the store finds out, and the records answer."""
    damage(data_file(folder))
    store = opened()
    assert agrees(store, make.where())
    assert store.count_indexed() == 0
    assert store.rebuild() == MANY
    assert agrees(store, make.where())
    assert store.count_indexed() == MANY


def test_a_table_of_another_time_is_not_believed(lance, make, tmp_path):
    """A backup that is put back fits the table that it knew, or does without one."""
    maintenance = SqliteMaintenance(lance)
    maintenance.backup(os.fspath(tmp_path / "backup"))
    lance.apply([make.put(f"late {number}", vector=vector) for number, vector in enumerate(crowd(3, 100))])
    assert lance.count_indexed() == MANY + 100
    maintenance.restore(os.fspath(tmp_path / "backup"))
    assert agrees(lance, make.where())
    assert "late" not in str(answers(lance, make.where()))


def test_another_embedder_gets_another_index(lance, make):
    """When the vectors of a new embedder take over, those of the old one are asked no more."""
    other = EmbedderIdentity(name="other", dimensions=SIZE)
    texts = lance.list_unembedded(other, limit=MANY)
    lance.apply([SetVectors(identity=other, vectors={text.ref: VECTORS[MANY - 1 - int(text.text)] for text in texts})])
    assert answers(lance, make.where(), limit=1) == answers(lance, make.where(), limit=1)
    lance.apply([SwitchEmbedder(identity=other)])
    [found] = lance.nearest(make.where(), VECTORS[0], limit=1)
    assert (found.record.content, lance.count_indexed()) == (str(MANY - 1), MANY)


def test_what_is_erased_leaves_the_index_too(lance, folder, make):
    """After a forget no file of the folder holds the vector; the next write builds an index without it."""
    victim = lance.find(make.where(), order=Order.ID, limit=1)[0]
    trace = array("f", VECTORS[int(victim.content)]).tobytes()
    assert trace in files(folder)
    [outcome] = lance.apply([Delete(where=make.where(ids=frozenset({victim.id})))])
    assert (outcome.gone, outcome.erasing) == ((victim.id,), False)
    assert trace not in files(folder)
    lance.apply([make.put("next", vector=QUESTIONS[0])])
    assert (lance.count_indexed(), trace in files(folder)) == (MANY, False)


def files(folder):
    """Every byte below a folder."""
    found = glob.glob(os.fspath(folder / "**"), recursive=True)
    return b"".join(Path(path).read_bytes() for path in found if os.path.isfile(path))


def test_making_room_does_not_cost_the_index(lance, make):
    """What is evicted for something newer is in no answer, and the table stays in use."""
    where = make.where()
    lance.apply([make.put("new", vector=QUESTIONS[0]), Trim(where=where, keep=MANY - 5, order=Order.OLDEST)])
    assert lance.count_indexed() == MANY
    assert agrees(lance, make.where())


def test_erasing_something_without_a_vector_costs_no_index(lance, make):
    """A record that was never in the index is erased without it."""
    [outcome] = lance.apply([make.put("bare")])
    lance.apply([Delete(where=make.where(ids=frozenset({outcome.records[0].id})))])
    assert lance.count_indexed() == MANY


def test_what_a_killed_process_left_is_swept_up(lance, opened, folder, make):
    """A table that was never put in use, or not deleted in time, goes when the store is next opened."""
    [used] = tables(folder)
    shutil.copytree(used, folder / "vectors_dead.lance")
    store = opened()
    assert tables(folder) == [used]
    assert agrees(store, make.where())
    assert lance.count_indexed() == store.count_indexed() == MANY


def test_a_database_without_notes_can_take_its_place(lance, make, tmp_path):
    """A backup of a plain store put back here is searched, and indexed from then on."""
    plain = SqliteStore(os.fspath(tmp_path / "plain.db"))
    plain.apply([AdoptEmbedder(identity=IDENTITY), make.put("plain", vector=QUESTIONS[0])])
    SqliteMaintenance(plain).backup(os.fspath(tmp_path / "backup"))
    plain.close()
    SqliteMaintenance(lance).restore(os.fspath(tmp_path / "backup"))
    assert answers(lance, make.where())[0] == [("plain", 1.0)]
    lance.apply([make.put(str(number), vector=vector) for number, vector in enumerate(VECTORS)])
    assert lance.count_indexed() == MANY + 1


def test_an_index_that_cannot_be_written_stops_no_write(lance, folder, make):
    """The changes are made, the answers are right, and what is wrong can be asked."""
    os.unlink(folder / "index.lock")
    (folder / "index.lock").mkdir()
    lance.apply([make.put(f"late {number}", vector=vector) for number, vector in enumerate(crowd(3, 100))])
    assert "index.lock" in lance.trouble
    assert agrees(lance, make.where())


def test_building_tells_how_far_it_is(lance):
    """Who waits for a new index hears of it, to the end."""
    heard = []
    lance.rebuild(progress=lambda done, of: heard.append((done, of)))
    assert heard[-1] == (MANY, MANY)


@pytest.mark.usefixtures("lance")
def test_one_builds_at_a_time(opened, folder, make):
    """A second builder is told so; a second writer goes on without."""
    other = opened()
    with open(folder / "index.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match="being built"):
            other.rebuild()
        other.apply([make.put(f"late {number}", vector=vector) for number, vector in enumerate(crowd(3, 100))])
    assert agrees(other, make.where())


def test_a_partitioned_table_misses_nothing_that_few_share(opened, make):
    """Where a table is cut into parts, a filter that keeps few still finds all of them."""
    store = opened(partition_from=MANY)
    store.apply([AdoptEmbedder(identity=IDENTITY)])
    named = [make(str(number), category="rare" if number % 60 == 0 else "common") for number in range(MANY)]
    store.apply([make.put(record, vector=vector) for record, vector in zip(named, VECTORS, strict=True)])
    assert agrees(store, make.where(categories=frozenset({"rare"})))
    assert len(store.nearest(make.where(), QUESTIONS[0], limit=10)) == 10
    assert store.count_indexed() == MANY


def test_any_text_can_be_a_category(lance, make):
    """Quotes and the words of a query language are nothing but text."""
    odd = "it's ') or 1 = 1 --"
    lance.apply([make.put(make("odd", category=odd), vector=QUESTIONS[0])])
    lance.rebuild()
    assert [found[0] for [found] in answers(lance, make.where(categories=frozenset({odd})), limit=1)] == ["odd"] * 8
    assert lance.count_indexed() == MANY + 1


WRITER = """
from commonplace.stores.lance.store import LanceStore
store, make, name = LanceStore(sys.argv[1], tail_least=20), Maker(Clock()), sys.argv[2]
for number in range(60):
    store.apply([make.put(f"{name} {number}", vector=[float(number), 1.0] + [0.0] * 30)])
"""


@pytest.mark.slow
def test_processes_share_a_store(lance, folder, make):
    """Two processes write, each building the index as it needs to; nothing is lost, and every answer is right."""
    program = f"from conftest import *\n{WRITER}"
    where = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    commands = [[sys.executable, "-c", program, os.fspath(folder), name] for name in ("one", "two")]
    running = [subprocess.Popen(command, env=where, stderr=subprocess.PIPE) for command in commands]
    while any(process.poll() is None for process in running):
        assert len(lance.nearest(make.where(), QUESTIONS[0], limit=5)) == 5
    assert [process.communicate()[1] for process in running] == [b"", b""]
    assert len(lance.find(make.where(), order=Order.ID, limit=999)) == MANY + 120
    assert agrees(lance, make.where())


KILLED = """
from commonplace.stores.lance.store import LanceStore
store, make = LanceStore(sys.argv[1], tail_least=0), Maker(Clock())
for number in range(9_999):
    [outcome] = store.apply([make.put(f"{sys.argv[2]} {number}", vector=[float(number), 1.0] + [0.0] * 30)])
    print(outcome.records[0].id, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_costs_nothing(lance, opened, folder, make):
    """Killed while it writes and builds, again and again: every acknowledged write is there, every answer right."""
    acknowledged = {record.id for record in lance.find(make.where(), order=Order.ID, limit=999)}
    where = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    for turn in range(3):
        command = [sys.executable, "-c", f"from conftest import *\n{KILLED}", os.fspath(folder), str(turn)]
        with subprocess.Popen(command, env=where, stdout=subprocess.PIPE, text=True) as process:
            acknowledged |= {process.stdout.readline().strip() for _ in range(10 + turn)}
            process.kill()
            acknowledged |= {line.strip() for line in process.stdout.read().splitlines() if line.strip()}
        store = opened()
        assert len(tables(folder)) == 1
        assert agrees(store, make.where())
        assert acknowledged <= {record.id for record in store.find(make.where(), order=Order.ID, limit=9_999)}


def test_without_the_extra_one_sentence_says_what_to_install(python, tmp_path):
    """Nothing is made, and the error names the extra."""
    program = """
sys.modules["lancedb"] = None
from commonplace.model.errors import StoreError
from commonplace.stores.lance.store import LanceStore
try:
    LanceStore(sys.argv[1])
except StoreError as error:
    print(error, os.path.exists(sys.argv[1]))
"""
    said = python(program, tmp_path / "memory.lance")
    assert said == f"{hint('a LanceDB store needs the extra `lancedb`', 'lancedb')} False\n"


def test_opening_a_small_store_does_not_load_lancedb(python, tmp_path):
    """The library takes seconds to load; who does not need it does not wait for it."""
    program = """
from commonplace.stores.lance.store import LanceStore
LanceStore(sys.argv[1]).apply([Maker(Clock()).put("a")])
print("lancedb" in sys.modules, "pyarrow" in sys.modules)
"""
    assert python(program, tmp_path / "memory.lance") == "False False\n"


def test_somebody_elses_store_is_left_alone(tmp_path):
    """A folder of the public implementation is not started afresh in: the way to take it over is named."""
    (tmp_path / "memories.lance").mkdir()
    with pytest.raises(StoreError, match="import --from lance"):
        LanceStore(os.fspath(tmp_path))
    assert os.listdir(tmp_path) == ["memories.lance"]


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    """One sentence names the path."""
    (tmp_path / "memory.lance").write_text("x")
    with pytest.raises(StoreError, match="cannot be made"):
        LanceStore(os.fspath(tmp_path / "memory.lance"))
