"""Sessions and tickets in: files -> messages -> redacted chunks -> the store, batch by batch.

A file is read once and from then on only where it grew: what was read is remembered with its digest, and a file whose
beginning is another one is indexed anew.  Memory stays bounded however long the file is, and an interrupted run resumes
after the last batch.  Chunks can be found at once and are never records.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import IO, Any, Protocol

from commonplace.engine.admission import Gate, transcript_policy
from commonplace.engine.rendering import remove_fenced
from commonplace.engine.tombstones import document_erased, refusal_notes, without_erased_turns
from commonplace.engine.transcripts import Turn, chunk_turns
from commonplace.engine.writer import document_change
from commonplace.files.disk import open_file
from commonplace.learning import Workspace
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import Conflict, Forbidden, InvalidInput
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import CEILING, Channel, Json, Source
from commonplace.model.tombstones import Tombstone
from commonplace.model.values import Value
from commonplace.records import tickets
from commonplace.records.session_lines import Header, Message, ToolCall, read
from commonplace.text.cleaning import one_line

SESSIONS, TICKETS = (".jsonl",), (".md", ".markdown")
LINE_BYTES = 16 * 1024 * 1024  # a longer line is no message; reading it whole would not be bounded
TICKET_BYTES = 4 * 1024 * 1024
BLOCK_BYTES = 1024 * 1024
BATCH_CHUNKS = 256  # kept in one go: enough that a commit is cheap by comparison, few enough to hold in memory
TRIES = 3  # when another process indexes the same file at the same time
_SEED = b"commonplace session 2\n"  # another number when messages are read differently: then all is indexed anew


class Indexed(Value):
    """What became of one file."""

    path: str
    kind: DocumentKind
    name: str
    state: str  #: new, grown, rewritten, unchanged, or erased: left out, because a person has erased it
    turns: int = 0  #: messages or parts that were read now
    chunks: int = 0  #: pieces that were kept now


class IndexProblem(Value):
    """Something in a file that could not be read; the rest was."""

    path: str
    line: int  #: 0: the file as a whole
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


class IndexReport(Value):
    """What one run did."""

    files: tuple[Indexed, ...]
    troubles: tuple[IndexProblem, ...] = ()
    redactions: Mapping[str, int] = {}  #: how many secrets of which kind were taken out
    injected: int = 0  #: messages from which memory's own words were taken out
    filtered: int = 0  #: results of tools that are not kept
    erased: int = 0  #: sessions, tickets and turns that a person has erased, and that were left out
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences


class Lines(Protocol):
    """A transcript in our form of lines; it is read on, or begun anew."""

    def seek(self, offset: int, /) -> int:
        """Go to a byte; only to the beginning, or on."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """The rest of the line, or so much of it."""


class Log(Value):
    """One transcript: where it is stored, and how to read it."""

    path: str
    session: str | None = None  #: what it is called; None: as its header says, else its file
    stamp: Mapping[str, Json]  #: the same stamp is taken for the same words
    modified: datetime
    host: str | None = None  #: the coding agent whose transcript it is
    lines: Callable[[], AbstractContextManager[Lines]]  #: opens it; raises ``OSError`` and ``InvalidInput``


def index(
    place: Workspace, paths: Sequence[str], *, session: str | None = None, progress: ProgressCallback = no_progress
) -> IndexReport:
    """Make sessions and tickets searchable; ``session`` names the one session that is meant."""
    _check_takes_transcripts(place)
    found = list(_files(paths))
    if session is not None and [kind for _, kind in found] != [DocumentKind.SESSION]:
        raise InvalidInput(f"--session {session!r} names one session, so give one .jsonl file")
    work = _Indexing(place, progress)
    return work.report([work.file(path, kind, session) for path, kind in found])


def index_logs(place: Workspace, logs: Iterable[Log], *, progress: ProgressCallback = no_progress) -> IndexReport:
    """Index transcripts that are stored in another form, such as a coding agent's."""
    _check_takes_transcripts(place)
    work = _Indexing(place, progress)
    return work.report([work.log(log) for log in logs])


def _check_takes_transcripts(place: Workspace) -> None:
    if place.scope not in place.bind(Channel.CAPTURE).transcripts:
        raise Forbidden(f"{place.scope} takes records only, no sessions and no tickets")


