"""A cache of the tool list, in the folder of the byte code: deriving it takes longer than the rest of the start.

Like byte code, it is valid until one of the modules that it was made from changes, and is only written if Python writes
byte code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from commonplace.version import VERSION

Tools = list[dict[str, Any]]


def load_or_derive(path: str, derive: Callable[[], Tools]) -> Tools:
    """Return what ``derive`` returned in an earlier process; without that, or if code has changed, call it."""
    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
        if stored["version"] == VERSION and all(_stamp(name) == stamp for name, stamp in stored["modules"].items()):
            tools: Tools = stored["tools"]
            return tools
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # nothing is stored, or something else
    tools = derive()
    if not sys.dont_write_bytecode:
        _store(path, {"version": VERSION, "modules": _modules(), "tools": tools})
    return tools


def _modules() -> dict[str, list[int]]:
    """Return the files of our modules that are loaded: those that the tools were made from, and some others."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "commonplace"]
    return {file: _stamp(file) for module in modules if (file := module.__file__)}


def _stamp(file: str) -> list[int]:
    status = os.stat(file)
    return [status.st_mtime_ns, status.st_size]


def _store(path: str, content: dict[str, Any]) -> None:
    """Write the file at once and whole; where that is not possible the next process derives the list again."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(temporary, path)
    except OSError:
        return
