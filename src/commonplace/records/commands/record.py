"""``commonplace record``: everything that can be done to a record by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from commonplace.cli import dates as moments
from commonplace.cli.commands import Command, Group
from commonplace.cli.completion import complete_categories, complete_ids, complete_tags
from commonplace.cli.session import F, Session, confirm, json_option, open_session, scope_option
from commonplace.cli.terminal import is_terminal, short_path, write_row
from commonplace.engine.erasing import Target
from commonplace.engine.memory import Memory
from commonplace.engine.review import merge
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, Order, State
from commonplace.model.records import CATEGORIES, Record, Trust
from commonplace.records.access import AppAccess
from commonplace.records.commands.forget import erase_and_report
from commonplace.records.health_verbs import file as record_file
from commonplace.text.cleaning import one_line
from commonplace.wire import encode

BELOW = "<!-- Everything below this line is ignored. -->"

_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_ids)
_id = click.argument("id", metavar="ID", shell_complete=complete_ids)


@click.group(cls=Group)
def record() -> None:
    """Add, change, list and delete records.

    An ID can be shortened to any part of it that no other has, such as the five letters that lists show.
    `commonplace add`, `list`, `show` and `edit` are short for `record add`, `list`, `get` and `update`.

    Examples:
      commonplace record pin 1m7gmb4480
      commonplace record archive 1m7gmb4480
    """


def _with_record_options(command: F) -> F:
    """Give a command the options that describe a record, with which it is made and changed."""
    for option in reversed(
        [
            click.option(
                "--tag", "tags", metavar="TAG", multiple=True, help="A tag; repeatable.", shell_complete=complete_tags
            ),
            click.option("--alias", "aliases", metavar="NAME", multiple=True, help="Another name for it; repeatable."),
            click.option(
                "--keyword", "keywords", metavar="WORD", multiple=True, help="Another search word; repeatable."
            ),
            click.option("--expires", metavar="WHEN", help="When it expires: a date, or 12h, 7d, 2w; incidents only."),
            click.option("--occurred", metavar="DATE", help="When it happened or became true (default: now)."),
        ]
    ):
        command = option(command)
    return command


@record.command()
@click.argument("text", required=False)
@click.option(
    "--category", metavar="CATEGORY", help=f"One of {', '.join(CATEGORIES)}.", shell_complete=complete_categories
)
@_with_record_options
@click.option("--pin", "pinned", is_flag=True, help="Never evict it.")
@click.option("--key", metavar="KEY", help="A unique name: adding it again makes a new version.")
@click.option("--source", "ref", metavar="REF", help="Where it comes from: a ticket, a URL, a commit.")
@click.option("--supersedes", metavar="ID", help="The record that it replaces, which is kept as history.")
@scope_option
@json_option
def add(text: str | None, scope: str | None, as_json: bool, **given: Any) -> None:
    """Add a record.

    TEXT is the content; `-` reads it from standard input, and without TEXT your $EDITOR opens.

    Examples:
      commonplace add "Use pnpm, not npm" --category decisions --tag js
      git log -1 --format=%B | commonplace add - --category incidents --expires 2w
    """
    with open_session(as_json=as_json) as session:
        target = session.app.where.writable_scope(scope or session.app.where.default)
        session.add_notes(*([] if scope else session.app.where.hints))
        content = _text(text)
        session.speak("" if text == content else content)
        result = session.memory.remember(content, scope=target, **_to_arguments(given, session.app.clock()))
        data = session.saved_json(result)
        text = (
            f"{'Exists already:' if result.deduped else 'Added'} {result.record.id} ({session.location(result.record)})"
        )
        session.answer(text + (f", replacing {result.superseded.short}" if result.superseded else ""), data)


def _to_arguments(given: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The options of ``add`` as ``Memory.remember`` takes them."""
    words = {name: list(given.pop(name)) for name in ("aliases", "keywords")}
    expires, occurred = given.pop("expires"), given.pop("occurred")
    return given | {
        "metadata": {name: words for name, words in words.items() if words},
        "expires_at": None if expires is None else moments.until(expires, now),
        "occurred_at": None if occurred is None else moments.on(occurred, now),
    }


