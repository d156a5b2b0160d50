"""Verify the audit log: that nothing in it was changed, removed or moved, and that its end is there.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.model.audit import FIRST, AuditEntry, entry_digest
from commonplace.model.values import Value
from commonplace.text.cleaning import plural


class AuditReport(Value):
    """What a look at the log found."""

    entries: int
    problems: tuple[str, ...]  #: one sentence each; empty: nothing was altered


def verify_log(entries: Iterable[AuditEntry], key: bytes, *, noted: int, noted_digest: str, lost: int) -> AuditReport:
    """Verify the chain of all entries, and its end by the note that is kept outside of the database."""
    problems: list[str] = []
    before, seq, count, at_note = FIRST, 0, 0, ""
    for entry in entries:
        if entry.seq != seq + 1:
            problems.append(f"{_missing(seq + 1, entry.seq - 1)} missing")
        elif entry.digest != entry_digest(entry, before, key):
            problems.append(f"entry {entry.seq} was changed, or one was put in or moved before it")
        before, seq, count = entry.digest, entry.seq, count + 1
        at_note = entry.digest if entry.seq == noted else at_note
    if noted > seq:
        problems.append(f"{_missing(seq + 1, noted)} missing: the end of the log was cut off")
    elif noted and at_note != noted_digest:
        problems.append(f"entry {noted} is not the one that was noted: the log was replaced or written anew")
    if lost:
        problems.append(f"{plural(lost, 'entry')} missing at the end when it was written again")
    return AuditReport(entries=count, problems=tuple(problems))


def _missing(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"
