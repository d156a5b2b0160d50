"""Runs of workflows that are killed, interrupted or fail, and what another process makes of them: the real command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace.intents import runner
from commonplace.intents.entries import Caller, EntryFilter

COMMAND = str(Path(sys.executable).with_name("commonplace"))
OPERATOR = Caller()
pytestmark = pytest.mark.slow  # every test starts processes

WORKFLOW = """\
workflow:
  research: {assign: researcher, memory: {tier: working, handoff: true}}
  report: {assign: writer, depends_on: [research], memory: {tier: working}, memory_policy: {inherit_from_parent: true}}
  post: {assign: poster, depends_on: [report]}
"""
# Each phase writes its name where the test can count; the second waits, fails or goes on as a file says.
TEAM = """\
import asyncio, os
from commonplace.intents import Agent, on_assignment

def ran(name):
    with open("ran", "a") as file:
        print(name, file=file)

@Agent("researcher")
class Researcher:
    @on_assignment
    async def handle(self, intent):
        ran("research")
        await self.memory.store("leader", "Acme", sensitivity="confidential")
        return {"found": [1, 2], "topic": intent.inputs.get("topic")}

@Agent("writer")
class Writer:
    @on_assignment
    async def handle(self, intent):
        ran("report")
        own = [one.value for one in await self.memory.recall(key="half")]
        leader = await self.memory.get("leader")
        told = await self.memory.recall(key="inputs")
        await self.memory.store("half", "done")
        how = open("how").read()
        if how == "wait":
            print("here", flush=True)
            await asyncio.sleep(3600)
        if how == "fail":
            raise OSError("offline")
        return {"half": own, "leader": [leader.value, leader.agent, leader.sensitivity], "research": intent.results,
                "told": [one.value for one in told]}

@Agent("poster")
class Poster:
    @on_assignment
    async def handle(self, intent):
        ran("post")
        return intent.results["report"]["leader"][0]
