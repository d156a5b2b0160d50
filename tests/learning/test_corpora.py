"""Data sets are read, in our own form and in those of LoCoMo and LongMemEval, or refused with the line."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from commonplace.evaluation.datasets import (
    DatasetQuestion,
    Passage,
    jsonl,
    locomo,
    longmemeval,
    sample,
)
from commonplace.files.user_files import read_text
from commonplace.model.errors import InvalidInput
from stands import rows

TEA = {"id": "d1", "text": "Tea at four", "scope": "home", "session": "s", "speaker": "Ada", "date": "2026-03-01"}
WHEN = {"id": "q1", "question": "When is tea?", "gold": ["d1"], "scope": "home", "category": "times"}


def lines(*said):
    """Write a data set in our own form."""
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in said)


def turn(number, text, **fields):
    """Write a turn as LoCoMo does."""
    return {"speaker": "Ada", "dia_id": f"D1:{number}", "text": text, **fields}


def conversation(*asked, turns=(("Tea?",), ("At four.",))):
    """Write a conversation as LoCoMo does, with questions given as (category, evidence)."""
    session = [turn(number, *said) for number, said in enumerate(turns, start=1)]
    said = {"speaker_a": "Ada", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": session}
    qa = [{"question": "When?", "category": category, "evidence": evidence} for category, evidence in asked]
    return {"sample_id": "conv-1", "conversation": said, "qa": qa}


def asked(id, sessions, **fields):
    """Write a question as LongMemEval does; a session is a list of (role, text, whether it answers)."""
    shown = {
        name: [{"role": role, "content": text, "has_answer": answers} for role, text, answers in turns]
        for name, turns in sessions.items()
    }
    return {
        "question_id": id, "question_type": "user", "question": "When?", "question_date": "2023/05/28 (Sun) 19:47",
        "haystack_session_ids": list(shown), "haystack_sessions": list(shown.values()),
        "haystack_dates": ["2023/05/21 (Sun) 19:50"] * len(shown), **fields,
    }  # fmt: skip


YES = {"s1": [("user", "Tea at four", True), ("assistant", "Noted", False)]}
NO = {"s2": [("user", "Hello", False)]}


# Our own form


def test_a_line_is_a_document_or_a_question():
    """Every field arrives, a date without a zone as UTC."""
    corpus = jsonl(lines(TEA, WHEN), "tea.jsonl")
    date = datetime(2026, 3, 1, tzinfo=UTC)
    assert corpus.passages == (
        Passage(scope="home", id="d1", text="Tea at four", session="s", speaker="Ada", date=date),
    )
    assert corpus.questions == (
        DatasetQuestion(scope="home", id="q1", text="When is tea?", gold=("d1",), category="times", date=None),
    )


def test_what_may_be_left_out_has_a_default():
    """A document needs an id and a text, a question an id, its words and its gold."""
    corpus = jsonl(lines({"id": "d", "text": "x"}, {"id": "q", "question": "x?", "gold": ["d", "d"]}), "x")
    assert corpus.passages[0] == Passage(scope="main", id="d", text="x")
    assert corpus.questions[0] == DatasetQuestion(scope="main", id="q", text="x?", gold=("d",), category="general")


def test_a_question_may_come_before_its_documents_and_blank_lines_do_no_harm(tmp_path):
    """Order is free; line ends of Windows and a byte order mark are no matter."""
    file = tmp_path / "x"
    file.write_bytes(b"\xef\xbb\xbf" + lines("", WHEN, "  ", TEA).replace("\n", "\r\n").encode())
    assert len(jsonl(read_text(str(file)), "x").questions) == 1


@rows(
    "line, told",
    [
        ('{"id": "d2"', "not JSON"),
        ("[1]", "use --format"),
        ('"text"', "it must be an object, not 'text'"),
        ({"id": "d2"}, "it needs 'text'"),
        ({"text": "x"}, "it needs 'id'"),
        ({"id": 7, "text": "x"}, "id must be a string, not 7"),
        ({"id": "d2", "text": " "}, "'text' is blank"),
        ({"id": "d2", "text": "x", "sesion": "s"}, "it takes no 'sesion'; it takes scope, id, text"),
        ({"id": "d2", "text": "x", "date": "monday"}, "date must be a date such as 2026-05-31T12:00:00Z, not 'monday'"),
        ({"id": "d2", "text": "x", "scope": ""}, "cannot name a user"),
        (TEA, "document 'd1' of scope 'home' is there twice"),
        (WHEN | {"id": "q2", "gold": "d1"}, "gold must be a list, not 'd1'"),
        (WHEN | {"id": "q2", "gold": []}, "'gold' is empty"),
        (WHEN | {"id": "q2", "gold": ["d9"]}, "'d9' is not a document of scope 'home'"),
        (WHEN | {"id": "q2", "scope": "work"}, "'d1' is not a document of scope 'work'"),
        (WHEN, "question 'q1' of scope 'home' is there twice"),
        ('{"id": "d2", "text": "\\ud800"}', "'text' holds half a character"),
        ("[" * 100_000, "use --format"),
        ('{"id": ' * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, told):
    """One sentence says the file, the line and what is wrong with it."""
    with pytest.raises(InvalidInput, match=r"^tea\.jsonl:3: ") as refused:
        jsonl(lines(TEA, WHEN, line), "tea.jsonl")
    assert told in str(refused.value)


def test_bytes_that_are_not_text_are_named_with_their_line(tmp_path):
    """A file in another encoding is refused where it first shows."""
    (tmp_path / "latin.jsonl").write_bytes(b"{}\n\xe9\n")
    with pytest.raises(InvalidInput, match=r"latin\.jsonl:2: not UTF-8$"):
        read_text(str(tmp_path / "latin.jsonl"))


def test_a_data_set_without_questions_is_refused():
    """There would be nothing to measure."""
    with pytest.raises(InvalidInput, match="asks nothing"):
        jsonl(lines(TEA), "tea.jsonl")


def test_a_sample_is_spread_evenly_and_takes_only_the_scopes_it_asks():
    """Of two halves of a file each gives its share; scopes that are not asked are not kept."""
    scopes = [f"s{number}" for number in range(6)]
    documents = [{"id": "d", "text": "x", "scope": scope} for scope in scopes]
    questions = [{"id": "q", "question": "x?", "gold": ["d"], "scope": scope} for scope in scopes]
    corpus = jsonl(lines(*documents, *questions), "x")
    chosen = sample(corpus, 2)
    assert [question.scope for question in chosen.questions] == ["s0", "s3"]
    assert [passage.scope for passage in chosen.passages] == ["s0", "s3"]
    assert sample(corpus, 99) == corpus


# LoCoMo


def test_a_conversation_is_a_scope_and_a_turn_a_document():
    """Each turn has its speaker, its session and the session's date."""
    corpus = locomo(json.dumps([conversation((4, ["D1:2"]))]), "locomo.json")
    date = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert corpus.passages[1] == Passage(
        scope="conv-1", id="D1:2", text="At four.", session="session_1", speaker="Ada", date=date
    )
    assert (corpus.questions[0].gold, corpus.questions[0].category) == (("D1:2",), "single-hop")


