"""``commonplace export`` and ``import``: every record with its past, as JSON Lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

import click

from commonplace.cli.commands import Command
from commonplace.cli.session import json_option, open_session, plural, progress, redaction_notes, scope_option
from commonplace.cli.terminal import print_note, short_path
from commonplace.engine.transfer import exported, imported
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.model.records import CATEGORIES


@click.command(cls=Command)
@click.argument("file", required=False)
@click.option(
    "--to",
    type=click.Choice(["jsonl", "agents-md", "claude-memory", "skills"]),
    default="jsonl",
    show_default=True,
    help="As what: everything, or what another tool reads.",
)
@scope_option
def export(file: str | None, to: str, scope: str | None) -> None:
    """Write every record, with its versions, dates, sources and use, as JSON Lines.

    Without FILE, or with `-`, it goes to standard output.  A FILE is whole or not there at all.

    --to agents-md writes the live records into FILE (AGENTS.md), between two marks: whatever else is in it stays.
    --to claude-memory writes a note into FILE, the memory folder of Claude Code, and names it in its index.
    --to skills links the skills that were learned into FILE (.claude/skills).  What came from outside is left out of
    agents-md and claude-memory: it would arrive as an instruction.

    Examples:
      commonplace export memory.jsonl
      commonplace export --scope project | gzip > project.jsonl.gz
      commonplace export --to agents-md
    """
    if to != "jsonl":
        from commonplace.records.commands.foreign import handed_out  # noqa: PLC0415 - an export of records needs none of it

        handed_out(to, file, scope=scope)
        return
    with open_session(scope) as session, progress("Exporting", streamed=file in (None, "-")) as tell:
        scopes = frozenset(session.memory.binding.reads)
        lines = _shown(exported(session.place.store, scopes, now=session.place.clock()), tell)
        if file is None or file == "-":
            _poured(sys.stdout.buffer, lines)
        else:
            print_note(f"{plural(_write(file, lines), 'record')} in {short_path(os.path.abspath(file))}")


def _write(file: str, lines: Iterable[str]) -> int:
    """Write an export to a file, whole or not at all, or straight to a pipe or a device; returns how many records."""
    try:
        if os.path.isfile(file) or not os.path.exists(file):
            return _put_in_place(os.path.realpath(file), lines)  # a link to a file stays one
        with open(file, "wb") as target:
            return _poured(target, lines)
    except BrokenPipeError:  # whoever reads has had enough
        raise
    except OSError as error:
        raise StoreError(f"{file!r} cannot be written: {error.strerror}") from error


def _put_in_place(path: str, lines: Iterable[str]) -> int:
    """Write beside the file, then move it there."""
    temporary = f"{path}.{os.getpid()}.part"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as target:
            count = _poured(target, lines)
            os.fsync(descriptor)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return count


def _poured(target: BinaryIO, lines: Iterable[str]) -> int:
    """Write the lines, in UTF-8 whatever the terminal speaks; returns how many are records: all but the first."""
    count = -1
    for line in lines:
        target.write(f"{line}\n".encode())
        count += 1
    target.flush()
    return count


def _shown(lines: Iterable[str], tell: Callable[[int, int], None]) -> Iterator[str]:
    for number, line in enumerate(lines):
        tell(number, 0)
        yield line


@click.command("import", cls=Command)
@click.argument("file")
@click.option(
    "--from",
    "source",
    type=click.Choice(["lance", "agents-md", "claude-memory", "basic-memory", "mcp-graph", "mem0", "initrunner"]),
    help="What FILE is, if it is no export of ours: another tool's file or folder.",
)
@click.option("--category", type=click.Choice(list(CATEGORIES)), help="With --from: the category of all of it.")
@click.option("--dry-run", is_flag=True, help="With --from: show what would be kept.")
@click.option("--role", metavar="ROLE", help="With --from lance: the role.yaml whose memory it becomes.")
@scope_option
@json_option
def import_(
    *,
    file: str,
    source: str | None,
    category: str | None,
    dry_run: bool,
    role: str | None,
    scope: str | None,
    as_json: bool,
) -> None:
    """Keep the records of an export; what is there already stays as it is.

    `-` reads from standard input.  Nothing is kept if one line cannot be read.  --scope takes every record into that
    memory, wherever it was exported from.

    --from lance takes over the memories and conversations that the public implementation of role.yaml keeps in a
    LanceDB store, and leaves that as it is.  They go to the role that is named, or to the one that is called like the
    folder: that is what `name: assistant` finds for assistant.lance.

    --from with another name takes in what that tool keeps: AGENTS.md, CLAUDE.md and MEMORY.md files (agents-md), Claude
    Code's memory folder (claude-memory), notes of basic-memory, the graph of the MCP reference server (mcp-graph), an
    export of mem0 or of InitRunner.  The originals are only read; what came in before does not come again; all of it is
    trusted least and quoted as data.

    Examples:
      commonplace import memory.jsonl
      zcat project.jsonl.gz | commonplace import - --scope project
      commonplace import --from agents-md . --dry-run
      commonplace import --from lance assistant.lance --role role.yaml
    """
    _refuse_misplaced(source, role=role, scope=scope, category=category, dry_run=dry_run)
    if source is None:
        _take_back(file, scope, as_json=as_json)
    elif source == "lance":
        from commonplace.roles.commands.lance import taken_over  # noqa: PLC0415 - agents, which an import of records needs not

        taken_over(file, role, dry_run=dry_run, as_json=as_json)
    else:
        from commonplace.records.commands.foreign import taken_in  # noqa: PLC0415 - an import of records needs none of it

        taken_in(file, source, scope=scope, category=category, dry_run=dry_run, as_json=as_json)


def _refuse_misplaced(
    source: str | None, *, role: str | None, scope: str | None, category: str | None, dry_run: bool
) -> None:
    """Refuse an option that does not go with what is taken in."""
    if source is None and role is not None:
        raise InvalidInput("--role goes with --from lance; `commonplace memory import ROLE FILE` reads a role's export")
    if source is None and (category or dry_run):
        raise InvalidInput("--category and --dry-run go with --from; an export of ours is kept as it is")
    if source == "lance" and scope is not None:
        raise InvalidInput("--scope does not go with --from lance; --role says whose memory it becomes")
    if source == "lance" and category is not None:
        raise InvalidInput("--category does not go with --from lance; memories keep the one that they have")
    if source not in (None, "lance") and role is not None:
        raise InvalidInput(f"--role goes with --from lance, not with --from {source}")


def _take_back(file: str, scope: str | None, *, as_json: bool) -> None:
    """Keep the records of an export of ours."""
    with open_session(scope, as_json=as_json) as session, progress("Importing") as tell:
        place = session.place
        into = place.where.writable_scope(scope) if scope else None
        allowed = place.binding.also_writes
        done = imported(
            place.store, _lines(file), allowed=allowed, into=into, name=file, secret=place.secret(), tell=tell
        )
        place.catch_up(tell=tell)
        session.add_notes(*redaction_notes(done.redactions))
        text = f"{plural(done.kept, 'record')} kept, {done.present} there already"
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
