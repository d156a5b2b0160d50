"""Settings files: YAML of one level or two with known keys and checked values; errors name the file and the key.

Two files use it: the project's ``.commonplace/config.yaml`` and the user's ``config.yaml`` in the data folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from commonplace.files import disk
from commonplace.model.binding import CONTENT_BYTES, CONTENT_BYTES_LIMIT, PERSONAL
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value

_plain_text = re.compile(r"[\n\x20-\x7e]*")  # the YAML parser judges all else, such as control characters
_plain_line = re.compile(
    r"^( {0,9})([A-Za-z_][A-Za-z0-9_]{0,98}):(?: +([A-Za-z0-9_./@-][A-Za-z0-9_./@:-]*))? *(?: #.*)?$"
)
_words = {"true": True, "false": False, "null": None}
_wordlike = {"true", "false", "null", "yes", "no", "on", "off"}  # in any case; some YAML parsers read them as booleans


FILE_BYTES = 262_144  # of a file of settings
FLAT_CHARS = 65_536  # the limit of the parser
INTEGER_DIGITS = 18  # no setting has more; beyond a few thousand Python refuses to convert them


class Setting(Value):
    """One key of a settings file."""

    name: str
    default: Any
    kind: type
    help: str  #: what it does, used as the comment of the key in a new file
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()  #: of a text; empty: any
    advanced: bool = False  #: not written to new files
    by_hand: bool = False  #: it says who is trusted or where data goes: no page and no program changes it


class SettingGroup(Value):
    """A key of a settings file that holds further ones."""

    name: str
    settings: tuple[Setting, ...]
    help: str


Schema: TypeAlias = tuple[Setting | SettingGroup, ...]

#: How a project learns from its sessions.  The first names are those of the specification, the others are ours.
MEMORIES = SettingGroup(
    name="memories",
    help="learning from sessions: extraction and consolidation",
    settings=(
        Setting(name="enabled", default=False, kind=bool, help="turns learning on"),
        Setting(
            name="mode", default="rules", kind=str, choices=("rules", "model", "host"),
            help="how records are extracted: rules, model (one of `models`) or host (your coding agent)",
        ),
        Setting(
            name="askAgent", default=False, kind=bool,
            help="asks the running agent, once in a session, to save what was settled",
        ),
        Setting(
            name="maxRolloutAgeDays", default=30, kind=int, least=1, most=36_500,
            help="skip sessions older than this",
        ),
        Setting(
            name="minRolloutIdleHours", default=12, kind=int, least=0, most=8760,
            help="skip sessions active more recently than this",
        ),
        Setting(
            name="maxRolloutsPerStartup", default=64, kind=int, least=1, most=100_000,
            help="maximum number of sessions processed per run",
        ),
        Setting(
            name="summaryInjectionTokenLimit", default=5000, kind=int, least=1, most=1_000_000,
            help="maximum number of tokens of the injected summary",
        ),
        Setting(
            name="maxRecordsPerSession", default=20, kind=int, least=0, most=1000,
            help="maximum number of records from one session",
        ),
        Setting(
            name="maxLossPercent", default=25, kind=int, least=0, most=100, advanced=True,
            help="percentage of the facts in MEMORY.md that one consolidation may drop, each with a reason",
        ),
        Setting(
            name="threadScanLimit", default=300, kind=int, least=1, most=1_000_000, advanced=True,
            help="maximum number of sessions scanned per run, newest first",
        ),
        Setting(
            name="maxRawMemoriesForGlobal", default=200, kind=int, least=1, most=100_000, advanced=True,
            help="maximum number of extractions read per consolidation, newest first",
        ),
        Setting(
            name="stage1Concurrency", default=8, kind=int, least=1, most=64, advanced=True,
            help="number of sessions extracted in parallel",
        ),
        Setting(
            name="stage1LeaseSeconds", default=120, kind=int, least=1, most=86_400, advanced=True,
            help="lease of an extraction; renewed while the process works",
        ),
        Setting(
            name="stage1RetryDelaySeconds", default=120, kind=int, least=0, most=86_400, advanced=True,
            help="delay before a failed session is retried",
        ),
        Setting(
            name="phase1InputTokenLimit", default=4000, kind=int, least=100, most=1_000_000, advanced=True,
            help="maximum number of tokens of one session sent to a model",
        ),
        Setting(
            name="rolloutPayloadPercent", default=0.7, kind=float, least=0.05, most=1, advanced=True,
            help="share of a model's context window used for the session",
        ),
        Setting(
            name="fallbackTokenLimit", default=16_000, kind=int, least=2048, most=10_000_000, advanced=True,
            help="context window assumed for a model that does not report one",
        ),
        Setting(
            name="phase2LeaseSeconds", default=180, kind=int, least=1, most=86_400, advanced=True,
            help="lease of a consolidation; renewed while the process works",
        ),
        Setting(
            name="phase2RetryDelaySeconds", default=180, kind=int, least=0, most=86_400, advanced=True,
            help="delay before a failed consolidation is retried",
        ),
        Setting(
            name="phase2HeartbeatSeconds", default=30, kind=int, least=1, most=86_400, advanced=True,
            help="interval at which a consolidation renews its lease",
        ),
    ),
)  # fmt: skip
#: The language models.  A file never contains an API key, only the name of the variable that holds it.
MODELS = SettingGroup(
    name="models",
    help="language models for `memories.mode: model`, such as openai:NAME, anthropic:NAME, google:NAME, ollama:NAME",
    settings=(
        Setting(name="default", default=None, kind=str, help="the model that extracts"),
        Setting(name="smol", default=None, kind=str, help="the model that consolidates; if empty, `default`"),
        Setting(
            name="base_url", by_hand=True, default=None, kind=str, advanced=True,
            help="address of an OpenAI-compatible endpoint; if empty, the provider's own",
        ),
        Setting(
            name="api_key_env", by_hand=True, default=None, kind=str, advanced=True,
            help="environment variable that holds the key; if empty, the provider's own",
        ),
        Setting(
            name="timeout_seconds", default=120, kind=int, least=1, most=3600, advanced=True,
            help="time limit for one answer, including retries",
        ),
    ),
)  # fmt: skip

PERSONAL_DATA = Setting(
    name="personal_data", default="allow", kind=str, choices=PERSONAL,
    help="card numbers, IBANs and national ids: allow (and tag the record), mask, or block (refuse the record)",
)  # fmt: skip
PROJECT: Schema = (
    Setting(
        name="project", by_hand=True, default=None, kind=str,
        help="the project's identity; clones and worktrees with the same one share memory",
    ),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false stops saving to and recalling from this project's memory",
    ),
    Setting(
        name="content_bytes", default=CONTENT_BYTES, kind=int, least=1, most=CONTENT_BYTES_LIMIT,
        help="maximum size of a record's content in bytes",
    ),
    Setting(name="recall_limit", default=10, kind=int, least=1, most=1000, help="maximum number of hits per recall"),
    Setting(
        name="recall_budget", default=None, kind=int, least=1, most=1_000_000,
        help="maximum number of tokens per recall; if empty, only recall_limit applies",
    ),
    PERSONAL_DATA,
    MEMORIES,
    MODELS,
)  # fmt: skip
USER: Schema = (
    Setting(
        name="user", by_hand=True, default=None, kind=str,
        help="the owner of the assistant memory; if empty, your login name",
    ),
    Setting(
        name="enabled", default=True, kind=bool,
        help="false stops saving to and recalling from the assistant memory",
    ),
    Setting(
        name="store", by_hand=True, default=None, kind=str,
        help="a file, or the address of a PostgreSQL database; if empty, commonplace.db in the data folder",
    ),
    Setting(
        name="embedder", default="local", kind=str,
        help="local, onnx:/PATH/model.onnx, openai:NAME, google:NAME or ollama:NAME; none searches by words only",
    ),
    Setting(
        name="embedder_base_url", by_hand=True, default=None, kind=str,
        help="address of an OpenAI-compatible endpoint for it; if empty, the provider's own",
    ),
    Setting(
        name="embedder_api_key_env", by_hand=True, default=None, kind=str,
        help="environment variable that holds its key; if empty, the provider's own",
    ),
    Setting(
        name="embedder_dimensions", default=None, kind=int, least=1, most=65_536,
        help="length of its vectors, where the model lets you choose; if empty, the model's default",
    ),
    PERSONAL_DATA,
    Setting(
        name="key_hosts", by_hand=True, default=None, kind=str,
        help="hosts that may get a key besides its own provider's, such as OPENAI_API_KEY@llm.example.org",
    ),
    Setting(
        name="scripts_speak_as", by_hand=True, default="agent", kind=str, choices=("agent", "user"),
        help="whose word a command without a terminal is: agent, or user if only your own scripts run such commands",
    ),
)  # fmt: skip


def load(path: str, schema: Schema, *, named: str | None = None) -> dict[str, Any]:
    """Read the settings of a file and fill in defaults; a missing file has no settings.

    Errors name ``named``, if the file is a copy of that one.
    """
    named = named or path
    try:
        text = disk.read_text(path, limit=FILE_BYTES)
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {disk.reason(error)}", file=named) from error
    return check(parse(text, named), schema, named)


def parse(text: str, file: str) -> Mapping[str, Any]:
    """Read the text of a settings file, whatever its keys are; raises ``ConfigError`` if it is none."""
    data = parse_flat(text)
    return _parse(text, file) if data is None else data


def parse_flat(text: str) -> dict[str, Any] | None:
    """Read ``key: value`` lines without a YAML parser, which costs more than a recall; None for other YAML.

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
    """Tell whether YAML reads the value the same: small words, plain numbers, and names that are nothing else."""
    if value is None or value in _words:
        return True
    if value.isdecimal():
        return len(value) <= INTEGER_DIGITS
    if _is_fraction(value):
        return True
    return value.lower() not in _wordlike and bool(re.match(r"[A-Za-z_/](?:[\w./@:-]*[\w/])?$", value))


