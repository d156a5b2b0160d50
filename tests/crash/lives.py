"""What the crash tests share: plain records, the state of a store, its health, and processes that can be killed."""

import contextlib
import multiprocessing
import os
import random
import time
from datetime import UTC, datetime, timedelta

from commonplace.app import maintenance_of, open_store
from commonplace.model.changes import AdoptEmbedder, Delete, Enqueue, Finish, Put, Supersede
from commonplace.model.errors import Conflict, LeaseLost
from commonplace.model.ids import new_id
from commonplace.model.jobs import Claim, Job, Reason
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import ANY_STATE, Filter, Order, Query, Word
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope

ADA = Scope.parse("user:ada")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Filter(scopes=frozenset({ADA}), at=NOW, states=ANY_STATE)
DIMENSIONS = 8
LEASE_SECONDS = 0.5  # so long a job is a dead worker's

#: Processes are forked from a clean one that has loaded all this already: they start in milliseconds and share nothing.
LIVES = multiprocessing.get_context("forkserver")
LIVES.set_forkserver_preload(["lives"])

#: What hangs on records in a file, beside the index, and maintenance does not check: every row of the first must be in
#: the second, and the other way round.
_LINKS = {
    "tags": (
        "select record, tag from tag",
        "select r.row, t.value from record r, json_each(r.tags) t",
    ),
    "parents": (
        "select record, parent from parent",
        "select distinct r.row, p.value from record r, json_each(r.parents) p",
    ),
    "vectors": (
        "select entry, bucket from vector",
        "select e.id, e.bucket from entry e where e.id in (select entry from vector)",
    ),
}


def _file_torn(store):
    with store.using() as connection:
        for what, pair in _LINKS.items():
            rows, expected = (sorted(connection.execute(sql)) for sql in pair)
            if rows != expected:
                yield f"the {what} do not agree with the records"


def _taken_turn(store):
    with store.writing():
        pass


#: How each sort of store ends what a dead process has begun: a file is scrubbed, a server is waited for.
SETTLES = {"SqliteStore": lambda store: store.scrub(), "PostgresStore": _taken_turn}
#: What is looked at beside what maintenance checks.
LOOKS = {"SqliteStore": _file_torn, "PostgresStore": lambda _store: ()}


def settled(store):
    """Come back when nothing that a dead process has begun is under way any more."""
    SETTLES[type(store).__name__](store)


def plain(text, **fields):
    """A record that says this."""
    given = {"scope": ADA, "kind": Kind.SEMANTIC, "trust": Trust.USER, "source": Source(channel=Channel.USER)}
    return Record(content=text, **given | {"id": new_id(NOW), "created_at": NOW, "updated_at": NOW} | fields)


def put(record, **options):
    """The change that keeps it, with a vector made of its text."""
    vector = [float(len(record.content) % (number + 2)) for number in range(DIMENSIONS)]
    return Put(record=record, terms=tuple(record.content.split()), **{"vector": vector} | options)


def opened(place):
    """The store at that path or address, ready for vectors."""
    store = open_store(os.fspath(place))
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="lengths", dimensions=DIMENSIONS))])
    return store


def state(store):
    """All that a store says, by id: version, text, and what it was replaced by."""
    records = store.find(EVERYTHING, order=Order.ID, limit=-1)
    return {record.id: (record.version, record.content, record.superseded_by) for record in records}


def unhealthy(store):
    """Whatever is torn: rows and their hashes, index, statistics, tags, parents, vectors."""
    found = [problem.what for problem in maintenance_of(store).check()]
    return [*found, *LOOKS[type(store).__name__](store)]


def step(chance, known):
    """A random change to a store in a known state, and what it makes of that state."""
    text = f"{chance.randrange(10**9)} " + "word " * chance.randrange(1, 60)
    living = sorted(name for name, (_, _, successor) in known.items() if successor is None)
    new = plain(text, tags=frozenset({"a", f"t{chance.randrange(9)}"}))
    made = {new.id: (1, text, None)}
    what = chance.choice(["put", "put", "update", "supersede", "delete"]) if len(living) > 3 else "put"
    if what == "put":
        return [put(new)], made
    name = chance.choice(living)
    version, content, _ = known[name]
    if what == "update":
        return [put(plain(text, id=name), expect=version)], {name: (version + 1, text, None)}
    if what == "supersede":
        return [put(new), Supersede(id=name, by=new.id, at=NOW, now=NOW)], made | {name: (version + 1, content, new.id)}
    return [Delete(where=EVERYTHING.replace(ids=frozenset({name})))], {name: None}


def after(known, made):
    """The state that follows; None is gone."""
    return {name: what for name, what in (known | made).items() if what is not None}


# What the processes do


def write_for_ever(path, seed, told):
    """Change a store at random, telling before each change what it will make, and after it that it is made."""
    store, chance, known = opened(path), random.Random(seed), {}
    while True:
        changes, made = step(chance, known)
        told.send((False, made))
        store.apply(changes)
        told.send((True, made))
        known = after(known, made)


def write_beside_others(path, seed, turns):
    """Make so many changes while others do the same, and return the state of what is one's own."""
    store, chance, known = opened(path), random.Random(seed), {}
    for _ in range(turns):
        changes, made = step(chance, known)
        store.apply(changes)
        known = after(known, made)
    store.close()
    return known


