"""What only the maintenance of PostgreSQL finds and repairs."""

from __future__ import annotations

import pytest

from commonplace.model.errors import StoreDamaged
from commonplace.stores.postgres.upkeep import PostgresMaintenance
from commonplace.stores.sqlite.store import SqliteStore
from household import furnish, whole

pytestmark = pytest.mark.postgres

DAMAGE = {
    "a text": ("update record set content = content || '!' where row = (select min(row) from record)", "hash is wrong"),
    "a version": ("update version set ref = 'x' where row = (select min(row) from version)", "hash is wrong"),
    "an entry": ("update entry set bucket = bucket + 4 where id = (select min(id) from entry)", "not what is stored"),
    "a length": ("update entry set length = 99 where id = (select min(id) from entry)", "not what is stored"),
    "a count": ("update tally set texts = texts + 1 where ctid = (select min(ctid) from tally)", "miscounted"),
    "a lost count": ("delete from tally", "miscounted"),
    "tags": ("update record set tagged = '{x}' where row = (select min(row) from record)", "not what is stored"),
    "a vector": (
        "update embedding set data = '[1,2]' where entry = (select min(entry) from embedding)",
        "wrong length",
    ),
}


@pytest.fixture
def pg(new_postgres, make):
    """A store with everything in it."""
    store = new_postgres()
    furnish(store, make)
    return store


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_mended(pg, damage):
    """Whatever does not fit is named; after a repair the store is sound again."""
    sql, said = DAMAGE[damage]
    with pg.using() as db:
        db.execute(sql)
    assert [said in problem.what for problem in PostgresMaintenance(pg).check()] == [True]
    repair = PostgresMaintenance(pg).repair()
    assert [*repair.done, *repair.lost]  # what has no file to be read again from is named as lost
    assert PostgresMaintenance(pg).check() == []


def test_what_lost_its_words_is_named(pg):
    """Only whoever wrote a text knows what it is found by; that it is not found is said."""
    with pg.using() as db:
        db.execute("delete from entry where id = (select min(id) from entry)")
    [problem] = PostgresMaintenance(pg).check()
    assert (problem.fixable, "cannot be found by their words" in problem.what) == (False, True)


def test_a_restore_that_fails_leaves_everything_as_it_was(pg, tmp_path):
    """It is one transaction: half a restore is none."""
    PostgresMaintenance(pg).backup(str(tmp_path / "copy.db"))
    spoilt = SqliteStore(str(tmp_path / "copy.db"))
    with spoilt.writing(durable=True) as db:
        db.execute("update record set tags = 'no json' where row = (select max(row) from record)")
    spoilt.close()
    before = whole(pg)
    with pytest.raises(StoreDamaged, match=r"copy\.db"):
        PostgresMaintenance(pg).restore(str(tmp_path / "copy.db"))
    assert whole(pg) == before
