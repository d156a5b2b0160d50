"""Reads YAML dialects: strict YAML becomes msgspec structs; errors name their place.

A dialect declares its mappings as ``ConfigBlock``s.  ``decode`` walks them together with the data, so that an error
names its place, and lets msgspec judge each value.  ``config.settings`` does not use it: every prompt pays for that
module, and msgspec costs more than all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

from msgspec import Meta, Struct, StructMeta, ValidationError, convert, field
from msgspec.structs import fields, replace

from commonplace.files import disk
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text import strict_yaml

T = TypeVar("T")
FILE_BYTES = 262_144  # prompts are long, and a file may have several
FILE_DEPTH = 12  # jobs, plan, steps, config, run and args already take eight
NOT_BLANK = r"\S"
NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}

Required = Annotated[str, Meta(pattern=NOT_BLANK)]  #: a text that must be there and not be blank


class _BlockType(StructMeta):
    """Makes every block immutable, built by keyword, and strict about unknown keys."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        given = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True} | options
        return super().__new__(mcls, name, bases, namespace, **given)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class ConfigBlock(Struct, metaclass=_BlockType, frozen=True):
    """A mapping of a dialect: its fields are the keys.  ``__post_init__`` raises ``Misfit`` if keys contradict."""

    @classmethod
    def expand(cls, text: str) -> Any:
        """Return the mapping that a text is short for; a block without a short form returns the text itself."""
        return text

    def replace(self, **changes: Any) -> Self:
        """Return the same block with some fields changed."""
        return replace(self, **changes)


class Misfit(ValueError):
    """A contradiction between keys that are each valid; ``path`` is relative to the block."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason

    def at(self, block: At) -> ConfigError:
        """Return the error of a block at this place."""
        return (block.key(self.path) if self.path else block).error(self.reason)


class At(Value):
    """A place in a file, for errors to name."""

    file: str
    path: str = ""

    def key(self, name: str) -> At:
        """The place of a key below it."""
        return self.replace(path=f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> At:
        """The place of an item of the list there."""
        return self.replace(path=f"{self.path}[{number}]")

    def error(self, reason: str) -> ConfigError:
        """An error that names this place."""
        return ConfigError(reason, file=self.file, path=self.path)


def read_yaml(file: str) -> Any:
    """Read and parse a YAML file.  Raises ``ConfigError``."""
    try:
        text = disk.read_text(file, limit=FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {disk.reason(error)}", file=file) from error
    return parse_yaml(text, file=file)


def parse_yaml(text: str, *, file: str) -> Any:
    """Parse the text of a YAML file.  Raises ``ConfigError``."""
    try:
        return strict_yaml.load(text, file=file, max_bytes=FILE_BYTES, max_depth=FILE_DEPTH)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=file) from error


def decode(data: Any, kind: type[T], at: At) -> T:
    """Convert YAML data to a type: null is absent, ``yes`` is true, and 7 may be a text.  Raises ``ConfigError``."""
    chosen, meta = _choose(data, kind)
    if _is_block(chosen):
        return cast("T", _decode_block(data, kind, chosen, meta, at))
    value = data
    if isinstance(data, list) and get_origin(chosen) is tuple:
        value = [decode(item, get_args(chosen)[0], at.item(number)) for number, item in enumerate(data)]
    elif isinstance(data, Mapping) and get_origin(chosen) is Mapping:
        names, values = get_args(chosen)
        value = {decode(name, names, at.key(name)): decode(one, values, at.key(name)) for name, one in data.items()}
    elif chosen is str and isinstance(data, int | float) and not isinstance(data, bool):
        value = str(data)
    elif chosen is bool and (truth := strict_yaml.truth(data)) is not None:
        value = truth
    try:
        return convert(value, kind)
    except ValidationError as error:
        raise at.error(_reason(data, chosen, meta)) from error


def _decode_block(data: Any, kind: Any, block: type[ConfigBlock], meta: Meta, at: At) -> ConfigBlock:
    """Build a block from a mapping in which every key is known and none is missing."""
    data = block.expand(data) if isinstance(data, str) else data
    if not isinstance(data, Mapping):
        raise at.error(_reason(data, block, meta))
    tag_field = block.__struct_config__.tag_field
    if tag_field and not _has_tag(data, block):
        tags = [member.__struct_config__.tag for member in get_args(kind) or (block,)]
        raise at.key(tag_field).error(f"should be one of {', '.join(tags)}, not {data.get(tag_field)!r}")
    known = {one.encode_name: one for one in fields(block)}
    for name in data:
        if name not in known and name != tag_field:
            raise at.key(str(name)).error(f"unknown key; valid keys: {', '.join(known)}")
    given = {key: one for key, one in known.items() if one.required or data.get(key) is not None}
    try:
        return block(**{one.name: decode(data.get(key), one.type, at.key(key)) for key, one in given.items()})
    except Misfit as error:
        raise error.at(at) from error


def _choose(data: Any, kind: Any) -> tuple[Any, Meta]:
    """Return the member of a union that fits the data best, and its annotation."""
    meta = Meta()
    if get_origin(kind) is Annotated:
        kind, meta = get_args(kind)
    if get_origin(kind) not in {Union, UnionType}:
        return kind, meta
    members = [member for member in get_args(kind) if member is not NoneType]
    if isinstance(data, Mapping):
        blocks = [member for member in members if _is_block(member)]
        members = [block for block in blocks if _has_tag(data, block)] or blocks[:1] or members
    elif isinstance(data, list):
        members = [member for member in members if get_origin(member) is tuple] or members
    chosen, inner = _choose(data, members[0])
    return chosen, inner if meta == Meta() else meta


def _reason(data: Any, kind: Any, meta: Meta) -> str:
    """Return why a value does not fit."""
    if (meta.pattern == NOT_BLANK and isinstance(data, str)) or (data is None and not _is_block(kind)):
        return "is missing"
    shown = "" if data is None or get_origin(kind) is tuple else f", not {data!r}"
    return f"should be {_allowed_values(data, kind, meta)}{shown}"


def _allowed_values(data: Any, kind: Any, meta: Meta) -> str:
    """Describe the values that a type allows."""
    bounds = [bound for bound in (meta.ge, meta.le) if bound is not None]
    if bounds and isinstance(data, int | float) and not isinstance(data, bool):
        return f"between {meta.ge} and {meta.le}" if meta.ge is not None else f"at most {meta.le}"
    if meta.description:
        return meta.description
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return str(choices[0]) if len(choices) == 1 else f"one of {', '.join(choices)}"
    some = " with something in it" if meta.min_length else ""
    if get_origin(kind) is tuple:
        return f"a list{some}"
    if get_origin(kind) is Mapping:
        return f"a mapping{some}"
    return f"a mapping with {', '.join(f.encode_name for f in fields(kind))}" if _is_block(kind) else NOUNS[kind]


def _is_block(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ConfigBlock)


def _has_tag(data: Mapping[str, Any], block: Any) -> bool:
    return bool(data.get(block.__struct_config__.tag_field) == block.__struct_config__.tag)


def check_name(kind: str, name: str, path: str) -> None:
    """Raise ``Misfit`` if nothing of this kind could be stored under the name."""
    try:
        Scope.of((kind, name))
    except InvalidInput as error:
        raise Misfit(path, str(error)) from error


def waves(waits: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Names in waves, each waiting for earlier waves only, in the given order.  Raises ``graphlib.CycleError``."""
    names, found = list(waits), list[tuple[str, ...]]()
    sorter = TopologicalSorter(waits)
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=names.index)
        sorter.done(*ready)
        found.append(tuple(ready))
    return found
