"""Wrong keys are slowed down, right ones have a rate; the clock is moved by hand."""

from __future__ import annotations

import pytest

from commonplace.engine.throttling import FREE_TRIES, LONGEST_SECONDS, RateLimit, WrongKeys
from inside import Inside, Ticks

PATH = "/api/v1/memory/namespaces"


@pytest.fixture
def inside(tmp_path):
    """Start servers whose clock stands still."""
    started = []

    def inside(**settings):
        started.append(Inside(tmp_path, **settings))
        return started[-1]

    yield inside
    for server in started:
        server.stop()


def wrong(server, times):
    """Send wrong keys, and return the answers."""
    with server.http() as call:
        return [call.get(PATH, headers={"X-API-Key": f"cp_0123456789_{n}"}) for n in range(times)]


def test_wrong_keys_make_their_sender_wait_twice_as_long_each_time(inside):
    """The first handful is answered, then every further try doubles the wait."""
    server = inside()
    assert [answer.status_code for answer in wrong(server, FREE_TRIES + 1)] == [401] * FREE_TRIES + [429]
    waits = []
    for _ in range(4):
        [refused] = wrong(server, 1)
        assert (refused.status_code, refused.json()["error"]) == (429, "TOO_MANY_WRONG_KEYS")
        waits.append(int(refused.headers["retry-after"]))
        server.ticks.forward(waits[-1])
        assert wrong(server, 1)[0].status_code == 401
    assert waits == [1, 2, 4, 8]


def test_a_key_in_use_is_not_slowed_by_wrong_keys_of_its_address(inside):
    """Clients behind one proxy have one address; a revoked key loses that right with its next request."""
    server = inside()
    key, token = server.keys.create("laptop")
    with server.http(token) as call:
        assert call.get(PATH).status_code == 200
        wrong(server, FREE_TRIES)
        assert call.get(PATH).status_code == 200
        server.keys.revoke(key.id)
        assert [call.get(PATH).status_code for _ in range(2)] == [401, 429]


def test_a_new_key_waits_with_the_address_that_guesses(inside):
    """Nobody can tell it from a guess without looking."""
    server = inside()
    wrong(server, FREE_TRIES)
    with server.http(server.keys.create("laptop")[1]) as call:
        assert call.get(PATH).status_code == 429
        assert call.get("/healthz").status_code == 200
        server.ticks.forward(1)
        assert call.get(PATH).status_code == 200


def test_a_request_without_a_key_guesses_nothing(inside):
    """It is refused as before, however often."""
    server = inside()
    with server.http() as call:
        assert {call.get(PATH).status_code for _ in range(FREE_TRIES * 2)} == {401}


def test_a_key_has_a_rate_and_others_have_theirs(inside):
    """Two seconds' worth at once, then as many a second as was set."""
    server = inside(rate=3)
    with server.http(server.keys.create("busy")[1]) as busy, server.http(server.keys.create("other")[1]) as other:
        assert [busy.get(PATH).status_code for _ in range(7)] == [200] * 6 + [429]
        refused = busy.get(PATH)
        assert (refused.json()["error"], refused.headers["retry-after"]) == ("RATE_LIMITED", "1")
        assert refused.json()["message"] == refused.json()["detail"]
        assert other.get(PATH).status_code == 200
        server.ticks.forward(1)
        assert [busy.get(PATH).status_code for _ in range(4)] == [200] * 3 + [429]


def test_a_large_body_is_one_request(inside):
    """Its key is checked before it is read and after, and counted once."""
    server = inside(rate=1)
    body = {"query": "owls " * 20_000}
    with server.http(server.keys.create("writer")[1]) as call:
        assert [call.post("/v1/records/recall", json=body).status_code != 429 for _ in range(3)] == [True, True, False]


def test_a_rate_of_nothing_is_no_rate(inside):
    """0 turns it off."""
    server = inside(rate=0)
    with server.http(server.keys.create("busy")[1]) as busy:
        assert {busy.get(PATH).status_code for _ in range(50)} == {200}


def test_what_is_remembered_of_callers_is_bounded():
    """A flood from many addresses drops the oldest of them, and the longest wait has an end."""
    ticks = Ticks()
    waits = WrongKeys(clock=ticks, names_max=3)
    for peer in "abcd":
        for _ in range(FREE_TRIES + 20):
            waits.count_wrong(peer)
    assert [waits.seconds_left(peer, "x") for peer in "abcd"] == [0, *[LONGEST_SECONDS] * 3]
    rate = RateLimit(1, clock=ticks, names_max=2)
    taken = [rate.take(name) for name in ("a", "a", "a", "b", "c", "a")]
    assert taken == [0, 0, 1, 0, 0, 0]


def test_an_address_is_forgiven_after_a_while():
    """A person who mistyped a key yesterday starts anew."""
    ticks = Ticks()
    waits = WrongKeys(clock=ticks)
    for _ in range(FREE_TRIES):
        waits.count_wrong("a")
    ticks.forward(901)
    waits.count_wrong("a")
    assert waits.seconds_left("a", "x") == 0
