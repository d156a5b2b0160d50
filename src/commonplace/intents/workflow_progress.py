"""The progress of a workflow run, stored so that another process can resume it.

A run is a task, and each phase is one below it.  Until the run has completed there are episodic entries of two agents
that exist in name only: of ``workflow:runs``, in the namespace of the workflow's name, one for every run; of
``workflow:<run>``, one for every phase that has completed, with its result.  Each of the second kind is written
together with the first at its known version, so a process whose run was taken over writes nothing more.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from commonplace.engine.memory import now_utc
from commonplace.intents.assignments import ACTIVE, OPERATOR
from commonplace.intents.entries import Caller, Entry, EntryDraft, EntryFilter
from commonplace.intents.intents import PAGE_MOST, Intents
from commonplace.intents.workflow_dialect import Phase, Workflow
from commonplace.model.errors import CommonplaceError, Conflict, InvalidInput, NotFound
from commonplace.model.ids import new_id

RUNS = "workflow:runs"  # the agent whose entries are the runs
INPUTS = "inputs"
TIER = "episodic"  # ends with no task


class Progress:
    """The stored progress of one run."""

    def __init__(
        self, intents: Intents, workflow: Workflow, *, run: str, inputs: Mapping[str, Any], held: Entry
    ) -> None:
        """``held`` is the entry of the run that this process wrote."""
        self.run = run
        self.coordinator = _coordinator(run)
        self.inputs = inputs
        self.again: dict[str, str] = {}  # phases that had completed and are run again, and why
        self._intents = intents
        self._workflow = workflow
        self._definitions = _definitions(workflow)
        self._held = held
        self._tasks: dict[str, str] = {}  # phase -> its task in this process
        self._guard = threading.Lock()  # phases end in threads

    @property
    def attempt(self) -> int:
        """1 for a run that was never resumed."""
        return int(_value(self._held)["attempt"])

    def task(self, phase: Phase) -> str:
        """Return a phase's task: the one that is still open, else a new one."""
        if phase.name not in self._tasks:
            names = [f"{self.run}.{phase.name}", *(f"{self.run}~{n}.{phase.name}" for n in range(2, self.attempt + 1))]
            free = (name for name in names if self.attempt == 1 or self._status(name) in (None, ACTIVE))
            self._tasks[phase.name] = next(free, names[-1])
        return self._tasks[phase.name]

    def is_open(self, phase: Phase) -> bool:
        """Return whether a phase's working memory exists."""
        return self._status(self.task(phase)) == ACTIVE

    def save_result(self, phase: Phase, result: Any) -> None:
        """Store the result of a phase that completed; that it cannot be stored matters when it is needed."""
        definition = self._definitions[phase.name]
        plain = _plain(result)
        if plain is None and result is not None:
            self._write(phase, {"phase": definition, "unkept": "its result is not JSON"})
            return
        try:
            entry = self._write(phase, {"phase": definition, "result": plain})
        except InvalidInput as error:
            self._write(phase, {"phase": definition, "unkept": f"its result could not be kept: {error}"})
            return
        if entry.value != {"phase": definition, "result": plain}:
            self._write(phase, {"phase": definition, "unkept": "its result held a secret, which is not kept"})

    def completed_results(self) -> dict[str, Any]:
        """Return the phases that need not run again, each with its result.

        A phase whose definition in the file changed runs again, and so does what depends on it; one whose result or
        working memory is gone, if a phase that still has to run needs it.
        """
        where = EntryFilter(agent=self.coordinator, tier=TIER)
        values = map(_value, self._intents.page(OPERATOR, where, limit=PAGE_MOST))
        kept = {value["phase"]: value for value in values}
        found: dict[str, Any] = {}
        phases = [self._workflow.phase(name) for wave in self._workflow.order() for name in wave]
        for phase in phases:
            if (value := kept.get(self._definitions[phase.name])) is not None:
                found[phase.name] = value
        for phase in reversed(phases):
            readers = [one for one in self._workflow.dependents(phase.name) if one.name not in found]
            if phase.name in found and readers and (reason := self._missing(phase, found[phase.name])):
                self.again[phase.name] = reason
                del found[phase.name]
        for phase in phases:
            self.task(phase)  # here, where it may take its time
        return {name: value.get("result") for name, value in found.items()}

    def check(self) -> None:
        """Raise ``Conflict`` if another process has taken the run over."""
        with self._guard:
            if _entry(self._intents, self._workflow, self.run).version != self._held.version:
                raise self._lost_error()

    def close(self, *, completed: bool) -> None:
        """Release the run; of one that has completed only its tasks remain."""
        if completed:
            self.check()
            self._erase("completed")
        else:
            self._write(None, None)

    def cancel(self) -> None:
        """Cancel the run: open tasks end, those of completed phases as completed."""
        done = self.completed_results()
        for phase in self._workflow.phases:
            if self.is_open(phase):
                came_to = "completed" if phase.name in done else "cancelled"
                self._intents.finish(OPERATOR, self.task(phase), came_to)
        self._erase("cancelled")

    def _erase(self, outcome: str) -> None:
        """End the run and erase its entries: the task first, so that a remainder is not resumed."""
        self._intents.finish(OPERATOR, self.run, outcome)
        self._intents.remove_where(OPERATOR, EntryFilter(agent=self.coordinator, tier=TIER))
        self._intents.remove(OPERATOR, self._held.id)

    def _missing(self, phase: Phase, kept: Mapping[str, Any]) -> str:
        if "unkept" in kept:
            return str(kept["unkept"])
        return "its working memory is gone" if phase.memory.handoff and not self.is_open(phase) else ""

    def _status(self, task: str) -> str | None:
        try:
            return self._intents.task(OPERATOR, task).status
        except NotFound:
            return None

    def _write(self, phase: Phase | None, value: Any) -> Entry:
        """Store the result of a phase, in one transaction with the proof that the run is this process's."""
        with self._guard:
            state = _value(self._held) | ({} if phase else {"process": None})
            drafts = [_draft(self._workflow, self.run, state, version=self._held.version)]
            if phase:
                drafts.append(EntryDraft(agent=self.coordinator, key=phase.name, value=value, tier=TIER, pinned=True))
            try:
                self._held, *rest = self._intents.batch(OPERATOR, drafts)
            except Conflict as error:
                raise self._lost_error() from error
        return rest[0] if rest else self._held

    def _lost_error(self) -> Conflict:
        return Conflict(f"the run {self.run!r} was resumed by another process")


