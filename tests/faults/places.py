"""Databases that are removed, replaced or cut short while programs have them open, or between two of them."""

from __future__ import annotations

import contextlib
import os
import shutil
from contextlib import closing

from commonplace.app import maintenance_of
from commonplace.model.errors import CommonplaceError, StoreReplaced
from commonplace.stores.sqlite.store import SqliteStore
from faults import Result
from stands import Clock, Maker

SIDES = ("", "-wal", "-shm", ".lock")


def _remove(path, _tmp):
    """Somebody deletes the database, with all that lies beside it."""
    for side in SIDES:
        (path.parent / f"{path.name}{side}").unlink(missing_ok=True)


def _remove_main(path, _tmp):
    """Somebody deletes the database alone, and its log stays."""
    path.unlink()


def _replace_by_backup(path, tmp):
    """Somebody moves a backup, which was made before, over the database; the log of the old one stays."""
    shutil.copy(tmp / "backup.db", tmp / "new.db")
    os.replace(tmp / "new.db", path)


def _replace_by_another(path, tmp):
    """Somebody moves another store there."""
    shutil.copy(tmp / "other.db", tmp / "new.db")
    os.replace(tmp / "new.db", path)


WAYS = (_remove, _remove_main, _replace_by_backup, _replace_by_another)


def texts(path):
    """What a store holds for whoever opens it now."""
    make = Maker(Clock())
    with closing(SqliteStore(str(path))) as store:
        return {record.content for record in store.find(make.where(), order="id", limit=-1)}


def replaced_stores(folder, tries):
    """Replace a store under a program, or after one was killed: no write vanishes, no old log is replayed."""
    result = Result("a store that is removed or replaced while it is open")
    for number in range(tries):
        way, killed, tmp = WAYS[number % len(WAYS)], number // len(WAYS) % 2, folder / str(number)
        tmp.mkdir()
        try:
            (_replaced_after_a_kill if killed else _replaced_while_open)(tmp, way, result, f"{way.__name__} {number}")
        except CommonplaceError as error:
            result.expect(False, f"{way.__name__} {number}: {type(error).__name__}: {error}")
        result.tries += 1
        shutil.rmtree(tmp)
    return result


def _filled(tmp):
    """A store with one text in a backup, one that came after it, and another store."""
    make = Maker(Clock())
    store = SqliteStore(str(tmp / "memory.db"))
    store.apply([make.put(make("in the backup"))])
    maintenance_of(store).backup(str(tmp / "backup.db"))
    store.apply([make.put(make("after the backup"))])
    with closing(SqliteStore(str(tmp / "other.db"))) as other:
        other.apply([make.put(make("of another store"))])
    return store, make


def _replaced_while_open(tmp, way, result, what):
    store, make = _filled(tmp)
    path = tmp / "memory.db"
    way(path, tmp)
    sure, refused = set(), 0
    for number in range(4):
        try:
            store.apply([make.put(make(f"write {number}"))])
            sure.add(f"write {number}")
        except StoreReplaced:
            refused += 1
    result.expect(refused == 1, f"{what}: {refused} writes were refused with a sentence, and one should be")
    with contextlib.suppress(StoreReplaced):
        store.require_current()
        result.expect(False, f"{what}: a check of the store does not tell that it was replaced")
    store.close()
    held = texts(path)
    result.expect(sure <= held, f"{what}: acknowledged writes are gone: {sure - held}")
    own = {_replace_by_backup: {"in the backup"}, _replace_by_another: {"of another store"}}.get(way, set())
    result.expect(held == sure | own, f"{what}: the store holds {held}")


def _replaced_after_a_kill(tmp, way, result, what):
    store, make = _filled(tmp)
    path, dead = tmp / "memory.db", tmp / "dead"
    dead.mkdir()
    for side in ("", "-wal", ".lock"):  # as a killed process leaves them
        shutil.copy(f"{path}{side}", dead / f"{path.name}{side}")
    store.close()
    way(dead / path.name, tmp)
    own = {_replace_by_backup: {"in the backup"}, _replace_by_another: {"of another store"}}.get(way, set())
    held = texts(dead / path.name)
    result.expect(held == own, f"{what}: the store holds {held}")
    with closing(SqliteStore(str(dead / path.name))) as store:
        store.apply([make.put(make("one more"))])
    result.expect(texts(dead / path.name) == own | {"one more"}, f"{what}: a later write is gone")


# A log that is cut


def lost_ends_of_logs(folder, tries):
    """Cut or empty the log of a killed process: what is missing is said until a person accepts it."""
    result = Result("a log that lost its end, and writes after that")
    for number in range(tries):
        tmp = folder / str(number)
        tmp.mkdir()
        path = _killed_store(tmp, writes=12)
        log = tmp / "memory.db-wal"
        data = log.read_bytes()
        share = number % 4 / 4
        log.write_bytes(data[: int(len(data) * share)])
        make = Maker(Clock())
        with closing(SqliteStore(str(path))) as store:
            found = len(store.find(make.where(), order="id", limit=-1))
            for later in range(10):
                store.apply([make.put(make(f"later {later}"))])
            said = [problem.what for problem in maintenance_of(store).check()]
            told = any("missing" in what or "was here before" in what for what in said)
            result.expect(told or found == 12, f"cut {number}: {12 - found} writes are gone, and no check says so")
            maintenance_of(store).accept_loss()
            said = [problem.what for problem in maintenance_of(store).check()]
            result.expect(said == [], f"cut {number}: after it was accepted: {said}")
        result.tries += 1
        shutil.rmtree(tmp)
    return result


def _killed_store(tmp, *, writes):
    """The files of a store whose process was killed after some writes."""
    whole, make = tmp / "whole", Maker(Clock())
    whole.mkdir()
    store = SqliteStore(str(whole / "memory.db"))
    for number in range(writes):
        store.apply([make.put(make(f"before {number}"))])
    for side in ("", "-wal", ".lock"):
        shutil.copy(whole / f"memory.db{side}", tmp / f"memory.db{side}")
    store.close()
    return tmp / "memory.db"
