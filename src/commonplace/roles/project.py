"""An agent that runs inside a project that learns: it gets the brief and the reading tool, and is learned from.

It is the same memory that connected coding agents have there.  Trouble with it is noted and never ends a conversation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from commonplace.agents.tolerance import Notify, tolerate
from commonplace.agents.tool import Tool
from commonplace.app import App, open_app
from commonplace.learning import (
    ENQUEUED,
    Execution,
    clear_learned,
    consolidate_memory,
    enqueue_consolidation,
    open_workspace,
    quoted_page,
)
from commonplace.model.errors import CommonplaceError

READ = "read"
READ_GUIDE = (
    "Open a memory:// address that the memory guidance or a note mentions: memory://root/MEMORY.md is all that this"
    " project has learned, memory://root/skills/NAME/SKILL.md a playbook, memory://ID one record."
)
READ_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The address, such as memory://root/MEMORY.md."}},
    "required": ["uri"],
    "additionalProperties": False,
}
NO_BRIEF = "the agent runs without what this project has learned"
NOT_LEARNED = "this session was not learned from"


class ProjectMemory:
    """What one session has of the project around it."""

    def __init__(self, app: App, *, notify: Notify) -> None:
        """Prepare it; the brief is made when it is first asked for, and stays the same, so that prompt caches hold."""
        self.app = app
        self._notify = notify
        self._execution: Execution | None = None

    @property
    def tool(self) -> Tool:
        """The tool that opens addresses of this memory."""
        return Tool(name=READ, description=READ_GUIDE, parameters=READ_SCHEMA, function=self._read)

    def begin(self, session: str) -> None:
        """Begin a session of that name."""
        self._execution = Execution(self.app, "", session=session, background=True)
        with tolerate(NO_BRIEF, notify=self._notify):
            self._execution.__enter__()

    def brief(self) -> str:
        """What the session is shown before everything else; empty if nothing is known."""
        return self._execution.brief if self._execution else ""

    def say(self, speaker: str, text: str) -> None:
        """Record a turn."""
        if self._execution and text.strip():
            self._execution.say(speaker, text)

    def save(self) -> None:
        """Index what was said so far."""
        if self._execution:
            with tolerate(NOT_LEARNED, notify=self._notify):
                self._execution.save()

    def end(self) -> None:
        """Learn from the session: by rules at once, with a model in a process of its own."""
        if self._execution is None:
            return
        with tolerate(NOT_LEARNED, notify=self._notify):
            self._execution.__exit__(None)
            if self._execution.records and self.app.where.learning.mode == "rules":
                consolidate_memory(open_workspace(self.app))
        for sentence in self._execution.notes:
            self._notify(sentence)
        self._execution = None

    def clear(self) -> int:
        """Erase what the project has learned, as ``commonplace memory clear`` does; returns the number of records."""
        done = clear_learned(open_workspace(self.app))
        if self._execution:
            self._execution.refresh()
        return len(done.records)

    def enqueue(self) -> str:
        """Ask for a consolidation at the next start of a session."""
        enqueue_consolidation(open_workspace(self.app))
        return ENQUEUED

    def _read(self, **arguments: Any) -> str:
        uri = arguments.get("uri")
        if not isinstance(uri, str) or not uri.strip():
            return "Error: read needs a uri, such as memory://root/MEMORY.md"
        try:
            return quoted_page(self.app, uri.strip())
        except CommonplaceError as error:
            return f"Error: {error}"


@contextmanager
def project_memory(*, notify: Notify, wanted: bool = True) -> Iterator[ProjectMemory | None]:
    """Open the memory of the project around this folder, if it is trusted and learns; else yield None."""
    app: App | None = None
    if wanted:
        with tolerate(NO_BRIEF, notify=notify):
            app = open_app(os.getcwd())
    if app is None:
        yield None
        return
    with app:
        where = app.where
        learns = where.project is not None and where.project in where.folders and where.learning.enabled
        yield ProjectMemory(app, notify=notify) if learns else None
