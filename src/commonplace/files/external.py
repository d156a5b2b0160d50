"""What becomes of a file that is not the user's word: an external record, or a proposal that waits for review.

Pure: ``sync`` asks and stores.  Such a file says what it says, and nothing about itself: no source, no trust, no pin,
no release, no archiving, no parents.  It changes an external record; of a record that is trusted more it makes a
proposal, a held record whose parent is that record, and the record stays as it is.  The file stays as it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from commonplace.files.codec import ParsedFile, apply_file
from commonplace.git.provenance import HAND, FileOrigin
from commonplace.model.records import PROPOSED, Channel, Record, Source, Trust

#: Finds where the contents of files come from, by their paths in the folder.
Judge: TypeAlias = Callable[[Mapping[str, bytes]], Mapping[str, FileOrigin]]

_PROPOSED = ("content", "category", "kind", "value", "tags", "metadata", "occurred_at", "expires_at")


def judge_as_hand_edits(contents: Mapping[str, bytes]) -> Mapping[str, FileOrigin]:
    """Judge files of a folder that only the user writes to: each is the user's word."""
    return dict.fromkeys(contents, HAND)


def without_claims(parsed: ParsedFile, path: str, origin: FileOrigin, *, now: datetime) -> ParsedFile:
    """Return what a new file says that is not the user's word, without what it says about itself."""
    return parsed.replace(
        source=external_source(path, origin),
        trust=Trust.EXTERNAL,
        version=None,
        pinned=False,
        superseded_by=None,
        consolidated_at=None,
        created_at=min(parsed.created_at or now, now),
        updated_at=None,
    )


def apply_external(before: Record, parsed: ParsedFile, path: str, origin: FileOrigin) -> Record:
    """Return an external record with the content of its file; the record alone says whether it is live and pinned."""
    after = apply_file(before, parsed.replace(archived_at=None, superseded_by=None, source=None, trust=None))
    source = external_source(path, origin) if after.content != before.content else before.source
    return after.replace(
        source=source.replace(parents=before.source.parents),
        pinned=before.pinned,
        held=before.held,
        archived_at=before.archived_at,
        superseded_by=before.superseded_by,
        consolidated_at=before.consolidated_at,
        created_at=before.created_at,
    )


def proposal_of(before: Record, parsed: ParsedFile, path: str, origin: FileOrigin, *, id: str, now: datetime) -> Record:
    """Return the held record that says what a file would change a record into."""
    after = apply_external(before, parsed, path, origin)
    return after.replace(
        id=id,
        source=external_source(path, origin).replace(parents=(before.id,)),
        trust=Trust.EXTERNAL,
        version=0,
        held=True,
        pinned=False,
        key=None,  # its record has it
        archived_at=None,
        superseded_by=None,
        consolidated_at=None,
        created_at=now,
        updated_at=now,
    )


def is_proposed(wanted: Record, records: Iterable[Record]) -> bool:
    """Whether one of the records is the same proposal, or what it would change already says so."""
    return any(
        (one.id in wanted.source.parents or one.source.parents == wanted.source.parents)
        and all(getattr(one, field) == getattr(wanted, field) for field in _PROPOSED)
        for one in records
    )


def external_source(path: str, origin: FileOrigin) -> Source:
    """Return the source of what came with a file: its path, and the commit that brought it."""
    commit = f"@{origin.commit}" if origin.commit else ""
    return Source(channel=Channel.FILE, ref=f"{PROPOSED}{path}{commit}")
