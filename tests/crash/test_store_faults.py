"""Every call to the disk fails once, and from some call on for ever: a change is made wholly or not at all."""

import contextlib
import shutil
from contextlib import closing

import apsw
import disks
import pytest
from lives import EVERYTHING, NOW, opened, plain, put, state, unhealthy

from commonplace.model.changes import Delete, Supersede
from commonplace.model.errors import StoreError
from commonplace.stores.sqlite.store import SqliteStore

# A connection that is thrown away after a fault meets the next one where nobody can hear it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OLD, OTHER, NEW = plain("old word "), plain("other word ", tags=frozenset({"t"})), plain("new word " * 50)

#: What is tried, and what the store says afterwards of these three (a version, or None).
CHANGES = {
    "put": [put(NEW)],
    "update": [put(OLD.replace(content="older word "), expect=1)],
    "supersede": [put(NEW), Supersede(id=OLD.id, by=NEW.id, at=NOW, now=NOW)],
    "delete": [Delete(where=EVERYTHING.replace(ids=frozenset({OLD.id})))],
}
WAYS = [(apsw.IOError, False), (apsw.IOError, True), (apsw.FullError, False), (apsw.FullError, True)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a sound store that holds two records and a past."""
    folder = tmp_path_factory.mktemp("sound")
    with closing(opened(folder / "memory.db")) as store:
        store.apply([put(OLD), put(OTHER), *(put(plain(f"text {number} word ")) for number in range(30))])
        store.apply([put(OTHER.replace(content="another word "), expect=1)])
    return folder


def tried(folder, changes, *, fault=None):
    """Make changes, with a fault at the nth call to the disk; return the calls there were and whether it went well."""
    with disks.inserted() as disk:
        store = SqliteStore(str(folder / "memory.db"))
        start = disk.calls
        if fault:
            disk.fail(fault[0], fault[1], sticky=fault[2])
        try:
            store.apply(changes)
            well = True
        except StoreError:
            well = False
        calls = disk.calls - start
        with contextlib.suppress(apsw.Error):  # from SQLite itself nobody would hear of it
            store.close()
        return calls, well


def seen(folder):
    """What a store says when it is opened again on a sound disk; it is healthy and takes new records."""
    with closing(SqliteStore(str(folder / "memory.db"))) as store:
        assert store.scrub()
        found = state(store)
        assert unhealthy(store) == []
        extra = plain("and on word ")
        store.apply([put(extra)])
        assert store.get(extra.id)
    return found


def every_fault(sound, folder, changes, *, stride):
    """Try the changes with each of the faults, or with some; return in how many ways it ended."""
    shutil.copytree(sound, folder / "whole")
    calls, _ = tried(folder / "whole", changes)
    with closing(SqliteStore(str(sound / "memory.db"))) as store:
        before, whole = state(store), seen(folder / "whole")
    ends = {True: 0, False: 0}
    for number in range(1, calls + 1, stride):
        for error, sticky in WAYS:
            trial = folder / f"{number}-{error.__name__}-{sticky}"
            shutil.copytree(sound, trial)
            _, well = tried(trial, changes, fault=(number, error, sticky))
            assert seen(trial) in ([whole] if well else [before, whole]), trial.name
            ends[well] += 1
            shutil.rmtree(trial)
    return ends


@pytest.mark.parametrize("change", CHANGES)
def test_a_fault_leaves_all_of_a_change_or_none_of_it(sound, tmp_path, change):
    """Whichever call to the disk fails, the store opens again, is sound, and holds the change or does not."""
    ends = every_fault(sound, tmp_path, CHANGES[change], stride=9)
    assert ends[False]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_every_single_call_may_fail(sound, tmp_path, change):
    """The same with every call to the disk, each in four ways."""
    ends = every_fault(sound, tmp_path, CHANGES[change], stride=1)
    assert ends[False] > 40


@pytest.mark.parametrize("stride", [29, pytest.param(2, marks=pytest.mark.slow)])
def test_a_store_that_failed_in_the_making_can_be_made(tmp_path, stride):
    """Whichever call fails while a store is made, the next one to open it has a store."""
    with disks.inserted() as disk:
        opened(tmp_path / "memory.db").close()
        calls = disk.calls
    for number in range(1, calls + 1, stride):
        for error, sticky in WAYS:
            trial = tmp_path / f"{number}-{error.__name__}-{sticky}"
            trial.mkdir()
            with disks.inserted() as disk:
                disk.fail(number, error, sticky=sticky)
                with contextlib.suppress(StoreError, apsw.Error):
                    opened(trial / "memory.db").close()
            opened(trial / "memory.db").close()
            assert seen(trial) == {}, trial.name


def test_a_store_goes_on_when_the_disk_is_mended(sound, tmp_path):
    """After a full disk the same store object works again, without being opened anew."""
    shutil.copytree(sound, tmp_path / "trial")
    with disks.inserted() as disk, closing(SqliteStore(str(tmp_path / "trial" / "memory.db"))) as store:
        disk.fail(1, apsw.FullError, sticky=True)
        for _ in range(3):
            with pytest.raises(StoreError, match="full"):
                store.apply([put(NEW)])
        assert store.get(OLD.id)
        disk.mend()
        store.apply([put(NEW)])
    assert seen(tmp_path / "trial")[NEW.id][0] == 1


def test_an_erasure_that_is_made_is_never_denied(sound, tmp_path):
    """When the disk fails after a record is erased the outcome says that bytes remain, not that it is still there."""
    changes = CHANGES["delete"]
    shutil.copytree(sound, tmp_path / "whole")
    calls, _ = tried(tmp_path / "whole", changes)
    for number in range(1, calls + 1, 5):
        trial = tmp_path / str(number)
        shutil.copytree(sound, trial)
        _, well = tried(trial, changes, fault=(number, apsw.IOError, True))
        assert well is (OLD.id not in seen(trial)), number
