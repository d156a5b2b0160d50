"""The one place that catches every exception: a failed save, capture or consolidation never ends a run.

The error is logged in full under ``commonplace`` and reported to the user in one sentence.  Ctrl-C is not an error and
passes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commonplace.text.cleaning import one_line

Notify = Callable[[str], None]

ERROR_CHARS = 300
log = logging.getLogger("commonplace")
log.addHandler(logging.NullHandler())  # else Python would write the whole traceback to the terminal


@contextmanager
def tolerate(consequence: str, *, notify: Notify) -> Iterator[None]:
    """Report any exception instead of raising it; ``consequence`` says what it means, such as "it was not saved"."""
    try:
        yield
    except Exception as error:  # the promise is that nothing at all ends the run
        log.warning("%s", consequence, exc_info=True)
        notify(f"{consequence}: {one_line(str(error))[:ERROR_CHARS] or type(error).__name__}")
