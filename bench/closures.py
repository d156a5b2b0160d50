"""Which facts a new fact closes: rightly, wrongly, and where memory asks instead of deciding.

Run: `python bench/closures.py [--set dev|held] [--misses]`.  Each pair of `bench/sets/closures` goes through three
doors, the older fact forty days before the newer one: *by hand* (both added by the user), *learned* (both extracted
from sessions) and *consolidated* (both imported as they are, then one consolidation by rules).  A pair is *closed* if
the older record was superseded, and *asked* if both are live and the pair waits in the review queue.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from measure import cpu_ms

from commonplace.app import open_store
from commonplace.config.learning import Learning
from commonplace.engine.memory import Memory
from commonplace.engine.review import list_waiting
from commonplace.learning.consolidate import consolidate_memory
from commonplace.learning.extract_gate import decide
from commonplace.learning.proposals import Proposal
from commonplace.learning.workspace import Workspace
from commonplace.model.binding import Binding
from commonplace.model.changes import Put
from commonplace.model.errors import ProviderError
from commonplace.model.ids import new_id
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import CATEGORIES, CEILING, Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.text.words import terms

SETS = Path(__file__).resolve().parent / "sets" / "closures"
SCOPE = Scope.of(("project", "bench"))
OLD, NEW, NOW = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=days) for days in (0, 40, 60))
DOORS = ("by hand", "learned", "consolidated")


def binding(channel: Channel) -> Binding:
    """Who writes."""
    return Binding(channel=channel, writes=dict.fromkeys(Kind, SCOPE), reads=(SCOPE,), transcripts=frozenset({SCOPE}))


def no_model(_role: str) -> None:
    """Nothing here asks a model."""
    raise ProviderError("there is no model")


class Bench:
    """One store for one pair."""

    def __init__(self, folder: str) -> None:
        self.now = NOW
        self.store = open_store(":memory:")
        self.place = Workspace(
            store=self.store, scope=SCOPE, folder=folder, bind=binding, clock=self.clock, model=no_model,
            learning=Learning(enabled=True, mode="rules"), prompt=lambda name: name, secret=lambda: b"k" * 32,
        )  # fmt: skip

    def clock(self) -> datetime:
        """A clock that moves by a second whenever it is read."""
        self.now += timedelta(seconds=1)
        return self.now

    def by_hand(self, pair: dict) -> None:
        """The user adds both."""
        memory = Memory(self.store, binding(Channel.USER), clock=self.clock)
        for text, at in ((pair["old"], OLD), (pair["new"], NEW)):
            memory.remember(text, category=pair["category"], occurred_at=at)

    def learned(self, pair: dict) -> None:
        """Two sessions state them."""
        for number, (text, at) in enumerate(((pair["old"], OLD), (pair["new"], NEW))):
            proposal = Proposal(
                content=text, category=pair["category"], scope="project", quote=text, refs=("1",), subject=None,
                occurred_at=at, trust=CEILING[Channel.EXTRACTION],
            )  # fmt: skip
            self.place.writer.apply(decide(self.place, f"s{number}", [proposal]).changes)

    def consolidated(self, pair: dict) -> None:
        """They come without a look at each other, and are consolidated."""
        for text, at in ((pair["old"], OLD), (pair["new"], NEW)):
            now = self.clock()
            record = Record(
                id=new_id(now), scope=SCOPE, kind=CATEGORIES[pair["category"]], category=pair["category"],
                content=text, source=Source(channel=Channel.USER), trust=Trust.USER, created_at=now, updated_at=now,
                occurred_at=at,
            )  # fmt: skip
            self.store.apply([Put(record=record, terms=tuple(terms(text)))])
        consolidate_memory(self.place, force=True)

    def outcome(self, pair: dict) -> str:
        """What became of the older one."""
        where = Filter(scopes=frozenset({SCOPE}), at=self.now, states=ANY_STATE)
        old = next(one for one in self.store.find(where, order=Order.ID, limit=10) if one.content == pair["old"])
        if old.superseded_by:
            return "closed"
        memory = Memory(self.store, binding(Channel.USER), clock=self.clock)
        named = {one.target.id for one in list_waiting(memory) if one.target is not None}
        return "asked" if old.id in named else "left"


def run(pairs: list[dict], door: str, *, misses: bool) -> Counter:
    """Take every pair through a door."""
    count: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs:
            bench = Bench(folder)
            getattr(bench, door.replace(" ", "_"))(pair)
            found = bench.outcome(pair)
            bench.store.close()
            count[pair["label"], found] += 1
            wanted = found == "closed" if pair["label"] == "replaces" else found == "left"
            if misses and not wanted:
                print(f"  {pair['label']:<8} {found:<6} {pair['old']}  ->  {pair['new']}")
    return count


def main() -> None:
    """Print the figures of a set."""
    options = argparse.ArgumentParser()
    options.add_argument("--set", default="dev", choices=("dev", "held"))
    options.add_argument("--misses", action="store_true", help="print each pair that was not decided as labelled")
    given = options.parse_args()
    if given.misses and given.set == "held":
        options.error("the held pairs are for the final figure and are not looked at")
    pairs = [json.loads(line) for line in (SETS / f"{given.set}.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = Counter(pair["label"] for pair in pairs)
    others = labels["both"] + labels["same"]
    print(f"{given.set}: {len(pairs)} pairs, {labels['replaces']} replace, {others} do not")
    for door in DOORS:
        count: Counter = Counter()
        spent = cpu_ms(lambda door=door, count=count: count.update(run(pairs, door, misses=given.misses)))
        right, asked = count["replaces", "closed"], count["replaces", "asked"]
        wrong = count["both", "closed"] + count["same", "closed"]
        idle = count["both", "asked"] + count["same", "asked"]
        print(
            f"{door:<13} closed {right:>3} ({right / labels['replaces']:.1%}),"
            f" closed or asked {right + asked:>3} ({(right + asked) / labels['replaces']:.1%});"
            f" wrongly closed {wrong} ({wrong / others:.1%}), asked for nothing {idle} ({idle / others:.1%});"
            f" {spent / len(pairs):.1f} ms CPU a pair"
        )


if __name__ == "__main__":
    main()
