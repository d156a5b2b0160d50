"""A store with everything in it that a store can hold, and what it says as a whole."""

from __future__ import annotations

import json
import os
from datetime import timedelta

from commonplace.app import copier_of
from commonplace.engine.export_format import export_lines
from commonplace.model.changes import (
    AdoptEmbedder,
    Archive,
    DropScope,
    Enqueue,
    Fail,
    Finish,
    MarkConsolidated,
    PutDocument,
    PutFiles,
    SetVectors,
    Supersede,
    Touch,
)
from commonplace.model.documents import DocumentKind, FileState
from commonplace.model.items import digest
from commonplace.model.jobs import Job
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.records import Channel, Kind, Source
from commonplace.model.scopes import Scope

ADA, APP, PART, GONE = (Scope.parse(path) for path in ("user:ada", "project:app", "project:app/agent:one", "user:bob"))
ODD = "nul \0, one \1, both \1\2\0, 日本語, e\u0301, 🦉, 'quotes' \\ and\ttabs"
FOLDER = "/home/ada/app/.commonplace"


def furnish(store, make, *, records=30):
    """Put everything into a store: records in every state with their past and use, sessions, vectors, files, jobs."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=3))])
    kept = [_record(store, make, number) for number in range(records)]
    _change(store, make, kept)
    for scope in (ADA, APP):
        session = make.document(f"session {ODD[:4]}", scope=scope, content=None, metadata={"b": 1, "a": [ODD]})
        parts = make.chunks(session, "good morning", f"{ODD} again", "bye")
        store.apply([PutDocument(document=session, **parts, vectors={1: (0.0, 1.0, 0.0)})])
    artifact = make.document("MEMORY.md", kind=DocumentKind.ARTIFACT, content=ODD)
    store.apply([PutDocument(document=artifact)])
    states = tuple(FileState(path=f"{n}.md", record=kept[n].id, version=1, digest="d", stamp=n) for n in range(3))
    store.apply([PutFiles(folder=FOLDER, files=states)])
    _work(store, make)
    store.apply([make.put(make("gone", scope=GONE)), DropScope(scope=GONE)])
    return kept


def _record(store, make, number):
    now = make.clock.forward(timedelta(minutes=1))
    fields = {
        "scope": [ADA, APP, PART][number % 3 if number % 5 else 0],
        "kind": [Kind.SEMANTIC, Kind.EPISODIC][number % 2],
        "key": f"key {number}" if number % 4 == 0 else None,
        "tags": frozenset({"a", f"t{number % 3}", ODD} if number % 2 else ()),
        "metadata": {"aliases": ["x", ODD]} if number % 3 == 0 else {},
        "value": {"n": number, "f": 0.1, "none": None} if number % 6 == 0 else None,
        "expires_at": now + timedelta(days=1) if number % 7 == 0 else None,
        "occurred_at": now - timedelta(days=9) if number % 8 == 0 else None,
        "pinned": number % 9 == 0,
        "held": number % 11 == 10,
        "source": Source(channel=Channel.AGENT, ref=ODD if number % 2 else None),
    }
    vector = (float(number), 1.0, -2.0) if number % 4 else None
    put = make.put(
        make(f"the {number}th thing {ODD if number % 5 == 0 else ''}", **fields), vector=vector, emit=number % 3 == 0
    )
    return store.apply([put])[0].records[0]


def _change(store, make, kept):
    """Versions, ends, successors, use, marks, children."""
    for record in [record for record in kept[::3] if not record.held]:
        make.clock.forward()
        [outcome] = store.apply([make.update(record, content=f"{record.content} now")])
        store.apply([make.update(outcome.records[0], tags=frozenset({"later"}))])
    one, other = kept[4], kept[7]
    store.apply([Archive(where=make.anything(one.scope, ids=frozenset({one.id})), at=make.clock())])
    store.apply([Supersede(id=other.id, by=kept[8].id, at=make.clock(), now=make.clock())])
    store.apply([Touch(ids=(kept[1].id, kept[2].id), at=make.clock()), Touch(ids=(kept[1].id,), at=make.clock())])
    store.apply([MarkConsolidated(ids=(kept[1].id,), at=make.clock())])
    parents = Source(channel=Channel.CONSOLIDATION, parents=(kept[1].id, kept[2].id))
    store.apply([make.put(make("learned", source=parents))])
    coming = EmbedderIdentity(name="other", dimensions=2)
    listed = store.list_unembedded(coming, limit=5)
    store.apply([SetVectors(identity=coming, vectors={text.ref: (0.6, 0.8) for text in listed})])


def _work(store, make):
    """Jobs that wait, run, failed and are done."""
    for key, end in {"waits": None, "runs": "claim", "failed": Fail, "done": Finish}.items():
        job = Job(scope=ADA, kind="extract", key=key, watermark=3)
        store.apply([Enqueue(job=job)])
        claim = store.claim(job, lease=timedelta(hours=1), now=make.clock()) if end else None
        if end is Finish:
            store.apply([Finish(claim=claim, at=make.clock())])
        if end is Fail:
            store.apply([Fail(claim=claim, error=ODD, retry_at=make.clock.now + timedelta(hours=2), at=make.clock())])


def whole(store):
    """All that a store holds, in one number."""
    return digest(copier_of(store).items())


def export(store, now):
    """The lines of an export of everything."""
    scopes = frozenset(tally.scope for tally in store.census())
    return "\n".join(export_lines(store, scopes, now=now))


def answers(store, make, query):
    """What a store says when it is asked, in words that compare."""
    where = make.anything(ADA, APP, PART)
    found = store.match(where, query("thing"), limit=50)
    near = store.nearest(where, (1.0, 1.0, -2.0), limit=50)
    return json.dumps([[(match.id, round(match.score, 6)) for match in matches] for matches in (found, near)])


def address(schema):
    """The address of a store on the server for tests, in a schema of its own."""
    given = os.environ["COMMONPLACE_TEST_POSTGRES"]
    return f"{given}{'&' if '?' in given else '?'}schema={schema}"
