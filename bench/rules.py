"""How well the rules read sessions: precision, recall, by category, on sets labelled by hand, and their speed.

Run: `python bench/rules.py [--misses SET] [--chat longmemeval_oracle.json]`.  How the sets were made, and which of them
the rules were written from, is in `bench/transcripts/README.md`.  A proposal is right if its quote overlaps the
quote of a labelled fact of the same turn and its category is one that the label allows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from measure import cpu_ms

from commonplace.engine.transcripts import Turn
from commonplace.learning.proposals import Proposal
from commonplace.learning.rules import extract

HERE = Path(__file__).resolve().parent / "transcripts"
SETS = ("dev", "test", "fresh")
CATEGORIES = ("decisions", "procedures", "principles", "incidents", "preferences")


def session(path: Path) -> list[Turn]:
    """A transcript, one message a line; a turn's reference is its number."""
    messages = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Turn(
            ref=str(number), speaker=message["role"], text=message["content"],
            occurred_at=datetime.fromisoformat(message["time"]),
        )
        for number, message in enumerate(messages, start=1)
    ]  # fmt: skip


def overlaps(quote: str, gold: str, text: str) -> bool:
    """Tell whether two pieces of one text share any of it."""
    start, other = text.find(quote), text.find(gold)
    return start < other + len(gold) and other < start + len(quote)


def matched(proposal: Proposal, gold: list[dict], turns: list[Turn]) -> dict | None:
    """The labelled fact that a proposal found; the one of its category if it lies across several."""
    text = {turn.ref: turn.text for turn in turns}[proposal.refs[0]]
    near = [one for one in gold if one["turn"] == proposal.refs[0] and overlaps(proposal.quote, one["quote"], text)]
    near.sort(key=lambda one: proposal.category not in one["categories"])
    return near[0] if near else None


def score(name: str) -> tuple[Counter, list[str]]:
    """Count what was proposed and found in a set, and name what went wrong."""
    labels = json.loads((HERE / f"{name}.labels.json").read_text(encoding="utf-8"))
    count: Counter = Counter()
    wrong: list[str] = []
    for title, gold in labels.items():
        turns = session(HERE / name / f"{title}.jsonl")
        found = []
        for proposal in extract(turns):
            label = matched(proposal, gold, turns)
            later = proposal.asked and proposal.category == "facts"  # a category that the labels do not know
            right = label is not None and (later or proposal.category in label["categories"])
            count.update({"proposed": 1, "near": label is not None, "right": right})
            count.update({("proposed", proposal.category): 1, ("right", proposal.category): right})
            if right:
                found.append(id(label))
                count["scope"] += proposal.scope == label["scope"]
            else:
                said = f"{proposal.category}, labelled {label['categories']}" if label else proposal.category
                wrong.append(f"wrong   {title}: [{said}] {proposal.quote!r}")
        for one in gold:
            count.update({("gold", one["categories"][0]): 1, ("found", one["categories"][0]): id(one) in found})
            count.update({"gold": 1, "found": id(one) in found})
            if id(one) not in found:
                wrong.append(f"missed  {title}: [{one['categories'][0]}] {one['quote']!r}")
        count.update({"sessions": 1, "turns": len(turns), "empty": not gold})
    return count, wrong


def share(part: int, whole: int) -> str:
    """A share with what it is a share of."""
    return f"{part / whole:.2f} ({part}/{whole})" if whole else "- (0/0)"


def report(name: str, count: Counter) -> None:
    """Print the figures of one set."""
    print(f"{name}: {count['sessions']} sessions ({count['empty']} without a fact), {count['turns']} turns")
    print(f"  precision                       {share(count['right'], count['proposed'])}")
    print(f"  precision, whatever category    {share(count['near'], count['proposed'])}")
    print(f"  recall                          {share(count['found'], count['gold'])}")
    print(f"  scope right, of the right ones  {share(count['scope'], count['right'])}")
    print(f"  proposals per 100 turns         {100 * count['proposed'] / count['turns']:.1f}")
    for category in CATEGORIES:
        precision = share(count["right", category], count["proposed", category])
        print(
            f"    {category:<12} precision {precision:<14} "
            f"recall {share(count['found', category], count['gold', category])}"
        )


def chat(path: Path) -> None:
    """Print how much is proposed from other people's small talk, where hardly anything concerns a project."""
    sessions = {
        title: messages
        for asked in json.loads(path.read_text(encoding="utf-8"))
        for title, messages in zip(asked["haystack_session_ids"], asked["haystack_sessions"], strict=True)
    }
    turns = proposed = 0
    for title, messages in sorted(sessions.items()):
        said = [Turn(ref=str(n), speaker=m["role"], text=m["content"]) for n, m in enumerate(messages, start=1)]
        turns += len(said)
        for proposal in extract(said):
            proposed += 1
            print(f"    {title}: [{proposal.category}, {proposal.scope}] {proposal.quote[:120]!r}")
    print(
        f"chat: {proposed} proposals in {turns} turns of {len(sessions)} sessions: "
        f"{100 * proposed / turns:.2f} per 100 turns"
    )


def speed() -> None:
    """Print the time a megabyte takes, beside the same megabyte split at its blanks."""
    turns = [turn for name in SETS for path in sorted((HERE / name).glob("*.jsonl")) for turn in session(path)]
    size = sum(len(turn.text.encode()) for turn in turns)
    many = turns * (1_000_000 // size + 1)
    scale = 1_000_000 / sum(len(turn.text.encode()) for turn in many)
    sessions = [many[at : at + 20] for at in range(0, len(many), 20)]
    read = min(cpu_ms(lambda: [extract(one) for one in sessions]) for _ in range(3)) * scale
    split = min(cpu_ms(lambda: [turn.text.split() for turn in many]) for _ in range(3)) * scale
    print(
        f"speed: {read:.0f} ms CPU a MB of short turns, {read / split:.0f} times "
        f"a bare str.split of them ({split:.1f} ms)"
    )
    big = [Turn(ref="1", speaker="user", text="we use pnpm, always. what if? " * 34_000)]
    code = [
        Turn(ref="1", speaker="user", text="we use pnpm here\n```\n" + "x = 1\n" * 170_000 + "```\nnever use npm in CI")
    ]
    print(
        f"speed: one turn of a MB, prose {cpu_ms(lambda: extract(big)):.0f} ms, "
        f"code {cpu_ms(lambda: extract(code)):.0f} ms"
    )


def main() -> None:
    """Print every figure; with --misses also what went wrong in a set."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--misses", choices=SETS)
    asked.add_argument("--only", choices=SETS)
    asked.add_argument("--chat", type=Path)
    given = asked.parse_args()
    for name in [given.only] if given.only else SETS:
        count, wrong = score(name)
        report(name, count)
        if name == given.misses:
            print("\n".join(f"    {line}" for line in wrong))
    speed()
    if given.chat:
        chat(given.chat)


if __name__ == "__main__":
    main()
