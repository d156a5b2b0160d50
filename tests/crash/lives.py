"""What the crash tests share: plain records, the state of a store, its health, and processes that can be killed."""

import contextlib
import multiprocessing
import os
import random
import time
from datetime import UTC, datetime, timedelta

from commonplace.domain.changes import AdoptEmbedder, Delete, Finish, Put, Supersede
from commonplace.domain.errors import Conflict, LeaseLost
from commonplace.domain.ids import new_id
from commonplace.domain.jobs import Claim, Job, Reason
from commonplace.domain.ports import EmbedderIdentity
from commonplace.domain.queries import ANY_STATE, Filter, Order, Query, Word
from commonplace.domain.records import Channel, Kind, Record, Source, Trust
from commonplace.domain.scopes import Scope
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite_upkeep import SqliteKeeper

ADA = Scope.parse("user:ada")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Filter(scopes=frozenset({ADA}), at=NOW, states=ANY_STATE)
DIMENSIONS = 8

#: Processes are forked from a clean one that has loaded all this already: they start in milliseconds and share nothing.
LIVES = multiprocessing.get_context("forkserver")
LIVES.set_forkserver_preload(["lives"])

#: What hangs on records beside the index: every row of the first must be in the second, and the other way round.
LINKS = {
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


def plain(text, **fields):
    """A record that says this."""
    given = {"scope": ADA, "kind": Kind.SEMANTIC, "trust": Trust.USER, "source": Source(channel=Channel.USER)}
    return Record(content=text, **given | {"id": new_id(NOW), "created_at": NOW, "updated_at": NOW} | fields)


def put(record, **options):
    """The change that keeps it, with a vector made of its text."""
    vector = [float(len(record.content) % (number + 2)) for number in range(DIMENSIONS)]
    return Put(record=record, terms=tuple(record.content.split()), **{"vector": vector} | options)


def opened(path):
    """The store at that path, ready for vectors."""
    store = SqliteStore(os.fspath(path))
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="lengths", dimensions=DIMENSIONS))])
    return store


def state(store):
    """All that a store says, by id: version, text, and what it was replaced by."""
    records = store.find(EVERYTHING, order=Order.ID, limit=-1)
    return {record.id: (record.version, record.content, record.superseded_by) for record in records}


def unhealthy(store):
    """Whatever is torn: rows and their hashes, index, statistics, tags, parents, vectors."""
    found = [problem.what for problem in SqliteKeeper(store).check()]
    with store.using() as connection:
        for what, pair in LINKS.items():
            rows, expected = (sorted(connection.db.execute(sql)) for sql in pair)
            if rows != expected:
                found.append(f"the {what} do not agree with the records")
    return found


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
