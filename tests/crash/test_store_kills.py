"""Processes that die, freeze and crowd: what was acknowledged is there, the rest is there wholly or not at all."""

import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product

import lives
import pytest
from lives import EVERYTHING, LIVES, after, job, opened, plain, put, settled, state, unhealthy

from commonplace.model.changes import Finish
from commonplace.model.jobs import Claim, Reason, Skipped
from commonplace.model.queries import Order


class Writer:
    """A process that changes a store until it is killed."""

    def __init__(self, path, seed):
        self.wire, theirs = LIVES.Pipe(duplex=False)
        self.process = LIVES.Process(target=lives.write_for_ever, args=(path, seed, theirs))
        self.process.start()
        theirs.close()

    def killed(self):
        """Kill it; return the state that it surely left, and the one that it may have left instead."""
        self.process.kill()
        self.process.join()
        sure, maybe = {}, {}
        try:
            while True:
                done, made = self.wire.recv()
                sure, maybe = (after(sure, made), {}) if done else (sure, made)
        except EOFError:  # its last word may be cut off
            return sure, after(sure, maybe)


def kill_writers(new_home, *, kills, seed):
    """Kill writer after writer, two at a time, and look at the store after each pair."""
    chance, path, known, acknowledged = random.Random(seed), None, {}, 0
    for turn in range(kills // 2):
        path, known = (path, known) if turn % 20 else (new_home(), {})
        writers = [Writer(path, seed * kills + turn * 2 + number) for number in (0, 1)]
        if chance.random() < 0.7:  # else the store itself may be in the making
            assert all(writer.wire.poll(30) for writer in writers)
        time.sleep(chance.uniform(0, 0.1))
        ends = [writer.killed() for writer in writers]
        with closing(opened(path)) as store:
            settled(store)  # an erasure that was killed is ended by who comes next
            found, sick = state(store), unhealthy(store)
        assert sick == [], turn
        assert any(found == known | one | other for one, other in product(*ends)), turn
        known, acknowledged = found, acknowledged + sum(len(sure) for sure, _ in ends)
    return acknowledged


def test_what_was_acknowledged_survives_kill_9(new_home):
    """Writers are killed at random moments; no acknowledged write is lost and nothing is torn."""
    assert kill_writers(new_home, kills=20, seed=1)


@pytest.mark.slow
def test_what_was_acknowledged_survives_many_kills(new_home):
    """The same, two hundred times."""
    assert kill_writers(new_home, kills=200, seed=2)


def crowd(path, *, writers, turns, readers, seconds):
    """Let processes write and read at once; return what each writer left, and how often each reader read."""
    with ProcessPoolExecutor(writers + readers, mp_context=LIVES) as pool:
        reading = [pool.submit(lives.read_beside_others, path, seconds) for _ in range(readers)]
        writing = [pool.submit(lives.write_beside_others, path, seed, turns) for seed in range(writers)]
        return [future.result() for future in writing], [future.result() for future in reading]


@pytest.mark.parametrize(
    ("writers", "turns", "seconds"), [(4, 20, 1), pytest.param(8, 500, 20, marks=pytest.mark.slow)]
)
def test_many_processes_write_and_read_at_once(new_home, writers, turns, seconds):
    """Nobody gets an error, nothing is lost, no id is handed out twice, and the store is sound."""
    path = new_home()
    opened(path).close()
    left, reads = crowd(path, writers=writers, turns=turns, readers=2, seconds=seconds)
    with closing(opened(path)) as store:
        assert state(store) == {name: what for known in left for name, what in known.items()}
        assert len(state(store)) == sum(len(known) for known in left)
        assert unhealthy(store) == []
    assert all(reads)


@pytest.mark.parametrize(("writers", "turns"), [(4, 15), pytest.param(8, 150, marks=pytest.mark.slow)])
def test_no_increment_is_lost(new_home, writers, turns):
    """Compare-and-set from many processes: the counter is the number of successes, its past one chain without gaps."""
    counter, path = plain("0"), new_home()
    with closing(opened(path)) as store:
        store.apply([put(counter)])
        with ProcessPoolExecutor(writers, mp_context=LIVES) as pool:
            jobs = [pool.submit(lives.increment, path, counter.id, turns) for _ in range(writers)]
            assert sum(future.result() for future in jobs) == writers * turns
        past = store.find(EVERYTHING.replace(versions=True), order=Order.ID, limit=-1)
        numbers = [(record.version, record.content) for record in reversed(past)]
        assert numbers == [(number + 1, str(number)) for number in range(writers * turns + 1)]


def test_of_two_processes_one_gets_the_job(new_home):
    """However close together they come, each job is claimed once."""
    keys, path = [str(number) for number in range(40)], new_home()
    opened(path).close()
    with ProcessPoolExecutor(2, mp_context=LIVES) as pool:
        one, other = pool.map(lives.claim_all, [path] * 2, [keys, keys])
    assert sorted(one + other) == sorted(keys)


def test_a_frozen_worker_cannot_publish_after_its_lease(new_home):
    """A worker that was stopped past its lease loses to the one that took over, and writes nothing."""
    (wire, theirs), path = LIVES.Pipe(), new_home()
    with closing(opened(path)) as store:
        frozen = LIVES.Process(target=lives.claim_and_wait, args=(path, "k", 0.2, theirs))
        frozen.start()
        assert wire.recv() == "claimed"
        os.kill(frozen.pid, signal.SIGSTOP)
        time.sleep(0.3)
        claim = store.claim(job("k"), lease=timedelta(hours=1), now=datetime.now(UTC))
        wire.send("go")
        os.kill(frozen.pid, signal.SIGCONT)
        assert wire.recv() == "lost"
        frozen.join()
        store.apply([put(plain("in time")), Finish(claim=claim)])
        assert [record.content for record in store.find(EVERYTHING, order=Order.ID, limit=9)] == ["in time"]


@pytest.mark.slow
def test_every_job_is_done_once_whatever_happens_to_its_workers(new_home):
    """Workers are killed and frozen past their lease; no job is applied twice, and none is forgotten."""
    chance, path, keys = random.Random(3), new_home(), [f"job{number}" for number in range(150)]
    opened(path).close()

    def hire():
        worker = LIVES.Process(target=lives.work_off, args=(path, keys, 0.25))
        worker.start()
        return worker

    workers, faults, thawing = [hire() for _ in range(4)], 0, []
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.05)
        for moment, worker in [pair for pair in thawing if pair[0] < time.monotonic()]:
            os.kill(worker.pid, signal.SIGCONT)
            thawing.remove((moment, worker))
        number = chance.randrange(4)
        busy = workers[number].is_alive() and workers[number] not in [worker for _, worker in thawing]
        if busy and chance.random() < 0.3 and faults < 60:
            faults += 1
            if chance.random() < 0.5:
                workers[number].kill()
                workers[number].join()
                workers[number] = hire()
            else:
                os.kill(workers[number].pid, signal.SIGSTOP)
                thawing.append((time.monotonic() + chance.uniform(0.3, 0.8), workers[number]))
    with closing(opened(path)) as store:
        done = Counter(what[1].split()[0] for what in state(store).values())
        ends = {key: store.claim(job(key), lease=timedelta(0), now=datetime.now(UTC)) for key in keys}
        assert unhealthy(store) == []
    assert faults  # how many depends on how fast the machine works the jobs off
    assert set(done.values()) == {1}
    assert not [end for end in ends.values() if isinstance(end, Claim)]
    assert {key for key, end in ends.items() if end == Skipped(reason=Reason.UP_TO_DATE)} == set(done)
    assert len(done) >= len(keys) - 5  # a job that met three faults is given up, which is told
