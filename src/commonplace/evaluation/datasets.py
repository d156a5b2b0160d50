"""Data sets to measure recall on: our own JSON Lines format, and the files of LoCoMo and LongMemEval.  Pure.

A data set has documents in separate scopes, and questions, each with the documents that answer it.  A mistake in a file
is one sentence with the file and the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.wire import decode, decode_known

SCOPE, CATEGORY = "main", "general"  # of what names none
POOL = "pool"  # the one scope of LongMemEval

#: LoCoMo numbers its categories; these are the names in its paper.
LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_LOCOMO_DATE = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023
_LOCOMO_TURN = r"D:?(\d+):(\d+)"  # D1:3, as well as the D:11:26, the D30:05 and the lists in one string that occur
_LONGMEMEVAL_DATE = "%Y/%m/%d (%a) %H:%M"  # 2023/05/20 (Sat) 02:21
_ABSTENTION = "_abs"  # ends the ids of questions that nothing answers


class Passage(Value):
    """One document: a turn of a session, or a record."""

    scope: str = SCOPE
    id: str  #: unique within the scope; questions refer to it
    text: str
    session: str | None = None  #: the session that it is a turn of; None: it is a record
    speaker: str | None = None
    date: datetime | None = None

    def _check(self) -> None:
        _check_texts(self)


class DatasetQuestion(Value):
    """One question, and the documents that answer it."""

    scope: str = SCOPE
    id: str
    text: str
    gold: tuple[str, ...]  #: ids of documents of the same scope
    category: str = CATEGORY
    date: datetime | None = None  #: when it is asked; None: after the last passage

    def _check(self) -> None:
        _check_texts(self)


class Corpus(Value):
    """A data set."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[DatasetQuestion, ...]
    notes: tuple[str, ...] = ()  #: what was left out, as sentences

    def _check(self) -> None:
        if not self.questions:
            raise InvalidInput(f"{self.name} asks nothing: it has no question with an answer in it")


def _check_texts(value: Passage | DatasetQuestion) -> None:
    Scope.of(("user", value.scope))  # which refuses what cannot be one
    for name in ("id", "text", "session", "speaker", "category"):
        text = getattr(value, name, None)
        if text is not None and not text.strip():
            raise InvalidInput(f"{name!r} is blank")
        if text is not None and not text.isascii() and re.search("[\ud800-\udfff]", text):
            raise InvalidInput(f"{name!r} holds half a character, a lone surrogate")