def _text(text: str | None, *, before: str = "") -> str:
    """What was typed, piped or written in the editor."""
    if text == "-":
        return _read_stdin()
    return _edit_text(before) if text is None else text


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8 at byte {error.start}") from error


def _edit_text(before: str) -> str:
    """Return a text as the user edits it; raises ``InvalidInput`` if nothing was saved."""
    if not (sys.stdin.isatty() or "VISUAL" in os.environ or "EDITOR" in os.environ):
        raise InvalidInput("there is no text; give it, or `-` to read standard input, or set EDITOR")
    after = click.edit(f"{before}\n\n{BELOW}\n", extension=".md")
    if after is None:
        raise InvalidInput("nothing was saved in the editor, so nothing was changed")
    return after.partition(BELOW)[0].strip()


def _with_update_options(command: F) -> F:
    """Give a command the arguments and options with which a record is changed."""
    for option in reversed(
        [
            _id,
            click.argument("text", required=False),
            _with_record_options,
            click.option("--add-tag", "added", metavar="TAG", multiple=True, help="Add a tag; repeatable."),
            click.option("--remove-tag", "removed", metavar="TAG", multiple=True, help="Remove a tag; repeatable."),
            click.option("--no-expiry", is_flag=True, help="Remove the expiry date."),
            click.option("--expect", metavar="VERSION", type=int, help="Fail unless the record is at this version."),
            scope_option,
            json_option,
        ]
    ):
        command = option(command)
    return command


@record.command()
@click.option("--edit", is_flag=True, help="Edit the content in your $EDITOR.")
@_with_update_options
def update(id: str, **given: Any) -> None:
    """Change a record; what is not given stays.

    TEXT is the new content; `-` reads it from standard input, --edit opens your $EDITOR.  --tag, --alias and --keyword
    replace all of theirs; an empty one (`--tag ''`) removes them.  `commonplace edit` is the same, and opens your
    editor by itself.

    Examples:
      commonplace record update 1m7gmb4480 "Use yarn, not npm" --expect 1
      commonplace record update 1m7gmb4480 --add-tag js --alias "package manager"
    """
    _update(id, **given)


@click.command(cls=Command)
@_with_update_options
def edit(id: str, **given: Any) -> None:
    """Change a record: its content in your $EDITOR, or what is given; the rest stays.

    TEXT is the new content; `-` reads it from standard input.  --tag, --alias and --keyword replace all of theirs; an
    empty one (`--tag ''`) removes them.

    Examples:
      commonplace edit 1m7gmb4480
      commonplace edit 1m7gmb4480 "Use yarn, not npm" --add-tag js
    """
    kept = {"scope", "as_json", "expect"}
    named = any(value not in (None, False, ()) for name, value in given.items() if name not in kept)
    _update(id, edit=not named, **given)


def _update(id: str, scope: str | None, as_json: bool, expect: int | None, **given: Any) -> None:
    with open_session(scope, as_json=as_json) as session:
        before = session.memory.get(id)
        changes = _changes(before, given, session.app.clock())
        if not changes:
            raise InvalidInput("nothing to change was given; see `commonplace record update --help`")
        unseen = "" if changes.get("content") in (None, given["text"]) else changes["content"]
        session.require_trust([before], "changes", text=unseen)
        session.speak(unseen)
        derived = given["edit"] or changes.keys() & {"tags", "metadata"}  # then it holds for this version only
        based = before.version if derived and expect is None else expect
        result = session.memory.update(before.id, expect=based, **changes)
        data = session.saved_json(result)
        text = "Nothing changed in {}, which is at" if result.deduped else "Updated {} to"
        done = f"{text.format(result.record.id)} version {result.record.version}"
        session.answer(f"Held for review as {result.record.id}" if result.held_for else done, data)


