"""Recall on young stores: ten short facts, questions in other words, and questions without an answer.

Run: `python bench/young.py [--set dev|own|held] [--misses]`.  Each store of `bench/sets/young` is filled and asked.
*hit@1* and *hit@3* are the share of the questions whose fact is first, or among the first three; *silent* the share
that is told nothing; *false answers* the share of the questions without an answer that get one.  Plain cosine, which
answers always, is measured beside it, and how many answers are not in the order of their printed score.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import commonplace
from commonplace.engine.memory import Memory
from commonplace.model.queries import Filter

SETS = Path(__file__).resolve().parent / "sets" / "young"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIRST, BEST = 1, 3


def filled(facts: dict[str, str]) -> tuple[Memory, dict[str, str]]:
    """A store with these facts, and their names by the record's id."""
    now = NOW

    def clock() -> datetime:
        nonlocal now
        now += timedelta(minutes=1)
        return now

    memory = commonplace.open(":memory:", clock=clock)
    return memory, {memory.remember(text).record.id: name for name, text in facts.items()}


def nearest(memory: Memory, question: str) -> list[str]:
    """The facts by plain cosine."""
    [vector] = memory.embedder.embed([question], query=True)
    where = Filter(scopes=frozenset(memory.binding.reads), at=memory.clock())
    return [match.id for match in memory.store.nearest(where, vector, limit=BEST)]


def asked(store: dict, *, misses: bool) -> Counter:
    """Ask a store every question."""
    memory, names = filled(store["facts"])
    count: Counter = Counter()
    for row in store["questions"]:
        found = memory.recall(row["question"], count=False)
        ranked = [names[hit.id] for hit in found.hits]
        scores = [round(hit.score, 2) for hit in found.hits]
        count += Counter(unordered=scores != sorted(scores, reverse=True), shown=len(ranked))
        if row["answer"] is None:
            count += Counter(unanswerable=1, answered_falsely=bool(ranked))
            wrong = bool(ranked)
        else:
            plain = [names[id_] for id_ in nearest(memory, row["question"])]
            count += Counter(
                answerable=1, first=row["answer"] in ranked[:FIRST], best=row["answer"] in ranked[:BEST],
                silent=not ranked, plain_first=row["answer"] in plain[:FIRST], plain_best=row["answer"] in plain,
            )  # fmt: skip
            wrong = row["answer"] not in ranked[:FIRST]
        if misses and wrong:
            top = [f"{store['facts'][name]} ({score})" for name, score in zip(ranked[:BEST], scores, strict=False)]
            wanted = store["facts"].get(row["answer"], "nothing")
            print(f"  {row['question']}  wants: {wanted}  gets: {top}")
    memory.close()
    return count


def main() -> None:
    """Print the figures of a set."""
    options = argparse.ArgumentParser()
    options.add_argument("--set", default="dev", choices=("dev", "own", "held"))
    options.add_argument("--misses", action="store_true", help="print each question that was not answered as labelled")
    given = options.parse_args()
    if given.misses and given.set == "held":
        options.error("the held stores are for the final figure and are not looked at")
    stores = [json.loads(line) for line in (SETS / f"{given.set}.jsonl").read_text(encoding="utf-8").splitlines()]
    count = sum((asked(store, misses=given.misses) for store in stores), Counter())
    wanted, others = count["answerable"], count["unanswerable"]
    print(f"{given.set}: {len(stores)} stores, {wanted} questions with an answer, {others} without")
    print(
        f"recall        hit@1 {count['first'] / wanted:.1%}, hit@3 {count['best'] / wanted:.1%},"
        f" silent {count['silent'] / wanted:.1%}; false answers {count['answered_falsely'] / others:.1%};"
        f" not in the order of the score: {count['unordered']}; {count['shown'] / (wanted + others):.1f} shown"
    )
    print(f"plain cosine  hit@1 {count['plain_first'] / wanted:.1%}, hit@3 {count['plain_best'] / wanted:.1%}")


if __name__ == "__main__":
    main()
