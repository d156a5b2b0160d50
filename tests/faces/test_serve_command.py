"""`commonplace serve` and `commonplace keys`, as far as no server has to run."""

from __future__ import annotations

import pytest


def test_a_key_is_shown_once(outside):
    """The key alone is the answer; the list shows what it is called, and nothing in the data folder holds it."""
    made = outside.ok("keys", "create", "laptop", "--agent", "research-agent")
    token = made.out.strip()
    [line] = outside.ok("keys", "list").lines

    assert token.startswith("cp_")
    assert "shown only this once" in made.err
    assert "research-agent" in line
    assert "laptop" in line
    held = [path.read_bytes() for path in outside.home.rglob("*") if path.is_file()]
    assert not any(token.encode() in content or token.partition("_")[2].encode() in content for content in held)


def test_programs_get_keys_as_json(outside):
    """Create, list and revoke speak of the same key."""
    made = outside.ok("keys", "create", "ci", "--json").json
    [listed] = outside.ok("keys", "list", "--json").json["keys"]
    revoked = outside.ok("keys", "revoke", made["id"], "--json").json["revoked"]

    assert made.pop("key").startswith(f"cp_{made['id']}_")
    assert listed == made == revoked
    assert outside.ok("keys", "list").err.startswith("commonplace: there are no keys")


def test_a_key_has_a_date_and_rights_which_the_list_shows(outside):
    """Neither unless given, and both are said when it is made."""
    plain = outside.ok("keys", "create", "laptop")
    bound = outside.ok("keys", "create", "dashboard", "--expires", "2999-01-01", "--read-only")
    first, second = outside.ok("keys", "list").lines

    assert "for any agent; never expires; " in plain.err
    assert "reads only, expires 2999-01-01 00:00" in bound.err
    assert "  never expires  reads, writes  never used  any agent  laptop" in first
    assert "  expires 2999-01-01 00:00  reads  never used  any agent  dashboard" in second
    shown = outside.ok("keys", "list", "--json").json["keys"][1]
    assert (shown["expires_at"], shown["read_only"], shown["last_used_at"]) == ("2999-01-01T00:00:00Z", True, None)


@pytest.mark.parametrize("when", ["2001-01-01", "soon"])
def test_a_key_expires_at_a_date_to_come(outside, when):
    """What is no date or is over makes no key."""
    assert outside("keys", "create", "laptop", "--expires", when).code == 2
    assert outside.ok("keys", "list").lines == []


def test_an_unknown_key_cannot_be_revoked(outside):
    """It says which."""
    done = outside("keys", "revoke", "nothing")
    assert (done.code, done.err) == (1, "commonplace: there is no key 'nothing'\n")


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 101])
def test_a_key_needs_a_name(outside, name):
    """One that people can tell from others in a list."""
    assert outside("keys", "create", name).code == 2


def test_keys_belong_to_a_store(outside):
    """Another store has other keys."""
    outside.ok("keys", "create", "ci", "--store", outside.folder / "other.db")
    assert outside.ok("keys", "list").lines == []
    assert len(outside.ok("keys", "list", "--store", outside.folder / "other.db").lines) == 1


def test_a_server_without_keys_does_not_start_by_accident(outside):
    """Nobody could call it, and it says what to do."""
    done = outside("serve", "--port", "0")
    assert done.code == 4
    assert "commonplace keys create" in done.err
    assert "--no-keys" in done.err


def test_without_keys_only_this_machine_is_served(outside):
    """An address that others can reach needs keys."""
    done = outside("serve", "--no-keys", "--host", "0.0.0.0")
    assert (done.code, "'0.0.0.0'" in done.err) == (4, True)


def test_an_address_that_is_taken_is_said_in_one_sentence(outside):
    """No traceback for a port that somebody else has."""
    import socket  # noqa: PLC0415 - one test needs it

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = outside("serve", "--no-keys", "--port", port)
    assert done.code == 6
    assert done.err.startswith(f"commonplace: cannot serve at 127.0.0.1:{port}: Address already in use")


def test_a_store_with_keys_is_as_healthy_as_before(cli):
    """What a server keeps for itself is searched by nobody, and lacks no vector."""
    cli.add("The cache is Redis 7")
    cli.ok("keys", "create", "ci")
    assert "without a vector" not in cli.ok("status").out
    assert cli.ok("doctor").code == 0
