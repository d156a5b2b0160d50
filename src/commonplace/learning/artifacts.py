"""What people did to the files of artifacts: read with what is stored, and stored with the next consolidation.

``learned.md`` belongs to other tools: it is not read here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from commonplace.engine.admission import Gate
from commonplace.files import artifacts as disk
from commonplace.learning.hand_edits import Edits, find_edits, merge_edits
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import Change, PutFiles
from commonplace.model.documents import Document, FileState
from commonplace.model.records import Json
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.blocks import OwnedBlock, blocks


class Artifact(Value):
    """One artifact as it is by now."""

    name: str
    stored: str | None  #: its text in the store; None: only a file
    text: str  #: with what a person did to the file since
    edits: Edits = Edits()  #: a person's part of it, if it has blocks of a person and of ours
    whole: bool = False  #: a person wrote or changed it, and it is theirs altogether
    metadata: Mapping[str, Json] = {}
    edited: bool = False  #: the file was changed since it was last written
    findings: tuple[Finding, ...] = ()  #: secrets that a person wrote into it
    seen: str | None = None  #: digest of a file that is not what was last written

    @property
    def by_hand(self) -> bool:
        """Whether anything in it is a person's."""
        return self.whole or bool(self.edits.owned)


def load_artifacts(place: Workspace, earlier: Iterable[str] = ()) -> dict[str, Artifact]:
    """Every artifact with the hand edits of its file; ``earlier`` are texts that files may still have."""
    stored = {name: one for name, one in disk.stored_artifacts(place).items() if name != disk.LEARNED}
    noted = disk.noted_files(place)
    names = sorted({*stored, *_on_disk(place)})
    olds = {disk.digest_of(disk.as_bytes(text)): text for text in earlier}
    artifacts = (_load_artifact(place, name, stored.get(name), noted.get(name), olds) for name in names)
    return {one.name: one for one in artifacts if one is not None}


def _on_disk(place: Workspace) -> list[str]:
    if place.folder is None or not os.path.isdir(place.folder):
        return []
    return [*disk.WOVEN, *disk.list_files(place.folder, under=disk.SKILLS)]


def _load_artifact(
    place: Workspace, name: str, document: Document | None, noted: FileState | None, olds: Mapping[str, str]
) -> Artifact | None:
    known = document.content or "" if document else None
    metadata = dict(document.metadata) if document else {}
    edits, whole = edits_in(metadata), metadata.get("by_hand") is True
    unchanged = Artifact(name=name, stored=known, text=known or "", edits=edits, whole=whole, metadata=metadata)
    data = disk.read(place.folder, name) if place.folder and _is_read(name) else None
    if data is None or disk.is_noted(data, noted) or (known is not None and data == disk.as_bytes(known)):
        return unchanged if document else None
    if disk.digest_of(data) in olds:  # an earlier text of ours that was not replaced yet
        return unchanged.replace(seen=disk.digest_of(data)) if document else None
    if place.is_foreign(name, data):  # nobody here has written or read it: it stays where it is
        return unchanged if document else None
    base = _base_of(known, noted, olds)
    return _with_file_edits(place, unchanged, data, base) or (unchanged if document else None)


def _base_of(known: str | None, noted: FileState | None, olds: Mapping[str, str]) -> str | None:
    """The text that a person began with; None if it is not known."""
    if noted is None or known is None:
        return "" if known is None else None
    return known if noted.digest == disk.digest_of(disk.as_bytes(known)) else olds.get(noted.digest)


def _is_read(name: str) -> bool:
    """Whether what a person writes there counts; the rest is made anew from sessions."""
    return name in disk.WOVEN or name.startswith(f"{disk.SKILLS}/")


def _with_file_edits(place: Workspace, artifact: Artifact, data: bytes, base: str | None) -> Artifact | None:
    """An artifact with the edits of its file; None if the file is no text, or empty and new."""
    gate = Gate(place.secret())
    try:
        file = gate.text(data.decode("utf-8-sig"), what=artifact.name)
    except UnicodeDecodeError:  # left where it is
        return None
    same = artifact.replace(seen=disk.digest_of(data)) if artifact.stored is not None else None
    if not file or file == artifact.text:
        return same
    edited = artifact.replace(edited=True, findings=tuple(gate.findings), seen=disk.digest_of(data))
    if artifact.name not in disk.WOVEN:
        return edited.replace(text=file, whole=True)
    edits = find_edits(artifact.text if base is None else base, file, artifact.edits, strike=base is not None)
    if edits == artifact.edits:  # blank lines only
        return same
    return edited.replace(text=merge_edits(own_text(artifact.text, artifact.edits), edits), edits=edits)


def note_edits(place: Workspace, artifacts: Iterable[Artifact]) -> list[Change]:
    """Note the files whose edits are being stored: from then on they may be written over."""
    states = tuple(
        FileState(path=one.name, record=one.name, version=0, digest=one.seen, stamp=0) for one in artifacts if one.seen
    )
    return [PutFiles(folder=disk.folder_key(place.folder), files=states)] if place.folder and states else []


def own_text(text: str, edits: Edits) -> str:
    """A text without a person's blocks."""
    theirs = set(edits.texts)
    ours = [block for block in blocks(text, edits.owned) if block.text not in theirs]
    return "\n\n".join(block.text for block in ours)


# Metadata


def edits_in(metadata: Mapping[str, Json]) -> Edits:
    """The edits of a person, from the metadata of an artifact."""
    data = metadata.get("owned")
    struck = metadata.get("struck")
    found = [_to_owned_block(one) for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    digests = frozenset(str(one) for one in struck) if isinstance(struck, list) else frozenset()
    return Edits(owned=tuple(found), struck=digests)


def _to_owned_block(data: Mapping[str, Json]) -> OwnedBlock:
    path = data.get("path")
    under = tuple(str(line) for line in path) if isinstance(path, list) else ()
    return OwnedBlock(path=under, after=str(data.get("after", "")), text=str(data.get("text", "")))


def edits_json(edits: Edits) -> dict[str, Json]:
    """The same as metadata."""
    owned: list[Json] = [{"path": list(one.path), "after": one.after, "text": one.text} for one in edits.owned]
    return {"owned": owned, "struck": list[Json](sorted(edits.struck))} if owned or edits.struck else {}
