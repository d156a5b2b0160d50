"""Stores that were written before the rooms: they open, are whole, and answer as they did then."""

import gzip
import itertools
import json
import math
import os
import sys

import pytest

from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.postgres.upkeep import PostgresMaintenance
from commonplace.stores.rows import FIELDS
from commonplace.stores.sql.items import SqlItemCopier
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance
from stands import POSTGRES, forget

OLD = os.path.join(os.path.dirname(__file__), "..", "fixtures", "old_stores")
sys.path.insert(0, OLD)

from old_answers import answers  # noqa: E402 - it lies beside the stores

_numbers = itertools.count()


OLD_FIELDS = 23


def expected(sort):
    """What the old code answered; the digest of all items is the same while a record has no more fields than then."""
    with open(os.path.join(OLD, "answers.json"), encoding="utf-8") as file:
        answered = json.load(file)[sort]
    return {key: answer for key, answer in answered.items() if key != "digest" or len(FIELDS) == OLD_FIELDS}


def test_a_sqlite_file_of_schema_5_answers_as_it_did(tmp_path):
    """What the old code wrote into a file is whole, and every answer is the one that the old code gave."""
    path = tmp_path / "memory.db"
    with open(os.path.join(OLD, "sqlite_5.db.gz"), "rb") as file:
        path.write_bytes(gzip.decompress(file.read()))
    path.chmod(0o600)
    store = SqliteStore(os.fspath(path))
    assert SqliteMaintenance(store).check() == []
    compare(
        answers(store, SqlItemCopier(store).items(), floor=store.events_floor, unembedded=store.list_unembedded),
        expected("sqlite"),
    )
    store.close()


@pytest.mark.postgres
def test_a_postgresql_schema_of_number_6_answers_as_it_did():
    """What the old code wrote into a database is whole, and every answer is the one that the old code gave."""
    schema = f"old_{os.getpid()}_{next(_numbers)}"
    forget(PostgresStore(os.environ[POSTGRES], schema=f"{schema}_first"))  # the extension is there from now on
    with open(os.path.join(OLD, "postgres_6.sql"), encoding="utf-8") as file:
        dump = file.read().replace("old_store", schema)
    store = PostgresStore(os.environ[POSTGRES], schema=f"{schema}_other", clock="caller")
    with store.using() as db:
        db.execute(dump.encode(), prepare=False)
        db.execute("reset all")
    forget(store)
    store = PostgresStore(os.environ[POSTGRES], schema=schema, clock="caller")
    assert PostgresMaintenance(store).check() == []
    compare(
        answers(store, SqlItemCopier(store).items(), floor=store.events_floor, unembedded=store.list_unembedded),
        expected("postgres"),
    )
    forget(store)


def compare(found, wanted, at="answers"):
    """Equal; of a recall its best hit, since how the others are weighed changes."""
    if at.startswith(("answers.recall.", "answers.recall_as_of.")):
        assert [one["id"] for one in found[:1]] == [one["id"] for one in wanted[:1]], at
    elif isinstance(wanted, float):
        assert math.isclose(found, wanted, rel_tol=1e-9), at
    elif isinstance(wanted, dict):  # a later field may have come
        for key, value in wanted.items():
            compare(found[key], value, f"{at}.{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), at
        for place, pair in enumerate(zip(found, wanted, strict=True)):
            compare(*pair, f"{at}[{place}]")
    else:
        assert found == wanted, at
