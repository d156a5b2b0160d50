"""``commonplace config``: read and change settings without opening the file, or open it in an editor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from commonplace.cli.commands import Command, Group
from commonplace.cli.exits import OK
from commonplace.cli.person import require_person
from commonplace.cli.session import json_option, table_lines
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config import settings
from commonplace.config.editing import get_value, named_settings, setting_named, value_of
from commonplace.config.project import ASSISTANT, PROJECT, Context, context
from commonplace.config.trust_registry import keep_trust, require_unchanged
from commonplace.config.writing import SCHEMAS, set_setting, settings_text
from commonplace.files import disk
from commonplace.model.errors import ConfigError, InvalidInput

_scope = click.option(
    "--scope", type=click.Choice([PROJECT, ASSISTANT]),
    help="Whose settings: the project's or your own (default: the project's, if there is one and it has the setting).",
)  # fmt: skip
_name = click.argument("name", metavar="NAME")


@click.group(cls=Group)
def config() -> None:
    """Read and change settings; comments and layout of the file stay.

    A setting in a block is named with a dot, such as memories.enabled.  Settings of a project are in its
    .commonplace/config.yaml, your own in config.yaml of your data folder.

    Examples:
      commonplace config get
      commonplace config set memories.enabled true
    """


@config.command(cls=Command)
@click.argument("name", metavar="NAME", required=False)
@_scope
@json_option
def get(name: str | None, scope: str | None, as_json: bool) -> int:
    """Print a setting, or all of them, as they take effect here.

    Examples:
      commonplace config get memories.mode
      commonplace config get --scope assistant
    """
    where = _context()
    if name is None:
        return _list(where, _scopes(where, scope), as_json=as_json)
    chosen = _scope_of(where, name, scope)
    value = get_value(_loaded(where, chosen), name)
    if as_json:
        print_json({"scope": chosen, "name": name, "value": value})
    else:
        print_text(_shown(value))
    return OK


@config.command("set", cls=Command)
@_name
@click.argument("value", metavar="VALUE")
@_scope
@json_option
def set_(name: str, value: str, scope: str | None, as_json: bool) -> int:
    """Change a setting.  The value is checked first; it takes effect at once.

    Examples:
      commonplace config set memories.enabled true
      commonplace config set embedder none --scope assistant
    """
    where = _context()
    chosen = _scope_of(where, name, scope)
    return _change(where, chosen, name, value_of(value, setting_named(name, SCHEMAS[chosen]), name), as_json=as_json)


@config.command(cls=Command)
@_name
@_scope
@json_option
def unset(name: str, scope: str | None, as_json: bool) -> int:
    """Go back to the default of a setting.

    Example:
      commonplace config unset recall_limit
    """
    where = _context()
    chosen = _scope_of(where, name, scope)
    return _change(where, chosen, name, None, as_json=as_json)


@config.command(cls=Command)
@_scope
def edit(scope: str | None) -> int:
    """Open the settings in your $EDITOR; what you save is checked before it takes effect.

    Example:
      commonplace config edit
    """
    where = _context()
    chosen = scope or _scopes(where, None)[0]
    path = _begin_change(where, chosen)
    if not (sys.stdin.isatty() or "VISUAL" in os.environ or "EDITOR" in os.environ):
        raise InvalidInput("there is no terminal to edit on; `commonplace config set` changes one setting")
    before = settings_text(path, scope=chosen)
    after = _edited(before, path, chosen)
    if after == before:
        print_text("Nothing was changed")
        return OK
    disk.replace(os.path.dirname(path), os.path.basename(path), after.encode())
    _end_change(where, chosen)
    print_text(f"Saved {short_path(path)}")
    return OK


def _edited(before: str, path: str, scope: str) -> str:
    """What the user saves, once it is right; raises ``InvalidInput`` if they give up."""
    text = before
    while True:
        after = click.edit(text, extension=".yaml")
        if after is None:
            return before
        try:
            settings.check(settings.parse(after, path), SCHEMAS[scope], path)
        except ConfigError as error:
            print_note(str(error))
            if not sys.stdin.isatty() or not click.confirm("Edit again?", default=True, err=True):
                raise InvalidInput("the settings are not right, so nothing was changed") from None
            text = after
        else:
            return after


# Which settings


def _context() -> Context:
    return context(os.getcwd(), os.environ)


def _scopes(where: Context, scope: str | None) -> list[str]:
    """The scopes whose settings are meant; the project's only where it has a folder."""
    if scope:
        return [scope]
    has_project = where.place is not None and where.place.folder is not None
    return [*([PROJECT] if has_project else []), ASSISTANT]


def _scope_of(where: Context, name: str, scope: str | None) -> str:
    """The scope whose setting is meant; raises ``InvalidInput`` if there is none of that name."""
    scopes = _scopes(where, scope)
    having = [one for one in scopes if name in dict(named_settings(SCHEMAS[one]))]
    if not having:
        others = [one for one in SCHEMAS if one not in scopes and name in dict(named_settings(SCHEMAS[one]))]
        if PROJECT in others:
            raise InvalidInput(f"{name} is a setting of a project; `commonplace init` makes one here")
        setting_named(name, tuple(one for known in scopes for one in SCHEMAS[known]))
        raise InvalidInput(f"{name} is a setting of your own memory; use --scope {ASSISTANT}")
    return having[0]


def _loaded(where: Context, scope: str) -> Any:
    return where.project_settings if scope == PROJECT else where.user_settings


def _list(where: Context, scopes: list[str], *, as_json: bool) -> int:
    found = {
        scope: {name: get_value(_loaded(where, scope), name) for name, _ in named_settings(SCHEMAS[scope])}
        for scope in scopes
    }
    if as_json:
        print_json(found)
        return OK
    for scope in scopes:
        print_text(f"# {scope}: {short_path(where.settings_file(scope))}")
        print_text("\n".join(table_lines(list(_rows(where, scope)))))
    return OK


def _rows(where: Context, scope: str) -> Iterator[list[str]]:
    for name, setting in named_settings(SCHEMAS[scope]):
        yield [name, _shown(get_value(_loaded(where, scope), name)) or "-", setting.help]


def _shown(value: Any) -> str:
    return settings.to_yaml(value)


# Changing


def _change(where: Context, scope: str, name: str, value: Any, *, as_json: bool) -> int:
    path = _begin_change(where, scope)
    set_setting(path, name, value, scope=scope)
    _end_change(where, scope)
    now = get_value(_loaded(_context(), scope), name)
    if as_json:
        print_json({"scope": scope, "name": name, "value": now, "settings": path})
        return OK
    print_text(f"{name} is {_shown(now) or 'unset'} ({short_path(path)})")
    return OK


def _begin_change(where: Context, scope: str) -> str:
    """The file to change; settings decide what agents may do, so only a person changes them."""
    require_person("changes settings", where.user_settings)
    path = where.settings_file(scope)
    if scope == PROJECT and where.place:
        require_unchanged(where.place, where.home)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return path


def _end_change(where: Context, scope: str) -> None:
    if scope == PROJECT and where.place:
        keep_trust(where.place, where.home)
