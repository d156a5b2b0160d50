"""Prompt files, and JSON in the answers of models."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from commonplace.files import disk
from commonplace.model.errors import ConfigError, InvalidInput

PROMPTS = "prompts"  # our folder, and a project's own
PROMPT_BYTES = 262_144
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class BadReply(InvalidInput):
    """An answer that does not keep to the contract."""


def prompt_files(folder: str | None, *, named: str | None = None) -> Callable[[str], str]:
    """Return a function that reads a prompt by its name: a project's own in ``prompts/`` of its folder before ours.

    Errors name ``named``, if the folder is the copy of that one that the user has agreed to.
    """

    def read(name: str) -> str:
        own = os.path.join(named or folder, PROMPTS, name) if folder else ""
        try:
            if folder:
                return disk.read(folder, os.path.join(PROMPTS, name), limit=PROMPT_BYTES)[0].decode()
        except FileNotFoundError:
            pass
        except UnicodeDecodeError as error:
            raise ConfigError(f"is not UTF-8 at byte {error.start}", file=own) from None
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", file=own) from error
        with open(os.path.join(os.path.dirname(__file__), PROMPTS, name), encoding="utf-8") as file:
            return file.read()

    return read


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Replace every variable in one go: what is filled in is not searched for variables."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), template)


def load_reply(text: str) -> Any:
    """The JSON of an answer, or between its first and last brace: models like to write something around it."""
    if not text.strip():
        raise BadReply("the answer is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start, end = text.find("{"), text.rfind("}")
    if text.strip().startswith("{") and not text.strip().endswith("}"):
        raise BadReply("the answer was cut off before its end")
    if start < 0 or end < start:
        raise BadReply("the answer is not a JSON object")
    try:
        return json.loads(text[start : end + 1])
    except ValueError as error:
        raise BadReply(f"the answer is not JSON: {error}") from None
    except RecursionError:
        raise BadReply("the answer is nested too deeply") from None
