"""What is true of the SQLite file: whose it is, what it refuses, what it notices."""

import os
import shutil
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from commonplace.model.changes import Archive, MarkConsolidated, Touch
from commonplace.model.errors import SchemaTooNew, StoreDamaged, StoreError
from commonplace.model.queries import Order
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance


def contents(folder):
    """Every file of a folder with its bytes, but for the empty lock file that a look at it leaves behind."""
    found = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return {name: data for name, data in found.items() if data or not name.endswith(".lock")}


def foreign(path, *statements):
    """Make a database of somebody else's."""
    with closing(apsw.Connection(os.fspath(path))) as db:
        for statement in ("create table t (x)", "insert into t values ('theirs')", *statements):
            db.execute(statement).fetchall()


def refused(folder, error, match):
    """Assert that the file there is refused, and that nothing of it is touched."""
    before = contents(folder)
    for _ in range(2):
        with pytest.raises(error, match=match):
            SqliteStore(os.fspath(folder / "memory.db"))
    assert contents(folder) == before


# Whose it is


def test_files_and_folders_are_private(tmp_path, make):
    """Under an ordinary umask nobody else can read a store, its log, its lock or its folder."""
    before = os.umask(0o022)
    try:
        store = SqliteStore(os.fspath(tmp_path / "new" / "memory.db"))
        store.apply([make.put()])
        files = list((tmp_path / "new").iterdir())
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {file.name for file in files} == {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db.lock"}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    store.close()


def test_a_closed_store_is_one_file_and_its_lock(file_store, make, tmp_path):
    """Nothing but the database and the lock file stays behind."""
    file_store.apply([make.put()])
    file_store.close()
    assert {path.name for path in tmp_path.iterdir()} == {"memory.db", "memory.db.lock"}


def test_every_connection_is_set_up_alike(file_store):
    """Durability, erasure and caution are in force on each connection, not on the first one only."""
    expected = {"synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "trusted_schema": 0, "journal_mode": "wal"}
    expected |= {"cell_size_check": 1, "mmap_size": 0, "temp_store": 2, "recursive_triggers": 0, "busy_timeout": 10_000}
    with file_store.using() as one, file_store.using() as other:
        for connection in (one, other):
            assert {name: connection.pragma(name) for name in expected} == expected


def test_a_write_that_need_not_last_leaves_the_next_one_lasting(file_store, make):
    """After counting a recall the connection waits for the disk again."""
    file_store.apply([Touch(ids=("0" * 20,), at=make.clock())])
    with file_store.using() as connection:
        assert connection.pragma("synchronous") == 2


# What it refuses


@pytest.mark.parametrize("version", [0, 1, 99])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_foreign_database_is_refused(tmp_path, version, mode):
    """Somebody else's database is named as such and not touched, whatever its version says."""
    foreign(tmp_path / "memory.db", f"pragma journal_mode = {mode}", f"pragma user_version = {version}")
    refused(tmp_path, StoreError, "not a Commonplace store")


@pytest.mark.parametrize("data", [b"# my notes\n", b"x" * 10_000, os.urandom(4096), b"SQLite format 3\0" + bytes(4080)])
def test_a_file_that_is_no_database_is_refused(tmp_path, data):
    """A text, a picture or half a database is not taken for a store."""
    (tmp_path / "memory.db").write_bytes(data)
    refused(tmp_path, StoreDamaged, "memory.db")


def test_a_newer_schema_is_refused(file_store, make, tmp_path):
    """A store of a later Commonplace is left alone, and the message says whose it is."""
    file_store.apply([make.put()])
    file_store.close()
    with closing(apsw.Connection(file_store.path)) as db:
        db.execute("update meta set value = 'Commonplace 9.9' where key = 'written_by'; pragma user_version = 99")
    refused(tmp_path, SchemaTooNew, r"Commonplace 9\.9 \(schema 99\).*Nothing was changed")


def test_an_open_store_notices_that_it_was_taken_further(file_store, make):
    """Who reopens a store that a later Commonplace has migrated meanwhile is refused."""
    file_store.apply([make.put()])
    file_store.close()
    with closing(apsw.Connection(file_store.path)) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(SchemaTooNew):
        file_store.apply([make.put()])


def test_a_folder_is_no_store(tmp_path):
    """A path that is a folder is refused with a sentence."""
    (tmp_path / "memory.db").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(os.fspath(tmp_path / "memory.db"))


def test_a_path_below_a_file_is_no_store(tmp_path):
    """A folder that cannot be made is told as such."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        SqliteStore(os.fspath(tmp_path / "file" / "memory.db"))


def test_an_empty_file_becomes_a_store(tmp_path, make):
    """A file that was made and never written, as by a crash, is simply begun."""
    (tmp_path / "memory.db").touch(mode=0o600)
    store = SqliteStore(os.fspath(tmp_path / "memory.db"))
    store.apply([make.put()])
    assert SqliteMaintenance(store).check() == []
    store.close()


READ_ONLY = """
os.chmod(sys.argv[1], 0o500)
if os.getuid() == 0:
    os.chown(sys.argv[1], 65534, 65534)
    os.setuid(65534)
from commonplace.model.errors import StoreError
for name in ("memory.db", "new.db"):
    try:
        SqliteStore(os.path.join(sys.argv[1], name)).apply([Maker(Clock()).put()])
    except StoreError as error:
        print(error)
"""


def test_a_read_only_folder_is_told_in_one_sentence(tmp_path_factory, python):
    """Where nothing can be written a store is neither made nor changed."""
    folder = Path(
        "/tmp" if os.getuid() == 0 else tmp_path_factory.getbasetemp(), f"commonplace-{os.getpid()}-read-only"
    )
    folder.mkdir(mode=0o755)
    try:
        SqliteStore(os.fspath(folder / "memory.db")).close()
        before = contents(folder)
        said = python(READ_ONLY, folder).splitlines()
        assert contents(folder) == before
        assert [str(folder / name) in line for name, line in zip(("memory.db", "new.db"), said, strict=True)] == [
            True
        ] * 2
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


# What it notices


def test_the_number_of_the_last_write_is_kept_beside_the_store(file_store, make):
    """Every durable write raises the high-water mark, a counted recall does not."""
    name, start = file_store.read_mark() or (None, 0)
    for _ in range(3):
        file_store.apply([make.put()])
    file_store.apply([Touch(ids=("0" * 20,), at=make.clock())])
    after, number = file_store.read_mark()
    assert (number, name in (None, after)) == (start + 3, True)
    with file_store.using() as connection:
        assert connection.execute("select value from meta where key = 'sequence'").fetchall() == [(number,)]


def test_a_failed_write_is_not_numbered(file_store, make):
    """The mark never runs ahead of the store."""
    record = make()
    file_store.apply([make.put(record)])
    before = file_store.read_mark()
    with pytest.raises(Exception, match="already"):
        file_store.apply([make.put(record)])
    assert file_store.read_mark() == before


def test_a_store_that_lost_its_end_is_noticed(file_store, make, tmp_path):
    """A database that reopens below its mark has lost writes, and the check says how many."""
    file_store.apply([make.put("one")])
    file_store.close()
    shutil.copy(file_store.path, tmp_path / "copy")
    file_store.apply([make.put("two"), make.put("three")])
    file_store.apply([make.put("four")])
    file_store.close()
    shutil.copy(tmp_path / "copy", file_store.path)
    assert "the last 2 writes are missing" in SqliteMaintenance(file_store).check()[0].what


def test_a_mark_that_cannot_be_written_does_not_undo_the_write(tmp_path, make):
    """When only the mark fails the write is made, and nobody is told otherwise."""
    (tmp_path / "memory.db.lock").symlink_to("/dev/full")
    with closing(SqliteStore(os.fspath(tmp_path / "memory.db"))) as store:
        [outcome] = store.apply([make.put()])
        assert store.get(outcome.records[0].id)


def test_every_row_carries_its_hash(file_store, make):
    """New, merged, lapsed, marked, changed and archived rows all verify."""
    first = make("one", tags=frozenset({"a"}), key="k", expires_at=make.clock() + timedelta(hours=1))
    changes = [make.put(first), make.put(make("one", key="k", tags=frozenset({"b"})), dedupe=True)]
    make.clock.forward(timedelta(hours=1))
    second = make("two", key="k")
    changes += [make.put(second), MarkConsolidated(ids=(first.id,), at=make.clock())]
    changes += [make.put(second, expect=1), Archive(where=make.where(), at=make.clock())]
    for change in changes:
        file_store.apply([change])
        assert SqliteMaintenance(file_store).check() == []


@pytest.mark.parametrize("column", ["content", "metadata", "trust", "channel", "archived_at", "version"])
def test_a_row_that_was_altered_is_noticed(file_store, make, column):
    """A change behind the store's back is found by the row's hash, though the database calls itself sound."""
    kept = file_store.apply([make.put("one")])[0].records[0]
    value = {"content": "'uno'", "metadata": "'{\"a\":1}'", "channel": "'file'"}.get(column, "0")
    with file_store.using() as connection:
        connection.execute(f"update record set {column} = {value}")
        assert connection.pragma("integrity_check") == "ok"
    assert any(kept.id in problem.what for problem in SqliteMaintenance(file_store).check())


def test_a_check_of_a_sound_store_finds_nothing(file_store, make):
    """Health is an empty list."""
    for number in range(20):
        file_store.apply([make.put(f"text {number}")])
    for record in file_store.find(make.where(), order=Order.ID, limit=5):
        file_store.apply([make.update(record, content="changed")])
    assert SqliteMaintenance(file_store).check() == []
