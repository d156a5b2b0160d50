"""Data sets to measure recall on: the JSON Lines form of our own, and the files of LoCoMo and LongMemEval.  Pure.

A data set says who said what and when, in scopes that know nothing of each other, and asks questions, each with the
documents that answer it.  Whatever cannot be read is told in one sentence, with the file and the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

PASSAGE_KEYS = frozenset({"scope", "id", "text", "session", "speaker", "date"})
QUESTION_KEYS = frozenset({"scope", "id", "question", "gold", "category", "date", "answer"})
SCOPE = "main"  # of whatever names none
CATEGORY = "general"  # likewise

#: LoCoMo numbers its categories; these are the names its paper gives them.
LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_LOCOMO_DATE = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023
_LOCOMO_TURN = r"D:?(\d+):(\d+)"  # D1:3, as well as the D:11:26, the D30:05 and the lists in one string that occur
_LONGMEMEVAL_DATE = "%Y/%m/%d (%a) %H:%M"  # 2023/05/20 (Sat) 02:21
_ABSTENTION = "_abs"  # ends the ids of questions that nothing answers
POOL = "pool"

_NAMED = {str: "text", int: "a whole number", list: "a list", dict: "an object"}
T = TypeVar("T")


class Passage(Value):
    """One document: a turn of a session, or something that was noted by itself."""

    scope: str
    id: str  #: what questions refer to; of its own within the scope
    text: str
    session: str | None = None  #: the session that it is a turn of; None: it is kept as a record
    speaker: str | None = None
    date: datetime | None = None


class Question(Value):
    """One question, and the documents that answer it."""

    scope: str
    id: str
    text: str
    gold: tuple[str, ...]  #: ids of documents of the same scope, at least one
    category: str = CATEGORY
    date: datetime | None = None  #: when it is asked; None: after everything was said


class Corpus(Value):
    """A data set."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()  #: what was left out, as sentences

    def _check(self) -> None:
        if not self.questions:
            raise InvalidInput(f"{self.name} asks nothing: it has no question with an answer in it")


Reader = Callable[[str, str], Corpus]


