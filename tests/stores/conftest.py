"""The stores of the conformance suite: those of every test, and the one that has an index beside its records."""

import os

import pytest

from commonplace.stores.lance.store import LanceStore
from stands import STORES, stores_of


def lance(folder):
    """A store with an index in LanceDB, which is built anew as soon as one vector has changed."""
    return LanceStore(os.fspath(folder / "memory.lance"), tail_least=0)


@pytest.fixture(params=[*STORES, lance], ids=lambda maker: maker.__name__)
def new_store(request, tmp_path_factory):
    """Make stores of one sort, as many as a test wants; every sort there is, one after the other."""
    yield from stores_of(request.param, tmp_path_factory)
