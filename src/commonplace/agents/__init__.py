"""What role agents, pipeline agents and workflow agents share: the model, the loop, the scheduler, the tools."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from commonplace.agents.verb_tools import VerbTool, answer_call, tools_of

__getattr__ = lazy_names(__name__, {"verb_tools": "VerbTool answer_call tools_of"})

__all__ = ["VerbTool", "answer_call", "tools_of"]
