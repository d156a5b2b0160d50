"""Pipeline memory, item by item (P01 to P27), in the words and with the examples of its document.

Programs speak through ``agent.run`` and the tools that it gives an agent.  Concurrency is real processes.  Whole
pipelines, run by the real command against a model, are in ``test_pipeline_runs``.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from commonplace.agents.verb_tools import call_tool
from commonplace.ci.dialect import MemoryBlock, agent_step, load
from commonplace.ci.registry import open_registry
from commonplace.ci.runner import pipeline
from commonplace.model.errors import InvalidInput, NotFound
from stands import rows

LESSON = "always run go fmt before building"

#: The document's example, character for character.
YAML = """\
- agent: reviewer
  prompt: ...
  model: anthropic/claude-opus-4-7
  memory:
    enabled: true
    max_recall: 10
  config:
    platform: linux
    image: alpine
"""


class Held:
    """The memory tools of one agent, called as a model calls them."""

    def __init__(self, agent, name="reviewer", memory=None):
        block = {"enabled": True} | (memory or {})
        self.tools = agent.tools(agent_step(name=name, prompt="...", model="test", memory=block))

    def save(self, content, *tags):
        """Save a lesson."""
        return self.call("save_memory", content=content, tags=list(tags))

    def recall(self, query="", **asked):
        """Recall; returns the memories."""
        return self.call("recall_memory", query=query, **asked)["memories"]

    def call(self, name, **arguments):
        """Call a tool; a mistake is raised."""
        return dict(call_tool(self.tools, name, arguments).data)

    def texts(self, query="", **asked):
        """Recall; returns what the memories say."""
        return [memory["content"] for memory in self.recall(query, **asked)]


@pytest.fixture
def path(tmp_path):
    """The store's file."""
    return str(tmp_path / "memory.db")


@pytest.fixture
def opened(path, clock):
    """Open pipelines by name, in one store."""
    entered = []

    def opened(name="release"):
        entered.append(pipeline(name, store=path, env={}, clock=clock))
        return entered[-1].__enter__()

    yield opened
    for one in reversed(entered):
        one.__exit__(None, None, None)


@pytest.fixture
def reviewer(opened):
    """The agent ``reviewer`` of the pipeline ``release``, with its memory on."""
    return Held(opened())


@pytest.fixture
def db(path):
    """Look into the file behind the store's back."""
    return lambda sql: apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY).execute(sql).fetchall()


def memory_count(db):
    """How many memories the agents of all pipelines have."""
    return db("select count(*) from record r join scope s on s.id = r.scope where s.path like '%/agent:%'")[0][0]


def together(program, *arguments, times):
    """Run a program in several processes at once; returns what each printed."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(times)]
    printed = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * times
    return printed


# Enabling


@pytest.mark.parametrize("memory", [None, {}, {"enabled": False}, {"max_recall": 10}])
def test_p01_memory_is_strictly_opt_in(opened, memory):
    """Agents are stateless by default: without ``enabled: true`` there are no tools."""
    step = agent_step(name="reviewer", prompt="...", model="test", memory=memory)

    assert opened().tools(step) == ()


def test_p02_with_memory_enabled_the_agent_gains_two_tools(reviewer):
    """Exactly ``recall_memory`` and ``save_memory``."""
    assert [tool.name for tool in reviewer.tools] == ["recall_memory", "save_memory"]


@pytest.mark.parametrize(("release", "name"), [("", "reviewer"), ("  ", "reviewer"), ("release", ""), ("release", " ")])
def test_p03_a_memory_belongs_to_a_pipeline_and_an_agent(opened, release, name):
    """Without a pipeline or a name nobody can say whose it is: no tools, and no error."""
    step = agent_step(name=name, prompt="...", model="test", memory={"enabled": True})
    agent = opened(release)

    assert agent.tools(step) == ()
    assert asyncio.run(agent.run(name=name, prompt="...", model="test", memory={"enabled": True})).calls == ()


def test_p04_the_call_and_the_yaml_block_give_the_same_configuration(tmp_path):
    """The document's YAML and the same thing said in Python are one value."""
    (tmp_path / "release.yml").write_text(YAML)
    [job] = load(str(tmp_path / "release.yml")).jobs

    assert job.plan == (
        agent_step(
            name="reviewer",
            prompt="...",
            model="anthropic/claude-opus-4-7",
            platform="linux",
            image="alpine",
            memory={"enabled": True, "max_recall": 10},
        ),
    )


