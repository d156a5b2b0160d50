"""The audit log: who changed which record and when, without a word of it, in a chain of keyed digests.

Each entry's digest covers the entry and the digest before it, under the key of the data folder: an entry that was
changed, removed or moved breaks the chain.
"""

from __future__ import annotations

from datetime import datetime

from commonplace.model.values import Value

FIRST = "0" * 64  #: what stands for the digest before the first entry


class AuditEntry(Value):
    """One change of one record, or one act that changes none, such as an export."""

    seq: int  #: from 1, without gaps
    at: datetime
    verb: str  #: put, update, archive, restore, supersede, erase, approve, reject, rollback, import, export ...
    record: str | None = None
    version: int | None = None  #: the version that the record has since then
    actor: str  #: the process: its channel, and the host and session where they are known
    channel: str | None = None  #: the channel that the record's words came by
    digest: str = ""


def entry_digest(entry: AuditEntry, before: str, key: bytes) -> str:
    """Return the digest of an entry that follows on the digest before it."""
    from hashlib import blake2b  # noqa: PLC0415 - only writes need it; recall must start without
    from json import dumps  # noqa: PLC0415 - likewise

    fields = [entry.seq, entry.at.isoformat(), entry.verb, entry.record, entry.version, entry.actor, entry.channel]
    return blake2b(dumps([before, *fields]).encode(), key=key[:64], person=b"audit", digest_size=32).hexdigest()
