"""``commonplace review``: decide about what waits for a person, one by one or by id."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any

import click

from commonplace.cli.commands import Group
from commonplace.cli.session import Session, confirm, json_option, open_session
from commonplace.cli.terminal import print_text
from commonplace.engine.review import (
    FORGET,
    SUPERSEDE,
    UPDATE,
    ReviewResult,
    WaitingRecord,
    find_waiting,
    list_waiting,
    merge,
    replace,
)
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Record
from commonplace.records.verbs import to_awaiting
from commonplace.text.cleaning import one_line, plural
from commonplace.wire import encode

CHOICES = ("a", "e", "r", "s", "q")
QUESTION = "[a]pprove, [e]dit, [r]eject, [s]kip, [q]uit"
LINE_LETTERS = 80  # of a content in a list
_DIFFED = ("category", "tags", "value", "occurred_at", "expires_at", "pinned")

_ids = click.argument("ids", metavar="ID...", nargs=-1)
_all = click.option("--all", "every", is_flag=True, help="Everything that waits.")
_origin = click.option("--origin", metavar="REF", help="What came by this channel, or from this session or file.")
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def review(context: click.Context) -> None:
    """Decide about what waits for you.

    Waiting are: records that are held, changes that an agent proposes to what you wrote or approved, and procedures,
    principles and preferences that nobody has approved.  Without a subcommand, asks about one after the other.

    Examples:
      commonplace review
      commonplace review list --origin agent
      commonplace review approve 1m7gmb4480
    """
    if context.invoked_subcommand is not None:
        return
    if not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to ask on; see `commonplace review list`, `approve` and `reject`")
    with open_session() as session:
        _ask_about_each(session)


def _ask_about_each(session: Session) -> None:
    waiting = list_waiting(session.memory)
    if not waiting:
        session.add_notes("Nothing waits for review.")
    for number, one in enumerate(waiting, start=1):
        if session.app.store.get(one.record.id) is None:  # erased with what was decided before
            continue
        print_text(f"({number} of {len(waiting)})\n{_sheet(session, one)}")
        choice = click.prompt(QUESTION, type=click.Choice(CHOICES), show_choices=False, err=True)
        if choice == "q":
            return
        if choice != "s":
            _decide(session, one, choice)


def _decide(session: Session, one: WaitingRecord, choice: str) -> None:
    if choice == "a":
        print_text(_approved(session, one.record, session.memory.approve(one.record.id)))
    elif choice == "r":
        print_text(f"Rejected {session.memory.reject(one.record.id).id}")
    else:
        text = click.edit(one.record.content, extension=".md")
        if text is None or not text.strip():
            session.add_notes("nothing was saved in the editor, so nothing was decided")
            return
        print_text(_approved(session, one.record, _edit(session, one, text)))


def _edit(session: Session, one: WaitingRecord, text: str) -> ReviewResult:
    """Approve a record in other words."""
    if one.change is not None and one.change.action not in (UPDATE, SUPERSEDE):
        raise InvalidInput(f"record {one.record.id!r} has no words of its own; approve or reject it")
    session.memory.update(one.record.id, content=text.strip())
    return session.memory.approve(one.record.id)


def _approved(session: Session, record: Record, done: ReviewResult) -> str:
    session.add_notes(*done.notes)
    if done.record is None:
        session.note_remains(pending=done.pending)
        return "\n".join(f"Erased {gone}" for gone in done.erased)
    changed = f" by {record.short}" if done.record.id != record.id else ""
    return f"Approved {done.record.id}{changed} ({session.location(done.record)})"


# What waits


@review.command("list")
@_origin
@json_option
def list_(origin: str | None, as_json: bool) -> None:
    """List what waits, oldest first.

    Examples:
      commonplace review list
      commonplace review list --origin session:0b1c --json
    """
    with open_session(as_json=as_json) as session:
        waiting = list_waiting(session.memory, origin=origin)
        if not waiting:
            session.add_notes("Nothing waits for review.")
        text = "\n".join(_line(session, one) for one in waiting)
        session.answer(text, {"waiting": [encode(to_awaiting(one)) for one in waiting]})


def _line(session: Session, one: WaitingRecord) -> str:
    text = one_line(one.record.content)
    words = text if len(text) <= LINE_LETTERS else text[: LINE_LETTERS - 1].rstrip() + "…"
    where = f"{one.record.category:<11}  {session.app.where.label(one.record.scope):<9}"
    return f"{one.record.short}  {where}  {words}\n            {one.why}"


@review.command()
@click.argument("id", metavar="ID")
@json_option
def show(id: str, as_json: bool) -> None:
    """Show one record that waits: why, its origin, its quote, and what it would change.

    Example:
      commonplace review show 1m7gmb4480
    """
    with open_session(as_json=as_json) as session:
        one = find_waiting(session.memory, id)
        session.answer(_sheet(session, one), encode(to_awaiting(one)))


def _sheet(session: Session, one: WaitingRecord) -> str:
    record = one.record
    source = record.source
    quote = record.metadata.get("quote")
    facts = {
        "id": record.id,
        "waits": one.why,
        "category": f"{record.category}, {session.app.where.label(record.scope)}",
        "origin": f"{source.channel}{f', {one_line(source.ref)}' if source.ref else ''}; {record.trust_mark}",
        "created": f"{record.created_at:%Y-%m-%d %H:%M:%S}Z",
        "quote": one_line(quote) if isinstance(quote, str) else None,
    }
    head = [f"{name:<10}{fact}" for name, fact in facts.items() if fact]
    return "\n".join([*head, "", *_body(one)])


def _body(one: WaitingRecord) -> Iterator[str]:
    """What a record says, or how its target would change."""
    if one.target is None or one.change is None:
        yield one.record.content
    elif one.change.action in (UPDATE, SUPERSEDE):
        named = one.change.named if one.change.action == UPDATE else ("content", *_DIFFED)
        yield from _difference(one.target, one.record, named)
    else:
        yield f"{'Erase' if one.change.action == FORGET else 'Archive'}: {one.target.content}"


def _difference(before: Record, after: Record, named: Sequence[str]) -> Iterator[str]:
    if "content" in named:
        old, new = before.content.splitlines(), after.content.splitlines()
        yield from unified_diff(old, new, f"record {before.short}", f"proposed by {after.short}", lineterm="")
    for field in _DIFFED:
        old_value, new_value = getattr(before, field), getattr(after, field)
        if field in named and old_value != new_value:
            yield f"{field}: {_plain(old_value)} -> {_plain(new_value)}"


def _plain(value: Any) -> str:
    return ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)


# Decisions


@review.command()
@_ids
@_all
@_origin
@_yes
@click.option("--keep-both", is_flag=True, help="Of one that would replace another: approve it, and leave the other.")
@json_option
def approve(ids: Sequence[str], *, every: bool, origin: str | None, yes: bool, keep_both: bool, as_json: bool) -> int:
    """Approve records: their words count as yours, and what they propose is done.

    Examples:
      commonplace review approve 1m7gmb4480
      commonplace review approve 1m7gmb4480 --keep-both
      commonplace review approve --origin session:0b1c --yes
    """
    with open_session(as_json=as_json) as session:
        chosen = _chosen(session, ids, every=every, origin=origin)
        if not ids and chosen and not yes and not confirm(f"Approve {plural(len(chosen), 'record')}?"):
            return 1
        lines, done = [], []
        for record in chosen:
            if session.app.store.get(record.id) is None:
                continue
            result = session.memory.approve(record.id, alone=keep_both)
            lines.append(_approved(session, record, result))
            done.append({"id": record.id, "record": encode(result.record), "erased": list(result.erased)})
        session.answer("\n".join(lines), {"approved": done})
    return 0


@review.command()
@_ids
@_all
@_origin
@json_option
def reject(ids: Sequence[str], every: bool, origin: str | None, as_json: bool) -> None:
    """Reject records: they are archived, and what they propose is not done.

    Examples:
      commonplace review reject 1m7gmb4480
      commonplace review reject --origin session:0b1c
    """
    with open_session(as_json=as_json) as session:
        records = [session.memory.reject(record.id) for record in _chosen(session, ids, every=every, origin=origin)]
        text = "\n".join(f"Rejected {record.id}" for record in records)
        session.answer(text, {"rejected": [record.id for record in records]})


@review.command()
@click.argument("id", metavar="ID")
@click.argument("text", required=False)
@json_option
def edit(id: str, text: str | None, as_json: bool) -> None:
    """Approve a record in other words.

    TEXT is the content; without it your $EDITOR opens.

    Example:
      commonplace review edit 1m7gmb4480 "Release: tag, build, publish"
    """
    with open_session(as_json=as_json) as session:
        one = find_waiting(session.memory, id)
        words = click.edit(one.record.content, extension=".md") if text is None else text
        if words is None or not words.strip():
            raise InvalidInput("nothing was saved in the editor, so nothing was decided")
        done = _edit(session, one, words)
        session.answer(_approved(session, one.record, done), {"record": encode(done.record)})


@review.command("replace")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@json_option
def replace_(old: str, new: str, as_json: bool) -> None:
    """Close the record OLD because NEW replaces it; NEW is approved with that.

    Example:
      commonplace review replace 1m7gmb4480 1m7gmb9y2c
    """
    with open_session(as_json=as_json) as session:
        before, after = session.memory.get(old), session.memory.get(new)
        session.require_person("replaces records")
        stays = replace(session.memory, before, after)
        session.answer(f"{stays.id} replaces {before.id}", {"record": encode(stays), "superseded": before.id})


@review.command("merge")
@click.argument("id", metavar="ID")
@click.argument("into", metavar="INTO")
@click.argument("text", required=False)
@json_option
def merge_(id: str, into: str, text: str | None, as_json: bool) -> None:
    """Make one record of two: INTO gets the words of both, and ID is closed.

    TEXT is the new content; without it your $EDITOR opens on the words of both.

    Example:
      commonplace review merge 1m7gmb9y2c 1m7gmb4480 "Use pnpm 9, not npm; the lock file is pnpm's"
    """
    with open_session(as_json=as_json) as session:
        ends, stays = session.memory.get(id), session.memory.get(into)
        both = f"{stays.content}\n\n{ends.content}"
        words = click.edit(both, extension=".md") if text is None else text
        if words is None or not words.strip():
            raise InvalidInput("nothing was saved in the editor, so nothing was merged")
        session.require_person("merges records")
        done = merge(session.memory, ends, stays, words.strip())
        session.answer(f"Merged {ends.id} into {done.id}", {"record": encode(done), "superseded": ends.id})


def _chosen(session: Session, ids: Sequence[str], *, every: bool, origin: str | None) -> list[Record]:
    """The records that are meant: by id, all, or those of one origin; a wrong id stops all before it begins."""
    if sum((bool(ids), every, origin is not None)) != 1:
        raise InvalidInput("name the records by id, or give --all or --origin, one of the three")
    if ids:
        return session.get_records(ids)
    return [one.record for one in list_waiting(session.memory, origin=origin)]
