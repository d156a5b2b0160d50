"""``commonplace forget``: erase for good by id, session, source, subject or question, with a preview and a receipt."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, confirm, json_option, open_session, scope_option, table_lines
from commonplace.cli.terminal import print_note, short_path
from commonplace.engine.erasing import Target
from commonplace.engine.forgetting import Preview, Removal, preview
from commonplace.engine.rendering import iso
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.queries import Hit
from commonplace.model.records import Record
from commonplace.records.erasure import (
    Forgotten,
    find_removal,
    receipts,
    target_of,
    turns_saying,
)
from commonplace.records.erasure import allow as lift
from commonplace.records.erasure import forget as forget_target
from commonplace.records.erasure_copies import count_copies
from commonplace.text.cleaning import one_line, plural

SHOWN = 20  # of each sort in a preview
WORDS = 60  # letters of each
HITS = 50
SCORE = 0.5


@click.command(cls=Command)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("--session", "sessions", metavar="ID", multiple=True, help="A session or ticket, with all made of it.")
@click.option(
    "--source", "sources", metavar="REF", multiple=True,
    help="All that came from a file, an address, an agent (claude-code) or a channel (import).",
)  # fmt: skip
@click.option(
    "--subject", "subjects", metavar="WORDS", multiple=True, help="Every record, turn and artifact with these words."
)
@click.option("--query", metavar="TEXT", help="What a recall of this text finds; you choose from the hits.")
@click.option(
    "--min-score", type=click.FloatRange(0, 1), default=SCORE, show_default=True, help="With --query: the least score."
)
@click.option("--turns", is_flag=True, help="Erase also the turns of sessions that the records were learned from.")
@click.option("--dry-run", is_flag=True, help="Show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--receipts", "listed", is_flag=True, help="List the receipts of what was erased.")
@click.option("--allow", metavar="ID", help="Let something erased come back: a receipt, a record, a session, a source.")
@scope_option
@json_option
def forget(
    ids: Sequence[str], *, scope: str | None, as_json: bool, listed: bool, allow: str | None, **given: Any
) -> int:
    """Erase for good what a person wants forgotten, with everything that was made of it, and leave a receipt.

    Records go with their history, vectors, index and files; a session goes with its turns, notes, jobs and the records
    that were learned from it alone.  Learned artifacts lose the lines that repeat it.  Our own backups are rewritten
    without it.  No old session, import, backup or Git checkout brings it back: a tombstone, which holds no content,
    keeps it out and says so, until --allow.

    Examples:
      commonplace forget 1m7gmb4480 --turns
      commonplace forget --session 0b1c --dry-run
      commonplace forget --subject "project falcon"
      commonplace forget --receipts
    """
    with open_session(scope, as_json=as_json) as session:
        if listed:
            return _list_receipts(session)
        if allow is not None:
            return _allow(session, allow)
        return _forget(session, ids, **given)


def _forget(session: Session, ids: Sequence[str], **given: Any) -> int:
    if not (ids or given["sessions"] or given["sources"] or given["subjects"] or given["query"]):
        raise InvalidInput("say what to forget: an ID, --session, --source, --subject or --query")
    hits = _chosen_hits(session, given["query"], given["min_score"], ask=not (given["yes"] or given["dry_run"]))
    target = target_of(
        session.app, ids=ids, sessions=given["sessions"], sources=given["sources"], subjects=given["subjects"],
        hits=hits,
    )  # fmt: skip
    if given["turns"]:
        records = find_removal(session.memory, target).records
        target = target.replace(turns=target.turns | frozenset(turns_saying(session.memory, records)))
    removal = find_removal(session.memory, target)
    if removal.is_empty:
        raise NotFound("nothing that is stored here is meant by that; nothing was erased")
    seen = preview(session.app.store, removal, reads=session.memory.binding.reads, now=session.app.clock())
    lines = list(_preview_lines(session, removal, seen))
    if given["dry_run"]:
        session.answer("\n".join(["This would be erased:", *lines]), _preview_json(session, removal, seen))
        return OK
    session.require_person("erases for good")
    if not given["yes"]:
        print_note("\n".join(["this will be erased:", *lines]))
        if not confirm("Erase it for good?"):
            return ATTENTION
    return erase_and_report(session, target)


def _chosen_hits(session: Session, query: str | None, least: float, *, ask: bool) -> list[Hit]:
    """Return what a question finds, as far as the person wants it erased."""
    if query is None:
        return []
    found = session.app.folders.recall(session.memory, query, limit=HITS, count=False).hits
    hits = [hit for hit in found if hit.score >= least]
    if not hits:
        raise NotFound(f"no hit of that question has a score of {least} or more; nothing was erased")
    lines = [f"{number:>3}  {hit.score:.2f}  {_shorten(hit.text)}" for number, hit in enumerate(hits, start=1)]
    print_note("\n".join(["the question finds:", *lines]))
    if not ask:
        return hits
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to choose on; --yes takes all of them, --dry-run shows what goes")
    chosen = click.prompt("Erase which? Numbers with blanks between, or all", err=True)
    return _numbered(hits, chosen)


def _numbered(hits: Sequence[Hit], chosen: str) -> list[Hit]:
    if chosen.strip() == "all":
        return list(hits)
    numbers = chosen.replace(",", " ").split()
    if not all(one.isdecimal() and 1 <= int(one) <= len(hits) for one in numbers):
        raise InvalidInput(f"{chosen!r} names no hits; write numbers from 1 to {len(hits)}, or all")
    return [hits[int(one) - 1] for one in dict.fromkeys(numbers)]


# What goes


def _preview_lines(session: Session, removal: Removal, seen: Preview) -> Iterator[str]:
    names = {one.id: one for one in removal.records}
    derived = sorted(seen.erasure.ids - names.keys())
    yield from _listed("record", [_record_line(session, one) for one in removal.records])
    yield from _listed("record", [f"{one[:10]}  {_first_words(session, one)}" for one in derived], "derived from them")
    for kind in (DocumentKind.SESSION, DocumentKind.TICKET):
        yield from _listed(kind, [one.name for one in removal.documents if one.kind is kind])
    turns = [chunk for turns in removal.turns for chunk in turns.chunks]
    yield from _listed("turn", [f"{one.document}#{one.ref}  {_shorten(one.text)}" for one in turns])
    yield from _listed(
        "record", [_record_line(session, one[-1]) for one in removal.rewritten], "stay without its words"
    )
    for kind in (DocumentKind.EXTRACTION, DocumentKind.ARTIFACT, DocumentKind.RECEIPT):
        yield from _listed(_TITLES[kind], _names(seen.gone, kind))
        yield from _listed(_TITLES[kind], _names(seen.changed, kind), "lose lines")
    if copies := count_copies(session.app):
        yield f"  in {plural(copies, 'backup')} of ours as well"
    for one in seen.kept:
        yield f"  not: your own words in {one.name} that may speak of it; edit the file"


_TITLES = {
    DocumentKind.EXTRACTION: "note of a session", DocumentKind.ARTIFACT: "artifact", DocumentKind.RECEIPT: "receipt",
}  # fmt: skip


def _listed(what: str, lines: Sequence[str], how: str = "") -> Iterator[str]:
    if not lines:
        return
    head, _, tail = what.partition(" ")
    yield f"  {plural(len(lines), head)}{f' {tail}' if tail else ''}{f', {how}' if how else ''}"
    yield from (f"    {line}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"    and {len(lines) - SHOWN} more"


def _names(documents: Sequence[Document], kind: DocumentKind) -> list[str]:
    return [one.name for one in documents if one.kind is kind]


def _record_line(session: Session, record: Record) -> str:
    return f"{record.short}  {record.category}, {session.app.where.label(record.scope)}  {_shorten(record.content)}"


def _first_words(session: Session, id: str) -> str:
    record = session.app.store.get(id)
    return _shorten(record.content) if record else ""


def _shorten(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= WORDS else line[: WORDS - 1].rstrip() + "…"


def _preview_json(session: Session, removal: Removal, seen: Preview) -> dict[str, Any]:
    return {
        "records": sorted(seen.erasure.ids),
        "rewritten": [one[-1].id for one in removal.rewritten],
        "documents": [f"{one.kind}:{one.name}" for one in (*removal.documents, *seen.gone)],
        "turns": [chunk.id for one in removal.turns for chunk in one.chunks],
        "changed": [f"{one.kind}:{one.name}" for one in seen.changed],
        "kept": [one.name for one in seen.kept],
        "backups": count_copies(session.app),
    }


# What went


def erase_and_report(session: Session, target: Target) -> int:
    """Erase a target and print the receipt; the way of every command that erases."""
    records = find_removal(session.memory, target).records
    turns = [ref for ref in turns_saying(session.memory, records) if ref not in target.turns]
    with show_progress("Erasing in backups") as progress:
        done = forget_target(session.app, session.memory, target, progress=progress)
    session.add_notes(*_remains(session, done, turns))
    text = [f"Erased {one}" for one in done.receipt.records] + _count_lines(done)
    session.answer("\n".join([*text, f"Receipt {done.receipt.id}"]), _done_json(done))
    return OK


def _count_lines(done: Forgotten) -> list[str]:
    counts = _counts({name: count for name, count in done.receipt.counts.items() if name != "records"})
    lines = [f"Erased {counts}"] if counts else []
    rewritten = [copy for copy in done.copies if copy.erased and not copy.trouble]
    return lines + ([f"Erased in {plural(len(rewritten), 'backup')}"] if rewritten else [])


def _remains(session: Session, done: Forgotten, turns: Sequence[str]) -> Iterator[str]:
    """Say where it may still be."""
    if done.receipt.pending:
        yield "a reader still holds old bytes of the database; `commonplace doctor --fix` empties them"
    left = [ref for ref in turns if _is_indexed(session, ref)]
    if left:
        shown = ", ".join(left[:3])
        yield f"it was learned from {plural(len(left), 'turn')} that recall still finds ({shown}); --turns erases those"
    yield from map(short_path, done.notes)


def _is_indexed(session: Session, ref: str) -> bool:
    from commonplace.model.queries import DocumentFilter  # noqa: PLC0415 - only where a record was learned from turns

    kind, _, rest = ref.partition(":")
    where = DocumentFilter(
        scopes=frozenset(session.app.binding.reads), kinds=frozenset({kind}), names=frozenset({rest.rpartition("#")[0]})
    )
    return any(chunk.id == ref or chunk.id.startswith(f"{ref}.") for chunk in session.app.store.chunks(where, limit=-1))


def _done_json(done: Forgotten) -> dict[str, Any]:
    receipt = done.receipt
    return {
        "receipt": receipt.id,
        "erased": list(receipt.records),
        "counts": dict(receipt.counts),
        "pending": receipt.pending,
        "backups": [{"path": one.path, "erased": one.erased, "trouble": one.trouble} for one in done.copies],
        "files": list(done.files),
        "elsewhere": list(done.elsewhere),
    }


def _list_receipts(session: Session) -> int:
    found = receipts(session.memory)
    rows = [[one.id, f"{one.at:%Y-%m-%d %H:%M}Z", one.by, _counts(one.counts)] for one in found]
    if not rows:
        session.add_notes("Nothing was erased here.")
    data = [
        {"id": one.id, "at": iso(one.at), "by": one.by, "records": list(one.records), "counts": dict(one.counts),
         "digests": list(one.digests)} for one in found
    ]  # fmt: skip
    session.answer("\n".join(table_lines(rows)) if rows else "", {"receipts": data})
    return OK


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(plural(count, name.removesuffix("s")) for name, count in counts.items())


def _allow(session: Session, name: str) -> int:
    session.require_person("lets something erased come back")
    lifted = lift(session.memory, name)
    session.answer(
        f"Lifted {plural(lifted, 'tombstone')}: what {name} erased may come back", {"allowed": name, "lifted": lifted}
    )
    return OK
