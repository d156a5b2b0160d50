"""``commonplace extract`` with a model: the real command, the real provider, a service on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")
sys.path.insert(0, str(Path(__file__).parents[1]))

from loopback import LoopbackServer, fails, hangs, says

SAID = {"role": "user", "content": "Use pnpm, not npm, in this repo.", "time": "2026-01-01T09:00:00Z"}
FACT = {"content": "Use pnpm, not npm", "category": "decisions", "quote": "Use pnpm, not npm", "turns": [1]}
ANSWER = json.dumps({"rollout_summary": "pnpm", "rollout_slug": "pnpm", "raw_memory": "- pnpm", "records": [FACT]})


@pytest.fixture
def asked(cli):
    """Extract from one session with a model that answers so; returns what came of it and what the model was sent."""

    def asked(*answers, timeout=20):
        (cli.folder / "0b1c.jsonl").write_text(json.dumps(SAID) + "\n")
        with LoopbackServer(answers=list(answers)) as server:
            models = f"models:\n  default: tiny\n  base_url: {server.base_url}\n  timeout_seconds: {timeout}\n"
            cli.configure(f"project: a\nmemories:\n  enabled: true\n  mode: model\n{models}")
            cli.ok("index", cli.folder / "0b1c.jsonl")
            done = cli("extract", "--session", "0b1c", "--json")
            return done, server.chats

    return asked


def test_a_model_is_asked_and_its_records_are_kept(cli, asked):
    """The session is in the prompt, and the record has its evidence."""
    done, chats = asked(ANSWER)

    assert done.code == 0, done
    assert "Use pnpm, not npm, in this repo." in chats[0].prompt
    [record] = cli.ok("record", "list", "--json").json["records"]
    assert (record["content"], record["metadata"]["evidence"]) == ("Use pnpm, not npm", ["session:0b1c#1"])


def test_a_busy_service_is_asked_again(asked):
    """429 with the time to wait, then the answer."""
    done, chats = asked(fails(429, retry_after=0), fails(503, retry_after=0), ANSWER)

    assert (done.code, len(done.json["records"]), len(chats)) == (0, 1, 3)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([says("I cannot help with that."), says("Really not.")], id="a refusal in words"),
        pytest.param([says("", refusal="no"), says("", refusal="no")], id="a refusal"),
        pytest.param([says('{"rollout_summary": "x'), says("{")], id="half an object"),
        pytest.param([fails(401, "bad key")], id="no access"),
        pytest.param([hangs()], id="nothing at all"),
    ],
)
def test_a_model_that_fails_is_reported_and_loses_nothing(cli, asked, answers):
    """Exit code 1, the session by name with the reason, no record, and the job is there to be tried again."""
    done, _ = asked(*answers, timeout=1)

    assert done.code == 1, done
    assert [left["session"] for left in done.json["failed"]] == ["0b1c"]
    assert cli.ok("record", "list", "--json").json["records"] == []
    [left] = cli("extract", "--session", "0b1c", "--json").json["skipped"]
    assert (left["reason"], left["error"]) == ("waiting to be tried again", done.json["failed"][0]["reason"])
