"""One execution of an agent, with its memory around it: recall before it; index, then extract, after it.

Run an agent inside of it.  Trouble with memory is noted and never ends the execution.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from commonplace.app import App
from commonplace.engine.rendering import redaction_notes
from commonplace.engine.transcripts import Turn
from commonplace.learning.background import start_learning
from commonplace.learning.extract import extract_sessions, queue_session
from commonplace.learning.opening import open_workspace, session_brief
from commonplace.learning.receipts import save_brief_receipt
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import CommonplaceError
from commonplace.model.ids import new_id


class Execution:
    """A run that starts with what is known and leaves behind what was learned.

    ``brief`` is for the agent's prompt; ``say`` records a turn; ``notes`` has the troubles of memory.
    """

    def __init__(
        self, app: App, task: str, *, session: str | None = None, budget: int | None = None, background: bool = False
    ) -> None:
        """Prepare an execution of a task: a ticket's description, or any other text.

        ``background``: a model is asked about it in a process of its own.
        """
        self.app = app
        self.task = task
        self.session = session or new_id(app.clock())
        self.brief = ""
        self.records: tuple[str, ...] = ()  #: ids of what was extracted, after the end
        self.notes: list[str] = []
        self._budget = budget
        self._background = background
        self._turns: list[Turn] = []

    def __enter__(self) -> Self:
        self.refresh()
        return self

    def refresh(self) -> None:
        """Make the brief anew."""
        try:
            injection = session_brief(self.app, self.task, budget=self._budget, session=self.session)
        except CommonplaceError as error:
            self.notes.append(f"nothing was recalled: {error}")
            return
        self.brief = injection.text
        self.notes += injection.notes
        self.notes += save_brief_receipt(self.app, injection, session=self.session)[1]

    def say(self, speaker: str, text: str, *, at: datetime | None = None) -> None:
        """Record a turn: of the ``user``, the ``assistant``, a ``tool``, or a named speaker."""
        ref = str(len(self._turns) + 1)
        self._turns.append(Turn(ref=ref, text=text, speaker=speaker, occurred_at=at or self.app.clock()))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Index the turns; if the execution completed and learning is on, extract from them."""
        try:
            self.save()
            if kind is None and self.app.where.learning.enabled:
                self._extract()
        except CommonplaceError as error:
            self.notes.append(f"the session was not indexed: {error}")

    def save(self) -> None:
        """Index the turns so far."""
        if self._turns:
            found = self.app.memory.index(DocumentKind.SESSION, self.session, self._turns)
            self.notes += [*redaction_notes(found.redactions, source="the session"), *found.notes]

    def _extract(self) -> None:
        if not self._turns or self.app.where.learning.mode == "host":
            return
        if self._background and self.app.where.learning.mode == "model":
            queue_session(open_workspace(self.app), self.session)
            start_learning(self.app, ended=[self.session])
            return
        report = extract_sessions(open_workspace(self.app), only=[self.session])
        self.records = report.records
        self.notes += [f"{left.session} was not extracted: {left.reason}" for left in report.failed]