def test_p05_defaults_are_5_and_4096():
    """Zero and negative numbers mean the default; an unknown key is an error that says which there are."""

    def block(**memory):
        return agent_step(name="reviewer", prompt="...", model="test", memory=memory).memory

    default = MemoryBlock(enabled=True, max_recall=5, max_content_bytes=4096)
    assert block(enabled=True) == default
    assert block(enabled=True, max_recall=0, max_content_bytes=0) == default
    assert block(enabled=True, max_recall=-3, max_content_bytes=-1) == default
    with pytest.raises(ValueError, match=r"memory\.max_recal: unknown key; valid keys: enabled, max_recall"):
        block(enabled=True, max_recal=3)


# save_memory


def test_p06_identical_content_is_deduplicated(reviewer, db):
    """Saving the same string twice is a no-op: no new row, no recall counted."""
    assert reviewer.save(LESSON) == {"saved": True, "deduped": False}
    assert reviewer.save(LESSON) == {"saved": True, "deduped": True}
    assert memory_count(db) == 1
    assert [memory["recall_count"] for memory in reviewer.recall("fmt")] == [1]


def test_p06_a_deduped_save_adds_its_new_tags(reviewer):
    """The other implementation drops them; here both saves' tags are there, and trailing blanks make no second one."""
    reviewer.save(LESSON, "go")
    assert reviewer.save(LESSON + "\n", "convention") == {"saved": True, "deduped": True}
    [memory] = reviewer.recall("fmt")

    assert memory["tags"] == ["convention", "go"]


def test_p07_the_same_content_of_another_agent_is_its_own(opened, db):
    """Neither another agent nor another pipeline is a duplicate."""
    held = [Held(opened()), Held(opened(), "builder"), Held(opened("nightly"))]

    assert [one.save(LESSON)["deduped"] for one in held] == [False, False, False]
    assert memory_count(db) == 3


@pytest.mark.parametrize("content", ["", "  \n"])
def test_p08_content_is_required(reviewer, db, content):
    """Empty content is refused, and so is blank content; nothing is stored."""
    with pytest.raises(InvalidInput, match=r"^content is required$"):
        reviewer.save(content)
    assert memory_count(db) == 0