def begin_run(intents: Intents, workflow: Workflow, *, inputs: Mapping[str, Any]) -> Progress:
    """Begin a run.  It is a task too, whose working memory holds the inputs; a phase that inherits reads them."""
    run = new_id(now_utc())
    name = _coordinator(run)
    intents.begin(Caller(agent=name), run, agent=name)
    try:
        kept = _store_inputs(intents, run, inputs) if inputs else {}
    except CommonplaceError:
        intents.erase(OPERATOR, run)
        raise
    withheld = [one for one in inputs if kept.get(one) != _plain(inputs[one])]
    file = os.path.abspath(workflow.file)
    state = {"attempt": 1, "file": file, "process": _current_process(), "withheld": withheld}
    [held] = intents.batch(OPERATOR, [_draft(workflow, run, state, version=0)])
    return Progress(intents, workflow, run=run, inputs=inputs, held=held)


def resume_run(intents: Intents, workflow: Workflow, *, run: str, inputs: Mapping[str, Any] | None) -> Progress:
    """Take over a run that has not completed; an empty ``run`` is the newest of that workflow's file.

    ``inputs`` are those that are given again; None: nothing will run, so that none are needed.
    """
    held = _entry(intents, workflow, run or _newest(intents, workflow))
    run, state = held.key, _value(held)
    if (status := intents.task(OPERATOR, run).status) != ACTIVE:
        raise Conflict(f"the run {run!r} is {status}: there is nothing to resume")
    if _is_running(state["process"]):
        raise Conflict(f"the run {run!r} is under way, in process {state['process']['pid']}")
    checked = {} if inputs is None else _check_inputs(intents, run, state["withheld"], inputs)
    state |= {"attempt": state["attempt"] + 1, "process": _current_process()}
    try:
        [held] = intents.batch(OPERATOR, [_draft(workflow, run, state, version=held.version)])
    except Conflict as error:
        raise Conflict(f"the run {run!r} was resumed by another process just now") from error
    return Progress(intents, workflow, run=run, inputs=checked, held=held)


