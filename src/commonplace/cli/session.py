"""One command at work: what is open, what it has to say besides its answer, and what it asks before it erases."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from commonplace.app import App, open_app
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.engine.memory import Kept, Memory
from commonplace.engine.rendering import record_json, redaction_notes
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Record

F = TypeVar("F", bound=Callable[..., Any])

BACKUPS = "backups"  # the folder of copies, in the data folder
PROGRESS_EVERY = 100  # of whatever is counted: often enough to be seen moving


class Session:
    """What a command works with."""

    def __init__(self, place: App, memory: Memory, *, as_json: bool) -> None:
        self.place = place
        self.memory = memory
        self.as_json = as_json
        self.notes: list[str] = []

    def add_notes(self, *sentences: str) -> None:
        """Say something besides the answer; programs find it in the answer too."""
        for sentence in sentences:
            self.notes.append(sentence)
            print_note(sentence)

    def answer(self, text: str, data: Mapping[str, Any]) -> None:
        """Write the answer, for people or for programs."""
        if self.as_json:
            print_json({**data, "notes": self.notes})
        elif text:
            print_text(text)

    def get_records(self, ids: Sequence[str]) -> list[Record]:
        """The records meant by these ids or beginnings of ids, each once; all of them or none."""
        return list({record.id: record for record in map(self.memory.get, ids)}.values())

    def saved_json(self, kept: Kept) -> dict[str, Any]:
        """What came of a write, for programs; whatever was taken out is told to people."""
        self.add_notes(*redaction_notes(kept.redactions), *kept.notes)
        return self.to_json(kept.record) | {
            "deduped": kept.deduped,
            "redactions": [{"kind": finding.kind, "mark": finding.mark} for finding in kept.redactions],
            "superseded": kept.superseded.id if kept.superseded else None,
        }

    def to_json(self, record: Record) -> dict[str, Any]:
        """A record, whole, for programs: what it is now and where its file lies."""
        return self.list_json([record])[0]

    def list_json(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """Records, whole, for programs."""
        paths = self.place.store.references([record.id for record in records])
        now = self.place.clock()
        return [
            record_json(record) | {"state": record.state(now).value, "path": paths.get(record.id)} for record in records
        ]

    def path(self, record: Record) -> str | None:
        """Where the file of a record lies."""
        return self.place.store.references([record.id]).get(record.id)

    def note_remains(self, *, pending: bool) -> None:
        """Say where bytes of what was erased may still be."""
        if pending:
            self.add_notes("a reader still holds old bytes of the database; `commonplace doctor --fix` empties them")
        folder = os.path.join(self.place.where.home, BACKUPS)
        if held := len(os.listdir(folder)) if os.path.isdir(folder) else 0:
            self.add_notes(f"{plural(held, 'backup')} in {short_path(folder)} may still hold what was erased")

    def location(self, record: Record) -> str:
        """Where a record is, as people say it."""
        path = self.path(record)
        return f"{record.category}, {self.place.where.label(record.scope)}" + (f", {short_path(path)}" if path else "")


def plural(count: int, what: str) -> str:
    """A number of things, as people say it."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@contextmanager
def open_session(scope: str | None = None, *, as_json: bool = False) -> Iterator[Session]:
    """Open what is here, narrowed to one scope if one is named, after a look at the files people may have edited."""
    with open_app() as place:
        memory = place.memory if scope is None else place.memory_of(place.where.scope(scope))
        session = Session(place, memory, as_json=as_json)
        with progress("Taking in edited files") as tell:
            notes = place.folders.refresh(tell=tell)
        session.add_notes(*map(short_path, notes))
        yield session


def scope_option(command: F) -> F:
    """Give a command ``--scope``."""
    choice = click.Choice([PROJECT, ASSISTANT])
    return click.option("--scope", type=choice, help="The project's memory, or your own across projects.")(command)


def json_option(command: F) -> F:
    """Give a command ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Write the answer as JSON.")(command)


def confirm(question: str, *, otherwise: str = "--yes") -> bool:
    """Ask before something is erased or replaced; refuse to guess where nobody can be asked."""
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Nobody can be asked here; {otherwise} says yes")
    if click.confirm(question, err=True):
        return True
    print_note("nothing was changed")
    return False


@contextmanager
def progress(what: str, *, streamed: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far some long work is; elsewhere, and where its result streams by, say nothing."""
    shown = sys.stderr.isatty() and not (streamed and sys.stdout.isatty())

    def tell(done: int, of: int) -> None:
        if shown and done % PROGRESS_EVERY == 0:
            sys.stderr.write(f"\r{what}: {done}" + (f" of {of}" if of else "") + "\x1b[K")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
