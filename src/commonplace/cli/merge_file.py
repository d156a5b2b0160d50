"""``commonplace merge-file``: what Git runs to merge the file of a record that two branches have changed."""

from __future__ import annotations

import os

import click

from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.files import disk
from commonplace.files.codec import FILE_BYTES
from commonplace.files.merge import merge_files
from commonplace.model.errors import InvalidInput


@click.command("merge-file", cls=Command)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
def merge_file(base: str, ours: str, theirs: str) -> int:
    """Merge two versions of a record's file into OURS, as a merge driver of Git.

    Tags, keys and paragraphs that only one side has changed are taken.  Where both have changed the same, both texts
    are kept between conflict markers, and the exit code is 1.  `commonplace init` sets this up.

    Examples:
      commonplace merge-file base.md ours.md theirs.md
      git config merge.commonplace.driver "commonplace merge-file %O %A %B"
    """
    try:
        before, mine, other = (_read(path) for path in (base, ours, theirs))
    except OSError as error:
        raise InvalidInput(f"{error.filename or ours}: {disk.reason(error)}") from error
    done = merge_files(before, mine, other)
    folder, name = os.path.split(os.path.abspath(ours))
    disk.replace(folder, name, done.data)
    return ATTENTION if done.conflicts else OK


def _read(path: str) -> bytes:
    with disk.open_file(path, limit=4 * FILE_BYTES) as file:
        return disk.read_rest(file, limit=4 * FILE_BYTES)
