"""The two settings files as lists of settings with what they do, and how single ones are changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from hashlib import sha256
from typing import Any

from commonplace.config import settings
from commonplace.config.editing import get_value, named_settings, setting_named, value_of, with_value
from commonplace.config.project import PROJECT, Context
from commonplace.config.trust_registry import keep_trust, require_unchanged
from commonplace.config.writing import SCHEMAS, settings_text
from commonplace.files import disk
from commonplace.model.errors import Conflict, InvalidInput
from commonplace.model.records import Json
from commonplace.records.health_verbs import ChangedSettings, SettingsFile, SettingValue

KINDS = {bool: "switch", int: "whole number", float: "number", str: "text"}


def read_settings(where: Context, scope: str) -> SettingsFile:
    """Return every setting of a scope with its value."""
    path = where.settings_file(scope)
    text = settings_text(path, scope=scope)
    said = settings.parse(text, path)
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
    text = settings_text(path, scope=scope)
    if digest is not None and digest != _digest(text):
        raise Conflict(f"{path} was changed meanwhile; read the settings again")
    after = text
    for name, value in changes.items():
        after = with_value(after, name, _value(scope, name, value, path), file=path)
    settings.check(settings.parse(after, path), SCHEMAS[scope], path)
    diff = "".join(unified_diff(text.splitlines(keepends=True), after.splitlines(keepends=True), path, path, n=2))
    if not preview and after != text:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        disk.replace(os.path.dirname(path), os.path.basename(path), after.encode())
        if scope == PROJECT and where.place:
            keep_trust(where.place, where.home)
    return ChangedSettings(path=path, changed=() if after == text else tuple(changes), diff=diff)


def _value(scope: str, name: str, value: Json, path: str) -> Any:
    """Return a value as the file has it; what people type is text."""
    setting = setting_named(name, SCHEMAS[scope])
    if setting.by_hand:
        raise InvalidInput(
            f"{name} decides who is trusted or where data goes, so only you change it: in {path}, or with "
            f"`commonplace config set {name} VALUE --scope {scope}`"
        )
    return value_of(value, setting, name) if isinstance(value, str) else value


def _list(schema: settings.Schema, said: Mapping[str, Any], held: Mapping[str, Any]) -> Iterator[SettingValue]:
    for name, one in named_settings(schema):
        group, _, key = name.rpartition(".")
        block = (said.get(group) or {}) if group else said
        yield SettingValue(
            name=name, help=one.help, kind=KINDS[one.kind], value=get_value(held, name), default=one.default,
            is_set=block.get(key) is not None, choices=one.choices, least=one.least, most=one.most,
            advanced=one.advanced, by_hand=one.by_hand,
        )  # fmt: skip


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
