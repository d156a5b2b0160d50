"""Role memory end to end: the document's YAML and commands, the real command, and a model that records what it is sent.

The model's address is the document's provider's, moved here by the environment: the files are as the document has them.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from loopback import LoopbackServer, calls, says

COMMAND = str(Path(sys.executable).with_name("commonplace"))
PROCEDURES = "## Learned Procedures and Policies"
RECALLED = "## Recalled Memories (from previous sessions)"

QUICK_START = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: assistant
  description: Agent with rich memory
spec:
  role: |
    You are a helpful assistant with long-term memory.
    Use the remember() tool to save important facts.
    Use the recall() tool to search your memories before answering.
    Use the learn_procedure() tool to record useful patterns.
  model:
    provider: openai
    name: gpt-4o-mini
  memory:
    max_sessions: 10
    max_resume_messages: 20
    semantic:
      max_memories: 1000
    episodic:
      max_episodes: 500
    procedural:
      max_procedures: 100
    consolidation:
      enabled: true
      interval: after_session
"""
MINIMAL = QUICK_START[: QUICK_START.index("    max_sessions")] + "    semantic:\n      max_memories: 1000\n"


def model(request):
    """A model that does with its memory what its prompt asks for, and says what it knows."""
    messages = request.body["messages"]
    if "tools" not in request.body:  # the consolidation
        return says("preference: The user drinks green tea [1]")
    if messages[-1]["role"] == "tool":
        return says(f"Done: {messages[-1]['content'].splitlines()[-1]}")
    said, *rest = request.prompt.split(": ", 1)
    tools = {"fact": "remember", "rule": "learn_procedure", "event": "record_episode"}
    if said in tools:
        return calls((tools[said], {"content": rest[0], "category": "User Preferences"}))
    if said == "find":
        return calls(("recall", {"query": rest[0]}))
    if said == "finish":
        return calls(("finish_task", {"summary": rest[0]}))
    earlier = [message["content"] for message in messages if message["role"] == "user"][:-1]
    return says(f"You told me: {' / '.join(earlier) or 'nothing'}")


class Desk:
    """A folder with a role in it, a data folder, and the real command."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        ours = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
        self.env = ours | {
            "HOME": str(folder), "COMMONPLACE_HOME": str(folder / "home"), "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": server.base_url, "TERM": "dumb", "NO_COLOR": "1",
        }  # fmt: skip
        self.writes(QUICK_START)

    def writes(self, role, name="role.yaml"):
        """Put a role into a file."""
        (self.folder / name).write_text(role)

    def __call__(self, *arguments, stdin=""):
        """Run the command to its end."""
        done = subprocess.run(
            [COMMAND, *arguments], cwd=self.folder, env=self.env, input=stdin, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    def sits_down(self, *arguments):
        """Run the command at a terminal."""
        child = pexpect.spawn(
            COMMAND, list(arguments), cwd=str(self.folder), env=self.env, encoding="utf-8", timeout=30, echo=False
        )
        child.expect("/quit ends it")
        child.expect("> ")
        return child

    @property
    def last(self):
        """What the model was sent last, by an agent."""
        return [chat for chat in self.server.chats if "tools" in chat.body][-1]


@pytest.fixture
def desk(tmp_path):
    """A desk, with a model that answers."""
    with LoopbackServer(answers=model) as server:
        yield Desk(tmp_path, server)


@pytest.mark.slow
def test_a_conversation_at_a_terminal_is_gone_on_with_the_next_day(desk):
    """Chat, quit, resume, ask: the model has the old words, the new role and what it remembered, in every turn."""
    child = desk.sits_down("run", "role.yaml", "-i")
    for line, answer in [
        ("My name is Ada", "You told me: nothing"),
        ("fact: Ada drinks green tea", "Done: Remembered"),
        ("rule: Answer in one sentence", "Done: Learned procedure"),
    ]:
        child.sendline(line)
        child.expect(re.escape(answer))
        child.expect("> ")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    desk.writes(QUICK_START.replace("a helpful assistant", "a terse assistant"))

    child = pexpect.spawn(COMMAND, ["run", "role.yaml", "-i", "--resume"], cwd=str(desk.folder), env=desk.env,
                          encoding="utf-8", timeout=30, echo=False)  # fmt: skip
    child.expect(r"Resumed session with 10 messages\.")
    child.expect(r"Loaded relevant memories from previous sessions\.")
    child.expect("> ")
    for line in ("What is my name?", "And what do I drink?"):
        child.sendline(line)
        child.expect("You told me: My name is Ada / fact: Ada drinks green tea")
        child.expect("> ")
        system = desk.last.system
        assert "a terse assistant" in system
        assert "a helpful assistant" not in json.dumps(desk.last.body)
        assert f"{PROCEDURES}\n\n- [user_preferences] Answer in one sentence" in system
        assert f"{RECALLED}\n\n- [semantic] Ada drinks green tea" in system
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.slow
def test_ctrl_c_at_a_terminal_interrupts_an_answer_and_not_the_program(tmp_path):
    """The prompt comes back at once, lines can be edited and fetched again, and the end is a clean one."""
    with LoopbackServer(answers=[says("late", delay_s=60), "quick", "once more"]) as server:
        desk = Desk(tmp_path, server)
        desk.env["TERM"] = "xterm"
        child = desk.sits_down("run", "role.yaml")
        child.logfile_read = screen = io.StringIO()
        child.sendline("a long story")
        while not server.chats:
            child.expect(pexpect.TIMEOUT, timeout=0.1)
        child.sendintr()
        child.expect("the answer was interrupted")
        child.expect("> ")
        child.sendline("shoort\x02\x02\x08")  # two back, one away: short
        child.expect("quick")
        child.expect("> ")
        child.send("\x1b[A\r")  # up: the same again
        child.expect("once more")
        child.expect("> ")
        child.sendintr()
        child.expect("say /quit or press Ctrl-D")
        child.sendline("/quit")
        child.expect(pexpect.EOF)
        child.close()
    assert child.exitstatus == 0
    assert [chat.prompt for chat in server.chats] == ["a long story", "short", "short"]
    assert "pydantic" not in screen.getvalue()  # the framework's banner is for programs that do not own their output


@pytest.mark.slow
def test_what_one_run_learns_the_next_one_knows(desk):
    """Facts are found, procedures stand before every run, and the tools answer in the document's words."""
    saved = desk("run", "role.yaml", "-p", "fact: The user prefers dark mode and vim keybindings.")
    assert re.fullmatch(r"Done: Remembered \(id=\w+, category=user_preferences\)\n", saved.stdout)
    desk("run", "role.yaml", "-p", "rule: Always run tests before deploying to production")
    found = desk("run", "role.yaml", "-p", "find: dark mode")
    assert found.stdout == "Done: The user prefers dark mode and vim keybindings.\n"
    [told] = [message["content"] for message in desk.last.body["messages"] if message["role"] == "tool"]
    assert re.match(r"\[Type: semantic \| Category: user_preferences \| Score: \d\.\d{3} \| \d{4}-\S+\+00:00\]\n", told)
    rules = f"{PROCEDURES}\n\n- [user_preferences] Always run tests before deploying to production"
    assert rules in desk.last.system


