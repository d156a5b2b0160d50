"""The power goes at any moment: what was not brought to the platter is lost, kept or garbled, sector by sector.

A run of changes is recorded call by call; then the disk is put together as it may have been at some point of the
recording, and the store is opened from it.
"""

import random
import shutil
from bisect import bisect_right
from contextlib import closing

import disks
import pytest
from lives import after, opened, state, step, unhealthy

from commonplace.model.changes import Touch
from commonplace.stores.sqlite.store import SqliteStore

SECTOR = 512


class Recording:
    """A run of changes: every call to the disk, and after how many of them which state had been acknowledged."""

    def __init__(self, folder, *, seed, changes):
        chance, known = random.Random(seed), {}
        with disks.inserted() as disk:
            store = opened(folder / "memory.db")
            self.states, self.moments = [{}], [len(disk.log)]
            for _ in range(changes):
                step_changes, made = step(chance, known)
                store.apply(step_changes)
                known = after(known, made)
                self.states.append(known)
                self.moments.append(len(disk.log))
                store.apply([Touch(ids=tuple(known), at=store.get(next(iter(known))).created_at)])
            store.close()
            self.log = disk.log

    def allowed(self, cut):
        """What a store may say that lost power after so many calls: what was acknowledged, or what was under way."""
        last = bisect_right(self.moments, cut) - 1
        return [{}, *self.states[:1]] if last < 0 else self.states[last : last + 2]


def write(file, offset, data):
    """Write into a file that may have to grow."""
    file.extend(bytes(max(0, offset - len(file))))
    file[offset : offset + len(data)] = data


def carry_out(files, call):
    """Do to the files what a call says."""
    match call:
        case ("write", name, offset, data):
            write(files.setdefault(name, bytearray()), offset, data)
        case ("cut", name, size):
            del files.setdefault(name, bytearray())[size:]
        case ("delete", name):
            files.pop(name, None)


def half_done(files, call, chance, way):
    """Do what became of a call that had not been brought to the platter when the power went."""
    match call:
        case ("write", name, offset, data) if way != "lost":
            for start in range(0, len(data), SECTOR):
                sector, luck = data[start : start + SECTOR], chance.random()
                if luck < 0.5:
                    write(files.setdefault(name, bytearray()), offset + start, sector)
                elif luck < 0.6 and way == "garbled":
                    write(files.setdefault(name, bytearray()), offset + start, chance.randbytes(len(sector)))
        case ("cut", name, _) if way != "lost" and chance.random() < 0.5:
            carry_out(files, call)


def after_the_cut(log, cut, chance):
    """The files as they may be when the power is back."""
    files, pending = {}, []
    for call in log[:cut]:
        if call[0] == "sync":
            for done in [other for other in pending if other[1] == call[1]]:
                carry_out(files, done)
            pending = [other for other in pending if other[1] != call[1]]
        elif call[0] == "delete":
            carry_out(files, call)
            pending = [other for other in pending if other[1] != call[1]]
        else:
            pending.append(call)
    way = chance.choice(["lost", "some", "garbled"])
    for call in pending:
        half_done(files, call, chance, way)
    return files


def cut_power(folder, *, seed, changes, cuts):
    """Record a run, cut the power at random points of it, and look at the store each time."""
    (folder / "recorded").mkdir()
    recording, chance = Recording(folder / "recorded", seed=seed, changes=changes), random.Random(seed)
    for number in range(cuts):
        cut = chance.randrange(1, len(recording.log) + 1)
        place = folder / "back"
        place.mkdir()
        for name, data in after_the_cut(recording.log, cut, chance).items():
            (place / name).write_bytes(data)
            (place / name).chmod(0o600)
        with closing(SqliteStore(str(place / "memory.db"))) as store:
            assert state(store) in recording.allowed(cut), (seed, number, cut)
            assert [line for line in unhealthy(store) if "erasure" not in line] == [], (seed, number, cut)
        shutil.rmtree(place)


def test_no_acknowledged_write_is_lost_in_a_power_cut(tmp_path):
    """Whenever the power goes, the store opens, is sound, and holds every acknowledged write."""
    cut_power(tmp_path, seed=1, changes=25, cuts=250)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_no_acknowledged_write_is_lost_in_many_power_cuts(tmp_path, seed):
    """The same, thousands of times."""
    cut_power(tmp_path, seed=seed, changes=50, cuts=400)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_a_power_cut_while_a_store_is_made_leaves_a_store_that_can_be_made(tmp_path, seed):
    """From the first call on, whatever is left opens as an empty store."""
    (tmp_path / "recorded").mkdir()
    recording, chance = Recording(tmp_path / "recorded", seed=seed, changes=0), random.Random(seed)
    for cut in range(1, recording.moments[0] + 1, 3):
        (tmp_path / "back").mkdir()
        for name, data in after_the_cut(recording.log, cut, chance).items():
            (tmp_path / "back" / name).write_bytes(data)
        with closing(opened(tmp_path / "back" / "memory.db")) as store:
            assert state(store) == {}, cut
        shutil.rmtree(tmp_path / "back")
