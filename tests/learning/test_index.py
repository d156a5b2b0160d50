"""``index``: sessions and tickets become chunks, once, however often and in how many pieces they come."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from learners import lines, message

from commonplace.engine.rendering import fence
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Trust
from commonplace.records import index as indexing
from commonplace.records.index import index


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write(name, text):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


@pytest.fixture
def chunks(place):
    """The chunks of a session or ticket, in order."""

    def chunks(name, kind=DocumentKind.SESSION):
        where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({kind}), names=frozenset({name}))
        return place.store.chunks(where, limit=10_000)

    return chunks


@pytest.fixture
def document(place):
    """A document by its name."""

    def document(name):
        where = DocumentFilter(scopes=frozenset({place.scope}), names=frozenset({name}))
        [found] = place.store.documents(where, limit=2)
        return found

    return document


def test_a_message_becomes_a_chunk_that_leads_back_to_its_turn(place, write, chunks):
    """The reference is the session and the number of the message; the speaker is its role."""
    index(place, [write("0b1c.jsonl", lines("use pnpm", message("assistant", "Done.", "2026-01-01T00:01:00Z")))])
    first, second = chunks("0b1c")

    assert (first.id, first.text, first.speaker) == ("session:0b1c#1", "use pnpm", "user")
    assert (second.id, second.speaker, second.occurred_at.isoformat()) == (
        "session:0b1c#2",
        "assistant",
        "2026-01-01T00:01:00+00:00",
    )


def test_chunks_are_found_at_once_and_are_no_records(opened, place, write):
    """What was indexed is recalled, and the list of records stays empty."""
    index(place, [write("0b1c.jsonl", lines("the cache was stale after the deploy"))])

    assert [hit.id for hit in opened.recall("stale cache").hits] == ["session:0b1c#1"]
    assert opened.memory.list() == []


def test_a_header_names_the_session(place, write, chunks, document):
    """The first line may say what the session is called, where it ran and when it began."""
    header = json.dumps({"session": "0b1c", "cwd": "/shop", "started": "2026-01-01T00:00:00Z"})
    index(place, [write("x.jsonl", lines(header, "use pnpm"))])

    assert [chunk.id for chunk in chunks("0b1c")] == ["session:0b1c#1"]
    assert document("0b1c").metadata["cwd"] == "/shop"


def test_the_caller_can_name_the_one_session(place, write, chunks):
    """``session`` wins over header and file name, and is for one file only."""
    path = write("x.jsonl", lines("use pnpm"))
    index(place, [path], session="mine")

    assert len(chunks("mine")) == 1
    with pytest.raises(InvalidInput, match="'mine' names one session"):
        index(place, [path, write("y.jsonl", "")], session="mine")


def test_the_same_file_again_changes_nothing(place, write, document):
    """Idempotent by digest, also when the file was only touched."""
    path = write("a.jsonl", lines("use pnpm"))
    index(place, [path])
    before = document("a")
    os.utime(path, ns=(1, 1))

    assert [file.state for file in index(place, [path]).files] == ["unchanged"]
    assert document("a") == before


def test_a_file_that_grew_is_read_from_where_it_was_left(place, write, chunks, document, clock):
    """Earlier chunks stay as they are, later ones follow, and the revision rises."""
    index(place, [write("a.jsonl", lines("one two"))])
    before = document("a")
    clock.forward()
    report = index(place, [write("a.jsonl", lines("one two", "three four"))])

    assert [(file.state, file.turns, file.chunks) for file in report.files] == [("grown", 1, 1)]
    assert [(chunk.seq, chunk.ref, chunk.text) for chunk in chunks("a")] == [
        (0, "1", "one two"),
        (1, "2", "three four"),
    ]
    assert document("a").metadata["revision"] > before.metadata["revision"]


def test_a_file_that_was_rewritten_is_indexed_anew(place, write, chunks):
    """Nothing of what it said before is left."""
    index(place, [write("a.jsonl", lines("one two", "three four"))])
    report = index(place, [write("a.jsonl", lines("one TWO", "three four", "five"))])

    assert [file.state for file in report.files] == ["rewritten"]
    assert [chunk.text for chunk in chunks("a")] == ["one TWO", "three four", "five"]


def test_a_half_written_last_line_is_read_when_it_is_whole(place, write, chunks):
    """A session under way may be caught in the middle of a message; that is no trouble."""
    whole = lines("one two", "three four")
    report = index(place, [write("a.jsonl", whole[:-9])])
    assert (len(chunks("a")), report.troubles) == (1, ())
    index(place, [write("a.jsonl", whole)])
    assert [chunk.text for chunk in chunks("a")] == ["one two", "three four"]


def test_a_last_line_without_its_end_is_taken_once(place, write, chunks):
    """An object that is closed is complete, with or without a line end."""
    text = lines("one two")
    index(place, [write("a.jsonl", text.rstrip("\n"))])
    index(place, [write("a.jsonl", text + lines("three"))])

    assert [chunk.text for chunk in chunks("a")] == ["one two", "three"]


MALFORMED = {
    "half an object": ('{"role": "user", "cont\n', "is not JSON"),
    "other bytes": (b'{"role": "user", "content": "\xff"}\n', "is not JSON"),
    "a list": ("[1]\n", "is not a message but list"),
    "no role": ('{"content": "x"}\n', "has no role"),
    "another role": ('{"role": "oracle", "content": "x"}\n', "has the role 'oracle'; there are system"),
    "content that is a number": ('{"role": "user", "content": 3}\n', "has a content that is neither"),
    "a part without a type": ('{"role": "user", "content": [{"text": "x"}]}\n', "without a type"),
    "a time that is none": ('{"role": "user", "content": "x", "time": "noon"}\n', "has a time that is no moment"),
    "half a character": ('{"role": "user", "content": "\\ud800"}\n', "is not valid Unicode"),
    "a deep nest": ('{"role": "user", "content": ' + "[" * 100_000 + "\n", "nested too deeply"),
}


@pytest.mark.parametrize(("line", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_is_named_and_the_rest_is_indexed(place, write, chunks, line, reason):
    """File, line and reason; the turns around it keep their numbers."""
    data = line if isinstance(line, bytes) else line.encode()
    path = write("a.jsonl", lines("before").encode() + data + lines("after").encode())
    [trouble] = index(place, [path]).troubles

    assert str(trouble).startswith(f"{path}:2: ")
    assert reason in trouble.reason
    assert [(chunk.ref, chunk.text) for chunk in chunks("a")] == [("1", "before"), ("3", "after")]


def test_a_line_without_end_is_passed_over_in_bounded_memory(place, write, chunks):
    """Forty megabytes without a line end are one malformed line."""
    path = write("a.jsonl", lines("before") + "x" * 40_000_000 + "\n" + lines("after"))
    [trouble] = index(place, [path]).troubles

    assert (trouble.line, trouble.reason) == (2, f"is longer than {indexing.LINE_BYTES} bytes")
    assert [chunk.text for chunk in chunks("a")] == ["before", "after"]


def test_tool_output_is_filtered(place, write, chunks):
    """Results of bash, python, eval, read and grep of 1 to 32,000 characters are kept, nothing else of tools."""
    kept = [
        message("tool", f"found by {name}", name=name) for name in ("bash", "python", "eval", "read", "grep", "Bash")
    ]
    left = [
        message("tool", "a page", name="web_fetch"),
        message("tool", "nameless"),
        message("tool", "", name="bash"),
        message("tool", "x" * 32_001, name="bash"),
    ]
    report = index(place, [write("a.jsonl", lines(*kept, *left))])

    assert [chunk.text for chunk in chunks("a")] == [
        f"found by {n}" for n in ("bash", "python", "eval", "read", "grep", "Bash")
    ]
    assert report.filtered == 4


def test_what_a_tool_said_is_the_tools_and_not_trusted(place, write, chunks):
    """Also inside of somebody else's message: its speaker is the tool, its trust is external."""
    parts = [
        {"type": "text", "text": "look at this"},
        {"type": "tool_result", "name": "bash", "content": "always use yarn"},
        {"type": "thinking", "text": "hmm"},
        {"type": "tool_call", "name": "bash", "arguments": {"command": "pnpm test"}},
    ]
    index(place, [write("a.jsonl", lines(message("user", parts)))])
    own, tool = chunks("a")

    assert (own.speaker, own.text, own.trust) == ("user", "look at this\n-> bash: pnpm test", Trust.AGENT)
    assert (tool.speaker, tool.text, tool.trust, tool.ref) == ("tool", "always use yarn", Trust.EXTERNAL, "1t1")


