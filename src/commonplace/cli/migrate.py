"""``commonplace migrate``: carry a whole store from one database to another."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import click

from commonplace.app import machine_name, mover_of, open_store
from commonplace.cli.commands import Command
from commonplace.cli.session import json_option, plural, progress
from commonplace.cli.terminal import print_json, print_text, short_path
from commonplace.config.paths import home, is_address
from commonplace.engine import migrate as moving
from commonplace.model.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from commonplace.app import Database


@click.command(cls=Command)
@click.argument("source")
@click.argument("target")
@click.option("--replace", is_flag=True, help="Erase what the target holds that the source does not.")
@json_option
def migrate(source: str, target: str, replace: bool, as_json: bool) -> None:
    """Make TARGET hold what SOURCE holds: records with their past and use, sessions, vectors, files, jobs.

    Each is the file of a store or the address of a PostgreSQL database.  SOURCE stays as it is, and may be used
    meanwhile: one state of it is carried.  At the end both are compared as a whole.  A move that was stopped goes on
    when it is run again.

    Examples:
      commonplace migrate ~/.local/share/commonplace/commonplace.db postgresql://db.example.com/memory
      commonplace migrate postgresql://db.example.com/memory memory.db
    """
    if not is_address(source) and not os.path.isfile(source):
        raise InvalidInput(f"there is no store {source!r}")
    with closing(_opened(source)) as one, closing(_opened(target)) as other, progress("Moving") as tell:
        try:
            moved = moving.migrate(mover_of(one), mover_of(other), replace=replace, tell=tell)
        except Conflict as error:
            raise Conflict(f"{error}; --replace erases it") from error
        data = {
            "source": one.path, "target": other.path, "records": moved.records, "items": moved.items,
            "written": moved.written, "erased": moved.erased, "digest": moved.digest,
        }  # fmt: skip
    if as_json:
        print_json(data)
    else:
        print_text(
            f"{short_path(other.path)} holds {plural(moved.records, 'record')} and {moved.items - moved.records} other"
            f" things, as {short_path(one.path)} does"
            f" ({moved.written} written, {moved.erased} erased, {moved.digest[:16]})"
        )


def _opened(place: str) -> Database:
    return open_store(place, machine=lambda: machine_name(home(os.environ)))
