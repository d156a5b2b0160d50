"""Empty stores, as many as an example wants, of every sort."""

from __future__ import annotations

import os

import pytest

from commonplace.stores.sqlite.store import SqliteStore
from stands import NO_POSTGRES, POSTGRES, forget, postgres


def sqlite():
    """A new one in memory for each."""
    yield lambda: SqliteStore(":memory:")


def one_postgres():
    """The same one for all, emptied before each: to make one takes longer than an example."""
    if not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    store = postgres(None)

    def fresh():
        with store.writing() as db:
            db.execute("delete from scope")
            db.execute("delete from setting")
        return store

    yield fresh
    forget(store)


@pytest.fixture(
    scope="module",
    params=[sqlite, pytest.param(one_postgres, marks=pytest.mark.postgres)],
    ids=lambda maker: maker.__name__,
)
def fresh(request):
    """Make empty stores of one sort; every sort there is, one after the other."""
    yield from request.param()
