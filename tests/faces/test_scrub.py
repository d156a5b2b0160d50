"""``scrub``: secrets that were stored before a rule knew them, found and replaced wherever they are."""

from __future__ import annotations

import pytest

from commonplace.app import copier_of, open_app
from commonplace.engine.scrubbing import BATCH, scrub
from commonplace.model.changes import AdoptEmbedder, Emit, Enqueue, Put, PutDocument
from commonplace.model.documents import DocumentKind
from commonplace.model.events import Event, EventKind
from commonplace.model.jobs import Job
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order, Query, Word
from commonplace.model.records import Channel, Kind, Source
from stands import words

CANARY = "ghp_" + "q7Rt2Yx9Lm" * 3 + "Kd4Wz8"
WORD = CANARY.lower()


@pytest.fixture
def plant(cli, make):
    """Store secrets past the gate, as an older version without a rule for them would have."""

    def plant():
        with open_app() as app:
            project = app.where.project
            record = make(f"Deploy with {CANARY}", scope=project, category="decisions", key=f"k {CANARY}",
                          value={"a": [CANARY]}, tags=frozenset({CANARY}), metadata={"aliases": [CANARY], CANARY: 1},
                          source=Source(channel=Channel.USER, ref=CANARY))  # fmt: skip
            first = app.store.apply([Put(record=record, terms=words(record.content))])[0].records[0]
            newer = first.replace(content="Deploy with make ship", key=None, value=None, tags=frozenset(), metadata={})
            app.store.apply([Put(record=newer, terms=words(newer.content), expect=1)])
            other = make(f"Push with {CANARY}", scope=project, category="decisions")
            app.store.apply([Put(record=other, terms=words(other.content))])
            session = make.document(f"s {CANARY}", scope=project, metadata={"cwd": CANARY})
            app.store.apply([PutDocument(document=session, **make.chunks(session, f"try {CANARY}", "bye"))])
            for kind in (DocumentKind.ARTIFACT, DocumentKind.EXTRACTION, DocumentKind.RECEIPT):
                text = f"- Use {CANARY}"
                document = make.document("MEMORY.md", scope=project, kind=kind, content=text, metadata={"t": text})
                app.store.apply([PutDocument(document=document)])
            app.store.apply([Enqueue(job=Job(scope=project, kind="extract", key=f"s {CANARY}", watermark=1))])
            event = Event(what=EventKind.ARCHIVED, at=make.clock(), scope=project, key=CANARY, detail={"v": CANARY})
            app.store.apply([Emit(event=event)])
            app.store.settle()
        taken = cli.home / "taken-down" / "s1.jsonl"
        taken.parent.mkdir(exist_ok=True)
        taken.write_text(f'{{"role": "user", "content": "try {CANARY}"}}\n')
        (cli.home / "hook.log").write_text(f"2026 claude-code {CANARY}\n")
        (cli.folder / "work/.commonplace/MEMORY.md").write_text(f"- Use {CANARY}\n")

    return plant


@pytest.fixture
def left(cli):
    """The files that hold the canary, in their bytes or in their names."""

    def left():
        files = [path for path in cli.folder.rglob("*") if path.is_file()]
        return [path.name for path in files if WORD.encode() in path.read_bytes().lower() or WORD in str(path).lower()]

    return left


def test_everything_is_found_and_replaced(cli, plant, left):
    """Records with their versions, documents, chunks, jobs, events, files, transcripts, logs and our own backups."""
    plant()
    cli.ok("backup")
    assert len(left()) > 5
    report = cli.ok("scrub", "--yes", "--json").json

    assert {one["kind"] for one in report["found"]} == {"github-pat"}
    assert (report["pending"], report["left"]) == (False, [])
    assert not left()
    assert not cli.ok("doctor").out.count("problem")


def test_a_second_run_finds_nothing(cli, plant):
    """What was replaced is not replaced again, and nothing else has changed."""
    plant()
    cli.ok("scrub", "--yes")
    before = cli.ok("export").out
    report = cli.ok("scrub", "--yes", "--json").json

    assert (report["found"], report["rewritten"]) == ([], 0)
    assert cli.ok("export").out == before


