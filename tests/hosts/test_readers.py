"""Transcripts of coding agents are read as what was said in them, and nothing else."""

from __future__ import annotations

import json
import subprocess
import tracemalloc

import pytest

from commonplace.hosts.registry import HostTranscript, get_host
from commonplace.hosts.transcripts import TranscriptLines
from commonplace.records.session_lines import Header, read
from hosts import recorded
from stands import rows

SAID = "Use pnpm, not npm, in this repo."
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
WRITERS = {
    "claude-code": recorded.claude, "codex": recorded.codex, "pi": recorded.pi, "gemini": recorded.gemini,
    "opencode": recorded.opencode,
}  # fmt: skip
SPOKEN = {
    "claude-code": [("user", SAID), ("assistant", "Installing.\n-> Bash: pnpm install"), ("tool", recorded.RESULT)],
    "codex": [("user", SAID), ("assistant", '-> bash: ["pnpm", "install"]'), ("tool", recorded.RESULT),
              ("assistant", "Installed.")],
    "pi": [("user", SAID), ("assistant", "Yes.\n-> bash: pnpm install"), ("tool", recorded.RESULT),
           ("tool", "$ git status\nclean")],
    "gemini": [("user", SAID), ("assistant", "Installing.\n-> bash: pnpm install"), ("tool", recorded.RESULT)],
    "opencode": [("user", SAID), ("assistant", "-> bash: pnpm install\nInstalled."), ("tool", recorded.RESULT)],
}  # fmt: skip
EVERY = pytest.mark.parametrize("host", list(WRITERS))


def found(person, host, session="s1"):
    """The transcript as the host's module finds it on disk."""
    return next(one for one in get_host(host).history(person.env) if session[:8] in (one.session or one.path))


def spoken(person, host):
    """Who said what, as the index takes it."""
    said = [
        read(json.dumps(line).encode(), first=not n) for n, line in enumerate(get_host(host).lines(found(person, host)))
    ]
    return [(speaker, text.strip()) for one in said[1:] for speaker, text in one.spoken], said[0]


@EVERY
def test_a_transcript_says_what_was_said_and_nothing_else(person, host):
    """No thinking, no reminders, no summaries, no subagents, nothing that memory or the program has put there."""
    WRITERS[host](person, "s1", SAID)
    said, header = spoken(person, host)
    assert said == SPOKEN[host]
    assert isinstance(header, Header)
    assert (header.session, header.cwd) == ("s1", str(person.work))


@pytest.mark.parametrize("host", ["claude-code", "codex", "pi", "gemini"])
def test_lines_that_cannot_be_read_are_passed_over(person, host):
    """Half a line, a foreign one, bytes that are no text and nesting without end cost nothing but themselves."""
    path = WRITERS[host](person, "s1", SAID)
    before = path.read_bytes().splitlines(keepends=True)
    rubbish = [
        b"[1, 2]\n",
        b"null\n",
        b"\xff\xfe\n",
        b"{" * 9 + b"\n",
        b"[" * 100_000 + b"\n",
        b'{"type": "user"}\n',
        b'{"type": ["user"], "id": {}, "payload": [], "message": [], "$set": {"messages": [{"type": {}}]}}\n',
        b"\n",
    ]
    path.write_bytes(b"".join([before[0], *rubbish, *before[1:], b'{"type": "user", "message": {"ro']))
    assert spoken(person, host)[0] == SPOKEN[host]


def test_a_transcript_is_never_held_whole(person):
    """Of forty megabytes not even four are in memory at any time."""
    line = {"type": "user", "sessionId": "s1", "cwd": "/x", "message": {"role": "user", "content": "word " * 20_000}}
    path = person.file("long.jsonl", f"{json.dumps(line)}\n" * 400)
    lines = TranscriptLines(lambda: get_host("claude-code").lines(HostTranscript(path=str(path))))
    tracemalloc.start()
    while lines.read(1024 * 1024):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 40_000_000
    assert peak < 4_000_000


def test_a_line_of_many_megabytes_is_passed_over(person):
    """Nobody said it, and reading it whole would not be bounded."""
    path = WRITERS["claude-code"](person, "s1", SAID)
    path.write_bytes(b'{"x": "' + b"a" * 17_000_000 + b'"}\n' + path.read_bytes())
    assert spoken(person, "claude-code")[0] == SPOKEN["claude-code"]


@EVERY
def test_the_history_on_disk_becomes_a_memory(person, host):
    """What was said before Commonplace came is found by asking."""
    person.ok("init")
    WRITERS[host](person, "s1", SAID)
    out = person.ok("index", "--host", host).out
    assert out.startswith("Found 1 session of ")
    assert "1 new" in out
    hits = person.ok("recall", "which package manager do we use in this repo?", "--format", "json").json["hits"]
    assert SAID in [hit["text"] for hit in hits]


