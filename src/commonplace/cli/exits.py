"""Exit codes: the one table from what went wrong to what a shell sees, used by every command.

====  ==================================================================================================
   0  done; also when there was nothing to find, and when the reader of a pipe had enough
   1  there is no such record, or something needs a person: an unhealthy store, a file that cannot be read,
      a question answered with no
   2  the command was not understood, or the input is invalid
   3  a conflict: the record is at another version, the key is taken, there is no room
   4  forbidden: a memory that is switched off, a scope outside of this place
   5  the configuration cannot be followed
   6  the store or the disk failed: busy, damaged, full, written by a newer Commonplace
 130  interrupted
====  ==================================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from commonplace.cli.terminal import discard_output, prepare_streams, print_json, print_note
from commonplace.model.errors import (
    CapacityExceeded,
    CommonplaceError,
    ConfigError,
    Conflict,
    DimensionMismatch,
    EmbeddingModelChanged,
    Forbidden,
    InvalidInput,
    LeaseLost,
    NotFound,
    ProviderError,
    StoreError,
)

OK = 0
ATTENTION = 1
INTERRUPTED = 130

EXITS: dict[type[CommonplaceError], int] = {
    NotFound: 1,
    InvalidInput: 2,
    Conflict: 3,
    CapacityExceeded: 3,
    LeaseLost: 3,
    Forbidden: 4,
    ConfigError: 5,
    EmbeddingModelChanged: 5,
    DimensionMismatch: 5,
    ProviderError: 6,
    StoreError: 6,
}
_FAILED = 6

T = TypeVar("T")


def run_guarded(command: Callable[[T], int], given: T) -> int:
    """Run a command; an error becomes one sentence and one exit code."""
    prepare_streams()
    try:
        code = command(given)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return OK
    except KeyboardInterrupt:
        print_note("interrupted")
        return INTERRUPTED
    except CommonplaceError as error:
        code = next(code for kind, code in EXITS.items() if isinstance(error, kind))
        return _report(given, type(error).__name__, str(error), code)
    except OSError as error:
        said = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        return _report(given, type(error).__name__, said, _FAILED)
    finally:
        _flush_output()
    return code


def _report(arguments: object, kind: str, message: str, code: int) -> int:
    """Print an error as a sentence and, where the answer would have been JSON, as JSON too; return the exit code."""
    print_note(message)
    if isinstance(arguments, Sequence) and _wants_json(arguments):
        print_json({"error": {"kind": kind, "message": message, "exit": code}})
    return code


def _wants_json(arguments: Sequence[object]) -> bool:
    return not {"--json", "--format=json"}.isdisjoint(map(str, arguments)) or "--format json" in " ".join(
        map(str, arguments)
    )


def _flush_output() -> None:
    """Write what is still in the buffer, if anybody can take it: else Python would complain when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
