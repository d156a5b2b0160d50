"""What the main branch has in a folder, so that it can be compared with the files of this checkout."""

from __future__ import annotations

import os
from collections.abc import Mapping

from commonplace.git import refs
from commonplace.git.command import TrustedRepository, run_git
from commonplace.git.objects import blob_ids, digest_of, empty_tree
from commonplace.model.values import Value


class MainBranch(Value):
    """The files of a folder as the main branch has them."""

    commit: str
    blobs: Mapping[str, str]  #: by path in the folder


class AheadOfMain(Value):
    """The files of this checkout that the main branch does not have so."""

    new: tuple[str, ...] = ()  #: paths in the folder
    changed: tuple[str, ...] = ()


def main_branch(trusted: TrustedRepository, folder: str) -> MainBranch | None:
    """Return what the default branch of ``origin`` has, as it was last fetched, else the local main branch.

    None if there is no such branch.  Raises ``GitFailed``.
    """
    repository = trusted.repository
    tip = refs.default_branch_commit(repository) or refs.local_main_commit(repository)
    if tip is None:
        return None
    inside = os.path.relpath(os.path.realpath(folder), os.path.realpath(repository.root)).replace(os.sep, "/")
    options = ["-r", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv", "-z"]
    listed = run_git(trusted, ["diff-tree", *options, empty_tree(repository), tip, "--", inside])
    parts = listed.split("\0")
    blobs = {
        path.removeprefix(f"{inside}/"): head.split(" ")[3]
        for head, path in zip(parts[::2], parts[1::2], strict=False)
        if head
    }
    return MainBranch(commit=tip, blobs=blobs)


def ahead_of_main(trusted: TrustedRepository, folder: str, contents: Mapping[str, bytes]) -> AheadOfMain | None:
    """Compare contents, by path in the folder, with those of the main branch; None if there is none."""
    main = main_branch(trusted, folder)
    if main is None:
        return None
    digest = digest_of(trusted.repository)
    differing = [path for path, data in contents.items() if main.blobs.get(path) not in blob_ids(data, digest=digest)]
    return AheadOfMain(
        new=tuple(sorted(path for path in differing if path not in main.blobs)),
        changed=tuple(sorted(path for path in differing if path in main.blobs)),
    )
