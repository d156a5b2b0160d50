"""Commonplace for a PydanticAI agent: ``Agent(model, capabilities=[CommonplaceMemory(commonplace.open_app())])``.

It brings the memory tools, and before a run what earlier sessions have learned, quoted as data.  Trouble with memory
never ends a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.agents.loop import pydantic_tool
from commonplace.agents.verb_tools import answer_call
from commonplace.app import App
from commonplace.install import hint
from commonplace.model.errors import CommonplaceError
from commonplace.model.ids import new_id
from commonplace.records import AppAccess, record_tools

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.capabilities import AbstractCapability
except ImportError as error:
    raise ImportError(hint("this adapter needs PydanticAI", "agent")) from error

RUNS_MOST = 256  # at once, of one agent, for which what they were given is kept


def toolset(place: App) -> FunctionToolset[Any]:
    """The memory tools of one place, for an agent that wants nothing else of Commonplace."""
    tools = record_tools(place)

    def function(name: str) -> Callable[..., str]:
        return lambda **arguments: answer_call(tools, name, arguments)

    return FunctionToolset([pydantic_tool(tool.to_tool(function(tool.name))) for tool in tools], id="commonplace")


class CommonplaceMemory(AbstractCapability[Any]):
    """Tools to remember and recall, and at the start of each run what is known about its task."""

    def __init__(self, place: App, *, budget: int | None = None) -> None:
        """Give an agent the memory of a place; ``budget`` is how many tokens may be injected."""
        self.id = "commonplace"
        self.place = place
        self.budget = budget
        self.notes: list[str] = []  #: what memory had trouble with
        self._shown: dict[str, str] = {}  #: run -> what it was given: the same on every request, so caches hold

    def get_toolset(self) -> FunctionToolset[Any]:
        """The tools."""
        return toolset(self.place)

    def get_instructions(self) -> Callable[[RunContext[Any]], str | None]:
        """What is injected before every request of a run."""

        def instructions(context: RunContext[Any]) -> str | None:
            run = context.run_id or ""
            if run not in self._shown:
                while len(self._shown) >= RUNS_MOST:
                    self._shown.pop(next(iter(self._shown)), None)
                self._shown[run] = self._brief(_task(context))
            return self._shown[run] or None

        return instructions

    def _brief(self, task: str) -> str:
        try:
            shown = AppAccess(self.place).brief(task, budget=self.budget, session=new_id(self.place.clock()))
        except CommonplaceError as error:
            self.notes.append(f"nothing was recalled: {error}")
            return ""
        self.notes += shown.notes
        return shown.injection.text


def _task(context: RunContext[Any]) -> str:
    """Return the text of the prompt, which may be in pieces between pictures."""
    prompt = context.prompt
    if isinstance(prompt, str):
        return prompt
    return " ".join(piece for piece in prompt or () if isinstance(piece, str))
