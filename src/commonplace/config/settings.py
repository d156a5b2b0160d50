"""Settings files: YAML of one level or two, every key known, every value checked, mistakes named with their place.

Two files use it: the project's ``.commonplace/config.yaml`` and the user's ``config.yaml`` in the data folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from commonplace.model.binding import CONTENT_BYTES, CONTENT_BYTES_MOST
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value

_plain_text = re.compile(r"[\n\x20-\x7e]*")  # what else there is, such as odd spaces and controls, the parser judges
_plain_line = re.compile(
    r"^( {0,9})([A-Za-z_][A-Za-z0-9_]{0,98}):(?: +([A-Za-z0-9_./@-][A-Za-z0-9_./@:-]*))? *(?: #.*)?$"
)
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
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()  #: of a text; empty: any
    advanced: bool = False  #: no new file mentions it


class SettingGroup(Value):
    """A key of a settings file that holds further ones."""

    name: str
    settings: tuple[Setting, ...]
    help: str


Schema: TypeAlias = tuple[Setting | SettingGroup, ...]

#: How a project learns from its sessions: the names are those of the document, and then ours.
MEMORIES = SettingGroup(
    name="memories",
    help="learning from sessions: what is extracted from them and consolidated",
    settings=(
        Setting(name="enabled", default=False, kind=bool, help="the master switch"),
        Setting(
            name="mode", default="rules", kind=str, choices=("rules", "model", "host"),
            help="how it thinks: by rules, with a model of `models`, or through your coding agent",
        ),
        Setting(
            name="maxRolloutAgeDays", default=30, kind=int, least=1, most=36_500,
            help="sessions older than this are not processed",
        ),
        Setting(
            name="minRolloutIdleHours", default=12, kind=int, least=0, most=8760,
            help="sessions active more recently than this are skipped",
        ),
        Setting(
            name="maxRolloutsPerStartup", default=64, kind=int, least=1, most=100_000,
            help="cap on sessions processed in a single run",
        ),
        Setting(
            name="summaryInjectionTokenLimit", default=5000, kind=int, least=1, most=1_000_000,
            help="most tokens of the summary that is injected",
        ),
        Setting(
            name="maxRecordsPerSession", default=20, kind=int, least=0, most=1000,
            help="most records made of one session",
        ),
        Setting(
            name="maxLossPercent", default=25, kind=int, least=0, most=100, advanced=True,
            help="share of the facts in MEMORY.md that one consolidation may drop, each with its reason",
        ),
        Setting(
            name="threadScanLimit", default=300, kind=int, least=1, most=1_000_000, advanced=True,
            help="sessions that one run looks at, newest first",
        ),
        Setting(
            name="maxRawMemoriesForGlobal", default=200, kind=int, least=1, most=100_000, advanced=True,
            help="extractions that one consolidation reads, newest first",
        ),
        Setting(
            name="stage1Concurrency", default=8, kind=int, least=1, most=64, advanced=True,
            help="sessions extracted at the same time",
        ),
        Setting(
            name="stage1LeaseSeconds", default=120, kind=int, least=1, most=86_400, advanced=True,
            help="how long an extraction is reserved for one process; it renews its lease while it works",
        ),
        Setting(
            name="stage1RetryDelaySeconds", default=120, kind=int, least=0, most=86_400, advanced=True,
            help="how long after a failure a session is tried again",
        ),
        Setting(
            name="phase1InputTokenLimit", default=4000, kind=int, least=100, most=1_000_000, advanced=True,
            help="most tokens of one session that a model is shown",
        ),
        Setting(
            name="rolloutPayloadPercent", default=0.7, kind=float, least=0.05, most=1, advanced=True,
            help="share of a model's window for the session",
        ),
        Setting(
            name="fallbackTokenLimit", default=16_000, kind=int, least=2048, most=10_000_000, advanced=True,
            help="the window of a model that does not say its own",
        ),
        Setting(
            name="phase2LeaseSeconds", default=180, kind=int, least=1, most=86_400, advanced=True,
            help="how long a consolidation is reserved for one process; it renews its lease while it works",
        ),
        Setting(
            name="phase2RetryDelaySeconds", default=180, kind=int, least=0, most=86_400, advanced=True,
            help="how long after a failure a consolidation is tried again",
        ),
        Setting(
            name="phase2HeartbeatSeconds", default=30, kind=int, least=1, most=86_400, advanced=True,
            help="how often a consolidation renews its lease",
        ),
    ),
)  # fmt: skip
#: Which models think.  A key itself never stands in a file: the variable that holds it does.
MODELS = SettingGroup(
    name="models",
    help="the language models of `memories.mode: model`, such as openai:NAME, anthropic:NAME, google:NAME, ollama:NAME",
    settings=(
        Setting(name="default", default=None, kind=str, help="extracts"),
        Setting(name="smol", default=None, kind=str, help="consolidates; empty: the default one does"),
        Setting(
            name="base_url", default=None, kind=str, advanced=True,
            help="the address of an OpenAI-compatible endpoint; empty: the provider's own",
        ),
        Setting(
            name="api_key_env", default=None, kind=str, advanced=True,
            help="the environment variable that holds the key; empty: the provider's own",
        ),
        Setting(
            name="timeout_seconds", default=120, kind=int, least=1, most=3600, advanced=True,
            help="how long one answer may take, with all tries",
        ),
    ),
)  # fmt: skip

PROJECT: Schema = (
    Setting(
        name="project", default=None, kind=str,
        help="the project's identity: clones and worktrees that share it share memory",
    ),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false: nothing is saved to or recalled from this project's memory",
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
    MEMORIES,
    MODELS,
)  # fmt: skip
USER: Schema = (
    Setting(name="user", default=None, kind=str, help="whose assistant memory this is; empty: your login name"),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false: nothing is saved to or recalled from the assistant's memory",
    ),
    Setting(
        name="store", default=None, kind=str,
        help="a file, or the address of a PostgreSQL database; empty: commonplace.db in the data folder",
    ),
    Setting(
        name="embedder", default="local", kind=str,
        help="matches meaning: local, onnx:/PATH/model.onnx, openai:NAME, google:NAME, ollama:NAME; none: words only",
    ),
    Setting(
        name="embedder_base_url", default=None, kind=str,
        help="the address of an OpenAI-compatible endpoint for it; empty: the provider's own",
    ),
    Setting(
        name="embedder_api_key_env", default=None, kind=str,
        help="the environment variable that holds its key; empty: the provider's own",
    ),
    Setting(
        name="embedder_dimensions", default=None, kind=int, least=1, most=65_536,
        help="how long its vectors are, where that can be chosen; empty: as they come",
    ),
)  # fmt: skip


def load(path: str, schema: Schema) -> dict[str, Any]:
    """Read the settings of a file and fill in defaults; a missing file has no settings."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=path) from error
    data = parse_flat(text)
    return check(_parse(text, path) if data is None else data, schema, path)


