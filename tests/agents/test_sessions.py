"""Sessions: one document each, what is stripped and taken out on the way in, where a history may begin."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.agents.tolerance import tolerate
from commonplace.model.changes import PutDocument
from commonplace.model.errors import StoreError
from commonplace.model.queries import DocumentFilter
from commonplace.model.scopes import Scope
from commonplace.roles.sessions import Sessions, history_window, new_session, preview, recent_words, user_texts
from commonplace.stores.sqlite.store import SqliteStore
from stands import rows

SCOPE = Scope.of(("namespace", "assistant"))


def ask(text):
    """Something that the user says."""
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


def answer(text):
    """Something that the model says."""
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def call():
    """A model that wants a tool."""
    return {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "recall", "args": "{}"}]}


def result():
    """What the tool gave."""
    return {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "recall", "content": "none"}]}


def merged():
    """What the tool gave, and what the user said after it."""
    return {"kind": "request", "parts": [*result()["parts"], *ask("and?")["parts"]]}


class Clock:
    """A clock that somebody moves."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        """The time; it goes on by a minute with every look."""
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def store(tmp_path):
    """A store on disk."""
    return SqliteStore(str(tmp_path / "memory.db"))


@pytest.fixture
def sessions(store):
    """The sessions of an agent."""
    return Sessions(store, SCOPE, "assistant", clock=Clock())


def test_a_session_is_named_by_twelve_hexadecimal_digits():
    """Two sessions never share a name."""
    one, other = new_session(), new_session()
    assert len(one) == len(other) == 12
    assert one != other
    assert int(one, 16) >= 0


def test_what_is_saved_is_read_again(sessions):
    """The messages come back as they were, with how many there are and how the user began."""
    sessions.save("a1", [ask("I like tea"), answer("Noted.")])
    found = sessions.newest()
    assert found.read() == [ask("I like tea"), answer("Noted.")]
    assert (found.id, found.agent, found.messages, found.preview) == ("a1", "assistant", 2, "I like tea")


def test_forty_turns_are_one_document(sessions, store):
    """Saving after every turn replaces the session; the store grows by its history, not by its square (defect 8)."""
    said = []
    for turn in range(40):
        said += [ask(f"turn {turn}"), answer("yes")]
        sessions.save("a1", said)
    documents = store.documents(DocumentFilter(scopes=frozenset({SCOPE})), limit=100)
    assert [document.name for document in documents] == ["a1"]
    assert len(sessions.newest().read()) == 80
    assert len(documents[0].content) < 10_000


def test_pruning_counts_sessions_and_not_turns(sessions):
    """Nine old sessions and one of twelve turns, keep ten: all ten are there (defect 7)."""
    for old in range(9):
        sessions.save(f"old{old}", [ask("hello")])
    for turn in range(12):
        sessions.save("long", [ask("hello")] * (turn + 1))
    assert sessions.prune(10) == 0
    assert len(sessions.all()) == 10
    assert sessions.prune(3) == 7
    assert [session.id for session in sessions.all()] == ["long", "old8", "old7"]


def test_agents_that_share_a_store_do_not_see_each_others_sessions(sessions, store):
    """Neither resuming nor pruning nor clearing touches another agent's sessions."""
    other = Sessions(store, SCOPE, "reviewer", clock=Clock())
    other.save("b1", [ask("mine")])
    sessions.save("a1", [ask("yours")])
    assert other.newest().id == "b1"
    assert sessions.clear() == 1
    assert sessions.newest() is None
    assert other.prune(1) == 0
    assert [session.id for session in other.all()] == ["b1"]


def test_a_session_that_is_saved_again_is_the_newest(sessions):
    """Going on with nothing new still makes a session the one that is resumed."""
    sessions.save("a1", [ask("one")])
    sessions.save("a2", [ask("two")])
    sessions.save("a1", [ask("one")])
    assert sessions.newest().id == "a1"