def _is_fraction(value: str) -> bool:
    """Tell whether it is a number such as 0.7, as Python writes it; else the parser may read it as text."""
    return bool(re.match(r"[0-9]{1,6}\.[0-9]{1,6}$", value)) and repr(float(value)) == value


def _to_value(value: str | None) -> Any:
    if value is None or value in _words:
        return _words.get(value or "null")
    if _is_fraction(value):
        return float(value)
    return int(value) if value.isdecimal() and (value == "0" or not value.startswith("0")) else value


def _parse(text: str, path: str) -> Mapping[str, Any]:
    from commonplace.text import strict_yaml  # noqa: PLC0415 - see parse_flat

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
    """Refuse unknown keys and values out of range, and fill in defaults; ``within`` names the block around them."""
    known = {setting.name: setting for setting in schema}
    for name in data:
        if name not in known:
            from commonplace.text.suggest import suggestion  # noqa: PLC0415 - files are mostly right

            what = f"unknown setting; valid settings: {', '.join(known)}{suggestion(str(name), known)}"
            raise ConfigError(what, file=path, path=f"{within}{name}")
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
    """Return what is wrong with a value of the right type; None if nothing is."""
    if setting.choices and value not in setting.choices:
        return f"should be one of {', '.join(setting.choices)}"
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and not (setting.least or 0) <= value <= (setting.most or value):
        return f"should be between {setting.least} and {setting.most}"
    return None


