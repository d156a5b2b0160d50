"""Learning at start-up: phase one, phase two, what is skipped and why, and clearing it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from commonplace.learning.consolidate_receipts import consolidation_receipts
from commonplace.learning.learn import LAST, clear_learned, enqueue_consolidation, last_run, learn_from_sessions
from commonplace.model.errors import ProviderError
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Source
from commonplace.model.scopes import Scope
from commonplace.records.index import index

sys.path.insert(0, str(Path(__file__).parents[1]))
from workshop import Scripted, Shop


@pytest.fixture
def shop(tmp_path, clock):
    """A project that learns by rules from sessions of whatever age."""
    made = Shop(tmp_path, clock, min_rollout_idle_hours=0)
    yield made
    made.store.close()


def session(shop, name, *said):
    """Index a session in which a user says this."""
    path = shop.folder.parent / f"{name}.jsonl"
    lines = [{"role": "user", "content": text, "time": shop.clock().isoformat()} for text in said]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    index(shop.place, [str(path)])
    shop.clock.forward()


def test_a_session_becomes_memory(shop):
    """What a user decided is in MEMORY.md with a reference to the turn."""
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    report = learn_from_sessions(shop.place)

    assert report.troubles == ()
    assert len(report.extracted.records) == 1
    assert report.consolidated.status == "consolidated"
    assert "pnpm" in shop.text()
    assert "session:s1#" in shop.text()


def test_a_second_start_does_nothing(shop):
    """Nothing changed, nothing is done."""
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    learn_from_sessions(shop.place)
    report = learn_from_sessions(shop.place)

    assert report.extracted.done == ()
    assert report.consolidated.reason == "up to date"


@pytest.mark.parametrize(
    ("given", "learning", "reason"),
    [
        ({}, {"enabled": False}, "switched off"),
        ({"depth": 1}, {}, "a subagent does not learn"),
        ({"saved": False}, {}, "not saved"),
        ({}, {"mode": "host"}, "mode is host"),
    ],
)
def test_a_start_that_must_not_learn_does_not(tmp_path, clock, given, learning, reason):
    """Off by default, not in subagents, not for unsaved sessions, not where a host thinks."""
    shop = Shop(tmp_path, clock, min_rollout_idle_hours=0, **learning)
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    report = learn_from_sessions(shop.place, **given)

    assert reason in report.skipped
    assert shop.records == {}
    assert shop.files == {}
    shop.store.close()


def test_the_session_that_is_starting_is_left_alone(shop):
    """And named among the skipped."""
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    report = learn_from_sessions(shop.place, active="s1")

    assert [left.session for left in report.extracted.skipped] == ["s1"]
    assert last_run(shop.place)["skipped"][0]["session"] == "s1"


def test_what_goes_wrong_is_told_and_left_for_status(tmp_path, clock):
    """A model that cannot be reached breaks nothing."""
    shop = Shop(tmp_path, clock, min_rollout_idle_hours=0, model=Scripted(ProviderError("no route to host")))
    session(shop, "s1", "We use pnpm in this repository, not npm.", "Always run the tests before a commit.")
    shop.keep("Tea is at four")
    report = learn_from_sessions(shop.place)

    assert any("no route to host" in one for one in report.troubles)
    assert last_run(shop.place)["troubles"] == list(report.troubles)
    shop.store.close()


def test_enqueue_forces_work_even_if_nothing_changed(shop):
    """At the next start, once."""
    shop.keep("Use pnpm, not npm")
    learn_from_sessions(shop.place)
    enqueue_consolidation(shop.place)

    assert shop.job.status == "pending" or shop.job.done < shop.job.job.watermark
    assert learn_from_sessions(shop.place).consolidated.status == "unchanged"
    assert learn_from_sessions(shop.place).consolidated.status == "skipped"


def test_clear_erases_what_was_learned_and_leaves_what_people_wrote(shop):
    """Extractions, artifacts, receipts and extracted records go; hand-written records and lines stay."""
    shop.keep("Ada wrote this one")
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    learn_from_sessions(shop.place)
    shop.write(shop.text() + "\n## Mine\n\nMy own words.\n")
    done = clear_learned(shop.place)

    assert len(done.records) == 1
    assert list(shop.records) == ["Ada wrote this one"]
    assert list(shop.files) == ["MEMORY.md"] == list(shop.artifacts)
    assert "My own words." in shop.text()
    assert "pnpm" not in shop.text()
    assert consolidation_receipts(shop.place) == []
    assert last_run(shop.place) is None


def test_what_was_cleared_does_not_come_back_by_itself(shop):
    """Sessions are not extracted again until they change."""
    session(shop, "s1", "We use pnpm in this repository, not npm.")
    learn_from_sessions(shop.place)
    clear_learned(shop.place)
    learn_from_sessions(shop.place)
    assert shop.records == {}
    assert shop.files == {}


def test_clear_all_takes_every_record_of_this_project_alone(tmp_path, clock, shop):
    """Another project of the same store is not touched."""
    other = Shop(tmp_path / "other", clock, store=shop.store, scope=Scope.of(("project", "other")))
    (tmp_path / "other").mkdir()
    for one in (shop, other):
        one.keep("Use pnpm, not npm", source=Source(channel=Channel.EXTRACTION))
        one.run()
    clear_learned(shop.place, every=True)

    assert shop.records == {} == shop.files
    assert "Use pnpm, not npm" in other.text()
    assert len(other.records) == 1


def test_a_run_is_remembered_once(shop):
    """The last one takes the place of the one before."""
    shop.keep("Use pnpm, not npm")
    learn_from_sessions(shop.place)
    shop.clock.forward()
    learn_from_sessions(shop.place)
    where = DocumentFilter(scopes=frozenset({shop.scope}), names=frozenset({LAST}))
    assert len(shop.store.documents(where, limit=9)) == 1