def sample(corpus: Corpus, count: int) -> Corpus:
    """Return so many of the questions, evenly spread over the file, and the scopes that they ask."""
    every = len(corpus.questions)
    if count >= every:
        return corpus
    chosen = tuple(corpus.questions[number * every // count] for number in range(count))
    scopes = {question.scope for question in chosen}
    passages = tuple(passage for passage in corpus.passages if passage.scope in scopes)
    return corpus.replace(passages=passages, questions=chosen)


# Our own format


class _QuestionLine(Value):
    scope: str = SCOPE
    id: str
    question: str
    gold: tuple[str, ...]
    category: str | None = None
    date: datetime | None = None
    answer: Any = None  # for people


def jsonl(text: str, name: str) -> Corpus:
    """Read our own format: one document or one question on each line."""
    found: dict[tuple[type, str, str], tuple[int, Passage | DatasetQuestion]] = {}
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            with _with_location(name, line):
                one = _line(row)
                key = (type(one), one.scope, one.id)
                if key in found:
                    what = "question" if isinstance(one, DatasetQuestion) else "document"
                    raise InvalidInput(f"{what} {one.id!r} of scope {one.scope!r} is there twice")
                found[key] = line, one
    questions = [(line, one) for line, one in found.values() if isinstance(one, DatasetQuestion)]
    for line, question in questions:
        for unknown in [ref for ref in question.gold if (Passage, question.scope, ref) not in found]:
            raise InvalidInput(f"{name}:{line}: {unknown!r} is not a document of scope {question.scope!r}")
    passages = tuple(one for _, one in found.values() if isinstance(one, Passage))
    return Corpus(name=name, passages=passages, questions=tuple(question for _, question in questions))


def _line(row: str) -> Passage | DatasetQuestion:
    if row.lstrip().startswith("["):
        raise InvalidInput("a list, not an object; if this is a file of LoCoMo or LongMemEval, use --format")
    data = json.loads(row)
    if not isinstance(data, dict) or "question" not in data:
        passage: Passage = decode(Passage, data)
        return passage
    line: _QuestionLine = decode(_QuestionLine, data)
    if not line.gold:
        raise InvalidInput("'gold' is empty: name at least one document that answers the question")
    return DatasetQuestion(
        scope=line.scope, id=line.id, text=line.question, gold=tuple(dict.fromkeys(line.gold)),
        category=line.category or CATEGORY, date=line.date,
    )  # fmt: skip


# LoCoMo


class _Locomo(Value):
    sample_id: str
    conversation: Mapping[str, Any]
    qa: tuple[Any, ...]


class _LocomoTurn(Value):
    dia_id: str
    text: str
    speaker: str
    blip_caption: str = ""  # of the picture that comes with the turn


class _LocomoQuestion(Value):
    question: str
    category: int
    evidence: tuple[str, ...]


def locomo(text: str, name: str) -> Corpus:
    """Read LoCoMo: a conversation is a scope, a turn a document, the evidence of a question its answer."""
    passages: list[Passage] = []
    questions: list[DatasetQuestion] = []
    for line, element in _elements(text, name):
        with _with_location(name, line):
            data = decode_known(_Locomo, element)
            turns = list(_locomo_turns(data))
            questions += _locomo_questions(data, {turn.id for turn in turns})
        passages += turns
    asked = tuple(question for question in questions if question.gold)
    notes = _note_left_out(len(questions) - len(asked), "without evidence")
    return Corpus(name=name, passages=tuple(passages), questions=asked, notes=notes)


def _locomo_turns(data: _Locomo) -> Iterator[Passage]:
    keys = [key for key in data.conversation if re.fullmatch(r"session_\d+", key)]
    for session in sorted(keys, key=lambda key: int(key.removeprefix("session_"))):
        if f"{session}_date_time" not in data.conversation:
            raise InvalidInput(f"'{session}_date_time' is missing")
        date = _date(data.conversation[f"{session}_date_time"], _LOCOMO_DATE)
        for row in decode(tuple[Any, ...], data.conversation[session], name=session):
            turn = decode_known(_LocomoTurn, row)
            text = f"{turn.text} [shares {turn.blip_caption}]".strip() if turn.blip_caption else turn.text
            if text.strip():
                yield Passage(
                    scope=data.sample_id, id=turn.dia_id, text=text, session=session, speaker=turn.speaker, date=date
                )


def _locomo_questions(data: _Locomo, turns: set[str]) -> Iterator[DatasetQuestion]:
    """Yield every question, with such of its evidence as names a turn."""
    for number, row in enumerate(data.qa):
        asked = decode_known(_LocomoQuestion, row)
        evidence = re.findall(_LOCOMO_TURN, " ".join(asked.evidence))
        gold = dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in evidence)
        yield DatasetQuestion(
            scope=data.sample_id, id=f"{data.sample_id}:{number}", text=asked.question,
            gold=tuple(ref for ref in gold if ref in turns),
            category=LOCOMO_CATEGORIES.get(asked.category, str(asked.category)),
        )  # fmt: skip


# LongMemEval


class _LongMemEval(Value):
    question_id: str
    question_type: str
    question: str
    question_date: str
    haystack_session_ids: tuple[str, ...]
    haystack_dates: tuple[str, ...]
    haystack_sessions: tuple[tuple[Any, ...], ...]


class _LongMemEvalTurn(Value):
    role: str
    content: str
    has_answer: Any = False


def longmemeval(text: str, name: str, *, apart: bool = False) -> Corpus:
    """Read LongMemEval: each question is asked of all sessions, or, as its authors count, ``apart`` of its own."""
    passages: dict[tuple[str, str], Passage] = {}
    questions: list[DatasetQuestion] = []
    for line, element in _elements(text, name):
        with _with_location(name, line):
            data = decode_known(_LongMemEval, element)
            turns = list(_longmemeval_turns(data, data.question_id if apart else POOL))
            question = DatasetQuestion(
                scope=data.question_id if apart else POOL, id=data.question_id, text=data.question,
                gold=tuple(turn.id for turn, answers in turns if answers), category=data.question_type,
                date=_date(data.question_date, _LONGMEMEVAL_DATE),
            )  # fmt: skip
        for turn, _ in turns:
            passages.setdefault((turn.scope, turn.id), turn)
        questions.append(question)
    answerable = [question for question in questions if not question.id.endswith(_ABSTENTION)]
    asked = tuple(question for question in answerable if question.gold)
    notes = _note_left_out(len(questions) - len(answerable), "that nothing answers")
    notes += _note_left_out(len(answerable) - len(asked), "without labelled turns")
    scopes = {question.scope for question in asked}
    kept = tuple(turn for (scope, _), turn in passages.items() if scope in scopes)
    return Corpus(name=name, passages=kept, questions=asked, notes=notes)


def _longmemeval_turns(data: _LongMemEval, scope: str) -> Iterator[tuple[Passage, bool]]:
    """Yield every turn of a question's sessions, and whether it answers the question."""
    names, dates, sessions = data.haystack_session_ids, data.haystack_dates, data.haystack_sessions
    if not len(names) == len(dates) == len(sessions):
        raise InvalidInput("'haystack_sessions', 'haystack_session_ids' and 'haystack_dates' are not equally long")
    for name, date, rows in zip(names, dates, sessions, strict=True):
        spoken = _date(date, _LONGMEMEVAL_DATE)
        for number, row in enumerate(rows):
            turn = decode_known(_LongMemEvalTurn, row)
            if turn.content.strip():
                id_ = f"{name}:{number}"
                yield (
                    Passage(scope=scope, id=id_, text=turn.content, session=name, speaker=turn.role, date=spoken),
                    bool(turn.has_answer),
                )


READERS: Mapping[str, Callable[[str, str], Corpus]] = {"jsonl": jsonl, "locomo": locomo, "longmemeval": longmemeval}


def _note_left_out(count: int, which: str) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{count} question{'s' if count > 1 else ''} {which} {'were' if count > 1 else 'was'} left out",)


def _date(text: Any, form: str) -> datetime:
    """Return a date as the data set writes it, taken for UTC."""
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        example = datetime(2023, 5, 20, 14, 30, tzinfo=UTC)
        raise InvalidInput(f"{text!r} is not a date such as {example:{form}}") from None


def _elements(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON array, each with the line on which it begins."""
    decoder = json.JSONDecoder()
    at, line, counted = _skip(text, 0), 1, 0
    if text[at : at + 1] != "[":
        raise InvalidInput(f"{name}:1: not an array of JSON")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        with _with_location(name, line):
            element, end = decoder.raw_decode(text, at)
            at = _skip(text, end)
            if text[at : at + 1] not in (",", "]"):
                raise InvalidInput("what begins here is followed by neither ',' nor ']'")
            at = _skip(text, at + 1) if text[at] == "," else at
        yield line, element


def _skip(text: str, at: int) -> int:
    """Return where the next character that is no blank stands."""
    while text[at : at + 1].isspace():
        at += 1
    return at


@contextmanager
def _with_location(name: str, line: int) -> Iterator[None]:
    """Prefix errors with the file and the line."""
    try:
        yield
    except json.JSONDecodeError as error:
        at = error.lineno if error.lineno > 1 else line
        raise InvalidInput(f"{name}:{at}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput(f"{name}:{line}: nested too deeply") from error
    except ValueError as error:  # InvalidInput, and what JSON makes of a number of thousands of digits
        raise InvalidInput(f"{name}:{line}: {error}") from error
