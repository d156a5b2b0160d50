"""How long to wait before a provider is asked once more.  Pure: no clock, no service, no sleep."""

from __future__ import annotations

from commonplace.model.values import Value

BUSY = frozenset({429, 500, 502, 503, 504, 529})  #: statuses that may be gone in a moment


class Patience(Value):
    """When to ask again, and when to give up."""

    tries: int = 4  #: requests in all
    first_s: float = 0.5  #: before the second; doubled before each further one
    longest_s: float = 20.0  #: a provider that asks for more is not waited for


def pause(patience: Patience, *, tried: int, told: float | None, left: float, chance: float) -> float | None:
    """The seconds to wait after ``tried`` failures; None to give up.

    What the provider told in Retry-After is kept to, with a little more, so that many who were told the same do not
    come back at once.  ``chance`` is from 0 to 1, ``left`` is the time that the whole request still has.
    """
    if tried >= patience.tries:
        return None
    longest = patience.longest_s
    if told is None:
        wait = min(patience.first_s * 2 ** (tried - 1), longest) * (0.5 + chance / 2)
    elif told > longest:
        return None
    else:
        wait = told + chance * patience.first_s
    return wait if wait < left else None