@pytest.mark.slow
def test_a_run_by_itself_leaves_an_episode_and_its_end_makes_a_fact_of_it(desk):
    """The summary is an episode; the consolidation at the end has it, and the fact is found by the next run."""
    done = desk("run", "role.yaml", "--autonomous", "--prompt", "finish: Ordered green tea for the user.")
    assert done.stdout == "Ordered green tea for the user.\n"
    assert "Created 1 semantic memories from episodic data." in done.stderr
    [thought] = [chat for chat in desk.server.chats if "tools" not in chat.body]
    assert "[autonomous_run]" in thought.prompt
    assert "Ordered green tea for the user." in thought.prompt
    assert desk("run", "role.yaml", "-p", "find: which tea?").stdout.startswith("Done: ")
    assert "The user drinks green tea" in str(desk.last.body["messages"])


@pytest.mark.slow
def test_a_run_by_itself_that_is_interrupted_has_kept_what_it_did(tmp_path):
    """Ctrl-C ends it at once with its exit code, and what was done until then can be resumed."""
    with LoopbackServer(answers=["I began", says("late", delay_s=60), "fine"]) as server:
        desk = Desk(tmp_path, server)
        arguments = [COMMAND, "run", "role.yaml", "-a", "-p", "Work"]
        with subprocess.Popen(arguments, cwd=desk.folder, env=desk.env, stderr=subprocess.PIPE, text=True) as working:
            while len(server.chats) < 2:
                time.sleep(0.01)
            working.send_signal(signal.SIGINT)
            assert working.stderr.read().endswith("commonplace: interrupted\n")
        assert working.returncode == 130
        assert "Resumed session with 2 messages." in desk("run", "role.yaml", "--resume", "-p", "and?").stderr


@pytest.mark.slow
def test_one_nested_key_is_enough(desk):
    """The minimal memory has every tool and keeps its sessions."""
    desk.writes(MINIMAL)
    desk("run", "role.yaml", "-i", stdin="My name is Ada\n")
    names = [tool["function"]["name"] for tool in desk.last.body["tools"]]
    assert names[:5] == ["remember", "learn_procedure", "record_episode", "recall", "list_memories"]
    assert "Resumed session with 2 messages." in desk("run", "role.yaml", "-i", "--resume", stdin="hi\n").stderr


@pytest.mark.slow
def test_without_a_file_memory_is_on_unless_it_is_switched_off(desk):
    """``run``, ``run --resume`` and ``run --no-memory``, as the document has them."""
    desk("run", stdin="My name is Ada\n")
    resumed = desk("run", "--resume", stdin="Who am I?\n")
    assert resumed.stdout == "You told me: My name is Ada\n"
    assert "remember" in str(desk.last.body["tools"])
    desk("run", "--no-memory", stdin="hi\n")
    assert "tools" not in desk.server.chats[-1].body


@pytest.mark.slow
def test_as_many_sessions_stay_as_the_role_says_however_many_turns_they_have(desk):
    """Three conversations, one of them long, two to keep: two are there, the newest whole (defects 7 and 8)."""
    from commonplace.agents.role_memory import role_memory  # noqa: PLC0415 - only to look
    from commonplace.config.role import load  # noqa: PLC0415

    desk.writes(QUICK_START.replace("max_sessions: 10", "max_sessions: 2"))
    for turns in (1, 1, 6):
        desk("run", "role.yaml", "-i", stdin="".join(f"turn {turn}\n" for turn in range(turns)))
    with role_memory(load(str(desk.folder / "role.yaml")), env=desk.env) as held:
        assert [saved.messages for saved in held.sessions.all()] == [12, 2]
