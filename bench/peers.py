"""Side by side with what a user would pick instead: the same texts, the same embedder, one run.

    python bench/peers.py [--limit CONVERSATIONS] locomo10.json              (default: 2 of the ten)

Every system keeps the turns of LoCoMo as "speaker: text", one conversation at a time, embeds them with the built-in
embedder of Commonplace, and is asked for ten.  Commonplace is measured twice: with the same texts as records, and with
the turns as sessions, as it keeps conversations.  CPU time of one question, its embedding included, and of keeping one
text.  What cannot be imported or started is left out, and a line says so.  Needs some of: langgraph,
langgraph-checkpoint-sqlite, mem0ai, chromadb.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Protocol

os.environ.update(ANONYMIZED_TELEMETRY="False", MEM0_TELEMETRY="False")  # before they are imported

from measure import cpu_ms, quantile

import commonplace
from commonplace.engine.transcripts import Turn
from commonplace.evaluation.datasets import DatasetQuestion, Passage, locomo
from commonplace.evaluation.measure import START, figures, mean
from commonplace.model.documents import DocumentKind
from commonplace.providers.local import DIMENSIONS, LocalEmbedder

TOP = 10
SHOWN = ("R@10", "NDCG@10", "hit@10")
EMBEDDER = LocalEmbedder()

Talk = tuple[Sequence[Passage], Sequence[DatasetQuestion]]  # one conversation


def embedded(texts: Sequence[str]) -> list[list[float]]:
    """Vectors as lists, which all of them take."""
    return [list(vector) for vector in EMBEDDER.embed(list(texts))]


class System(Protocol):
    """Something that keeps texts and finds some of them again; made anew for each conversation."""

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts."""

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best."""


def said(passage: Passage) -> str:
    """What peers keep."""
    return f"{passage.speaker}: {passage.text}"


# Commonplace


class Records:
    """Commonplace, each turn as a record."""

    def __init__(self, folder: str) -> None:
        self.now = START
        self.memory = commonplace.open(os.path.join(folder, "store.db"), clock=lambda: self.now, embedder=EMBEDDER)
        self.origins: dict[str, str] = {}

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts."""
        self.now = max(passage.date or START for passage in passages)
        for passage in passages:
            kept = self.memory.remember(said(passage), occurred_at=passage.date)
            self.origins.setdefault(kept.record.id, passage.id)

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best."""
        return [self.origins[hit.id] for hit in self.memory.recall(question, limit=TOP, count=False)]


class Sessions(Records):
    """Commonplace, each turn in its session."""

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts."""
        self.now = max(passage.date or START for passage in passages)
        sessions: dict[str, list[Passage]] = {}
        for passage in passages:
            sessions.setdefault(passage.session or "", []).append(passage)
        for name, turns in enumerate(sessions.values()):
            spoken = [
                Turn(ref=str(at), text=turn.text, speaker=turn.speaker or "", occurred_at=turn.date)
                for at, turn in enumerate(turns)
            ]
            self.memory.index(DocumentKind.SESSION, str(name), spoken)
            self.origins |= {f"{DocumentKind.SESSION}:{name}#{at}": turn.id for at, turn in enumerate(turns)}

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best; pieces of one turn are one."""
        hits = self.memory.recall(question, limit=TOP, count=False)
        return list(dict.fromkeys(self.origins[hit.id.partition(".")[0]] for hit in hits))


# Others


class LangGraphMemory:
    """LangGraph's store in memory."""

    def __init__(self, folder: str) -> None:  # noqa: ARG002 - the same for all
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415 - optional

        self.store: Any = InMemoryStore(index={"dims": DIMENSIONS, "embed": embedded, "fields": ["text"]})

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts."""
        for passage in passages:
            self.store.put(("bench",), passage.id, {"text": said(passage)})

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best."""
        return [found.key for found in self.store.search(("bench",), query=question, limit=TOP)]


class LangGraphSqlite(LangGraphMemory):
    """LangGraph's store in SQLite."""

    def __init__(self, folder: str) -> None:
        import sqlite3  # noqa: PLC0415 - optional

        from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - optional

        connection = sqlite3.connect(os.path.join(folder, "langgraph.db"), isolation_level=None)
        self.store = SqliteStore(connection, index={"dims": DIMENSIONS, "embed": embedded, "fields": ["text"]})
        self.store.setup()


