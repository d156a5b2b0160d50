"""The agent that is running is asked, once and for a reason, to save what was settled; it can save quotes alone."""

from __future__ import annotations

import json

import pytest

from commonplace.app import open_app
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Channel, Trust
from commonplace.records.access import AppAccess
from commonplace.records.verbs import remember
from hosts import recorded

SAID = "We decided to keep invoices in integer cents, because floats rounded wrongly in March."
SMALL_TALK = "thanks, could you show me the file again?"
QUOTE = "keep invoices in integer cents"
FACT = "Invoices are kept in integer cents because floats rounded wrongly."


@pytest.fixture
def asks(person):
    """A project whose agents may be asked."""
    person.learns()
    person.data.mkdir(exist_ok=True)
    (person.data / "config.yaml").write_text("scripts_speak_as: user\n")
    person.ok("config", "set", "memories.askAgent", "true")
    return person


def claude(person, session, *said):
    """The end of a turn in Claude Code."""
    path = recorded.claude(person, session, *said)
    return {"session_id": session, "transcript_path": str(path), "hook_event_name": "Stop", "stop_hook_active": False}


def codex(person, session, *said):
    """The end of a turn in Codex."""
    recorded.codex(person, session, *said)
    return {"session_id": session, "transcript_path": None, "hook_event_name": "Stop", "stop_hook_active": False}


def gemini(person, session, *said):
    """The end of a turn in Gemini CLI."""
    path = recorded.gemini(person, session, *said)
    return {"session_id": session, "transcript_path": str(path), "hook_event_name": "AfterAgent", "prompt": "x"}


def opencode(person, session, *said):
    """OpenCode is idle, which its plugin says."""
    recorded.opencode(person, session, *said)
    return {"session_id": session}


HOSTS = {"claude-code": claude, "codex": codex, "gemini": gemini, "opencode": opencode}


def stop(person, host, session, *said, **more):
    """What a host is answered at the end of a turn."""
    payload = HOSTS[host](person, session, *said) | {"cwd": str(person.work)} | more
    return person.hook("stop", payload, "--host", host)


def message(answer):
    """The message in an answer, in the host's own form."""
    return answer.get("ask") or (answer["reason"] if answer.get("decision") == "block" else "")


@pytest.mark.parametrize("host", HOSTS)
def test_a_turn_that_settled_something_is_followed_by_one_message(asks, host):
    """It names the session, has no word of it, and is not sent again."""
    payload = HOSTS[host](asks, "s1", SAID) | {"cwd": str(asks.work)}
    asked = message(asks.hook("stop", payload, "--host", host))
    assert 'session: "s1"' in asked
    assert "invoices" not in asked
    assert asks.hook("stop", payload, "--host", host) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_small_talk_is_followed_by_nothing(asks, host):
    """A message costs the user a call of the model."""
    assert stop(asks, host, "s1", SMALL_TALK) == {}


def test_nothing_is_asked_unless_it_is_switched_on(asks):
    """One setting, off by default."""
    asks.ok("config", "unset", "memories.askAgent")
    assert stop(asks, "claude-code", "s1", SAID) == {}


def test_the_answer_to_a_message_is_not_asked_about(asks):
    """Hosts say that a hook has made the agent go on."""
    assert stop(asks, "claude-code", "s1", SAID, stop_hook_active=True) == {}


def test_after_a_compaction_what_came_since_may_be_asked_about(asks):
    """But not what was asked about before it."""
    assert message(stop(asks, "claude-code", "s1", SAID))
    compact = claude(asks, "s1", SAID) | {"cwd": str(asks.work), "trigger": "auto", "hook_event_name": "PreCompact"}
    asks.hook("compact", compact, "--host", "claude-code")
    assert stop(asks, "claude-code", "s1", SAID) == {}
    assert message(stop(asks, "claude-code", "s1", SAID, *["ok"] * 9, "We never deploy on a Friday, remember that."))


def test_the_message_is_no_memory(asks):
    """However a host writes it down, nobody is shown it again or learns from it."""
    asked = message(stop(asks, "claude-code", "s1", SAID))
    forms = [
        f"Stop hook feedback:\n{asked}",
        f'<hook_prompt hook_run_id="stop:4:/x">{asked}</hook_prompt>',
        asked,
    ]
    for number, form in enumerate(forms):
        stop(asks, "claude-code", f"t{number}", form)
        stop(asks, "codex", f"u{number}", form)
    assert "before you stop" not in asks("recall", "this session may have settled things that later sessions need").out
    assert asks.ok("record", "list", "--json").json["records"] == []


