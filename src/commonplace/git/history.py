"""Which commits introduced which contents of a folder, and which of these commits are the user's own word.

A commit is the user's own if this machine's reflog says that it was committed here, under the identity that the
machine had then.  A commit of an author whom the user trusts counts if it is in the default branch of ``origin``, as it
was last fetched, and, if the user wants it so, if Git verifies its signature.  What a merge, or a rebase of an own
commit, made of two texts counts if both of them do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from commonplace.git import refs
from commonplace.git.command import TrustedRepository, run_git
from commonplace.model.values import Value

_FORMAT = "%x01%H%x00%P%x00%an%x00%ae%x00%at%x00"
_COMMITTED = frozenset({"commit", "commit (initial)", "commit (amend)"})
_AMENDED = "commit (amend)"
_REPLAYED = re.compile(
    r"(?:pull .*|rebase.*)\((?:pick|reword|edit|squash|fixup|continue)\)|cherry-pick|commit \(cherry-pick\)"
)
_MERGED = re.compile(r"merge .*|pull.*|commit \(merge\)")


class Commit(Value):
    """A commit that introduced contents: blobs that none of its parents had at that path."""

    id: str
    parents: tuple[str, ...]
    name: str  #: of its author, as are the next two
    email: str
    date: str
    blobs: Mapping[str, tuple[str, ...]]  #: with the blobs that the parents had there, if they had any

    @property
    def authorship(self) -> tuple[str, str, str]:
        """Who wrote it and when: a rebase does not change this."""
        return self.name, self.email, self.date


class TrustedAuthors(Value):
    """Whose commits the user trusts, and what it takes."""

    emails: frozenset[str] = frozenset()
    signed: bool = False  #: only commits whose signature Git verifies
    settings: Mapping[str, str] = {}  #: the user's own, for Git: which program verifies, with which keys
    env: Mapping[str, str] = {}  #: what that program needs to find the user's keys


class History:
    """The commits that introduced contents of a folder, and a judgement of each content."""

    def __init__(self, trusted: TrustedRepository, folder: str, authors: TrustedAuthors) -> None:
        """Read the history of one folder of the repository, of all references and what the reflogs name."""
        self._trusted = trusted
        self._authors = authors
        self._moves: dict[str, list[refs.Entry]] = {}  # by the commit that HEAD then was at
        for entry in refs.reflog(trusted.repository):
            self._moves.setdefault(entry.new, []).append(entry)
        self._commits = {commit.id: commit for commit in _commits(trusted, folder)}
        for name in refs.stashed_commits(trusted.repository):
            self._drop_stash(name)
        self._introduced: dict[str, list[Commit]] = {}
        for commit in self._commits.values():
            for blob in commit.blobs:
                self._introduced.setdefault(blob, []).append(commit)

    def is_known(self, blob: str) -> bool:
        """Whether any commit introduced this content."""
        return blob in self._introduced

    def commit_of(self, blob: str) -> Commit:
        """Return a commit that introduced this content, which is known."""
        return self._introduced[blob][0]

    def own_blobs(self, wanted: Collection[str]) -> set[str]:
        """Return those of these known contents that are the user's word."""
        own = self._words(set())
        if any(blob not in own for blob in wanted):  # only then is Git asked about other people's commits
            own = self._words(self._vouched_commits())
        return own & {*wanted}

    def _drop_stash(self, name: str) -> None:
        """Forget a stash: what it holds was never committed, and is judged as if it had stayed in the working tree."""
        stash = self._commits.pop(name, None)
        for parent in stash.parents[1:] if stash else ():
            self._commits.pop(parent, None)

    def _words(self, vouched: Collection[str]) -> set[str]:
        """Every content that is the user's word: of own and vouched commits, then what is combined of such contents."""
        commits = self._commits.values()
        plain = [(commit, blob) for commit in commits if len(commit.parents) <= 1 for blob in commit.blobs]
        made = [(commit, blob) for commit, blob in plain if self._has_made(commit, blob)]
        authorships = {commit.authorship for commit, _ in made}
        own = {blob for _, blob in made} | {blob for commit, blob in plain if commit.id in vouched}
        combining = [one for one in commits if self._combines(one, authorships) or one.id in vouched]
        while more := {
            blob
            for commit in combining
            for blob, before in commit.blobs.items()
            if blob not in own and own.issuperset(before)
        }:
            own |= more
        return own

    def _has_made(self, commit: Commit, blob: str) -> bool:
        """Whether an own commit is where a content comes from: an amended one may have taken it over."""
        seen: set[str] = set()
        while self._is_committed_here(commit):
            seen.add(commit.id)
            amended = [entry.old for entry in self._moves_to(commit) if entry.action == _AMENDED]
            before = self._commits.get(amended[0]) if amended else None
            if before is None or before.id in seen or blob not in before.blobs:
                return True
            commit = before
        return False

    def _is_committed_here(self, commit: Commit) -> bool:
        """Whether it was committed on this machine, by the identity that the machine had then."""
        return any(entry.action in _COMMITTED and entry.email == commit.email for entry in self._moves_to(commit))

    def _combines(self, commit: Commit, authorships: Collection[tuple[str, str, str]]) -> bool:
        """Whether it was made on this machine of other commits: a merge, or an own commit on top of others."""
        is_merge = len(commit.parents) > 1
        actions = _MERGED if is_merge else _REPLAYED
        is_action = any(actions.fullmatch(entry.action) for entry in self._moves_to(commit))
        return is_action and (is_merge or commit.authorship in authorships)

    def _moves_to(self, commit: Commit) -> Collection[refs.Entry]:
        return self._moves.get(commit.id, ())

    def _vouched_commits(self) -> set[str]:
        """The commits of trusted authors in the default branch; a shallow one seems to have made everything."""
        tip = refs.default_branch_commit(self._trusted.repository)
        shallow = refs.shallow_commits(self._trusted.repository)
        found = {
            commit.id
            for commit in self._commits.values()
            if commit.email in self._authors.emails and commit.id not in shallow
        }
        if not found or tip is None:
            return set()
        outside = run_git(self._trusted, ["rev-list", "--stdin"], stdin=_lines([*found, f"^{tip}"]))
        found -= set(outside.split())
        return self._signed(found) if self._authors.signed else found

    def _signed(self, names: Collection[str]) -> set[str]:
        """Those of the commits that a trusted author has signed, with a key that the user knows."""
        if not names:
            return set()
        look = ["log", "--no-walk", "--no-patch", "--no-notes", "--stdin", "--format=%x01%H%x00%G?%x00%GS%x00"]
        listed = run_git(
            self._trusted, look, stdin=_lines(names), settings=self._authors.settings, env=self._authors.env
        )  # fmt: skip
        rows = (part.split("\0") for part in listed.split("\x01")[1:])
        return {name for name, state, signer, *_ in rows if state == "G" and _email(signer) in self._authors.emails}


