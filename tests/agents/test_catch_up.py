"""Memories whose embedder could not be asked get their vectors when an agent starts, some at a time."""

from __future__ import annotations

import pytest

from commonplace.model.records import Kind
from commonplace.roles.dialect import parse
from commonplace.roles.memory import CATCH_UP, role_memory
from loopback import LoopbackServer, fails


@pytest.fixture
def server():
    """An embedder that answers, unless it is told to fail."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def held(tmp_path, server):
    """The memory of a role whose embedder is at an address."""
    embeddings = {"model": "embed", "base_url": server.base_url}
    role = parse({"name": "a", "role": "x", "memory": {"embeddings": embeddings}}, file="role.yaml")
    with role_memory(role, env={"COMMONPLACE_HOME": str(tmp_path), "OPENAI_API_KEY": "k"}) as held:
        yield held


def remembered(held, server, count):
    """Remember some things while the embedder fails."""
    server._embeddings += [fails(400, "no")] * 3 * count
    for number in range(count):
        held.memory().remember(f"fact {number}", kind=Kind.SEMANTIC, category="facts")
    server._embeddings.clear()
    server.requests.clear()


def test_what_lacks_a_vector_gets_one_and_is_found_by_it(held, server):
    """The count is told; a second time there is nothing to do, and nobody is asked."""
    remembered(held, server, 3)
    told = []
    assert held.catch_up(notify=told.append) == 3
    assert sorted(server.embedded[-1].texts) == ["fact 0", "fact 1", "fact 2"]
    server.requests.clear()
    assert held.catch_up(notify=told.append) == 0
    assert (server.requests, told) == ([], [])


def test_an_empty_memory_asks_nobody(held, server):
    """A first start costs nothing."""
    assert held.catch_up(notify=print) == 0
    assert server.embedded == []


def test_no_more_than_a_bound_is_done_at_a_start(held, server):
    """The rest has its turn the next time."""
    remembered(held, server, 1)
    held.embedder.embed(["x"])
    memory = held.memory()
    embedder, memory.embedder = memory.embedder, None
    for number in range(CATCH_UP + 10):
        memory.remember(f"more {number}", kind=Kind.SEMANTIC, category="facts")
    memory.embedder = embedder
    assert held.catch_up(notify=print) == CATCH_UP
    assert held.catch_up(notify=print) == 11


def test_an_embedder_that_still_fails_is_told_and_tried_the_next_time(held, server):
    """The agent starts all the same."""
    remembered(held, server, 1)
    server._embeddings += [fails(400, "still not")] * 3
    told = []
    assert held.catch_up(notify=told.append) == 0
    assert told[0].startswith("older memories are found by their words alone: ")
    server._embeddings.clear()
    assert held.catch_up(notify=told.append) == 1
