"""Moving house: everything arrives, a move that was stopped goes on, and nothing else is lost by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from commonplace.app import copier_of, machine_name, open_store
from commonplace.engine.transfer import MOVED_BATCH, migrate
from commonplace.model.errors import Conflict, InvalidInput
from commonplace.model.queries import Order
from household import FOLDER, answers, export, furnish, whole
from stands import scripts_of_the_user


@pytest.fixture
def houses(new_place):
    """Two stores of two sorts, each pair of sorts in turn; the first one is furnished."""
    return [open_store(place) for place in new_place.pair]


@pytest.fixture
def ours(houses, make):
    """The one that is moved."""
    furnish(houses[0], make)
    return houses[0]


@pytest.fixture
def theirs(houses):
    """The one that it is moved to."""
    return houses[1]


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A target that dies at one of its writes, before it or after it."""

    def __init__(self, mover, at, *, after):
        self._mover, self._left, self._after = mover, at, after

    def __getattr__(self, name):
        return getattr(self._mover, name)

    def write(self, *items, **options):
        """Write, unless it dies."""
        self._left -= 1
        if not self._left and not self._after:
            raise Died
        self._mover.write(*items, **options)
        if not self._left:
            raise Died


def test_everything_arrives(ours, theirs, make, query):
    """Records with their past and use, sessions, vectors, files, jobs: the other store gives the same answers."""
    moved = migrate(copier_of(ours), copier_of(theirs))
    assert whole(ours) == whole(theirs) == moved.digest
    assert export(ours, make.clock()) == export(theirs, make.clock())
    assert answers(ours, make, query) == answers(theirs, make, query)
    assert ours.files(FOLDER) == theirs.files(FOLDER)
    assert ours.embedder() == theirs.embedder()
    assert moved.written == moved.items > moved.records > 30


def test_there_and_back_again_is_the_same(ours, theirs, make, new_place):
    """A round trip is byte-identical in its export, and as a whole."""
    back = open_store(new_place())
    before = export(ours, make.clock())
    migrate(copier_of(ours), copier_of(theirs))
    migrate(copier_of(theirs), copier_of(back))
    assert export(back, make.clock()).encode() == before.encode()
    assert whole(back) == whole(ours)


def test_what_was_moved_works_on(ours, theirs, make):
    """New records and events come after those that were carried."""
    migrate(copier_of(ours), copier_of(theirs))
    seen = theirs.events([make.scope], limit=999)
    [outcome] = theirs.apply([make.put("new")])
    assert theirs.get(outcome.records[0].id).content == "new"
    assert len(theirs.find(make.where(), order=Order.ID, limit=999)) == 1 + len(
        ours.find(make.where(), order=Order.ID, limit=999)
    )
    assert seen == ours.events([make.scope], limit=999) != []
    theirs.apply([make.put("told", emit=True)])
    assert theirs.events([make.scope], limit=999)[-1].seq > seen[-1].seq


def test_twice_is_as_good_as_once(ours, theirs):
    """A move that is done changes nothing."""
    first = migrate(copier_of(ours), copier_of(theirs))
    again = migrate(copier_of(ours), copier_of(theirs))
    assert (again.written, again.erased, again.digest) == (0, 0, first.digest)


@pytest.mark.parametrize("after", [False, True])
def test_a_move_that_died_goes_on(houses, make, after):
    """Wherever it stops, the next run ends in the same state, and writes only what was missing."""
    ours, theirs = houses
    furnish(ours, make, records=MOVED_BATCH + 20)
    for number in (1, 2, 3):
        with pytest.raises(Died):
            migrate(copier_of(ours), Mortal(copier_of(theirs), number, after=after))
    moved = migrate(copier_of(ours), copier_of(theirs))
    assert moved.digest == whole(ours) == whole(theirs)
    assert moved.written < moved.items


def test_the_source_may_change_between_two_runs(ours, theirs, make):
    """What was carried before and has changed since is carried anew, also a key that has another holder."""
    with pytest.raises(Died):
        migrate(copier_of(ours), Mortal(copier_of(theirs), 2, after=True))
    [held, *_] = [record for record in ours.find(make.where(), order=Order.ID, limit=99) if record.key]
    ours.apply([make.update(held, key=None), make.put(make("heir", key=held.key, kind=held.kind, id="0" * 20))])
    migrate(copier_of(ours), copier_of(theirs))
    assert whole(theirs) == whole(ours)


def test_a_target_with_something_else_is_left_alone(ours, theirs, make):
    """It is refused, unless it may be replaced."""
    theirs.apply([make.put("precious")])
    before = whole(theirs)
    with pytest.raises(Conflict, match="holds something else already"):
        migrate(copier_of(ours), copier_of(theirs))
    assert whole(theirs) == before
    assert migrate(copier_of(ours), copier_of(theirs), replace=True).erased == 1
    assert whole(theirs) == whole(ours)


def test_a_store_is_not_moved_to_itself(ours):
    """There is nothing to do, and a mistake in it."""
    with pytest.raises(InvalidInput, match="cannot be moved to itself"):
        migrate(copier_of(ours), copier_of(ours))


@pytest.mark.slow
def test_a_killed_command_is_taken_up(new_place, make, tmp_path):
    """Kill -9 in the middle of `commonplace migrate`: the next one completes it."""
    source, target = new_place.pair
    ours, theirs = (open_store(place, machine=lambda: machine_name(str(tmp_path))) for place in (source, target))
    furnish(ours, make, records=4 * MOVED_BATCH)
    program = "import sys; from commonplace.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "migrate", source, target]
    scripts_of_the_user(tmp_path)
    env = os.environ | {"COMMONPLACE_HOME": str(tmp_path)}
    running = subprocess.Popen(command, env=env, stderr=subprocess.PIPE)
    while not copier_of(theirs).count() and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    subprocess.run(command, check=True, env=env, timeout=60)
    assert whole(theirs) == whole(ours)
