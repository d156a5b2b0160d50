"""The two settings files as lists of settings with what they do, and how single ones are changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from hashlib import sha256
from typing import Any

from commonplace.config import settings
from commonplace.config.editing import with_settings
from commonplace.config.project import PROJECT, Context
from commonplace.config.trust_registry import keep_trust, require_unchanged
from commonplace.config.writing import SCHEMAS, settings_text
from commonplace.files import disk
from commonplace.model.errors import ConfigError, Conflict, InvalidInput
from commonplace.model.records import Json
from commonplace.records.health_verbs import ChangedSettings, SettingsFile, SettingValue

KINDS = {bool: "switch", int: "whole number", float: "number", str: "text"}


def read_settings(where: Context, scope: str) -> SettingsFile:
    """Return every setting of a scope with its value."""
    path = where.settings_file(scope)
    text = settings_text(path, scope)
    said = settings.read_values(text, path)
    held = settings.check(said, SCHEMAS[scope], path)
    return SettingsFile(
        scope=scope, path=path, digest=_digest(text), settings=tuple(_list(SCHEMAS[scope], said, held))
    )  # fmt: skip


def change_settings(
    where: Context, scope: str, changes: Mapping[str, Json], *, digest: str | None, preview: bool
) -> ChangedSettings:
    """Change settings in their file, whose comments and order stay; ``digest`` is that of the file that was read."""
    path = where.settings_file(scope)
    if scope == PROJECT and where.place:
        require_unchanged(where.place, where.home)
    text = settings_text(path, scope)
    if digest is not None and digest != _digest(text):
        raise Conflict(f"{path} was changed meanwhile; read the settings again")
    wanted = {name: _parse(find_setting(scope, name, path), name, value, path) for name, value in changes.items()}
    after = with_settings(text, wanted, file=path)
    settings.check(settings.read_values(after, path), SCHEMAS[scope], path)
    diff = "".join(unified_diff(text.splitlines(keepends=True), after.splitlines(keepends=True), path, path, n=2))
    if not preview and after != text:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        disk.replace(os.path.dirname(path), os.path.basename(path), after.encode())
        if scope == PROJECT and where.place:
            keep_trust(where.place, where.home)
    return ChangedSettings(path=path, changed=() if after == text else tuple(wanted), diff=diff)


def find_setting(scope: str, name: str, path: str) -> settings.Setting:
    """Return the setting of a name, ``group.name`` in a group; raises for one that is changed by hand only."""
    known = dict(_names(SCHEMAS[scope]))
    found = known.get(name)
    if found is None:
        from commonplace.text.suggest import suggestion  # noqa: PLC0415 - names are mostly right

        what = f"there is no setting {name!r} of the {scope} memory; `commonplace config list` lists them"
        raise InvalidInput(what + suggestion(name, known))
    if found.by_hand:
        raise InvalidInput(f"{name} decides who is trusted or where data goes, so it is only changed in {path} itself")
    return found


def _names(schema: settings.Schema) -> Iterator[tuple[str, settings.Setting]]:
    for one in schema:
        if isinstance(one, settings.SettingGroup):
            yield from ((f"{one.name}.{inner.name}", inner) for inner in one.settings)
        else:
            yield one.name, one


def _list(schema: settings.Schema, said: Mapping[str, Any], held: Mapping[str, Any]) -> Iterator[SettingValue]:
    for name, one in _names(schema):
        group, _, key = name.rpartition(".")
        block, values = (said.get(group) or {}, held[group]) if group else (said, held)
        yield SettingValue(
            name=name, help=one.help, kind=KINDS[one.kind], value=values[key], default=one.default,
            is_set=block.get(key) is not None, choices=one.choices, least=one.least, most=one.most,
            advanced=one.advanced, by_hand=one.by_hand,
        )  # fmt: skip


def _parse(setting: settings.Setting, name: str, value: Json, path: str) -> Any:
    """Return a value as the file has it; what people type is text.  Empty text takes the default again."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str) or setting.kind is str:
        return value
    text = value.strip()
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if setting.kind is bool and text.lower() in words:
        return words[text.lower()]
    try:
        return setting.kind(text) if setting.kind is not bool else _refuse(setting, name, text, path)
    except ValueError:
        _refuse(setting, name, text, path)


def _refuse(setting: settings.Setting, name: str, text: str, path: str) -> Any:
    wanted: Sequence[str] = {bool: "true or false", int: "a whole number", float: "a number"}[setting.kind]
    raise ConfigError(f"should be {wanted}, not {text[:60]!r}", file=path, path=name)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
