"""Measure recall on a data set: keep its documents, ask its questions, see where the answers stand.

What is kept and asked goes through the verbs that everybody uses.  Beside each answer stands that of plain BM25, from
the same store in the same run: the order of the full-text score alone, without fusion and boosts.  The figures are pure
functions of a ranking and of what should be in it; the same data set gives the same figures, but for the times.
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
from commonplace.evaluation.datasets import Corpus, Passage, Question
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Tell, silent
from commonplace.model.queries import Filter, Hit
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.words import plan

CUTS = (1, 5, 10, 20)  # the k of R@k and hit@k
TOP = 10  # where NDCG and "all" are read off: what a recall brings back unless told otherwise
BUDGETS = (500, 1000, 2000, 4000)  # tokens
DEPTH = 200  # hits that are ranked for each question: more than fit the largest budget, unless they are very short
ALL = "all"
START = datetime(2000, 1, 1, tzinfo=UTC)  # when everything is said that has no date

#: Opens the memory of one scope, by its name and the clock that it lives by.
Opener: TypeAlias = Callable[[str, Clock], Memory]
#: What each thing in a memory was made from: ids of documents.
Origins: TypeAlias = Mapping[str, Sequence[str]]
Item = TypeVar("Item", Passage, Question)


class Answer(Value):
    """What came back for one question."""

    question: Question
    ranked: tuple[str, ...]  #: ids of documents, best first, each once
    bm25: tuple[str, ...]  #: the same by plain BM25
    budgets: Mapping[int, frozenset[str]]  #: the documents that fit so many tokens
    plain: frozenset[str]  #: the documents that a recall without options brings
    tokens: int  #: of such a recall
    cpu_ms: float  #: likewise
    notes: tuple[str, ...]  #: what the recall had to say besides


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
    answers: tuple[Answer, ...]
    index_cpu_ms: float  #: for each document
    redactions: int  #: secrets, or what looks like one, that were taken out of the documents

    @property
    def rows(self) -> list[Row]:
        """The figures, all questions first, then each category by name."""
        categories = sorted({answer.question.category for answer in self.answers})
        named = [(name, [one for one in self.answers if one.question.category == name]) for name in categories]
        return [row(ALL, self.answers), *(row(name, answers) for name, answers in named)]

    @property
    def notes(self) -> list[str]:
        """What somebody who reads the figures should know, as sentences."""
        known = [*self.corpus.notes, *dict.fromkeys(note for answer in self.answers for note in answer.notes)]
        if self.redactions:
            known.append(f"{self.redactions} times something that looks like a secret was taken out of a document")
        return known


# Running


class _Work:
    """How far an evaluation is, what it cost, and what time it is in the data set: it is the clock, too."""

    def __init__(self, corpus: Corpus, tell: Tell) -> None:
        sessions = {(passage.scope, passage.session) for passage in corpus.passages if passage.session}
        records = sum(passage.session is None for passage in corpus.passages)
        self.of = len(sessions) + records + len(corpus.questions)
        self.done = self.redactions = 0
        self.tell = tell
        self.cpu_ms = 0.0
        self.now = START
        self.latest: dict[str, datetime] = {}  # date of each scope

    def __call__(self) -> datetime:
        return self.now

    def step(self) -> None:
        """One more session, record or question is done."""
        self.done += 1
        self.tell(self.done, self.of)


def evaluate(corpus: Corpus, opened: Opener, *, tell: Tell = silent) -> Evaluation:
    """Keep every document, then ask every question; ``tell`` hears how far it is."""
    work = _Work(corpus, tell)
    kept: dict[str, Origins] = {}
    for scope, passages in _by_scope(corpus.passages).items():
        with opened(scope, work) as memory:
            kept[scope] = _keep(memory, passages, work)
    answers: list[Answer] = []
    for scope, questions in _by_scope(corpus.questions).items():
        with opened(scope, work) as memory:
            _warm(memory)
            for question in questions:
                work.now = question.date or work.latest[scope]
                answers.append(_ask(memory, question, kept[scope], work))
                work.step()
    cost = work.cpu_ms / len(corpus.passages)
    return Evaluation(corpus=corpus, answers=tuple(answers), index_cpu_ms=cost, redactions=work.redactions)


def _by_scope(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.scope, []).append(item)
    return found


def _keep(memory: Memory, passages: Sequence[Passage], work: _Work) -> Origins:
    """Keep one scope: turns are indexed by session, everything else is remembered as a record."""
    origins: dict[str, list[str]] = {}
    sessions: dict[str, list[Passage]] = {}
    began = time.process_time()
    for passage in passages:
        if passage.session is None:
            _remember(memory, passage, origins, work)
        else:
            sessions.setdefault(passage.session, []).append(passage)
    for name, turns in enumerate(sessions.values()):
        _index(memory, str(name), turns, origins, work)
    work.cpu_ms += _ms_since(began)
    work.latest[passages[0].scope] = max(passage.date or START for passage in passages)
    return origins


def _remember(memory: Memory, passage: Passage, origins: dict[str, list[str]], work: _Work) -> None:
    work.now = passage.date or work.now
    try:
        kept = memory.remember(_words(passage), occurred_at=passage.date)
    except InvalidInput as error:
        raise InvalidInput(f"document {passage.id!r} of scope {passage.scope!r} cannot be kept: {error}") from error
    origins.setdefault(kept.record.id, []).append(passage.id)
    work.redactions += len(kept.redactions)
    work.step()


def _index(memory: Memory, name: str, passages: Sequence[Passage], origins: dict[str, list[str]], work: _Work) -> None:
    """Sessions and turns are numbered by us: a name of the data set's own might look like a secret."""
    work.now = passages[-1].date or work.now
    turns = [
        Turn(ref=str(at), text=one.text, speaker=one.speaker or "", occurred_at=one.date)
        for at, one in enumerate(passages)
    ]
    work.redactions += len(memory.index(DocumentKind.SESSION, name, turns).redactions)
    for at, passage in enumerate(passages):
        origins[f"{DocumentKind.SESSION}:{name}#{at}"] = [passage.id]
    work.step()


