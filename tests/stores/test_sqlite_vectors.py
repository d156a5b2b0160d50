"""What is true of vectors in the SQLite file: old files, doctor, erasure, and sqlite-vec, which changes no answer."""

import importlib.util
import os
import random
from array import array
from contextlib import closing
from math import hypot

import apsw
import pytest

from commonplace.model.changes import AdoptEmbedder, Delete, SetVectors
from commonplace.model.errors import StoreDamaged, StoreError
from commonplace.model.ports import EmbedderIdentity
from commonplace.stores.codes import code
from commonplace.stores.sqlite import store as sqlite
from commonplace.stores.sqlite.connection import APPLICATION_ID
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance

DIMENSIONS = 48
HERE, NEXT = (EmbedderIdentity(name=name, dimensions=DIMENSIONS) for name in ("here", "next"))


def vectors(count, seed=1):
    """Vectors of unit length, some of them twice."""
    chance, made = random.Random(seed), []
    for number in range(count):
        numbers = [chance.gauss(0.3, 1) for _ in range(DIMENSIONS)]
        length = hypot(*numbers)
        made.append(made[-1] if number % 9 == 8 else tuple(number / length for number in numbers))
    return made


@pytest.fixture
def filled(file_store, make):
    """A store with three hundred vectors."""
    file_store.apply([AdoptEmbedder(identity=HERE)])
    file_store.apply([make.put(f"text {number}", vector=vector) for number, vector in enumerate(vectors(300))])
    return file_store


def answers(store, make, limit=10):
    """What is nearest to some questions, with scores."""
    asked = [store.nearest(make.where(), question, limit=limit) for question in vectors(15, seed=2)]
    return [[(match.id, match.score) for match in matches] for matches in asked]


def altered(store, sql, *values):
    """Change the file behind the store's back."""
    store.close()
    with closing(apsw.Connection(store.path)) as db:
        db.execute(sql, values).fetchall()


def schema_2(path, store):
    """The records and vectors of a store in a file as it was before there were codes."""
    store.close()
    folder = os.path.join(os.path.dirname(sqlite.__file__), "migrations")
    with closing(apsw.Connection(os.fspath(path))) as db:
        db.execute("pragma journal_mode = wal").fetchall()
        for number in (1, 2):
            with open(os.path.join(folder, f"{number:04d}.sql"), encoding="utf-8") as file:
                db.execute(file.read()).fetchall()
        db.execute(
            f"pragma application_id = {APPLICATION_ID}; pragma user_version = 2; attach ? as later", (store.path,)
        )
        for table in ("meta", "scope", "record", "vector"):
            columns = ", ".join(row[1] for row in db.execute(f"pragma main.table_info({table})").fetchall())
            db.execute(f"insert into main.{table} ({columns}) select {columns} from later.{table}")
    return SqliteStore(os.fspath(path))


def test_a_file_of_the_schema_before_gets_its_codes(filled, make, tmp_path):
    """A store that was written without codes opens, answers as before, and is sound."""
    before = answers(filled, make)
    with closing(schema_2(tmp_path / "old.db", filled)) as old:
        assert answers(old, make) == before
        assert old.count_unembedded(HERE) == 0
        assert [problem for problem in SqliteMaintenance(old).check() if "others may read" not in problem.what] == []


@pytest.mark.parametrize(
    "damage",
    [
        "update code set data = (select c.data from code c where c.id = code.id + 4) where id % 28 = 0",
        "delete from code where id % 28 = 0",
        "update code set category = 'other' where id % 28 = 0",
        "insert into code select bucket, id + 1, expires, kind, category, data from code where id % 28 = 0",
    ],
)
def test_a_code_that_does_not_fit_is_noticed_and_mended(filled, make, damage):
    """Doctor tells of it, and repair makes all codes anew."""
    before = answers(filled, make)
    altered(filled, damage)
    maintenance = SqliteMaintenance(filled)
    assert [problem.fixable for problem in maintenance.check() if "code" in problem.what] == [True]
    assert "the codes of vectors were made anew" in maintenance.repair().done
    assert maintenance.check() == []
    assert answers(filled, make) == before


def test_half_a_vector_is_noticed_and_becomes_a_gap(filled):
    """What repair cannot mend it drops, so that an embedder can catch up."""
    altered(filled, "update vector set data = zeroblob(4) where entry % 28 = 0")
    maintenance = SqliteMaintenance(filled)
    assert any("vectors" in problem.what for problem in maintenance.check())
    maintenance.repair()
    assert (maintenance.check(), filled.count_unembedded(HERE)) == ([], 42)


def test_damaged_vectors_are_told_not_guessed(filled, make):
    """A search that meets half a vector or half a code says so."""
    altered(filled, "update vector set data = zeroblob(4)")
    with pytest.raises(StoreDamaged, match="doctor"):
        answers(filled, make)
    altered(filled, "update code set data = x'00'")
    with pytest.raises(StoreDamaged, match="doctor"):
        answers(filled, make)


def test_an_erased_record_leaves_no_code(filled, make, tmp_path):
    """After erasure no file holds a byte of its vectors or their codes, in use or beside."""
    secret = vectors(1, seed=3)[0]
    record = make("secret")
    filled.apply([make.put(record, vector=secret)])
    [ref] = [text.ref for text in filled.list_unembedded(NEXT, limit=999) if text.text == "secret"]
    filled.apply([SetVectors(identity=NEXT, vectors={ref: secret[::-1]})])
    needles = [array("f", secret).tobytes(), code(array("f", secret)), code(array("f", secret[::-1]))]
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert all(needle in held for needle in needles)
    [outcome] = filled.apply([Delete(where=make.where(ids=frozenset({record.id})))])
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (outcome.erasing, [needle in held for needle in needles]) == (False, [False] * 3)


# sqlite-vec


@pytest.fixture
def vec():
    """Where sqlite-vec lies; found without importing it, which would load numpy."""
    found = importlib.util.find_spec("sqlite_vec")
    if found is None or found.origin is None:
        pytest.skip("sqlite-vec is not installed")
    return os.path.join(os.path.dirname(found.origin), "vec0")


@pytest.mark.parametrize("limit", [1, 10, 60, 500])
def test_sqlite_vec_changes_no_answer(filled, make, vec, limit):
    """The same records, in the same order, with the same scores, ties included."""
    filled.apply([make.put(str(size), vector=(size,) * DIMENSIONS) for size in (0.0, 1e-20, 7.0)])
    plain = answers(filled, make, limit)
    with closing(SqliteStore(filled.path, vec=vec)) as helped:
        assert answers(helped, make, limit) == plain


def test_an_extension_that_is_none_is_told(tmp_path):
    """A wrong path is named in one sentence."""
    with pytest.raises(StoreError, match="'nowhere/vec0' cannot be loaded"):
        SqliteStore(os.fspath(tmp_path / "memory.db"), vec="nowhere/vec0")


def test_nobody_else_may_load_extensions(file_store, vec):
    """After sqlite-vec is loaded the door is shut again."""
    with closing(SqliteStore(file_store.path, vec=vec)) as helped, helped.using() as connection:
        with pytest.raises(apsw.Error):
            connection.execute("select load_extension(?)", (vec,)).fetchall()
        assert connection.has_vec
