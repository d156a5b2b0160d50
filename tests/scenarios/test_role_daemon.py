"""An agent that waits, as a process of its own: called, set off by files, and told to end."""

from __future__ import annotations

import re
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from desk import QUICK_START, MemoryAccess, model
from loopback import LoopbackServer, hangs

TRIGGERS = """\
  triggers:
    - type: cron
      schedule: "0 9 * * 1"
      prompt: "Generate weekly status report."
    - type: file_watch
      paths: ["./watched"]
      extensions: [".md", ".txt"]
      prompt_template: "File changed: {path}. Summarize the changes."
      debounce_seconds: 0.1
    - type: webhook
      path: /webhook
      port: PORT
      secret_env: WEBHOOK_SECRET
"""


def free():
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def posted(port, text, secret="s3cret"):
    """Call the webhook; returns the status."""
    call = urllib.request.Request(f"http://127.0.0.1:{port}/webhook", data=text.encode(), method="POST")
    call.add_header("Authorization", f"Bearer {secret}")
    try:
        with urllib.request.urlopen(call, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def until(true, *, seconds=60):
    """Wait for something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


class Waiting:
    """A daemon that has begun; its lines are read as they come."""

    def __init__(self, desk):
        self.port = free()
        (desk.folder / "watched").mkdir()
        (desk.folder / ".env").write_text("WEBHOOK_SECRET=s3cret\n")
        desk.writes(QUICK_START + TRIGGERS.replace("PORT", str(self.port)))
        self.process = desk.starts("run", "role.yaml", "--daemon")
        self.lines = [self.process.stderr.readline() for _ in range(3)]

    def ended(self):
        """What it said besides, how it answered, and its exit code."""
        out, err = self.process.communicate(timeout=60)
        return out, err, self.process.returncode


@pytest.mark.slow
def test_a_daemon_runs_at_every_trigger_and_ends_when_it_is_told_to(tmp_path):
    """The document's triggers: a line for each, a run and an episode for each event, and a clean end."""
    with LoopbackServer(answers=model, dimensions=1536) as server:
        desk = MemoryAccess(tmp_path, server)
        daemon = Waiting(desk)
        assert daemon.lines[0].startswith("cron 0 9 * * 1 (UTC), next at 20")
        assert daemon.lines[1] == f"file_watch {desk.folder / 'watched'} (.md, .txt)\n"
        assert daemon.lines[2] == f"webhook POST http://127.0.0.1:{daemon.port}/webhook (with a secret)\n"
        assert posted(daemon.port, "fact: Tea", secret="guessed") == 401
        assert posted(daemon.port, "fact: Ada drinks green tea") == 202
        note = desk.folder / "watched" / "note.md"
        until(lambda: note.write_text(str(time.time())) and any("File changed" in chat.prompt for chat in server.chats))
        until(lambda: sum(chat.body["messages"][-1]["role"] == "tool" for chat in server.chats) == 1)
        daemon.process.send_signal(signal.SIGTERM)
        out, err, code = daemon.ended()
        assert code == 0, err
        assert out.splitlines()[0].startswith("Done: Remembered (id=")
        assert "· webhook: fact: Ada drinks green tea\n· remember: Remembered (id=" in err
        shown = desk("memory", "list", "role.yaml").stdout
    assert re.search(r"\[episodic:daemon_run\] \(\S+\) Daemon trigger \(webhook\): Done: Remembered \(id=", shown)
    assert re.search(r"\[episodic:daemon_run\] \(\S+\) Daemon trigger \(file_watch\): You told me: nothing", shown)
    assert "[semantic:user_preferences]" in shown
    assert "guessed" not in shown


@pytest.mark.slow
def test_the_second_signal_ends_a_daemon_at_once(tmp_path):
    """The first signal waits for the run under way, the second does not."""
    with LoopbackServer(answers=[hangs()], dimensions=1536) as server:
        daemon = Waiting(MemoryAccess(tmp_path, server))
        assert posted(daemon.port, "Work") == 202
        until(lambda: server.chats)
        daemon.process.send_signal(signal.SIGINT)
        while "stopping after the current run" not in daemon.process.stderr.readline():
            pass
        daemon.process.send_signal(signal.SIGTERM)
        _, err, code = daemon.ended()
    assert (code, err) == (130, "commonplace: interrupted\n")