def test_what_memory_injected_is_not_indexed(opened, place, write, chunks):
    """Text between the marks of a rendered block is taken out, wherever it stands."""
    block = fence(["- [decisions] Use yarn everywhere"], opened.secret())
    report = index(
        place, [write("a.jsonl", lines(message("system", f"Hello.\n{block}\nBe kind."), message("user", block)))]
    )

    assert [chunk.text.split() for chunk in chunks("a")] == [["Hello.", "Be", "kind."]]
    assert report.injected == 2


def asked(command, output, tool="bash"):
    """A call of a tool and its answer, as two messages."""
    return [
        message("assistant", None, tool_calls=[{"name": tool, "arguments": command}]),
        message("tool", output, name=tool),
    ]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("bash", {"command": "commonplace recall 'package manager'"}),
        ("bash", {"command": "cd shop && COMMONPLACE_HOME=/x /opt/bin/commonplace --json record list | head"}),
        ("bash", {"command": ["bash", "-lc", "uvx commonplace read memory://root"]}),
        ("bash", '{"command": ["bash", "-lc", "commonplace brief"]}'),
        ("bash", {"command": "python -m commonplace record get 01"}),
        ("bash", {"command": "cat .commonplace/MEMORY.md"}),
        ("Read", {"file_path": "/home/ada/shop/.commonplace/decisions/pnpm.md"}),
    ],
)
def test_what_an_agent_asked_memory_in_its_shell_is_not_indexed(place, write, chunks, tool, given):
    """It comes back without a fence, as the tool's words: it is known by the call that it answers."""
    said = [*asked(given, "0.91  decisions  Use yarn  (record 0)", tool), *asked({"command": "make"}, "all green")]
    report = index(place, [write("a.jsonl", lines(*said))])

    assert [chunk.text for chunk in chunks("a") if chunk.speaker == "tool"] == ["all green"]
    assert (report.injected, report.filtered) == (1, 0)


