"""``commonplace export`` and ``import``: every record with its past, as JSON Lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import click

from commonplace.domain.errors import InvalidInput
from commonplace.faces.cli.commands import Told
from commonplace.faces.cli.session import counted, json_too, opened, progress, scoped, taken_out
from commonplace.faces.cli.terminal import near, note
from commonplace.pipelines.transfer import exported, imported


@click.command(cls=Told)
@click.argument("file", required=False)
@scoped
def export(file: str | None, scope: str | None) -> None:
    """Write every record, with its versions, dates, sources and use, as JSON Lines.

    Without FILE, or with `-`, it goes to standard output.  A FILE is whole or not there at all.

    Examples:
      commonplace export memory.jsonl
      commonplace export --scope project | gzip > project.jsonl.gz
    """
    with opened(scope) as session, progress("Exporting", streamed=file in (None, "-")) as tell:
        scopes = frozenset(session.memory.binding.reads)
        lines = _shown(exported(session.place.store, scopes, now=session.place.clock()), tell)
        if file in (None, "-"):
            for line in lines:
                sys.stdout.write(line + "\n")
        else:
            _write(str(file), lines)


def _write(file: str, lines: Iterable[str]) -> None:
    """Write beside the file, then move it there: it is whole or not there at all."""
    path, count = os.path.abspath(file), -1  # the first line is not a record
    temporary = f"{path}.{os.getpid()}.part"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as target:
            for line in lines:
                target.write(line + "\n")
                count += 1
            target.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    note(f"{counted(count, 'record')} in {near(path)}")


def _shown(lines: Iterable[str], tell: Callable[[int, int], None]) -> Iterator[str]:
    for number, line in enumerate(lines):
        tell(number, 0)
        yield line


@click.command("import", cls=Told)
@click.argument("file")
@scoped
@json_too
def import_(file: str, scope: str | None, as_json: bool) -> None:
    """Keep the records of an export; what is there already stays as it is.

    `-` reads from standard input.  Nothing is kept if one line cannot be read.  --scope takes every record into that
    memory, wherever it was exported from.

    Examples:
      commonplace import memory.jsonl
      zcat project.jsonl.gz | commonplace import - --scope project
    """
    with opened(scope, as_json=as_json) as session, progress("Importing") as tell:
        place = session.place
        into = place.where.writable(scope) if scope else None
        allowed = place.binding.also_writes
        done = imported(
            place.store, _lines(file), allowed=allowed, into=into, name=file, secret=place.secret(), tell=tell
        )
        place.catch_up(tell=tell)
        session.tell(*taken_out(done.redactions))
        text = f"{counted(done.kept, 'record')} kept, {done.present} there already"
        session.answer(text, {"kept": done.kept, "present": done.present})


def _lines(file: str) -> Iterator[str]:
    """The lines of a file or of standard input, as text."""
    try:
        with sys.stdin.buffer if file == "-" else open(file, "rb") as source:
            for line in source:
                yield line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 at byte {error.start} of a line") from error
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error
