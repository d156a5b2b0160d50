"""Artifacts between store and folder: what people wrote in the files is taken in, what is stored is written out.

The store has the text; the folder is the people's copy.  For every file the digest of what was last written there is
noted, so that a file that a person changed is told from one that a dead process never got to write.  ``learned.md`` is
somebody else's: it is neither read nor written here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256

from commonplace.engine.admission import Gate
from commonplace.engine.forgetting import Erasure, unnamed
from commonplace.files import artifacts as disk
from commonplace.files import disk as files
from commonplace.learning.consolidate_text import Edits, edited, woven
from commonplace.learning.workspace import Workplace
from commonplace.model.changes import Change, DropFiles, PutFiles
from commonplace.model.documents import Document, DocumentKind, FileState
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Json
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.blocks import Owned, blocks

MEMORY, SUMMARY, RAW, LEARNED = "MEMORY.md", "memory_summary.md", "raw_memories.md", "learned.md"
WOVEN = (MEMORY, SUMMARY)  # in these a person's blocks and ours stand side by side
SKILLS, ROLLOUTS = "skills", "rollout_summaries"
EVERYTHING = 1_000_000  # a limit that no project reaches
_NOTED = "#artifacts"  # after a folder's name: what was written there


class Held(Value):
    """One artifact as it is by now."""

    name: str
    stored: str | None  #: its text in the store; None: only a file
    text: str  #: with what a person did to the file since
    edits: Edits = Edits()  #: what is a person's in it, if their blocks and ours stand side by side
    whole: bool = False  #: a person wrote or changed it, and it is theirs altogether
    metadata: Mapping[str, Json] = {}
    edited: bool = False  #: the file was changed since it was last written
    findings: tuple[Finding, ...] = ()  #: secrets that a person wrote into it
    seen: str | None = None  #: digest of a file that is not what was last written

    @property
    def by_hand(self) -> bool:
        """Whether anything in it is a person's."""
        return self.whole or bool(self.edits.owned)


class Published(Value):
    """What was written to the folder."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  #: changed by a person and not taken in yet


def stored(place: Workplace) -> dict[str, Document]:
    """The artifacts of the project in the store, by name."""
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.ARTIFACT.value}))
    return {one.name: one for one in place.store.documents(where, limit=EVERYTHING)}


# In


def present(place: Workplace, earlier: Iterable[str] = ()) -> dict[str, Held]:
    """Every artifact with the hand edits of its file; ``earlier`` are texts that files may still have."""
    kept = {name: one for name, one in stored(place).items() if name != LEARNED}
    noted = _noted(place)
    names = sorted({*kept, *_on_disk(place)})
    olds = {_digest(text): text for text in earlier}
    held = (_held(place, name, kept.get(name), noted.get(name), olds) for name in names)
    return {one.name: one for one in held if one is not None}


def _on_disk(place: Workplace) -> list[str]:
    if place.folder is None or not os.path.isdir(place.folder):
        return []
    return [*WOVEN, *disk.found(place.folder, under=SKILLS)]


def _held(
    place: Workplace, name: str, document: Document | None, noted: FileState | None, olds: Mapping[str, str]
) -> Held | None:
    known = document.content or "" if document else None
    metadata = dict(document.metadata) if document else {}
    edits, whole = edits_in(metadata), metadata.get("by_hand") is True
    unchanged = Held(name=name, stored=known, text=known or "", edits=edits, whole=whole, metadata=metadata)
    data = disk.read(place.folder, name) if place.folder and _is_read(name) else None
    if data is None or _is(data, noted) or (known is not None and data == written(known)):
        return unchanged if document else None
    if _hash(data) in olds:  # an earlier text that nobody got to replace
        return unchanged.replace(seen=_hash(data)) if document else None
    base = _base_of(known, noted, olds)
    return _changed(place, unchanged, data, base) or (unchanged if document else None)


def _base_of(known: str | None, noted: FileState | None, olds: Mapping[str, str]) -> str | None:
    """The text that a person began with; None if nobody knows any more."""
    if noted is None or known is None:
        return "" if known is None else None
    return known if noted.digest == _digest(known) else olds.get(noted.digest)


def _is_read(name: str) -> bool:
    """Whether what a person writes there counts; the rest is made anew from sessions."""
    return name in WOVEN or name.startswith(f"{SKILLS}/")


def _changed(place: Workplace, held: Held, data: bytes, base: str | None) -> Held | None:
    """An artifact with what a person did to its file; None if it is no text, or nobody's."""
    gate = Gate(place.secret())
    try:
        file = gate.text(data.decode("utf-8-sig"), what=held.name)
    except UnicodeDecodeError:  # left where it is
        return None
    same = held.replace(seen=_hash(data)) if held.stored is not None else None
    if not file or file == held.text:
        return same
    told = held.replace(edited=True, findings=tuple(gate.findings), seen=_hash(data))
    if held.name not in WOVEN:
        return told.replace(text=file, whole=True)
    edits = edited(held.text if base is None else base, file, held.edits, strike=base is not None)
    if edits == held.edits:  # blank lines only
        return same
    return told.replace(text=woven(ours(held.text, held.edits), edits), edits=edits)


