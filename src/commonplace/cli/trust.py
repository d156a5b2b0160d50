"""``commonplace trust``: say yes to a folder, or take it back.  ``init`` asks the same question."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from commonplace.cli.agreement import agree, find_project
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.person import require_person
from commonplace.cli.session import json_option, table_lines
from commonplace.cli.terminal import print_json, print_text, short_path
from commonplace.config.paths import find, home
from commonplace.config.trust import FolderTrust, trust_of, trusted_folders
from commonplace.config.trust_registry import (
    revoke_trust,
    set_authors,
)
from commonplace.text.cleaning import plural


@click.command(cls=Command)
@click.argument("path", required=False)
@click.option("--list", "listing", is_flag=True, help="List the folders that you trust.")
@click.option("--revoke", is_flag=True, help="Take your yes to the folder back.  Records that are stored stay.")
@click.option("--identity", metavar="NAME", help="The project whose memory the folder gets, if it claims another one.")
@click.option("--author", "authors", metavar="EMAIL", multiple=True, help="Commits of this author count as your word.")
@click.option("--no-author", "gone", metavar="EMAIL", multiple=True, help="Commits of this author no longer do.")
@click.option("--signed/--unsigned", default=None, help="Whether commits of these authors have to be signed.")
@click.option("--yes", is_flag=True, help="Do not ask, unless the folder claims to be another project than Git says.")
@json_option
def trust(
    *, path: str | None, listing: bool, revoke: bool, identity: str | None, authors: Sequence[str], gone: Sequence[str],
    signed: bool | None, yes: bool, as_json: bool,
) -> int:  # fmt: skip
    """Trust a folder: from then on its settings, prompts and notes take effect.

    PATH is the folder of a project; by default the one around this folder.  Until you trust it, a folder is a stranger:
    its notes are read as data from outside, its settings and prompts take no effect, and nothing is written there.
    Your yes is kept in your data folder with a copy of the settings and prompts.  If those change later, for example by
    a pull, the change waits until you run this command again, which shows it.

    Notes that came by Git from other people stay data from outside until you review them, unless you trust their
    authors with --author.

    Examples:
      commonplace trust
      commonplace trust --list
      commonplace trust --author ada@example.org --signed
      commonplace trust ../old-clone --revoke
    """
    data = home(os.environ)
    if listing:
        return _list(data, as_json=as_json)
    require_person("changes which folders are trusted")
    if revoke:
        return _revoke(path or os.getcwd(), data, as_json=as_json)
    place = find_project(path or os.getcwd())
    known = trust_of(place, data)
    if not known.is_trusted or known.changed or identity not in (None, known.identity):
        agreed = agree(place, data, identity=identity, yes=yes)
        if agreed is None:
            return ATTENTION
        known = agreed
    if authors or gone or signed is not None:
        kept = [one for one in (*known.authors, *authors) if one.lower() not in {two.lower() for two in gone}]
        set_authors(known, kept, signed=known.signed if signed is None else signed)
    return _print_trust(known, as_json=as_json)


# Print


def _print_trust(known: FolderTrust, *, as_json: bool) -> int:
    if as_json:
        print_json(_to_json(known))
        return OK
    text = f"{short_path(known.root)} is trusted; its project is {known.identity}"
    if known.authors:
        text += f"; commits by {', '.join(known.authors)} count as your word" + (", if signed" if known.signed else "")
    print_text(text)
    return OK


def _to_json(known: FolderTrust) -> dict[str, Any]:
    return {
        "root": known.root,
        "project": known.identity,
        "trusted": known.is_trusted,
        "changed": list(known.changed),
        "authors": list(known.authors),
        "signed": known.signed,
    }


def _revoke(path: str, data: str, *, as_json: bool) -> int:
    place = find(path) if os.path.isdir(path) else None
    gone = revoke_trust(trust_of(place, data).root if place else path, data)
    if as_json:
        print_json({"root": gone.root, "project": gone.identity, "trusted": False})
    else:
        print_text(f"{gone.root} is not trusted any more")
    return OK


def _list(data: str, *, as_json: bool) -> int:
    folders = [_row(one.root, one.identity, data) for one in trusted_folders(data)]
    if as_json:
        print_json({"folders": folders})
    elif folders:
        print_text("\n".join(table_lines([[row["root"], row["project"], row["state"]] for row in folders])))
    else:
        print_text("No folder is trusted yet; `commonplace init` or `commonplace trust` adds one.")
    return OK


def _row(root: str, identity: str, data: str) -> dict[str, Any]:
    place = find_project(root) if os.path.isdir(root) else None
    known = trust_of(place, data) if place else None
    if known is None:
        state = "missing"
    elif known.root != root:
        state = "its .commonplace is gone"
    elif known.former:
        state = "another repository"
    else:
        state = f"{plural(len(known.changed), 'changed file')}" if known.changed else "unchanged"
    return {"root": root, "project": identity, "state": state}
