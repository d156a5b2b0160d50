"""``commonplace config``: list and change settings; the comments and the order of the files stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.commands import Group
from commonplace.cli.person import require_person
from commonplace.cli.session import json_option, table_lines
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.model.records import Json
from commonplace.records.access import AppAccess
from commonplace.records.health_verbs import SettingValue, change_settings, settings
from commonplace.wire import encode

_scope = click.option(
    "--scope", type=click.Choice([PROJECT, ASSISTANT]), help="Which memory (default: the project's, if there is one)."
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")


@click.group(cls=Group)
def config() -> None:
    """List and change settings; comments in the files stay.

    The settings of a project are in .commonplace/config.yaml, your own in config.yaml in the data folder.  A few decide
    who is trusted or where data goes; those are changed in the file and nowhere else.

    Examples:
      commonplace config list
      commonplace config set recall_limit 12
      commonplace config unset recall_limit
    """


@config.command("list")
@click.option("--all", "every", is_flag=True, help="Include advanced settings.")
@_scope
@json_option
def list_(*, every: bool, scope: str | None, as_json: bool) -> None:
    """List the settings of a memory: name, value, and what it does.

    Examples:
      commonplace config list
      commonplace config list --scope assistant --all
    """
    with open_app() as app:
        found = settings(AppAccess(app), scope=scope or app.where.default)  # type: ignore[arg-type]  # one of the two
    shown = [one for one in found.settings if every or one.is_set or not one.advanced]
    if as_json:
        print_json({**encode(found), "settings": [encode(one) for one in shown]})
        return
    print_note(short_path(found.path))
    print_text("\n".join(table_lines([_cells(one) for one in shown])))


def _cells(one: SettingValue) -> list[str]:
    value = "-" if one.value is None else str(one.value).lower() if isinstance(one.value, bool) else str(one.value)
    return [one.name, value, "" if one.is_set else "default", one.help]


@config.command("set")
@click.argument("name")
@click.argument("value")
@_dry_run
@_scope
@json_option
def set_(*, name: str, value: str, dry_run: bool, scope: str | None, as_json: bool) -> None:
    """Change one setting in its file.

    Examples:
      commonplace config set recall_limit 12
      commonplace config set memories.enabled true --dry-run
    """
    _change({name: value}, scope, dry_run=dry_run, as_json=as_json)


@config.command("unset")
@click.argument("name")
@_dry_run
@_scope
@json_option
def unset(*, name: str, dry_run: bool, scope: str | None, as_json: bool) -> None:
    """Take the default of a setting again.

    Example:
      commonplace config unset recall_limit
    """
    _change({name: None}, scope, dry_run=dry_run, as_json=as_json)


def _change(changes: Mapping[str, Json], scope: str | None, *, dry_run: bool, as_json: bool) -> None:
    require_person("changes settings")
    chosen: dict[str, Any] = {"preview": dry_run}
    with open_app() as app:
        done = change_settings(AppAccess(app), changes, **chosen, scope=scope or app.where.default)  # type: ignore[arg-type]  # one of the two
    if as_json:
        print_json(encode(done))
    elif not done.changed:
        print_text(f"{short_path(done.path)} says so already")
    else:
        print_text(
            done.diff.rstrip("\n") if dry_run else f"Changed {', '.join(done.changed)} in {short_path(done.path)}"
        )
