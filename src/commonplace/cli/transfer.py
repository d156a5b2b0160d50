"""``commonplace export``, ``import`` and ``migrate``: carry records to files and stores, and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, BinaryIO

import click

from commonplace.app import copier_of, machine_name, open_store
from commonplace.cli.commands import Command
from commonplace.cli.person import ask_on_terminal, require_person
from commonplace.cli.progress import show_progress
from commonplace.cli.session import count_items, json_option, open_session, scope_option
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.paths import home, is_address
from commonplace.engine import transfer
from commonplace.engine.export_format import export_lines, open_export, sealed_lines
from commonplace.engine.rendering import redaction_notes
from commonplace.files.user_files import STDIN, read_lines, replacing
from commonplace.model.changes import Audit
from commonplace.model.errors import Conflict, InvalidInput, StoreError, StoreReadOnly
from commonplace.model.records import CATEGORIES
from commonplace.text.cleaning import plural
from commonplace.wire import encode

if TYPE_CHECKING:
    from commonplace.app import Database
    from commonplace.records import PlainImport

LANCE = "lance"
BELIEVE = "Its records say themselves how far they are trusted, up to your own word, and which are pinned. Believe it?"
UNSEALED = (
    "{0} was not sealed by this machine, or was changed since, so its records count as text from outside (trust "
    "external, not pinned); `commonplace import --trusted {0}` asks you to believe it"
)


@click.command(cls=Command)
@click.argument("file", required=False)
@click.option(
    "--to",
    type=click.Choice(["jsonl", "agents-md", "claude-memory", "skills"]),
    default="jsonl",
    show_default=True,
    help="Everything as JSON Lines, or what another tool reads.",
)
@click.option("--with-assistant", is_flag=True, help="With --to: write your own records too, not only the project's.")
@scope_option
def export(file: str | None, to: str, scope: str | None, *, with_assistant: bool) -> None:
    """Write every record, with its versions, dates, sources and use, as JSON Lines.

    Without FILE, or with `-`, writes to standard output.  A FILE is replaced whole or not at all.

    --to agents-md writes the live records into FILE (AGENTS.md), between two marks; the rest of the file stays.
    --to claude-memory writes a note into FILE, the memory folder of Claude Code, and adds it to the index there.
    --to skills links the learned skills into FILE (.claude/skills).  agents-md and claude-memory hold only what you
    wrote or approved, because it is read as instructions there, and only the project's records unless
    --with-assistant is given, because such files get committed.

    Examples:
      commonplace export memory.jsonl
      commonplace export --scope project | gzip > project.jsonl.gz
      commonplace export --to agents-md
    """
    if to != "jsonl":
        from commonplace.records import export_foreign  # noqa: PLC0415 - an export of records needs none of it

        export_foreign(to, file, scope=scope, with_assistant=with_assistant)
        return
    if with_assistant:
        raise InvalidInput("--with-assistant goes with --to; a plain export has every record, or those of --scope")
    with open_session(scope) as session, show_progress("Exporting", streamed=file in (None, STDIN)) as progress:
        scopes = frozenset(session.memory.binding.reads)
        records = export_lines(session.app.store, scopes, now=session.app.clock())
        lines = count_items(sealed_lines(records, session.app.secret()), progress)
        if file is None or file == STDIN:
            _write(sys.stdout.buffer, lines)
        else:
            print_note(f"Exported {plural(_write_file(file, lines), 'record')} to {short_path(os.path.abspath(file))}.")
        with suppress(StoreReadOnly):  # the store's own notice says so
            session.app.store.apply([Audit(verb="export")])
        session.answer("", {})


def _write_file(file: str, lines: Iterable[str]) -> int:
    """Write an export to a file, whole or not at all, or straight to a pipe or a device; return how many records."""
    try:
        if os.path.isfile(file) or not os.path.exists(file):
            with replacing(file, private=True) as target:
                return _write(target, lines)
        with open(file, "wb") as target:
            return _write(target, lines)
    except BrokenPipeError:  # the reader has stopped reading
        raise
    except OSError as error:
        raise StoreError(f"{file!r} cannot be written: {error.strerror}") from error


def _write(target: BinaryIO, lines: Iterable[str]) -> int:
    """Write lines in UTF-8, not in the terminal's encoding; return how many are records: neither head nor seal."""
    count = -2
    for line in lines:
        target.write(f"{line}\n".encode())
        count += 1
    target.flush()
    return count