@pytest.mark.parametrize("letter", ["a", "é", "漢", "🙂"])
def test_p09_the_cap_is_in_bytes_and_inclusive(opened, letter):
    """4096 bytes are accepted, 4097 rejected with the limit in the message; another limit is honoured."""
    size = len(letter.encode())
    held, small = Held(opened()), Held(opened(), "builder", {"max_content_bytes": 2 * size})
    text = letter * (4096 // size) + "b" * (4096 % size)

    assert held.save(text)["saved"]
    with pytest.raises(InvalidInput, match=r"^content exceeds max 4096 bytes$"):
        held.save(text + "b")
    assert small.save(letter * 2)["saved"]
    with pytest.raises(InvalidInput, match=rf"^content exceeds max {2 * size} bytes$"):
        small.save(letter * 2 + "b")
    assert len(held.recall()) == len(small.recall()) == 1


# recall_memory


def test_p10_an_empty_query_returns_the_most_recent(reviewer, clock):
    """Newest first, at most as many as the limit."""
    for number in range(7):
        reviewer.save(f"lesson {number}")
        clock.forward()

    assert reviewer.texts("") == reviewer.texts("  ") == [f"lesson {number}" for number in (6, 5, 4, 3, 2)]
    assert reviewer.texts("", limit=2) == ["lesson 6", "lesson 5"]


def test_p11_a_blank_query_with_tags_returns_what_has_the_tags(reviewer):
    """Only tag matches."""
    reviewer.save(LESSON, "go")
    reviewer.save("use pnpm", "js")

    assert reviewer.texts(" ", tags=["go"]) == [LESSON]


def test_p12_tags_narrow_to_memories_matching_all_given_tags(reviewer):
    """By value: the tag ``go`` is not the tag ``go-lang``, nor ``Go``, nor half of ``ci/cd``, nor two at once."""
    reviewer.save("one", "go", "convention")
    reviewer.save("two", "go-lang")
    reviewer.save("three", "ci/cd", "a b")

    assert reviewer.texts(tags=["go"]) == ["one"]
    assert reviewer.texts(tags=["go", "convention"]) == ["one"]
    assert reviewer.texts(tags=["ci/cd"]) == ["three"]
    for tags in (["go", "go-lang"], ["lang"], ["cd"], ["b"], ["Go"], ['convention","go'], ["!"]):
        assert reviewer.texts(tags=tags) == []


def test_p12_a_query_does_not_look_into_tags(reviewer):
    """``go`` in a query asks for the word, and the tag is asked for as a tag."""
    reviewer.save("run the formatter", "go")

    assert reviewer.texts("go") == []


def test_p13_blank_tags_are_ignored(reviewer):
    """In a save and in a recall."""
    reviewer.save(LESSON, "", " ", "go")

    assert reviewer.recall(tags=["", "  "])[0]["tags"] == ["go"]
    assert reviewer.texts(tags=[" go ", ""]) == [LESSON]


@rows("limit, count", [(1, 1), (3, 3), (4, 3), (100, 3), (0, 3), (-1, 3), (None, 3)])
def test_p14_limit_lowers_and_never_raises(opened, limit, count):
    """Override max_recall downward; capped by config."""
    held = Held(opened(), memory={"max_recall": 3})
    for number in range(5):
        held.save(f"lesson {number}")

    assert len(held.recall("lesson", limit=limit)) == count
    assert len(held.recall("", limit=limit)) == count


def test_p15_results_have_five_fields(reviewer):
    """Content, tags, created_at, recall_count and last_recalled, dates in RFC 3339 and UTC; nothing found is ``[]``."""
    reviewer.save(LESSON, "go")
    [memory] = reviewer.recall("fmt")

    assert list(memory) == ["content", "tags", "created_at", "recall_count", "last_recalled"]
    for field in ("created_at", "last_recalled"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", memory[field])
    assert reviewer.call("recall_memory", query="kubernetes") == {"memories": []}


def test_p16_hits_bump_recall_count_and_last_recalled(reviewer, clock):
    """The answer shows it already; what was not found is not counted."""
    reviewer.save(LESSON)
    reviewer.save("use pnpm")
    later = clock.forward(timedelta(hours=1))
    [hit] = reviewer.recall("fmt")
    [again] = reviewer.recall("fmt")

    assert (hit["recall_count"], again["recall_count"]) == (1, 2)
    assert hit["last_recalled"] == f"{later:%Y-%m-%dT%H:%M:%SZ}"
    [missed] = reviewer.recall("pnpm")
    assert missed["recall_count"] == 1


def test_p17_ranked_by_relevance_with_a_fixed_order_of_ties(reviewer, clock):
    """What has more of the question comes first; equals come in the same order every time."""
    for number in range(3):
        reviewer.save(f"the build is slow on runner {number}")
        clock.forward()
    reviewer.save("the build cache is in /var/cache/build")

    assert reviewer.texts("where is the build cache?")[0] == "the build cache is in /var/cache/build"
    ties = [reviewer.texts("slow runner") for _ in range(5)]
    assert ties == [ties[0]] * 5
    assert sorted(ties[0]) == [f"the build is slow on runner {number}" for number in range(3)]


@rows("query", [
        "fmt", "go fmt", "fmt go", "run before", "how do I run go fmt", "Should I run go fmt before I build?", "GO FMT",
        "builds", "running",
    ])  # fmt: skip
def test_p18_a_natural_question_finds_the_lesson(reviewer, query):
    """A word, a phrase, words in another order, a question, another form of a word: all find it."""
    reviewer.save("use pnpm, not npm, in the web folder")
    reviewer.save(LESSON)

    assert reviewer.texts(query)[0] == LESSON


def test_p18_text_without_spaces_is_found_by_its_parts(reviewer):
    """A word inside of a Chinese or Japanese sentence is found."""
    reviewer.save("构建前必须运行格式化工具")

    assert reviewer.texts("格式化") == ["构建前必须运行格式化工具"]


@rows("query", [
        '"', '""', 'a"b', "*", "go*", ":", "content:go", "(", ")", "(go", "-", "-go", "^go", "+", "NEAR", "NEAR(a b)",
        "AND", "a AND", "OR OR", "NOT", "\0", "go\0fmt", "🙂", "漢字", "\uff47\uff4f", "'; drop table record; --", "\\",
        "%", "_", "\n", "\ud800",
        "a" * 5000, "go " * 2000,
    ])  # fmt: skip
def test_p19_no_query_raises(reviewer, query):
    """Whatever a model asks is a question."""
    reviewer.save(LESSON)

    assert isinstance(reviewer.recall(query), list)
    assert isinstance(reviewer.recall(query, tags=[query.replace("\ud800", "x")]), list)


# Scoping


def test_p20_an_agent_in_pipeline_a_cannot_read_pipeline_b(opened):
    """Memories are strictly isolated between pipelines, also of names that begin alike or hold a slash."""
    Held(opened("a")).save(LESSON)

    for other in ("b", "aa", "a/agent:reviewer", "A"):
        held = Held(opened(other))
        assert held.recall() == held.recall("fmt") == []


def test_p21_reviewer_is_not_builder(opened):
    """Memories are strictly isolated between agent names in the same pipeline."""
    Held(opened()).save(LESSON)
    builder = Held(opened(), "builder")

    assert builder.recall() == builder.recall("go fmt") == []
    assert builder.save(LESSON) == {"saved": True, "deduped": False}


def test_p21_what_others_write_never_moves_your_ranking(opened):
    """Statistics are your own: a rare word stays rare, however often another agent writes it."""
    reviewer = Held(opened())
    reviewer.save("cache the modules of the build")
    reviewer.save("the build needs the vendored modules")
    before = reviewer.texts("vendored cache")
    for other in (Held(opened(), "builder"), Held(opened("nightly"))):
        for number in range(30):
            other.save(f"the cache of the cache, number {number}")

    assert reviewer.texts("vendored cache") == before


def test_p22_when_a_pipeline_is_deleted_its_memories_are_deleted(opened, path, db, clock):
    """By cascade, index and all; a pipeline of the same name starts empty, and other pipelines keep theirs."""
    for held in (Held(opened()), Held(opened(), "builder"), Held(opened("nightly"))):
        held.save(f"{LESSON} zebra", "go")
        held.save(f"{LESSON} zebra", "convention")
    with open_registry(path, env={}, clock=clock) as known:
        known.delete("release")

    assert [one[0] for one in db("select path from scope order by path")] == [
        "pipeline:nightly",
        "pipeline:nightly/agent:reviewer",
    ]
    for table, scope in {"record": "scope", "version": "scope", "entry": "bucket / 4"}.items():
        assert db(f"select count(*) from {table} where {scope} not in (select id from scope)") == [(0,)]
    assert db("select count(*) from entry_at where term like '%:zebra' and doc not in (select id from entry)") == [(0,)]
    assert Held(opened()).recall() == Held(opened()).recall("zebra") == []
    assert len(Held(opened("nightly")).recall("zebra")) == 1


def test_p23_saving_for_an_unknown_pipeline_fails_clearly(opened, path, db, clock):
    """Nothing is stored for a pipeline that never ran, or that was deleted while its agent was still at work."""
    with open_registry(path, env={}, clock=clock) as known:
        stranger = known.memory("nowhere", "reviewer", MemoryBlock(enabled=True))
        with pytest.raises(NotFound, match="there is no pipeline 'nowhere'"):
            stranger.remember(LESSON)
        at_work = Held(opened())
        at_work.save("a lesson from before")
        known.delete("release")
    with pytest.raises(NotFound, match=r"^save_memory: there is no pipeline 'release': it was deleted"):
        at_work.save(LESSON)
    opened()  # it runs again; whoever is left from before is still nobody's agent
    with pytest.raises(NotFound, match="there is no pipeline 'release'"):
        at_work.save(LESSON)
    assert memory_count(db) == 0


LASTING = """
import itertools, sys
from commonplace import NotFound
from commonplace.ci.runner import pipeline
from commonplace.ci.dialect import agent_step
step = agent_step(name="reviewer", prompt="...", model="test", memory={"enabled": True})
with pipeline("release", store=sys.argv[1], env={}) as agent:
    _, save = agent.tools(step)
    try:
        for number in itertools.count():
            save.call({"content": f"lesson {number}"})
            print(number, flush=True)
    except NotFound as error:
        print(error)
"""


@pytest.mark.slow
def test_p23_no_run_outlives_its_pipeline(path, opened, db, clock):
    """A process saves one lesson after the other; the pipeline is deleted and made anew, and has none of them."""
    opened()
    process = subprocess.Popen([sys.executable, "-c", LASTING, path], stdout=subprocess.PIPE, text=True)
    while process.stdout.readline() != "20\n":
        assert process.poll() is None
    with open_registry(path, env={}, clock=clock) as known:
        known.delete("release")
        known.register("release")

    assert "save_memory: there is no pipeline 'release'" in process.communicate(timeout=60)[0]
    assert memory_count(db) == 0


# Runs


SAVING = """
import sys
from commonplace.ci.runner import pipeline
from commonplace.ci.dialect import agent_step
step = agent_step(name="reviewer", prompt="...", model="test", memory={"enabled": True})
with pipeline("release", store=sys.argv[1], env={}) as agent:
    recall, save = agent.tools(step)
    for _ in range(int(sys.argv[2])):
        print(save.call({"content": sys.argv[3]}).data["deduped"])
        recall.call({"query": sys.argv[3]})
"""


def test_p24_memories_survive_the_process(path, opened):
    """Save short, durable lessons in one run and recall them in later runs of the same pipeline."""
    together(SAVING, path, 1, LESSON, times=1)

    [memory] = Held(opened()).recall("go fmt")
    assert (memory["content"], memory["recall_count"]) == (LESSON, 2)


@pytest.mark.slow
def test_p25_many_processes_save_one_text_once_and_lose_no_recall(path, opened, db):
    """One row, one save that was not deduped, and every recall of every process counted."""
    printed = "".join(together(SAVING, path, 10, LESSON, times=6)).split()

    assert sorted(printed) == ["False"] + ["True"] * 59
    assert memory_count(db) == 1
    assert Held(opened()).recall("go fmt")[0]["recall_count"] == 61


def test_p26_the_schemas_of_the_tools(reviewer):
    """Save requires content, a string; tags are an array of strings; limit is an integer; a recall requires nothing."""
    recall, save = (tool.schema() for tool in reviewer.tools)

    kinds = {name: one["type"] for name, one in recall["parameters"]["properties"].items()}
    assert kinds == {"query": "string", "tags": "array", "limit": "integer"}
    assert recall["parameters"]["required"] == []
    kinds = {name: one["type"] for name, one in save["parameters"]["properties"].items()}
    assert kinds == {"content": "string", "tags": "array"}
    assert save["parameters"]["required"] == ["content"]
    assert save["parameters"]["properties"]["tags"]["items"] == {"type": "string"}
    assert json.loads(json.dumps([recall, save])) == [recall, save]


def test_p27_what_to_save_is_in_the_tool_and_in_the_docs(reviewer):
    """Good: conventions, known fixes, file paths, versions; avoid: run-specific state, secrets, large blobs."""
    told = " ".join(tool.description for tool in reviewer.tools)
    docs = (Path(__file__).parents[2] / "docs" / "pipeline-memory.md").read_text()

    for words in (
        "conventions specific to this pipeline",
        "known fixes for recurring failures",
        "compatible dependency versions",
        "run-specific state (use task outputs instead)",
        "secrets (use the secrets manager",
        "large blobs",
    ):
        assert words in told
        assert words in " ".join(docs.split())


def test_p27_a_secret_is_redacted_and_reported(reviewer, path):
    """The lesson is kept, the secret is not, and the agent is told."""
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    answer = reviewer.save(f"push with the token {secret} when CI is down")

    assert (answer["saved"], answer["deduped"]) == (True, False)
    assert re.fullmatch(
        r"a secret \(github-pat\) was removed; \[secret:.*\] stands in its place", answer["redacted"][0]
    )
    assert secret not in str(reviewer.recall())
    for file in Path(path).parent.iterdir():
        assert secret.encode() not in file.read_bytes()
