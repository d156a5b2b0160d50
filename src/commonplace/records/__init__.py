"""Records memory: project and assistant scope, six categories, sessions and tickets."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.records.access import AccessTable, AppAccess, MemoryAccess
    from commonplace.records.activity import latest_change
    from commonplace.records.commands.foreign import PlainImport, export_foreign, import_foreign, import_plain
    from commonplace.records.health import (
        FILES_CHECK,
        STORE_CHECK,
        back_up,
        backup_path,
        check_health,
        problem_of,
        repair_health,
    )
    from commonplace.records.health_verbs import AgentConnection
    from commonplace.records.index import (
        LINE_BYTES,
        Indexed,
        IndexProblem,
        IndexReport,
        Log,
        file_stamp,
        index_logs,
    )
    from commonplace.records.plain import detect_format
    from commonplace.records.session_lines import asks_memory
    from commonplace.records.surface import record_tools, records_surface
    from commonplace.records.verbs import VERBS

COMMANDS = {
    "add": ("commands.record:add", "Add a record.", "Everyday"),
    "search": ("commands.recall:recall", "Search memory with a question in plain words.", "Everyday"),
    "recall": ("commands.recall:recall", "Search memory with a question in plain words.", "Everyday"),
    "list": ("commands.record:list_", "List records, newest first.", "Everyday"),
    "show": ("commands.record:get", "Show a record: text, source, versions, use.", "Everyday"),
    "edit": ("commands.record:edit", "Change a record, by default in your editor.", "Everyday"),
    "forget": (
        "commands.forget:forget",
        "Erase records, sessions, sources or subjects for good, with a receipt.",
        "Everyday",
    ),
    "record": ("commands.record:record", "Everything else for records: tags, pins, archive, versions.", "Everyday"),
    "session": ("commands.session:session", "List, show and delete indexed sessions.", "Learning"),
    "review": (
        "commands.review:review",
        "Decide about what waits for you: held records, proposals, instructions.",
        "History",
    ),
    "log": ("commands.log:log", "List what changed in memory and when it was used.", "History"),
    "why": ("commands.why:why", "Show where a record comes from, back to the turn, file or call.", "History"),
    "rollback": ("commands.rollback:rollback", "Undo what came from one origin, or since a time.", "History"),
    "audit": ("commands.audit:audit", "List the audit log, and verify that nothing in it was altered.", "History"),
    "index": ("commands.index:index", "Make session transcripts and tickets searchable.", "Learning"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "activity": "latest_change",
        "access": "AccessTable AppAccess MemoryAccess",
        "commands.foreign": "PlainImport export_foreign import_foreign import_plain",
        "health": "FILES_CHECK STORE_CHECK back_up backup_path check_health problem_of repair_health",
        "health_verbs": "AgentConnection",
        "plain": "detect_format",
        "index": "LINE_BYTES IndexReport Indexed Log IndexProblem index_logs file_stamp",
        "session_lines": "asks_memory",
        "surface": "record_tools records_surface",
        "verbs": "VERBS",
    },
)

__all__ = [
    "FILES_CHECK",
    "LINE_BYTES",
    "STORE_CHECK",
    "VERBS",
    "AccessTable",
    "AgentConnection",
    "AppAccess",
    "IndexProblem",
    "IndexReport",
    "Indexed",
    "Log",
    "MemoryAccess",
    "PlainImport",
    "asks_memory",
    "back_up",
    "backup_path",
    "check_health",
    "detect_format",
    "export_foreign",
    "file_stamp",
    "import_foreign",
    "import_plain",
    "index_logs",
    "latest_change",
    "problem_of",
    "record_tools",
    "records_surface",
    "repair_health",
]
