"""How well sessions are read without a model: precision, recall, by kind and scope, on sessions labelled by hand.

Run: `python bench/learning.py [--held] [--misses]`.  The labels and what counts as found are described in
`bench/sets/README.md`.  A record is right if it is one of the labelled facts of its session; a trap is kept if a record
that is no fact overlaps it.  `held` is for the final figure and never printed with its misses.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from rules import overlaps, share

from commonplace.engine.transcripts import Turn
from commonplace.learning.proposals import Proposal
from commonplace.learning.rules import extract
from commonplace.learning.worth import worthless_reason

SETS = Path(__file__).resolve().parent / "sets" / "learning"
KINDS = ("decisions", "procedures", "principles", "incidents", "preferences", "facts")
WHOLE_WORD = 2  # letters: a shorter mark has to be a whole word


def turns_of(session: dict[str, Any]) -> list[Turn]:
    """The turns of a labelled session; the reference of a turn is its number."""
    day = datetime.fromisoformat(session["day"]).replace(tzinfo=UTC)
    return [
        Turn(ref=str(number), speaker=turn["role"], text=turn["text"], occurred_at=day)
        for number, turn in enumerate(session["turns"])
    ]


def has_mark(content: str, mark: str) -> bool:
    """Whether a text has a mark, from the start of a word."""
    before = r"(?<![^\W_])" if mark[0].isalnum() else ""
    after = ""
    if mark[-1].isdigit():
        after = r"(?!\d)"
    elif len(mark) <= WHOLE_WORD and mark.isalpha():
        after = r"(?!\w)"
    return re.search(before + re.escape(mark) + after, content.lower()) is not None


def is_fact(content: str, fact: dict[str, Any]) -> bool:
    """Whether a record says what a labelled fact says."""
    return all(any(has_mark(content, mark) for mark in marks) for marks in fact["must"])


def is_trapped(proposal: Proposal, session: dict[str, Any], trap: dict[str, Any]) -> bool:
    """Whether a record rests on a clause from which nothing may be kept."""
    at = int(proposal.refs[0])
    return at == trap["turn"] and overlaps(proposal.quote, trap["text"], session["turns"][at]["text"])


def score(name: str) -> tuple[Counter[Any], list[str]]:
    """Count what was kept and what was found in a set, and name what went wrong."""
    count: Counter[Any] = Counter()
    wrong: list[str] = []
    for session in json.loads((SETS / f"{name}.json").read_text(encoding="utf-8")):
        kept = [one for one in extract(turns_of(session)) if worthless_reason(one.content) is None]
        found: set[int] = set()
        for one in kept:
            hits = [number for number, fact in enumerate(session["facts"]) if is_fact(one.content, fact)]
            count.update({"kept": 1, "right": bool(hits)})
            count.update({("kept", one.category): 1, ("right", one.category): bool(hits)})
            found |= set(hits)
            if not hits:
                trapped = any(is_trapped(one, session, trap) for trap in session["traps"])
                count["trapped"] += trapped
                wrong.append(f"wrong   {session['id']}: [{one.category}{', TRAP' if trapped else ''}] {one.content!r}")
        for fact in session["facts"]:
            best = [one for one in kept if is_fact(one.content, fact)]
            kind = any(one.category == fact["category"] for one in best)
            scope = any(one.scope == fact["scope"] for one in best)
            count.update({"facts": 1, "found": bool(best)})
            count.update({("facts", fact["category"]): 1, ("found", fact["category"]): bool(best)})
            count.update({"kind": kind, "scope": scope})
            if fact["remember"]:
                count.update({"asked": 1, "asked found": bool(best)})
            if fact["scope"] == "assistant":
                count.update({"own": 1, "own found": bool(best), "own placed": scope})
            if not best:
                wrong.append(f"missed  {session['id']}#{fact['turn']}: [{fact['category']}] {fact['text']}")
        count.update({"sessions": 1, "turns": len(session["turns"]), "traps": len(session["traps"])})
    return count, wrong


def report(name: str, count: Counter[Any]) -> None:
    """Print the figures of one set."""
    labelled = f"{count['facts']} facts, {count['traps']} traps"
    print(f"{name}: {count['sessions']} sessions, {count['turns']} turns, {labelled}")
    print(f"  precision                          {share(count['right'], count['kept'])}")
    print(f"  recall                             {share(count['found'], count['facts'])}")
    print(f"  traps kept                         {share(count['trapped'], count['traps'])}")
    print(f"  asked to remember, kept            {share(count['asked found'], count['asked'])}")
    print(f"  kind right, of those found         {share(count['kind'], count['found'])}")
    print(f"  scope right, of those found        {share(count['scope'], count['found'])}")
    print(f"  the user's rules, in their memory  {share(count['own placed'], count['own found'])}")
    for kind in KINDS:
        print(
            f"    {kind:<12} precision {share(count['right', kind], count['kept', kind]):<16}"
            f"recall {share(count['found', kind], count['facts', kind])}"
        )


def main() -> None:
    """Print the figures of dev; with --held those of the set that is for the final figure."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--misses", action="store_true", help="name what went wrong in dev")
    asked.add_argument("--held", action="store_true", help="score the set that was kept for the final figure")
    given = asked.parse_args()
    count, wrong = score("held" if given.held else "dev")
    report("held" if given.held else "dev", count)
    if given.misses and not given.held:
        print("\n".join(f"    {line}" for line in wrong))


if __name__ == "__main__":
    main()
