"""Autonomous memory: learn from sessions, consolidate, brief the next session, save receipts.

Everything that the other packages use of this room is named here, and loaded when it is first used.
"""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.learning.addresses import ROOT, SCHEME, AddressedText, Addresses, read_page
    from commonplace.learning.asking import find_quote, hold_unquoted, message_to_save, note_compaction
    from commonplace.learning.background import start_learning
    from commonplace.learning.brief import Injection, inject, injection_json, rules_in
    from commonplace.learning.brief_layout import ITEM_CHARS, limit_external, shown_items
    from commonplace.learning.consolidate import consolidate_memory
    from commonplace.learning.execution import Execution
    from commonplace.learning.extract import EXTRACT_JOB, extract_sessions, session_watermark
    from commonplace.learning.extract_host import extraction_prompt, forget_prepared
    from commonplace.learning.learn import ENQUEUED, clear_learned, enqueue_consolidation
    from commonplace.learning.learned import learned_notice
    from commonplace.learning.messages import learn_from_messages
    from commonplace.learning.opening import (
        addresses_of,
        open_learning_workspace,
        open_workspace,
        quoted_page,
        rules_of,
        session_brief,
    )
    from commonplace.learning.rebuilt_block import rebuild_block
    from commonplace.learning.receipts import (
        list_receipts,
        record_uses,
        save_brief_receipt,
        save_recall_receipt,
        save_receipt,
        session_use,
    )
    from commonplace.learning.refused import refused_notice, refused_requests
    from commonplace.learning.status import learning_notes, learning_status, learning_status_text
    from commonplace.learning.use_totals import list_shown, weekly_totals
    from commonplace.learning.workspace import Workspace
    from commonplace.learning.worth import worthless_reason

COMMANDS = {
    "brief": ("commands.brief:brief", "Print the brief for a session that is about to start.", "Learning"),
    "used": ("commands.used:show_used", "Show what a session was shown, and what of it was used.", "Learning"),
    "read": ("commands.read:read", "Print what is at a memory:// address.", "Learning"),
    "extract": ("commands.extract:extract", "Extract records from sessions.", "Learning"),
    "learn": ("commands.learn:learn", "Learn from finished sessions; hosts run it when they start.", "Learning"),
    "consolidate": (
        "commands.consolidate:consolidate",
        "Merge what was learned into MEMORY.md, a summary and skills.",
        "Learning",
    ),
    "memory": ("commands.memory:memory", "Show, clear or rebuild what this project learned.", "Learning"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "addresses": "ROOT SCHEME Addresses AddressedText read_page",
        "asking": "find_quote hold_unquoted message_to_save note_compaction",
        "background": "start_learning",
        "brief": "Injection inject injection_json rules_in",
        "brief_layout": "ITEM_CHARS limit_external shown_items",
        "consolidate": "consolidate_memory",
        "execution": "Execution",
        "extract": "EXTRACT_JOB extract_sessions session_watermark",
        "extract_host": "extraction_prompt forget_prepared",
        "messages": "learn_from_messages",
        "rebuilt_block": "rebuild_block",
        "use_totals": "list_shown weekly_totals",
        "learn": "ENQUEUED clear_learned enqueue_consolidation",
        "learned": "learned_notice",
        "opening": "quoted_page rules_of addresses_of open_learning_workspace open_workspace session_brief",
        "receipts": "session_use list_receipts record_uses save_brief_receipt save_recall_receipt save_receipt",
        "refused": "refused_notice refused_requests",
        "status": "learning_notes learning_status learning_status_text",
        "workspace": "Workspace",
        "worth": "worthless_reason",
    },
)

__all__ = [
    "ENQUEUED",
    "EXTRACT_JOB",
    "ITEM_CHARS",
    "ROOT",
    "SCHEME",
    "AddressedText",
    "Addresses",
    "Execution",
    "Injection",
    "Workspace",
    "addresses_of",
    "clear_learned",
    "consolidate_memory",
    "enqueue_consolidation",
    "extract_sessions",
    "extraction_prompt",
    "find_quote",
    "forget_prepared",
    "hold_unquoted",
    "inject",
    "injection_json",
    "learn_from_messages",
    "learned_notice",
    "learning_notes",
    "learning_status",
    "learning_status_text",
    "limit_external",
    "list_receipts",
    "list_shown",
    "message_to_save",
    "note_compaction",
    "open_learning_workspace",
    "open_workspace",
    "quoted_page",
    "read_page",
    "rebuild_block",
    "record_uses",
    "refused_notice",
    "refused_requests",
    "rules_in",
    "rules_of",
    "save_brief_receipt",
    "save_recall_receipt",
    "save_receipt",
    "session_brief",
    "session_use",
    "session_watermark",
    "shown_items",
    "start_learning",
    "weekly_totals",
    "worthless_reason",
]
