"""Pipelines as files and as calls: what is taken, what is refused, and in which words."""

from __future__ import annotations

import pytest

from commonplace.ci.dialect import (
    AgentStep,
    MemoryBlock,
    StepConfig,
    TaskCommand,
    TaskConfig,
    TaskStep,
    agent_scope,
    agent_step,
    load,
    pipeline_scope,
)
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.model.records import Channel, Kind
from stands import rows

AGENT = {"name": "reviewer", "prompt": "look", "model": "openai:gpt-5"}


@pytest.fixture
def written(tmp_path):
    """Write a pipeline's file and read it."""

    def written(text, name="release.yml"):
        path = tmp_path / name
        path.write_text(text)
        return load(str(path))

    return written


@pytest.fixture
def step(written):
    """Read a file of one job whose plan is one step, written out under ``- ``."""

    def step(text):
        inside = text.strip().replace("\n", "\n          ")
        return written(f"jobs:\n  - name: review\n    plan:\n        - {inside}\n").jobs[0].plan[0]

    return step


@pytest.fixture
def refused(step):
    """Read a file that is refused; returns what is said against it, without the folder."""

    def refused(text):
        with pytest.raises(ConfigError) as raised:
            step(text)
        return f"{raised.value.path}: {raised.value.reason}"

    return refused


def test_a_file_is_jobs_with_plans(written):
    """Jobs keep their order, steps theirs, and every field its place."""
    pipeline = written(
        "name: nightly\n"
        "jobs:\n"
        "- name: review\n"
        "  plan:\n"
        "  - {agent: reviewer, prompt: look, model: 'openai:gpt-5', config: {platform: linux, image: alpine}}\n"
        "  - task: unit\n"
        "    config: {platform: linux, params: {CI: 1}, run: {path: go, args: [test, ./...], dir: src}}\n"
        "- name: fix\n"
        "  plan: [{agent: fixer, prompt: mend, model: test}]\n"
    )
    assert (pipeline.name, pipeline.named, [job.name for job in pipeline.jobs]) == ("nightly", True, ["review", "fix"])
    assert pipeline.jobs[0].plan == (
        AgentStep(
            name="reviewer", prompt="look", model="openai:gpt-5", config=StepConfig(platform="linux", image="alpine")
        ),
        TaskStep(
            name="unit",
            config=TaskConfig(
                platform="linux", params={"CI": "1"}, run=TaskCommand(path="go", args=("test", "./..."), dir="src")
            ),
        ),
    )


@pytest.mark.parametrize(("file", "name"), [("release.yml", "release"), ("ci.pipeline.yaml", "ci")])
def test_a_pipeline_without_a_name_is_called_after_its_file(written, file, name):
    """The file's name, up to its first dot."""
    pipeline = written("jobs: [{name: a, plan: [{agent: b, prompt: c, model: test}]}]", file)
    assert (pipeline.name, pipeline.named) == (name, False)


def test_a_file_may_be_a_single_plan(written):
    """The document's own example is a list of steps; it is one job, called after the file."""
    [job] = written("- agent: reviewer\n  prompt: ...\n  model: test\n").jobs
    assert (job.name, job.plan[0].prompt) == ("release", "...")


@rows("kind", ["get", "put", "set_pipeline", "load_var", "in_parallel", "do", "try", "across", "notify"])
def test_other_steps_are_refused_by_name(refused, kind):
    """Nothing is skipped in silence: the message names the step, the file and the place."""
    said = refused(f"{kind}: x")
    assert said == f"jobs[0].plan[0]: a step is `agent:` or `task:`; `{kind}:` cannot be run here"


@rows("text, said", [
        ("agent: a\nmodel: test", "jobs[0].plan[0].prompt: is missing"),
        ("agent: a\nprompt: p", "jobs[0].plan[0].model: is missing"),
        ("agent:\nprompt: p\nmodel: test", "jobs[0].plan[0].agent: is missing"),
        ("agent: [a]\nprompt: p\nmodel: test", "jobs[0].plan[0].agent: should be text, not ['a']"),
        ("agent: a\nprompt: p\nmodel: test\nconfig: linux", "jobs[0].plan[0].config: should be a mapping with"),
        ("agent: a\nprompt: p\nmodel: test\ntimeout: 1h", "jobs[0].plan[0].timeout: unknown key; valid keys:"),
        ("task: t", "jobs[0].plan[0].config: should be a mapping"),
        ("task: t\nconfig: {run: {args: [x]}}", "jobs[0].plan[0].config.run.path: is missing"),
        ("task: t\nconfig: {run: {path: a, args: x}}", "jobs[0].plan[0].config.run.args: should be a list"),
        ("just text", "jobs[0].plan[0]: a step is `agent:` or `task:`; 'just text' cannot be run here"),
    ])  # fmt: skip
def test_a_mistake_is_named_with_its_place(refused, text, said):
    """Every message says where in the file, and what should be there."""
    assert refused(text).startswith(said)


