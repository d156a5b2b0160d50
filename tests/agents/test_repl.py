"""A conversation at a terminal, with somebody who types a script."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack

import pytest

from commonplace.model.records import Kind
from commonplace.roles.agent import RoleAgent
from commonplace.roles.commands.repl import AT_PROMPT, HELP, INTERRUPTED, MEMORY, Repl
from commonplace.roles.conversation import Conversation
from commonplace.roles.dialect import parse
from commonplace.roles.memory import role_memory
from loopback import LoopbackServer, calls, fails, hangs, says


class Somebody:
    """A terminal at which somebody types these lines; an exception among them is a key that is pressed."""

    def __init__(self, *lines, yes=False):
        self.lines, self.yes = list(lines), yes
        self.heard, self.said, self.notes, self.questions = "", [], [], []

    def ask(self):
        """The next line; then the end."""
        line = self.lines.pop(0) if self.lines else EOFError()
        if isinstance(line, BaseException):
            raise line
        return line

    def confirm(self, question):
        """Always the same answer."""
        self.questions.append(question)
        return self.yes

    def write(self, piece):
        """Hear a piece."""
        self.heard += piece

    def end(self):
        """Hear that it ended."""
        self.heard += "\n" if self.heard and not self.heard.endswith("\n") else ""

    def say(self, text):
        """Be told lines."""
        self.said.append(text)

    def warn(self, sentence):
        """Be told something besides."""
        self.notes.append(sentence)


class Place:
    """A role with its memory in a folder, and a model at an address."""

    def __init__(self, folder, server, opened):
        self.folder, self.server, self.opened = folder, server, opened
        self.memory = {}

    @property
    def role(self):
        """The role as a file would say it."""
        model = {"provider": "local", "name": "m", "base_url": self.server.base_url}
        said = {"name": "assistant", "role": "You help.", "model": model, "memory": self.memory}
        return parse(said, file="role.yaml")

    @property
    def held(self):
        """What the agent remembers."""
        return self.opened.enter_context(role_memory(self.role, env={"COMMONPLACE_HOME": str(self.folder)}))

    def type(self, *lines, first=None, **options):
        """Sit down, type, and leave; returns who was there."""
        somebody = Somebody(*lines, **options)
        held = self.held if self.memory is not None else None
        talk = Conversation(RoleAgent(self.role, held, env={}), notify=somebody.warn)
        Repl(talk, somebody).run(first)
        return somebody


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def place(tmp_path, server):
    """A role with a memory."""
    with ExitStack() as opened:
        yield Place(tmp_path, server, opened)


def test_every_line_is_a_turn_and_every_turn_is_saved(place, server):
    """Blank lines are none; the session has both exchanges, and one name."""
    server.add("hello", "fine")
    somebody = place.type("hi", "  ", "how are you?", "/quit", "never typed")
    assert somebody.heard == "hello\nfine\n"
    assert [saved.messages for saved in place.held.sessions.all()] == [4]
    assert len(server.chats) == 2


def test_a_path_is_no_command(place, server):
    """What begins with a slash and is no single word is said to the agent."""
    server.add("I see")
    assert place.type("/etc/hosts is wrong").heard == "I see\n"


def test_what_is_given_at_the_start_is_said_first(place, server):
    """A prompt and a conversation go together."""
    server.add("hello", "fine")
    place.type("more", first="hi")
    assert [chat.prompt for chat in server.chats] == ["hi", "more"]


def test_a_turn_that_fails_is_told_and_the_next_one_may_go_well(place, server):
    """The program goes on, whatever a provider says."""
    server.add(fails(400, "no"), says("half", finish="length"))
    somebody = place.type("one", "two")
    assert "answered 400: no" in somebody.notes[0]
    assert somebody.heard == "half\n"
    assert somebody.notes[1] == "the answer was cut off: the model used up its tokens"


def press_ctrl_c_when_asked(server):
    """Wait until the model is asked."""
    while not server.chats:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_interrupts_the_answer_and_not_the_conversation(place, server):
    """The model is given up on, the next line is a turn, and what was asked is remembered."""
    server.add(hangs(), "fine")
    presser = threading.Thread(target=press_ctrl_c_when_asked, args=[server])
    presser.start()
    somebody = place.type("a long story", "shorter")
    presser.join()
    assert somebody.notes == [INTERRUPTED]
    assert somebody.heard == "fine\n"
    said = [message["content"] for message in server.chats[1].body["messages"][1:]]
    assert said == ["a long story", "(interrupted)", "shorter"]


def test_ctrl_c_at_the_prompt_says_how_to_leave(place, server):
    """Nothing ends by accident."""
    server.add("hello")
    somebody = place.type(KeyboardInterrupt(), "hi")
    assert somebody.notes == [AT_PROMPT]
    assert somebody.heard == "hello\n"


def test_help_and_words_that_are_no_command(place):
    """Both are answered without asking a model."""
    somebody = place.type("/help", "/foo bar", "/memory what", "/memory list now")
    assert somebody.said == [HELP]
    assert somebody.notes == ["there is no '/foo'; /help says what there is", MEMORY, MEMORY]


def test_memory_view_shows_what_the_agent_is_told(place):
    """The block that the next turn gets, or that there is none."""
    somebody = place.type("/memory view", "/memory")
    assert somebody.said[0].startswith("The agent sees no memory yet")
    place.held.memory().remember("Be brief", kind=Kind.PROCEDURAL, category="style")
    assert place.type("/memory view").said == ["## Learned Procedures and Policies\n\n- [style] Be brief"]


def test_memory_list_shows_the_newest(place):
    """Each with the id by which it can be changed."""
    kept = place.held.memory().remember("Tea", kind=Kind.SEMANTIC, category="drinks").record
    [told] = place.type("/memory list").said
    assert told == f"#{kept.id} [semantic:drinks] ({kept.created_at.isoformat()}) Tea"


@pytest.mark.parametrize(("yes", "told", "left"), [(False, "Aborted.", 1), (True, "Cleared memory for assistant.", 0)])
def test_memory_clear_asks_first(place, server, yes, told, left):
    """Memories go when somebody says so; the conversation stays either way."""
    server.add("hello")
    place.held.memory().remember("Tea", kind=Kind.SEMANTIC, category="drinks")
    somebody = place.type("hi", "/memory clear", yes=yes)
    assert somebody.questions == ["Clear all memories for assistant?"]
    assert somebody.said == [told]
    assert len(place.held.memory().list()) == left
    assert len(place.held.sessions.all()) == 1


def test_an_agent_without_a_memory_has_nothing_to_show(place, server):
    """It talks all the same."""
    place.memory = None
    server.add("hello")
    somebody = place.type("hi", "/memory list")
    assert somebody.heard == "hello\n"
    assert somebody.notes == ["this agent has no memory"]
    assert "tools" not in server.chats[0].body


def test_a_conversation_records_no_episode_by_itself(place, server):
    """Only what the agent is asked to record becomes one, whatever was said."""
    server.add("hello", "fine", calls(("record_episode", {"content": "They said hello"})), "noted")
    place.type("hi", "how are you?")
    assert list(place.held.memory().list(kinds=[Kind.EPISODIC])) == []
    place.type("record that")
    assert [record.content for record in place.held.memory().list(kinds=[Kind.EPISODIC])] == ["They said hello"]
