"""The one place that forgives everything: a session's save, an episode's capture and a consolidation never end a run.

What went wrong is logged whole under ``commonplace`` and told to the user in one sentence.  Ctrl-C is no failure and
goes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commonplace.text.cleaning import one_line

Tell = Callable[[str], None]

SHOWN = 300  # characters of what went wrong
log = logging.getLogger("commonplace")
log.addHandler(logging.NullHandler())  # else Python would write the whole traceback to the terminal


@contextmanager
def quietly(consequence: str, *, tell: Tell) -> Iterator[None]:
    """Do something that may fail; ``consequence`` says what that means to the user, such as "was not saved"."""
    try:
        yield
    except Exception as error:  # the promise is that nothing at all ends the run
        log.warning("%s", consequence, exc_info=True)
        tell(f"{consequence}: {one_line(str(error))[:SHOWN] or type(error).__name__}")