@EVERY
def test_half_a_letter_does_not_cost_a_message(person, host):
    """Programs that count in UTF-16 cut a picture letter in two; the words around it are found."""
    person.ok("init")
    WRITERS[host](person, "s1", "Elephants \ud83d use pnpm \U0001f418 only")
    done = person.ok("index", "--host", host)
    assert done.err == ""
    [best, *_] = person.ok("recall", "elephants", "--format", "json").json["hits"]
    assert best["text"] == "Elephants \ufffd use pnpm \U0001f418 only"


@EVERY
def test_a_second_run_takes_only_what_is_new(person, host):
    """What is indexed already is passed over; what grew is read on."""
    person.ok("init")
    WRITERS[host](person, "s1", SAID)
    person.ok("index", "--host", host)
    again = person.ok("index", "--host", host, "--json").json
    [project] = again["projects"].values()
    assert [file["state"] for file in project["files"]] == ["unchanged"]
    WRITERS[host](person, "s2", SAID, "Deploy with make deploy.")
    [project] = person.ok("index", "--host", host, "--json").json["projects"].values()
    assert sorted(file["state"] for file in project["files"]) == ["new", "unchanged"]


def test_a_transcript_that_grew_is_read_on(person):
    """References to what was said before stay as they are."""
    person.ok("init")
    path = WRITERS["claude-code"](person, "s1", SAID)
    person.ok("index", "--host", "claude-code")
    more = {
        "type": "user",
        "sessionId": "s1",
        "cwd": str(person.work),
        "message": {"role": "user", "content": "Ship it."},
    }
    path.write_text(f"{path.read_text()}{json.dumps(more)}\n")
    [project] = person.ok("index", "--host", "claude-code", "--json").json["projects"].values()
    assert [(file["state"], file["turns"]) for file in project["files"]] == [("grown", 1)]


def test_what_was_taken_back_is_forgotten(person):
    """Gemini's rewind comes after the words it takes back, and they may be indexed by then."""
    person.ok("init")
    path = WRITERS["gemini"](person, "s1", SAID)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "$rewindTo" not in line))
    person.ok("index", "--host", "gemini")
    assert "by hand" in person.ok("recall", "deploy by hand").out
    path.write_text("".join(lines))
    person.ok("index", "--host", "gemini")
    assert "by hand" not in person.ok("recall", "deploy by hand").out


def test_sessions_of_oh_my_pi_are_pis(person):
    """They have the same form in another folder."""
    person.ok("init")
    recorded.pi(person, "s1", SAID)
    recorded.pi(person, "s2", "Charts are drawn with uPlot.", root=".omp")
    assert "2 new" in person.ok("index", "--host", "pi").out


@EVERY
def test_secrets_in_transcripts_are_taken_out(person, host):
    """A token that somebody pasted is neither in the database nor found."""
    person.ok("init")
    WRITERS[host](person, "s1", f"The token is {SECRET}, do not lose it.")
    done = person.ok("index", "--host", host)
    assert "1 secret" in done.err
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in person.data.rglob("*") if path.is_file())


def test_sessions_of_other_projects_are_theirs(person):
    """Without --all they are counted; with it each goes to the memory of its own project."""
    person.ok("init")
    other = person.work.parent / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    person.ok("init", cwd=other)
    recorded.claude(person, "s1", SAID)
    recorded.claude(person, "s2", "Charts are drawn with uPlot.", cwd=other)
    recorded.claude(person, "s3", "Nobody knows me.", cwd=person.work.parent / "gone")
    out = person.ok("index", "--host", "claude-code").out
    assert "1 session of other projects" in out
    assert "1 session left out that ran in folders that are gone" in out
    assert len(person.ok("index", "--host", "claude-code", "--all", "--json").json["projects"]) == 2
    assert "uPlot" in person.ok("recall", "charts", cwd=other).out
    assert "uPlot" not in person.ok("recall", "charts").out


@rows(
    "arguments, sentence",
    [
        (["--host", "emacs"], "'emacs' is not a host that is known"),
        (["--host", "cursor"], "Cursor saves no sessions that can be read"),
        (["--host", "codex", "x.jsonl"], "it goes with neither PATH nor --session"),
        (["--all", "x.jsonl"], "--all goes with --host"),
        ([], "give a file or a folder"),
    ],
)
def test_what_cannot_be_indexed_is_told_in_a_sentence(person, arguments, sentence):
    """A mistake names the thing and writes nothing."""
    person.ok("init")
    done = person("index", *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_a_database_that_is_none_is_named(person):
    """OpenCode's file may be another one some day."""
    person.ok("init")
    person.file(".local/share/opencode/opencode.db", "not a database, not at all, no" * 99)
    done = person("index", "--host", "opencode")
    assert done.code == 2
    assert "opencode.db' is not a database of OpenCode that can be read" in done.err


@EVERY
def test_a_result_is_known_by_the_call_that_it_answers(person, host):
    """Calls and results bear the same id, so that what memory printed in a shell is told from what was found there."""
    WRITERS[host](person, "s1", SAID)
    parts = [part for line in get_host(host).lines(found(person, host)) for part in line.get("content", ())]
    calls = {part["id"] for part in parts if part["type"] == "tool_call"}
    answered = {part["id"] for part in parts if part["type"] == "tool_result" and "id" in part}
    assert calls
    assert answered == calls
