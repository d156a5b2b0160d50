"""A verb is declared once, as a typed function: its schema, its checks and its descriptions come from that."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.values import UNSET, Value
from commonplace.verbs import Verb, verb
from commonplace.wire import Length, Range

if TYPE_CHECKING:
    from nowhere import Caller, Elsewhere


class Hits(Value):
    """What was found."""

    found: list[str]


@verb(reads=True, text=lambda _caller, hits: "\n".join(hits.found))
def recall(  # noqa: D417 - the caller is bound, no face passes it
    caller: list[str], query: str, *, limit: Annotated[int, Range(1, 50)] = 10, tag: str | None = None
) -> Hits:
    """Find what bears on a question.

    The best comes first, with its source
    and its date.

    Args:
        query: What you want to know, in plain words
            or as a question.
        limit: Return at most this many.
        tag: Only with this tag.
    """
    words = [word for word in caller if query in word and (tag is None or tag in word)]
    return Hits(found=words[:limit])


@verb(destroys=True, offers=["id"])
def forget(caller: list[str], id: str, *, force: bool = False) -> None:
    """Erase a record."""
    caller.remove(id if not force else id.strip())


@verb(offers=(), title="Change it", guide="Use it rarely.")
def update(caller: Caller, *, content: str | None = UNSET, kind: Literal["a", "b"] = "a") -> Elsewhere:
    """Change a record."""
    caller.append((content, kind))


@verb
def import_(caller: list[str]) -> int:
    """Count."""
    return len(caller)


def test_a_verb_is_called_like_the_function_it_is():
    """Python code uses the declaration itself."""
    assert recall(["apple", "pear"], "p", limit=1) == Hits(found=["apple"])
    assert recall.text(None, Hits(found=["a", "b"])) == "a\nb"


def test_the_schema_comes_from_types_defaults_and_docstring():
    """Each argument has its type, its limits, its default and its description."""
    assert recall.parameters() == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What you want to know, in plain words or as a question."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "Return at most this many.",
                "default": 10,
            },
            "tag": {"type": "string", "description": "Only with this tag."},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_name_summary_guide_and_title_have_defaults():
    """The docstring's first line is the summary; all of its paragraphs guide a model."""
    assert (recall.name, recall.title, recall.summary) == ("recall", "Recall", "Find what bears on a question.")
    assert recall.guide == "Find what bears on a question. The best comes first, with its source and its date."
    assert (update.title, update.guide, update.summary) == ("Change it", "Use it rarely.", "Change a record.")
    assert import_.name == "import"
    assert repr(recall) == "<verb recall>"


def test_flags_say_what_a_call_does():
    """What reads can be repeated; nothing else is assumed."""
    assert (recall.reads, recall.repeats, recall.destroys) == (True, True, False)
    assert (forget.reads, forget.repeats, forget.destroys) == (False, False, True)


def test_a_model_is_offered_the_arguments_that_the_verb_names():
    """The rest is for programs; a verb that offers nothing is no tool."""
    assert [argument.name for argument in forget.arguments_for()] == ["id"]
    assert list(forget.parameters(for_models=True)["properties"]) == ["id"]
    assert forget.is_tool
    assert import_.is_tool
    assert not update.is_tool
    with pytest.raises(InvalidInput, match=r"forget takes no 'force'; it takes id"):
        forget.check({"id": "x", "force": True}, for_models=True)
    assert forget.check({"id": "x", "force": True}) == {"id": "x", "force": True}


def test_types_of_caller_and_result_need_not_be_imported():
    """Only the annotations of the arguments are evaluated: a caller's type may be known to type checkers alone."""
    assert list(update.parameters()["properties"]) == ["content", "kind"]
    with pytest.raises(NameError):
        _ = update.result
    assert recall.result is Hits
    assert forget.result is type(None)


def test_null_leaves_an_argument_out_unless_null_is_a_value_of_its_own():
    """Where the default means "leave it as it is", null is what clears a field."""
    assert recall.check({"query": "x", "limit": None, "tag": None}) == {"query": "x"}
    assert update.check({"content": None, "kind": None}) == {"content": None}
    assert update.parameters()["properties"]["content"] == {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ([], "the arguments of recall should be an object, not []"),
        ({}, "query is required"),
        ({"query": None}, "query is required"),
        ({"query": "x", "size": 3}, "recall takes no 'size'; it takes query, limit, tag"),
        ({"query": 3}, "query must be a string, not 3"),
        ({"query": "x", "limit": 0}, "limit must be a whole number from 1 to 50, not 0"),
        ({"query": "x", "limit": True}, "limit must be a whole number from 1 to 50, not True"),
        ({"query": "x", "limit": "3"}, "limit must be a whole number from 1 to 50, not '3'"),
    ],
)
def test_a_wrong_call_gets_a_sentence_that_says_what_would_be_right(sent, sentence):
    """A model learns from it, and so does a person."""
    with pytest.raises(InvalidInput) as refused:
        recall.check(sent)
    assert str(refused.value) == sentence


def test_a_verb_without_arguments_takes_nothing():
    """Its schema is an empty object, and the sentence says so."""
    assert import_.parameters()["properties"] == {}
    with pytest.raises(InvalidInput, match="import takes no 'x'; it takes nothing"):
        import_.check({"x": 1})


def test_length_is_checked_and_described():
    """A limit is part of the type."""
    declared = Verb(_named)
    assert declared.parameters()["properties"]["name"] == {"type": "string", "maxLength": 3, "minLength": 1}
    with pytest.raises(InvalidInput, match="name must be a string of 1 to 3 characters, not 'long'"):
        declared.check({"name": "long"})


def _named(caller: None, name: Annotated[str, Length(3, least=1)]) -> str:
    """Name it."""
    return f"{caller}{name}"


def test_declaring_verbs_imports_nothing_heavy():
    """The MCP server declares its verbs while the host waits for it."""
    code = "import sys, commonplace.verbs; print({'inspect', 'dataclasses', 'msgspec', 'json'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
