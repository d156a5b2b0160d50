"""``commonplace index``, as people and programs call it."""

from __future__ import annotations

import json

import pytest


def said(text, role="user"):
    """One line of a transcript."""
    return json.dumps({"role": role, "content": text, "time": "2026-01-01T09:00:00Z"}) + "\n"


@pytest.fixture
def session(cli):
    """Write a transcript of these messages."""

    def session(name, *texts):
        path = cli.folder / "work" / f"{name}.jsonl"
        path.write_text("".join(texts))
        return path

    return session


def test_a_session_can_be_asked_at_once(cli, session):
    """Index it, and recall finds it with its reference."""
    done = cli.ok("index", session("0b1c", said("the deploy hangs on a stale lock")))

    assert done.out == "Indexed 1 session: 1 chunk (1 new)\n"
    assert cli.ok("recall", "stale lock", "--format", "json").json["hits"][0]["reference"] == "session:0b1c#1"
    assert cli.ok("index", "0b1c.jsonl").out == "Indexed nothing new: 0 chunks (1 unchanged)\n"


def test_programs_get_everything(cli, session):
    """Files, troubles, redactions and what was left out."""
    session("a", said("hello there"), "{\n", said("more"))
    done = cli("index", "a.jsonl", "--session", "mine", "--json")

    assert done.code == 1
    [file], [trouble] = done.json["files"], done.json["troubles"]
    assert (file["name"], file["kind"], file["state"], file["chunks"]) == ("mine", "session", "new", 2)
    assert (trouble["path"], trouble["line"]) == ("a.jsonl", 2)
    assert "a.jsonl:2: is not JSON" in done.err


def test_secrets_are_told_without_repeating_them(cli, session):
    """How many, of which kind."""
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    done = cli.ok("index", session("a", said(f"the token is {secret}")))

    assert "1 secret (github-" in done.err
    assert secret not in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.jsonl"], "there is no file 'none.jsonl'"),
        (["config.txt"], "is neither a session"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_is_one_sentence(cli, arguments, sentence):
    """Exit code 2, and no traceback."""
    done = cli("index", *arguments)

    assert (done.code, sentence in done.err, len(done.err.splitlines())) == (2, True, 1)


def test_without_a_project_there_is_nothing_to_index_into(outside):
    """Transcripts belong to a project."""
    (outside.folder / "work" / "a.jsonl").write_text(said("x"))

    assert "there is no project here" in outside("index", "a.jsonl").err


def test_a_memory_that_is_off_takes_nothing(cli, session):
    """Forbidden, with the way to switch it on."""
    cli.ok("disable", "--scope", "project")
    done = cli("index", session("a", said("x")))

    assert (done.code, "switched off" in done.err) == (4, True)