def template(schema: Schema, values: Mapping[str, Any], *, title: str) -> str:
    """Return a settings file with a comment for every key."""
    lines = [f"# {title} Every key has a default; unknown keys are errors.", ""]
    for setting in schema:
        if isinstance(setting, SettingGroup):
            lines += [f"# {setting.help}", f"{setting.name}:", *_block_lines(setting), ""]
            continue
        value = values.get(setting.name, setting.default)
        lines += [f"# {setting.help}", f"{setting.name}: {to_yaml(value)}".rstrip(), ""]
    return "\n".join(lines)


def _block_lines(block: SettingGroup) -> list[str]:
    """Return the lines of a block, each with its comment; advanced settings are only in the reference."""
    plain = [setting for setting in block.settings if not setting.advanced]
    return [f"{f'  {one.name}: {to_yaml(one.default)}'.rstrip():<36} # {one.help}" for one in plain]


def with_switch(text: str, name: str, value: bool) -> str:
    """Return a settings file with one switch changed and all else, comments too, as it was."""
    line = f"{name}: {to_yaml(value)}"
    pattern = re.compile(rf"(?m)^([\"']?){name}\1[ \t]*:[^\n#]*?(?=[ \t]*#|[ \t\r]*$)")
    if pattern.search(text):
        return pattern.sub(line, text, count=1)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"


def to_yaml(value: Any) -> str:
    """Return a value as a settings file has it; empty for None, which is the default."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quote(value) if isinstance(value, str) else str(value)


def _quote(value: str) -> str:
    from json import dumps  # noqa: PLC0415 - only for writing

    plain = value not in _words and _plain_line.match(f"x: {value}") and _is_plain_value(value)
    return value if plain else dumps(value, ensure_ascii=False)
