"""Objects of a repository, read from its files: the id of a file's content, and the oldest commit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import sha1, sha256

from commonplace.git.refs import head_commit
from commonplace.git.repository import Repository, read_config

OBJECT_BYTES = 1_048_576  # of a commit that is read
SHA1_BYTES, SHA256_BYTES = 20, 32
COMMITS = 20_000  # that are looked at for the oldest one

_EXPANDED = re.compile(rb"\$Id:[^$\n]*\$")
_DATE = re.compile(rb"^committer [^\n]*> (\d+) ", re.MULTILINE)
_PARENT = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)


def blob_ids(data: bytes, *, digest: Callable[[bytes], str]) -> set[str]:
    """Return the ids that a file's content may have in the repository.

    A checkout may have changed it: ``.gitattributes`` can ask for CRLF and for ``$Id$``, and comes from the repository.
    """
    plain = data.replace(b"\r\n", b"\n")
    forms = {data, plain, *(_EXPANDED.sub(b"$Id$", form) for form in (data, plain))}
    return {digest(form) for form in forms}


def digest_of(repository: Repository) -> Callable[[bytes], str]:
    """Return what names a content in this repository."""
    if id_bytes(repository) == SHA256_BYTES:
        return lambda data: sha256(_blob(data)).hexdigest()
    return lambda data: sha1(_blob(data), usedforsecurity=False).hexdigest()


def empty_tree(repository: Repository) -> str:
    """Return the id of the tree without files, which every repository knows."""
    name = b"tree 0\0"
    is_long = id_bytes(repository) == SHA256_BYTES
    return sha256(name).hexdigest() if is_long else sha1(name, usedforsecurity=False).hexdigest()


def id_bytes(repository: Repository) -> int:
    """Return the length of the ids of a repository."""
    settings = read_config(os.path.join(repository.common, "config"))
    formats = [value for section, _, key, value in settings if (section, key) == ("extensions", "objectformat")]
    return SHA256_BYTES if formats[-1:] == ["sha256"] else SHA1_BYTES


def _blob(data: bytes) -> bytes:
    return b"blob %d\0" % len(data) + data


def first_commit(repository: Repository) -> str | None:
    """Return the oldest commit without a parent that HEAD leads to; None if one on the way is not a file of its own."""
    head = head_commit(repository)
    waiting, roots = [head] if head else [], dict[str, int]()
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        data = _loose_commit(repository, name)
        if data is None or len(seen) > COMMITS:
            return None
        parents = [found.decode() for found in _PARENT.findall(data.partition(b"\n\n")[0])]
        if not parents:
            date = _DATE.search(data)
            roots[name] = int(date[1]) if date else 0
        waiting += [parent for parent in parents if parent not in seen]
        seen.update(parents)
    return min(roots, key=lambda name: (roots[name], name), default=None)


def _loose_commit(repository: Repository, name: str) -> bytes | None:
    """The text of a commit that is a file of its own; None if it is in a pack, or is no commit."""
    import zlib  # noqa: PLC0415 - only for a repository without a remote and a configuration

    path = os.path.join(repository.common, "objects", name[:2], name[2:])
    if not os.path.isfile(path):  # a pipe would be waited for
        return None
    try:
        with open(path, "rb") as file:
            data = zlib.decompressobj().decompress(file.read(OBJECT_BYTES), OBJECT_BYTES)
    except (OSError, zlib.error):
        return None
    kind, _, text = data.partition(b"\0")
    return text if kind.startswith(b"commit ") else None
