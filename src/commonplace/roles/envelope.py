"""The parts that role files and flow files have in common: the text, the envelope around it, names and lists.

Each part is checked where it is taken out; what is wrong is told with the file, the place and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commonplace.model.errors import ConfigError
from commonplace.text import strict_yaml

FILE_BYTES = 262_144  # prompts are long
FILE_DEPTH = 12
VERSIONS = ("commonplace/v1", "initrunner/v1")  # the second is what the public dialect writes
METADATA = ("name", "description", "tags", "author", "version")

_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")


def text_of(file: str) -> str:
    """The text of a file."""
    try:
        with open(file, encoding="utf-8") as source:
            return source.read(FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("cannot be read: it is not UTF-8", file=file) from error


def said_in(text: str, *, file: str) -> Any:
    """What the YAML of a file says."""
    try:
        return strict_yaml.load(text, file=file, max_bytes=FILE_BYTES, max_depth=FILE_DEPTH)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=file) from error


def opened(said: Any, file: str, *, kind: str, spec: tuple[str, ...]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The metadata and the spec of an envelope that holds this kind of thing."""
    top = mapping(said, file, "", ("apiVersion", "kind", "metadata", "spec"))
    if (version := top.get("apiVersion", VERSIONS[0])) not in VERSIONS:
        raise ConfigError(f"should be one of {', '.join(VERSIONS)}, not {version!r}", file=file, path="apiVersion")
    if (found := top.get("kind", kind)) != kind:
        raise ConfigError(f"should be {kind}, not {found!r}", file=file, path="kind")
    return (
        mapping(top.get("metadata") or {}, file, "metadata", METADATA),
        mapping(top.get("spec"), file, "spec", spec),
    )


def mapping(said: Any, file: str, path: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping in which every key is known."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"should be a mapping with {', '.join(known)}", file=file, path=path)
    for name in said:
        if name not in known:
            where = f"{path}.{name}" if path else str(name)
            raise ConfigError(f"is not known here; there are {', '.join(known)}", file=file, path=where)
    return said


def section(spec: Mapping[str, Any], name: str, file: str, within: str) -> Mapping[str, Any]:
    """A mapping below a key; one that is not there is empty."""
    said = spec.get(name)
    if said is not None and not isinstance(said, Mapping):
        raise ConfigError(f"should be lines of `key: value` below it, not {said!r}", file=file, path=f"{within}{name}")
    return said or {}


def text(said: Mapping[str, Any], name: str, file: str, within: str) -> str:
    """A text; one that is not there is empty."""
    value = said.get(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"should be text, not {value!r}", file=file, path=f"{within}{name}")
    return str(value)


def needed(said: Mapping[str, Any], name: str, file: str, within: str) -> str:
    """A text that has to be there."""
    value = text(said, name, file, within)
    if not value.strip():
        raise ConfigError("is missing", file=file, path=f"{within}{name}")
    return value


def named(metadata: Mapping[str, Any], file: str, within: str) -> str:
    """A name that can be part of a file's."""
    name = needed(metadata, "name", file, within).strip()
    if not _name.fullmatch(name):
        reason = f"should be letters, digits, `-`, `_` and `.`, at most 100 of them, not {name!r}"
        raise ConfigError(reason, file=file, path=f"{within}name")
    return name


def items(spec: Mapping[str, Any], name: str, file: str, within: str) -> list[tuple[Mapping[str, Any], str]]:
    """The members of a list of mappings, each with its place."""
    said = spec.get(name) or []
    if not isinstance(said, list):
        raise ConfigError("should be a list", file=file, path=f"{within}{name}")
    placed = [(one, f"{within}{name}[{number}]") for number, one in enumerate(said)]
    for one, where in placed:
        if not isinstance(one, Mapping):
            raise ConfigError(f"should be lines of `key: value`, not {one!r}", file=file, path=where)
    return placed
