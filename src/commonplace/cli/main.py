"""Where ``commonplace`` starts.  Programs wait for ``recall``, ``hook`` and ``mcp``: no library is loaded for those."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

QUICK, HOOK, MCP = ["recall"], ["hook"], ["mcp"]
HELP = {"--help", "-h"}


def main() -> int:
    """Run the command that was typed; returns its exit code, or ends the process if every millisecond counts."""
    arguments = sys.argv[1:]
    if arguments[:1] == HOOK and not HELP & {*arguments}:
        gc.disable()
        from commonplace.hosts.hook_command import hooked  # noqa: PLC0415 - after gc.disable

        hooked(arguments[1:])
    if arguments[:1] != QUICK:
        return run(arguments)
    gc.disable()  # it ends before there is garbage worth collecting
    code = run(arguments)
    sys.stderr.flush()
    os._exit(code)  # all is written and closed: taking the interpreter apart would cost a tenth of the whole


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    from commonplace.cli.exits import run_guarded  # noqa: PLC0415 - after gc.disable

    return run_guarded(_dispatched, arguments)


def _dispatched(arguments: Sequence[str]) -> int:
    if list(arguments) == MCP and not sys.stdin.isatty():  # a host has started it, and waits
        from commonplace.mcp.stdio import serve  # noqa: PLC0415 - what no other command loads
        from commonplace.records import records_surface  # noqa: PLC0415 - likewise

        serve(records_surface())
        return 0
    if list(arguments[:1]) == QUICK:
        from commonplace.records.commands import recall  # noqa: PLC0415 - what --help and --version need not load

        asked = recall.simple(arguments[1:])
        if asked is not None:
            return recall.run(asked)
    from commonplace.cli.commands import run as run_by_click  # noqa: PLC0415 - loads click

    return run_by_click(arguments)
