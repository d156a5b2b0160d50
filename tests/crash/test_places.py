"""Databases that are removed, replaced, cut short or cannot be written to, and readers beside a writer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from commonplace.app import maintenance_of
from commonplace.model.changes import Touch
from commonplace.model.errors import StoreError, StoreReadOnly
from commonplace.stores.sqlite import lock
from commonplace.stores.sqlite.store import SqliteStore
from faults.lock import READERS, furnished, held_lock, reads_of_read_only_places
from faults.places import lost_ends_of_logs, replaced_stores


def test_a_store_that_is_replaced_is_noticed(tmp_path):
    """Removed or replaced, open or after a kill: a sentence, and neither a lost write nor an old log."""
    result = replaced_stores(tmp_path, 8)
    assert result.violations == []
    assert result.tries == 8


def test_lost_writes_are_remembered_until_a_person_accepts_it(tmp_path):
    """Whatever is written after the log was cut."""
    assert lost_ends_of_logs(tmp_path, 4).violations == []


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_answers_while_another_process_holds_the_lock(tmp_path, reader):
    """The holder lets go only after the reader has ended."""
    world = furnished(tmp_path)
    words, payload = READERS[reader]
    with held_lock(world):
        done = world.run(*words, input=json.dumps(payload).encode() if payload else b"", timeout=20)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces of Linux")
def test_a_read_only_file_system_can_be_read(tmp_path):
    """With and without a log; a write is refused with a sentence."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine gives nobody a name space")
    assert reads_of_read_only_places(tmp_path, 2).violations == []


def test_a_recall_that_could_not_be_counted_is_counted_with_the_next_write(tmp_path, make):
    """Nobody waits for it, and a server loses no count while its own writers are busy."""
    with closing(SqliteStore(str(tmp_path / "memory.db"))) as store:
        record = make("word")
        store.apply([make.put(record)])
        ended, begun = threading.Event(), threading.Event()

        def hold():
            with store.exclude_writers():
                begun.set()
                ended.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        begun.wait()
        with store.without_waiting():
            store.apply([Touch(ids=(record.id,), at=make.clock())])
        ended.set()
        holder.join()
        assert store.get(record.id).usage.recalls == 0
        store.apply([make.put(make("another"))])
        assert store.get(record.id).usage.recalls == 1


@pytest.mark.parametrize("forced", [False, True])
def test_a_network_file_system_is_refused_for_writing_unless_forced(tmp_path, make, monkeypatch, forced):
    """Locks do not hold there."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(lock, "MOUNTS", str(mounts))
    if forced:
        monkeypatch.setenv(lock.FORCE, "1")
        SqliteStore(str(tmp_path / "memory.db")).close()
        return
    with pytest.raises(StoreReadOnly, match="network file system \\(nfs4\\)"):
        SqliteStore(str(tmp_path / "memory.db")).apply([make.put()])


def test_a_file_system_without_locks_is_told_in_a_sentence(tmp_path, make, monkeypatch):
    """Not as a bare error of the system."""

    def fail(*_):
        raise OSError(37, "No locks available")

    with closing(SqliteStore(str(tmp_path / "memory.db"))) as store:
        monkeypatch.setattr(lock.fcntl, "flock", fail)
        with pytest.raises(StoreError, match=r"cannot be locked \(No locks available"):
            store.apply([make.put()])
        monkeypatch.undo()


def test_a_backup_has_a_name_of_its_own(tmp_path, make):
    """So that the log of the store is never taken for the backup's."""
    with closing(SqliteStore(str(tmp_path / "memory.db"))) as store:
        store.apply([make.put()])
        maintenance_of(store).backup(str(tmp_path / "backup.db"))
        own = store.read_mark()
    with closing(SqliteStore(str(tmp_path / "backup.db"))) as backup:
        backup.apply([make.put()])
        assert backup.read_mark()[0] != own[0]