@pytest.mark.parametrize(
    "command", ["grep -rn commonplace README.md", "cd commonplace && ls", "git clone https://x.example/commonplace"]
)
def test_what_only_speaks_of_memory_is_indexed(place, write, chunks, command):
    """A word is no command."""
    index(place, [write("a.jsonl", lines(*asked({"command": command}, "a finding")))])
    assert [chunk.text for chunk in chunks("a") if chunk.speaker == "tool"] == ["a finding"]


def test_an_answer_is_told_from_others_by_its_call(place, write, chunks):
    """Several calls at once: by their ids in whatever order, else in the order of the calls."""
    calls = [
        {"name": "bash", "id": "1", "arguments": {"command": "make"}},
        {"name": "bash", "id": "2", "arguments": {"command": "commonplace recall yarn"}},
        {"name": "bash", "arguments": {"command": "commonplace recall tea"}},
        {"name": "bash", "arguments": {"command": "make check"}},
    ]
    answers = [
        message("tool", "memory says", name="bash", id="2"),
        message("tool", "made", name="bash", id="1"),
        message("tool", "memory says", name="bash"),
        message("tool", "checked", name="bash"),
    ]
    index(place, [write("a.jsonl", lines(message("assistant", "Let me see.", tool_calls=calls), *answers))])
    assert [chunk.text for chunk in chunks("a") if chunk.speaker == "tool"] == ["made", "checked"]


def test_a_call_is_remembered_when_its_answer_comes_in_the_next_piece(place, write, chunks):
    """The transcript was indexed between the two."""
    call, answer = asked({"command": "commonplace recall yarn"}, "Use yarn")
    path = write("a.jsonl", lines("hello", call))
    index(place, [path])
    with open(path, "a", encoding="utf-8") as file:
        file.write(lines(answer, "go on"))
    report = index(place, [path])

    assert (report.files[0].state, report.injected) == ("grown", 1)
    assert [chunk.speaker for chunk in chunks("a")] == ["user", "assistant", "user"]


def test_secrets_are_taken_out_before_anything_is_kept(opened, place, write, chunks):
    """The mark stands in their place, and the report says how many of which kind."""
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    report = index(place, [write("a.jsonl", lines(f"the token is {secret}"))])
    opened.close()

    assert "[secret:" in chunks("a")[0].text
    assert sum(report.redactions.values()) == 1
    assert secret.encode() not in b"".join(path.read_bytes() for path in Path(opened.where.home).glob("*.db*"))


TICKET = """---
id: SHOP-7
title: Stale pages
---
Pages are stale after a deploy.

## Notes

Flushing the cache helps.
```
## not a heading
```
## Notes

More.
"""


def test_a_ticket_has_a_description_and_notes(place, write, chunks):
    """Its id is in the frontmatter, its parts have names; a heading inside of code is none."""
    index(place, [write("7.md", TICKET)])
    found = chunks("SHOP-7", DocumentKind.TICKET)

    assert [chunk.id for chunk in found] == [
        "ticket:SHOP-7#description",
        "ticket:SHOP-7#notes",
        "ticket:SHOP-7#notes-2",
    ]
    assert found[0].text == "Stale pages\n\nPages are stale after a deploy."
    assert "## not a heading" in found[1].text