def _files(paths: Sequence[str]) -> Iterator[tuple[str, DocumentKind]]:
    """The files meant, each with what it is; folders are walked, hidden ones and links left out."""
    for path in paths:
        if not os.path.isdir(path):
            if (kind := _kind(path)) is None:
                raise InvalidInput(f"{path!r} is neither a session (.jsonl) nor a ticket (.md)")
            if not os.path.exists(path):
                raise InvalidInput(f"there is no file {path!r}")
            yield path, kind
            continue
        for folder, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(names):
                kind = _kind(name)
                if kind and not name.startswith(".") and os.path.isfile(os.path.join(folder, name)):
                    yield os.path.join(folder, name), kind


def _kind(path: str) -> DocumentKind | None:
    end = os.path.splitext(path)[1].lower()
    return DocumentKind.SESSION if end in SESSIONS else DocumentKind.TICKET if end in TICKETS else None


class _Target(Value):
    """What a file becomes."""

    path: str
    kind: DocumentKind
    name: str
    about: Mapping[str, Json]  #: what it says about itself


class _Position(Value):
    """How far a transcript was read."""

    offset: int = 0
    line: int = 0
    turn: int = 0
    chunks: int = 0
    last: datetime | None = None  #: the time of the latest message
    pending: tuple[ToolCall, ...] = ()  #: calls of tools that wait for their results

    def as_json(self) -> dict[str, Json]:
        last = None if self.last is None else self.last.isoformat()
        pending: list[Json] = [[one.tool, one.own] for one in self.pending]
        fields: dict[str, Json] = {"offset": self.offset, "lines": self.line, "turns": self.turn, "chunks": self.chunks}
        return {**fields, "last": last, **({"pending": pending} if pending else {})}