@rows(
    "text, said",
    [
        ("", "should be a mapping with name, jobs"),
        ("jobs: []", "jobs: should be a list with something in it"),
        ("jobs: [{name: a, plan: []}]", "jobs[0].plan: should be a list with something in it"),
        ("resources: []\njobs: []", "resources: unknown key; valid keys: name, jobs"),
        ("jobs: [{plan: [{agent: b, prompt: c, model: test}]}]", "jobs[0].name: is missing"),
        ("jobs: [", "line 2: is not YAML"),
        ("jobs: &a [*a]", "line 1: uses an anchor"),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused(written, text, said):
    """What stands outside of the steps is checked too, and the file is named."""
    with pytest.raises(ConfigError, match=r"release\.yml: ") as raised:
        written(text)
    assert said in str(raised.value)


def test_two_jobs_of_one_name_are_refused(written):
    """``--job`` must mean one job."""
    one = "{name: a, plan: [{agent: b, prompt: c, model: test}]}"
    with pytest.raises(ConfigError, match=r"jobs\[1\]\.name: 'a' is the name of an earlier job"):
        written(f"jobs: [{one}, {one}]")


def test_a_file_that_is_not_there_is_named(tmp_path):
    """A missing file is a configuration that cannot be followed."""
    with pytest.raises(ConfigError, match=r"nowhere\.yml: cannot be read: No such file"):
        load(str(tmp_path / "nowhere.yml"))


@pytest.mark.parametrize("name", ["A=B", " "])
def test_a_variable_that_no_program_could_be_given_is_refused(refused, name):
    """It is said before anything runs."""
    said = refused(f"task: t\nconfig: {{run: {{path: echo}}, params: {{'{name}': x}}}}")
    assert said == f"jobs[0].plan[0].config.params: {name!r} cannot name a variable"


def test_a_name_that_cannot_be_kept_under_is_refused(refused):
    """A name with control characters would name nothing that anybody could type."""
    assert "jobs[0].plan[0].agent: 'a\\x07b' cannot name a agent" in refused('agent: "a\\x07b"\nprompt: p\nmodel: test')


def test_a_job_is_chosen_by_its_name(written):
    """All jobs, or the one that is named; a name that there is not is told with those that there are."""
    pipeline = written(
        "jobs:\n"
        "- {name: a, plan: [{agent: b, prompt: c, model: test}]}\n"
        "- {name: d, plan: [{agent: e, prompt: f, model: test}]}\n"
    )
    assert [job.name for job in pipeline.select_jobs(None)] == ["a", "d"]
    assert [job.name for job in pipeline.select_jobs("d")] == ["d"]
    with pytest.raises(InvalidInput, match="has no job 'x'; it has a, d"):
        pipeline.select_jobs("x")


@rows(
    "block, expected",
    [
        (None, None),
        ({}, MemoryBlock()),
        ({"enabled": True}, MemoryBlock(enabled=True, max_recall=5, max_content_bytes=4096)),
        ({"enabled": "yes"}, MemoryBlock(enabled=True)),
        ({"enabled": True, "max_recall": 0, "max_content_bytes": -1}, MemoryBlock(enabled=True)),
        ({"max_recall": 10, "max_content_bytes": 99}, MemoryBlock(max_recall=10, max_content_bytes=99)),
    ],
)
def test_a_memory_block_has_defaults(block, expected):
    """Absent is none at all; zero and less mean the default."""
    assert agent_step(**AGENT, memory=block).memory == expected


@rows(
    "block, said",
    [
        ({"enable": True}, "memory.enable: unknown key; valid keys: enabled, max_recall, max_content_bytes"),
        ({"enabled": 1}, "memory.enabled: should be true or false, not 1"),
        ({"max_recall": "ten"}, "memory.max_recall: should be a whole number, not 'ten'"),
        ({"max_recall": True}, "memory.max_recall: should be a whole number, not True"),
        ({"max_recall": 1001}, "memory.max_recall: should be at most 1000, not 1001"),
        ({"max_content_bytes": 1_048_577}, "memory.max_content_bytes: should be at most 1048576, not 1048577"),
        (True, "memory: should be a mapping with enabled, max_recall, max_content_bytes, not True"),
    ],
)
def test_a_wrong_memory_block_is_refused_in_a_program_as_in_a_file(block, said):
    """The place is the argument, the words are the file's."""
    with pytest.raises(ConfigError) as raised:
        agent_step(**AGENT, memory=block)
    assert str(raised.value) == f"agent.run: {said}"


def test_a_memory_block_binds_one_agent_of_one_pipeline():
    """It writes lessons as an agent, in one scope, and reads that one alone."""
    binding = MemoryBlock(enabled=True, max_content_bytes=100).bind("release", "reviewer")
    scope = agent_scope("release", "reviewer")
    assert str(scope) == "pipeline:release/agent:reviewer"
    assert scope.parent == pipeline_scope("release")
    assert (binding.channel, binding.reads, binding.writes) == (Channel.AGENT, (scope,), {Kind.SEMANTIC: scope})
    assert binding.content_bytes == 100