def taken_in(place: Workplace, held: Iterable[Held]) -> list[Change]:
    """Note the files whose edits are being stored: from then on they may be written over."""
    states = tuple(
        FileState(path=one.name, record=one.name, version=0, digest=one.seen, stamp=0) for one in held if one.seen
    )
    return [PutFiles(folder=_key(place.folder), files=states)] if place.folder and states else []


def ours(text: str, edits: Edits) -> str:
    """A text without a person's blocks."""
    theirs = set(edits.texts)
    kept = [block for block in blocks(text, edits.owned) if block.text not in theirs]
    return "\n\n".join(block.text for block in kept)


# Metadata


def edits_in(metadata: Mapping[str, Json]) -> Edits:
    """A person's share in an artifact, as its metadata tells it."""
    told = metadata.get("owned")
    struck = metadata.get("struck")
    found = [_owned(one) for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    digests = frozenset(str(one) for one in struck) if isinstance(struck, list) else frozenset()
    return Edits(owned=tuple(found), struck=digests)


def _owned(told: Mapping[str, Json]) -> Owned:
    path = told.get("path")
    under = tuple(str(line) for line in path) if isinstance(path, list) else ()
    return Owned(path=under, after=str(told.get("after", "")), text=str(told.get("text", "")))


def edits_json(edits: Edits) -> dict[str, Json]:
    """The same, to be kept."""
    owned: list[Json] = [{"path": list(one.path), "after": one.after, "text": one.text} for one in edits.owned]
    return {"owned": owned, "struck": list[Json](sorted(edits.struck))} if owned or edits.struck else {}


# Out


def publish(place: Workplace) -> Published:
    """Bring the files up to what is stored; a file that a person changed meanwhile is left for the next run."""
    if place.folder is None:
        return Published()
    os.makedirs(place.folder, mode=0o700, exist_ok=True)
    with files.locked(place.folder):
        disk.sweep(place.folder, under=(SKILLS, ROLLOUTS))
        return _published(place, place.folder)


def _published(place: Workplace, folder: str) -> Published:
    kept, noted = stored(place), _noted(place)
    done = Published()
    states: list[FileState] = []
    for name, one in sorted(kept.items()):
        if name == LEARNED:
            continue
        data, state = written(one.content or ""), noted.get(name)
        there = disk.read(folder, name)
        changed = there is not None and there != data and not _is(there, state)
        if changed or disk.is_large(folder, name):
            done = done.replace(left=(*done.left, name))
            continue
        if there == data and _is(data, state):
            continue
        stamp = files.stamp(folder, name) or 0 if there == data else disk.replace(folder, name, data)
        done = done.replace(written=(*done.written, name))
        states.append(FileState(path=name, record=name, version=0, digest=_hash(data), stamp=stamp))
    gone = sorted(noted.keys() - kept.keys())
    for name in gone:
        if _is(disk.read(folder, name), noted[name]):
            disk.remove(folder, name)
            done = done.replace(removed=(*done.removed, name))
    if states or gone:
        files.settle(folder, [state.path for state in states], ())
        changes: list[Change] = [PutFiles(folder=_key(folder), files=tuple(states))]
        place.store.apply([*changes, DropFiles(folder=_key(folder), paths=frozenset(gone))])
    return done


def forgotten(place: Workplace, erasure: Erasure) -> Published:
    """Bring the files up to an erasure; of one that a person changed only what names erased records is taken out."""
    done = publish(place)
    for name in {*done.left, *WOVEN}:
        _unnamed(place, name, erasure)
    return done


def _unnamed(place: Workplace, name: str, erasure: Erasure) -> None:
    """Take what names erased records out of a file, and leave the rest of it for the next run as it is."""
    if place.folder is None:
        return
    with files.locked(place.folder), suppress(UnicodeDecodeError):  # it is no text of ours
        text = (disk.read(place.folder, name) or b"").decode()
        left = unnamed(text, erasure)
        if left != text:
            disk.replace(place.folder, name, written(left) if left else b"")


def written(text: str) -> bytes:
    """An artifact's text as the bytes of its file."""
    return f"{text}\n".encode()


def _is(data: bytes | None, state: FileState | None) -> bool:
    return data is not None and state is not None and _hash(data) == state.digest


def _noted(place: Workplace) -> dict[str, FileState]:
    if place.folder is None:
        return {}
    return {state.path: state for state in place.store.files(_key(place.folder))}


def _key(folder: str) -> str:
    return os.path.realpath(folder) + _NOTED


def _digest(text: str) -> str:
    return _hash(written(text))


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
