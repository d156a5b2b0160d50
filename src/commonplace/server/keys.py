"""The keys of a server: who may call it, and for whom.  They are in the store, so every process on it knows them.

The store holds only the SHA-256 of a key.  A slow hash such as scrypt protects passwords that can be guessed; a key is
256 random bits, so a slow hash would only make every request slower and let a flood of wrong keys burn CPU.  The key
names its own row (``cp_<id>_<secret>``): it is found by one index lookup and then compared in constant time, and a
revoked one is invalid with the next request, in every process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from commonplace.engine.admission import admit, check_name, check_scope
from commonplace.engine.memory import Memory, now_utc
from commonplace.engine.recall import count_use
from commonplace.engine.rendering import iso
from commonplace.model.binding import Binding
from commonplace.model.changes import Put
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.ids import ALPHABET, is_prefix, new_id
from commonplace.model.ports import Clock, Store
from commonplace.model.queries import Filter, Order
from commonplace.model.records import Channel, Draft, Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

PREFIX = "cp_"  # lets scanners find a key that was committed by mistake
SCOPE = Scope.of(("server", "keys"))  # no other binding reads it
ID_CHARS = 10
SECRET_BYTES = 32
NAME_CHARS = 100
KEYS_MAX = 10_000  # in one list
USE_SECONDS = 60  # between two writes of a key's last use


class ServerKey(Value):
    """A key as it may be shown: everything but the secret."""

    id: str
    name: str  #: what the operator calls it
    agent: str | None  #: the one agent that it acts for; None: an operator's, for any
    created_at: datetime
    expires_at: datetime | None = None  #: from when on it is refused; None: never
    read_only: bool = False
    last_used_at: datetime | None = None  #: as far as it was written, which is once a minute

    def is_expired(self, now: datetime) -> bool:
        """Tell whether the key has expired."""
        return self.expires_at is not None and self.expires_at <= now


class Keys:
    """The keys of one store."""

    def __init__(self, store: Store, *, clock: Clock = now_utc) -> None:
        binding = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: SCOPE}, reads=(SCOPE,), content_bytes=4096)
        self.store = store
        self._clock = clock
        self._memory = Memory(store, binding, clock=clock)
        self._uses: dict[str, datetime] = {}  # by key id: when its use was last written, by this process

    def create(
        self, name: str, *, agent: str | None = None, expires_at: datetime | None = None, read_only: bool = False
    ) -> tuple[ServerKey, str]:
        """Make a key; its secret is returned here and never again."""
        if not name.strip() or len(name) > NAME_CHARS or not name.isprintable():
            raise InvalidInput(f"{name[:NAME_CHARS]!r} cannot name a key: use 1 to {NAME_CHARS} printable characters")
        check_name(name, "a key")
        if agent is not None:
            check_scope(Scope.of(("agent", agent)))  # raises for an invalid name
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise InvalidInput(f"a key cannot expire in the past; {iso(expires_at)} is over")
        row = "".join(secrets.choice(ALPHABET) for _ in range(ID_CHARS))
        token = f"{PREFIX}{row}_{secrets.token_urlsafe(SECRET_BYTES)}"
        value: Json = {
            "name": name, "agent": agent, "digest": digest(token), "expires_at": iso(expires_at), "read_only": read_only
        }  # fmt: skip
        draft = Draft(content="A key of the server", category="keys", key=row, value=value)
        record = admit(draft, binding=self._memory.binding, id=new_id(now), now=now).record
        self.store.apply([Put(record=record, terms=())])  # not searchable
        return _key(record), token

    def list(self) -> Sequence[ServerKey]:
        """Return every key, oldest first."""
        return [_key(record) for record in self._memory.list(order=Order.OLDEST, limit=KEYS_MAX)]

    def revoke(self, id: str) -> ServerKey:
        """Revoke a key; it is invalid from the next request on."""
        record = self._row(id)
        if record is None:
            raise NotFound(f"there is no key {id!r}")
        self._memory.forget(record.id)
        return _key(record)

    def holder(self, token: str) -> ServerKey | None:
        """Return the key with this secret, expired or not; None if there is none."""
        record = self._row(token.removeprefix(PREFIX).partition("_")[0])
        if record is None or not isinstance(record.value, dict):
            return None
        known = str(record.value["digest"])
        return _key(record) if hmac.compare_digest(known, digest(token)) else None

    def is_expired(self, key: ServerKey) -> bool:
        """Tell whether the key has expired."""
        return key.is_expired(self._clock())

    def is_use_due(self, key: ServerKey) -> bool:
        """Tell whether a use of the key is to be written now; it is asked once for each use."""
        now = self._clock()
        last = max(filter(None, (self._uses.get(key.id), key.last_used_at)), default=None)
        if last is not None and now - last < timedelta(seconds=USE_SECONDS):
            return False
        self._uses[key.id] = now
        return True

    def write_use(self, key: ServerKey) -> None:
        """Write that a key was used now; a store that cannot be written keeps the earlier date."""
        record = self._row(key.id)
        if record is not None:
            count_use(self.store, (record.id,), self._clock())

    def exist(self) -> bool:
        """Tell whether there is any key."""
        return bool(self._memory.list(limit=1))

    def _row(self, id: str) -> Record | None:
        if not is_prefix(id):  # no key has such an id
            return None
        where = Filter(scopes=frozenset({SCOPE}), at=self._clock(), keys=frozenset({id}))
        return next(iter(self.store.find(where, order=Order.NEWEST, limit=1)), None)


def digest(token: str) -> str:
    """Return the part of a key that is stored."""
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).hexdigest()


def _key(record: Record) -> ServerKey:
    value = record.value if isinstance(record.value, dict) else {}
    # A key of an earlier version has neither date nor right: it never expires, and may write.
    agent, expires = value.get("agent"), value.get("expires_at")
    return ServerKey(
        id=record.key or "", name=str(value.get("name")), agent=None if agent is None else str(agent),
        created_at=record.created_at, expires_at=None if expires is None else datetime.fromisoformat(str(expires)),
        read_only=value.get("read_only") is True, last_used_at=record.usage.last_recalled_at,
    )  # fmt: skip
