"""What briefs and the prompt hook show, on two memories of 150 records with 40 labelled tasks each.

Run: `python bench/brief.py [--memory pakket|warbler] [--budget TOKENS] [--misses]`.  The memories, the tasks and the
prompts are in `bench/sets`; the records are added in an order by chance, each with the day on which it was said.

Briefs: *standing* is the share of the preferences, principles and pinned records that are shown, with a task and at
session start; *needed* the share of the records that a task needs; *noise* the share of the lines that are neither;
*outdated* the share of the briefs with a record that another one replaces and that is not marked; *twice* how many
records are shown more than once.  A plain reference is measured beside them: all standing records, then fifteen by
BM25 and cosine.

The hook: at how many prompts of small talk and of other matters it says nothing, and how many of the records that a
task needs it shows when the task is typed as a prompt (at most five).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from measure import cpu_ms

from commonplace.app import App, open_app
from commonplace.engine.embedding import query_vector
from commonplace.hosts.hook import handle, parse_call
from commonplace.learning import session_brief
from commonplace.model.queries import Filter
from commonplace.text.words import plan

SETS = Path(__file__).resolve().parent / "sets"
MEMORIES = ("pakket", "warbler")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
NOW = FIRST + timedelta(days=300)
BUDGET, START_BUDGET = 2_000, 2_375  # of a brief with a task, and of what hosts show at a start
RECALLED = 15  # by the plain reference
MARKED = re.compile(r"\b(?:replaced by|outdated|older than)\b")


class Shelf:
    """A memory with its records in a project and in the user's own scope."""

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.rows = {row["id"]: row for row in read(f"brief/{name}.jsonl")}
        self.tasks = read(f"brief/{name}-tasks.jsonl")
        self.folder, self.home = os.path.join(folder, "project"), os.path.join(folder, "home")
        self.env = {"COMMONPLACE_HOME": self.home, "HOME": folder, "USER": "bench"}
        os.makedirs(os.path.join(self.folder, ".commonplace"))
        os.makedirs(self.home)
        Path(self.folder, ".commonplace", "config.yaml").write_text(f"project: bench.example/{name}\n")
        self._now = NOW - timedelta(days=1)
        self.records: dict[str, str] = {}  # by the short form of the record's id
        with self.open() as app:
            for id_ in random.Random(7).sample(list(self.rows), len(self.rows)):
                self._add(app, self.rows[id_])

    def open(self) -> App:
        """The project, opened."""
        return open_app(self.folder, env=self.env, clock=self._clock)

    def _clock(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def _add(self, app: App, row: dict) -> None:
        scope = app.where.assistant if row["scope"] == "assistant" else None
        at = FIRST + timedelta(days=row["day"])
        record = app.memory.remember(
            row["text"], category=row["category"], scope=scope, occurred_at=at, pinned=row.get("pinned", False)
        ).record
        self.records[record.short] = row["id"]

    @property
    def standing(self) -> set[str]:
        """What holds always."""
        rules = ("preferences", "principles")
        return {id_ for id_, row in self.rows.items() if row.get("pinned") or row["category"] in rules}

    def shown(self, text: str) -> list[tuple[str, str]]:
        """The records that a block shows, in order, each with its line."""
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        found = [(re.findall(r"memory://([0-9a-z]+)", line), line) for line in lines]
        return [(self.records[ids[-1]], line) for ids, line in found if ids and ids[-1] in self.records]


def read(path: str) -> list[dict]:
    """Return the rows of a set."""
    return [json.loads(line) for line in (SETS / path).read_text(encoding="utf-8").splitlines()]


@contextmanager
def shelf_of(name: str) -> Iterator[Shelf]:
    """One of the memories, in a folder for as long as it is used."""
    with tempfile.TemporaryDirectory() as folder:
        yield Shelf(name, folder)


def count_brief(shelf: Shelf, needed: set[str], lines: list[tuple[str, str]]) -> Counter:
    """Return what one block comes to."""
    ids = [id_ for id_, _ in lines]
    old = [id_ for id_, line in lines if "replaced_by" in shelf.rows[id_] and not MARKED.search(line)]
    return Counter(
        briefs=1, standing=len(shelf.standing & set(ids)), all_standing=len(shelf.standing),
        needed=len(needed & set(ids)), all_needed=len(needed), lines=len(ids),
        noise=sum(id_ not in needed | shelf.standing for id_ in ids), outdated=bool(old),
        twice=len(ids) - len(set(ids)),
    )  # fmt: skip


def briefs(shelf: Shelf, budget: int, *, misses: bool) -> Counter:
    """Ask for a brief for every task."""
    count: Counter = Counter()
    with shelf.open() as app:
        for task in shelf.tasks:
            block = session_brief(app, task["task"], budget=budget)
            lines = shelf.shown(block.text)
            count += count_brief(shelf, set(task["needed"]), lines) + Counter(tokens=block.guidance.tokens)
            if misses:
                print_misses(shelf, task, lines)
        if (
            session_brief(app, shelf.tasks[0]["task"], budget=budget).text
            != session_brief(app, shelf.tasks[0]["task"], budget=budget).text
        ):
            count["changed"] += 1
    return count


def print_misses(shelf: Shelf, task: dict, lines: list[tuple[str, str]]) -> None:
    """Print what a task needs and was not shown, and what was shown that is outdated."""
    ids = [id_ for id_, _ in lines]
    print(f"  {task['task']}  ({sum(id_ not in shelf.standing for id_ in ids)} notes)")
    for id_ in task["needed"]:
        if id_ not in ids:
            print(f"    missed {id_}: {shelf.rows[id_]['text']}")
    for id_, line in lines:
        if "replaced_by" in shelf.rows[id_] and not MARKED.search(line):
            print(f"    outdated {id_}: {line}")


def start(shelf: Shelf) -> Counter:
    """Ask for the brief of a session start, which has no task."""
    with shelf.open() as app:
        return count_brief(shelf, set(), shelf.shown(session_brief(app, "", budget=START_BUDGET).text))


def reference(shelf: Shelf) -> Counter:
    """Count all standing records and then fifteen by BM25 and cosine, half and half."""
    count: Counter = Counter()
    with shelf.open() as app:
        where = Filter(scopes=frozenset(app.binding.reads), at=NOW)
        for task in shelf.tasks:
            vector, _ = query_vector(app.store, app.embedder, task["task"])
            seen = app.store.survey(where, plan(task["task"]), vector, limit=200).candidates
            most = max(sum(one.words) for one in seen) or 1.0
            by_worth = sorted(seen, key=lambda one: -(sum(one.words) / most + (one.similarity or 0)))
            ids = [shelf.records[one.record.short] for one in by_worth]
            notes = [id_ for id_ in ids if id_ not in shelf.standing][:RECALLED]
            count += count_brief(shelf, set(task["needed"]), [(id_, "") for id_ in [*sorted(shelf.standing), *notes]])
    return count


def ask_hook(shelf: Shelf, prompt: str) -> str:
    """Return what the hook of a prompt answers."""
    payload = {"session_id": "bench", "cwd": shelf.folder, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    said: list[str] = []
    call = parse_call("prompt", "claude-code", json.dumps(payload).encode(), shelf.env, seconds=60)
    handle(call, answer=said.append, note=print)
    return json.loads(said[-1])["hookSpecificOutput"]["additionalContext"] if said and said[-1] else ""


def prompts(shelf: Shelf, chosen: str, *, misses: bool) -> Counter:
    """Type every prompt of the set and every task."""
    count: Counter = Counter()
    for row in read(f"hook/{chosen}.jsonl"):
        lines = shelf.shown(ask_hook(shelf, row["prompt"]))
        count += Counter({row["kind"]: 1, f"{row['kind']} silent": not lines})
        if misses and lines:
            print(f"  {row['kind']}: {row['prompt']}  ->  {lines[0][1]}")
    for task in shelf.tasks:
        ids = {id_ for id_, _ in shelf.shown(ask_hook(shelf, task["task"]))}
        needed = set(task["needed"])
        count += Counter(
            tasks=1, needed=len(needed & ids), all_needed=len(needed), answered=bool(needed & ids), lines=len(ids)
        )
        if misses and not needed & ids:
            print(f"  needed: {task['task']}  ->  {sorted(ids)} instead of {sorted(needed)}")
    return count


def print_briefs(name: str, count: Counter) -> None:
    """Print the figures of some briefs."""
    needed = f"needed {count['needed'] / count['all_needed']:.1%}, " if count["all_needed"] else ""
    noise = f"noise {count['noise'] / max(1, count['lines']):.1%}, " if count["all_needed"] else ""
    tokens = f", {count['tokens'] / count['briefs']:.0f} tokens" if count["tokens"] else ""
    print(
        f"{name:<28} standing {count['standing'] / count['all_standing']:.1%}, {needed}{noise}"
        f"outdated in {count['outdated'] / count['briefs']:.1%}, twice {count['twice']};"
        f" {count['lines'] / count['briefs']:.1f} lines{tokens}"
        + ("; ANOTHER TEXT THE SECOND TIME" if count["changed"] else "")
    )


def print_prompts(name: str, count: Counter) -> None:
    """Print the figures of the prompt hook."""
    print(
        f"{name:<28} silent on small talk {count['small silent'] / count['small']:.1%}, on other matters"
        f" {count['other silent'] / count['other']:.1%}; needed {count['needed'] / count['all_needed']:.1%},"
        f" any of it {count['answered'] / count['tasks']:.1%}, {count['lines'] / count['tasks']:.1f} lines"
    )


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--memory", choices=MEMORIES, action="append", help="default: both")
    options.add_argument("--set", default="dev", choices=("dev", "held"), help="of the prompts that want no answer")
    options.add_argument("--budget", type=int, default=BUDGET)
    options.add_argument("--misses", action="store_true", help="print what was missed")
    given = options.parse_args()
    if given.misses and (given.set == "held" or given.memory != ["pakket"]):
        options.error("held prompts and the second memory are for the final figure and are not looked at")
    totals: dict[str, Counter] = {name: Counter() for name in ("briefs", "start", "reference", "prompts")}
    for name in given.memory or MEMORIES:
        with shelf_of(name) as shelf:
            found: dict[str, Counter] = {}
            spent = cpu_ms(lambda s=shelf, f=found: f.update(briefs=briefs(s, given.budget, misses=given.misses)))
            found |= {"start": start(shelf), "reference": reference(shelf)}
            found["prompts"] = prompts(shelf, given.set, misses=given.misses)
        show(name, given.budget, found)
        print(f"{name}, CPU{'':<20} {spent / (len(shelf.tasks) + 2):.1f} ms a brief")
        totals = {part: totals[part] + found[part] for part in totals}
    if len(given.memory or MEMORIES) > 1:
        show("together", given.budget, totals)


def show(name: str, budget: int, found: dict[str, Counter]) -> None:
    """Print everything about one memory, or about both."""
    print_briefs(f"{name}, {budget} tokens", found["briefs"])
    print_briefs(f"{name}, session start", found["start"])
    print_briefs(f"{name}, plain reference", found["reference"])
    print_prompts(f"{name}, prompt hook", found["prompts"])


if __name__ == "__main__":
    main()
