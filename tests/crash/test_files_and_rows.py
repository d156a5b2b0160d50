"""Kill -9, again and again, while rows and files are written: what was acknowledged is there, nothing is torn."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.files.codec import decode, matches_record
from commonplace.model.queries import State
from stands import agree

#: Says what it is about to do, does it, and says that it is done: one line each, straight to the pipe.
WORKER = """
import os, random, sys
from commonplace.app import open_app

def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())

chance = random.Random(int(sys.argv[2]))
with open_app(sys.argv[1]) as opened:
    memory = opened.memory
    live = [record.id for record in memory.list(limit=1000)]
    for step in range(10_000):
        verb = chance.choice(["remember"] * 4 + ["update"] * 3 + ["reclassify", "archive", "forget", "forget", "sync"])
        text = f"note-{sys.argv[2]}-{step}-" + "x" * chance.choice([1, 40, 3000])
        if verb == "sync":
            opened.folders.sync(opened.where.project)
        elif verb == "remember":
            say("about", "remember", "-", text)
            live.append(memory.remember(text, category="decisions").record.id)
            say("done", "remember", live[-1], text)
        elif live:
            id = live.pop(chance.randrange(len(live))) if verb == "forget" else chance.choice(live)
            category = chance.choice(["decisions", "principles", "incidents"])
            does = {"update": lambda: memory.update(id, content=text), "forget": lambda: memory.forget(id),
                    "archive": lambda: memory.archive(id), "reclassify": lambda: memory.reclassify(id, category)}
            said = category if verb == "reclassify" else text
            say("about", verb, id, said)
            does[verb]()
            say("done", verb, id, said)
"""


class Ledger:
    """What a worker has said: what must be there, and what may be, since nobody heard that it was done."""

    def __init__(self):
        self.kept = {}  # id -> [content, category, archived]
        self.gone = set()
        self.acknowledged = 0

    def hear(self, lines):
        """Take what one worker said; returns what it was about to do when it died, if anything."""
        pending = None
        for line in lines:
            when, verb, name, text = line.split(" ")
            pending = (verb, name, text) if when == "about" else None
            if when == "done":
                self.acknowledged += 1
                self._done(verb, name, text)
        return pending

    def _done(self, verb, id, text):
        match verb:
            case "remember":
                self.kept[id] = [text, "decisions", False]
            case "update":
                self.kept[id][0] = text
            case "reclassify":
                self.kept[id][1] = text
            case "archive":
                self.kept[id][2] = True
            case "forget":
                del self.kept[id]
                self.gone.add(id)

    def settle(self, records, pending):
        """Check what is there against what was said; what was under way is taken as it came out."""
        verb, name, text = pending or ("", "", "")
        present = {record.id: [record.content, record.category, record.archived_at is not None] for record in records}
        if name in self.kept:
            before, after = self.kept.pop(name), Ledger()
            after.kept = {name: list(before)}
            after._done(verb, name, text)
            assert present.get(name) in (before, after.kept.get(name)), (pending, present.get(name))
            self.kept |= {name: present[name]} if name in present else {}
        fresh = [said for key, said in present.items() if key not in self.kept]
        assert fresh in ([], [[text, "decisions", False]] if verb == "remember" else []), (pending, fresh)
        self.kept |= {key: said for key, said in present.items() if key not in self.kept}
        assert present == self.kept
        assert not self.gone & present.keys()


def killed(folder, env, seed):
    """Start a worker, let it work for a moment, kill it, and return what it had said."""
    chance = random.Random(seed)
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(folder), str(seed)], env=env, stdout=subprocess.PIPE)
    said = b"".join(worker.stdout.readline() for _ in range(chance.randrange(1, 30)))
    time.sleep(chance.random() * 0.01)  # anywhere within a write, which takes a few milliseconds
    worker.kill()
    said += worker.stdout.read()
    worker.wait()
    worker.stdout.close()
    return said.decode().split("\n")[:-1]


def assert_agreement(opened):
    """Each record has one file that says what it is, no file is torn or left over, and the next sync is idle."""
    report = opened.folders.sync(opened.where.project)
    assert (report.troubles, report.added, report.changed, report.archived, report.missing) == ((), (), (), (), ())
    records = {record.id: record for record in opened.memory.list(states=State, limit=10_000)}
    files = sorted(Path(opened.store.folders[opened.where.project]).glob("*/*.md"))
    said = {decode(path.read_bytes(), path=path.name).id: path for path in files}
    assert len(said) == len(files)
    for name, path in said.items():
        assert matches_record(decode(path.read_bytes(), path=path.name), records[name])
        assert path.parent.name == records[name].category
    assert said.keys() == records.keys()
    assert opened.folders.sync(opened.where.project).is_empty
    return records.values()


@pytest.fixture
def shop(tmp_path, new_home):
    """A project's folder, and what a process knows that works there."""
    (tmp_path / "shop" / ".commonplace").mkdir(parents=True)
    (tmp_path / "shop" / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
    agree(tmp_path / "shop", tmp_path / "home")
    env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada", "HOME": str(tmp_path)}
    env |= {"COMMONPLACE_STORE": new_home()}
    return tmp_path / "shop", os.environ | env


def survive(shop, seeds):
    """Kill a worker for each seed, and look after every death."""
    folder, env = shop
    ledger = Ledger()
    for seed in seeds:
        pending = ledger.hear(killed(folder, env, seed))
        with open_app(str(folder), env=env) as opened:
            ledger.settle(assert_agreement(opened), pending)
            if seed % 10 == 0:
                assert all(problem.fixable for problem in opened.maintenance.check())  # such as an erasure under way
                opened.maintenance.repair()
                assert opened.maintenance.check() == []
    return ledger


def test_a_few_kills_lose_nothing(shop):
    """Eight deaths: every acknowledged write is there, and files and rows agree after one sync."""
    ledger = survive(shop, range(8))

    assert ledger.acknowledged > 8
    assert ledger.kept


@pytest.mark.slow
def test_eighty_kills_lose_nothing(shop):
    """Eighty deaths at any moment: the same, on every store."""
    ledger = survive(shop, range(100, 180))

    assert ledger.acknowledged > 200
    assert len(ledger.gone) > 8
