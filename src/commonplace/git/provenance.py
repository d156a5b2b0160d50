"""Judge where the content of a file comes from: from the hand of the user, or from somebody else by Git.

A file that is not what Git last put there is a hand edit.  One that is may be the content of a commit, which
``history`` judges; a content that no commit has was staged by the user.  In a folder that the user does not trust
everything is external, and Git is not run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from commonplace.git import refs
from commonplace.git.command import GitFailed, TrustedRepository
from commonplace.git.history import Commit, History, TrustedAuthors
from commonplace.git.index import Unreadable, read_index
from commonplace.git.objects import blob_ids, digest_of, id_bytes
from commonplace.git.repository import Repository, repository_at
from commonplace.git.user import GitUser
from commonplace.model.errors import StoreBusy
from commonplace.model.records import Trust
from commonplace.model.values import Value

SHORT = 12  # letters of a commit's id


class FileOrigin(Value):
    """Where a content comes from."""

    trust: Trust  #: ``USER`` or ``EXTERNAL``
    commit: str = ""  #: the commit that brought it, shortened, if it is not the user's word
    author: str = ""  #: whom that commit names as its author
    reason: str = ""  #: why Git could not be asked, as a sentence


HAND = FileOrigin(trust=Trust.USER)
FOREIGN = FileOrigin(trust=Trust.EXTERNAL)


class Provenance:
    """The judge of the files of one folder, for one sync."""

    def __init__(
        self,
        root: str,
        folder: str,
        *,
        trusted: bool,
        authors: tuple[str, ...] = (),
        signed: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """``root`` is the top of the working tree, ``folder`` the files' folder; ``authors`` are trusted addresses."""
        self.root = os.path.realpath(root)
        self.folder = os.path.realpath(folder)
        self.trusted = trusted
        self.authors = authors
        self.signed = signed
        self.env = os.environ if env is None else env

    def judge(self, contents: Mapping[str, bytes]) -> dict[str, FileOrigin]:
        """Return the origin of the content of each of these files, given by their paths in the folder.

        Raises ``StoreBusy`` while Git changes the working tree.
        """
        if not self.trusted:
            return dict.fromkeys(contents, FOREIGN)
        repository = repository_at(self.root)
        if repository is None or not contents:
            return dict.fromkeys(contents, HAND)
        digest = digest_of(repository)
        blobs = {path: blob_ids(data, digest=digest) for path, data in contents.items()}
        tracked = self._tracked(repository, blobs)
        if not all(tracked.values()) and refs.is_locked(repository):
            lock = os.path.join(repository.own, "index.lock")
            raise StoreBusy(f"Git is changing {self.root!r}; its files are read when {lock!r} is gone")
        judged = self._judge_blobs(repository, {blob for found in tracked.values() for blob in found})
        return {path: _origin([judged[blob] for blob in tracked[path] if blob in judged]) for path in contents}

    def _tracked(self, repository: Repository, blobs: Mapping[str, set[str]]) -> dict[str, set[str]]:
        """The contents that Git put at each path, if the file still is what Git put there."""
        names = {path: os.path.relpath(os.path.join(self.folder, path), self.root) for path in blobs}
        index = os.path.join(repository.own, "index")
        try:
            staged = read_index(index, {*names.values()}, id_bytes=id_bytes(repository))
        except Unreadable:  # then every content that a commit has is judged by it
            return dict(blobs)
        found: dict[str, set[str]] = {}
        for path, name in names.items():
            status = _status(os.path.join(self.root, name))
            entries = staged.get(name.replace(os.sep, "/"), [])
            found[path] = {
                one.blob for one in entries if one.blob in blobs[path] or (status and one.is_unchanged(status))
            }
        return found

    def _judge_blobs(self, repository: Repository, blobs: set[str]) -> dict[str, FileOrigin]:
        """The origin of each of these contents that a commit has."""
        if not blobs:
            return {}
        try:
            history = self._history(repository)
            known = {blob for blob in blobs if history.is_known(blob)}
            own = history.own_blobs(known)
        except GitFailed as error:
            return dict.fromkeys(blobs, FOREIGN.replace(reason=f"{error}; what Git may have brought is external"))
        return {blob: HAND if blob in own else _foreign(history.commit_of(blob)) for blob in known}

    def _history(self, repository: Repository) -> History:
        user = GitUser(self.env, self.root)
        authors = TrustedAuthors(
            emails=user.emails | {one.lower() for one in self.authors}, signed=self.signed,
            settings=user.verification, env=user.keys,
        )  # fmt: skip
        folder = os.path.relpath(self.folder, self.root)
        return History(TrustedRepository(repository=repository, is_trusted=self.trusted), folder, authors)


def _origin(found: Sequence[FileOrigin]) -> FileOrigin:
    """The origin of a file whose content may be one of several that Git knows."""
    return HAND if not found or HAND in found else found[0]


def _foreign(commit: Commit) -> FileOrigin:
    return FOREIGN.replace(commit=commit.id[:SHORT], author=commit.email)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
