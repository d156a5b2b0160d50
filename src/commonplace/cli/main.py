"""Where ``commonplace`` starts.  Programs wait for ``recall``, ``hook`` and ``mcp``: no library is loaded for those."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

HELP = {"--help", "-h"}
RECALL = {"recall", "search"}  # both names of one command


def main() -> int:
    """Run the command that was typed; returns its exit code, or ends the process if every millisecond counts."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not HELP & {*arguments}:
        gc.disable()
        load("hosts.hook_process:run_hook")(arguments[1:])
    if not RECALL & {*arguments[:1]}:
        return run(arguments)
    gc.disable()  # it ends before there is garbage worth collecting
    code = run(arguments)
    sys.stderr.flush()
    os._exit(code)  # all is written and closed: taking the interpreter apart would cost a tenth of the whole


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    code: int = load("cli.exits:run_guarded")(_dispatch, arguments)
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    code: int | None = None
    if list(arguments) == ["mcp"] and not sys.stdin.isatty():  # a host has started it, and waits
        load("mcp.stdio:serve")(load("records.surface:records_surface")())
        return 0
    if RECALL & {*arguments[:1]}:
        code = load("records.recall_command:quick")(arguments[1:])
    return load("cli.commands:run")(arguments) if code is None else code


def load(target: str) -> Any:
    """Import ``module:attribute`` of this package when it is needed; ``importlib`` would have to be loaded for it."""
    module, _, attribute = target.partition(":")
    return getattr(__import__(f"commonplace.{module}", fromlist=[attribute]), attribute)
