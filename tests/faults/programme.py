"""The fault programme as one command: every fault, how often it was tried, and what was violated.

scripts/faults                 small counts, some minutes
scripts/faults --full          the counts of the promises; hours
scripts/faults --only NAME     rows whose name begins so; may be repeated
scripts/faults --counts 0.1    a share of the full counts
scripts/faults --output FILE   write the table to a file as well, after each row
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import lives
import test_store_faults
import test_store_kills
import test_store_power_cuts
from lives import LIVES, check_servers, opened, servers, state, unhealthy
from serving import check_serving, serving

from commonplace.app import open_app
from commonplace.model.errors import CommonplaceError, InvalidInput
from faults import Result, World
from faults.damage import reads_of_damaged_files, repairs_of_damaged_files
from faults.edits import edits_against_writers
from faults.kills import killed_commands
from faults.lock import readers_under_a_held_lock, reads_of_read_only_places
from faults.places import lost_ends_of_logs, replaced_stores

POSTGRES = "COMMONPLACE_TEST_POSTGRES"
KILLS_A_RUN, CUTS_A_RUN = 20, 200
_SCHEMAS = count()  # of all rows together: each begins with an empty store


@contextlib.contextmanager
def asserting(result, what):
    """Take a failed assertion, or any error, for a violation."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the next try is made all the same
        result.expect(False, f"{what}: {type(error).__name__}: {str(error)[:300]}")