@pytest.fixture
def saved(asks):
    """Save as the agent does that was asked about a session; returns the record."""
    stop(asks, "claude-code", "s1", SAID, "I prefer tabs everywhere.")

    def save(content=FACT, **fields):
        with open_app(str(asks.work), env=asks.env, channel=Channel.AGENT) as app:
            done = remember(AppAccess(app), content, **{"category": "decisions"} | fields)
            return app.memory.get(done.record.id)

    return save


def test_a_quoted_fact_is_saved_as_the_agents_word_with_its_evidence(saved):
    """Where it was said is in the record, so that it can be looked up and reviewed."""
    record = saved(quote=QUOTE, session="s1")
    assert (record.trust, record.source.channel) == (Trust.AGENT, Channel.AGENT)
    assert record.metadata["quote"] == QUOTE
    assert record.source.ref == "session:s1#1"


WRONG = {
    "words that nobody said": ({"quote": "keep invoices in floating cents", "session": "s1"}, "the quote is not in"),
    "one word": ({"quote": "invoices", "session": "s1"}, "the quote is not in"),
    "another session": ({"quote": QUOTE, "session": "s9"}, "there is no session 's9'"),
    "no session": ({"quote": QUOTE}, "quote and session go together"),
    "no quote": ({"session": "s1"}, "quote and session go together"),
}


@pytest.mark.parametrize(("fields", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_not_quoted_from_the_session_is_not_saved(asks, saved, fields, reason):
    """The agent is told what to do instead."""
    with pytest.raises(InvalidInput, match=reason):
        saved(**fields)
    assert asks.ok("record", "list", "--json").json["records"] == []


def test_what_only_a_tool_printed_becomes_no_rule(saved):
    """It may be the evidence of an incident; it is nobody's instruction."""
    printed = {"quote": recorded.RESULT, "session": "s1"}
    with pytest.raises(InvalidInput, match="the quote is not in"):
        saved("Keep the lockfile up to date", category="principles", **printed)
    assert saved("The install said that the lockfile is up to date", category="incidents", **printed)


def test_what_the_agent_saved_is_not_learned_a_second_time(asks, saved):
    """The rules find the same sentence at the end of the session, and it is known already."""
    saved(quote=QUOTE, session="s1")
    payload = claude(asks, "s1", SAID, "I prefer tabs everywhere.") | {"cwd": str(asks.work), "reason": "exit"}
    asks.hook("session-end", payload, "--host", "claude-code")
    contents = [record["content"] for record in asks.ok("record", "list", "--json").json["records"]]
    assert [content for content in contents if "cents" in content] == [FACT]


def test_what_the_agent_saves_without_a_quote_waits_for_review(asks, saved):
    """The next stop reads what it has called since it was asked; what it saved before or quoted stays."""
    saved(quote=QUOTE, session="s1")
    saved("The office plant is called Fern", category="facts")
    payload = claude(asks, "s1", SAID, "I prefer tabs everywhere.") | {"cwd": str(asks.work), "stop_hook_active": True}
    arguments = {"content": "The office plant is called Fern", "category": "facts"}
    call = {"type": "tool_use", "id": "t9", "name": "mcp__commonplace__remember", "input": arguments}
    line = {"type": "assistant", "sessionId": "s1", "timestamp": "2099-01-01T00:00:00Z", "message": {
        "role": "assistant", "content": [call]}}  # fmt: skip
    with open(payload["transcript_path"], "a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")
    assert asks.hook("stop", payload, "--host", "claude-code") == {}
    held = {
        record["content"]: record["held"]
        for record in asks.ok("record", "list", "--state", "all", "--json").json["records"]
    }
    assert held == {FACT: False, "The office plant is called Fern": True}


def test_connect_switches_asking_on_and_off(person):
    """Once, in one's own words; --yes alone only says that it can be had."""
    person.ok("init")
    assert "memories.askAgent true" in person.ok("connect", "claude-code", "--yes").err
    assert person.ok("config", "get", "memories.askAgent").out == "false\n"
    assert "is asked once" in person.ok("connect", "claude-code", "--yes", "--ask-agent").err
    assert person.ok("config", "get", "memories.askAgent").out == "true\n"
    assert "is not asked" in person.ok("connect", "claude-code", "--yes", "--no-ask-agent").err
    assert person.ok("config", "get", "memories.askAgent").out == "false\n"
