"""Several users in one store: each memory sees the records of one of them."""

from __future__ import annotations

from commonplace.model.binding import Binding
from commonplace.model.errors import Forbidden
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope


def user_binding(user: str) -> Binding:
    """Return the binding of one user's own memory: every kind is written there, any category, and nothing else read."""
    scope = Scope.of(("user", user))
    return Binding(
        channel=Channel.USER, writes=dict.fromkeys(Kind, scope), reads=(scope,), transcripts=frozenset({scope})
    )


def binding_of_user(binding: Binding, user: str) -> Binding:
    """Return the same binding for another user.  Raises ``Forbidden`` if it is not that of one user's own memory."""
    scopes = {*binding.reads, *binding.writes.values(), *binding.also_writes}
    if len(scopes) != 1 or next(iter(scopes)).kind != "user" or binding.categories is not None:
        raise Forbidden("this memory is not one user's own; for_user needs a store of your own: commonplace.open(path)")
    other = user_binding(user)
    return binding.replace(writes=other.writes, reads=other.reads, transcripts=other.transcripts)
