"""Replace the secrets in the files of a memory, after its store was scrubbed: records, artifacts, transcripts, logs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

from commonplace.engine.admission import Gate
from commonplace.engine.scrubbing import Found
from commonplace.files import artifacts, disk, swap
from commonplace.files.artifacts import LEARNED, MEMORY, RAW, ROLLOUTS, SKILLS, SUMMARY, ArtifactFolder, digest_of
from commonplace.files.codec import FILE_BYTES, FileTrouble, clean_path, redact_comments
from commonplace.files.mirror import MirroredStore
from commonplace.model.records import Json
from commonplace.model.scopes import Scope


class FileScrubber:
    """Reads files with today's rules, and rewrites them unless it is a dry run."""

    def __init__(self, *, secret: Callable[[], bytes], dry_run: bool) -> None:
        self._secret = secret
        self._dry_run = dry_run
        self.found: list[Found] = []
        self.left: list[str] = []

    def _redact(self, text: str, place: str) -> str:
        gate = Gate(self._secret())
        kept = gate.text(text, what=place)
        self.found += [Found(kind=one.kind, place=place) for one in gate.findings]
        return kept if gate.findings else text

    # Records

    def records(self, store: MirroredStore, scope: Scope) -> None:
        """Rewrite the files of records; the store has them without secrets by now."""
        folder = store.folders[scope]
        known = {state.path: state.record for state in store.files(folder)}
        for path, _ in sorted(disk.list_files(folder)):
            before = len(self.found)
            try:
                text = disk.read(folder, path, limit=FILE_BYTES)[0].decode()
                self._redact(text, f"file {os.path.join(folder, self._name_of(path))}")
            except (OSError, UnicodeDecodeError) as error:
                self.left.append(f"{os.path.join(folder, path)} cannot be read: {error}")
                continue
            to = clean_path(path, lambda name: self._redact(name, "the name of a file"))
            if len(self.found) > before and not self._dry_run:
                self._rewrite(store, folder, path, to, known.get(path))
        store.settle()

    def _name_of(self, path: str) -> str:
        gate = Gate(self._secret())
        return clean_path(path, lambda name: gate.text(name, what="the name of a file"))

    def _rewrite(self, store: MirroredStore, folder: str, path: str, to: str, record: str | None) -> None:
        if record is None:
            self.left.append(f"{os.path.join(folder, to)} is no record yet; `commonplace sync` shows why")
            return
        gate = Gate(self._secret())
        before = disk.read(folder, path, limit=FILE_BYTES)[0]
        try:
            data = redact_comments(before, lambda text: gate.text(text, what="a comment"))
        except FileTrouble as error:
            self.left.append(f"{os.path.join(folder, to)}:{error.line}: {error.reason}")
            return
        with disk.folder_lock(folder):
            stamp = swap.replace_unchanged(folder, path, data, expect=digest_of(before))
        if stamp is None or not store.write(
            folder, record, at=path, to=to if to != path else None, expect=digest_of(data)
        ):
            self.left.append(f"{os.path.join(folder, to)} was saved again meanwhile; run `commonplace scrub` again")

    # Artifacts

    def artifacts(self, place: ArtifactFolder) -> None:
        """Rewrite the artifacts of a project as they are stored, and what people have written into them."""
        if place.folder is None or not os.path.isdir(place.folder):
            return
        if not self._dry_run:
            artifacts.publish(place)
        for name in self._artifact_names(place.folder):
            data = artifacts.read(place.folder, name)
            text = _decode(data)
            if text is None or (kept := self._redact(text, f"file {name}")) == text or self._dry_run:
                continue
            with disk.folder_lock(place.folder):
                stamp = artifacts.replace(place.folder, name, artifacts.as_bytes(kept), was=data)
            if stamp is None:
                self.left.append(
                    f"{os.path.join(place.folder, name)} was saved meanwhile; run `commonplace scrub` again"
                )

    def _artifact_names(self, folder: str) -> Iterator[str]:
        yield from (MEMORY, SUMMARY, RAW, LEARNED)
        for under in (SKILLS, ROLLOUTS):
            yield from artifacts.list_files(folder, under=under)

    # The data folder

    def lines(self, path: str) -> None:
        """Rewrite a file of lines: JSON value by value, else as text."""
        with open(path, encoding="utf-8", errors="replace") as file:
            before = file.read().split("\n")
        after = [self._line(line, os.path.basename(path)) for line in before]
        if after != before and not self._dry_run:
            folder, name = os.path.split(path)
            disk.replace(folder, name, "\n".join(after).encode())

    def _line(self, line: str, place: str) -> str:
        try:
            value: Json = json.loads(line)
        except ValueError:
            return self._redact(line, f"file {place}")
        gate = Gate(self._secret())
        kept = gate.json(value, what=place)
        self.found += [Found(kind=one.kind, place=f"file {place}") for one in gate.findings]
        return json.dumps(kept) if gate.findings else line


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:  # it is no text of ours
        return None
