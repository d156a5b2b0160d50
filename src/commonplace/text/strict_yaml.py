"""Read YAML that people write, without its surprises; write values that every reader understands the same way.

Only data is read: no aliases, no tags, no second document, no duplicate keys, bounded in size and
depth.  A plain word is a number only if that number is printed the same way, so ``1.10``, ``0x1F``, ``no``, ``12:30``
and ``2024-05-17`` stay text, and a number can be turned back into the text that it was, without loss.
It is not a general YAML library: it writes single-line values only, and it knows nothing of any schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.records import Json

MAX_BYTES = 65_536  # PyYAML reads about 1 MB/s: a tenth of a second at most
MAX_DEPTH = 8  # collections inside each other; people write three
KEY_LETTERS = 1_000  # YAML looks no further than 1,024 letters for the colon after a key

_WORDS: Mapping[str, Json] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:e[-+][0-9]+)?")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

# What YAML forbids, and the line ends that YAML 1.1 sees and 1.2 and editors do not (U+0085, U+2028, U+2029).
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # neither database can hold them in text

_PLAIN = re.compile(r"\w(?:[\w ./@+()%*!?=~^$;&'-]*[\w./@+()%*!?=~^$;&'-])?")
_NUMBER_LIKE = re.compile(r"[0-9][-+.:0-9a-fA-FxXoOtTzZ_ ]*")  # or a date or a time, in YAML 1.1 or 1.2
_LIKE_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# Invisible but effective: controls, line ends of YAML 1.1, the byte order mark, turns of direction, tag characters.
_ESCAPED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\U000e0000-\U000e007f]")


class YamlError(InvalidInput):
    """A YAML text that cannot be accepted."""

    def __init__(self, reason: str, *, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


def load(text: str, *, file: str, first_line: int = 1, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Json:
    """Read one YAML document; an empty one is None.  Raises ``YamlError`` and nothing else."""
    return load_with_lines(text, file=file, first_line=first_line, max_bytes=max_bytes, max_depth=max_depth)[0]


def load_with_lines(
    text: str, *, file: str, first_line: int = 1, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> tuple[Json, dict[str, int]]:
    """Read one YAML document; also return the line of each of its outermost keys."""
    import yaml  # noqa: PLC0415 - a fifth of a command's start-up, and most commands read no YAML

    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    _refuse(text, file=file, first_line=first_line, max_bytes=max_bytes)
    builder = _Builder(file=file, first_line=first_line, max_depth=max_depth)
    return _build(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader), builder)


def truth(value: Json) -> bool | None:
    """Read a yes or no the way people write it, where a schema wants one; None if it is neither."""
    if isinstance(value, bool):
        return value
    return _TRUTHS.get(value.lower()) if isinstance(value, str) else None


def dump(value: object, *, max_depth: int = MAX_DEPTH) -> str:
    """Write a value in one line: scalars plain where safe, lists as ``[a, b]``, mappings as JSON with sorted keys."""
    if isinstance(value, list | tuple):
        if max_depth < 1:
            raise InvalidInput("a value is nested too deeply to be written")
        return f"[{', '.join([dump(item, max_depth=max_depth - 1) for item in value])}]"
    if isinstance(value, Mapping):
        return _json(value, max_depth)
    return dump_scalar(value)


def dump_scalar(value: object) -> str:
    """Write a scalar so that readers of YAML 1.1 and of 1.2 both read the same."""
    if isinstance(value, str):
        return value if is_plain(value) else quote(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value - value == 0:  # neither infinite nor nan, which JSON does not know
        return _float_text(value)
    raise InvalidInput(f"{value!r} cannot be written: it is not JSON")


def is_plain(text: str) -> bool:
    """Whether a text needs no quotes, even in a list: every reader reads it as that text."""
    if not _PLAIN.fullmatch(text) or text.lower() in _LIKE_WORDS:
        return False
    return not _NUMBER_LIKE.fullmatch(text)


def quote(text: str) -> str:
    """Write a text as JSON does, which is YAML too; what cannot be seen is escaped, all else stays readable."""
    if _UNSTORABLE.search(text):
        raise InvalidInput(f"{text[:40]!r} holds NUL or half a character and cannot be written")
    written = encode_basestring(text)
    return written if written.isascii() and "\x7f" not in written else _ESCAPED.sub(_escape, written)


def _build(text: str, kind: Any, builder: _Builder) -> tuple[Json, dict[str, int]]:
    from yaml import YAMLError  # noqa: PLC0415 - see above

    loader = kind(text)
    try:
        while loader.check_event():
            builder.take(loader.get_event())
    except YAMLError as error:
        raise builder.error(_reason(error), line=_line(error)) from None
    except YamlError:
        raise
    except (ValueError, OverflowError):  # the loader in Python, on an escape beyond Unicode
        raise builder.error("holds an escape that is no character", line=loader.line) from None
    finally:
        loader.dispose()
    return builder.result, builder.lines


class _Builder:
    """The value that grows as the events of a document come in; a loop, so that no depth can exhaust the stack."""

    def __init__(self, *, file: str, first_line: int, max_depth: int) -> None:
        self.result: Json = None
        self.lines: dict[str, int] = {}
        self._file = file
        self._first_line = first_line
        self._max_depth = max_depth
        self._documents = 0
        self._open: list[list[Json] | dict[str, Json]] = []
        self._keys: list[str | None] = []  # of each open collection: the key that waits for its value

    def error(self, reason: str, *, line: int) -> YamlError:
        """Build the error; the line is counted from 0 within the text."""
        return YamlError(reason, file=self._file, line=self._first_line + line)

    def take(self, event: Any) -> None:
        """Process the next event."""
        self._refuse_extras(event)
        match type(event).__name__:
            case "ScalarEvent":
                self._scalar(event)
            case "SequenceStartEvent":
                self._enter([], event)
            case "MappingStartEvent":
                self._enter({}, event)
            case "SequenceEndEvent" | "MappingEndEvent":
                self._keys.pop()
                self._put(self._open.pop())
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise self.error("holds more than one document", line=event.start_mark.line)

    def _refuse_extras(self, event: Any) -> None:
        line = event.start_mark.line
        if type(event).__name__ == "AliasEvent" or getattr(event, "anchor", None):
            raise self.error("uses an anchor or an alias (& or *); write the value out", line=line)
        if getattr(event, "tag", None):
            raise self.error(f"uses a tag ({event.tag}); tags are not read", line=line)

    def _scalar(self, event: Any) -> None:
        text = str(event.value)
        if event.style == '"' and _UNSTORABLE.search(text):
            raise self.error("holds an escape for NUL or for half a character", line=event.start_mark.line)
        if self._awaits_key():
            self._key(text, event.start_mark.line)
        else:
            self._put(text if event.style else _plain_value(text))

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def _key(self, key: str, line: int) -> None:
        inside = self._open[-1]
        if key in inside:
            raise self.error(f"says {key!r} twice", line=line)
        self._keys[-1] = key
        if len(self._open) == 1:
            self.lines[key] = self._first_line + line

    def _enter(self, collection: list[Json] | dict[str, Json], event: Any) -> None:
        line = event.start_mark.line
        if self._awaits_key():
            raise self.error("has a list or a mapping for a key; a key must be text", line=line)
        if len(self._open) >= self._max_depth:
            raise self.error(f"is nested deeper than {self._max_depth} levels", line=line)
        self._open.append(collection)
        self._keys.append(None)

    def _put(self, value: Json) -> None:
        if not self._open:
            self.result = value
            return
        inside, key = self._open[-1], self._keys[-1]
        if isinstance(inside, list):
            inside.append(value)
        elif key is not None:
            inside[key] = value
            self._keys[-1] = None


def _refuse(text: str, *, file: str, first_line: int, max_bytes: int) -> None:
    found = _FORBIDDEN.search(text)
    if found:
        line = first_line + text.count("\n", 0, found.start())
        raise YamlError(f"holds the character U+{ord(found[0]):04X}, which cannot stand here", file=file, line=line)
    if len(text) > max_bytes or len(text.encode()) > max_bytes:
        raise YamlError(f"is larger than {max_bytes} bytes", file=file, line=first_line)


def _reason(error: Any) -> str:
    problem = getattr(error, "problem", None) or "cannot be read"
    context = getattr(error, "context", None)
    return f"is not YAML: {problem} {context}" if context else f"is not YAML: {problem}"


def _line(error: Any) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return mark.line if mark else 0


def _plain_value(text: str) -> Json:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "-0123456789":
        return text
    if _INTEGER.fullmatch(text) and text != "-0":
        return _integer(text)
    if _FLOAT.fullmatch(text) and _float_text(float(text)) == text:
        return float(text)
    return text


def _integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:  # Python converts no more than 4,300 digits
        return text


def _float_text(value: float) -> str:
    written = repr(value)
    return written if "." in written else written.replace("e", ".0e")  # 1e+16 would be text in YAML 1.1


def _json(value: object, max_depth: int) -> str:
    if isinstance(value, str):
        return quote(value)
    if not isinstance(value, list | tuple | Mapping):
        return dump_scalar(value)
    if max_depth < 1:
        raise InvalidInput("a value is nested too deeply to be written")
    if isinstance(value, Mapping):
        return f"{{{', '.join([f'{_json_key(key)}: {_json(value[key], max_depth - 1)}' for key in sorted(value)])}}}"
    return f"[{', '.join([_json(item, max_depth - 1) for item in value])}]"


def _json_key(key: str) -> str:
    written = quote(key)
    return written if len(written) < KEY_LETTERS else f"? {written} "


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - what four digits can say
