"""Secrets in names: what names something passes the gate, and no byte of it is left in the store or the folders."""

from __future__ import annotations

import json

import pytest
from learners import lines, message

from commonplace.hosts.hook_files import write_message
from commonplace.intents.intents import Caller, Intents
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Channel
from commonplace.roles.sessions import Sessions
from commonplace.server.keys import Keys

CANARY = "ghp_" + "q7Rt2Yx9Lm" * 3 + "Kd4Wz8"


@pytest.fixture
def places_of(tmp_path, opened):
    """Close what is open, and say in which files a text is, or in whose names."""

    def places_of(*texts):
        opened.close()
        found = []
        for path in (path for path in tmp_path.rglob("*") if path.is_file()):
            data = str(path.relative_to(tmp_path)).encode().lower() + b"\0" + path.read_bytes().lower()
            found += [f"{path}: {text}" for text in texts if text.lower().encode() in data]
        return found

    return places_of


def hand_written(folder, name, *, head="", text="We deploy on Fridays"):
    """Write a file as a person does."""
    path = folder / "decisions" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\n{head}---\n\n{text}\n" if head else f"{text}\n")
    return path


def test_a_secret_in_the_name_of_a_file_is_redacted(folder, opened, sync, places_of):
    """The file is renamed, its record does not know the old name, and the sync reports it."""
    hand_written(folder, f"deploy-with-{CANARY}")
    report = sync()

    assert [found.kind for _, found in report.redactions] == ["github-pat"]
    assert [record.content for record in opened.memory.list()] == ["We deploy on Fridays"]
    assert sync().is_empty
    assert not places_of(CANARY)


def test_a_secret_in_the_frontmatter_is_redacted(folder, sync, places_of):
    """In ``ref``, in keys of metadata, and in comments of every form; other comments stay as they are."""
    head = f"""# the old one was {CANARY}
ref: chat of {CANARY}
tags: [ops]  # pushed with {CANARY}
owners:
  - ada  # her key: {CANARY}
note: 'a # in quotes'  # just a comment
{CANARY}: a name
"""
    path = hand_written(folder, "deploys", head=head)
    report = sync()

    text = path.read_text()
    assert {found.kind for _, found in report.redactions} == {"github-pat"}
    assert "# pushed with [secret:github-pat:" in text
    assert "note: 'a # in quotes'  # just a comment" in text
    assert sync().is_empty
    assert not places_of(CANARY)


def test_a_secret_in_a_comment_that_was_added_later_is_redacted(opened, kept, edit, sync, places_of):
    """An edit of a comment changes no record, and passes the gate all the same."""
    record, path = kept()
    sync()
    edit(path, "\nid: ", f"\n# token: {CANARY}\nid: ")
    sync()

    assert "# token: [secret:" in path.read_text()
    assert opened.memory.get(record.id).version == record.version
    assert not places_of(CANARY)


def test_a_preview_of_a_sync_changes_no_file(folder, opened):
    """A dry run leaves the name and the comments as they are."""
    path = hand_written(folder, "deploys", head=f"# {CANARY}\ntags: [ops]\n")
    opened.folders.preview(opened.where.project)

    assert CANARY in path.read_text()


def test_the_name_of_an_argument_gives_a_secret_away(place, indexed, places_of):
    """A password in a tool call is redacted because of the name of its argument, which is not stored otherwise."""
    call = {"type": "tool_call", "name": "login", "arguments": {"user": "bob", "password": "tulip sedan"}}
    pin = {"name": "unlock", "arguments": {"door": "front", "pin": 482915}}
    indexed("s1", lines(message("assistant", [call], tool_calls=[pin])))

    [chunk] = place.store.chunks(_sessions(place), limit=10)
    assert '-> login: bob password: "[secret:password:' in chunk.text
    assert '-> unlock: front pin: "[secret:pin:' in chunk.text
    assert not [one for one in places_of("tulip sedan", "482915") if ".jsonl" not in one]


def test_a_long_call_is_cut_between_words(place, indexed, places_of):
    """Half of a secret would not be recognised as one."""
    words = "x" * 470
    indexed("s1", lines(message("assistant", [{"type": "tool_call", "name": "run", "arguments": f"{words} {CANARY}"}])))

    [chunk] = place.store.chunks(_sessions(place), limit=10)
    assert chunk.text == f"-> run: {words}…"
    assert not [one for one in places_of(CANARY[:30]) if ".jsonl" not in one]


def test_the_id_of_a_session_is_redacted(place, desk, tmp_path, places_of):
    """In the header of a transcript, in the name of the file that we write, and in the folder that it names."""
    from commonplace.records.index import index  # noqa: PLC0415 - the fixture indexes files by another name

    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps({"session": CANARY, "cwd": f"/tmp/{CANARY}"}) + "\n" + lines("We chose pnpm"))
    index(place, [str(path)])
    path.unlink()
    plain = "AKIA" + "Q7RT2YX9LM4KD8WZ"
    for session in (CANARY, plain):
        write_message(str(desk.root / "home"), session, "user", "hello", cwd=f"/srv/{CANARY}", secret=bytes)

    assert len(list((desk.root / "home" / "taken-down").iterdir())) == 2
    assert not places_of(CANARY, plain)


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ({"agent": f"agent-{CANARY}"}, "an agent"),
        ({"agent": "ada", "task": CANARY, "tier": "working"}, "a task"),
        ({"agent": "ada", "namespace": CANARY}, "a namespace"),
        ({"agent": "ada", "namespace": CANARY, "tier": "semantic"}, "a namespace"),
    ],
    ids=["agent", "task", "namespace", "shared"],
)
def test_a_name_that_a_caller_chose_is_refused(opened, places_of, names, what):
    """In a sentence that says why and does not repeat it."""
    rest = {"tier": "episodic"} | {name: given for name, given in names.items() if name != "agent"}
    with pytest.raises(InvalidInput, match=f"the name of {what} holds a secret .github-pat.; choose a name") as error:
        Intents(opened.store).store(Caller(), names["agent"], "k", 1, **rest)
    assert CANARY not in str(error.value)
    assert not places_of(CANARY)


def test_a_task_and_its_agents_are_refused_likewise(opened, places_of):
    """Whoever is assigned, coordinates or stands above it is named as well."""
    intents = Intents(opened.store)
    for names in (
        {"id": CANARY, "agent": "ada"},
        {"id": "t", "agent": CANARY},
        {"id": "t", "agent": "a", "parent": CANARY},
    ):
        with pytest.raises(InvalidInput, match="holds a secret"):
            intents.begin(Caller(), names.pop("id"), **names)
    assert not places_of(CANARY)


def test_a_category_a_session_and_a_key_are_refused_likewise(desk, opened, places_of):
    """As the caller wrote them: the slug of a category would hide what it was."""
    free = opened.memory.binding.replace(categories=None, channel=Channel.USER)
    with pytest.raises(InvalidInput, match="the name of a category holds a secret"):
        opened.memory.__class__(opened.store, free, clock=desk.clock).remember("words", category=CANARY)
    with pytest.raises(InvalidInput, match="the name of a session holds a secret"):
        Sessions(opened.store, opened.where.project, "ada", clock=desk.clock).save(CANARY, [])
    with pytest.raises(InvalidInput, match="the name of a key holds a secret"):
        Keys(opened.store).create(CANARY)
    assert not places_of(CANARY)


def _sessions(place):
    from commonplace.model.queries import DocumentFilter  # noqa: PLC0415 - only for these

    return DocumentFilter(scopes=frozenset({place.scope}))