def _words(passage: Passage) -> str:
    return f"{passage.speaker}: {passage.text}" if passage.speaker else passage.text


def _warm(memory: Memory) -> None:
    """Open the file and load what is loaded once, so that no question pays for it."""
    memory.recall(ALL, count=False)


def _ask(memory: Memory, question: Question, origins: Origins, clock: Clock) -> Answer:
    """Ask as everybody does, which is timed, then deeply, which is ranked."""
    began = time.process_time()
    plain = memory.recall(question.text, count=False)
    spent = _ms_since(began)
    deep = memory.recall(question.text, limit=DEPTH, count=False).hits
    where = Filter(scopes=frozenset(memory.binding.reads), at=clock(), chunks=True)
    matches = memory.store.match(where, plan(question.text), limit=DEPTH)
    matches.sort(key=lambda match: -match.score)
    return Answer(
        question=question,
        ranked=ranking([hit.id for hit in deep], origins),
        bm25=ranking([match.id for match in matches], origins),
        budgets={budget: frozenset(_fitting(deep, budget, origins)) for budget in BUDGETS},
        plain=frozenset(ranking([hit.id for hit in plain], origins)),
        tokens=sum(estimate_tokens(hit.text) for hit in plain),
        cpu_ms=spent,
        notes=plain.notes,
    )


def _fitting(hits: Sequence[Hit], budget: int, origins: Origins) -> tuple[str, ...]:
    return ranking([hit.id for hit in within(hits, budget)], origins)


def _ms_since(began: float) -> float:
    return (time.process_time() - began) * 1000


# Figures


def ranking(ids: Iterable[str], origins: Origins) -> tuple[str, ...]:
    """The documents behind what was found, each where it first stands: all pieces of one are one."""
    pieces = [piece.partition(".")[0] for piece in ids]
    return tuple(dict.fromkeys(document for piece in pieces for document in origins[piece]))


def share(found: Collection[str], gold: Collection[str]) -> float:
    """How much of what answers the question was found."""
    return sum(answer in found for answer in gold) / len(gold)


def ndcg(ranked: Sequence[str], gold: Collection[str]) -> float:
    """How much of the best possible order there is: an answer counts less the lower it stands."""
    gained = sum(1 / log2(place + 2) for place, document in enumerate(ranked) if document in gold)
    return gained / sum(1 / log2(place + 2) for place in range(min(len(gold), TOP)))


def reciprocal(ranked: Sequence[str], gold: Collection[str]) -> float:
    """One by the place of the first answer; nothing if there is none."""
    return next((1 / place for place, document in enumerate(ranked, start=1) if document in gold), 0.0)


def figures(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """Every figure of one ranking, by name."""
    shares = {k: share(ranked[:k], gold) for k in CUTS}
    found = {f"R@{k}": share for k, share in shares.items()} | {f"hit@{k}": float(shares[k] > 0) for k in CUTS}
    found[f"all@{TOP}"] = float(shares[TOP] == 1)
    found[f"NDCG@{TOP}"] = ndcg(ranked[:TOP], gold)
    found["MRR"] = reciprocal(ranked, gold)
    return found


def row(category: str, answers: Sequence[Answer]) -> Row:
    """The means over some questions."""
    ours = [figures(answer.ranked, answer.question.gold) for answer in answers]
    plain = [figures(answer.bm25, answer.question.gold) for answer in answers]
    times = sorted(answer.cpu_ms for answer in answers)
    return Row(
        category=category,
        questions=len(answers),
        recall=_means(ours),
        bm25=_means(plain),
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


def _means(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: mean([one[name] for one in each]) for name in each[0]}


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


def half_width(values: Sequence[float]) -> float:
    """How far from the mean of these the true one may well lie (95 %), had other questions been drawn."""
    middle = mean(values)
    return 1.96 * sqrt(sum((value - middle) ** 2 for value in values)) / len(values)


# For programs


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Everything that was measured."""
    corpus = evaluation.corpus
    return {
        "file": corpus.name,
        "documents": len(corpus.passages),
        "scopes": len({passage.scope for passage in corpus.passages}),
        "questions": len(corpus.questions),
        "index_cpu_ms": evaluation.index_cpu_ms,
        "categories": [_row_json(each) for each in evaluation.rows],
        "answers": [_answer_json(answer) for answer in evaluation.answers],
        "notes": evaluation.notes,
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {field: getattr(row, field) for field in Row.fields}


def _answer_json(answer: Answer) -> dict[str, Any]:
    asked = answer.question
    return {
        "id": asked.id,
        "scope": asked.scope,
        "category": asked.category,
        "question": asked.text,
        "places": places(answer.ranked, asked.gold),
        "bm25_places": places(answer.bm25, asked.gold),
        "tokens": answer.tokens,
        "cpu_ms": answer.cpu_ms,
    }


def places(ranked: Sequence[str], gold: Iterable[str]) -> dict[str, int | None]:
    """Where each answer stands, from 1; None if it was not found."""
    standing = {document: place for place, document in enumerate(ranked, start=1)}
    return {document: standing.get(document) for document in gold}