def test_the_caption_of_a_picture_is_part_of_its_turn():
    """What somebody shows is what they say; a picture without words is a turn, one without either is none."""
    said = conversation((4, ["D1:1"]))
    shown = [
        turn(1, "Look!", blip_caption="a photo of a kettle"),
        turn(2, "", blip_caption="a blue cup"),
        turn(3, " ", blip_caption=""),
        turn(4, "Bye"),
    ]
    said["conversation"]["session_1"] = shown
    assert [(passage.id, passage.text) for passage in locomo(json.dumps([said]), "x").passages] == [
        ("D1:1", "Look! [shares a photo of a kettle]"),
        ("D1:2", "[shares a blue cup]"),
        ("D1:4", "Bye"),
    ]


def test_a_caption_that_is_no_text_is_refused():
    """It is called by its name."""
    said = conversation((4, ["D1:1"]))
    said["conversation"]["session_1"] = [turn(1, "Look!", blip_caption=7)]
    with pytest.raises(InvalidInput, match=r"^x:1: blip_caption must be a string, not 7$"):
        locomo(json.dumps([said]), "x")


@rows(
    "evidence, gold",
    [
        (["D1:1; D1:2"], ("D1:1", "D1:2")),
        (["D1:1 D1:2"], ("D1:1", "D1:2")),
        (["D:1:2", "D1:02"], ("D1:2",)),
        (["D", "D1:1"], ("D1:1",)),
        (["D1:1", "D9:9"], ("D1:1",)),
    ],
)
def test_evidence_is_read_however_it_was_typed(evidence, gold):
    """Lists in one string, stray colons and zeros are read; what names no turn is dropped."""
    assert locomo(json.dumps([conversation((1, evidence))]), "x").questions[0].gold == gold


