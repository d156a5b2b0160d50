"""Search: one question, filters, the best hits with the parts of their scores; without a question the newest."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.records import CATEGORIES, Trust
from commonplace.model.values import Value
from commonplace.page.differences import marked
from commonplace.page.rendering import elapsed_ms
from commonplace.page.visits import Answer, Go, Page, Visit, end_of_day, url

PAGE = 10
MOST = 100
STATES = ("live", "held", "archived", "expired", "all")
TRUSTS = tuple(trust.name.lower() for trust in reversed(Trust))
SCOPES = ("project", "assistant")
SUGGESTED_TAGS = 30
#: The families of score parts: what people call them, their class, the parts and what those are called.
FAMILIES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("Words", "p-words", {
        "every word": "has every word", "reach": "words covered", "words": "words in the text", "who": "names them",
    }),
    ("Meaning", "p-meaning", {"context": "with the turn before", "meaning": "of the text itself"}),
    ("Session, time", "p-place", {
        "session": "same session", "when": "from then", "day": "on that day", "mentioned": "mentions that time",
    }),
    ("Raised", "p-boost", {
        "record": "is a record", "recent": "recent", "length": "length", "dates": "names a time", "pinned": "pinned",
        "used": "used often",
    }),
    ("Lowered", "p-minus", {
        "from outside": "from outside", "asks": "is a question", "assistant": "said by the assistant",
        "above one": "above one",
    }),
)  # fmt: skip


class Slice(Value):
    """One part of a score in the stacked bar, in percent."""

    css: str
    label: str
    share: float
    begin: float
    width: float


class Family(Value):
    """Parts of a score that mean the same sort of thing."""

    name: str
    css: str
    total: float
    parts: tuple[tuple[str, float], ...]


class Why(Value):
    """How a score is made up."""

    slices: tuple[Slice, ...]
    families: tuple[Family, ...]


def show(visit: Visit) -> Answer:
    """Show what matches a question."""
    began = time.perf_counter()
    asked = _asked(visit)
    query, limit = visit.get("q"), visit.number("limit", PAGE, most=MOST)
    context: dict[str, Any] = {"asked": asked, "query": query, "limit": limit, "states": STATES, "trusts": TRUSTS}
    context |= {"scopes": SCOPES, "filtered": any(asked.values()), "hits": (), "found": None, "notes": ()}
    context |= {"command": _command(query, asked), "as_of": None}
    if query or asked["as_of"]:
        context |= _search(visit, query, asked, limit)
    else:
        context["found"] = visit.ask(
            "list", categories=_some(asked["category"]), tags=_some(asked["tag"]), scope=asked["scope"],
            trust=asked["trust"], state=asked["state"], before=visit.get("before") or None, limit=PAGE,
        )  # fmt: skip
    if _is_blank(visit, context):
        return Page(template="blank.html", context=context | {"agents": _agents(visit)})
    context |= {"tags": _tags(context), "took_ms": elapsed_ms(began)}
    return Page(template="search.html", context=context)


def add(visit: Visit) -> Answer:
    """Save the first record, or another one."""
    text = visit.form.get("text", "").strip()
    if not text:
        raise InvalidInput("the record needs some words; go back and write them")
    saved = visit.ask("remember", text, category=visit.form.get("category") or None)
    return Go(to=url(f"records/{saved.record.id}"))


def _asked(visit: Visit) -> dict[str, str | None]:
    """Return the filters; None where nothing is chosen."""
    scopes = SCOPES if visit.app else ()
    return {
        "scope": visit.choice("scope", scopes), "category": visit.get("category") or None,
        "tag": visit.get("tag").removeprefix("#") or None, "trust": visit.choice("trust", TRUSTS),
        "state": visit.choice("state", STATES), "as_of": visit.get("as_of") or None,
    }  # fmt: skip


def _search(visit: Visit, query: str, asked: Mapping[str, str | None], limit: int) -> dict[str, Any]:
    as_of = end_of_day(asked["as_of"])
    found = visit.ask(
        "recall", query, categories=_some(asked["category"]), tags=_some(asked["tag"]), scope=asked["scope"],
        trust=asked["trust"], state=asked["state"], as_of=as_of, limit=limit, explain=True, count=False,
    )  # fmt: skip
    now = [_replacement(visit, hit.record) for hit in found.hits] if as_of else [None] * len(found.hits)
    shown = [
        {"hit": hit, "pieces": marked((hit.record or hit.chunk).content if hit.record else hit.chunk.text, query),
         "why": explain(hit.parts), "now": later}
        for hit, later in zip(found.hits, now, strict=True)
    ]  # fmt: skip
    return {"hits": shown, "notes": found.notes, "as_of": as_of}


def _replacement(visit: Visit, record: Any) -> Any:
    """Return the record that has replaced one since."""
    if record is None:
        return None
    later = visit.ask("get", record.id).record.superseded_by
    return visit.ask("get", later).record if later else None


def explain(parts: Mapping[str, float]) -> Why:
    """Return a score's parts as a bar and as families with their sums; unknown parts raise or lower."""
    families = [
        Family(name=name, css=css, parts=inside, total=sum(share for _, share in inside))
        for name, css, names in FAMILIES
        if (inside := tuple((label, parts[part]) for part, label in names.items() if parts.get(part)))
    ]
    slices, reached = [], 0.0
    for family in families:
        for place, (label, share) in enumerate(family.parts):
            css = f"{family.css}-2" if place % 2 and family.css != "p-minus" else family.css
            begin = reached if share > 0 else reached + share
            slices.append(
                Slice(css=css, label=f"{family.name}: {label}", share=share, begin=100 * begin, width=100 * abs(share))
            )
            reached += share
    return Why(slices=tuple(slices), families=tuple(families))


def _is_blank(visit: Visit, context: Mapping[str, Any]) -> bool:
    """Whether there is nothing to search: no record in any state, and no session."""
    found = context["found"]
    if context["query"] or context["filtered"] or visit.get("before") or found is None or found.records:
        return False
    return not visit.ask("list", state="all", limit=1).records


def _agents(visit: Visit) -> Sequence[str]:
    """Return the coding agents whose folders are on this machine."""
    home = os.path.expanduser("~")
    known = (("Claude Code", "claude-code", ".claude"), ("Codex", "codex", ".codex"), ("Gemini", "gemini", ".gemini"))
    there = [name for _, name, folder in known if visit.app and os.path.isdir(os.path.join(home, folder))]
    return there or ["claude-code"]


def _tags(context: Mapping[str, Any]) -> list[str]:
    """Return the tags of what is shown, as suggestions."""
    records = [one["hit"].record for one in context["hits"] if one["hit"].record]
    records += [one.record for one in context["found"].records] if context["found"] else []
    return sorted({tag for record in records for tag in record.tags})[:SUGGESTED_TAGS]


def _some(text: str | None) -> tuple[str, ...] | None:
    return (text,) if text else None


def _command(query: str, asked: Mapping[str, str | None]) -> str:
    """Return the command that answers the same."""
    from shlex import quote  # noqa: PLC0415 - here only

    options = {"--scope": "scope", "--category": "category", "--tag": "tag", "--trust": "trust", "--state": "state"}
    parts = [f" {name} {quote(str(asked[field]))}" for name, field in options.items() if asked[field]]
    if not query and not asked["as_of"]:
        return "commonplace record list" + "".join(parts)
    parts += [f" --as-of {quote(asked['as_of'])}"] if asked["as_of"] else []
    return f"commonplace recall {quote(query)}" + "".join(parts) + " --explain"


__all__ = ["CATEGORIES", "add", "explain", "show"]
