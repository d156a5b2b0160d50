"""`commonplace import --from lance`: a LanceDB store of the public role memory, written as its document has it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from commonplace.model.queries import State
from commonplace.model.records import Channel, Kind
from commonplace.roles.dialect import load
from commonplace.roles.memory import role_memory
from stands import agree

ROLE = "name: assistant\nrole: You help.\nmodel: openai:gpt-4o-mini\n"
MEMORIES = [
    (1, "The user prefers dark mode.", "preferences", "2025-06-01T10:30:00.123456+00:00", "semantic", "", ""),
    (
        2, "Deployed v2.1 to staging.", "daemon_run", "2025-06-02T14:00:00+00:00", "episodic",
        '{"trigger_type": "cron"}', "2025-06-03T08:00:00+00:00",
    ),
    (3, "Always run tests before deploying.", "deployment", "2025-06-04T09:00:00+00:00", "procedural", None, None),
    (3, "Two processes gave out the same number.", "UI Prefs!!", "2025-06-05T09:00:00+00:00", "semantic", "", ""),
]  # fmt: skip


def said(*texts):
    """A conversation as PydanticAI writes it: the user's words and the model's in turn."""
    sides = [("request", "user-prompt"), ("response", "text")]
    messages = [
        {"kind": sides[number % 2][0], "parts": [{"part_kind": sides[number % 2][1], "content": text}]}
        for number, text in enumerate(texts)
    ]
    messages[0]["parts"].insert(0, {"part_kind": "system-prompt", "content": "You are old."})
    return json.dumps(messages)


SESSIONS = [
    (1, "0123456789ab", "assistant", "2025-06-01T10:00:00+00:00", said("Hello", "Hi")),
    (2, "0123456789ab", "assistant", "2025-06-01T10:05:00+00:00", said("Hello", "Hi", "I like tea", "Noted")),
    (3, "ba9876543210", "somebody", "2025-06-01T09:00:00+00:00", said("Moin", "Moin")),
]
MEMORY_COLUMNS = {
    "id": pa.int64(), "content": pa.large_string(), "category": pa.string(), "created_at": pa.string(),
    "memory_type": pa.string(), "metadata_json": pa.string(), "consolidated_at": pa.string(),
}  # fmt: skip
SESSION_COLUMNS = {
    "id": pa.int64(), "session_id": pa.string(), "agent_name": pa.string(), "timestamp": pa.string(),
    "messages_json": pa.large_string(),
}  # fmt: skip


def table(columns, rows, **more):
    """Rows as LanceDB takes them."""
    turned = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = {name: pa.array(values, kind) for (name, kind), values in zip(columns.items(), turned, strict=True)}
    return pa.table(arrays | more)


@pytest.fixture
def lance(outside, monkeypatch):
    """Write a store as the public implementation does, with these rows; returns its folder."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def lance(memories=tuple(MEMORIES), sessions=tuple(SESSIONS), *, name="assistant.lance", before=""):
        folder = outside.folder / "theirs" / name
        db = lancedb.connect(os.fspath(folder))
        db.create_table("_meta", pa.table({"key": ["dimensions", "next_memory_id"], "value": ["3", "5"]}))
        if sessions is not None:
            db.create_table(before + "sessions", table(SESSION_COLUMNS, sessions))
        if memories is not None:
            vectors = pa.array([[1.0, 0.0, 0.0]] * len(memories), pa.list_(pa.float32(), 3))
            db.create_table(before + "memories", table(MEMORY_COLUMNS, memories, vector=vectors))
        return folder

    return lance


@pytest.fixture
def role(outside):
    """The role.yaml whose store it was."""
    file = outside.folder / "work" / "role.yaml"
    file.write_text(ROLE + "memory: {}\n", encoding="utf-8")
    return file


def held(file):
    """What a role remembers, oldest first."""
    with role_memory(load(os.fspath(file)), embedded=False) as opened:
        return sorted(opened.memory().list(limit=99), key=lambda record: record.created_at)


def digest(folder):
    """Every file below a folder, byte for byte."""
    found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize("before", ["", "_"])
