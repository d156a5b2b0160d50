"""``commonplace pipeline``: what it prints where, what it asks, and with which code it ends."""

from __future__ import annotations

import json
import re

import pytest

TEST = "jobs: [{name: review, plan: [{agent: reviewer, prompt: look, model: test, memory: {enabled: true}}]}]\n"
TASKS = """\
jobs:
- name: build
  plan:
  - {task: good, config: {run: {path: sh, args: [-c, 'echo built']}}}
- name: check
  plan:
  - {task: bad, config: {run: {path: sh, args: [-c, 'exit 7']}}}
  - {task: never, config: {run: {path: touch, args: [never]}}}
"""


@pytest.fixture
def pipelines(outside):
    """The command, beside two pipelines: of an agent that needs no service, and of tasks."""
    folder = outside.folder / "work"
    (folder / "release.yml").write_text(TEST)
    (folder / "tasks.yml").write_text(TASKS)
    return outside


def test_a_run_prints_the_answer_and_tells_the_calls_apart(pipelines):
    """What the agent says is the output; steps and calls are on standard error, a line each, in the order made."""
    done = pipelines.ok("pipeline", "run", "release.yml")
    assert json.loads(done.out)["save_memory"] == {"saved": True, "deduped": False}
    assert done.err.splitlines() == [
        "commonplace: review: agent 'reviewer' (test)",
        "commonplace: reviewer called recall_memory: 0 memories",
        "commonplace: reviewer called save_memory: saved",
    ]


def test_what_was_learned_is_listed_and_shown(pipelines):
    """By pipeline and agent, for people and for programs."""
    assert pipelines.ok("pipeline", "list").err == "commonplace: no pipeline has run yet\n"
    pipelines.ok("pipeline", "run", "release.yml")
    assert pipelines.ok("pipeline", "list").out == "release: reviewer 1\n"
    shown = pipelines.ok("pipeline", "memory", "release").out
    assert re.fullmatch(r"reviewer: a \(\d{4}-\d\d-\d\d, not recalled yet\)\n", shown)
    [memory] = pipelines.ok("pipeline", "memory", "release", "reviewer", "--json").json["agents"]["reviewer"]
    assert (memory["content"], memory["tags"], memory["recall_count"]) == ("a", [], 0)
    [listed] = pipelines.ok("pipeline", "list", "--json").json["pipelines"]
    assert (listed["name"], listed["agents"], listed["memories"]) == ("release", {"reviewer": 1}, 1)


def test_an_agent_that_has_learned_nothing_is_said_so(pipelines):
    """Nothing to show is no error; a pipeline that there is not is one."""
    pipelines.ok("pipeline", "run", "release.yml")
    assert "builder has learned nothing yet" in pipelines.ok("pipeline", "memory", "release", "builder").err
    done = pipelines("pipeline", "memory", "nowhere")
    assert (done.code, done.err) == (
        1,
        "commonplace: there is no pipeline 'nowhere'; `commonplace pipeline list` shows those that there are\n",
    )


def test_a_limit_cuts_what_is_shown(pipelines):
    """Of each agent the newest."""
    pipelines.ok("pipeline", "run", "release.yml")
    assert (
        pipelines.ok("pipeline", "memory", "release", "--limit", "1").lines
        == pipelines.ok("pipeline", "memory", "release").lines
    )
    assert pipelines("pipeline", "memory", "release", "--limit", "0").code == 2


def test_a_pipeline_is_deleted_after_a_yes(pipelines):
    """Where nobody can be asked it is refused; afterwards the pipeline is gone, and run again it starts empty."""
    pipelines.ok("pipeline", "run", "release.yml")
    refused = pipelines("pipeline", "delete", "release")
    assert refused.code == 2
    assert "Erase the pipeline release and the 1 memory of its agents for good?" in refused.err
    assert pipelines.ok("pipeline", "delete", "release", "--yes").out == "Erased the pipeline release and 1 memory\n"
    assert pipelines("pipeline", "delete", "release", "--yes").code == 1
    assert "0 memories" in pipelines.ok("pipeline", "run", "release.yml").err


def test_a_backup_that_may_hold_what_was_deleted_is_mentioned(pipelines):
    """Erased is erased, but for copies that somebody made."""
    pipelines.ok("pipeline", "run", "release.yml")
    pipelines.ok("backup")
    deleted = pipelines.ok("pipeline", "delete", "release", "--yes")
    assert "1 backup in the data folder may still hold what was erased" in deleted.err


def test_another_store_is_another_memory(pipelines):
    """``--store`` names the database, for every one of the commands."""
    pipelines.ok("pipeline", "run", "release.yml", "--store", "own.db")
    assert pipelines.ok("pipeline", "list").out == ""
    assert pipelines.ok("pipeline", "list", "--store", "own.db").out == "release: reviewer 1\n"
    assert pipelines.ok("pipeline", "memory", "release", "--store", "own.db").out.startswith("reviewer: a")
    assert pipelines.ok("pipeline", "delete", "release", "--yes", "--store", "own.db", "--json").json["memories"] == 1


def test_tasks_are_forbidden_until_they_are_allowed(pipelines):
    """Nothing of the pipeline runs: the code says forbidden, and the sentence how to allow it."""
    done = pipelines("pipeline", "run", "tasks.yml")
    assert (done.code, done.out) == (4, "")
    assert "task 'good' of job 'build' would run 'sh' on this machine; --allow-tasks allows it" in done.err


def test_a_failing_task_ends_the_run(pipelines):
    """What ran has written for itself; what follows does not run."""
    done = pipelines.start("pipeline", "run", "tasks.yml", "--allow-tasks")
    assert (done.code, done.out) == (1, "built\n")
    assert done.err.splitlines()[-1] == "commonplace: task 'bad' of job 'check' failed with exit code 7"
    assert not (pipelines.folder / "work" / "never").exists()


def test_one_job_can_be_run_alone(pipelines):
    """By name; a name that there is not is told with those that there are."""
    assert pipelines.start("pipeline", "run", "tasks.yml", "--allow-tasks", "--job", "build").out == "built\n"
    done = pipelines("pipeline", "run", "tasks.yml", "--job", "nope")
    assert (done.code, "has no job 'nope'; it has build, check" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            "jobs: [{name: a, plan: [{get: repo}]}]",
            5,
            "bad.yml: jobs[0].plan[0]: a step is `agent:` or `task:`; `get:`",
        ),
        (
            "- {agent: a, prompt: p, model: 'openai:gpt-5'}",
            6,
            "needs a key: set the environment variable OPENAI_API_KEY",
        ),
        ("- {agent: a, prompt: p, model: gpt-5}", 2, "there is no model 'gpt-5'"),
        (
            "- {agent: a, prompt: p, model: test, memory: {enabled: maybe}}",
            5,
            "bad.yml: jobs[0].plan[0].memory.enabled:",
        ),
    ],
)
def test_a_mistake_is_one_sentence(pipelines, monkeypatch, text, code, said):
    """One line on standard error, a code that says what sort of mistake, and no output."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (pipelines.folder / "work" / "bad.yml").write_text(text)
    done = pipelines("pipeline", "run", "bad.yml")
    assert (done.code, done.out) == (code, "")
    assert said in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_a_missing_file_is_said(pipelines):
    """It is the configuration that cannot be followed."""
    done = pipelines("pipeline", "run", "nowhere.yml")
    assert (done.code, done.err) == (5, "commonplace: nowhere.yml: cannot be read: No such file or directory\n")
