"""A conversation at a terminal: answers as they come, commands that begin with a slash, Ctrl-C for the answer alone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from commonplace.model.errors import CommonplaceError
from commonplace.roles.commands.screen import Screen
from commonplace.roles.conversation import Conversation
from commonplace.roles.memory import RoleMemory
from commonplace.roles.project import ProjectMemory
from commonplace.roles.verbs import list_memories

HELP = """\
/memory view    the memory that the agent sees before it answers
/memory list    the newest memories
/memory clear   erase every memory of this agent's store, for good
/memory clear project   erase what the project around it has learned (also: reset)
/memory enqueue consolidate what the project has learned at the next start (also: rebuild)
/help           this
/quit           end the conversation; Ctrl-D does the same
Ctrl-C interrupts an answer, not the conversation."""
MEMORY = "say /memory view, list, clear, clear project or enqueue"
NO_PROJECT = "no project that learns is around this agent; `commonplace config set memories.enabled true`"
CLEARED = "Memory data cleared and system prompt refreshed."
NO_MEMORY = "this agent has no memory"
NO_CONTEXT = "The agent sees no memory yet: there are no procedures, and nothing was recalled."
INTERRUPTED = "the answer was interrupted; say /quit to end the conversation"
AT_PROMPT = "say /quit or press Ctrl-D to end the conversation"
LISTED = 20


T = TypeVar("T")


def run_interruptible(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that Ctrl-C cancels at once.  Raises ``KeyboardInterrupt`` then.

    The handler is the loop's own, which wakes it.  Python's waits until the loop wakes if the signal comes just
    before it goes to sleep: for the whole answer, that is.
    """

    async def run_with_handler() -> T:
        loop, running = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with suppress(NotImplementedError):  # on Windows there is Python's only
            loop.add_signal_handler(signal.SIGINT, running.cancel)
        try:
            return await running
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)

    try:
        return runner.run(run_with_handler())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class Repl:
    """The user and an agent, in turns."""

    def __init__(self, talk: Conversation, terminal: Screen) -> None:
        self._talk = talk
        self._terminal = terminal

    def run(self, first: str | None = None) -> None:
        """Converse until the user ends it; ``first`` is answered before anything is read."""
        with asyncio.Runner() as runner:  # one loop for all turns, and Ctrl-C cancels the one that runs
            line = self._read() if first is None else first
            while line is not None:
                try:
                    self._handle(runner, line)
                except KeyboardInterrupt:  # a moment too late for the answer: that is no reason to end
                    self._terminal.warn(AT_PROMPT)
                line = self._read()

    def _handle(self, runner: asyncio.Runner, line: str) -> None:
        if line.startswith("/") and line.split(maxsplit=1)[0][1:].isalpha():  # a path is something to talk about
            self._command(line)
        elif line:
            self._turn(runner, line)

    def _read(self) -> str | None:
        """Return what was typed; None at the end."""
        while True:
            try:
                line = self._terminal.ask().strip()
            except EOFError:
                return None
            except KeyboardInterrupt:
                self._terminal.warn(AT_PROMPT)
                continue
            return None if line in {"/quit", "/exit"} else line

    def _turn(self, runner: asyncio.Runner, prompt: str) -> None:
        """Answer once.  An error is printed, and the conversation continues."""
        pieces: list[str] = []

        def on_text(piece: str) -> None:
            pieces.append(piece)
            self._terminal.write(piece)

        try:
            reply = run_interruptible(runner, self._talk.say(prompt, on_text=on_text))
        except KeyboardInterrupt:
            self._terminal.end()
            self._talk.interrupt(prompt, "".join(pieces))
            self._talk.save()
            self._terminal.warn(INTERRUPTED)
        except CommonplaceError as error:
            self._terminal.end()
            self._terminal.warn(str(error))
        else:
            self._terminal.end()
            self._talk.save()
            if reply.truncated:
                self._terminal.warn("the answer was cut off: the model used up its tokens")

    def _command(self, line: str) -> None:
        word, *rest = line.split()
        if word == "/help":
            self._terminal.say(HELP)
        elif word == "/memory":
            self._memory(rest)
        else:
            self._terminal.warn(f"there is no {word!r}; /help says what there is")

    def _memory(self, words: list[str]) -> None:
        verb = " ".join(words).replace("reset", "clear").replace("rebuild", "enqueue") or "view"
        held, project = self._talk.agent.held, self._talk.agent.project
        of_project = {"clear project": self._clear_project, "enqueue": self._enqueue}
        own = {"list": self._list, "clear": self._clear}
        try:
            if verb == "view" and (held or project):
                self._view()
            elif verb in of_project or (verb == "clear" and project and not held):
                self._with_project(of_project.get(verb, self._clear_project), project)
            elif verb not in own and verb != "view":
                self._terminal.warn(MEMORY)
            elif held is None:
                self._terminal.warn(NO_MEMORY)
            else:
                own[verb](held)
        except CommonplaceError as error:
            self._terminal.warn(str(error))

    def _with_project(self, act: Callable[[ProjectMemory], None], project: ProjectMemory | None) -> None:
        if project is None:
            self._terminal.warn(NO_PROJECT)
        else:
            act(project)

    def _clear_project(self, project: ProjectMemory) -> None:
        if not self._terminal.confirm("Erase what this project learned?"):
            self._terminal.say("Aborted.")
            return
        project.clear()
        self._terminal.say(CLEARED)

    def _enqueue(self, project: ProjectMemory) -> None:
        self._terminal.say(project.enqueue())

    def _view(self) -> None:
        self._terminal.say("\n\n".join(self._talk.context()) or NO_CONTEXT)

    def _list(self, held: RoleMemory) -> None:
        self._terminal.say(list_memories(held.memory(), limit=LISTED, show_ids=True))

    def _clear(self, held: RoleMemory) -> None:
        name = self._talk.agent.name
        if not self._terminal.confirm(f"Clear all memories for {name}?"):
            self._terminal.say("Aborted.")
            return
        _, pending = held.clear()
        self._terminal.say(f"Cleared memory for {name}.")
        if pending:
            self._terminal.warn("a reader still holds old bytes of the store; they go when it ends")
