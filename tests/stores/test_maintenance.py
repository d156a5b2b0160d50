"""Looking after a store, of whichever sort: checks, repairs, and copies that restore into either."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from commonplace.app import maintenance_of, open_store
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.model.queries import Order
from household import answers, export, furnish, whole


@pytest.fixture
def house(new_home, make):
    """A store with everything in it."""
    store = open_store(new_home())
    furnish(store, make)
    return store


@pytest.fixture
def houses(new_place, make):
    """Two stores of two sorts, each pair of sorts in turn; the first one is furnished."""
    ours, theirs = (open_store(place) for place in new_place.pair)
    furnish(ours, make)
    return ours, theirs


def test_a_store_with_everything_in_it_is_healthy(house):
    """Nothing is found, and a repair leaves it as it is."""
    before = whole(house)
    assert maintenance_of(house).check() == []
    maintenance_of(house).repair()
    assert whole(house) == before


def test_a_backup_restores_into_either_sort(houses, make, query, tmp_path):
    """What was copied is there again, in the place of whatever was."""
    ours, theirs = houses
    theirs.apply([make.put("something else")])
    count = maintenance_of(ours).backup(str(tmp_path / "copy.db"))
    assert maintenance_of(theirs).restore(str(tmp_path / "copy.db")) == count
    assert whole(theirs) == whole(ours)
    assert export(theirs, make.clock()) == export(ours, make.clock())
    assert answers(theirs, make, query) == answers(ours, make, query)
    assert maintenance_of(theirs).check() == []


def test_a_backup_is_one_private_file(house, tmp_path):
    """Nothing lies beside it, nobody else reads it, and it can be opened as a store as it is."""
    maintenance_of(house).backup(str(tmp_path / "copy.db"))
    assert os.listdir(tmp_path) == ["copy.db"]
    assert stat.S_IMODE(os.stat(tmp_path / "copy.db").st_mode) == 0o600
    assert whole(open_store(str(tmp_path / "copy.db"))) == whole(house)


def test_a_backup_overwrites_nothing(house, tmp_path):
    """A file that is there stays, and a folder that is not is said."""
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(InvalidInput, match="is there already"):
        maintenance_of(house).backup(str(tmp_path / "copy.db"))
    with pytest.raises(StoreError, match="cannot be written"):
        maintenance_of(house).backup(str(tmp_path / "nowhere" / "copy.db"))
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_backup_is_one_state_while_others_write(house, make, tmp_path):
    """Two records that are always written together are both in it, or neither."""
    over = threading.Event()

    def write():
        while not over.is_set():
            house.apply([make.put("left"), make.put("right")])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            maintenance_of(house).backup(str(tmp_path / f"{number}.db"))
    finally:
        over.set()
        writer.join()
    counts = []
    for number in range(5):
        said = [
            r.content for r in open_store(str(tmp_path / f"{number}.db")).find(make.where(), order=Order.ID, limit=-1)
        ]
        assert said.count("left") == said.count("right")
        counts.append(said.count("left"))
    assert counts == sorted(counts)
    assert counts[-1]


@pytest.mark.parametrize("said", [None, b"no database", b""])
def test_what_is_no_backup_is_refused(house, tmp_path, said):
    """One sentence, and what is stored stays."""
    if said is not None:
        (tmp_path / "copy.db").write_bytes(said)
    before = whole(house)
    with pytest.raises((InvalidInput, StoreError), match=r"copy\.db"):
        maintenance_of(house).restore(str(tmp_path / "copy.db"))
    assert whole(house) == before