def sample(corpus: Corpus, count: int) -> Corpus:
    """So many of the questions, evenly spread over the file, and the scopes that they are about."""
    every = len(corpus.questions)
    if count >= every:
        return corpus
    chosen = tuple(corpus.questions[number * every // count] for number in range(count))
    scopes = {question.scope for question in chosen}
    passages = tuple(passage for passage in corpus.passages if passage.scope in scopes)
    return corpus.replace(passages=passages, questions=chosen)


def decoded(data: bytes, name: str) -> str:
    """The text of a file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name}:{line}: not UTF-8") from error


# The form of our own


def jsonl(text: str, name: str) -> Corpus:
    """Read our own form: one document or one question on each line."""
    passages: dict[tuple[str, str], Passage] = {}
    questions: dict[tuple[str, str], tuple[int, Question]] = {}
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        with _told(name, line):
            said = _line(row)
            if "question" in said:
                question = _question(said)
                _once(questions, (question.scope, question.id), (line, question), "question")
            else:
                passage = _passage(said)
                _once(passages, (passage.scope, passage.id), passage, "document")
    for line, question in questions.values():
        for unknown in [ref for ref in question.gold if (question.scope, ref) not in passages]:
            raise InvalidInput(f"{name}:{line}: {unknown!r} is not a document of scope {question.scope!r}")
    asked = tuple(question for _, question in questions.values())
    return Corpus(name=name, passages=tuple(passages.values()), questions=asked)


def _line(row: str) -> dict[str, Any]:
    if row.lstrip().startswith("["):
        raise ValueError("a list, not an object; if this is a file of LoCoMo or LongMemEval, --format says so")
    said = json.loads(row)
    if not isinstance(said, dict):
        raise TypeError(f"{str(said)[:40]!r} is not an object")
    known = QUESTION_KEYS if "question" in said else PASSAGE_KEYS
    if unknown := sorted(said.keys() - known):
        what = "question" if "question" in said else "document"
        raise ValueError(f"{unknown[0]!r} is not a field of a {what}; it has {', '.join(sorted(known))}")
    return said


def _passage(said: Mapping[str, Any]) -> Passage:
    return Passage(
        scope=_scope(said.get("scope", SCOPE)),
        id=_worded(said, "id"),
        text=_worded(said, "text"),
        session=_maybe(said, "session"),
        speaker=_maybe(said, "speaker"),
        date=_date(_maybe(said, "date")),
    )


def _question(said: Mapping[str, Any]) -> Question:
    gold = [_as("'gold'", ref, str) for ref in _get(said, "gold", list)]
    if not gold:
        raise ValueError("'gold' is empty: name at least one document that answers the question")
    return Question(
        scope=_scope(said.get("scope", SCOPE)),
        id=_worded(said, "id"),
        text=_worded(said, "question"),
        gold=tuple(dict.fromkeys(gold)),
        category=_maybe(said, "category") or CATEGORY,
        date=_date(_maybe(said, "date")),
    )


def _scope(name: Any) -> str:
    return Scope.of(("user", _as("'scope'", name, str))).name  # which refuses what cannot be one


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'date' is {text!r}; write 2026-12-01 or 2026-12-01T09:30Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _once(found: dict[tuple[str, str], T], key: tuple[str, str], value: T, what: str) -> None:
    if key in found:
        raise ValueError(f"{what} {key[1]!r} of scope {key[0]!r} is there twice")
    found[key] = value


# LoCoMo


def locomo(text: str, name: str) -> Corpus:
    """Read LoCoMo: a conversation is a scope, a turn a document, the evidence of a question its answer."""
    passages: list[Passage] = []
    questions: list[Question] = []
    empty = 0
    for line, said in _elements(text, name):
        with _told(name, line):
            scope = _scope(_get(said, "sample_id", str))
            turns = list(_conversation(scope, _get(said, "conversation", dict)))
            asked = list(_evidenced(scope, _get(said, "qa", list), {turn.id for turn in turns}))
        passages += turns
        questions += [question for question in asked if question.gold]
        empty += sum(not question.gold for question in asked)
    notes = _left_out(empty, "without evidence")
    return Corpus(name=name, passages=tuple(passages), questions=tuple(questions), notes=notes)


def _conversation(scope: str, said: Mapping[str, Any]) -> Iterator[Passage]:
    numbers = sorted(int(key.removeprefix("session_")) for key in said if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        session = f"session_{number}"
        date = _moment(_get(said, f"{session}_date_time", str), _LOCOMO_DATE)
        for turn in _get(said, session, list):
            ref, text, speaker = (_get(turn, key, str) for key in ("dia_id", "text", "speaker"))
            shown = _as("'blip_caption'", turn.get("blip_caption", ""), str)  # of the picture that comes with the turn
            told = f"{text} [shares {shown}]".strip() if shown else text
            if told.strip():
                yield Passage(scope=scope, id=ref, text=told, session=session, speaker=speaker, date=date)


def _evidenced(scope: str, said: Iterable[Any], turns: set[str]) -> Iterator[Question]:
    """Every question, with such of its evidence as names a turn."""
    for number, asked in enumerate(said):
        category = _get(asked, "category", int)
        evidence = " ".join(_as("'evidence'", ref, str) for ref in _get(asked, "evidence", list))
        gold = [f"D{int(session)}:{int(turn)}" for session, turn in re.findall(_LOCOMO_TURN, evidence)]
        yield Question(
            scope=scope,
            id=f"{scope}:{number}",
            text=_get(asked, "question", str),
            gold=tuple(ref for ref in dict.fromkeys(gold) if ref in turns),
            category=LOCOMO_CATEGORIES.get(category, str(category)),
        )


# LongMemEval


def longmemeval(text: str, name: str) -> Corpus:
    """Read LongMemEval, all sessions of all questions in one scope: each question is asked of everything."""
    return _longmemeval(text, name, lambda _: POOL)


def longmemeval_apart(text: str, name: str) -> Corpus:
    """Read LongMemEval, a scope for each question with its own sessions: as its authors count."""
    return _longmemeval(text, name, lambda question: question)


def _longmemeval(text: str, name: str, scope_of: Callable[[str], str]) -> Corpus:
    passages: dict[tuple[str, str], Passage] = {}
    questions: list[Question] = []
    abstaining = empty = 0
    for line, said in _elements(text, name):
        with _told(name, line):
            named = _get(said, "question_id", str)
            scope = _scope(scope_of(named))
            turns = list(_haystack(scope, said))
            question = _labelled(scope, named, said, turns)
        for turn, _ in turns:
            passages.setdefault((turn.scope, turn.id), turn)
        if named.endswith(_ABSTENTION):
            abstaining += 1
        elif question.gold:
            questions.append(question)
        else:
            empty += 1
    notes = (*_left_out(abstaining, "that nothing answers"), *_left_out(empty, "without labelled turns"))
    asked = {question.scope for question in questions}
    kept = tuple(turn for (scope, _), turn in passages.items() if scope in asked)
    return Corpus(name=name, passages=kept, questions=tuple(questions), notes=notes)


def _haystack(scope: str, said: Mapping[str, Any]) -> Iterator[tuple[Passage, bool]]:
    """Every turn of a question's sessions, and whether it answers the question."""
    sessions = _get(said, "haystack_sessions", list)
    names, dates = _get(said, "haystack_session_ids", list), _get(said, "haystack_dates", list)
    if not len(names) == len(dates) == len(sessions):
        raise ValueError("'haystack_sessions', 'haystack_session_ids' and 'haystack_dates' are not equally long")
    for name, date, turns in zip(names, dates, sessions, strict=True):
        spoken = _moment(_as("'haystack_dates'", date, str), _LONGMEMEVAL_DATE)
        for number, turn in enumerate(_as("'haystack_sessions'", turns, list)):
            text, speaker = _get(turn, "content", str), _get(turn, "role", str)
            ref, session = f"{name}:{number}", str(name)
            passage = Passage(scope=scope, id=ref, text=text, session=session, speaker=speaker, date=spoken)
            if text.strip():
                yield passage, bool(turn.get("has_answer"))


def _labelled(scope: str, id: str, said: Mapping[str, Any], turns: Iterable[tuple[Passage, bool]]) -> Question:
    asked = _moment(_get(said, "question_date", str), _LONGMEMEVAL_DATE)
    return Question(
        scope=scope,
        id=id,
        text=_get(said, "question", str),
        gold=tuple(turn.id for turn, answers in turns if answers),
        category=_get(said, "question_type", str),
        date=asked,
    )


READERS: Mapping[str, Reader] = {"jsonl": jsonl, "locomo": locomo, "longmemeval": longmemeval}


def _left_out(count: int, which: str) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{count} question{'s' if count > 1 else ''} {which} {'were' if count > 1 else 'was'} left out",)


# How outside data is read


def _elements(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The elements of an array of JSON, each with the line on which it begins."""
    decoder = json.JSONDecoder()
    at, line, counted = _skip(text, 0), 1, 0
    if text[at : at + 1] != "[":
        raise InvalidInput(f"{name}:1: not an array of JSON")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        with _told(name, line):
            element, end = decoder.raw_decode(text, at)
            at = _skip(text, end)
            if text[at : at + 1] not in (",", "]"):
                raise ValueError("what begins here is followed by neither ',' nor ']'")
            at = _skip(text, at + 1) if text[at] == "," else at
        yield line, element


def _skip(text: str, at: int) -> int:
    """Where the next thing that is no blank stands."""
    while text[at : at + 1].isspace():
        at += 1
    return at


@contextmanager
def _told(name: str, line: int) -> Iterator[None]:
    """Say where it stands that something cannot be read."""
    try:
        yield
    except json.JSONDecodeError as error:
        at = error.lineno if error.lineno > 1 else line
        raise InvalidInput(f"{name}:{at}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput(f"{name}:{line}: nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}:{line}: {error}") from error


def _get(said: Any, key: str, kind: type[T]) -> T:
    """A field that has to be there."""
    if not isinstance(said, dict):
        raise TypeError(f"{str(said)[:40]!r} is not an object with {key!r}")
    if key not in said:
        raise ValueError(f"{key!r} is missing")
    return _as(repr(key), said[key], kind)


def _moment(text: str, form: str) -> datetime:
    """A date as the data set writes it, taken for UTC."""
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{text!r} is not a date such as {datetime(2023, 5, 20, 14, 30, tzinfo=UTC):{form}}") from None


def _worded(said: Mapping[str, Any], key: str) -> str:
    """A text that has to be there, and to say something."""
    text = _get(said, key, str)
    if not text.strip():
        raise ValueError(f"{key!r} is blank")
    return text


def _maybe(said: Mapping[str, Any], key: str) -> str | None:
    """A text that may be left out."""
    return None if said.get(key) is None else _worded(said, key)


def _as(what: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {str(value)[:40]!r}, which is not {_NAMED[kind]}")
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise ValueError(f"{what} holds half a character, a lone surrogate")
    return value
