"""What a command works with: an open memory, its notes and its answer, and the options that commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from commonplace.app import BACKUPS, App, open_app
from commonplace.cli.person import WAY_OUT, ask_person, current_speaker, require_person, said_yes
from commonplace.cli.progress import show_progress
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.project import ASSISTANT, PROJECT, Context
from commonplace.engine.memory import Memory, with_binding
from commonplace.engine.rendering import redaction_notes
from commonplace.engine.results import WriteResult
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.records import CEILING, Channel, Record
from commonplace.text.cleaning import plural
from commonplace.wire import encode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Session:
    """What a command works with."""

    def __init__(self, app: App, memory: Memory, *, as_json: bool) -> None:
        self.app = app
        self.memory = memory
        self.as_json = as_json
        self.notes: list[str] = []

    def add_notes(self, *sentences: str) -> None:
        """Print notes besides the answer; programs find them in the answer too."""
        for sentence in sentences:
            self.notes.append(sentence)
            print_note(sentence)

    def answer(self, text: str, data: Mapping[str, Any]) -> None:
        """Print the answer, for people or for programs."""
        self.add_notes(*map(short_path, self.app.database.take_notices()))
        if self.as_json:
            print_json({**data, "notes": self.notes})
        elif text:
            print_text(text)

    def speak(self, shown: str = "") -> None:
        """Settle whose words are written: with ``--as-user`` ask on the terminal, else note that they are an agent's.

        ``shown`` is the text that is written, where the command itself does not show it.
        """
        speaker = current_speaker(self.app.where.user_settings)
        if speaker.is_person:
            return
        if ask_person(shown):
            self._become_person()
        else:
            self.add_notes(f"it counts as an agent's word (trust agent), because {speaker.why}; {WAY_OUT}")

    def require_person(self, act: str) -> None:
        """Refuse what only a person may do, such as "erases records", to an agent; with ``--as-user`` ask."""
        require_person(act, self.app.where.user_settings)
        self._become_person()

    def require_trust(self, records: Sequence[Record], act: str, *, text: str = "") -> None:
        """Refuse an agent to change records that are trusted more than its own words; with ``--as-user`` ask.

        ``text`` is what one of them is to become, where the command itself does not show it.
        """
        speaker = current_speaker(self.app.where.user_settings)
        above = [one for one in records if one.trust > CEILING[speaker.channel]]
        if not above:
            return
        shown = "\n".join([*(f"{act} {one.short}: {one.content}" for one in above), *([f"to: {text}"] if text else [])])
        if not ask_person(shown):
            names = ", ".join(one.short for one in above)
            raise Forbidden(f"this {act} {names}, which a person wrote, and {speaker.why}; {WAY_OUT}")
        self._become_person()

    def _become_person(self) -> None:
        binding = self.app.binding.replace(channel=Channel.USER)
        self.app.memory = with_binding(self.app.memory, binding)
        self.memory = with_binding(self.memory, self.memory.binding.replace(channel=Channel.USER))

    def get_records(self, ids: Sequence[str]) -> list[Record]:
        """Return the records with these ids or beginnings of ids, each once; raises if one is missing."""
        return list({record.id: record for record in map(self.memory.get, ids)}.values())

    def saved_json(self, result: WriteResult) -> dict[str, Any]:
        """The result of a write, for programs; redactions are also printed as notes."""
        self.add_notes(*redaction_notes(result.redactions), *result.notes)
        return self.to_json(result.record) | {
            "deduped": result.deduped,
            "redactions": [{"kind": finding.kind, "mark": finding.mark} for finding in result.redactions],
            "superseded": result.superseded.id if result.superseded else None,
            "held_for": result.held_for,
        }

    def to_json(self, record: Record) -> dict[str, Any]:
        """A record for programs, with its state and the path of its file."""
        return self.list_json([record])[0]

    def list_json(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """Records for programs, each with its state and the path of its file."""
        paths = self.app.store.references(records)
        now = self.app.clock()
        return [encode(record) | {"state": record.state(now).value, "path": paths.get(record.id)} for record in records]

    def path(self, record: Record) -> str | None:
        """The path of a record's file."""
        return self.app.store.references([record]).get(record.id)

    def note_remains(self, *, pending: bool) -> None:
        """Note where bytes of what was erased may still be."""
        if pending:
            self.add_notes("a reader still holds old bytes of the database; `commonplace doctor --fix` empties them")
        folder = os.path.join(self.app.where.home, BACKUPS)
        if held := len(os.listdir(folder)) if os.path.isdir(folder) else 0:
            self.add_notes(f"{plural(held, 'backup')} in {short_path(folder)} may still hold what was erased")

    def location(self, record: Record) -> str:
        """Category, scope and file of a record, for people."""
        path = self.path(record)
        return f"{record.category}, {self.app.where.label(record.scope)}" + (f", {short_path(path)}" if path else "")


def table_lines(rows: Sequence[Sequence[str]], *, numbers: int = 0) -> Iterator[str]:
    """Rows with aligned columns; the last ``numbers`` columns are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        for column in range(len(cells) - numbers, len(cells)):
            cells[column] = row[column].rjust(widths[column])
        yield "  ".join(cells).rstrip()


def to_seconds(moment: str) -> str:
    """An ISO time in UTC without its fraction of a second."""
    return f"{moment[:19]}Z"


@contextmanager
def open_session(scope: str | None = None, *, as_json: bool = False) -> Iterator[Session]:
    """Open the memory here, limited to one scope if one is given, after a sync of edited files."""
    with open_app(channel=_channel) as app:
        memory = app.memory if scope is None else app.memory_of(app.where.scope(scope))
        session = Session(app, memory, as_json=as_json)
        with show_progress("Syncing edited files") as progress:
            notes = app.folders.refresh(progress=progress)
        session.add_notes(*map(short_path, notes))
        yield session


def _channel(where: Context) -> Channel:
    return current_speaker(where.user_settings).channel


def scope_option(command: F) -> F:
    """Give a command ``--scope``."""
    choice = click.Choice([PROJECT, ASSISTANT])
    return click.option("--scope", type=choice, help="The memory of the project, or your own.")(command)


def json_option(command: F) -> F:
    """Give a command ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def confirm(question: str, *, otherwise: str = "--yes") -> bool:
    """Ask before something is erased or replaced; raises ``InvalidInput`` without a terminal."""
    if said_yes():  # to this very command
        return True
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} There is no terminal to ask on; {otherwise} says yes")
    if click.confirm(question, err=True):
        return True
    print_note("nothing was changed")
    return False


def count_items(items: Iterable[T], progress: Callable[[int, int], None]) -> Iterator[T]:
    """Yield items and report how many were read; how many there are is not known."""
    for number, item in enumerate(items):
        progress(number, 0)
        yield item
