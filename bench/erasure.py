"""Erasure by bytes: what is left of forgotten records and sessions, and what an old copy brings back.

    python bench/erasure.py [--count THINGS]      (default: 2000; three quarters records, one quarter sessions)

Each record has words of its own in its text, an earlier version, a tag, a key, a value, metadata and an alias; each
session in its name and its turns, from which facts are extracted and consolidated.  There are two backups, receipts and
a file for each record.  Half of all is forgotten: by id, by session, by source and by subject.  Then every byte of the
data folder and the project folder is searched for the words of what was forgotten, and old transcripts, an export, a
checkout and a backup are brought in.  The words of the other half have to be there still.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from measure import clean_env

from commonplace.app import App, open_app
from commonplace.config.paths import find
from commonplace.config.trust_registry import trust_new_project
from commonplace.engine.erasing import Target
from commonplace.engine.export_format import export_lines, read_export
from commonplace.engine.memory import with_binding
from commonplace.engine.transfer import import_items
from commonplace.learning.consolidate import consolidate_memory
from commonplace.learning.extract import extract_sessions
from commonplace.learning.opening import open_learning_workspace, open_workspace
from commonplace.model.errors import ErasedBefore
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Channel
from commonplace.records.erasure import forget, receipts
from commonplace.records.index import index
from commonplace.text.words import terms

LETTERS = "bcdfgjkmpqvwxz"  # no stem and no other form: a word stands in an index as it is
TOKEN = re.compile(rb"zq[bcdfgjkmpqvwxz]{10}")
BATCH = 100  # things that are forgotten with one call
ONE_BY_ONE = 20  # records that are forgotten each with a call of its own, to see how long one takes
VECTORS = 100  # whose bytes are searched for
ALL = 1_000_000


class Thing:
    """A record or a session, and the words that only it has."""

    def __init__(self, chance: random.Random) -> None:
        self.words = ["zq" + "".join(chance.choices(LETTERS, k=10)) for _ in range(8)]
        self.id = ""

    @property
    def tokens(self) -> set[bytes]:
        """Its words as bytes."""
        return {word.encode() for word in self.words}


class Bench:
    """A data folder, a project, and what is in them."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.project, self.home = folder, folder / "shop", folder / "home"
        self.env = {**clean_env(COMMONPLACE_HOME=str(self.home), USER="bench")}
        chance = random.Random(15)
        sessions = count // 4
        self.records = [Thing(chance) for _ in range(count - sessions)]
        self.sessions = [Thing(chance) for _ in range(sessions)]
        self.project.mkdir()
        (self.project / ".commonplace").mkdir()
        settings = "project: bench\nmemories:\n  enabled: true\n"
        (self.project / ".commonplace" / "config.yaml").write_text(settings, encoding="utf-8")
        place = find(str(self.project))
        assert place is not None
        trust_new_project(place, str(self.home))

    def open(self) -> App:
        """Open the memory of the project."""
        return open_app(str(self.project), env=self.env, embedder="local")

    # Making

    def fill(self) -> None:
        """Make everything, with a backup in the middle and one at the end."""
        with self.open() as app:
            for number, thing in enumerate(self.records):
                thing.id = _remember(app, number, thing)
            self._backup(app, "middle")
            for thing in self.records:
                app.memory.update(thing.id, content=f"Now {thing.words[6]} rules {thing.words[7]}")
        self._index_and_learn()
        with self.open() as app:
            self._backup(app, "end")
            shutil.copy(self.home / "backups" / "end.db", self.folder / "outside.db")
            scopes = frozenset(app.memory.binding.reads)
            lines = export_lines(app.store, scopes, now=app.clock())
            (self.folder / "export.jsonl").write_text("\n".join(lines), encoding="utf-8")
        shutil.copytree(self.project / ".commonplace", self.folder / "checkout")

    def _backup(self, app: App, name: str) -> None:
        (self.home / "backups").mkdir(exist_ok=True, mode=0o700)
        app.maintenance.backup(str(self.home / "backups" / f"{name}.db"))

    def _index_and_learn(self) -> None:
        transcripts = self.folder / "transcripts"
        transcripts.mkdir()
        for thing in self.sessions:
            thing.id = f"talk-{thing.words[0]}"
            (transcripts / f"{thing.id}.jsonl").write_text(_transcript(thing), encoding="utf-8")
        with self.open() as app:
            index(open_workspace(app), [str(transcripts)])
            work = open_learning_workspace(app)
            waiting = [thing.id for thing in self.sessions]
            while waiting:
                done = extract_sessions(work, only=waiting, force=True)
                finished = {one.session for one in done.done} | set(done.empty)
                waiting = [name for name in waiting if name not in finished] if finished else []
            consolidate_memory(work)

    # Searching

    def left(self, erased: set[bytes]) -> dict[str, int]:
        """Count the erased words by the kind of file in which they still stand, in names of files too."""
        found: dict[str, int] = {}
        for kind, data in self._files():
            found[kind] = found.get(kind, 0) + len(erased.intersection(TOKEN.findall(data)))
        return found

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for folder in (self.home, self.project):
            for path in sorted(one for one in folder.rglob("*") if one.is_file()):
                yield _kind(path), path.read_bytes() + str(path).encode()

    def vectors_left(self, vectors: Sequence[bytes]) -> int:
        """Count the vectors of erased texts whose bytes still stand in a file."""
        return sum(any(vector in data for _, data in self._files()) for vector in vectors)


