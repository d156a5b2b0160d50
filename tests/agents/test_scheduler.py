"""Steps that depend on each other: order, a limit, failures, results that are passed on, earlier progress."""

from __future__ import annotations

import asyncio

import pytest

from commonplace.agents.scheduler import Schedule

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


class Steps:
    """Steps that write down when they begin and end; those in ``fails`` raise, those in ``waits`` never end."""

    def __init__(self, fails=(), waits=()):
        self.fails, self.waits, self.log, self.ends = fails, waits, [], []

    async def __call__(self, step, results):
        self.log.append(f"+{step}")
        try:
            await (asyncio.Event().wait() if step in self.waits else asyncio.sleep(0.01))
        finally:
            self.log.append(f"-{step}")
        if step in self.fails:
            raise OSError(step)
        return f"{step}({','.join(results.values())})"

    def run(self, needs, **options):
        """Run a schedule of these steps."""
        return asyncio.run(Schedule(needs, self, ended=self.ends.append, **options).run())

    def outcomes(self):
        """What came of the steps, in the order in which they ended."""
        return [(end.step, end.outcome) for end in self.ends]


def test_a_step_gets_the_results_of_what_it_needs():
    """Those that are ready run at once; the last one waits for both."""
    steps = Steps()
    assert steps.run(DIAMOND)["d"] == "d(b(a()),c(a()))"
    assert steps.log[:4] == ["+a", "-a", "+b", "+c"]


def test_no_more_run_at_once_than_allowed():
    """In the order in which they are listed."""
    steps = Steps()
    steps.run({"a": [], "b": [], "c": []}, at_once=1)
    assert steps.log == ["+a", "-a", "+b", "-b", "+c", "-c"]


def test_a_failure_skips_what_needs_it_and_nothing_else():
    """What was skipped says what it lacked, and skips what needs it in turn."""
    steps = Steps(fails="b")
    results = steps.run(DIAMOND | {"e": ["d"]})
    assert results.keys() == {"a", "c"}
    assert dict(steps.outcomes()) == {
        "a": "completed", "b": "failed", "c": "completed", "d": "skipped", "e": "skipped",
    }  # fmt: skip
    ends = {end.step: end for end in steps.ends}
    assert (str(ends["b"].error), ends["d"].blocked_by, ends["e"].blocked_by) == ("b", ("b",), ("d",))


def test_the_first_failure_can_end_everything():
    """It is raised when those that ran have been cancelled, and nothing starts any more."""
    steps = Steps(fails="a", waits="b")
    with pytest.raises(OSError, match="a"):
        steps.run({"a": [], "b": [], "c": ["a"]}, fail_fast=True)
    assert steps.log == ["+a", "+b", "-a", "-b"]
    assert steps.outcomes() == [("a", "failed")]


def test_what_was_done_before_does_not_run_again():
    """Its result is passed on, and is part of what is returned."""
    steps = Steps()
    assert steps.run(DIAMOND, done={"a": "old", "b": "older"}) == {
        "a": "old", "b": "older", "c": "c(old)", "d": "d(older,c(old))",
    }  # fmt: skip
    assert steps.outcomes() == [("c", "completed"), ("d", "completed")]


def test_cancelling_a_schedule_cancels_its_steps_and_waits_for_them():
    """Nothing is left running."""
    steps = Steps(waits="ab")

    async def live():
        running = asyncio.ensure_future(Schedule({"a": [], "b": [], "c": ["a"]}, steps).run())
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled(), asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(live()) == (True, set())
    assert steps.log == ["+a", "+b", "-a", "-b"]


def test_a_step_that_cancels_itself_is_said_to_be_cancelled():
    """The others run."""

    async def run(step, _results):
        if step == "a":
            raise asyncio.CancelledError
        return step

    ends = []
    assert asyncio.run(Schedule({"a": [], "b": []}, run, ended=ends.append).run()) == {"b": "b"}
    assert [(end.step, end.outcome) for end in ends] == [("a", "cancelled"), ("b", "completed")]


def test_there_is_a_checkpoint_after_what_ended_and_before_the_next_wait():
    """An error in it ends the schedule, and what runs is cancelled."""
    steps, seen = Steps(waits="b"), []

    async def checkpoint():
        seen.append(steps.outcomes())
        if steps.ends:
            raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        steps.run({"a": [], "b": []}, checkpoint=checkpoint)
    assert seen == [[], [("a", "completed")]]
    assert steps.log == ["+a", "+b", "-a", "-b"]
