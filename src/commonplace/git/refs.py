"""References and the reflog, read from a repository's files: where HEAD is, and which commits this machine made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from commonplace.git.repository import Repository
from commonplace.model.values import Value

FILE_BYTES = 67_108_864  # a larger list of references or reflog is not read
DEPTH = 5  # of references to references
NO_ID = re.compile(r"0+")
#: Files beside HEAD that name commits which no reference may name yet.
HEADS = ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD")

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ENTRY = re.compile(r"(\S+) (\S+) [^<\n]*<([^>\n]*)> (\d+) [+-]\d+\t([^\n:]*)")


class Entry(Value):
    """A line of the reflog: what moved HEAD, and where."""

    old: str
    new: str
    email: str  #: of the identity that this machine had then
    action: str  #: such as ``commit (amend)`` or ``pull``


def head_commit(repository: Repository) -> str | None:
    """Return the id of the commit that is checked out; None if there is none, or if it cannot be found."""
    return _resolve(repository, "HEAD")


def default_branch_commit(repository: Repository) -> str | None:
    """Return the tip of the default branch of ``origin``, as it was last fetched."""
    for name in ("HEAD", "main", "master"):
        found = _resolve(repository, f"refs/remotes/origin/{name}")
        if found:
            return found
    return None


def local_main_commit(repository: Repository) -> str | None:
    """Return the tip of the local main branch."""
    found = (_resolve(repository, f"refs/heads/{name}") for name in ("main", "master"))
    return next((tip for tip in found if tip), None)


def loose_heads(repository: Repository) -> list[str]:
    """Return the commits that were fetched, merged or picked last, which no reference may name yet."""
    texts = [_text(os.path.join(repository.own, name)) for name in HEADS]
    return [line[: found.end()] for text in texts for line in text.splitlines() if (found := _ID.match(line))]


def reflog(repository: Repository) -> list[Entry]:
    """Return what moved HEAD here and in the repository's other working trees."""
    return [entry for folder in _trees(repository) for entry in _entries(os.path.join(folder, "logs", "HEAD"))]


def stashed_commits(repository: Repository) -> set[str]:
    """Return the commits that ``git stash`` made on this machine."""
    return {entry.new for entry in _entries(os.path.join(repository.common, "logs", "refs", "stash"))}


def shallow_commits(repository: Repository) -> set[str]:
    """Return the commits whose parents were not fetched: they seem to have made everything."""
    return set(_text(os.path.join(repository.common, "shallow")).split())


def is_locked(repository: Repository) -> bool:
    """Whether Git is at work in the working tree: files may have changed whose entries in the index have not."""
    return os.path.lexists(os.path.join(repository.own, "index.lock"))


def _trees(repository: Repository) -> Iterator[str]:
    """The data of every working tree of the repository."""
    yield from dict.fromkeys([repository.own, repository.common])
    linked = os.path.join(repository.common, "worktrees")
    names = sorted(os.listdir(linked)) if os.path.isdir(linked) else []
    yield from (path for name in names if (path := os.path.join(linked, name)) != repository.own)


def _entries(path: str) -> Iterator[Entry]:
    for found in _ENTRY.finditer(_text(path)):
        old, new, email, _, action = found.groups()
        yield Entry(old=old, new=new, email=email.lower(), action=action.strip())


def _resolve(repository: Repository, name: str, *, depth: int = DEPTH) -> str | None:
    """The commit that a reference leads to."""
    own = repository.own if name == "HEAD" else repository.common
    text = _text(os.path.join(own, *name.split("/"))).strip()
    if text.startswith("ref:") and depth:
        target = text.removeprefix("ref:").strip()
        return (
            None if ".." in target or not target.startswith("refs/") else _resolve(repository, target, depth=depth - 1)
        )
    return text if _ID.fullmatch(text) else _packed(repository).get(name)


def _packed(repository: Repository) -> dict[str, str]:
    """The references that are in one file, by name."""
    rows = (line.split(" ") for line in _text(os.path.join(repository.common, "packed-refs")).splitlines())
    return {row[1]: row[0] for row in rows if len(row) == 2 and _ID.fullmatch(row[0])}  # noqa: PLR2004 - id and name


def _text(path: str) -> str:
    """The text of a file of Git's; nothing if it is missing, too large or no plain file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > FILE_BYTES:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