def test_a_ticket_without_frontmatter_is_called_like_its_file(place, write, chunks):
    """The first heading is its title."""
    index(place, [write("SHOP-8.md", "# Slow build\n\nIt takes an hour.\n")])

    assert [chunk.text for chunk in chunks("SHOP-8", DocumentKind.TICKET)] == ["Slow build\n\nIt takes an hour."]


def test_a_ticket_that_changed_replaces_what_it_said(place, write, chunks):
    """Tickets are indexed whole."""
    for text in ("# A\n\nold", "# A\n\nnew", "# A\n\nnew"):
        states = [file.state for file in index(place, [write("A.md", text)]).files]

    assert (states, [chunk.text for chunk in chunks("A", DocumentKind.TICKET)]) == (["unchanged"], ["A\n\nnew"])


def test_a_ticket_that_cannot_be_read_is_named_with_its_line(place, write):
    """The others are indexed."""
    bad, good = write("a/bad.md", "---\nid: [x\n---\nhello"), write("a/good.md", "# Good one")
    report = index(place, [os.path.dirname(bad)])

    assert [trouble.path for trouble in report.troubles] == [bad]
    assert report.troubles[0].line in (2, 3)
    assert [file.path for file in report.files] == [good]


def test_folders_are_walked(place, write):
    """Sessions and tickets, however deep; nothing hidden, nothing else."""
    for name in ("s/a.jsonl", "s/deep/b.jsonl", "s/t.md", "s/.hidden/c.jsonl", "s/.d.jsonl", "s/notes.txt"):
        write(name, lines("use pnpm") if name.endswith("l") else "# T\n\ntext")
    report = index(place, [os.path.dirname(write("s/a.jsonl", lines("use pnpm")))])

    assert sorted(file.name for file in report.files) == ["a", "b", "t"]


@pytest.mark.parametrize(("name", "reason"), [("x.txt", "neither a session"), ("none.jsonl", "there is no file")])
def test_what_cannot_be_indexed_is_refused_before_anything_is(place, write, chunks, name, reason):
    """A mistyped path stops all of it."""
    other = os.path.join(os.path.dirname(write("x.txt", "x")), name)
    with pytest.raises(InvalidInput, match=reason):
        index(place, [write("a.jsonl", lines("use pnpm")), other])
    assert chunks("a") == []


def test_a_pipe_is_no_session(place, tmp_path):
    """It would never end."""
    os.mkfifo(tmp_path / "a.jsonl")

    assert [trouble.reason for trouble in index(place, [str(tmp_path / "a.jsonl")]).troubles] == [
        "cannot be read: it is not a regular file"
    ]


def test_two_files_of_one_name_do_not_replace_each_other(place, write, chunks):
    """The second one is named and left alone; one that was moved is taken for what it is."""
    first, other = write("a/x.jsonl", lines("from a")), write("b/x.jsonl", lines("from b"))
    index(place, [first])
    [trouble] = index(place, [other]).troubles
    assert "is called 'x' like" in trouble.reason
    os.replace(first, other)
    assert [file.state for file in index(place, [other]).files] == ["unchanged"]
    assert [chunk.text for chunk in chunks("x")] == ["from a"]


def test_the_assistant_scope_takes_no_transcripts(opened, place, write):
    """Records only: no sessions and no tickets."""
    with pytest.raises(Forbidden, match="takes records only, no sessions and no tickets"):
        index(place.replace(scope=opened.where.assistant), [write("a.jsonl", lines("use pnpm"))])


@pytest.mark.slow
def test_a_long_transcript_is_indexed_in_batches_of_bounded_memory(place, write, chunks):
    """Four times as many turns take little more memory, for the words they brought, and their numbers run on."""
    peaks = []
    for name, count in (("short", 600), ("long", 2400)):
        path = write(f"{name}.jsonl", lines(*(f"turn {n} " + "word " * 200 for n in range(count))))
        tracemalloc.start()
        index(place, [path])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert [chunk.seq for chunk in chunks("long")] == list(range(2400))
    assert peaks[1] < 3 * peaks[0]


def test_an_interrupted_run_goes_on_where_it_was(place, write, chunks):
    """Whoever dies between two batches has kept the first; the next run reads on from there."""
    path = write("a.jsonl", lines(*(f"turn number {n}" for n in range(indexing.BATCH_CHUNKS * 2 + 10))))

    def stop(done, _of):
        if done == indexing.BATCH_CHUNKS * 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(place, [path], progress=stop)
    assert len(chunks("a")) == indexing.BATCH_CHUNKS
    [file] = index(place, [path]).files
    assert (file.state, file.chunks) == ("grown", indexing.BATCH_CHUNKS + 10)
    assert [chunk.text for chunk in chunks("a")] == [f"turn number {n}" for n in range(indexing.BATCH_CHUNKS * 2 + 10)]
