"""Sessions: the list, one of them turn by turn with the records made of it, and its deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.page.visits import Answer, Page, Visit

LISTED = 20
TURNS = 100  # of a session on one page
FOLD_CHARS = 3000


def show(visit: Visit) -> Answer:
    """Show the sessions, and one of them."""
    words, before = visit.get("q") or None, visit.get("before") or None
    listed = visit.ask("sessions", words=words, before=before, limit=LISTED)
    context: dict[str, Any] = {"listed": listed, "words": words, "opened": None}
    if visit.path.get("id"):
        context |= _opened(visit, visit.path["id"])
    return Page(template="sessions.html", context=context, live=context["opened"] is None and not words)


def delete(visit: Visit) -> Answer:
    """Erase a session, and what was learned from it alone."""
    if visit.form.get("do") != "delete":
        raise InvalidInput("that action is not known")
    shown = visit.ask("session", visit.path["id"]).session
    keep = visit.form.get("derived") != "all"
    gone = visit.ask("delete_session", shown.id, confirm=True, keep_approved=keep)
    return Page(template="session_deleted.html", context={"gone": gone, "shown": shown})


def _opened(visit: Visit, id: str) -> dict[str, Any]:
    found = visit.ask("session", id)
    made = visit.ask("made_from", found.session.id).records
    begin = _page_of(found.turns, visit)
    by_turn: dict[str, list[Any]] = {}
    for one in made:
        for ref in one.turns or ("",):
            by_turn.setdefault(ref, []).append(one.record)
    turns = [
        {"turn": turn, "made": by_turn.get(turn.ref, ()), "pieces": _pieces(turn.text, by_turn.get(turn.ref, ())),
         "rest": turn.text[FOLD_CHARS:]}
        for turn in found.turns[begin : begin + TURNS]
    ]  # fmt: skip
    return {
        "opened": found.session, "turns": turns, "begin": begin, "all_turns": len(found.turns), "page": TURNS,
        "made": made, "accepted": [one for one in made if one.record.has_authority],
    }  # fmt: skip


def _page_of(turns: Sequence[Any], visit: Visit) -> int:
    """Return the turn with which the page begins: the one that holds what was asked for."""
    at = visit.get("at")
    place = next((place for place, turn in enumerate(turns) if turn.ref == at), visit.number("from", 0, most=10**6))
    return place // TURNS * TURNS


def _pieces(text: str, made: Sequence[Any]) -> list[Mapping[str, str]]:
    """Return the beginning of a turn, with the words marked on which records rest."""
    shown = text[:FOLD_CHARS]
    quotes = [quote for record in made if isinstance(quote := record.metadata.get("quote"), str) and quote in shown]
    pieces, left = [], shown
    for quote in sorted(set(quotes), key=shown.index):
        before, found, after = left.partition(quote)
        if found:
            pieces += [{"kind": "same", "text": before}, {"kind": "src", "text": quote}]
            left = after
    return [*pieces, {"kind": "same", "text": left}]