def test_the_roles_words_are_not_saved(sessions):
    """System prompts and instructions are stripped, and a request that is empty then is dropped."""
    system = {"part_kind": "system-prompt", "content": "You are old."}
    mixed = ask("hello") | {"instructions": "You are old.", "run_id": None}
    mixed["parts"] = [system, *mixed["parts"]]
    sessions.save("a1", [{"kind": "request", "parts": [system]}, mixed, answer("hi")])
    assert sessions.newest().read() == [ask("hello"), answer("hi")]


def test_secrets_are_taken_out_before_a_session_is_stored(sessions):
    """A key that somebody typed, and one that a tool was called with, are on no disk."""
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    asking = call()
    asking["parts"][0]["args"] = {"query": f"token {key}"}
    sessions.save("a1", [ask(f"my token is {key}"), asking, result(), answer("ok")])
    assert key not in sessions.newest().content
    assert "[secret:" in sessions.newest().preview
    assert sessions.newest().read()[1]["parts"][0]["tool_name"] == "recall"


def test_a_session_that_somebody_spoiled_is_said_to_be_unreadable(sessions, store):
    """A document that is no list of messages is one clear sentence."""
    sessions.save("a1", [ask("one")])
    [document] = store.documents(DocumentFilter(scopes=frozenset({SCOPE})), limit=1)
    for content in (
        "{",
        '{"a": 1}',
        '[{"kind": "request"}]',
        '[{"parts": "x"}]',
        '[{"parts": [1]}]',
        '[{"parts": null}]',
    ):
        store.apply([PutDocument(document=document.replace(content=content, digest=content))])
        with pytest.raises(StoreError, match="the session 'a1' cannot be read"):
            sessions.newest().read()


@rows(
    "messages, most, expected",
    [
        ([ask("a"), answer("b"), ask("c"), answer("d")], 20, [ask("a"), answer("b"), ask("c"), answer("d")]),
        ([ask("a"), answer("b"), ask("c"), answer("d")], 3, [ask("c"), answer("d")]),
        ([ask("a"), answer("b"), ask("c"), answer("d")], 2, [ask("c"), answer("d")]),
        ([answer("b")], 20, []),
        ([], 20, []),
        ([ask("a"), call(), result(), call(), result(), answer("d")], 4, [ask("a"), answer("d")]),
        ([ask("a"), call(), result(), call()], 2, []),
        ([ask("a"), call(), merged(), answer("b"), ask("c"), answer("d")], 4, [ask("c"), answer("d")]),
        ([ask("a"), answer("b")], 1, []),
        ([ask("a"), answer("b")], 0, []),
    ],
)
def test_a_history_begins_with_something_the_user_said(messages, most, expected):
    """Never with an answer, never with the result of a call that is cut off, and never with more than was asked for."""
    assert history_window(messages, most) == expected


def test_what_to_recall_by_is_what_the_user_said_last():
    """Five messages, oldest first, and of those the last five hundred characters."""
    messages = [ask(str(number)) for number in range(7)]
    assert recent_words(messages) == "2\n3\n4\n5\n6"
    assert recent_words([ask("x" * 600), ask("tea")]) == "x" * 496 + "\ntea"
    assert recent_words([answer("tea")]) == ""


def test_a_prompt_in_pieces_has_words_too():
    """Beside a picture only the words count; without any the session has no title."""
    pieces = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["look", {"url": "x"}, "here"]}]}
    assert user_texts([pieces]) == ["look here"]
    assert preview([answer("hi")]) == "Untitled"
    assert preview([ask("y" * 100)]) == "y" * 80


def test_what_is_tolerated_ends_nothing(caplog):
    """The user hears one sentence, the log has everything, and the program goes on."""
    told = []
    with caplog.at_level(logging.WARNING, "commonplace"), tolerate("it was not saved", notify=told.append):
        raise ZeroDivisionError("by\nzero")
    assert told == ["it was not saved: by ⏎ zero"]
    assert "ZeroDivisionError" in caplog.text


def test_what_is_tolerated_can_be_interrupted():
    """Ctrl-C is no failure."""
    told = []
    with pytest.raises(KeyboardInterrupt), tolerate("it was not saved", notify=told.append):
        raise KeyboardInterrupt
    assert told == []