class Mem0:
    """mem0 without inference, over qdrant in a folder."""

    def __init__(self, folder: str) -> None:
        os.environ["MEM0_DIR"] = os.path.join(folder, "mem0")
        os.environ.setdefault("OPENAI_API_KEY", "none")  # it makes a client, which is never asked
        from mem0 import Memory  # noqa: PLC0415 - optional

        place = {"path": os.path.join(folder, "qdrant"), "embedding_model_dims": DIMENSIONS, "on_disk": False}
        self.memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": place},
                "history_db_path": os.path.join(folder, "history.db"),
            }
        )
        self.memory.embedding_model = Mem0Embedder()

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts."""
        for passage in passages:
            self.memory.add(said(passage), user_id="bench", metadata={"turn": passage.id}, infer=False)

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best."""
        found = self.memory.search(question, top_k=TOP, filters={"user_id": "bench"}, threshold=0.0)
        return [each["metadata"]["turn"] for each in found["results"]]


class Mem0Embedder:
    """Our embedder as mem0 calls one."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - theirs
        """One text."""
        return embedded([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002
        """Many."""
        return embedded(texts)


class Chroma:
    """Chroma, persistent, cosine."""

    def __init__(self, folder: str) -> None:
        import chromadb  # noqa: PLC0415 - optional
        from chromadb.config import Settings  # noqa: PLC0415 - optional

        path = os.path.join(folder, "chroma")
        client = chromadb.PersistentClient(path=path, settings=Settings(anonymized_telemetry=False))
        self.kept: Any = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)

    def keep(self, passages: Sequence[Passage]) -> None:
        """Keep all texts, in one call: one by one it takes many times as long."""
        texts = [said(passage) for passage in passages]
        self.kept.add(ids=[passage.id for passage in passages], documents=texts, embeddings=embedded(texts))

    def ask(self, question: str) -> list[str]:
        """Return the ids of the ten that fit best."""
        [found] = self.kept.query(query_embeddings=embedded([question]), n_results=TOP)["ids"]
        return [str(id_) for id_ in found]


SYSTEMS: dict[str, Callable[[str], System]] = {
    "Commonplace, sessions": Sessions,
    "Commonplace, records": Records,
    "LangGraph InMemoryStore": LangGraphMemory,
    "LangGraph SqliteStore": LangGraphSqlite,
    "mem0, infer=False, qdrant local": Mem0,
    "Chroma, cosine": Chroma,
}


# Measuring


def measured(name: str, talks: Sequence[Talk]) -> tuple[list[dict[str, float]], list[float], float] | None:
    """The figures of each question, what each took, and what keeping a text took; nothing if it cannot be started."""
    found, times, spent = [], [], []
    for passages, questions in talks:
        with tempfile.TemporaryDirectory(prefix="commonplace-peers-", ignore_cleanup_errors=True) as folder:
            try:
                system = SYSTEMS[name](folder)
            except (ImportError, AttributeError, OSError, RuntimeError, ValueError) as error:
                print(f"left out: {name}: {type(error).__name__}: {error}", flush=True)
                return None
            spent.append(cpu_ms(lambda s=system, p=passages: s.keep(p)))
            system.ask("warm")
            for question in questions:
                ranked: list[str] = []
                times.append(cpu_ms(lambda s=system, q=question, r=ranked: r.extend(s.ask(q.text))))
                found.append(figures(ranked, question.gold))
    return found, times, sum(spent) / sum(len(passages) for passages, _ in talks)


def main() -> None:
    """Print one table."""
    limit, paths = 2, sys.argv[1:]
    if paths[:1] == ["--limit"] and len(paths) > 1:
        limit, paths = int(paths[1]), paths[2:]
    if len(paths) != 1:
        sys.exit(__doc__)
    with open(paths[0], encoding="utf-8") as file:
        corpus = locomo(file.read(), paths[0])
    scopes = list(dict.fromkeys(passage.scope for passage in corpus.passages))[:limit]
    talks = [
        (
            [one for one in corpus.passages if one.scope == scope],
            [one for one in corpus.questions if one.scope == scope],
        )
        for scope in scopes
    ]
    asked = sum(len(questions) for _, questions in talks)
    print(f"{len(talks)} conversations, {sum(len(kept) for kept, _ in talks)} turns, {asked} questions\n")
    rows = []
    for name in SYSTEMS:
        result = measured(name, talks)
        if result:
            found, times, each = result
            shares = [f"{mean([one[figure] for one in found]):.3f}".removeprefix("0") for figure in SHOWN]
            costs = [f"{quantile(times, 0.5):.1f}", f"{quantile(times, 0.95):.1f}", f"{each:.2f}"]
            rows.append(f"| {name} | {' | '.join([*shares, *costs])} |")
    print(f"\n| system | {' | '.join(SHOWN)} | CPU ms a question, p50 | p95 | CPU ms a text kept |")
    print("| --- |", " | ".join(["---"] * (len(SHOWN) + 3)), "|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
