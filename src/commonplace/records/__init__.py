"""Records memory: project and assistant scope, five categories, sessions and tickets."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.records.access import AccessTable, AppAccess, MemoryAccess
    from commonplace.records.surface import record_tools, records_surface
    from commonplace.records.verbs import VERBS

COMMANDS = {
    "recall": ("commands.recall:recall", "Search memory with a question in plain words."),
    "record": ("commands.record:record", "Add, change, list and delete records."),
    "index": ("commands.index:index", "Make session transcripts and tickets searchable."),
}  #: name -> where it lives in this package, what it does

__getattr__ = lazy_names(
    __name__,
    {
        "access": "AccessTable AppAccess MemoryAccess",
        "surface": "record_tools records_surface",
        "verbs": "VERBS",
    },
)

__all__ = ["COMMANDS", "VERBS", "AccessTable", "AppAccess", "MemoryAccess", "record_tools", "records_surface"]