def _commits(trusted: TrustedRepository, folder: str) -> Iterator[Commit]:
    """Every commit that introduced contents of a folder, with them; on some file systems capitals do not matter."""
    folder = ":(top)" if folder == os.curdir else f":(top,icase,literal){folder}"
    heads = _lines(refs.loose_heads(trusted.repository))
    walk = ["rev-list", "--ignore-missing", "--full-history", "--all", "--reflog", "--stdin", "--", folder]
    names = run_git(trusted, walk, stdin=heads)
    show = [
        *("diff-tree", "--stdin", "--root", "-r", "-c", "--raw", "--no-renames", "--no-abbrev", "--no-color"),
        *("--no-ext-diff", "--no-textconv", f"--format={_FORMAT}", "--", folder),
    ]
    for part in run_git(trusted, show, stdin=names).split("\x01")[1:] if names else ():
        name, parents, author, email, date, raw = part.split("\0", 5)
        blobs = dict(_blobs(raw.splitlines()))
        yield Commit(
            id=name, parents=tuple(parents.split()), name=author, email=email.lower(), date=date, blobs=blobs
        )  # fmt: skip


def _blobs(rows: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The contents of a raw diff: each with what was there before, by parent."""
    for row in rows:
        count = len(row) - len(row.lstrip(":"))  # a colon for each parent
        parts = row[count:].partition("\t")[0].split(" ")
        if count and len(parts) > 2 * count + 1:
            before, after = parts[count + 1 : 2 * count + 1], parts[2 * count + 1]
            if not refs.NO_ID.fullmatch(after):
                yield after, tuple(one for one in before if not refs.NO_ID.fullmatch(one))


def _lines(names: Iterable[str]) -> str:
    return "".join([f"{name}\n" for name in names])


def _email(signer: str) -> str:
    """The address of a signer, who is named by it alone or behind a name."""
    text = signer.strip().lower()
    return text.rpartition("<")[2].removesuffix(">")