def parse_flat(text: str) -> dict[str, Any] | None:
    """Read ``key: value`` lines without a YAML parser, which costs more than a recall; None if they are not that.

    Below a key without a value there may be further lines, all indented alike.
    """
    if len(text) > FLAT_CHARS or not _plain_text.fullmatch(text):
        return None
    data: dict[str, Any] = {}
    above: str | None = None  # the key that a deeper line belongs to
    depth = 0  # of the lines below it, once there is one
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _plain_line.match(line)
        if found is None or not _is_plain_value(found[3]):
            return None
        indent, name = len(found[1]), found[2]
        if not indent:
            above, depth, into = (name if found[3] is None else None), 0, data
        elif above is None or (depth and indent != depth):
            return None
        else:
            depth = indent
            data[above] = into = data[above] or {}
        if name in into:
            return None
        into[name] = _to_value(found[3])
    return data


def _is_plain_value(value: str | None) -> bool:
    """Whether both readers agree on it: small words, plain numbers, and names that YAML takes for nothing else."""
    if value is None or value in _words:
        return True
    if value.isdecimal():
        return len(value) <= INTEGER_DIGITS
    if _is_fraction(value):
        return True
    return value.lower() not in _wordlike and bool(re.match(r"[A-Za-z_/](?:[\w./@:-]*[\w/])?$", value))


