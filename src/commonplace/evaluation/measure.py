"""Measure recall on a data set: store its documents, ask its questions, see where the answers rank.

Documents and questions go through the verbs that everybody uses.  Plain BM25 (the order of the full-text score alone,
without fusion and boosts) is measured on the same store in the same run.  The figures are pure functions of a ranking
and its answers: the same data set gives the same figures, except for times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import log2, sqrt
from typing import Any, TypeAlias, TypeVar

from commonplace.engine.memory import Memory
from commonplace.engine.ranking import within
from commonplace.engine.transcripts import Turn
from commonplace.evaluation.datasets import Corpus, DatasetQuestion, Passage
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, ProgressCallback, no_progress
from commonplace.model.queries import Filter
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.words import plan
from commonplace.wire import encode

CUTS = (1, 5, 10, 20)  # the k of R@k and hit@k
TOP = 10  # where NDCG and "all" are measured: the default limit of a recall
BUDGETS = (500, 1000, 2000, 4000)  # tokens
DEPTH = 200  # hits that are ranked for each question: more than fit the largest budget, unless they are very short
ALL = "all"
START = datetime(2000, 1, 1, tzinfo=UTC)  # of everything that has no date

#: Opens the memory of one scope, by its name and the clock that it lives by.
Opener: TypeAlias = Callable[[str, Clock], Memory]
#: What each thing in a memory was made from: ids of documents.
Origins: TypeAlias = Mapping[str, Sequence[str]]
Item = TypeVar("Item", Passage, DatasetQuestion)


class MeasuredAnswer(Value):
    """What came back for one question."""

    question: DatasetQuestion
    ranked: tuple[str, ...]  #: ids of documents, best first, each once
    bm25: tuple[str, ...]  #: the same by plain BM25
    budgets: Mapping[int, frozenset[str]]  #: the documents that fit so many tokens
    plain: frozenset[str]  #: the documents of a recall without options
    tokens: int  #: of such a recall
    cpu_ms: float  #: likewise
    notes: tuple[str, ...]  #: of the recall


class Row(Value):
    """The figures of one category, as means over its questions."""

    category: str
    questions: int
    recall: Mapping[str, float]  #: by name, such as R@10
    bm25: Mapping[str, float]  #: the same by plain BM25
    half_width: float  #: of R@10: 95 of 100 such samples of questions lie within it
    budgets: Mapping[int, float]  #: share of the answers within so many tokens
    plain: float  #: share of the answers in a recall without options, whose hits may be pieces of one document
    tokens: float  #: of such a recall
    cpu_ms_p50: float
    cpu_ms_p95: float


class Evaluation(Value):
    """What was measured."""

    corpus: Corpus
    answers: tuple[MeasuredAnswer, ...]
    index_cpu_ms: float  #: for each document
    redactions: int  #: secrets, or what looks like one, that were taken out of the documents

    @property
    def rows(self) -> list[Row]:
        """The figures: all questions first, then each category by name."""
        categories = sorted({answer.question.category for answer in self.answers})
        named = [(name, [one for one in self.answers if one.question.category == name]) for name in categories]
        return [_row(ALL, self.answers), *(_row(name, answers) for name, answers in named)]

    @property
    def scopes(self) -> int:
        """How many scopes the documents are in."""
        return len({passage.scope for passage in self.corpus.passages})

    @property
    def notes(self) -> list[str]:
        """What a reader of the figures should know, as sentences."""
        known = [*self.corpus.notes, *dict.fromkeys(note for answer in self.answers for note in answer.notes)]
        if self.redactions:
            known.append(f"{self.redactions} times something that looks like a secret was taken out of a document")
        return known


# Running


class _Run:
    """One evaluation under way: its progress and cost, and the clock of the data set."""

    def __init__(self, corpus: Corpus, progress: ProgressCallback) -> None:
        documents = {(one.scope, one.session or one) for one in corpus.passages}  # a session counts once
        self.of = len(documents) + len(corpus.questions)
        self.done = self.redactions = 0
        self.progress = progress
        self.cpu_ms = 0.0
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def step(self) -> None:
        """Report that one more session, record or question is done."""
        self.done += 1
        self.progress(self.done, self.of)

    def store(self, memory: Memory, passages: Sequence[Passage]) -> Origins:
        """Store one scope: turns are indexed by session, everything else becomes a record."""
        origins: dict[str, list[str]] = {}
        sessions: dict[str, list[Passage]] = {}
        began = time.process_time()
        for passage in passages:
            if passage.session is None:
                self._remember(memory, passage, origins)
            else:
                sessions.setdefault(passage.session, []).append(passage)
        for number, turns in enumerate(sessions.values()):
            self._index(memory, str(number), turns, origins)
        self.cpu_ms += (time.process_time() - began) * 1000
        return origins

    def _remember(self, memory: Memory, passage: Passage, origins: dict[str, list[str]]) -> None:
        self.now = passage.date or self.now
        words = f"{passage.speaker}: {passage.text}" if passage.speaker else passage.text
        try:
            kept = memory.remember(words, occurred_at=passage.date)
        except InvalidInput as error:
            raise InvalidInput(f"document {passage.id!r} of scope {passage.scope!r} cannot be kept: {error}") from error
        origins.setdefault(kept.record.id, []).append(passage.id)
        self.redactions += len(kept.redactions)
        self.step()

    def _index(self, memory: Memory, name: str, passages: Sequence[Passage], origins: dict[str, list[str]]) -> None:
        """Index a session; it and its turns are numbered, since a name of the data set might look like a secret."""
        self.now = passages[-1].date or self.now
        turns = [
            Turn(ref=str(at), text=one.text, speaker=one.speaker or "", occurred_at=one.date)
            for at, one in enumerate(passages)
        ]
        self.redactions += len(memory.index(DocumentKind.SESSION, name, turns).redactions)
        origins |= {f"{DocumentKind.SESSION}:{name}#{at}": [one.id] for at, one in enumerate(passages)}
        self.step()

    def ask(self, memory: Memory, question: DatasetQuestion, origins: Origins) -> MeasuredAnswer:
        """Ask as everybody does, which is timed, then deeply, which is ranked."""
        began = time.process_time()
        plain = memory.recall(question.text, count=False)
        spent = (time.process_time() - began) * 1000
        deep = memory.recall(question.text, limit=DEPTH, count=False).hits
        where = Filter(scopes=frozenset(memory.binding.reads), at=self.now, chunks=True)
        matches = memory.store.match(where, plan(question.text), limit=DEPTH)
        matches.sort(key=lambda match: -match.score)
        self.step()
        return MeasuredAnswer(
            question=question,
            ranked=ranking([hit.id for hit in deep], origins),
            bm25=ranking([match.id for match in matches], origins),
            budgets={
                budget: frozenset(ranking([hit.id for hit in within(deep, budget)], origins)) for budget in BUDGETS
            },
            plain=frozenset(ranking([hit.id for hit in plain], origins)),
            tokens=sum(estimate_tokens(hit.text) for hit in plain),
            cpu_ms=spent,
            notes=plain.notes,
        )


def evaluate(corpus: Corpus, opened: Opener, *, progress: ProgressCallback = no_progress) -> Evaluation:
    """Store every document, then ask every question."""
    run = _Run(corpus, progress)
    origins: dict[str, Origins] = {}
    latest: dict[str, datetime] = {}
    for scope, passages in _by_scope(corpus.passages).items():
        with opened(scope, run) as memory:
            origins[scope] = run.store(memory, passages)
        latest[scope] = max(passage.date or START for passage in passages)
    answers: list[MeasuredAnswer] = []
    for scope, questions in _by_scope(corpus.questions).items():
        with opened(scope, run) as memory:
            memory.recall(ALL, count=False)  # no question pays for opening the file and for what is loaded once
            for question in questions:
                run.now = question.date or latest[scope]
                answers.append(run.ask(memory, question, origins[scope]))
    cost = run.cpu_ms / len(corpus.passages)
    return Evaluation(corpus=corpus, answers=tuple(answers), index_cpu_ms=cost, redactions=run.redactions)


def _by_scope(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.scope, []).append(item)
    return found


# Figures


def ranking(ids: Iterable[str], origins: Origins) -> tuple[str, ...]:
    """Return the documents behind what was found, each at its first place: all pieces of one are one."""
    pieces = [piece.partition(".")[0] for piece in ids]
    return tuple(dict.fromkeys(document for piece in pieces for document in origins[piece]))


def share(found: Collection[str], gold: Collection[str]) -> float:
    """Return how much of what answers the question was found."""
    return sum(answer in found for answer in gold) / len(gold)


def figures(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """Return every figure of one ranking, by name."""
    shares = {k: share(ranked[:k], gold) for k in CUTS}
    found = {f"R@{k}": share for k, share in shares.items()} | {f"hit@{k}": float(shares[k] > 0) for k in CUTS}
    found[f"all@{TOP}"] = float(shares[TOP] == 1)
    places = [place for place, document in enumerate(ranked, start=1) if document in gold]
    best = sum(1 / log2(place + 1) for place in range(1, min(len(gold), TOP) + 1))
    found[f"NDCG@{TOP}"] = sum(1 / log2(place + 1) for place in places if place <= TOP) / best
    found["MRR"] = 1 / places[0] if places else 0.0
    return found


def _row(category: str, answers: Sequence[MeasuredAnswer]) -> Row:
    """Return the means over some questions."""
    ours = [figures(answer.ranked, answer.question.gold) for answer in answers]
    plain = [figures(answer.bm25, answer.question.gold) for answer in answers]
    times = sorted(answer.cpu_ms for answer in answers)
    return Row(
        category=category,
        questions=len(answers),
        recall={name: mean([one[name] for one in ours]) for name in ours[0]},
        bm25={name: mean([one[name] for one in plain]) for name in plain[0]},
        half_width=half_width([each[f"R@{TOP}"] for each in ours]),
        budgets={
            budget: mean([share(answer.budgets[budget], answer.question.gold) for answer in answers])
            for budget in BUDGETS
        },
        plain=mean([share(answer.plain, answer.question.gold) for answer in answers]),
        tokens=mean([answer.tokens for answer in answers]),
        cpu_ms_p50=times[len(times) // 2],
        cpu_ms_p95=times[len(times) * 95 // 100],
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def half_width(values: Sequence[float]) -> float:
    """Return how far from the mean of these the true one may well lie (95 %), had other questions been drawn."""
    middle = mean(values)
    return 1.96 * sqrt(sum((value - middle) ** 2 for value in values)) / len(values)


# For programs


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return everything that was measured."""
    corpus = evaluation.corpus
    return {
        "file": corpus.name,
        "documents": len(corpus.passages),
        "scopes": evaluation.scopes,
        "questions": len(corpus.questions),
        "index_cpu_ms": evaluation.index_cpu_ms,
        "categories": encode(evaluation.rows),
        "answers": [_answer_json(answer) for answer in evaluation.answers],
        "notes": evaluation.notes,
    }


def _answer_json(answer: MeasuredAnswer) -> dict[str, Any]:
    asked = answer.question
    placed, bm25 = (
        {ref: ranked.index(ref) + 1 if ref in ranked else None for ref in asked.gold}
        for ranked in (answer.ranked, answer.bm25)
    )
    return {
        "id": asked.id, "scope": asked.scope, "category": asked.category, "question": asked.text, "places": placed,
        "bm25_places": bm25, "tokens": answer.tokens, "cpu_ms": answer.cpu_ms,
    }  # fmt: skip
