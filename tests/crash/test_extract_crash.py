"""Death at every claim and every write of index and extract: whoever comes next ends in one and the same state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.app import open_app
from commonplace.config.learning import Learning
from commonplace.learning import open_workspace
from commonplace.learning.extract import extract_sessions
from commonplace.model.documents import DocumentKind
from commonplace.model.jobs import Status
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.records.index import index

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SAID = {
    "a": [("2025-12-10", "Use pnpm, not npm, in this repo."), ("2025-12-10", "Never commit directly to main.")],
    "b": [("2025-12-20", "We use yarn as the package manager in this repo.")],
    "c": [("2025-12-21", "thanks, that is all")],
}
LEARNING = Learning(enabled=True, stage1_lease_seconds=120)


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A store whose process dies at one call, before it or after it."""

    def __init__(self, store, at):
        self._store, self._at, self.calls = store, at, 0

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name not in ("apply", "claim"):
            return found

        def call(*args, **options):
            self.calls += 1
            if self._at == (self.calls, "before"):
                raise Died
            outcome = found(*args, **options)
            if self._at == (self.calls, "after"):
                raise Died
            return outcome

        return call


def run(shop, env, now, *, at=None):
    """Index and extract, dying where it is said; returns how many claims and writes there were."""
    with open_app(str(shop), env=env, clock=lambda: now) as opened:
        mortal = Mortal(opened.store, at)
        place = open_workspace(opened).replace(store=mortal, learning=LEARNING)
        index(place, [str(shop / "sessions")])
        extract_sessions(place)
        return mortal.calls


def state(shop, env):
    """All that is remembered, made, and asked for; and whether files and records agree."""
    with open_app(str(shop), env=env, clock=lambda: NOW) as opened:
        scope = opened.where.project
        assert opened.folders.sync(scope).is_empty
        assert opened.maintenance.check() == []
        where = Filter(scopes=frozenset({scope}), at=NOW, states=ANY_STATE)
        records = opened.store.find(where, order=Order.ID, limit=-1)
        names = {record.id: record.content for record in records}
        made = DocumentFilter(scopes=frozenset({scope}), kinds=frozenset({DocumentKind.EXTRACTION}))
        chunks = opened.store.chunks(DocumentFilter(scopes=frozenset({scope})), limit=999)
        jobs = {(job.job.kind, job.job.key): job.status for job in opened.store.jobs([scope], now=opened.clock())}
        return {
            "records": sorted((r.content, names.get(r.superseded_by), r.archived_at, r.held) for r in records),
            "made": sorted((document.name, document.content) for document in opened.store.documents(made, limit=99)),
            "chunks": [(chunk.id, chunk.text) for chunk in chunks],
            "jobs": jobs,
        }


@pytest.fixture
def fresh(tmp_path, new_home):
    """A project with sessions that nobody has looked at."""

    def fresh(name):
        shop = tmp_path / name / "shop"
        (shop / ".commonplace").mkdir(parents=True)
        (shop / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
        from stands import agree  # noqa: PLC0415 - processes of these tests load this module without it

        agree(shop, tmp_path / name / "home")
        (shop / "sessions").mkdir()
        for session, turns in SAID.items():
            told = [{"role": "user", "content": text, "time": f"{day}T09:00:00Z"} for day, text in turns]
            (shop / "sessions" / f"{session}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in told))
        env = {"COMMONPLACE_HOME": str(tmp_path / name / "home"), "USER": "ada", "HOME": str(tmp_path)}
        return shop, env | {"COMMONPLACE_STORE": new_home()}

    return fresh


def dies(fresh, chosen):
    """Die before and after each of the chosen calls, and look at what whoever comes next makes of it."""
    whole = fresh("whole")
    calls, expected = run(*whole, NOW), state(*whole)
    assert len(expected["records"]) == 3
    assert set(expected["jobs"].values()) == {Status.DONE, Status.PENDING}
    for number in chosen(calls):
        for when in ("before", "after"):
            shop, env = fresh(f"{number}{when}")
            with pytest.raises(Died):
                run(shop, env, NOW, at=(number, when))
            run(shop, env, NOW + timedelta(seconds=121))
            assert state(shop, env) == expected, (number, when)
    return calls


def test_death_at_a_claim_or_a_write_loses_and_doubles_nothing(fresh):
    """A claim and a write in the middle: the next run, when the lease is over, brings about the same end."""
    dies(fresh, lambda calls: [calls - 3, calls - 2])


@pytest.mark.slow
def test_death_at_every_claim_and_write_ends_in_one_state(fresh):
    """Before and after each call there is: one final state."""
    assert dies(fresh, lambda calls: range(1, calls + 1)) >= 9


WORKER = """
import sys
from datetime import datetime
sys.path.insert(0, sys.argv[1])
import pathlib, os
from test_extract_crash import run
run(pathlib.Path(sys.argv[2]), dict(os.environ), datetime.fromisoformat(sys.argv[3]))
"""


def test_two_processes_at_once_do_the_work_once(fresh):
    """Both index and extract; every fact is there once, and every session was taken by one of them."""
    shop, env = fresh("two")
    command = [sys.executable, "-c", WORKER, os.path.dirname(__file__), str(shop), NOW.isoformat()]
    workers = [subprocess.Popen(command, env=os.environ | env, stderr=subprocess.PIPE) for _ in range(2)]
    for worker in workers:
        _, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err.decode()

    other = fresh("one")
    run(*other, NOW)
    assert state(shop, env) == state(*other)