def _coordinator(run: str) -> str:
    return f"workflow:{run}"


def _draft(workflow: Workflow, run: str, state: Mapping[str, Any], *, version: int) -> EntryDraft:
    return EntryDraft(
        agent=RUNS, key=run, value=dict(state), tier=TIER, namespace=_namespace(workflow), version=version
    )


def _value(entry: Entry) -> dict[str, Any]:
    """Return the value of one of these entries, which is a mapping."""
    return dict(entry.value) if isinstance(entry.value, dict) else {}


def _entry(intents: Intents, workflow: Workflow, run: str) -> Entry:
    for one in _entries(intents, workflow, run):
        return one
    raise NotFound(f"there is no run {run!r} of {workflow.name!r} that can be resumed")


def _newest(intents: Intents, workflow: Workflow) -> str:
    """Return the newest run of this very file: another project's may have the same name in the same store."""
    file = os.path.abspath(workflow.file)
    found = [one.key for one in _entries(intents, workflow) if _value(one)["file"] == file]
    for run in sorted(found, reverse=True):
        if intents.task(OPERATOR, run).status == ACTIVE:
            return run
    raise NotFound(f"there is no run of {workflow.file!r} that can be resumed")


def _entries(intents: Intents, workflow: Workflow, run: str | None = None) -> list[Entry]:
    """Return the runs that have not completed; it does not count as a read."""
    where = EntryFilter(agent=RUNS, namespace=_namespace(workflow), key=run, tier=TIER)
    return list(intents.page(OPERATOR, where, limit=PAGE_MOST))


def _namespace(workflow: Workflow) -> str:
    """Return a workflow's name without stars, which no namespace may have."""
    return workflow.name.replace("*", "+")


# Inputs


def _store_inputs(intents: Intents, run: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    name = _coordinator(run)
    return _value(intents.store(Caller(agent=name), name, INPUTS, dict(inputs), tier="working", task=run))


def _check_inputs(intents: Intents, run: str, withheld: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a run; secrets were not stored and have to be given again, and nothing else can change."""
    name = _coordinator(run)
    entries = intents.recall(Caller(agent=name), name, key=INPUTS, tier="working", task=run)
    kept = _value(entries[0]) if entries else {}
    for one in withheld:
        if one not in given:
            raise InvalidInput(f"the input {one!r} of the run {run!r} holds a secret and was not kept: give it again")
    for one, value in given.items():
        if one not in withheld and kept.get(one) != _plain(value):
            raise InvalidInput(f"the run {run!r} was begun with another {one!r}; with this one, begin a new run")
    return kept | dict(given)


# Results


def _definitions(workflow: Workflow) -> dict[str, str]:
    """Return a digest of each phase's definition and of those that it depends on: a result belongs to it."""
    found: dict[str, str] = {}
    for phase in (workflow.phase(name) for wave in workflow.order() for name in wave):
        before = [(name, found[name]) for name in phase.depends_on]
        definition = json.dumps([phase.name, phase.title, phase.description, phase.assign, before])
        found[phase.name] = sha256(definition.encode()).hexdigest()[:16]
    return found


def _plain(value: Any) -> Any:
    """Return a value as JSON returns it, if that is the same but for tuples; else None."""
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return plain if plain == _without_tuples(value) else None


def _without_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_tuples(one) for one in value]
    return {name: _without_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value


# Processes


def _current_process() -> dict[str, Any]:
    return {"host": platform.node(), "pid": os.getpid(), "started": _start_time(os.getpid())}


def _is_running(process: Mapping[str, Any] | None) -> bool:
    """Return whether a process of this machine lives; one of another machine is unknown, and its writes would fail."""
    if process is None or process["host"] != platform.node() or os.name != "posix":
        return False
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and another user's
        pass
    return bool(_start_time(process["pid"]) == process["started"])


def _start_time(pid: int) -> str | None:
    """Return when a process started, if the system says so: its number may be reused.  Empty: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if state == "Z" else fields[18]
