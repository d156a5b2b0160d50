"""``commonplace where``: the folders and files of what is used here."""

from __future__ import annotations

import os

import click

from commonplace.cli.commands import Command
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_text
from commonplace.config.paths import CONFIG
from commonplace.config.project import context
from commonplace.model.errors import NotFound

PLACES = ("data", "store", "settings", "project", "backups")


@click.command(cls=Command)
@click.argument("what", type=click.Choice(PLACES), default="data")
@json_option
def where(what: str, as_json: bool) -> None:
    """Print where things are: the data folder, or the store, settings, project or backups.

    Nothing is created.  --json prints all of them.

    Examples:
      ls "$(commonplace where)"
      commonplace where store
    """
    here = context(os.getcwd(), os.environ)
    found = {
        "data": here.home, "store": here.database, "settings": os.path.join(here.home, CONFIG),
        "project": here.place.folder if here.place else None, "backups": os.path.join(here.home, "backups"),
    }  # fmt: skip
    if as_json:
        print_json(found)
        return
    if (place := found[what]) is None:
        raise NotFound("there is no project here; `commonplace init` makes one")
    print_text(place)