def read_beside_others(path, seconds):
    """Read and search over and over; return how often."""
    store, turns, end = opened(path), 0, time.monotonic() + seconds
    query = Query(text="word", words=(Word(text="word", terms=(("word",),)),))
    while time.monotonic() < end:
        assert all(record.content.endswith("word ") for record in store.find(EVERYTHING, order=Order.ID, limit=-1))
        assert all(match.coverage == 1 for match in store.match(EVERYTHING, query, limit=20))
        turns += 1
    store.close()
    return turns


def increment(path, name, turns):
    """Add one to a counter so many times, each time to the version that was seen."""
    store, done = opened(path), 0
    while done < turns:
        seen = store.get(name)
        with contextlib.suppress(Conflict):
            store.apply([put(seen.replace(content=str(int(seen.content) + 1)), expect=seen.version)])
            done += 1
    store.close()
    return done


def job(key):
    """A job of that key."""
    return Job(scope=ADA, kind="extract", key=key, watermark=1)


def claim_all(path, keys):
    """Claim these jobs, and return those that were got."""
    store, lease = opened(path), timedelta(hours=1)
    got = [key for key in keys if isinstance(store.claim(job(key), lease=lease, now=datetime.now(UTC)), Claim)]
    store.close()
    return got


def claim_and_wait(path, key, seconds, wire):
    """Claim a job for so long, say so, and publish when told to; say whether that was still allowed."""
    store = opened(path)
    claim = store.claim(job(key), lease=timedelta(seconds=seconds), now=datetime.now(UTC))
    wire.send("claimed")
    wire.recv()
    try:
        store.apply([put(plain("late word ")), Finish(claim=claim)])
        wire.send("published")
    except LeaseLost:
        wire.send("lost")
    store.close()


def work_off(path, keys, seconds):
    """Do all jobs, each under a lease of so many seconds, until none is left to do."""
    store, chance, left = opened(path), random.Random(os.getpid()), list(keys)
    while left:
        key = chance.choice(left)
        claim = store.claim(job(key), lease=timedelta(seconds=seconds), now=datetime.now(UTC))
        if isinstance(claim, Claim):
            time.sleep(chance.uniform(0, 0.03))  # where a model would think
            with contextlib.suppress(LeaseLost):
                store.apply([put(plain(f"{key} word ")), Finish(claim=claim)])
        elif claim.reason in (Reason.UP_TO_DATE, Reason.EXHAUSTED):
            left.remove(key)


# Servers: some write, some work


def ask_for_ever(place, seed, wire):
    """Leave something to learn from and a job for it, in one write, over and over; say each before and after it."""
    store, number = opened(place), 0
    while True:
        key = f"{seed}-{number}"
        wire.send((False, key))
        store.apply([put(plain(f"{key} said ", kind=Kind.EPISODIC)), Enqueue(job=job(key))])
        wire.send((True, key))
        number += 1
        time.sleep(0.002)


def work_for_ever(place, seconds):
    """Do whatever job is due, each under a lease of so many seconds: what is learned and the job's end in one write."""
    store, chance = opened(place), random.Random(os.getpid())
    while True:
        due = [one.job for one in store.jobs([ADA], now=datetime.now(UTC)) if one.done is None]
        for one in chance.sample(due, min(len(due), 5)):
            claim = store.claim(one, lease=timedelta(seconds=seconds), now=datetime.now(UTC))
            if isinstance(claim, Claim):
                time.sleep(chance.uniform(0, 0.01))  # where a model would think
                with contextlib.suppress(LeaseLost):
                    store.apply([put(plain(f"{one.key} learned ")), Finish(claim=claim, at=datetime.now(UTC))])
        time.sleep(0.005)


def servers(place, chance):
    """Two workers and a writer; one worker is killed in mid-work and comes again; returns what was surely asked for."""
    opened(place).close()
    wire, theirs = LIVES.Pipe(duplex=False)
    writer = _started(ask_for_ever, place, chance.randrange(10**9), theirs)
    workers = [_started(work_for_ever, place, LEASE_SECONDS) for _ in range(2)]
    theirs.close()
    sure = [_heard(wire) for _ in range(20)]
    time.sleep(chance.uniform(0, 0.2))
    workers[0].kill()
    workers[0].join()
    sure += [_heard(wire) for _ in range(20)]
    workers[0] = _started(work_for_ever, place, LEASE_SECONDS)
    time.sleep(chance.uniform(0, 0.1))
    writer.kill()
    writer.join()
    with contextlib.suppress(EOFError):
        while True:
            sure.append(_heard(wire))
    until_done(place)
    for worker in workers:
        worker.kill()
        worker.join()
    return sure


def _started(function, *given):
    process = LIVES.Process(target=function, args=given)
    process.start()
    return process


def _heard(wire):
    """The next thing that was said to be done."""
    while True:
        done, key = wire.recv()
        if done:
            return key


def until_done(place, seconds=30):
    """Come back when no job is due any more."""
    store, end = opened(place), time.monotonic() + seconds
    settled(store)
    while [one for one in store.jobs([ADA], now=datetime.now(UTC)) if one.done is None]:
        assert time.monotonic() < end, "jobs are left undone"
        time.sleep(0.02)
    store.close()


def check_servers(place, sure):
    """Nothing is lost, nothing done twice, and the store is sound."""
    store = opened(place)
    settled(store)
    said = [record.content.split() for record in store.find(EVERYTHING, order=Order.ID, limit=-1)]
    asked, learned = (sorted(key for key, what in said if what == word) for word in ("said", "learned"))
    assert set(sure) <= set(asked), "what was acknowledged is lost"
    assert learned == asked, "a job was not done, or done twice"
    assert len(asked) - len(sure) in (0, 1)  # the last one may have been made and not been told
    assert unhealthy(store) == []
    store.close()
    return len(asked)
