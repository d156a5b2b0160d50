"""Read a folder that its user does not trust: its notes become data from outside, and nothing is written there.

The folder's word counts for nothing but the text: ids, trust, sources, pins and dates of supersession in its files are
ignored.  Its records live in a scope of their own, and are gone when their file is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256

from commonplace.engine.writer import Writer, document_change
from commonplace.files import disk
from commonplace.files.codec import FILE_BYTES, FileTrouble, ParsedFile, decode
from commonplace.files.plan import Trouble
from commonplace.files.sync import EVERYTHING, SyncReport
from commonplace.model.binding import Binding
from commonplace.model.changes import Change, Delete, DeleteDocuments, DropFiles, Put, PutFiles
from commonplace.model.documents import Document, FileState
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import CATEGORIES, Channel, Draft, Trust
from commonplace.model.scopes import Scope

FOREIGN = "#foreign"  # after a folder's name: what was read there while nobody trusted it
MAX_FILES = 2_000  # of a stranger's folder; the first ones by name are read
GROUP = 200  # files per commit


class ForeignFolder:
    """The folder of one scope, as data."""

    def __init__(
        self, store: Store, scope: Scope, folder: str, binding: Binding, *, clock: Clock,
        secret: Callable[[], bytes], embedder: Embedder | None = None,
    ) -> None:  # fmt: skip
        self.store = store
        self.scope = scope
        self.folder = os.path.realpath(folder)
        self.key = self.folder + FOREIGN
        self._binding = binding.replace(channel=Channel.FILE, also_writes=frozenset({scope}))
        self._clock = clock
        self._writer = Writer(store, clock=clock, embedder=embedder, secret=secret)

    def is_changed(self) -> bool:
        """Whether a file differs from what was last read."""
        return self._listed() != {state.path: state.stamp for state in self.store.files(self.key)}

    def read(self) -> SyncReport:
        """Read what has changed; the files that cannot be read are in the report."""
        listed = self._listed()
        known = {state.path: state for state in self.store.files(self.key)}
        gone = [state for path, state in sorted(known.items()) if path not in listed]
        new = [path for path, stamp in listed.items() if path not in known or known[path].stamp != stamp]
        self.store.apply(self._erase(gone))
        report = SyncReport()
        for start in range(0, len(new), GROUP):
            report = self._read_group(new[start : start + GROUP], known, report)
        return report

    def references(self, ids: Sequence[str]) -> dict[str, str]:
        """The file of each of these records."""
        states = self.store.files(self.key, records=ids) if ids else ()
        return {state.record: os.path.join(self.folder, state.path) for state in states}

    def _listed(self) -> dict[str, int]:
        if not os.path.isdir(self.folder):
            return {}
        named = ((path, stamp) for path, stamp in disk.list_files(self.folder) if path.partition("/")[0] in CATEGORIES)
        return dict(sorted(named)[:MAX_FILES])

    def _erase(self, states: Sequence[FileState]) -> list[Change]:
        ids = frozenset(state.record for state in states if state.record)
        dropped = DropFiles(folder=self.key, paths=frozenset(state.path for state in states))
        where = Filter(scopes=frozenset({self.scope}), at=self._clock(), states=ANY_STATE, ids=ids)
        return [*([Delete(where=where)] if ids else []), *([dropped] if states else [])]

    def _read_group(self, paths: Sequence[str], known: dict[str, FileState], report: SyncReport) -> SyncReport:
        changes: list[Change] = []
        states: list[FileState] = []
        for path in paths:
            found = self._read_file(path, report)
            report, record, digest, stamp = found
            before = known.get(path)
            if before and record and before.digest == digest:  # it was only touched
                states.append(before.replace(stamp=stamp))
                continue
            changes += self._erase([before]) if before else []
            changes += [record] if record else []
            states.append(
                FileState(path=path, record=record.record.id if record else "", version=1, digest=digest, stamp=stamp)
            )
        self._writer.apply([*changes, PutFiles(folder=self.key, files=tuple(states))])
        return report

    def _read_file(self, path: str, report: SyncReport) -> tuple[SyncReport, Put | None, str, int]:
        stamp = disk.stamp(self.folder, path) or 0
        digest = ""
        try:
            data, stamp = disk.read(self.folder, path, limit=FILE_BYTES)
            digest = sha256(data).hexdigest()
            return report.replace(added=(*report.added, path)), self._put(path, decode(data, path=path)), digest, stamp
        except FileTrouble as error:
            trouble = Trouble(path=path, line=error.line, reason=error.reason)
        except (InvalidInput, OSError) as error:
            reason = str(error) if isinstance(error, InvalidInput) else f"cannot be read: {error.strerror}"
            trouble = Trouble(path=path, line=1, reason=reason)
        return report.replace(troubles=(*report.troubles, trouble)), None, digest, stamp

    def _put(self, path: str, parsed: ParsedFile) -> Put:
        draft = Draft(
            content=parsed.content, category=path.partition("/")[0], scope=self.scope, key=None,
            tags=parsed.tags, metadata=parsed.metadata, ref=path, occurred_at=parsed.occurred_at,
        )  # fmt: skip
        return self._writer.admit(draft, self._binding, parent_trust=Trust.EXTERNAL).put()


def adopt(store: Store, old: Scope, new: Scope, folder: str | None, clock: Clock) -> int:
    """Make a folder's memory the one of its project, now that its user trusts it; returns how many sessions moved.

    What was read from its files is erased: from now on they are read as the user's.  Sessions and tickets from
    there move over; where the project has one of the same name, that one stays.
    """
    where = Filter(scopes=frozenset({old}), at=clock(), states=ANY_STATE)
    records = store.find(where, order=Order.ID, limit=EVERYTHING)
    ids = frozenset(record.id for record in records if record.source.channel is Channel.FILE)
    key = os.path.realpath(folder) + FOREIGN if folder else ""
    paths = frozenset(state.path for state in store.files(key)) if key else frozenset()
    changes: list[Change] = [Delete(where=where.replace(ids=ids))] if ids else []
    changes += [DropFiles(folder=key, paths=paths)] if paths else []
    documents = store.documents(DocumentFilter(scopes=frozenset({old})), limit=EVERYTHING)
    known = {(one.kind, one.name) for one in store.documents(DocumentFilter(scopes=frozenset({new})), limit=EVERYTHING)}
    for document in documents:
        changes += _moved(store, document, new) if (document.kind, document.name) not in known else []
    store.apply([*changes, DeleteDocuments(where=DocumentFilter(scopes=frozenset({old})))])
    return len(documents)


def _moved(store: Store, document: Document, new: Scope) -> list[Change]:
    own = DocumentFilter(
        scopes=frozenset({document.scope}), kinds=frozenset({document.kind.value}), names=frozenset({document.name})
    )
    chunks = [chunk.replace(scope=new) for chunk in store.chunks(own, limit=EVERYTHING)]
    return [document_change(document.replace(scope=new), chunks)]