def test_a_dry_run_names_kinds_and_places_and_changes_nothing(cli, plant, left):
    """The secret itself is never printed."""
    plant()
    before = sorted(left())
    done = cli("scrub", "--dry-run")

    assert done.code == 1
    assert "version 1: content: 1 secret (github-pat)" in done.out
    assert WORD not in (done.out + done.err).lower()
    assert sorted(left()) == before


def test_a_clean_store_has_nothing_to_replace(cli, pnpm):
    """And says so with the exit code of success."""
    report = cli.ok("scrub", "--dry-run", "--json").json
    assert report["found"] == []
    assert cli.get(pnpm["id"])["content"] == pnpm["content"]


def test_without_a_terminal_it_asks_for_a_yes(cli, plant, left):
    """It cannot be undone."""
    plant()
    before = sorted(left())
    assert "--yes says yes" in cli("scrub").err
    assert sorted(left()) == before


@pytest.fixture
def planted(store, make):
    """A store of every sort, with secrets in it."""
    for number in range(3):
        store.apply([make.put(make(f"{number} with {CANARY}", key=f"k{number}"), vector=None)])
    session = make.document("s1")
    store.apply([PutDocument(document=session, **make.chunks(session, f"try {CANARY}", "bye"))])
    return store


def test_every_store_is_scrubbed(planted, make):
    """The index finds the words that are left and not the secret; a record keeps its id, its version and its use."""
    before = planted.find(make.where(), order=Order.ID, limit=9)
    done = scrub(copier_of(planted), secret=bytes)
    after = planted.find(make.where(), order=Order.ID, limit=9)

    assert (done.rewritten, len(done.found)) == (4, 4)
    assert [(one.id, one.version, one.created_at) for one in after] == [
        (one.id, one.version, one.created_at) for one in before
    ]
    assert all("[secret:github-pat:" in one.content for one in after)
    assert not planted.match(make.where(), Query(text=WORD, words=(Word(text=WORD, terms=((WORD,),)),)), limit=9)
    assert scrub(copier_of(planted), secret=bytes).found == ()


def test_the_vectors_of_old_words_go_and_others_stay(store, make):
    """A vector is made of the words, so it goes with them; it is made anew with the next embedding."""
    identity = EmbedderIdentity(name="compass", dimensions=2)
    store.apply([AdoptEmbedder(identity=identity)])
    store.apply([make.put(make(f"with {CANARY}"), vector=(1.0, 0.0)), make.put(make("without"), vector=(0.0, 1.0))])
    scrub(copier_of(store), secret=bytes)

    assert store.count_unembedded(identity) == 1
    assert [match.record.content for match in store.nearest(make.where(), (0.0, 1.0), limit=9)] == ["without"]


def test_an_interrupted_run_is_resumed(store, make):
    """Each batch is written as a whole; the next run finds the rest."""
    store.apply([make.put(make(f"{number} with {CANARY}")) for number in range(BATCH + 5)])

    class Stopped(Exception):
        """Somebody pressed Ctrl-C."""

    def stop(done, of):
        if (done, of) == (BATCH, BATCH + 5):
            raise Stopped

    with pytest.raises(Stopped):
        scrub(copier_of(store), secret=bytes, progress=stop)
    assert scrub(copier_of(store), secret=bytes).rewritten == 5


def test_no_record_loses_its_place_to_another_key(store, make):
    """Two keys that are equal without their secrets stay two records."""
    mark = scrub_mark(store, make)
    store.apply([make.put(make("first", key=f"key {CANARY}")), make.put(make("second", key=f"key {mark}"))])
    scrub(copier_of(store), secret=bytes)

    found = store.find(make.where(), order=Order.ID, limit=9)
    assert {one.content for one in found} >= {"first", "second"}
    assert len({one.key for one in found}) == len(found)


def scrub_mark(store, make):
    """What the canary is replaced by."""
    store.apply([make.put(make(CANARY, kind=Kind.EPISODIC))])
    scrub(copier_of(store), secret=bytes)
    [record] = store.find(make.where(kinds=frozenset({Kind.EPISODIC})), order=Order.ID, limit=1)
    return record.content
