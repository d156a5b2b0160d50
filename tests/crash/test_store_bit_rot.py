"""Bits flip, pages vanish, files are cut: damage to records is noticed, never served in silence."""

import random
import shutil
from contextlib import closing

import pytest
from lives import EVERYTHING, NOW, opened, plain, put, unhealthy

from commonplace.model.changes import Supersede
from commonplace.model.errors import StoreError
from commonplace.model.queries import Order
from commonplace.stores.sqlite.store import SqliteStore


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A closed store with records, earlier versions and a replaced one."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    with closing(opened(path)) as store:
        records = [plain(f"text {number} " + "word " * 40, tags=frozenset({f"t{number}"})) for number in range(40)]
        store.apply([put(record) for record in records])
        store.apply([put(record.replace(content=f"new {record.content}"), expect=1) for record in records[::2]])
        store.apply([Supersede(id=records[1].id, by=records[2].id, at=NOW, now=NOW)])
    return path


def said(path):
    """Every record and every version that a store shows."""
    with closing(SqliteStore(str(path))) as store:
        return store.find(EVERYTHING.replace(versions=True), order=Order.ID, limit=-1)


def noticed(path):
    """Whether somebody who checks the store, or only reads it, learns that it is damaged."""
    try:
        said(path)
        with closing(SqliteStore(str(path))) as store:
            return unhealthy(store) != []
    except StoreError:
        return True


def flip(data, chance):
    """One bit."""
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def zero(data, chance):
    """A page of zeros."""
    start = chance.randrange(1, len(data) // 8192) * 8192
    data[start : start + 8192] = bytes(8192)


def garble(data, chance):
    """A sector of garbage."""
    start = chance.randrange(len(data) // 512) * 512
    data[start : start + 512] = chance.randbytes(512)


def shorten(data, chance):
    """The end is missing."""
    del data[chance.randrange(len(data)) :]


def rot(sound, folder, damage, *, cases):
    """Damage copies of a store in one way; return how many changed what it says, and how many of these unnoticed."""
    chance, truth, changed, silent = random.Random(damage.__name__), said(sound), 0, []
    for number in range(cases):
        path = folder / f"{number}.db"
        data = bytearray(sound.read_bytes())
        damage(data, chance)
        path.write_bytes(data)
        path.chmod(0o600)
        if not noticed(path):
            silent += [number] if said(path) != truth else []
        else:
            changed += 1
        for left in folder.glob(f"{number}.db*"):
            left.unlink()
    return changed, silent


@pytest.mark.parametrize("damage", [flip, zero, garble, shorten])
@pytest.mark.parametrize("cases", [25, pytest.param(250, marks=pytest.mark.slow)])
def test_no_damage_to_a_record_goes_unnoticed(sound, tmp_path, damage, cases):
    """Whatever happens to the file, a store shows what was written or says that something is wrong."""
    changed, silent = rot(sound, tmp_path, damage, cases=cases)
    assert silent == []
    assert changed


def test_a_log_that_lost_its_end_is_noticed(tmp_path):
    """A write that was acknowledged and vanished with the log is missed, though the database calls itself sound."""
    store = opened(tmp_path / "memory.db")
    for number in range(5):
        store.apply([put(plain(f"{number} word "))])
    place = tmp_path / "copy"
    place.mkdir()
    for name in ("memory.db", "memory.db.lock"):
        shutil.copy(tmp_path / name, place / name)
    log = (tmp_path / "memory.db-wal").read_bytes()
    (place / "memory.db-wal").write_bytes(log[: len(log) - 8000])
    store.close()
    with closing(SqliteStore(str(place / "memory.db"))) as cut:
        assert any("writes are missing" in line for line in unhealthy(cut))
