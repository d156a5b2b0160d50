"""Consolidation dies at every claim and every apply, before and after it; whoever comes next ends in one state."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace.engine.memory import Memory
from commonplace.files.artifacts import erase, publish
from commonplace.learning.consolidate_receipts import consolidation_receipts, undo_consolidation
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel

sys.path.insert(0, str(Path(__file__).parents[1]))
from stands import Clock
from workshop import Now, Scripted, Shop, reply

TESTS = os.path.dirname(os.path.dirname(__file__))
#: Starts when told to, and says what came of it.
WORKER = """
import sys
sys.path.insert(0, sys.argv[2])
from workshop import Now, Shop
from commonplace.learning.consolidate import consolidate_memory
from datetime import timedelta
shop = Shop(sys.argv[1], Now(timedelta(hours=int(sys.argv[3]))), place=sys.argv[4])
sys.stdin.readline()
print(consolidate_memory(shop.place).status)
"""
RESTLESS = WORKER.replace(
    "print(consolidate_memory(shop.place).status)", "while True: consolidate_memory(shop.place, force=True)"
)


class Died(BaseException):
    """The process is gone: nobody may catch this and go on."""


class Mortal:
    """A store whose process dies at one of its claims and applies, before or after it is made."""

    def __init__(self, store, *, at, after):
        self.store, self.at, self.after, self.calls = store, at, after, 0

    def __getattr__(self, name):
        """Everything else passes through."""
        return getattr(self.store, name)

    def apply(self, changes):
        """Make the changes, unless it dies."""
        return self._passing(self.store.apply, changes)

    def claim(self, job, **options):
        """Take a job, unless it dies."""
        return self._passing(self.store.claim, job, **options)

    def _passing(self, verb, *given, **options):
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise Died
        done = verb(*given, **options)
        if self.calls == self.at:
            raise Died
        return done


def build(folder, place, **options):
    """A project, consolidated once, in which much has happened since: new facts, replaced ones, a hand edit."""
    folder.mkdir()
    shop = Shop(folder, Clock(), place=place, **options)
    shop.keep("We use npm", metadata={"subject": "pm"})
    shop.keep("Release: 1. tag 2. push", "procedures", metadata={"subject": "release"})
    shop.extracted("s1", "raw words")
    shop.run()
    shop.edit("## Procedures", "My own words.\n\n## Procedures")
    shop.keep("We use pnpm", metadata={"subject": "pm"})
    shop.keep("Release now: 1. build 2. sign", "procedures", metadata={"subject": "release"})
    shop.extracted("s2", "more raw words")
    return shop


def dying(shop, *, at, after):
    """The same project in a process that dies."""
    shop.place = shop.place.replace(store=Mortal(shop.store, at=at, after=after))
    return shop


def revived(shop):
    """The same project in a new process, when every lease of the old one has run out."""
    shop.place = shop.place.replace(store=shop.store)
    shop.later(600)
    return shop


def state(shop):
    """All that counts: artifacts, files, what replaced what, the job; without ids, which differ from run to run."""
    texts = [
        {name: re.sub(r"record \w{10}", "record", text) for name, text in found.items()}
        for found in (shop.artifacts, shop.files)
    ]
    records = {text: (bool(one.superseded_by), bool(one.consolidated_at)) for text, one in shop.records.items()}
    return [*texts, records, str(shop.job.status)]


def marks(shop):
    """Which records are replaced, and which were taken up by a consolidation."""
    return {one.id: (one.superseded_by, one.consolidated_at) for one in shop.records.values()}


def whole(folder, place):
    """How often an undisturbed run claims and applies, and the state in which it ends."""
    shop = dying(build(folder, place), at=0, after=False)
    assert shop.run().status == "consolidated"
    shop.store.close()
    return shop.place.store.calls, state(shop)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_claim_or_apply_ends_in_one_state(tmp_path, new_home, after):
    """The lease runs out, the next process does the work or what is left of it, and nobody can tell the difference."""
    count, ended = whole(tmp_path / "whole", new_home())
    assert count >= 3
    for at in range(1, count + 1):
        shop = dying(build(tmp_path / str(at), new_home()), at=at, after=after)
        with pytest.raises(Died):
            shop.run()
        revived(shop).run()
        assert state(shop) == ended, (at, after)
        assert shop.run().reason == "up to date"
        shop.store.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_death_while_a_model_fails_loses_nothing(tmp_path, new_home, at, after):
    """Also where the failure itself could not be written down any more."""
    shop = Shop(tmp_path, Clock(), place=new_home(), model=Scripted("garbage"))
    shop.keep("Use pnpm, not npm")
    shop.extracted("s1", "raw")
    with suppress(Died):
        dying(shop, at=at, after=after).run()
    shop.model.answers = [reply("- all is well")]

    assert revived(shop).run().status == "consolidated"
    assert "Use pnpm, not npm" in shop.text()
    shop.store.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_death_while_undoing_leaves_all_or_nothing_undone(tmp_path, new_home, at, after):
    """As before the undo or as after it, never between; files follow."""
    shop = build(tmp_path / "shop", new_home())
    first, first_marks = shop.artifacts, marks(shop)
    shop.run()
    second, second_marks = shop.artifacts, marks(shop)
    assert first_marks != second_marks
    with suppress(Died):
        undo_consolidation(dying(shop, at=at, after=after).place)
    publish(revived(shop).place)
    found = {name: text.replace("My own words.\n\n", "") for name, text in shop.artifacts.items()}
    second = {name: text.replace("My own words.\n\n", "") for name, text in second.items()}

    assert (found, marks(shop)) in ((first, first_marks), (second, second_marks))
    assert "My own words." in shop.text()
    assert shop.files == shop.artifacts
    shop.store.close()


def started(program, folder, place, *, ahead=0):
    """A process that waits to be told, its clock so many hours ahead."""
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder), TESTS, str(ahead), place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_that_start_at_once_do_the_work_once(tmp_path, new_home):
    """One consolidates, the others skip, and there is one receipt."""
    place = new_home()
    shop = Shop(tmp_path, Now(), place=place)
    for number in range(200):
        shop.keep(f"Fact number {number} is so")
    workers = [started(WORKER, tmp_path, place) for _ in range(3)]
    time.sleep(1)
    ended = sorted(worker.communicate("go\n", timeout=60)[0].strip() for worker in told(workers))

    assert ended == ["consolidated", "skipped", "skipped"]
    assert len(consolidation_receipts(shop.place)) == 1
    assert shop.files == shop.artifacts
    shop.store.close()


def told(workers):
    """Tell all of them before any is waited for."""
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return workers


def test_a_killed_process_leaves_what_the_next_one_finishes(tmp_path, new_home):
    """Kill -9 while it consolidates, again and again: the store is whole, and the files follow."""
    place = new_home()
    shop = Shop(tmp_path, Now(), place=place)
    for number in range(50):
        shop.keep(f"Fact number {number} is so")
    for turn in range(4):
        [worker] = told([started(RESTLESS, tmp_path, place, ahead=turn)])
        known, deadline = consolidation_receipts(shop.place)[:1], time.monotonic() + 20
        while consolidation_receipts(shop.place)[:1] == known and time.monotonic() < deadline:
            time.sleep(0.01)
        assert consolidation_receipts(shop.place)[:1] != known
        time.sleep(0.02 + turn * 0.013)
        worker.kill()
        worker.communicate()
        shop.clock.forward(timedelta(hours=1))  # whoever held the lease is dead

    assert shop.run(force=True).status in ("consolidated", "unchanged")
    assert shop.files == shop.artifacts
    assert all(f"Fact number {number} is so" in shop.text() for number in range(50))
    shop.store.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_death_while_forgetting_leaves_all_or_nothing_forgotten(tmp_path, new_home, at, after):
    """The record and its words in documents go in one write; the next run brings files up to that."""
    shop = build(tmp_path / "shop", new_home())
    shop.run()
    record = next(one for text, one in shop.records.items() if "pnpm" in text)
    assert "pnpm" in repr(written(shop))
    with suppress(Died):
        remembering(dying(shop, at=at, after=after)).forget(record.id)
    assert ("pnpm" in repr(written(shop))) == bool(revived(shop).store.get(record.id))
    if shop.store.get(record.id):
        remembering(shop).forget(record.id)
    shop.run(force=True)

    assert "pnpm" not in repr(written(shop)) + repr(shop.files)
    assert shop.files == shop.artifacts
    shop.store.close()


def remembering(shop):
    """The project as a person has it."""
    place = shop.place
    return Memory(
        place.store, shop.binding(Channel.USER), clock=shop.clock, erased=lambda erasure: erase(place, erasure)
    )


def written(shop):
    """Everything that is stored of documents."""
    found = shop.store.documents(DocumentFilter(scopes=frozenset({shop.scope})), limit=999)
    return [(one.name, one.content, one.metadata) for one in found]