def _is_fraction(value: str) -> bool:
    """Whether it is a number such as 0.7, written as Python writes it; else the parser may take it for text."""
    return bool(re.match(r"[0-9]{1,6}\.[0-9]{1,6}$", value)) and repr(float(value)) == value


def _to_value(value: str | None) -> Any:
    if value is None or value in _words:
        return _words.get(value or "null")
    if _is_fraction(value):
        return float(value)
    return int(value) if value.isdecimal() and (value == "0" or not value.startswith("0")) else value


def _parse(text: str, path: str) -> Mapping[str, Any]:
    from commonplace.text import strict_yaml  # noqa: PLC0415 - see flat

    try:
        data = strict_yaml.load(text, file=path)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=path) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError("should be lines of `key: value`", file=path)
    return data


def check(data: Mapping[str, Any], schema: Schema, path: str, *, within: str = "") -> dict[str, Any]:
    """Refuse what is unknown or out of range, and fill in defaults; ``within`` names the block that it is in."""
    known = {setting.name: setting for setting in schema}
    for name in data:
        if name not in known:
            raise ConfigError(f"is not a setting; there are {', '.join(known)}", file=path, path=f"{within}{name}")
    return {name: _value(data.get(name), setting, path, within) for name, setting in known.items()}


def _value(value: Any, setting: Setting | SettingGroup, path: str, within: str) -> Any:
    place = f"{within}{setting.name}"
    if isinstance(setting, SettingGroup):
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"should be lines of `key: value` below it, not {value!r}", file=path, path=place)
        return check(value or {}, setting.settings, path, within=f"{place}.")
    if value is None:
        return setting.default
    if setting.kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if setting.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, setting.kind) or (setting.kind is int and isinstance(value, bool)):
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[setting.kind]
        raise ConfigError(f"should be {wanted}, not {value!r}", file=path, path=place)
    if reason := _reason(value, setting):
        raise ConfigError(f"{reason}, not {value!r}", file=path, path=place)
    return value


def _reason(value: Any, setting: Setting) -> str | None:
    """What a value of the right sort should be instead."""
    if setting.choices and value not in setting.choices:
        return f"should be one of {', '.join(setting.choices)}"
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and not (setting.least or 0) <= value <= (setting.most or value):
        return f"should be between {setting.least} and {setting.most}"
    return None


def template(schema: Schema, values: Mapping[str, Any], *, title: str) -> str:
    """A settings file with a comment for every key, ready to be edited."""
    lines = [f"# {title} Everything has a default; unknown keys are refused.", ""]
    for setting in schema:
        if isinstance(setting, SettingGroup):
            lines += [f"# {setting.help}", f"{setting.name}:", *_block_lines(setting), ""]
            continue
        value = values.get(setting.name, setting.default)
        lines += [f"# {setting.help}", f"{setting.name}: {_to_yaml(value)}".rstrip(), ""]
    return "\n".join(lines)


def _block_lines(block: SettingGroup) -> list[str]:
    """The lines of a block, each with its comment; what few people change is left to the reference."""
    plain = [setting for setting in block.settings if not setting.advanced]
    return [f"{f'  {one.name}: {_to_yaml(one.default)}'.rstrip():<36} # {one.help}" for one in plain]


def with_switch(text: str, name: str, value: bool) -> str:
    """A settings file with one switch turned; everything else stays as its writer left it."""
    line = f"{name}: {_to_yaml(value)}"
    pattern = re.compile(rf"(?m)^([\"']?){name}\1[ \t]*:[^\n#]*?(?=[ \t]*#|[ \t\r]*$)")
    if pattern.search(text):
        return pattern.sub(line, text, count=1)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"


def _to_yaml(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quote(value) if isinstance(value, str) else str(value)


def _quote(value: str) -> str:
    from json import dumps  # noqa: PLC0415 - only for writing

    plain = value not in _words and _plain_line.match(f"x: {value}") and _is_plain_value(value)
    return value if plain else dumps(value, ensure_ascii=False)