def killed_writers(folder, tries, home=None):
    """Writers through the API are killed, two at a time; every acknowledged write is there, and nothing is torn."""
    result, acknowledged = Result("writers that are killed"), 0
    for run in range(-(-tries // KILLS_A_RUN)):
        place = folder / str(run)
        place.mkdir()
        with asserting(result, f"run {run}"):
            paths = count()
            new_home = home or (lambda place=place, paths=paths: str(place / f"{next(paths)}.db"))
            acknowledged += test_store_kills.kill_writers(new_home, kills=KILLS_A_RUN, seed=run)
        result.tries += KILLS_A_RUN
    result.note = f"{acknowledged} acknowledged writes"
    return result


def power_cuts(folder, tries):
    """The power goes at a random call to the disk; what was not synced is lost, kept or garbled by the sector."""
    result = Result("power cuts")
    for run in range(-(-tries // CUTS_A_RUN)):
        place = folder / str(run)
        place.mkdir()
        with asserting(result, f"run {run}"):
            test_store_power_cuts.cut_power(place, seed=1000 + run, changes=30, cuts=CUTS_A_RUN)
        result.tries += CUTS_A_RUN
    return result


def failed_calls(folder, stride):
    """Every call to the disk of every change fails, or every so many; once and for good, as broken and as full."""
    result, sound = Result("calls to the disk that fail, in four ways"), folder / "sound"
    sound.mkdir()
    with closing(opened(sound / "memory.db")) as store:
        store.apply([lives.put(test_store_faults.OLD), lives.put(test_store_faults.OTHER)])
        store.apply([lives.put(lives.plain(f"text {number} word ")) for number in range(30)])
        store.apply([lives.put(test_store_faults.OTHER.replace(content="another word "), expect=1)])
    for name, changes in test_store_faults.CHANGES.items():
        (folder / name).mkdir()
        with asserting(result, name):
            ends = test_store_faults.every_fault(sound, folder / name, changes, stride=stride)
            result.tries += sum(ends.values())
    result.note = "every call" if stride == 1 else f"every {stride}th call"
    return result


def crowds(folder, seconds, home=None):
    """Sixteen processes write at once, and two read, round after round; nothing is lost and no id comes twice."""
    result, turns, end, round_ = Result("16 writers at once"), 10, time.monotonic() + seconds, 0
    while time.monotonic() < end or not round_:
        path = home() if home else str(folder / f"{round_}.db")
        with asserting(result, f"round {round_}"):
            opened(path).close()
            left, _ = test_store_kills.crowd(path, writers=16, turns=turns, readers=2, seconds=1)
            with closing(opened(path)) as store:
                wanted, found = {name: what for known in left for name, what in known.items()}, state(store)
                other = [name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)]
                told = [(name, wanted.get(name), found.get(name)) for name in other[:3]]
                result.expect(not other, f"round {round_}: {len(other)} records differ: {told}, {store.take_notices()}")
                result.expect(unhealthy(store) == [], f"round {round_}: {unhealthy(store)}")
            result.tries += 16 * turns
        round_ += 1
        if result.violations:
            break
    result.note = f"{round_} rounds in {seconds} s or until a round ends"
    return result


def counters(folder, tries):
    """Compare-and-set from eight processes: no addition is lost."""
    result, path = Result("additions by compare-and-set from 8 processes"), str(folder / "counter.db")
    counter, turns = lives.plain("0"), -(-tries // 8)
    with closing(opened(path)) as store:
        store.apply([lives.put(counter)])
        with ProcessPoolExecutor(8, mp_context=LIVES) as pool:
            done = sum(pool.map(lives.increment, [path] * 8, [counter.id] * 8, [turns] * 8))
        result.expect(store.get(counter.id).content == str(done), "an addition is lost")
    result.tries = done
    return result


def killed_workers(folder, tries):
    """A worker under a lease is killed in mid-work; its job is done once, by another one."""
    result = Result("workers under a lease that are killed")
    for number in range(tries):
        with asserting(result, f"{number}"):
            place = str(folder / f"{number}.db")
            check_servers(place, servers(place, random.Random(number)))
        result.tries += 1
    return result


def killed_servers(folder, tries):
    """Of two HTTP servers on one store one is killed under its clients; nothing acknowledged is lost."""
    result = Result("HTTP servers that are killed under their clients")
    for number in range(tries):
        place = folder / str(number)
        place.mkdir()
        with asserting(result, f"{number}"):
            store = str(place / "memory.db")
            check_serving(store, *serving(store, place, random.Random(number)))
        result.tries += 1
    return result


_FORKING = """
import os, sys
from commonplace import open
with open(sys.argv[1], embedder=None) as memory:
    memory.remember("before the fork")
    children = []
    for child in range(4):
        pid = os.fork()
        if not pid:
            for number in range(5):
                memory.remember(f"child {child} number {number}")
            os._exit(0)
        children.append(pid)
        memory.remember(f"parent {child}")
    sys.exit(any(os.waitpid(pid, 0)[1] for pid in children))
"""


def forks(folder, tries):
    """A process forks while it writes; its children and itself lose nothing."""
    result = Result("processes that fork while they write")
    for number in range(tries):
        path = str(folder / f"{number}.db")
        done = subprocess.run([sys.executable, "-c", _FORKING, path], capture_output=True, timeout=120, check=False)
        result.expect(done.returncode == 0, done.stderr.decode()[-300:])
        from commonplace import open as open_memory  # noqa: PLC0415 - it would hide the built-in one

        with open_memory(path, embedder=None) as memory:
            held = len(memory.list(limit=100))
        result.expect(held == 25, f"{number}: {held} of 25 records")
        result.tries += 1
    return result


def clock_jumps(folder, tries):
    """The clock jumps by up to 400 days, back and forth, between writes; nothing is lost or expires unasked."""
    from datetime import timedelta  # noqa: PLC0415

    result, chance, now = (
        Result("clocks that jump between writes"),
        random.Random(4),
        [datetime(2026, 6, 1, tzinfo=UTC)],
    )
    from commonplace import open as open_memory  # noqa: PLC0415 - it would hide the built-in one

    with open_memory(str(folder / "memory.db"), clock=lambda: now[0], embedder=None) as memory:
        ids = [memory.remember(f"text {number}").record.id for number in range(10)]
        for number in range(tries):
            now[0] += timedelta(days=chance.uniform(-400, 400))
            now[0] = max(datetime(1971, 1, 1, tzinfo=UTC), min(now[0], datetime(2200, 1, 1, tzinfo=UTC)))
            with asserting(result, f"jump {number}"):
                memory.update(ids[number % 10], content=f"text {number % 10} at {number}")
                result.expect(memory.recall(f"text {number % 10}").hits, f"jump {number}: nothing is found")
                result.expect(len(memory.list(limit=50)) == 10, f"jump {number}: a record is gone")
            result.tries += 1
    return result


_ANSWERS = """
import json, sys
from commonplace import open_app
with open_app() as app:
    questions = json.loads(sys.stdin.read())
    found = [[(hit.id, hit.score) for hit in app.memory.recall(one, count=False).hits] for one in questions]
print(json.dumps(found))
"""


def determinism(folder, tries):
    """The same questions in other processes, with other hash seeds, and of a backup have the same answers."""
    result, world = Result("answers in other processes and of a backup"), World(folder)
    with open_app(str(world.project), env=world.env) as app:
        for number in range(120):
            text = f"The {number % 7} service number {number} uses database {number % 11}"
            app.memory.remember(text, category="decisions")
    questions = [f"which service uses database {number}?" for number in range(20)]
    first = _answers(world, questions, {})
    world.ok("backup", str(folder / "backup.db"))
    for number in range(tries):
        seed = {"PYTHONHASHSEED": str(number + 1)}
        if number % 2:
            seed["COMMONPLACE_STORE"] = str(folder / "backup.db")
        result.expect(_answers(world, questions, seed) == first, f"answers differ: {seed}")
        result.tries += len(questions)
    return result


def _answers(world, questions, env):
    import json  # noqa: PLC0415

    done = subprocess.run(
        [sys.executable, "-c", _ANSWERS], input=json.dumps(questions).encode(), cwd=world.project,
        env=world.env | env, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def hostile_questions(folder, tries):
    """Questions of any characters: an answer or a sentence, never anything else."""
    from commonplace import open as open_memory  # noqa: PLC0415 - it would hide the built-in one

    result, chance = Result("hostile questions"), random.Random(6)
    pieces = ["\0", "'", '"', "*", "(", ")", "NEAR", " OR ", "-", "^", ":", "%", "\\", "\u202e", "\ud800", "🦉"]
    pieces += [
        "{",
        "}",
        "--",
        ";",
        "drop table record",
        "2026-13-99",
        "last year",
        "a" * 300,
        "日本",
        "\n",
        "\x1b[0m",
        "!",
    ]
    with open_memory(str(folder / "memory.db")) as memory:
        for number in range(30):
            memory.remember(f"The owl number {number} lives in tree {number % 5}")
        for _ in range(tries):
            question = "".join(
                chance.choice(pieces) if chance.random() < 0.7 else chr(chance.randrange(0x11_0000))
                for _ in range(chance.randrange(1, 12))
            )
            with asserting(result, repr(question)), contextlib.suppress(InvalidInput):
                memory.recall(question, count=False)
            result.tries += 1
    return result


def _postgres_home():
    address = os.environ[POSTGRES]
    join = "&" if "?" in address else "?"
    return lambda: f"{address}{join}schema=faults_{os.getpid()}_{next(_SCHEMAS)}"


def cut_connections(_folder, tries):
    """Writers on PostgreSQL whose connections are cut all the time: nothing acknowledged is lost."""
    import psycopg  # noqa: PLC0415 - an extra

    result, home = Result("connections to PostgreSQL that are cut"), _postgres_home()
    path = home()
    opened(path).close()
    cutting = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid()"
        " and datname = current_database() and backend_type = 'client backend'"
    )
    sure = set()
    with closing(opened(path)) as store, psycopg.connect(os.environ[POSTGRES], autocommit=True) as other:
        while result.tries < tries:
            cut = other.execute(cutting).fetchone()[0]
            record = lives.plain(f"write {result.tries} ")
            with contextlib.suppress(CommonplaceError):
                store.apply([lives.put(record)])
                sure.add(record.id)
            result.tries += max(1, cut)
        held = state(store).keys()
        result.expect(sure <= held, f"{len(sure - held)} acknowledged writes are gone")
        result.expect(unhealthy(store) == [], "the store is not sound")
    result.note = f"{len(sure)} acknowledged writes"
    return result


#: Each row: what it is called, what does it, the small count and the full one.
ROWS = {
    "kills": (killed_writers, 20, 5_000),
    "commands": (killed_commands, 7, 500),
    "workers": (killed_workers, 2, 50),
    "servers": (killed_servers, 1, 22),
    "power": (power_cuts, 200, 100_000),
    "calls": (failed_calls, 41, 1),  # every so many calls
    "damage-read": (reads_of_damaged_files, 30, 2_000),
    "damage-repair": (repairs_of_damaged_files, 15, 2_000),
    "logs": (lost_ends_of_logs, 8, 400),
    "replaced": (replaced_stores, 8, 400),
    "readers": (readers_under_a_held_lock, 1, 40),
    "read-only": (reads_of_read_only_places, 1, 20),
    "edits": (edits_against_writers, 200, 10_000),
    "edits-portable": (lambda folder, tries: edits_against_writers(folder, tries, portable=True), 100, 10_000),
    "crowds": (crowds, 5, 600),  # seconds
    "counters": (counters, 80, 2_000),
    "forks": (forks, 2, 200),
    "clocks": (clock_jumps, 50, 10_000),
    "determinism": (determinism, 3, 60),
    "questions": (hostile_questions, 1_000, 1_000_000),
}
ON_POSTGRES = {
    "postgres-kills": (lambda folder, tries: killed_writers(folder, tries, _postgres_home()), 20, 1_000),
    "postgres-crowds": (lambda folder, tries: crowds(folder, tries, _postgres_home()), 5, 600),
    "postgres-cuts": (cut_connections, 20, 2_000),
}
NOT_SCALED = ("calls",)  # their number is a stride, not a count


def say(line):
    """Print a line at once: a row may take an hour."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def table(results, command, seconds):
    """The results as Markdown."""
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    head = f"{datetime.now(UTC):%Y-%m-%d}, revision {revision.stdout.strip()}, `{command}`, {seconds / 60:.0f} minutes"
    lines = [head, "", "| row | fault | tries | violations | note |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {one.fault} | {one.tries:,} | {len(one.violations)} | {one.note} |"
        for name, one in results.items()
    ]
    return "\n".join(lines)


def main(arguments):
    """Run the programme; return 1 if anything was violated."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description="Do every fault to a real memory, and count.")
    parser.add_argument("--full", action="store_true", help="the full counts; takes hours")
    parser.add_argument("--counts", type=float, help="a share of the full counts, such as 0.05")
    parser.add_argument("--only", action="append", default=[], metavar="ROW", help="only rows whose name begins so")
    parser.add_argument("--output", metavar="FILE", help="write the table here too, after each row")
    asked = parser.parse_args(arguments)
    rows = ROWS | (ON_POSTGRES if os.environ.get(POSTGRES) else {})
    chosen = {name: row for name, row in rows.items() if not asked.only or name.startswith(tuple(asked.only))}
    if not chosen:
        parser.error(f"there is no such row; there are {', '.join(rows)}")
    results, start, command = {}, time.monotonic(), " ".join(["scripts/faults", *arguments])
    for name, (function, small, full) in chosen.items():
        share = 1.0 if asked.full else asked.counts
        tries = small if share is None else full if name in NOT_SCALED else max(1, round(full * share))
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            result = Result(name)
            with asserting(result, "the row itself"):
                result = function(Path(folder), tries)
        results[name] = result
        took = f"{time.monotonic() - began:.0f} s"
        say(f"{name}: {result.tries:,} tries, {len(result.violations)} violations, {took} {result.note}")
        for violation in result.violations[:5]:
            say(f"    {violation}")
        if asked.output:
            Path(asked.output).write_text(table(results, command, time.monotonic() - start) + "\n")
    say("\n" + table(results, command, time.monotonic() - start))
    if not os.environ.get(POSTGRES):
        say(f"\nNot run: {', '.join(ON_POSTGRES)}; use `scripts/postgres run scripts/faults`.")
    return int(any(result.violations for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
