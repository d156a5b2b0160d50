"""``commonplace eval``: figures for people and for programs, from any data set."""

from __future__ import annotations

import json
import tempfile

import pytest

from stands import rows

SAID = [
    {"id": "d1", "text": "Tea at four", "speaker": "Ada", "session": "s", "date": "2026-03-01"},
    {"id": "d2", "text": "Cake at five", "speaker": "Ben", "session": "s", "date": "2026-03-01"},
    {"id": "q1", "question": "When is tea?", "gold": ["d1"], "category": "times"},
    {"id": "q2", "question": "Who likes scones?", "gold": ["d2"], "category": "tastes"},
]
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Tea at four"}],
    },
    "qa": [
        {"question": "When is tea?", "category": 2, "evidence": ["D1:1"]},
        {"question": "Why?", "category": 3, "evidence": []},
    ],
}
LONGMEMEVAL = {
    "question_id": "q1", "question_type": "single-session-user", "question": "When is tea?",
    "question_date": "2023/05/28 (Sun) 19:47", "haystack_session_ids": ["s1"],
    "haystack_dates": ["2023/05/21 (Sun) 19:50"],
    "haystack_sessions": [[{"role": "user", "content": "Tea at four", "has_answer": True}]],
}  # fmt: skip


@pytest.fixture
def tea(cli):
    """A data set in a file of the working directory."""
    (cli.folder / "tea.jsonl").write_text("\n".join(map(json.dumps, SAID)), encoding="utf-8")
    cli.monkeypatch.chdir(cli.folder)
    return "tea.jsonl"


def test_the_figures_are_shown_for_each_category(cli, tea):
    """Two tables, all questions first, then the categories; and what keeping cost."""
    lines = cli.ok("eval", tea).lines
    assert lines[0] == "tea.jsonl: 2 questions about 2 documents in 1 scope"
    rows = [line.split() for line in lines]
    assert rows[2][:4] == ["category", "n", "R@1", "R@5"]
    assert [row[:5] for row in rows[3:6]] == [
        ["all", "2", "0.500", "0.500", "0.500"],
        ["tastes", "1", "0.000", "0.000", "0.000"],
        ["times", "1", "1.000", "1.000", "1.000"],
    ]
    assert rows[7][:3] == ["category", "n", "hit@1"]
    assert lines[-1].startswith("Storing a document took ")


def test_programs_get_everything(cli, tea):
    """Figures of recall and of plain BM25, tokens and times, and each question with its places."""
    data = cli.ok("eval", tea, "--json").json
    [overall, *_] = data["categories"]
    assert (overall["recall"]["R@10"], overall["bm25"]["R@10"], overall["budgets"]["500"]) == (0.5, 0.5, 0.5)
    assert overall["cpu_ms_p95"] >= overall["cpu_ms_p50"] > 0
    assert data["answers"][0]["places"] == {"d1": 1}


def test_without_a_file_our_own_data_set_is_measured(cli):
    """Anybody can see what the tests see."""
    assert cli.ok("eval").lines[0] == "regression.jsonl: 60 questions about 64 documents in 2 scopes"


def test_a_format_needs_a_file(cli):
    """Our own data set is in our own form; another form without a file is a slip."""
    done = cli("eval", "--format", "locomo")
    assert (done.code, done.err) == (2, "commonplace: --format locomo needs a FILE\n")


def test_some_of_the_questions_can_be_asked(cli):
    """`--limit` takes a sample, the same each time."""
    data = cli.ok("eval", "--limit", "6", "--json").json
    assert [answer["id"] for answer in data["answers"]] == ["q01", "q11", "q21", "q41", "q31", "q51"]


@pytest.mark.parametrize(
    ("form", "said", "category"),
    [("locomo", LOCOMO, "temporal"), ("longmemeval", LONGMEMEVAL, "single-session-user")],
)
def test_files_of_others_are_read_as_they_are(cli, form, said, category):
    """LoCoMo and LongMemEval need no conversion by hand."""
    (cli.folder / "data.json").write_text(json.dumps([said]), encoding="utf-8")
    data = cli.ok("eval", cli.folder / "data.json", "--format", form, "--json").json
    assert [(row["category"], row["recall"]["R@1"]) for row in data["categories"]] == [("all", 1), (category, 1)]


def test_what_is_left_out_is_told(cli):
    """The note goes to standard error, and into the answer for programs."""
    (cli.folder / "data.json").write_text(json.dumps([LOCOMO]), encoding="utf-8")
    done = cli.ok("eval", cli.folder / "data.json", "--format", "locomo", "--json")
    assert done.err == "commonplace: 1 question without evidence was left out\n"
    assert done.json["notes"] == ["1 question without evidence was left out"]


def test_longmemeval_can_be_asked_question_by_question(cli):
    """`--per-question` gives each its own scope; elsewhere it has no meaning, and is refused."""
    (cli.folder / "data.json").write_text(
        json.dumps([LONGMEMEVAL, LONGMEMEVAL | {"question_id": "q2"}]), encoding="utf-8"
    )
    asked = ["eval", cli.folder / "data.json", "--json", "--format"]
    assert cli.ok(*asked, "longmemeval").json["scopes"] == 1
    assert cli.ok(*asked, "longmemeval", "--per-question").json["scopes"] == 2
    refused = cli(*asked, "locomo", "--per-question")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "InvalidInput")
    assert "--per-question goes with --format longmemeval" in refused.err


@rows(
    "written, told",
    [
        (b'{"id": "d1"}', ":1: it needs 'text'"),
        (b'\n{"id": "d1", ', ":2: not JSON: "),
        (b"\xff", ":1: not UTF-8"),
        (
            b'[{"sample_id": "x"}]',
            ":1: a list, not an object; if this is a file of LoCoMo or LongMemEval",
        ),
        (b"", " asks nothing"),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_line(cli, written, told):
    """Exit code 2, nothing on standard output, no traceback."""
    (cli.folder / "bad.jsonl").write_bytes(written)
    done = cli("eval", cli.folder / "bad.jsonl")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"bad.jsonl{told}" in done.err


def test_a_file_that_is_not_there_is_told(cli):
    """One sentence names it."""
    done = cli("eval", "nowhere.jsonl")
    assert (done.code, done.err) == (2, "commonplace: 'nowhere.jsonl' cannot be read: No such file or directory\n")


def test_nothing_of_yours_is_touched_and_nothing_is_left(cli, tea, tmp_path):
    """The store is a throw-away one; your own memory is not even opened."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cli.monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    before = sorted(cli.home.rglob("*"))
    cli.ok("eval", tea)
    assert list(elsewhere.iterdir()) == []
    assert sorted(cli.home.rglob("*")) == before
