"""A folder with a role in it, a data folder, the real command, and a model that does what it is told and says so.

The model's address is the document's provider's, moved here by the environment: the files are as the document has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect

from commonplace.roles.dialect import load
from commonplace.roles.memory import role_memory
from loopback import calls, says
from stands import agree, scripts_of_the_user

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
    tools = {"fact": ("remember", "content"), "rule": ("learn_procedure", "content"), "find": ("recall", "query")}
    tools |= {"event": ("record_episode", "content"), "finish": ("finish_task", "summary")}
    if said.startswith("ask "):
        return calls((f"delegate_to_{said[4:]}", {"prompt": rest[0]}))
    if said in tools:
        name, argument = tools[said]
        labelled = {"category": "User Preferences"} if argument == "content" else {}
        return calls((name, {argument: rest[0]} | labelled))
    earlier = [message["content"] for message in messages if message["role"] == "user"][:-1]
    return says(f"You told me: {' / '.join(earlier) or 'nothing'}")


class MemoryAccess:
    """A folder with a role in it, a data folder, and the real command."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        ours = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
        self.env = ours | {
            "HOME": str(folder), "COMMONPLACE_HOME": str(folder / "home"), "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": server.base_url, "TERM": "dumb", "NO_COLOR": "1",
        }  # fmt: skip
        scripts_of_the_user(folder / "home")
        agree(folder, folder / "home")
        self.writes(QUICK_START)

    def writes(self, role, name="role.yaml"):
        """Put a role into a file."""
        (self.folder / name).write_text(role)

    def __call__(self, *arguments, stdin="", code=0):
        """Run the command to its end, which has to be this one."""
        done = subprocess.run(
            [COMMAND, *arguments], cwd=self.folder, env=self.env, input=stdin, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    def starts(self, *arguments):
        """Run the command and do not wait for it."""
        return subprocess.Popen(
            [COMMAND, *arguments], cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def sits_down(self, *arguments):
        """Run the command at a terminal."""
        child = pexpect.spawn(
            COMMAND,
            list(arguments),
            cwd=str(self.folder),
            env=self.env,
            encoding="utf-8",
            timeout=30,
            echo=False,
            use_poll=True,
        )
        child.expect("/quit ends the conversation")
        child.expect("> ")
        return child

    def memory(self, name="role.yaml"):
        """Look at what the agent of a role remembers, or put something there."""
        return role_memory(load(str(self.folder / name)), env=self.env)

    @property
    def last(self):
        """What the model was sent last, by an agent."""
        return [chat for chat in self.server.chats if "tools" in chat.body][-1]