@click.command("import", cls=Command)
@click.argument("file")
@click.option(
    "--from",
    "source",
    type=click.Choice([LANCE, "agents-md", "claude-memory", "basic-memory", "mcp-graph", "mem0", "initrunner"]),
    help="The format of FILE, if it is another tool's file or folder.",
)
@click.option(
    "--category", type=click.Choice(list(CATEGORIES)), help="The category of every record; not of an export of ours."
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported; not of an export of ours.")
@click.option("--strict", is_flag=True, help="Import nothing if one row cannot be read (default: report and skip it).")
@click.option("--role", metavar="ROLE", help="With --from lance: the role.yaml to import into.")
@click.option(
    "--trusted", is_flag=True, help="Believe the trust marks of an export of another machine; asks on the terminal."
)
@scope_option
@json_option
def import_(
    *,
    file: str,
    source: str | None,
    category: str | None,
    dry_run: bool,
    strict: bool,
    role: str | None,
    trusted: bool,
    scope: str | None,
    as_json: bool,
) -> None:
    """Import records from an export or from plain data.  Importing the same file twice changes nothing.

    FILE is an export of Commonplace, JSON Lines, a JSON array, CSV with a header, or a folder of Markdown notes; `-`
    reads from standard input.  Of plain data, the words are under `text` (or `content`, `memory`, `note`, `body`); the
    columns category, tags, key, created_at, occurred_at, expires_at, aliases, keywords and metadata mean what they say,
    and every other one becomes metadata.  Rows that cannot be read are reported by line and skipped, or with --strict
    refuse the whole file.  If interrupted, run it again; it resumes where it stopped.

    An export of this machine is sealed, and comes back as it was.  Records of any other file, and of an export that was
    changed, count as text from outside: trust external, not pinned, and none replaces a record that is trusted more.
    --trusted asks you to believe the file.

    If one line of an export cannot be read, nothing is imported.  --scope imports every record into that memory,
    wherever it was exported from.  Plain data goes into the project, or where there is none into your own memory.

    --from lance imports the memories and conversations of a LanceDB store of the public implementation of role.yaml.
    They go to the role that is named, else to the role with the name of the folder: `name: assistant` for
    assistant.lance.

    --from with another name imports what that tool keeps: AGENTS.md, CLAUDE.md and MEMORY.md files (agents-md), Claude
    Code's memory folder (claude-memory), notes of basic-memory, the graph of the MCP reference server (mcp-graph), an
    export of mem0 or of InitRunner.  The originals are only read.  Imported text is untrusted and quoted as data.

    Examples:
      commonplace import memory.jsonl
      commonplace import notes.csv --category facts
      commonplace import ~/notes --dry-run
      zcat project.jsonl.gz | commonplace import - --scope project
      commonplace import --from agents-md . --dry-run
      commonplace import --from lance assistant.lance --role role.yaml
    """
    _check_options(source, role=role, scope=scope, category=category)
    if strict and source is not None:
        raise InvalidInput("--strict goes with plain data; what another tool kept is read as far as it can be")
    if trusted and source is not None:
        raise InvalidInput("--trusted goes with an export of ours; what another tool kept is always from outside")
    if not dry_run:
        require_person("imports records")
    if source is None:
        from commonplace.records import PlainImport  # noqa: PLC0415 - only an import needs it

        options = PlainImport(
            scope=scope, category=category, dry_run=dry_run, strict=strict, trusted=trusted, as_json=as_json
        )
        _import_file(file, options)
    elif source == LANCE:
        from commonplace.roles import import_lance  # noqa: PLC0415 - agents, which an import of records needs not

        import_lance(file, role, dry_run=dry_run, as_json=as_json)
    else:
        from commonplace.records import import_foreign  # noqa: PLC0415 - an import of records needs none of it

        import_foreign(file, source, scope=scope, category=category, dry_run=dry_run, as_json=as_json)


def _check_options(source: str | None, *, role: str | None, scope: str | None, category: str | None) -> None:
    """Refuse an option that does not go with the format."""
    if source is None and role is not None:
        raise InvalidInput("--role goes with --from lance; `commonplace role import ROLE FILE` reads a role's export")
    if source == LANCE and scope is not None:
        raise InvalidInput("--scope does not go with --from lance; use --role to name the role to import into")
    if source == LANCE and category is not None:
        raise InvalidInput("--category does not go with --from lance; memories keep the one that they have")
    if source not in (None, LANCE) and role is not None:
        raise InvalidInput(f"--role goes with --from lance, not with --from {source}")


def _import_file(file: str, options: PlainImport) -> None:
    """Import an export or plain data, whichever the file is."""
    from commonplace.records import detect_format, import_plain  # noqa: PLC0415 - only an import needs them

    form, lines = ("notes", iter(())) if os.path.isdir(file) else detect_format(file, read_lines(file))
    if form != "export":
        import_plain(form, file, lines, options)
        return
    if options.category or options.dry_run or options.strict:
        raise InvalidInput("--category, --dry-run and --strict go with plain data; an export is imported as it is")
    _import_export(file, lines, options.scope, trusted=options.trusted, as_json=options.as_json)


def _import_export(file: str, lines: Iterator[str], scope: str | None, *, trusted: bool, as_json: bool) -> None:
    """Import an export of ours; one without the seal of this machine as text from outside."""
    with (
        open_session(scope, as_json=as_json) as session,
        open_export(lines, file, secret=session.app.secret()) as export,
        show_progress("Importing") as progress,
    ):
        app = session.app
        into, items = app.where.writable_scope(scope) if scope else None, export.items
        if not export.is_ours and trusted:
            ask_on_terminal(f"{file} was not sealed by this machine, or was changed since. {BELIEVE}")
        elif not export.is_ours:
            items = export.external_items()
            session.add_notes(UNSEALED.format(file))
        done = transfer.import_items(app.memory, items, into=into, progress=progress)
        session.add_notes(*redaction_notes(done.redactions), *done.notes)
        session.add_notes(*(f"left out: {reason}" for reason in done.left_out))
        text = f"Imported {plural(done.added, 'record')} ({plural(done.duplicates, 'duplicate')})."
        data = {"added": done.added, "duplicates": done.duplicates, "left_out": list(done.left_out)}
        session.answer(text, data | {"sealed": export.is_ours})


@click.command(cls=Command)
@click.argument("source")
@click.argument("target")
@click.option("--replace", is_flag=True, help="Erase what the target holds that the source does not.")
@json_option
def migrate(source: str, target: str, replace: bool, as_json: bool) -> None:
    """Copy a whole store to another one: records with their past and use, sessions, vectors, files, jobs.

    Each is the file of a store or the address of a PostgreSQL database.  SOURCE stays as it is, and may be used
    meanwhile: one state of it is copied.  At the end both stores are compared as a whole.  If interrupted, run it
    again; it resumes where it stopped.

    Examples:
      commonplace migrate ~/.local/share/commonplace/commonplace.db postgresql://db.example.com/memory
      commonplace migrate postgresql://db.example.com/memory memory.db
    """
    require_person("copies a whole store")
    if not is_address(source) and not os.path.isfile(source):
        raise InvalidInput(f"there is no store {source!r}")
    with closing(_store(source)) as one, closing(_store(target)) as other, show_progress("Moving") as progress:
        try:
            moved = transfer.migrate(copier_of(one), copier_of(other), replace=replace, progress=progress)
        except Conflict as error:
            raise Conflict(f"{error}; --replace erases it") from error
    if as_json:
        print_json({"source": one.path, "target": other.path} | encode(moved))
    else:
        print_text(
            f"{short_path(other.path)} holds {plural(moved.records, 'record')} and {moved.items - moved.records} other"
            f" items, the same as {short_path(one.path)} ({moved.written} written, {moved.erased} erased,"
            f" {moved.digest[:16]})."
        )


def _store(place: str) -> Database:
    return open_store(place, machine=lambda: machine_name(home(os.environ)))
