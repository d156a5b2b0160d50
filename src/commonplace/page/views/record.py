"""Record: its text, source, versions, use and chain; edit with a check for changes meanwhile, and the other actions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.errors import Conflict, InvalidInput, NotFound
from commonplace.model.records import CATEGORIES, Record
from commonplace.page.differences import merge, word_diff
from commonplace.page.visits import Answer, Go, Page, Visit, end_of_day, url

VERSIONS_SHOWN = 10
USES_SHOWN = 20
FOLD_LINES = 40  # longer texts are folded, not cut
FOLD_CHARS = 4000
ACTIONS = {"pin": "pin", "unpin": "unpin", "archive": "archive", "restore": "restore"}


def show(visit: Visit) -> Answer:
    """Show one record."""
    stored = visit.ask("get", visit.path["id"])
    record: Record = stored.record
    versions: Sequence[Record] = visit.ask("history", record.id).versions
    shown = versions if visit.get("versions") == "all" else versions[:VERSIONS_SHOWN]
    as_of = end_of_day(visit.get("as_of") or None)
    then = next((one for one in versions if as_of and one.updated_at <= as_of), None)
    begin, rest = _folded((then or record).content)
    context = {
        "record": record, "state": stored.state.value, "begin": begin, "rest": rest,
        "versions": _diffs(shown, versions),
        "more_versions": len(versions) - len(shown), "origin": visit.ask("why", record.id).chain[0],
        "uses": visit.ask("uses", record.id, limit=USES_SHOWN).uses, "chain": _chain(visit, record),
        "path": _path(visit, record), "bytes": len(record.content.encode()), "notes": stored.file_notes,
        "most_bytes": visit.access.memory.binding.content_bytes, "done": visit.get("done"),
        "as_of": as_of, "then": then,
    }  # fmt: skip
    return Page(template="record.html", context=context)


def file(visit: Visit) -> Answer:
    """Show the Markdown file of a record, as it is on the disk."""
    found = visit.ask("file", visit.path["id"])
    record = visit.ask("get", visit.path["id"]).record
    return Page(template="file.html", context={"record": record, "found": found})


def act(visit: Visit) -> Answer:
    """Pin, hold, release, archive, restore or delete a record."""
    record: Record = visit.ask("get", visit.path["id"]).record
    do = visit.form.get("do", "")
    if do == "delete":
        gone = visit.ask("forget", record.id, confirm=True)
        return Page(template="deleted.html", context={"gone": gone, "record": record})
    if do == "release":
        visit.ask("approve", record.id)
    elif do == "hold":
        visit.ask("update", record.id, held=True)
    elif do == "restore" and visit.form.get("version", "").isdecimal():
        visit.ask("restore", record.id, version=int(visit.form["version"]))
    elif do in ACTIONS:
        visit.ask(ACTIONS[do], record.id)
    else:
        raise InvalidInput("that action is not known")
    return Go(to=url(f"records/{record.id}", done=do))


def edit(visit: Visit) -> Answer:
    """Show the form that changes a record."""
    record: Record = visit.ask("get", visit.path["id"]).record
    return _form(record, content=record.content, tags=" ".join(sorted(record.tags)), category=record.category)


def save(visit: Visit) -> Answer:
    """Save a changed record, unless it was changed meanwhile: then show both changes."""
    form, identity = visit.form, visit.path["id"]
    text, tags = form.get("text", "").strip(), tuple(form.get("tags", "").replace("#", " ").split())
    expect = int(form["expect"]) if form.get("expect", "").isdecimal() else None
    if form.get("do") == "theirs":
        return Go(to=url(f"records/{identity}"))
    if not text:
        raise InvalidInput("a record needs some words; delete it if it should say nothing")
    changes: dict[str, Any] = {"content": text, "tags": tags}
    if form.get("category"):
        changes["category"] = form["category"]
    try:
        saved = visit.ask("update", identity, expect_version=expect, **changes)
    except Conflict:
        return _conflict(visit, text, form)
    return Go(to=url(f"records/{identity}", done="unchanged" if saved.deduped else "saved"))


def _form(record: Record, *, content: str, tags: str, category: str) -> Page:
    context = {"record": record, "content": content, "tags": tags, "category": category}
    known = record.category in CATEGORIES
    return Page(template="edit.html", context=context | {"known": known, "rows": min(30, 4 + content.count("\n") * 2)})


def _conflict(visit: Visit, mine: str, form: Mapping[str, str]) -> Page:
    """Show what both changed since the version that the form was made from; the text of this one is not saved yet."""
    versions: Sequence[Record] = visit.ask("history", visit.path["id"]).versions
    base_version = int(form.get("base") or form["expect"])
    base = next((one for one in versions if one.version == base_version), versions[-1])
    theirs = versions[0]
    merged = merge(base.content, theirs.content, mine)
    context = {
        "record": theirs, "base": base, "theirs": word_diff(base.content, theirs.content),
        "mine": word_diff(base.content, mine), "own": mine, "merged": merged, "tags": form.get("tags", ""),
        "category": form.get("category", theirs.category), "rows": min(30, 4 + mine.count("\n") * 2),
    }  # fmt: skip
    return Page(template="conflict.html", context=context, status=409)


def _folded(text: str) -> tuple[str, str]:
    """Return the beginning of a text, and the rest of a long one."""
    lines = text.splitlines(keepends=True)
    if len(text) <= FOLD_CHARS and len(lines) <= FOLD_LINES:
        return text, ""
    begin = "".join(lines[:FOLD_LINES])
    if len(begin) > FOLD_CHARS:
        cut = begin.rfind(" ", FOLD_CHARS // 2, FOLD_CHARS)
        begin = begin[: cut if cut > 0 else FOLD_CHARS]
    return begin, text[len(begin) :]


def _diffs(shown: Sequence[Record], every: Sequence[Record]) -> list[dict[str, Any]]:
    """Return each version with its difference from the one before."""
    found = []
    for place, version in enumerate(shown):
        before = every[place + 1] if place + 1 < len(every) else None
        pieces = (
            None if before is None or before.content == version.content else word_diff(before.content, version.content)
        )
        found.append(
            {"version": version, "pieces": pieces, "changed": [] if before is None else _facts(before, version)}
        )
    return found


def _facts(before: Record, after: Record) -> list[str]:
    """Return what changed besides the words."""
    held = "held" if after.held else "released"
    named = {
        "category": f"category {after.category}", "tags": f"tags {', '.join(sorted(after.tags)) or 'none'}",
        "pinned": "pinned" if after.pinned else "unpinned", "held": held, "expires_at": "another expiry",
        "approved_at": "approved" if after.approved_at else "no longer approved",
        "archived_at": "archived" if after.archived_at else "restored", "scope": "another scope",
    }  # fmt: skip
    return [sentence for field, sentence in named.items() if getattr(before, field) != getattr(after, field)]


def _chain(visit: Visit, record: Record) -> list[dict[str, Any]]:
    """Return the records that replaced this one, newest first, then this one, then those that it replaced."""
    later: list[dict[str, Any]] = []
    seen, now = {record.id}, record
    while now.superseded_by and now.superseded_by not in seen:
        try:
            now = visit.ask("get", now.superseded_by).record
        except NotFound:
            break
        seen.add(now.id)
        later.insert(0, {"record": now, "how": "later"})
    earlier = [{"record": one, "how": "earlier"} for one in visit.ask("replaced", record.id).records]
    if not later and not earlier:
        return []
    return [*later, {"record": record, "how": "here"}, *earlier]


def _path(visit: Visit, record: Record) -> str | None:
    """Return the path of a record's file."""
    if visit.app is None:
        return None
    path: str | None = visit.app.store.references([record]).get(record.id)
    return os.path.relpath(path, _root(visit)) if path and _root(visit) else path


def _root(visit: Visit) -> str | None:
    return visit.app.where.place.root if visit.app and visit.app.where.place else None
