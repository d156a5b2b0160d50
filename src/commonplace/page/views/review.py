"""Review: what waits for a person, one at a time, with what was said beside it; a verdict opens the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.records import Record, Trust
from commonplace.page.differences import word_diff
from commonplace.page.visits import Answer, Go, Page, Visit, url

LOOKED_AT = 200  # of what waits, for the counts of the tabs
SHOWN = 12  # of what comes next
UNDOABLE = ("approve", "hold", "reject", "edit", "keep")
#: The tabs: their name in the address, what people read, and which waiting records are under it.
TABS = (
    ("all", "All"), ("new", "New"), ("outside", "From outside"), ("changes", "Proposed changes"),
    ("contradictions", "Contradictions"),
)  # fmt: skip


def show(visit: Visit) -> Answer:
    """Show the next item that waits, or the one that is named."""
    found = visit.ask("review", limit=LOOKED_AT)
    tab = visit.choice("tab", [name for name, _ in TABS]) or "all"
    waiting = [one for one in found.waiting if tab == "all" or tab_of(one) == tab]
    wanted = visit.get("id")
    current = next((one for one in waiting if wanted and one.record.id.startswith(wanted)), None)
    current = current or _next_after(waiting, visit.get("after"))
    context: dict[str, Any] = {
        "tab": tab, "tabs": _tabs(found.waiting, more=found.more), "current": current,
        "done": visit.number("done", 0, most=9999),
        "left": len(waiting), "more": found.more, "undo": _undo(visit), "editing": visit.get("edit") == "yes",
        "queue": [one for one in waiting if one is not current][:SHOWN], "merging": None, "card": None,
    }  # fmt: skip
    if current is not None:
        context |= {"card": _card(visit, current), "merging": _merging(visit, current)}
    return Page(template="review.html", context=context)


def decide(visit: Visit) -> Answer:
    """Carry out a verdict, and open the next item."""
    form = visit.form
    verdict, record = form.get("verdict", ""), visit.ask("get", form.get("id", "")).record
    if verdict == "undo":
        return _take_back(visit, record)
    if verdict in ("edit", "merge") and not form.get("text", "").strip():
        return Go(to=_address(visit, id=record.id, edit="yes" if verdict == "edit" else None, merge=form.get("other")))
    before = record.version
    _carry_out(visit, verdict, record)
    undo = f"{verdict}:{before}:{record.id}" if verdict in UNDOABLE and form.get("plain") == "yes" else None
    done = int(form["done"]) + 1 if form.get("done", "").isdecimal() and len(form["done"]) < 5 else 1  # noqa: PLR2004 - a count
    return Go(to=_address(visit, undo=undo, done=done, after=record.id if verdict == "hold" else None))


def _carry_out(visit: Visit, verdict: str, record: Record) -> None:
    form, text = visit.form, visit.form.get("text", "").strip()
    if verdict == "approve":
        visit.ask("approve", record.id)
    elif verdict == "keep":
        visit.ask("approve", record.id, alone=True)
    elif verdict == "edit":
        visit.ask("update", record.id, content=text)
        visit.ask("approve", record.id)
    elif verdict == "hold":
        visit.ask("update", record.id, held=True)
    elif verdict == "reject":
        visit.ask("reject", record.id)
    elif verdict == "replace":
        visit.ask("replace", form.get("other", ""), by=record.id)
    elif verdict == "merge":
        visit.ask("merge", record.id, into=form.get("other", ""), content=text)
    else:
        raise InvalidInput("that verdict is not known")


def _take_back(visit: Visit, record: Record) -> Answer:
    """Restore a record as it was before the last verdict."""
    version = visit.form.get("version", "")
    if record.archived_at is not None:
        visit.ask("restore", record.id)
    elif version.isdecimal():
        visit.ask("restore", record.id, version=int(version))
    return Go(to=_address(visit, id=record.id))


def _address(visit: Visit, **parameters: Any) -> str:
    tab = visit.form.get("tab", "")
    return url("review", tab=tab if tab in dict(TABS) and tab != "all" else None, **parameters)


def tab_of(one: Any) -> str:
    """Return the tab under which something that waits is."""
    if one.action == "supersede":
        return "contradictions"
    if one.action != "approve":
        return "changes"
    return "outside" if one.record.trust is Trust.EXTERNAL else "new"


def _tabs(waiting: Sequence[Any], *, more: bool) -> list[tuple[str, str, str]]:
    counts = {name: sum(tab_of(one) == name for one in waiting) for name, _ in TABS} | {"all": len(waiting)}
    return [
        (name, text, f"{counts[name]}{'+' if more else ''}") for name, text in TABS if counts[name] or name == "all"
    ]


def _next_after(waiting: Sequence[Any], after: str) -> Any:
    """Return the item that comes after one; the first, if that is the last or is not there."""
    place = next((place for place, one in enumerate(waiting, start=1) if one.record.id == after), 0)
    return waiting[place % len(waiting)] if waiting else None


def _undo(visit: Visit) -> dict[str, Any] | None:
    """Return what the last verdict can be taken back from."""
    verdict, _, rest = visit.get("undo").partition(":")
    version, _, identity = rest.partition(":")
    if verdict not in UNDOABLE or not version.isdecimal():
        return None
    named = {
        "approve": "Accepted",
        "hold": "Held",
        "reject": "Rejected",
        "edit": "Accepted in your words",
        "keep": "Kept",
    }
    return {"verb": named[verdict], "version": version, "record": visit.ask("get", identity).record}


def _card(visit: Visit, one: Any) -> dict[str, Any]:
    """Return what a person should see to decide: the words that it rests on, and what it would change or repeats."""
    record: Record = one.record
    target: Record | None = one.target
    pieces = word_diff(target.content, record.content) if target and one.action in ("update", "supersede") else None
    alike = visit.ask("similar", record.id, limit=2).records if one.action == "approve" else ()
    similar = [{"record": other, "pieces": word_diff(other.content, record.content)} for other in alike]
    origin = visit.ask("why", record.id).chain[0]
    return {"kind": tab_of(one), "pieces": pieces, "similar": similar, "origin": origin}


def _merging(visit: Visit, one: Any) -> dict[str, Any] | None:
    """Return the form of a merge: the other record, and the words of both to begin with."""
    if not visit.get("merge"):
        return None
    other: Record = visit.ask("get", visit.get("merge")).record
    return {"other": other, "text": f"{other.content}\n\n{one.record.content}"}
