"""The two tools by themselves: what a model may send, and what it gets back.  The scenario tells the rest."""

from __future__ import annotations

import json

import pytest

from commonplace.ci import answer_call, pipeline_tools
from commonplace.ci.dialect import MemoryBlock
from commonplace.ci.verbs import Lesson, PipelineAgentMemory, SavedLesson, recall_memory, save_memory
from commonplace.engine.memory import Memory
from commonplace.model.errors import InvalidInput
from commonplace.wire import encode
from stands import rows

LESSON = "always run go fmt before building"


@pytest.fixture
def memory(store, clock):
    """One agent's memory, in a store of every sort."""
    return Memory(store, MemoryBlock(enabled=True).bind("release", "reviewer"), clock=clock)


@pytest.fixture
def held(memory):
    """Its two tools."""
    return pipeline_tools(memory, max_recall=5)


def test_a_verb_is_a_plain_function(memory):
    """It takes a caller and arguments, and returns a value; its JSON is the document's."""
    caller = PipelineAgentMemory(memory=memory, max_recall=5)
    assert save_memory(caller, LESSON, ["go"]) == SavedLesson(saved=True, deduped=False)
    [found] = recall_memory(caller, "go fmt").memories
    assert isinstance(found, Lesson)
    assert json.loads(json.dumps(encode(found))) == {
        "content": LESSON,
        "tags": ["go"],
        "created_at": "2026-01-01T12:00:00Z",
        "recall_count": 1,
        "last_recalled": "2026-01-01T12:00:00Z",
    }


@pytest.mark.parametrize("arguments", ['{"content": "a"}', {"content": "a"}, {"content": "a", "tags": None}])
def test_a_call_comes_as_json_or_as_a_mapping(held, arguments):
    """Function-calling APIs send text, frameworks send mappings."""
    assert answer_call(held, "save_memory", arguments) == {"saved": True, "deduped": False}


@pytest.mark.parametrize("arguments", ["", "{}", {}, {"query": None, "tags": None, "limit": None}])
def test_every_argument_of_a_recall_may_be_left_out(held, arguments):
    """No query and no tags give the most recent."""
    answer_call(held, "save_memory", {"content": LESSON})
    assert len(answer_call(held, "recall_memory", arguments)["memories"]) == 1


@rows(
    "name, arguments, said",
    [
        ("save_memory", {}, "content is required"),
        ("save_memory", {"content": None}, "content is required"),
        ("save_memory", {"content": " \n\t"}, "content is required"),
        ("save_memory", {"content": 5}, "content must be a string"),
        ("save_memory", {"content": "a", "tags": "go"}, "tags must be a list, not 'go'"),
        ("save_memory", {"content": "a", "tags": ["go", 1]}, "each of tags must be a string, not 1"),
        ("save_memory", {"content": "a", "tag": "go"}, "save_memory takes no 'tag'; it takes content, tags"),
        ("save_memory", {"content": "\ud800"}, "save_memory: the content is not valid Unicode at character 0"),
        ("save_memory", {"content": "a", "tags": ["x" * 201]}, "save_memory: a record takes at most 64 tags"),
        ("save_memory", "[1]", "the arguments of save_memory should be an object"),
        ("save_memory", "{", "the arguments of save_memory are not JSON"),
        ("recall_memory", {"query": 5}, "query must be a string"),
        ("recall_memory", {"limit": "3"}, "limit must be a whole number"),
        ("recall_memory", {"limit": True}, "limit must be a whole number"),
        ("recall_memory", {"limit": 2.5}, "limit must be a whole number"),
        ("recall_memory", {"limit": float("nan")}, "limit must be a whole number"),
        ("recall_memory", {"tags": {"go": 1}}, "tags must be a list, not {'go': 1}"),
        ("delete_memory", {}, "there is no tool 'delete_memory'"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence_and_nothing_is_stored(held, memory, name, arguments, said):
    """The model reads an error that names what is wrong, and can try again."""
    told = answer_call(held, name, arguments)
    assert told.keys() == {"error"}
    assert told["error"].startswith(said)
    assert memory.list() == []


def test_a_whole_number_may_be_written_with_a_point(held):
    """Some models send 1.0 for 1."""
    for text in ("one", "two"):
        answer_call(held, "save_memory", {"content": text})
    assert len(answer_call(held, "recall_memory", {"limit": 1.0})["memories"]) == 1


def test_a_tool_without_a_memory_is_not_available():
    """A model may call what it was never given, and is told so."""
    for name in ("save_memory", "recall_memory"):
        assert answer_call((), name, {"content": "a"}) == {"error": "agent memory not available"}


def test_the_limits_stand_in_the_schemas(memory):
    """The model is told the numbers that hold for it."""
    recall, save = (tool.schema() for tool in pipeline_tools(memory, max_recall=7))
    assert "At most 7" in recall["description"]
    assert "Fewer than 7" in recall["parameters"]["properties"]["limit"]["description"]
    assert "4096 bytes" in save["description"]


def test_a_secret_makes_a_text_longer_only_within_the_limit(store, clock):
    """What is stored is within the limit too, marks and all."""
    memory = Memory(store, MemoryBlock(max_content_bytes=40).bind("release", "reviewer"), clock=clock)
    with pytest.raises(InvalidInput, match=r"^save_memory: the content has 54 bytes; the limit is 40"):
        save_memory(PipelineAgentMemory(memory=memory, max_recall=5), "the password of the database is hunter22")
    assert memory.list() == []


def test_recalls_of_others_are_counted_in(held):
    """The numbers are read after the count, so they are those of the store."""
    answer_call(held, "save_memory", {"content": LESSON})
    counts = [answer_call(held, "recall_memory", {"query": "fmt"})["memories"][0]["recall_count"] for _ in range(3)]
    assert counts == [1, 2, 3]
