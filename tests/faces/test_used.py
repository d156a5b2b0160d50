"""`commonplace used`: what a session was shown, and what it made of it."""

from __future__ import annotations

import pytest

from commonplace.app import open_app
from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind


@pytest.fixture
def session(cli, pnpm):
    """A session that was shown a record and cited it."""
    cli.ok("brief", "--task", "npm", "--session", "s1")
    with open_app() as place:
        turns = [
            Turn(ref="1", text="install it", speaker="user"),
            Turn(ref="2", text=f"By memory://{pnpm['id'][:10]} I take pnpm.", speaker="assistant"),
        ]
        place.memory.index(DocumentKind.SESSION, "s1", turns)
    return "s1"


def test_what_was_cited_is_told_with_its_turn(cli, pnpm, session):
    """A line for each item, and the counts."""
    head, line, counts = cli.ok("used", session).lines

    assert head.startswith("Session s1: 1 brief: ")
    assert line.startswith(f"cited   {pnpm['id']} version 1  Use pnpm, not npm")
    assert line.endswith("(turn #2)")
    assert counts == "1 shown, 1 cited, 0 echoed, 0 unused, 0 cited unshown"


def test_programs_get_the_same(cli, pnpm, session):
    """State, versions and turns of each item."""
    answer = cli.ok("used", session, "--json").json
    [item] = answer["items"]

    assert (item["id"], item["state"], item["cited_in"]) == (pnpm["id"], "cited", ["2"])
    assert answer["counts"]["cited"] == 1
    assert len(answer["briefs"]) == 1


def test_a_changed_record_is_told_as_such(cli, pnpm, session):
    """The version that was shown, and the one that is there."""
    cli.ok("record", "update", pnpm["id"], "Use bun")

    assert "version 1, now 2  Use pnpm" in cli.ok("used", session).out
    cli.ok("record", "delete", pnpm["id"], "--yes")
    assert "since forgotten" in cli.ok("used", session).out


def test_an_unknown_session_is_not_found(cli):
    """One sentence, exit code 1."""
    done = cli("used", "s9")

    assert done.code == 1
    assert "nothing is known of session 's9'" in done.err