"""
RESEARCH = {"found": [1, 2], "topic": "tea"}


class MemoryAccess:
    """Where somebody runs a workflow."""

    def __init__(self, home: Path) -> None:
        self.store = str(home / "own.db")
        self.folder = home / "work"
        self.folder.mkdir()
        self.env = {"COMMONPLACE_HOME": str(home / "home"), "HOME": str(home), "PATH": os.environ["PATH"]}
        self.write(WORKFLOW)
        (self.folder / "team.py").write_text(TEAM)

    def write(self, text: str) -> None:
        (self.folder / "launch.yml").write_text(text)

    def arguments(self, *more: str) -> list[str]:
        return [COMMAND, "workflow", "run", "launch.yml", "--agents", "team.py", "--store", self.store, *more]

    def runs(self, how: str, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        (self.folder / "how").write_text(how)
        done = subprocess.run(
            self.arguments(*more), cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done

    def waits(self, *more: str) -> subprocess.Popen[str]:
        """Run it until its second phase waits for ever."""
        (self.folder / "how").write_text("wait")
        running = subprocess.Popen(
            self.arguments(*more), cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        for line in running.stdout:
            if line == "here\n":
                return running
        raise AssertionError(running.stderr.read())

    def ended(self, how: int, *more: str) -> list[str]:
        """Run it until its second phase waits, end it by a signal, and return what it said."""
        running = self.waits(*more)
        running.send_signal(how)
        _, told = running.communicate(timeout=60)
        return told.splitlines()

    @property
    def ran(self) -> list[str]:
        return (self.folder / "ran").read_text().split()

    def tasks(self, run: str, *names: str) -> list[str]:
        with runner(self.store, env=self.env) as work:
            return [work.intents.task(OPERATOR, f"{run}{name}").status for name in names]

    def kept(self) -> list[str]:
        """The keys of what is kept of runs."""
        with runner(self.store, env=self.env) as work:
            where = EntryFilter(agent="workflow:runs", tier="episodic")
            return [one.key for one in work.intents.page(OPERATOR, where)]


@pytest.fixture
def desk(tmp_path):
    """A folder with a workflow of three phases."""
    return MemoryAccess(tmp_path)


def phases(done):
    """What the phases came to."""
    return {name: one["result"] for name, one in json.loads(done.stdout)["phases"].items()}


def test_a_killed_run_goes_on_where_it_was(desk):
    """What completed does not run again; the phase that was under way does, with its own task and working memory."""
    desk.ended(signal.SIGKILL, "--input", "topic=tea")
    [run] = desk.kept()
    assert desk.tasks(run, "", ".research", ".report") == ["active", "active", "active"]
    done = desk.runs("go", "--resume", "--json")
    assert desk.ran == ["research", "report", "report", "post"]
    assert phases(done) == {
        "research": RESEARCH,
        "report": {
            "half": ["done"],
            "leader": ["Acme", "researcher", "confidential"],
            "research": {"research": RESEARCH},
            "told": [{"topic": "tea"}],
        },
        "post": "Acme",
    }
    assert json.loads(done.stdout)["run"] == run
    assert desk.tasks(run, "", ".research", ".report", ".post") == ["completed"] * 4
    assert desk.kept() == []


def test_a_run_that_failed_says_how_it_is_resumed(desk):
    """The command that it names goes on with it, and writes every result as if nothing had happened."""
    failed = desk.runs("fail", "--input", "topic=tea", code=1)
    [run] = desk.kept()
    line = f"commonplace workflow run launch.yml --agents team.py --store {desk.store} --resume {run}"
    assert failed.stderr.splitlines()[-1] == f"commonplace: to resume it: {line}"
    assert desk.tasks(run, "", ".research", ".report") == ["active", "active", "failed"]
    done = desk.runs("go", "--resume", run)
    assert [one.partition(":")[0] for one in done.stdout.splitlines()] == ["research", "report", "post"]
    assert done.stderr.splitlines() == [
        "commonplace: research: completed before",
        "commonplace: report: assigned to 'writer'",
        "commonplace: post: assigned to 'poster'",
    ]
    assert desk.tasks(run, "", ".research", ".report", "~2.report") == ["completed", "completed", "failed", "completed"]
    assert json.loads(done.stdout.splitlines()[1].partition(": ")[2])["told"] == [{"topic": "tea"}]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_it_is_resumed(desk, number):
    """Ctrl-C and SIGTERM: what was at work is cancelled, what it would hand over stays for the one who resumes it."""
    told = desk.ended(number)
    [run] = desk.kept()
    assert told[-2].endswith(f" --resume {run}")
    assert told[-1] == "commonplace: interrupted"
    assert desk.tasks(run, "", ".research", ".report") == ["active", "active", "cancelled"]
    desk.runs("go", "--resume")
    assert desk.ran == ["research", "report", "report", "post"]


def test_a_run_is_resumed_as_often_as_it_takes(desk):
    """Killed, failed, killed, interrupted: each phase that completed ran once."""
    desk.ended(signal.SIGKILL)
    desk.runs("fail", "--resume", code=1)
    desk.ended(signal.SIGKILL, "--resume")
    desk.ended(signal.SIGINT, "--resume")
    [run] = desk.kept()
    assert phases(desk.runs("go", "--resume", "--json"))["post"] == "Acme"
    assert desk.ran == ["research", *["report"] * 5, "post"]
    assert desk.tasks(run, ".report", "~2.report", "~3.report") == ["failed", "cancelled", "completed"]


def test_a_run_that_is_under_way_is_not_resumed(desk):
    """It is said, by the number of its process; the first one is not disturbed."""
    running = desk.waits()
    [run] = desk.kept()
    refused = desk.runs("wait", "--resume", code=3)
    assert refused.stderr == f"commonplace: the run {run!r} is under way, in process {running.pid}\n"
    running.kill()
    running.communicate()
    assert desk.ran == ["research", "report"]


def test_without_the_word_a_run_begins_anew(desk):
    """A killed one stays as it is; the newest of several is resumed unless one is named."""
    desk.ended(signal.SIGKILL, "--input", "topic=tea")
    [first] = desk.kept()
    desk.runs("fail", "--input", "topic=milk", code=1)
    assert desk.ran == ["research", "report"] * 2
    assert phases(desk.runs("go", "--resume", "--json"))["research"]["topic"] == "milk"
    assert desk.kept() == [first]
    assert phases(desk.runs("go", "--resume", first, "--json"))["research"]["topic"] == "tea"


def test_a_file_of_the_same_name_elsewhere_is_another_workflow(desk):
    """Its runs are in the same store, and are not taken for this one's."""
    desk.runs("fail", code=1)
    desk.folder = desk.folder.parent / "elsewhere"
    desk.folder.mkdir()
    desk.write(WORKFLOW)
    (desk.folder / "team.py").write_text(TEAM)
    assert desk.runs("go", "--resume", code=1).stderr.startswith("commonplace: there is no run of 'launch.yml'")


