"""Settings files: flat YAML, every key known, every value checked, mistakes named with their file and line.

Two files use it: the project's ``.commonplace/config.yaml`` and the user's ``config.yaml`` in the data folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commonplace.domain.binding import CONTENT_BYTES, CONTENT_BYTES_MOST
from commonplace.domain.errors import ConfigError
from commonplace.domain.values import Value

_plain_text = re.compile(r"[\n\x20-\x7e]*")  # what else there is, such as odd spaces and controls, the parser judges
_plain_line = re.compile(r"^([a-z_]{1,99}):(?: +([A-Za-z0-9_./@-][A-Za-z0-9_./@:-]*))? *(?: #.*)?$")
_words = {"true": True, "false": False, "null": None}
_wordlike = {"true", "false", "null", "yes", "no", "on", "off"}  # whatever their case; some readers take them for more


FLAT_CHARS = 65_536  # as many as the parser takes
INTEGER_DIGITS = 18  # no setting has more; beyond a few thousand Python refuses to convert them


class Setting(Value):
    """One key of a settings file."""

    name: str
    default: Any
    kind: type
    help: str  #: what it does, as the comment beside it says
    least: int | None = None
    most: int | None = None


PROJECT = (
    Setting(
        name="project", default=None, kind=str,
        help="the project's identity: clones and worktrees that share it share memory",
    ),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false: nothing is kept in this project's memory and nothing recalled from it",
    ),
    Setting(
        name="content_bytes", default=CONTENT_BYTES, kind=int, least=1, most=CONTENT_BYTES_MOST,
        help="the longest content of a record",
    ),
    Setting(name="recall_limit", default=10, kind=int, least=1, most=1000, help="how many things a recall brings back"),
    Setting(
        name="recall_budget", default=None, kind=int, least=1, most=1_000_000,
        help="how many tokens a recall may fill; empty: no limit but recall_limit",
    ),
)  # fmt: skip
USER = (
    Setting(name="user", default=None, kind=str, help="whose assistant memory this is; empty: your login name"),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false: nothing is kept in the assistant's memory and nothing recalled from it",
    ),
)  # fmt: skip


def load(path: str, schema: tuple[Setting, ...]) -> dict[str, Any]:
    """The settings of a file, with defaults for what it does not say; a file that is not there says nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=path) from error
    said = flat(text)
    return checked(_parsed(text, path) if said is None else said, schema, path)


def flat(text: str) -> dict[str, Any] | None:
    """Read ``key: value`` lines without a YAML parser, which costs more than a recall; None if they are not that."""
    if len(text) > FLAT_CHARS or not _plain_text.fullmatch(text):
        return None
    said: dict[str, Any] = {}
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _plain_line.match(line)
        if found is None or found[1] in said or not _plain_value(found[2]):
            return None
        said[found[1]] = _resolved(found[2])
    return said


def _plain_value(value: str | None) -> bool:
    """Whether both readers agree on it: small words, whole numbers, and names that YAML takes for nothing else."""
    if value is None or value in _words:
        return True
    if value.isdecimal():
        return len(value) <= INTEGER_DIGITS
    return value.lower() not in _wordlike and bool(re.match(r"[A-Za-z_/](?:[\w./@:-]*[\w/])?$", value))


def _resolved(value: str | None) -> Any:
    if value is None or value in _words:
        return _words.get(value or "null")
    return int(value) if value.isdecimal() and (value == "0" or not value.startswith("0")) else value


def _parsed(text: str, path: str) -> Mapping[str, Any]:
    from commonplace import strict_yaml  # noqa: PLC0415 - see flat

    try:
        said = strict_yaml.load(text, file=path)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=path) from error
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise ConfigError("should be lines of `key: value`", file=path)
    return said


def checked(said: Mapping[str, Any], schema: tuple[Setting, ...], path: str) -> dict[str, Any]:
    """Refuse what is unknown or out of range, and fill in defaults."""
    known = {setting.name: setting for setting in schema}
    for name in said:
        if name not in known:
            raise ConfigError(f"is not a setting; there are {', '.join(known)}", file=path, path=str(name))
    return {name: _value(said.get(name), setting, path) for name, setting in known.items()}


def _value(value: Any, setting: Setting, path: str) -> Any:
    if value is None:
        return setting.default
    if setting.kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, setting.kind) or (setting.kind is int and isinstance(value, bool)):
        wanted = {bool: "true or false", int: "a whole number", str: "text"}[setting.kind]
        raise ConfigError(f"should be {wanted}, not {value!r}", file=path, path=setting.name)
    if isinstance(value, int) and not (setting.least or 0) <= value <= (setting.most or value):
        reason = f"should be between {setting.least} and {setting.most}, not {value}"
        raise ConfigError(reason, file=path, path=setting.name)
    return value


def template(schema: tuple[Setting, ...], values: Mapping[str, Any], *, title: str) -> str:
    """A settings file with a comment for every key, ready to be edited."""
    lines = [f"# {title} Everything has a default; unknown keys are refused.", ""]
    for setting in schema:
        value = values.get(setting.name, setting.default)
        lines += [f"# {setting.help}", f"{setting.name}: {_written(value)}".rstrip(), ""]
    return "\n".join(lines)


def changed(text: str, name: str, value: bool) -> str:
    """A settings file with one switch turned; everything else stays as its writer left it."""
    line = f"{name}: {_written(value)}"
    pattern = re.compile(rf"(?m)^([\"']?){name}\1[ \t]*:[^\n#]*?(?=[ \t]*#|[ \t\r]*$)")
    if pattern.search(text):
        return pattern.sub(line, text, count=1)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(value: str) -> str:
    from json import dumps  # noqa: PLC0415 - only for writing

    plain = value not in _words and _plain_line.match(f"x: {value}") and _plain_value(value)
    return value if plain else dumps(value, ensure_ascii=False)