def test_memories_come_over_as_they_were(outside, lance, role, before):
    """Type, category, date, metadata and the mark of a consolidation; the channel says where from."""
    done = outside.ok("import", "--from", "lance", lance(before=before), "--role", role)
    assert done.out == "Imported 4 memories and 2 sessions into assistant (0 and 0 duplicates).\n"
    fact, episode, procedure, twin = held(role)
    assert (fact.content, fact.kind, fact.category) == (MEMORIES[0][1], Kind.SEMANTIC, "preferences")
    assert fact.created_at.isoformat() == MEMORIES[0][3]
    assert (episode.kind, episode.metadata["trigger_type"]) == (Kind.EPISODIC, "cron")
    assert episode.consolidated_at.isoformat() == MEMORIES[1][6]
    assert (procedure.kind, procedure.consolidated_at, twin.category) == (Kind.PROCEDURAL, None, "ui_prefs")
    assert {record.source.channel for record in (fact, episode, procedure, twin)} == {Channel.IMPORT}


def test_conversations_come_over_as_they_were_saved_last(outside, lance, role):
    """One session for the rows of all its turns, of its own date, without the old system prompt; it can be resumed."""
    outside.ok("import", "--from", "lance", lance(), "--role", role)
    with role_memory(load(os.fspath(role)), embedded=False) as opened:
        [saved] = opened.sessions.all()
    assert (saved.id, saved.messages, saved.preview) == ("0123456789ab", 4, "Hello")
    assert saved.updated_at.isoformat() == "2025-06-01T10:05:00+00:00"
    assert "You are old" not in saved.content


def test_a_session_of_another_agent_is_told(outside, lance, role):
    """Who will not see it when resuming hears of it."""
    done = outside.ok("import", "--from", "lance", lance(), "--role", role)
    assert "the sessions of 'somebody' are resumed by a role of that name, not by 'assistant'" in done.err


def test_twice_is_as_good_as_once(outside, lance, role):
    """A second import keeps nothing, not even what was edited, replaced or archived since."""
    folder = lance()
    outside.ok("import", "--from", "lance", folder, "--role", role)
    with role_memory(load(os.fspath(role))) as opened:
        memory = opened.memory(Channel.USER)
        one, two, three, _ = held(role)
        memory.update(one.id, content="The user prefers light mode.")
        memory.remember("Deployed v2.2.", kind=Kind.EPISODIC, supersedes=two.id)
        memory.archive(three.id)
    again = outside.ok("import", "--from", "lance", folder, "--role", role, "--json").json
    assert again == {
        "role": "assistant", "added": 0, "duplicates": 4, "blank": 0, "sessions": 0, "sessions_present": 2,
    }  # fmt: skip
    assert len(held(role)) == 3


def test_a_session_that_went_on_is_not_set_back(outside, lance, role):
    """What was said here since then stays."""
    folder = lance()
    outside.ok("import", "--from", "lance", folder, "--role", role)
    longer = json.loads(said("Hello", "Hi", "I like tea", "Noted", "And cake", "Noted"))
    with role_memory(load(os.fspath(role)), embedded=False) as opened:
        opened.sessions.save("0123456789ab", longer)
    outside.ok("import", "--from", "lance", folder, "--role", role)
    with role_memory(load(os.fspath(role)), embedded=False) as opened:
        assert opened.sessions.newest().messages == 6


def test_without_a_role_it_is_the_one_called_like_the_folder(outside, lance, role):
    """What assistant.lance held is what `name: assistant` remembers; no limit of a role is guessed."""
    many = [(number, f"Fact {number}.", "x", "2025-06-01T10:30:00+00:00", "semantic", "", "") for number in range(1100)]
    done = outside.ok("import", "--from", "lance", lance(many))
    assert "Imported 1100 memories and 2 sessions into assistant" in done.out
    agree(outside.folder / "work")  # the memory was not begun by a role of this folder
    assert len(held(role)) == 99
    assert "Fact 1099." in outside.ok("memory", "list", role, "--limit", "2000").out


