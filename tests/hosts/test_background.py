"""Learning with a model through hooks: by itself, beside the session, once, and told of at the next start."""

from __future__ import annotations

import json
import os
import time

import pytest

from commonplace.app import open_app
from commonplace.learning.background import alone, is_learning
from hosts import recorded
from hosts.conftest import SAID
from loopback import LoopbackServer, fails, hangs, says
from stands import agree

FACT = "Use pnpm, not npm"
SECONDS = 60  # until a background process has done its work on a busy machine

EXTRACTED = json.dumps({
    "rollout_summary": "pnpm was chosen", "rollout_slug": "pnpm", "raw_memory": f"- {FACT}",
    "records": [{"content": FACT, "category": "principles", "quote": SAID, "turns": [1]}],
})  # fmt: skip
CONSOLIDATED = json.dumps(
    {"memory_md": f"# Memory\n\n## Principles\n\n- {FACT}", "memory_summary": f"- {FACT}", "skills": []}
)


def answer(request):
    """What a model of both stages answers."""
    return says(EXTRACTED if "transcript of one finished" in request.system else CONSOLIDATED)


def learns_with_a_model(person, base_url):
    """Let the project learn with the model at an address."""
    person.learns()
    config = person.work / ".commonplace" / "config.yaml"
    text = config.read_text().replace("mode: rules", "mode: model", 1).partition("\nmodels:")[0]
    models = f"models:\n  default: openai:scripted\n  base_url: {base_url}\n  timeout_seconds: 20\n"
    config.write_text(f"{text}\n{models}")
    agree(person.work, person.data)
    person.data.mkdir(exist_ok=True)
    with open(person.data / "config.yaml", "a", encoding="utf-8") as file:
        file.write(f"key_hosts: OPENAI_API_KEY@{base_url.split('/')[2]}\n")
    person.env["OPENAI_API_KEY"] = "sk-of-a-test"


def end(person, session="s1", *said, **env):
    """The end of a session of Claude Code, as its hook tells it."""
    path = recorded.claude(person, session, *(said or (SAID,)))
    given = {"session_id": session, "cwd": str(person.work), "transcript_path": str(path), "reason": "exit"}
    return person.hook("session-end", given, "--host", "claude-code", **env)


def start(person, session="s2"):
    """What the next session is shown when it starts."""
    given = {"session_id": session, "cwd": str(person.work), "source": "startup"}
    answer = person.hook("session-start", given, "--host", "claude-code")
    return answer["hookSpecificOutput"]["additionalContext"] if answer else ""


def wait_until(condition):
    """Wait for a background process to come so far."""
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def at_rest(person):
    """Whether no process learns in the project any more."""
    with open_app(str(person.work), env=person.env) as app:
        return not is_learning(app.where.home, app.where.project)


def memory_md(person):
    """What the model has written so far."""
    path = person.work / ".commonplace" / "MEMORY.md"
    return path.read_text() if path.exists() else ""


def test_the_end_of_a_session_is_learned_from_with_a_model_and_the_next_start_says_so(person):
    """Nobody types a command: the hook starts it, and the record and one line about it are in the next brief."""
    with LoopbackServer(answers=answer) as server:
        learns_with_a_model(person, server.base_url)
        end(person)
        assert wait_until(lambda: FACT in memory_md(person) and at_rest(person))
        shown = start(person)
        assert len(server.chats) == 2
    assert FACT in shown
    assert "from 1 session: 1 record." in shown.splitlines()[0]
    assert person.log == ""


def test_a_model_that_hangs_holds_up_no_session(person):
    """The hooks answer while it thinks, and start no second process."""
    with LoopbackServer(answers=lambda _request: hangs()) as server:
        learns_with_a_model(person, server.base_url)
        end(person)
        assert wait_until(lambda: server.chats)
        start(person)
        end(person, "s2", "We deploy with make ship.")
        assert len(server.chats) == 1
    assert wait_until(lambda: at_rest(person))
    assert person.log == ""


def test_a_model_that_fails_breaks_no_session_and_is_reported(person):
    """The next start answers all the same; the status says what is wrong, and the session is not lost."""
    with LoopbackServer(answers=lambda _request: fails(401, "no such key")) as server:
        learns_with_a_model(person, server.base_url)
        end(person)
        assert wait_until(lambda: server.chats and at_rest(person))
        start(person)
    jobs = person.ok("status", "--jobs").out
    assert "failed: extract s1" in jobs
    assert "tries left" in jobs


def test_one_process_learns_in_a_project_at_a_time(person):
    """Whoever comes while another is at it leaves at once, and no call is made."""
    with LoopbackServer(answers=answer) as server:
        learns_with_a_model(person, server.base_url)
        with open_app(str(person.work), env=person.env) as app, alone(app.where.home, app.where.project) as is_free:
            assert is_free
            end(person)
            assert person.ok("learn", "--detached").out == ""
            assert server.chats == []


@pytest.mark.parametrize("mode", ["rules", "host"])
def test_no_process_is_started_where_no_model_learns(person, mode):
    """Rules learn in the hook itself, and a host's agent thinks when it is asked to."""
    person.learns()
    config = person.work / ".commonplace" / "config.yaml"
    config.write_text(config.read_text().replace("mode: rules", f"mode: {mode}", 1))
    agree(person.work, person.data)
    end(person)
    assert not os.path.exists(person.data / "learn.log")