class _Indexing:
    """One run of indexing, and what it reports."""

    def __init__(self, place: Workspace, progress: ProgressCallback) -> None:
        self.place, self._progress = place, progress
        self.troubles: list[IndexProblem] = []
        self.redactions: Counter[str] = Counter()
        self.notes: dict[str, None] = {}  # each once, in order
        self._erased: dict[str, list[Tombstone]] = {}  # by what they are of
        self.injected = self.filtered = self._messages = 0

    def report(self, done: Sequence[Indexed | None]) -> IndexReport:
        """Return what was done and what could not be read."""
        return IndexReport(
            files=tuple(one for one in done if one), troubles=tuple(self.troubles), redactions=dict(self.redactions),
            injected=self.injected, filtered=self.filtered, erased=sum(map(len, self._erased.values())),
            notes=(*self.notes, *(note for what, found in self._erased.items() for note in refusal_notes(found, what))),
        )  # fmt: skip

    def file(self, path: str, kind: DocumentKind, session: str | None) -> Indexed | None:
        """Index one file; one that cannot be read is named, and the others are indexed."""
        with self._naming(path), open_file(path) as file:
            if kind is DocumentKind.TICKET:
                return self._ticket(path, file)
            status = os.fstat(file.fileno())
            log = Log(
                path=path,
                session=session,
                stamp=file_stamp(status),
                modified=_modification_time(status),
                lines=lambda: file,
            )
            return self._index_log(log, file)
        return None

    def log(self, log: Log) -> Indexed | None:
        """Index one transcript; one that cannot be read is reported by name."""
        with self._naming(log.path), log.lines() as lines:
            return self._index_log(log, lines)
        return None

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        try:
            yield
        except tickets.TicketTrouble as trouble:
            self.troubles.append(IndexProblem(path=path, line=trouble.line, reason=trouble.reason))
        except OSError as error:
            self.troubles.append(IndexProblem(path=path, line=0, reason=f"cannot be read: {error.strerror}"))
        except InvalidInput as error:
            self.troubles.append(IndexProblem(path=path, line=0, reason=str(error)))

    def _index_log(self, log: Log, lines: Lines) -> Indexed:
        for _ in range(TRIES - 1):
            try:
                return self._session(log, lines)
            except Conflict:  # another process has indexed more of it meanwhile: continue from there
                continue
        return self._session(log, lines)

    def _gate(self) -> Gate:
        binding = self.place.bind(Channel.CAPTURE)
        return Gate(self.place.secret(), personal=transcript_policy(binding, self.place.scope))

    # Tickets

    def _ticket(self, path: str, file: IO[bytes]) -> Indexed:
        data = file.read(TICKET_BYTES + 1)
        if len(data) > TICKET_BYTES:
            raise InvalidInput(f"is longer than {TICKET_BYTES} bytes, which no ticket is")
        ticket = tickets.read(data, path=path)
        gate = self._gate()
        name = self._name(ticket.id, gate)
        turns = [Turn(ref=ref, text=text) for ref, text in ticket.parts]
        if self._is_erased(name, DocumentKind.TICKET):
            return Indexed(path=path, kind=DocumentKind.TICKET, name=name, state="erased")
        chunks = self._without_erased(chunk_turns(self.place.scope, DocumentKind.TICKET, name, turns, gate))
        held = self._find_document(DocumentKind.TICKET, name)
        digest = sha256(data).hexdigest()
        if held and held.digest == digest:
            return Indexed(path=path, kind=DocumentKind.TICKET, name=name, state="unchanged")
        self._refuse_other(path, held)
        target = _Target(path=path, kind=DocumentKind.TICKET, name=name, about={"title": ticket.title})
        document = self._document(target, digest, _modification_time(os.fstat(file.fileno())), held, gate)
        self._store(document, chunks, gate)
        state = "rewritten" if held else "new"
        return Indexed(
            path=path, kind=DocumentKind.TICKET, name=name, state=state, turns=len(turns), chunks=len(chunks)
        )

    # Sessions

    def _session(self, log: Log, file: Lines) -> Indexed:
        path = log.path
        file.seek(0)
        header = _header(file.readline(LINE_BYTES))
        stem = os.path.splitext(os.path.basename(path))[0]
        name = self._name(log.session or header.session or stem, self._gate())
        if self._is_erased(name, DocumentKind.SESSION):
            return Indexed(path=path, kind=DocumentKind.SESSION, name=name, state="erased")
        held = self._find_document(DocumentKind.SESSION, name)
        if held and log.stamp.items() <= held.metadata.items():
            return Indexed(path=path, kind=DocumentKind.SESSION, name=name, state="unchanged")
        reader = _Reader(file, held)
        if held and reader.is_new:
            self._refuse_other(path, held)
        state = "rewritten" if held and reader.is_new else "grown" if held else "new"
        about = {"host": log.host, "cwd": header.cwd, "started": header.started.isoformat() if header.started else None}
        target = _Target(path=path, kind=DocumentKind.SESSION, name=name, about=about)
        before, erased_before = reader.position, len(self._erased.get("turn", ()))
        for batch in self._batches(path, name, reader):
            self._flush(target, reader, batch, log, held)
            held = self._find_document(DocumentKind.SESSION, name)
        erased = len(self._erased.get("turn", ())) - erased_before
        turns, chunks = reader.position.turn - before.turn, reader.position.chunks - before.chunks - erased
        unchanged = state == "grown" and reader.position.offset == before.offset
        state = "erased" if erased and not chunks else state
        return Indexed(
            path=path, kind=DocumentKind.SESSION, name=name, state="unchanged" if unchanged else state, turns=turns,
            chunks=chunks,
        )  # fmt: skip

    def _batches(self, path: str, name: str, reader: _Reader) -> Iterator[tuple[list[Chunk], Gate]]:
        """What a transcript says from here on; the last batch may be empty, and says how far it was read."""
        batch: list[Chunk] = []
        gate = self._gate()
        began = reader.position.offset
        for message in reader.messages(self.troubles, path):
            self._messages += 1
            self._progress(self._messages, 0)
            try:
                pieces = self._pieces(name, reader.position, message, gate)
            except InvalidInput as error:
                self.troubles.append(IndexProblem(path=path, line=reader.position.line, reason=str(error)))
                continue
            batch += pieces
            reader.position = reader.position.replace(chunks=reader.position.chunks + len(pieces))
            if len(batch) >= BATCH_CHUNKS:
                yield batch, gate
                batch, gate, began = [], self._gate(), reader.position.offset
        if batch or reader.position.offset != began or reader.is_new:
            yield batch, gate

    def _pieces(self, name: str, position: _Position, message: Message, gate: Gate) -> Sequence[Chunk]:
        """Return the chunks of a message: its text under the number of its turn, tool results with a suffix."""
        self.filtered += message.filtered
        self.injected += bool(message.own) or any(remove_fenced(text) != text for _, text in message.spoken)
        turns: list[Turn] = []
        for speaker, text in message.spoken:
            suffix = f"t{len(turns)}" if turns else ""
            turns.append(Turn(ref=f"{position.turn}{suffix}", text=text, speaker=speaker, occurred_at=message.time))
        return chunk_turns(self.place.scope, DocumentKind.SESSION, name, turns, gate, first=position.chunks)

    def _flush(
        self, target: _Target, reader: _Reader, batch: tuple[list[Chunk], Gate], log: Log, held: Document | None
    ) -> None:
        """Store a batch, together with how far the file has been read."""
        chunks, gate = self._without_erased(batch[0]), batch[1]
        if reader.is_new and batch[0] and not chunks:
            return  # all of it was erased: nothing is known of it, not even its name
        position, digest = reader.position, reader.digest
        whole = log.stamp if reader.at_end else {}
        known = target.replace(about={**target.about, **whole, **position.as_json(), "sha256": digest})
        document = self._document(known, digest, position.last or log.modified, held, gate)
        self._store(document, chunks, gate, expect_digest=None if reader.is_new else reader.kept)
        reader.is_new, reader.kept = False, digest

    # Both

    def _is_erased(self, name: str, kind: DocumentKind) -> bool:
        """Whether a person has erased what is called so; then it is left out, and counted."""
        tombstone = document_erased(self.place.store, (self.place.scope, name), self.place.secret())
        self._erased.setdefault(kind, []).extend([tombstone] if tombstone else [])
        return tombstone is not None

    def _without_erased(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        """Return the chunks that repeat no erased turn."""
        left, erased = without_erased_turns(self.place.store, chunks, self.place.secret())
        self._erased.setdefault("turn", []).extend(erased)
        return left

    def _name(self, text: str, gate: Gate) -> str:
        name = one_line(gate.text(text, what="the name"))
        if not name:
            raise InvalidInput("has a blank name")
        return name

    def _find_document(self, kind: DocumentKind, name: str) -> Document | None:
        where = DocumentFilter(
            scopes=frozenset({self.place.scope}), kinds=frozenset({kind.value}), names=frozenset({name})
        )
        return next(iter(self.place.store.documents(where, limit=1)), None)

    def _refuse_other(self, path: str, held: Document | None) -> None:
        """Two files that claim one name would replace each other for ever; one that was moved is no other."""
        before = held.metadata.get("file") if held else None
        if isinstance(before, str) and before != os.path.realpath(path) and os.path.exists(before):
            raise InvalidInput(f"is called {held.name!r} like {before!r}, which is indexed" if held else "")

    def _document(self, target: _Target, digest: str, changed: datetime, held: Document | None, gate: Gate) -> Document:
        """The document as it will be; its revision rises with every change, even if the clock goes back."""
        now, name = self.place.clock(), target.name
        before = held.metadata.get("revision") if held else None
        revision = max(_micros(now), before + 1 if isinstance(before, int) else 0)
        fields = {"file": os.path.realpath(target.path), **target.about, "revision": revision}
        metadata = {key: gate.json(value, what=f"the {key} of {name}", name=key) for key, value in fields.items()}
        return Document(
            scope=self.place.scope, kind=target.kind, name=name, digest=digest, metadata=metadata,
            source=Source(channel=Channel.CAPTURE, ref=name), trust=CEILING[Channel.CAPTURE], created_at=now,
            updated_at=min(changed, now),
        )  # fmt: skip

    def _store(
        self, document: Document, chunks: Sequence[Chunk], gate: Gate, *, expect_digest: str | None = None
    ) -> None:
        written = self.place.writer.apply([document_change(document, chunks, expect_digest=expect_digest)])
        self.notes.update(dict.fromkeys(written.notes))
        self.redactions.update(finding.kind for finding in gate.findings)


class _Reader:
    """A transcript, read on from where it was left; or from its beginning, if that is another one by now."""

    def __init__(self, file: Lines, held: Document | None) -> None:
        self._file = file
        self._hash = sha256(_SEED)
        self.position = _Position()
        self.at_end = False
        self.is_new = not (held and self._resumes(held))
        self.kept = held.digest if held else ""  # the digest of what is in the store
        if self.is_new:
            self._hash, self.position = sha256(_SEED), _Position()
        file.seek(self.position.offset)

    @property
    def digest(self) -> str:
        """Of everything up to the position."""
        return self._hash.hexdigest()

    def _resumes(self, held: Document) -> bool:
        """Whether the file still begins with what was read of it."""
        known = held.metadata
        offset, last = known.get("offset"), known.get("last")
        counts = [known.get(name) for name in ("lines", "turns", "chunks")]
        if not isinstance(offset, int) or not all(isinstance(count, int) for count in counts):
            return False  # it was indexed by a host, not from a file
        self._file.seek(0)
        left = offset
        while left and (block := self._file.read(min(BLOCK_BYTES, left))):
            self._hash.update(block)
            left -= len(block)
        line, turn, chunks = (int(str(count)) for count in counts)
        moment = datetime.fromisoformat(last) if isinstance(last, str) else None
        waiting: Any = known.get("pending") or ()
        pending = tuple(ToolCall(tool=tool, own=own) for tool, own in waiting)
        self.position = _Position(offset=offset, line=line, turn=turn, chunks=chunks, last=moment, pending=pending)
        return not left and self.digest == known.get("sha256")

    def messages(self, troubles: list[IndexProblem], path: str) -> Iterator[Message]:
        """Each message from here on; the position and the digest are those of its end."""
        while line := self._line():
            data, whole = line
            if not whole and (data.endswith(b"\n") or len(data) > LINE_BYTES):
                self._advance_line(data, turn=1)
                troubles.append(
                    IndexProblem(path=path, line=self.position.line, reason=f"is longer than {LINE_BYTES} bytes")
                )
                self._skip_line()
                continue
            parsed, reason = _parse_line(data, first=self.position.line == 0, pending=self.position.pending)
            if parsed is None and reason and not data.endswith(b"\n"):
                return  # it is still being written: it is read when it is whole, and the stamp is not stored
            self._advance_line(data, turn=int(isinstance(parsed, Message) or bool(reason)))
            if reason:
                troubles.append(IndexProblem(path=path, line=self.position.line, reason=reason))
            elif isinstance(parsed, Message):
                last = _latest(self.position.last, parsed.time)
                self.position = self.position.replace(last=last, pending=parsed.pending)
                yield parsed
        self.at_end = True

    def _line(self) -> tuple[bytes, bool] | None:
        """The next line, and whether all of it is there."""
        data = self._file.readline(LINE_BYTES + 1)
        return (data, len(data) <= LINE_BYTES) if data else None

    def _skip_line(self) -> None:
        """Pass over the rest of a line that is too long, a block at a time."""
        while (data := self._file.readline(BLOCK_BYTES)) and not self._advance(data).endswith(b"\n"):
            pass

    def _advance(self, data: bytes) -> bytes:
        self._hash.update(data)
        self.position = self.position.replace(offset=self.position.offset + len(data))
        return data

    def _advance_line(self, data: bytes, *, turn: int) -> None:
        self._advance(data)
        self.position = self.position.replace(line=self.position.line + 1, turn=self.position.turn + turn)


def _header(line: bytes) -> Header:
    parsed, _ = _parse_line(line, first=True)
    return parsed if isinstance(parsed, Header) else Header()


def _parse_line(
    line: bytes, *, first: bool, pending: Sequence[ToolCall] = ()
) -> tuple[Header | Message | None, str | None]:
    """What a line says, or why it says nothing; a blank one says nothing, and that is fine."""
    data = line.removeprefix(b"\xef\xbb\xbf") if first else line
    if not data.strip():
        return None, None
    try:
        return read(data, first=first, pending=pending), None
    except InvalidInput as error:
        return None, str(error)


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment), default=None)


def file_stamp(status: os.stat_result) -> dict[str, Json]:
    """Return a stamp of a file; the same stamp means the same bytes."""
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}


def _modification_time(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)