def test_what_would_come_over_can_be_asked_first(outside, lance, role):
    """Nothing is kept, and no store is made; what is odd is found all the same."""
    done = outside.ok("import", "--from", "lance", lance(), "--role", role, "--dry-run")
    assert done.out == "Would import 4 memories and 2 sessions into assistant, except duplicates.\n"
    assert outside.ok("memory", "export", role).out == "No memory store found.\n"
    assert outside("import", "--from", "lance", role, "--role", role, "--dry-run").code == 2


def test_messages_of_the_framework_can_be_gone_on_with(outside, lance, role):
    """What PydanticAI itself wrote, it reads again after it came over."""
    from pydantic_ai.messages import (  # noqa: PLC0415 - only with the extra
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    asked = ModelRequest(parts=[SystemPromptPart(content="You are old."), UserPromptPart(content="Hello")])
    called = ModelResponse(parts=[ToolCallPart(tool_name="recall", args={"query": "x"}, tool_call_id="1")])
    answered = ModelRequest(parts=[ToolReturnPart(tool_name="recall", content="nothing", tool_call_id="1")])
    ended = ModelResponse(parts=[TextPart(content="Hi")])
    written = ModelMessagesTypeAdapter.dump_json([asked, called, answered, ended]).decode()
    session = (1, "0123456789ab", "assistant", "2025-06-01T10:00:00+00:00", written)
    outside.ok("import", "--from", "lance", lance([], [session]), "--role", role)
    with role_memory(load(os.fspath(role)), embedded=False) as opened:
        saved = opened.sessions.newest().read()
    again = ModelMessagesTypeAdapter.validate_python(saved)
    assert [message.parts[0].part_kind for message in again] == ["user-prompt", "tool-call", "tool-return", "text"]


def test_the_original_is_left_as_it_is(outside, lance, role):
    """Not a byte and not a file of it changes."""
    folder = lance()
    before = digest(folder)
    outside.ok("import", "--from", "lance", folder, "--role", role)
    assert digest(folder) == before


def test_what_came_over_is_found_by_its_meaning(outside, lance, role):
    """It is embedded anew, whatever the vectors were."""
    outside.ok("import", "--from", "lance", lance(), "--role", role)
    with role_memory(load(os.fspath(role))) as opened:
        found = opened.memory().recall("dark theme preference")
    assert (found[0].record.content, found[0].similarity > 0.3) == (MEMORIES[0][1], True)


def test_a_secret_does_not_come_over(outside, lance, role):
    """What comes from elsewhere passes the gate that everything passes."""
    key = "AKIA" + "Q7RT2YX9LM4KD8WZ"
    row = (1, f"The key is {key}", "x", "2025-06-01T10:30:00+00:00", "semantic", "", "")
    done = outside.ok("import", "--from", "lance", lance([row], []), "--role", role)
    assert "was removed" in done.err
    assert key not in held(role)[0].content


@pytest.mark.parametrize(
    ("memories", "sessions"), [(None, tuple(SESSIONS)), (tuple(MEMORIES), None)], ids=["no memories", "no sessions"]
)
def test_one_of_the_tables_may_be_missing(outside, lance, role, memories, sessions):
    """A store without facts or without conversations is one all the same."""
    done = outside.ok("import", "--from", "lance", lance(memories, sessions), "--role", role, "--json").json
    assert (done["added"], done["sessions"]) == (4 if memories else 0, 2 if sessions else 0)


def odd(place, value):
    """The rows of a good store, with one more that is odd in one column."""
    row = [9, "Fine.", "x", "2025-06-01T10:30:00+00:00", "semantic", "", ""]
    return [*MEMORIES, tuple(value if number == place else cell for number, cell in enumerate(row))]


def odd_session(place, value):
    """The same for sessions."""
    row = [9, "cccccccccccc", "assistant", "2025-06-01T10:00:00+00:00", said("Hello", "Hi")]
    return [*SESSIONS, tuple(value if number == place else cell for number, cell in enumerate(row))]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            (odd(3, "not a date"), SESSIONS),
            "Record 9: created_at must be a date such as 2026-05-31",
        ),
        (
            (odd(4, "gossip"), SESSIONS),
            "Record 9: memory_type must be one of episodic, semantic, ",
        ),
        ((odd(5, "{"), SESSIONS), "Record 9: metadata_json: not JSON"),
        ((odd(5, "[1]"), SESSIONS), "Record 9: metadata must be an object, not [1]"),
        ((odd(6, "soon"), SESSIONS), "Record 9: consolidated_at must be a date"),
        ((odd(1, None), SESSIONS), "Record 9: content must be a string, not None"),
        ((odd(0, None), SESSIONS), "a memory has the id None"),
        ((MEMORIES, odd_session(1, "")), "a session has the id ''"),
        ((MEMORIES, odd_session(2, None)), "'cccccccccccc' is of the agent None"),
        ((MEMORIES, odd_session(3, "now")), "the timestamp of the session 'cccccccccccc' must be a date"),
        ((MEMORIES, odd_session(4, "nothing")), "the messages of the session 'cccccccccccc': not JSON"),
        ((MEMORIES, odd_session(4, '[{"kind": "request"}]')), "'cccccccccccc' has messages that are no list"),
        ((MEMORIES, [*SESSIONS, (4, "0123456789ab", "x", *SESSIONS[0][3:])]), "'0123456789ab' belongs to two agents"),
    ],
)
def test_an_odd_row_is_named_and_nothing_is_kept(outside, lance, role, rows, message):
    """One sentence, exit code 2, and the store is not even made."""
    done = outside("import", "--from", "lance", lance(*rows), "--role", role)
    assert (done.code, done.out, message in done.err) == (2, "", True), done
    assert outside.ok("memory", "export", role).out == "No memory store found.\n"


