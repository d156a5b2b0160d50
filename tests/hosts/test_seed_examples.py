"""The examples of the records system, from a session through a host's hooks to the next one, with no key."""

from __future__ import annotations

import pytest

from hosts import recorded
from hosts.test_hooks import base, context

SESSION = (
    "Use pnpm, not npm, in this repo.",
    "I prefer concise responses, in every project.",
    "Remember: the login test failed because the clock was mocked wrongly; the fix was to freeze time in the fixture.",
)


@pytest.fixture
def next_session(person):
    """What the session after that one is shown when it starts, and with a prompt about something else."""
    person.learns()
    path = recorded.claude(person, "s1", *SESSION)
    end = base(person, "s1", "SessionEnd", transcript_path=str(path), reason="prompt_input_exit")
    person.hook("session-end", end, "--host", "claude-code")
    return context(person.hook("session-start", base(person, "s2", "SessionStart"), "--host", "claude-code"))


@pytest.mark.parametrize("words", ["pnpm, not npm", "concise responses", "freeze time in the fixture"])
def test_what_was_said_is_in_the_next_brief(next_session, words):
    """The rule of this repository, the preference for all of them, and the incident with its fix."""
    assert words in next_session


def test_the_preference_follows_its_user_into_another_project(person, next_session, tmp_path):
    """And the rule of this repository does not."""
    assert next_session
    other = tmp_path / "other"
    other.mkdir()
    person.ok("init", cwd=other)
    payload = {"session_id": "s3", "cwd": str(other), "source": "startup"}
    shown = context(person.hook("session-start", payload, "--host", "claude-code"))
    assert "concise responses" in shown
    assert "pnpm" not in shown


def test_nothing_of_ones_own_memory_is_in_the_project(person, next_session):
    """The folder may be committed."""
    assert next_session
    files = [path for path in (person.work / ".commonplace").rglob("*") if path.is_file()]
    assert [path.name for path in files if "concise" in path.read_text(errors="replace")] == []
    assert [path.name for path in files if "pnpm" in path.read_text(errors="replace")]


def test_the_incident_answers_a_prompt_about_it(person, next_session):
    """With its cause and its fix."""
    assert next_session
    asked = base(person, "s2", "UserPromptSubmit", prompt="why does the login test fail again?")
    assert "freeze time" in context(person.hook("prompt", asked, "--host", "claude-code"))
