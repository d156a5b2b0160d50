"""Open intent memory: a file, the address of a database, or the store of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping

from commonplace.app import (
    LOCAL,
    configured_embedder,
    find_embedder,
    machine_name,
    open_store,
    redaction_key_for,
    redaction_key_in,
)
from commonplace.config.paths import CONFIG
from commonplace.config.project import context
from commonplace.engine.memory import now_utc
from commonplace.intents.intents import EPISODIC_CAPACITY, Intents
from commonplace.model.events import EVENT_DAYS
from commonplace.model.ports import Clock, Embedder, Store


def open_intents(
    place: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    embedder: Embedder | str | None = LOCAL,
    capacity: int | None = None,
    event_days: int | None = None,
) -> Intents:
    """Open intent memory: a file of your own, the address of a database, or without either the store of the command.

    ``capacity`` is how many episodic entries an agent may have in one namespace, ``event_days`` how many days events
    are kept (0: forever).
    """
    known, most = os.environ if env is None else env, EPISODIC_CAPACITY if capacity is None else capacity
    days = EVENT_DAYS if event_days is None else event_days
    if place is not None:
        chosen = find_embedder(embedder, known)
        store: Store = open_store(place, env=known)
        return Intents(
            store, clock=clock, embedder=chosen, secret=redaction_key_for(place), capacity=most, event_days=days
        )
    where = context(os.getcwd(), known)
    if embedder == LOCAL:
        chosen = configured_embedder(where.user_settings, known, file=os.path.join(where.home, CONFIG))
    else:
        chosen = find_embedder(embedder, known)
    store = open_store(where.database, env=known, machine=lambda: machine_name(where.home))
    return Intents(
        store, clock=clock, embedder=chosen, secret=redaction_key_in(where.home), capacity=most, event_days=days
    )