def _remember(app: App, number: int, thing: Thing) -> str:
    text, tag, key, value, note, alias = thing.words[:6]
    source = f"notes/{thing.words[0]}.md" if number % 3 == 0 else None
    saved = app.memory.remember(
        f"The {text} of the house is painted", category="decisions", tags=[tag], key=key, value={"colour": value},
        metadata={"note": note, "aliases": [alias]}, ref=source,
    )  # fmt: skip
    return saved.record.id


def _transcript(thing: Thing) -> str:
    said = [
        ("user", f"We decided to use the {thing.words[1]} database for {thing.words[2]}."),
        ("assistant", f"Noted, {thing.words[3]} it is, with {thing.words[4]}."),
        ("user", f"Always run {thing.words[5]} before you push to {thing.words[6]}."),
        ("assistant", f"I will, and {thing.words[7]} after that."),
    ]
    lines = [{"session": thing.id}, *({"role": role, "content": text} for role, text in said)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _kind(path: Path) -> str:
    if path.parent.name == "backups":
        return "our own backups"
    if path.name.startswith("commonplace.db"):
        return "database, log, index"
    return "files of the project" if ".commonplace" in path.parts else "other files of the data folder"


# Forgetting


def forget_half(bench: Bench) -> tuple[list[Thing], list[tuple[str, int, float]]]:
    """Forget every other thing in four ways; return what, and for each way how many with how many seconds."""
    records, sessions = bench.records[::2], bench.sessions[::2]
    third = len(records) // 3
    alone = min(ONE_BY_ONE, third)
    ways: list[tuple[str, list[Thing], Callable[[list[Thing]], Target], int]] = [
        ("by id, one at a time", records[:alone], _ids, 1),
        ("by id", records[alone:third], _ids, BATCH),
        ("by subject", records[third : third + third // 4], _subjects, BATCH),
        ("by source, else by id", records[third + third // 4 :], _sources, BATCH),
        ("by session", sessions, _names, BATCH),
    ]
    times = []
    for name, things, target, size in ways:
        began = time.perf_counter()
        for at in range(0, len(things), size):
            with bench.open() as app:
                forget(app, app.memory, target(things[at : at + size]))
        times.append((name, len(things), time.perf_counter() - began))
    return [*records, *sessions], times


def _ids(things: list[Thing]) -> Target:
    return Target(ids=frozenset(thing.id for thing in things))


def _subjects(things: list[Thing]) -> Target:
    return Target(subjects=tuple(frozenset(terms(thing.words[5])) for thing in things))


def _sources(things: list[Thing]) -> Target:
    sources = frozenset(f"notes/{thing.words[0]}.md" for thing in things)
    return _ids(things).replace(sources=sources)


def _names(things: list[Thing]) -> Target:
    return Target(sessions=frozenset(thing.id for thing in things))


# Coming back


def held(app: App) -> set[bytes]:
    """Return every word that the store answers with: records in any version and state, turns, artifacts, notes."""
    scopes = frozenset(app.memory.binding.reads)
    where = Filter(scopes=scopes, at=app.clock(), states=ANY_STATE, versions=True)
    documents = DocumentFilter(scopes=scopes)
    texts = [repr(one) for one in app.store.find(where, order=Order.ID, limit=ALL)]
    texts += [f"{one.name} {one.content} {one.metadata!r}" for one in app.store.documents(documents, limit=ALL)]
    texts += [one.text for one in app.store.chunks(documents, limit=ALL)]
    return set(TOKEN.findall("\n".join(texts).encode()))


def attempts(bench: Bench, erased: set[bytes], gone: Sequence[Thing]) -> Iterator[tuple[str, int, bool]]:
    """Bring in old copies; yield how many erased words the store answers with then, and whether it was said."""
    with bench.open() as app:
        report = index(open_workspace(app), [str(bench.folder / "transcripts")])
        yield "old transcripts, indexed again", len(held(app) & erased), _says(report.notes)
    copies = bench.folder / "copies"
    copies.mkdir()
    for number, path in enumerate(sorted((bench.folder / "transcripts").iterdir())):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (copies / f"copy-{number}.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    with bench.open() as app:
        report = index(open_workspace(app), [str(copies)])
        yield "the same under other names", len(held(app) & erased), _says(report.notes)
    with bench.open() as app, (bench.folder / "export.jsonl").open(encoding="utf-8") as lines:
        done = import_items(app.memory, read_export(lines, "export"))
        yield "an export, imported", len(held(app) & erased), _says(done.notes)
    with bench.open() as app:
        agent = with_binding(app.memory, app.binding.replace(channel=Channel.AGENT))
        refused = sum(_is_refused(agent, thing) for thing in gone if not thing.id.startswith("talk"))
        tried = sum(not thing.id.startswith("talk") for thing in gone)
        yield "an agent's own write", len(held(app) & erased), refused == tried
    with bench.open() as app:
        _, notes = app.restore(str(bench.folder / "outside.db"))
        yield "a backup, restored", len(held(app) & erased), _says(notes)
    shutil.copytree(bench.folder / "checkout", bench.project / ".commonplace", dirs_exist_ok=True)
    with bench.open() as app:
        notes = app.folders.refresh()
        yield "a checkout, synced", len(held(app) & erased), any("you have erased" in note for note in notes)


def _says(notes: Sequence[str]) -> bool:
    return any("not revived" in note for note in notes)


def _is_refused(agent: object, thing: Thing) -> bool:
    try:
        agent.remember(f"Now {thing.words[6]} rules {thing.words[7]}", category="decisions")  # type: ignore[attr-defined]  # a memory
    except ErasedBefore:
        return True
    return False


# The table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many records and sessions")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory(prefix="erasure-") as folder:
        return measure(Bench(Path(folder), count))


def measure(bench: Bench) -> int:
    """Fill, forget, search, bring back."""
    bench.fill()
    gone, stays = bench.records[::2] + bench.sessions[::2], bench.records[1::2] + bench.sessions[1::2]
    vectors = _vectors(bench, gone)
    erased, kept = (set().union(*(thing.tokens for thing in things)) for things in (gone, stays))
    before, vectors_before = bench.left(erased), bench.vectors_left(vectors)
    forgotten, times = forget_half(bench)
    assert {thing.id for thing in forgotten} == {thing.id for thing in gone}
    after, vectors_after = bench.left(erased), bench.vectors_left(vectors)
    with bench.open() as app:
        still, proofs = len(held(app) & kept), len(receipts(app.memory))
    made = f"{len(bench.records)} records and {len(bench.sessions)} sessions"
    print(f"{made}; forgotten: {len(gone)}, in {proofs} erasures\n")
    print(f"{'words of what was forgotten':<34}{'before':>9}{'after':>9}")
    for kind in before:
        print(f"  {kind:<32}{before[kind]:>9}{after.get(kind, 0):>9}")
    print(f"  {'vectors, of ' + str(len(vectors)):<32}{vectors_before:>9}{vectors_after:>9}")
    print(f"  {'words of the others, in the store':<32}{len(kept):>9}{still:>9}\n")
    for name, count, seconds in times:
        print(f"  forgotten {name:<26}{count:>6}{1000 * seconds / max(count, 1):>9.0f} ms each")
    print(f"\n{'brought back by':<34}{'words':>9}  said so")
    failed = sum(after.values()) + vectors_after + (still != len(kept))
    for name, words, said in attempts(bench, erased, gone):
        print(f"  {name:<32}{words:>9}  {'yes' if said else 'NO'}")
        failed += words + (not said)
    return 1 if failed else 0


def _vectors(bench: Bench, gone: Sequence[Thing]) -> list[bytes]:
    """Return the bytes of the vectors of some records that will be forgotten."""
    texts = [f"Now {thing.words[6]} rules {thing.words[7]}" for thing in gone if not thing.id.startswith("talk")]
    with bench.open() as app:
        assert app.embedder is not None
        return [array("f", vector).tobytes()[:64] for vector in app.embedder.embed(texts[:VECTORS])]


if __name__ == "__main__":
    sys.exit(main())
