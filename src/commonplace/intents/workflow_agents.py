"""The agents of a workflow: classes by import path or as a program gives them, and models that the file describes.

All are found before the first phase runs.  An import runs the module's code: a workflow is a program of its author's.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType

from commonplace.agents.tolerance import tolerate
from commonplace.config.operator import key_hosts_for, require_operator
from commonplace.intents.decorators import AGENT, declaration_of, handler
from commonplace.intents.model_agent import ModelAgent
from commonplace.intents.workflow_dialect import Phase, Workflow
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.providers.services import model_uses


class WorkflowAgents:
    """The agents of a workflow, by phase."""

    def __init__(
        self, workflow: Workflow, given: Iterable[object] = (), *, env: Mapping[str, str] | None = None
    ) -> None:
        """Find all agents.  Raises ``ConfigError`` for a phase that has none, and for what a stranger may not say."""
        self._env = os.environ if env is None else env
        self._workflow = workflow
        self._given = _by_id(given)
        require_operator(workflow.file, self._operator_uses(), self._env)
        self._found = {phase.name: self._find(phase) for phase in workflow.phases}

    def _operator_uses(self) -> Iterator[tuple[str, str]]:
        """Yield what the file decides that is the operator's business, of the agents that no program gives."""
        for phase in self._workflow.phases:
            block = self._workflow.agent(phase)
            if phase.assign in self._given:
                continue
            if block.model:
                given = model_uses(block.model, base_url=block.base_url, api_key_env=block.api_key_env)
                yield from ((f"agents.{block.name}.{name}", what) for name, what in given)
            elif block.use:
                yield f"agents.{block.name}", f"runs code ({block.use})"

    def agent(self, phase: Phase) -> object:
        """Return the agent of a phase; of a class a new instance for each."""
        return _instance(self._found[phase.name], phase)

    def _find(self, phase: Phase) -> object:
        block = self._workflow.agent(phase)
        if phase.assign in self._given:
            return self._given[phase.assign]
        try:
            if block.model:
                return ModelAgent(block, env=self._env, key_hosts=key_hosts_for(self._workflow.file, self._env))
            if block.use:
                return self._import_agent(block.use)
        except InvalidInput as error:
            raise self._error(phase, str(error)) from error
        reason = f"there is no agent {phase.assign!r}: declare it under `agents`, or give its module with --agents"
        raise self._error(phase, reason)

    def _import_agent(self, path: str) -> object:
        module, _, name = path.partition(":")
        found = getattr(import_near(module, workflow_file=self._workflow.file), name, None)
        if not isinstance(found, type) or AGENT not in dir(found):
            raise InvalidInput(f"{path!r} is no class with @Agent")
        handler(found)
        return found

    def _error(self, phase: Phase, reason: str) -> ConfigError:
        word = "agent" if phase.path.startswith("plan") else "assign"
        return ConfigError(reason, file=self._workflow.file, path=f"{phase.path}.{word}")


def _by_id(given: Iterable[object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in given:
        handler(one)
        if found.setdefault(declaration_of(one).id, one) is not one:
            raise InvalidInput(f"there are two agents {declaration_of(one).id!r}")
    return found


def _instance(found: object, phase: Phase) -> object:
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise InvalidInput(f"the agent of {phase.name!r}, {found.__name__}, cannot be made: {error}") from error


# Modules


def agents_in(name: str, *, workflow_file: str) -> list[type]:
    """Return the classes with ``@Agent`` of a module, by its name or by the path of its file."""
    _look_in(os.getcwd())
    module = _from_file(name) if name.endswith(".py") else import_near(name, workflow_file=workflow_file)
    found = [one for one in vars(module).values() if isinstance(one, type) and AGENT in vars(one)]
    if not found:
        raise InvalidInput(f"{name!r} has no class with @Agent")
    return found


def import_near(name: str, *, workflow_file: str) -> ModuleType:
    """Import an installed module, else one in the folder of the workflow's file; errors become one sentence."""
    _look_in(os.path.dirname(os.path.abspath(workflow_file)))
    return _load(name, lambda: importlib.import_module(name))


def _from_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(os.path.basename(path).removesuffix(".py"), path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise InvalidInput(f"there is no file {path!r}")
    _look_in(os.path.dirname(os.path.abspath(path)))
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def execute() -> ModuleType:
        loader.exec_module(module)
        return module

    return _load(path, execute)


def _look_in(folder: str) -> None:
    """Find modules in a folder too, after all others: they cannot replace what is installed."""
    if folder not in sys.path:
        sys.path.append(folder)


def _load(name: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Run a module's code, which may fail in any way."""
    troubles: list[str] = []
    with tolerate(f"{name!r} cannot be imported", notify=troubles.append):
        return load()
    raise InvalidInput(troubles[0])