def test_a_missing_column_is_named(outside, lance, role):
    """A table of another shape is not guessed at."""
    folder = lance(None)
    short = {name: kind for name, kind in MEMORY_COLUMNS.items() if name != "metadata_json"}
    lancedb.connect(os.fspath(folder)).create_table("memories", table(short, [row[:5] + row[6:] for row in MEMORIES]))
    done = outside("import", "--from", "lance", folder, "--role", role)
    assert done.code == 2
    assert "the table 'memories' of" in done.err
    assert "has no column 'metadata_json', but id, content" in done.err


def test_what_is_no_store_is_refused(outside, role):
    """Nothing there, a file, a folder of something else: each in one sentence, and nothing is made."""
    work = outside.folder / "work"
    (work / "file").write_text("x")
    (work / "other.lance" / "films.lance").mkdir(parents=True)
    for name, message in {
        "nowhere": "there is no LanceDB store", "file": "a folder is expected", "other.lance": "but films",
    }.items():  # fmt: skip
        done = outside("import", "--from", "lance", work / name, "--role", role)
        assert (done.code, message in done.err) == (2, True), done
    assert not (work / "nowhere").exists()


def test_a_damaged_table_is_refused(outside, lance, role):
    """A table whose files are gone is named; nothing is kept of the other one."""
    folder = lance()
    for file in (folder / "memories.lance" / "data").iterdir():
        file.unlink()
    done = outside("import", "--from", "lance", folder, "--role", role)
    assert (done.code, "the table 'memories' of" in done.err, "cannot be read" in done.err) == (2, True, True)
    assert outside.ok("memory", "export", role).out == "No memory store found.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "lance", "--scope", "project"], "use --role to name the role to import into"),
        (["--from", "lance", "--category", "decisions"], "memories keep the one that they have"),
        (["--role", "role.yaml"], "--role goes with --from lance"),
        (["--from", "parquet"], "lance"),
    ],
)
def test_options_that_do_not_go_together_are_refused(outside, options, message):
    """Each with what to say instead."""
    done = outside("import", "x", *options)
    assert (done.code, message in done.err) == (2, True), done


def test_a_kind_that_is_switched_off_is_not_dropped_silently(outside, lance, role):
    """A role that keeps no episodes takes no store with episodes, and says which."""
    role.write_text(ROLE + "memory:\n  episodic: {enabled: false}\n", encoding="utf-8")
    done = outside("import", "--from", "lance", lance(), "--role", role)
    assert (done.code, "Record 2: episodic memory is not enabled here" in done.err) == (2, True), done
    with role_memory(load(os.fspath(role)), embedded=False) as opened:
        assert opened.memory().list(states=State) == []