def test_questions_without_evidence_are_left_out_and_told():
    """What nothing answers cannot be measured."""
    corpus = locomo(json.dumps([conversation((1, []), (2, ["D1:1"]), (5, ["D9:9"]))]), "x")
    assert [question.category for question in corpus.questions] == ["temporal"]
    assert corpus.notes == ("2 questions without evidence were left out",)


# LongMemEval


def test_all_sessions_are_pooled_into_one_scope():
    """Every question is asked of everything; a session that two share is there once."""
    corpus = longmemeval(json.dumps([asked("q1", YES), asked("q2", YES | NO)]), "x")
    assert [passage.id for passage in corpus.passages] == ["s1:0", "s1:1", "s2:0"]
    assert {question.scope for question in corpus.questions} == {"pool"}
    assert corpus.questions[0].gold == ("s1:0",)
    assert corpus.questions[0].date == datetime(2023, 5, 28, 19, 47, tzinfo=UTC)
    assert corpus.passages[1].speaker == "assistant"


def test_each_question_can_have_a_scope_of_its_own():
    """Then it is asked of its own sessions alone."""
    corpus = longmemeval(json.dumps([asked("q1", YES), asked("q2", YES | NO)]), "x", apart=True)
    found = [(passage.scope, passage.id) for passage in corpus.passages]
    assert found == [("q1", "s1:0"), ("q1", "s1:1"), ("q2", "s1:0"), ("q2", "s1:1"), ("q2", "s2:0")]


def test_questions_that_nothing_answers_are_left_out_but_their_sessions_stay_in_the_pool():
    """Abstention is not recall; a question whose turns are not labelled cannot be measured either."""
    corpus = longmemeval(json.dumps([asked("q1", YES), asked("q2_abs", NO), asked("q3", NO)]), "x")
    assert [question.id for question in corpus.questions] == ["q1"]
    assert [passage.id for passage in corpus.passages] == ["s1:0", "s1:1", "s2:0"]
    assert corpus.notes == (
        "1 question that nothing answers was left out",
        "1 question without labelled turns was left out",
    )


def test_blank_turns_are_passed_over():
    """There is nothing in them to keep; the others keep their numbers."""
    session = {"s1": [("user", " ", False), ("user", "Tea at four", True)]}
    assert [passage.id for passage in longmemeval(json.dumps([asked("q1", session)]), "x").passages] == ["s1:1"]


# What is wrong with a file of either


@rows(
    "text, told",
    [
        ("{}", "x:1: not an array of JSON"),
        ("", "x:1: not an array of JSON"),
        ("[\n {\n  7\n]", "x:3: not JSON: "),
        ("[\n {}", "x:2: what begins here is followed by neither ',' nor ']'"),
        ("[\n {},\n {}\n]", "x:2: it needs 'question_id', "),
        ("[\n 7\n]", "x:2: it must be an object, not 7"),
        ("[" * 100_000, "x:1: nested too deeply"),
        ("[]", "x asks nothing"),
        (json.dumps([asked("q", YES, haystack_dates=[])]), "x:1: 'haystack_sessions', 'haystack_session_ids'"),
        (
            json.dumps([asked("q", YES, haystack_dates=["may"])]),
            "x:1: 'may' is not a date such as 2023/05/20 (Sat) 14:30",
        ),
        (
            "[\n\n" + json.dumps(asked("q", YES, question=["?"])) + "]",
            "x:3: question must be a string, not ['?']",
        ),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_by_the_line_it_begins_on(text, told):
    """One sentence, with the file and the line."""
    with pytest.raises(InvalidInput) as refused:
        longmemeval(text, "x")
    assert str(refused.value).startswith(told)


def test_a_conversation_without_its_date_is_refused():
    """A field that is missing is called by its name."""
    said = conversation((1, ["D1:1"]))
    del said["conversation"]["session_1_date_time"]
    with pytest.raises(InvalidInput, match=r"^x:1: 'session_1_date_time' is missing$"):
        locomo(json.dumps([said]), "x")