def test_what_cannot_be_resumed_is_one_sentence(desk):
    """Nothing to resume, a run that nobody knows, one that has completed, other inputs than it was begun with."""
    none = desk.runs("go", "--resume", code=1)
    assert none.stderr == "commonplace: there is no run of 'launch.yml' that can be resumed\n"
    done = desk.runs("go", "--json")
    run = json.loads(done.stdout)["run"]
    for name in ("nothing", run):
        refused = desk.runs("go", "--resume", name, code=1)
        assert refused.stderr == f"commonplace: there is no run {name!r} of 'launch' that can be resumed\n"
    desk.runs("fail", "--input", "topic=tea", code=1)
    refused = desk.runs("go", "--resume", "--input", "topic=milk", code=2)
    assert "was begun with another 'topic'; with this one, begin a new run" in refused.stderr
    assert desk.runs("go", "--resume", "--input", "topic=tea").returncode == 0


def test_a_phase_whose_words_changed_runs_again(desk):
    """And so does what depends on it; the phase that failed may be mended in the file."""
    desk.runs("fail", code=1)
    desk.write(WORKFLOW.replace("report: {assign: writer", "report: {title: The report, assign: writer"))
    desk.runs("fail", "--resume", code=1)
    assert desk.ran == ["research", "report", "report"]
    desk.write(WORKFLOW.replace("research: {assign", "research: {description: Everything., assign"))
    desk.runs("go", "--resume")
    assert desk.ran == ["research", "report", "report", "research", "report", "post"]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("object()", "its result is not JSON"),
        ("{1: 'one'}", "its result is not JSON"),
        ("'x' * 70_000", "its result could not be kept: "),
        ("'password: hunter2-Kd83nfQp'", "its result held a secret, which is not kept"),
    ],
)
def test_a_phase_whose_result_could_not_be_kept_runs_again(desk, result, said):
    """If a phase that has to run needs it, and with the reason."""
    team = TEAM.replace('{"found": [1, 2], "topic": intent.inputs.get("topic")}', result)
    (desk.folder / "team.py").write_text(team.replace('"research": intent.results', '"research": 1'))
    desk.runs("fail", code=1)
    told = desk.runs("go", "--resume").stderr
    assert f"commonplace: research runs again: {said}" in told
    assert desk.ran == ["research", "report", "research", "report", "post"]


def test_an_input_with_a_secret_is_given_again(desk):
    """It was not kept; without it nothing runs."""
    secret = "password: hunter2-Kd83nfQp"
    desk.runs("fail", "--input", f"topic={secret}", code=1)
    refused = desk.runs("go", "--resume", code=2)
    assert "the input 'topic' of the run" in refused.stderr
    assert "hunter2" not in refused.stderr
    desk.runs("go", "--resume", "--input", f"topic={secret}")
    assert desk.ran[-1] == "post"


def test_a_run_can_be_given_up(desk):
    """Everything of it ends, what had completed as that; it cannot be resumed any more."""
    desk.ended(signal.SIGKILL)
    [run] = desk.kept()
    command = [COMMAND, "workflow", "cancel", "launch.yml", "--store", desk.store]
    done = subprocess.run(command, cwd=desk.folder, env=desk.env, capture_output=True, text=True, check=True)
    assert done.stdout == f"cancelled {run}\n"
    assert desk.tasks(run, "", ".research", ".report") == ["cancelled", "completed", "cancelled"]
    assert desk.kept() == []
    assert desk.runs("go", "--resume", code=1).stderr.endswith("there is no run of 'launch.yml' that can be resumed\n")
