"""Databases and logs that are damaged: what is read is what was written, and what can be read survives a repair."""

from __future__ import annotations

import contextlib
import random
from contextlib import closing

import apsw

from commonplace.app import maintenance_of
from commonplace.model.errors import CommonplaceError
from commonplace.model.queries import ANY_STATE, DocumentFilter, Order
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import salvage
from commonplace.text.words import plan
from faults import Result
from household import furnish
from stands import Clock, Maker

PAGE = 8192

#: What names a row of each table: whoever reads it in the damaged file must find it in the repaired one.
ROWS = {
    "record": "select r.id, r.version, r.content from record r where rowid = ?",
    "version": "select v.id, v.version, v.content from version v where rowid = ?",
    "document": "select kind, name, content from document where rowid = ?",
    "chunk": "select text, ref, speaker from chunk where rowid = ?",
    "event": "select seq, what, at from event where rowid = ?",
    "audit": "select seq, verb, digest from audit where rowid = ?",
}
_EVERY = dict.fromkeys(ROWS, range(2_000))


def flip(data, chance):
    """One bit."""
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def zero(data, chance):
    """A page of zeros."""
    start = chance.randrange(len(data) // PAGE) * PAGE
    data[start : start + PAGE] = bytes(PAGE)


def garble(data, chance):
    """A sector of garbage."""
    start = chance.randrange(len(data) // 512) * 512
    data[start : start + 512] = chance.randbytes(512)


def header(data, chance):
    """The first bytes of a page."""
    start = chance.randrange(len(data) // PAGE) * PAGE
    data[start : start + 16] = chance.randbytes(16)


def shorten(data, chance):
    """The end is missing."""
    del data[chance.randrange(len(data) // 2, len(data)) :]


DAMAGES = (flip, zero, garble, header, shorten)


def sound_store(folder):
    """Make a store with everything in it; return its file, whole, and what names each of its rows."""
    path = folder / "sound.db"
    with closing(SqliteStore(str(path))) as store:
        furnish(store, Maker(Clock()), records=60)
        store.scrub()
    return path.read_bytes(), _readable(path, {name: range(1, 2_000) for name in ROWS})


def repairs_of_damaged_files(folder, tries):
    """Damage a file, repair it, and look for every row that could be read in the damaged file."""
    result = Result("a repair of a damaged file")
    sound, truth = sound_store(folder)
    numbers = {name: list(rows) for name, rows in truth.items()}
    for number in range(tries):
        chance = random.Random(number)
        damage, data, path = DAMAGES[number % len(DAMAGES)], bytearray(sound), folder / f"{number}.db"
        damage(data, chance)
        path.write_bytes(data)
        before = _readable(path, numbers)
        what = f"{damage.__name__} {number}"
        try:
            _repair(path, result, what)
            after = {name: set(rows.values()) for name, rows in _readable(path, _EVERY).items()}
            after["version"] |= after["record"]  # of a record whose last version is lost the one before is the last
            for name in ROWS:
                held = {row for number, row in before[name].items() if row == truth[name][number]} - after[name]
                result.expect(not held, f"{what}: {len(held)} rows of {name} could be read and are gone: {held}")
        except Exception as error:  # noqa: BLE001 - whatever it is, a repair must not end in it
            result.expect(False, f"{what}: {type(error).__name__}: {error}")
        result.tries += 1
        for left in folder.glob(f"{number}.db*"):
            left.unlink()
    return result


def reads_of_damaged_files(folder, tries):
    """Damage a file, read all of it: every text is what was written, and what is missing is told."""
    result = Result("reads of a damaged file")
    sound, _ = sound_store(folder)
    truth = _said(folder / "sound.db")[0]
    for number in range(tries):
        chance = random.Random(number)
        damage, data, path = DAMAGES[number % len(DAMAGES)], bytearray(sound), folder / f"read-{number}.db"
        damage(data, chance)
        path.write_bytes(data)
        what = f"{damage.__name__} {number}"
        try:
            said, told = _said(path)
            result.expect(said <= truth, f"{what}: altered: {list(said - truth)[:2]}")
            result.expect(said == truth or told, f"{what}: {len(truth - said)} texts are missing without a word")
        except Exception as error:  # noqa: BLE001 - whatever it is, a read must not end in it
            result.expect(False, f"{what}: {type(error).__name__}: {error}")
        result.tries += 1
        for left in folder.glob(f"read-{number}.db*"):
            left.unlink()
    return result


def _said(path):
    """Everything that a store says, with all versions; and whether it said that something is lost."""
    make, said, told = Maker(Clock()), set(), False
    try:
        with closing(SqliteStore(str(path))) as store:
            everything = make.where().replace(scopes=frozenset(store.scopes()), states=ANY_STATE)
            documents = DocumentFilter(scopes=everything.scopes)
            asks = (
                lambda: [(r.id, r.version, r.content) for r in store.find(everything, order=Order.ID, limit=-1)],
                lambda: [
                    (r.id, r.version, r.content)
                    for r in store.find(everything.replace(versions=True), order=Order.ID, limit=-1)
                ],
                lambda: [(d.name, d.content, d.digest) for d in store.documents(documents, limit=-1)],
                lambda: [(c.document, c.seq, c.text) for c in store.chunks(documents, limit=-1)],
                lambda: [
                    (m.record.id, m.record.version, m.record.content)
                    for m in store.match(everything, plan("the deploy of a record"), limit=50)
                    if m.record
                ],
            )
            for number, ask in enumerate(asks):
                try:
                    found = ask()
                    said |= set(found) if number < len(asks) - 1 else {one for one in found if one not in said}
                except CommonplaceError:
                    told = True
            told = told or bool(store.take_notices()) or bool(maintenance_of(store).check())
    except CommonplaceError:
        told = True
    return said, told


def _repair(path, result, what):
    """Repair a file as ``doctor --fix`` does, and check it again; damage that stays is a violation."""
    try:
        SqliteStore(str(path)).close()
    except CommonplaceError:
        salvage(str(path))
    with closing(SqliteStore(str(path))) as store:
        maintenance = maintenance_of(store)
        if maintenance.check():
            maintenance.repair()
        left = [problem.what for problem in maintenance.check()]
        result.expect(not left, f"{what}: after a repair: {left}")


def _readable(path, numbers):
    """Every row that can be read by its number, without asking any index."""
    found = {name: {} for name in ROWS}
    with closing(apsw.Connection(str(path))) as db:
        for name, sql in ROWS.items():
            for number in numbers[name]:
                with contextlib.suppress(apsw.Error, UnicodeError):
                    for row in db.execute(sql, (number,)).fetchall():
                        found[name][number] = row
    return found
