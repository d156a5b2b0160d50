"""Pipeline memory: agents in YAML pipelines that remember between runs, each isolated from the others."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from commonplace.ci.dialect import agent_step
    from commonplace.ci.runner import pipeline
    from commonplace.ci.surface import pipeline_surface
    from commonplace.ci.verbs import VERBS, answer_call, pipeline_tools

COMMANDS = {
    "pipeline": ("command:pipeline", "Run pipelines whose agents remember; see what they learned.", "Agents"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "dialect": "agent_step",
        "runner": "pipeline",
        "surface": "pipeline_surface",
        "verbs": "VERBS answer_call pipeline_tools",
    },
)

__all__ = ["COMMANDS", "VERBS", "agent_step", "answer_call", "pipeline", "pipeline_surface", "pipeline_tools"]
