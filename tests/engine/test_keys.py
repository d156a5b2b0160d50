"""The keys of a server, on every store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from commonplace.model.changes import Put
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.server.keys import SCOPE, Keys
from stands import rows


@pytest.fixture
def keys(store, clock):
    """The keys of a store."""
    return Keys(store, clock=clock)


def test_a_key_opens_for_whom_it_was_made(keys):
    """An operator's for any agent, another for its own."""
    operator, first = keys.create("laptop")
    bound, second = keys.create("researcher", agent="research-agent")

    assert keys.holder(first) == operator
    assert operator.agent is None
    assert keys.holder(second) == bound
    assert bound.agent == "research-agent"


@rows("wrong", ["", "cp_", "cp__", "nothing", "cp_0123456789_x", "cp_\udc80_x", "\x00"])
def test_what_is_no_key_opens_nothing(keys, wrong):
    """Not even half a character raises."""
    keys.create("laptop")
    assert keys.holder(wrong) is None


def test_a_key_with_another_secret_opens_nothing(keys):
    """The id alone is no secret."""
    key, token = keys.create("laptop")
    assert keys.holder(f"cp_{key.id}_{'A' * 43}") is None
    assert keys.holder(token[:-1]) is None


def test_only_a_digest_is_kept(keys, store, clock):
    """Nothing in the store opens anything."""
    _, token = keys.create("laptop")
    where = Filter(scopes=frozenset({SCOPE}), at=clock(), states=ANY_STATE)
    [record] = store.find(where, order=Order.NEWEST, limit=10)

    assert token.split("_", 2)[2] not in repr(record)  # the secret itself may have a "_" in it
    assert len(record.value["digest"]) == 64


def test_a_revoked_key_is_gone(keys, store):
    """For every process on the store, and for good."""
    key, token = keys.create("laptop")
    keys.revoke(key.id)

    assert Keys(store).holder(token) is None
    assert keys.list() == []
    with pytest.raises(NotFound, match=key.id):
        keys.revoke(key.id)


def test_keys_are_listed_oldest_first(keys, clock):
    """By id and name."""
    for name in ("first", "second"):
        keys.create(name)
        clock.forward()
    assert [key.name for key in keys.list()] == ["first", "second"]


@pytest.mark.parametrize("agent", ["", "two\nlines"])
def test_an_agent_must_have_a_name(keys, agent):
    """What cannot name a scope cannot own one."""
    with pytest.raises(InvalidInput):
        keys.create("laptop", agent=agent)


def test_a_key_has_a_date_and_rights(keys, clock):
    """Neither unless given; a date of the past is refused."""
    tomorrow = clock() + timedelta(days=1)
    plain, _ = keys.create("laptop")
    bound, token = keys.create("dashboard", expires_at=tomorrow, read_only=True)

    assert (plain.expires_at, plain.read_only) == (None, False)
    assert (bound.expires_at, bound.read_only) == (tomorrow, True)
    assert keys.holder(token) == bound
    assert not keys.is_expired(bound)
    clock.forward(timedelta(days=1))
    assert keys.is_expired(keys.holder(token))
    with pytest.raises(InvalidInput, match="in the past"):
        keys.create("late", expires_at=clock())


def test_a_key_of_an_earlier_version_opens_as_before(keys, store):
    """It has neither date nor right in its row."""
    key, token = keys.create("laptop")
    [record] = store.find(_everything(keys), order=Order.NEWEST, limit=10)
    value = {name: record.value[name] for name in ("name", "agent", "digest")}
    store.apply([Put(record=record.replace(value=value), terms=(), expect=record.version)])

    assert keys.holder(token) == key


def test_a_use_is_written_once_a_minute(keys, store, clock):
    """By this process and by another that sees what is in the store."""
    key, token = keys.create("laptop")
    assert keys.holder(token).last_used_at is None
    assert [keys.is_use_due(key) for _ in range(2)] == [True, False]
    keys.write_use(key)
    assert keys.holder(token).last_used_at == clock()

    other = Keys(store, clock=clock)
    clock.forward(timedelta(seconds=59))
    assert not other.is_use_due(other.holder(token))
    clock.forward()
    assert other.is_use_due(other.holder(token))
    assert keys.is_use_due(key)


def _everything(keys):
    return Filter(scopes=frozenset({SCOPE}), at=keys._clock(), states=ANY_STATE)