def _changes(before: Record, given: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The options of ``update`` as ``Memory.update`` takes them: only what was named."""
    if given["edit"] and given["text"] is not None:
        raise InvalidInput("TEXT and --edit both say what the content becomes; give one of them")
    if given["no_expiry"] and given["expires"] is not None:
        raise InvalidInput("--expires and --no-expiry contradict each other; give one of them")
    changes: dict[str, Any] = {}
    if given["edit"] or given["text"] is not None:
        changes["content"] = _text(None if given["edit"] else given["text"], before=before.content)
    if given["tags"] or given["added"] or given["removed"]:
        tags = {tag for tag in given["tags"] if tag} if given["tags"] else before.tags
        changes["tags"] = (tags | {*given["added"]}) - {*given["removed"]}
    if named := {name: [word for word in given[name] if word] for name in ("aliases", "keywords") if given[name]}:
        changes["metadata"] = dict(before.metadata) | named
    if given["expires"] is not None or given["no_expiry"]:
        changes["expires_at"] = None if given["no_expiry"] else moments.until(given["expires"], now)
    if given["occurred"] is not None:
        changes["occurred_at"] = moments.on(given["occurred"], now)
    return changes


@record.command()
@_id
@click.argument("category")
@scope_option
@json_option
def reclassify(id: str, category: str, scope: str | None, as_json: bool) -> None:
    """Move a record to another category.

    Its id stays; its file moves.

    Example:
      commonplace record reclassify 1m7gmb4480 principles
    """
    with open_session(scope, as_json=as_json) as session:
        session.require_trust([session.memory.get(id)], "moves")
        result = session.memory.reclassify(id, category)
        data = session.saved_json(result)
        session.answer(f"Moved {result.record.id} ({session.location(result.record)})", data)


@record.command("rename")
@_id
@click.argument("name", required=False)
@scope_option
@json_option
def rename(id: str, name: str | None, scope: str | None, as_json: bool) -> None:
    """Rename a record's file after its first line, or to NAME.

    A file keeps its name when its text changes, so that links to it and its history in Git stay; this renames it.
    Nothing else changes, and a file may have any name.

    Examples:
      commonplace record rename 1m7gmb4480
      commonplace record rename 1m7gmb4480 package-manager
    """
    with open_session(scope, as_json=as_json) as session:
        found = session.memory.get(id)
        folder, before = session.app.store.folders.get(found.scope), session.path(found)
        if folder is None or before is None:
            raise InvalidInput(f"record {found.short} has no file here; `commonplace sync --write` writes it")
        path = named_path(folder, found, name, before=before)
        after = session.app.store.rename(folder, found.id, at=os.path.relpath(before, folder), to=path)
        text = f"Renamed {short_path(before)} to {short_path(after)}" if after != before else "It is named so already"
        session.answer(text, {"id": found.id, "before": before, "path": after})


def named_path(folder: str, record: Record, name: str | None, *, before: str) -> str:
    """The path for a name that a person gives, or that the first line gives; a free one, unless it has it already."""
    from commonplace.files.codec import file_name  # noqa: PLC0415 - nothing else here writes a file
    from commonplace.files.disk import free_path  # noqa: PLC0415 - likewise

    if name is None:
        path = file_name(record)
    elif os.path.basename(name) != name or name.startswith(".") or not name.strip():
        raise InvalidInput(f"{name!r} is not the name of a file: no folder, and no dot at its beginning")
    else:
        path = f"{record.category}/{name.removesuffix('.md')}.md"
    return path if os.path.join(folder, path) == before else free_path(folder, path)


@record.command("merge")
@_id
@click.argument("into", metavar="INTO")
@click.argument("text", required=False)
@scope_option
@json_option
def merge_(id: str, into: str, text: str | None, scope: str | None, as_json: bool) -> None:
    """Make one record of two, as when two people have added one fact: INTO stays, and ID is closed.

    INTO keeps its words if both say the same, and gets the tags, aliases and keywords of both.  TEXT is the new
    content; without it, and if they differ, your $EDITOR opens on the words of both.

    Examples:
      commonplace record merge 1m7gmb9y2c 1m7gmb4480
      commonplace record merge 1m7gmb9y2c 1m7gmb4480 "Use pnpm 9, not npm"
    """
    with open_session(scope, as_json=as_json) as session:
        session.require_person("merges records")
        ends, stays = session.memory.get(id), session.memory.get(into)
        words = text if text is not None else _words_of_both(ends, stays)
        if words is None or not words.strip():
            raise InvalidInput("nothing was saved in the editor, so nothing was merged")
        if ends.id != stays.id:
            lists = {
                name: [*getattr(stays, name), *(one for one in getattr(ends, name) if one not in getattr(stays, name))]
                for name in ("aliases", "keywords")
            }
            metadata = dict(stays.metadata) | {name: list(found) for name, found in lists.items() if found}
            session.memory.update(stays.id, tags=stays.tags | ends.tags, metadata=metadata)
        done = merge(session.memory, ends, session.memory.get(stays.id), words.strip())
        session.answer(f"Merged {ends.id} into {done.id}", {"record": encode(done), "superseded": ends.id})


def _words_of_both(ends: Record, stays: Record) -> str | None:
    if ends.content.split() == stays.content.split():
        return stays.content
    return click.edit(f"{stays.content}\n\n{ends.content}", extension=".md")


def _add_verb(name: str, done: str, summary: str, *, examples: str = "", person: str = "") -> None:
    """Add a command that does one thing to each of some records; ``person``: what it does, if only a person may."""
    shown = examples or f"commonplace record {name} 1m7gmb4480"

    @record.command(name, help=f"{summary}\n\nExample:\n  {shown}")
    @_ids
    @scope_option
    @json_option
    def run(ids: Sequence[str], scope: str | None, as_json: bool) -> None:
        with open_session(scope, as_json=as_json) as session:
            if person:
                session.require_person(person)
            _each(session, ids, done, getattr(Memory, name))


_add_verb("archive", "Archived", "Archive records: they are kept, and no longer recalled.")


@record.command()
@_ids
@click.option("--version", metavar="N", type=int, help="Restore the content of this version, as a new version.")
@scope_option
@json_option
def restore(ids: Sequence[str], version: int | None, scope: str | None, as_json: bool) -> None:
    """Restore archived records, or an earlier version of a record.

    Examples:
      commonplace record restore 1m7gmb4480
      commonplace record restore 1m7gmb4480 --version 1
    """
    with open_session(scope, as_json=as_json) as session:
        _each(session, ids, "Restored", lambda memory, meant: memory.restore(meant, version=version))


_add_verb("pin", "Pinned", "Pin records: they are never evicted, and rank slightly higher.")
_add_verb("unpin", "Unpinned", "Unpin records.")
_add_verb("hold", "Held", "Hold records for review: they are not recalled until they are released.")
_add_verb(
    "release", "Released", "Release held records: they are recalled again.", person="releases held records",
    examples="commonplace list --state held\n  commonplace record release 1m7gmb4480",
)  # fmt: skip


def _each(session: Session, ids: Sequence[str], done: str, verb: Callable[[Memory, str], Record]) -> None:
    """Do the same to each record; a wrong id stops all of it before it begins."""
    meant = session.get_records(ids)
    session.require_trust(meant, "changes")
    records = [verb(session.memory, record.id) for record in meant]
    text = "\n".join(f"{done} {record.id} ({session.location(record)})" for record in records)
    session.answer(text, {"records": session.list_json(records)})


@record.command()
@_ids
@click.option("--yes", is_flag=True, help="Do not ask.")
@scope_option
@json_option
def delete(ids: Sequence[str], yes: bool, scope: str | None, as_json: bool) -> int:
    """Erase records irreversibly.

    Erases their text, versions, index entries and files, what was derived from them alone, their words in learned
    artifacts, and all of that in our own backups.  `record archive` keeps them instead.  `commonplace forget` does the
    same for sessions, sources and subjects, with a preview.

    Example:
      commonplace record delete 1m7gmb4480 --yes
    """
    with open_session(scope, as_json=as_json) as session:
        meant = session.get_records(ids)
        session.require_trust(meant, "erases")
        shown = ", ".join(f"{record.short} ({_shorten(record.content, 40)})" for record in meant)
        if not yes and not confirm(f"Erase {shown} irreversibly?"):
            return 1
        return erase_and_report(session, Target(ids=frozenset(record.id for record in meant)))


@record.command("list")
@click.option(
    "--category",
    "categories",
    metavar="CATEGORY",
    multiple=True,
    help="Only this category; repeatable.",
    shell_complete=complete_categories,
)
@click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    help="Only records with this tag; repeated: with all of them.",
    shell_complete=complete_tags,
)
@click.option(
    "--state",
    type=click.Choice([*(state.value for state in State), "all"]),
    default="live",
    show_default=True,
    help="Only records in this state.",
)
@click.option("--trust", type=click.Choice(["user", "agent", "external"]), help="Only records that are trusted so.")
@click.option("--since", metavar="WHEN", help="Only records created since: a date, or a time ago (12h, 7d, 2w).")
@click.option(
    "--source",
    "sources",
    metavar="REF",
    multiple=True,
    help="Only records from this channel (user, agent, extraction, import, file ...) or source; repeatable.",
)
@click.option(
    "--sort",
    type=click.Choice([Order.NEWEST.value, Order.OLDEST.value, Order.STALEST.value]),
    default="newest",
    show_default=True,
    help="stalest: least recently used first.",
)
@click.option("--before", metavar="ID", help="Only records that come after this one in the list.")
@click.option("--paths", is_flag=True, help="Show the file of each record.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of records."
)
@scope_option
@json_option
def list_(*, state: str, limit: int, scope: str | None, as_json: bool, sort: str, paths: bool, **given: Any) -> None:
    """List records, newest first.

    Piped, each record is one line with tabs between id, category, scope, date, state, tags, words and file.

    Examples:
      commonplace list --category decisions
      commonplace list --source extraction --since 7d
      commonplace list --state all --json
    """
    if given["before"] and sort != Order.NEWEST:
        raise InvalidInput(f"--before pages through the newest records first, not with --sort {sort}")
    with open_session(scope, as_json=as_json) as session:
        session.add_notes(*([] if scope else session.app.where.hints))
        states = ANY_STATE if state == "all" else [State(state)]
        found = session.memory.list(
            categories=given["categories"] or None,
            tags=given["tags"],
            states=states,
            limit=limit + 1,
            trusts=[Trust[given["trust"].upper()]] if given["trust"] else None,
            sources=given["sources"] or None,
            since=moments.start(given["since"], session.app.clock()) if given["since"] else None,
            order=Order(sort),
            before=session.memory.get(given["before"]) if given["before"] else None,
        )
        if len(found) > limit:
            session.add_notes(f"there are more than these {limit}; --limit shows more")
        if not found:
            session.add_notes("No records.")
        _show_list(session, found[:limit], paths=paths)


def _show_list(session: Session, records: Sequence[Record], *, paths: bool) -> None:
    """Print records: as JSON, on a terminal wrapped and paged, else one line each with tabs between the fields."""
    if session.as_json or not records:
        session.answer("", {"records": session.list_json(records)})
        return
    files = session.app.store.references(records)
    if not is_terminal():
        for record in records:
            facts = (record.category, session.app.where.label(record.scope), f"{record.created_at:%Y-%m-%d}")
            state = record.state(session.app.clock()).value
            write_row(
                record.id,
                *facts,
                state,
                ",".join(sorted(record.tags)),
                record.content,
                short_path(files.get(record.id, "")),
            )
        return
    from commonplace.cli.screen import Screen, show  # noqa: PLC0415 - programs get lines

    screen = Screen(now=session.app.clock())
    blocks = [
        screen.record(
            record, label=session.app.where.label(record.scope), marks=_marks(session, record),
            path=short_path(files[record.id]) if record.id in files else None, show_path=paths,
        )
        for record in records
    ]  # fmt: skip
    show(blocks, paged=True)


def _marks(session: Session, record: Record) -> list[str]:
    state = record.state(session.app.clock())
    marks = [*([state.value] if state is not State.LIVE else []), *(["pinned"] if record.pinned else [])]
    return marks + [f"#{one_line(tag)}" for tag in sorted(record.tags)]


def _shorten(text: str, letters: int) -> str:
    line = one_line(text)
    return line if len(line) <= letters else line[: letters - 1].rstrip() + "…"


@record.command()
@_id
@scope_option
@json_option
def get(id: str, scope: str | None, as_json: bool) -> None:
    """Show a record: content, source, versions, usage.

    Examples:
      commonplace show 1m7gmb4480
      commonplace show 1m7g --json
    """
    with open_session(scope, as_json=as_json) as session:
        found = session.memory.get(id)
        versions = session.memory.history(found.id)
        data = session.to_json(found) | {"versions": [encode(version) for version in versions]}
        session.answer(_sheet(session, found, versions), data)


@record.command("file")
@_id
@json_option
def file_(id: str, as_json: bool) -> None:
    """Print the Markdown file of a record, and its path on standard error.

    Example:
      commonplace record file 1m7gmb4480
    """
    with open_session(as_json=as_json) as session:
        found = record_file(AppAccess(session.app), id)
        session.add_notes(short_path(found.path))
        session.answer(found.text.rstrip("\n"), encode(found))


def _sheet(session: Session, record: Record, versions: Sequence[Record]) -> str:
    path = session.path(record)
    facts = {
        "id": record.id,
        "category": f"{record.category} ({record.kind})",
        "scope": f"{session.app.where.label(record.scope)} ({record.scope.name})",
        "state": record.state(session.app.clock()).value + (", pinned" if record.pinned else ""),
        "superseded by": record.superseded_by,
        "key": record.key,
        "tags": ", ".join(sorted(record.tags)),
        "aliases": ", ".join(record.aliases),
        "keywords": ", ".join(record.keywords),
        "source": _source(record),
        "created": _date(record.created_at),
        "occurred": _date(record.occurred_at),
        "expires": _date(record.expires_at),
        "versions": "; ".join(f"{past.version} ({_date(past.updated_at)}, {past.source.channel})" for past in versions),
        "used": _use(record),
        "file": short_path(path) if path else None,
    }
    return "\n".join([*(f"{name:<14}{fact}" for name, fact in facts.items() if fact), "", record.content])


def _source(record: Record) -> str:
    ref = f", {record.source.ref}" if record.source.ref else ""
    parents = f", derived from {', '.join(record.source.parents)}" if record.source.parents else ""
    return f"{record.source.channel}{ref}{parents}; trust {record.trust.name.lower()}"


def _use(record: Record) -> str:
    if not record.usage.recalls:
        return "never recalled"
    times = "once" if record.usage.recalls == 1 else f"{record.usage.recalls} times"
    return f"recalled {times}, last {_date(record.usage.last_recalled_at)}"


def _date(moment: datetime | None) -> str | None:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z" if moment else None


@record.command()
@_id
@scope_option
@json_option
def history(id: str, scope: str | None, as_json: bool) -> None:
    """Show every version of a record, newest first.

    Example:
      commonplace record history 1m7gmb4480
    """
    with open_session(scope, as_json=as_json) as session:
        versions = session.memory.history(id)
        text = "\n\n".join(
            f"version {past.version}, {_date(past.updated_at)}, {past.category}, from {_source(past)}\n{past.content}"
            for past in versions
        )
        session.answer(text, {"id": versions[0].id, "versions": [encode(past) for past in versions]})
