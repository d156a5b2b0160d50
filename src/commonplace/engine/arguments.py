"""What people pass to the verbs of a memory: names for scopes, kinds and states, texts for dates and durations.

Each function returns the value that the engine works with, or raises ``InvalidInput`` naming the argument and the way
out.  A single text where several are expected is refused: it would be read letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.queries import Filter, State
from commonplace.model.records import Draft, Json, Kind, Trust
from commonplace.model.scopes import Scope

if TYPE_CHECKING:
    from commonplace.model.binding import Binding

ScopeName: TypeAlias = Scope | str  #: or its text, or `project` or `assistant`, as in the command
KindName: TypeAlias = Kind | str
TrustName: TypeAlias = Trust | str
StateName: TypeAlias = State | str
Moment: TypeAlias = datetime | date | str  #: or a text such as "2026-12-01"
Duration: TypeAlias = timedelta | int | float | str  #: or seconds, or a text such as "7d"
NewRecord: TypeAlias = str | Mapping[str, Any] | Draft  #: its text, or the arguments of ``remember`` by name

E = TypeVar("E", bound=Enum)
T = TypeVar("T")
_EDITABLE = (
    "content", "tags", "metadata", "value", "occurred_at", "expires_at", "pinned", "held", "category",
)  # fmt: skip
_PLACES = {"assistant": "user", "own": "user"}  # what the command calls a scope that is of another kind


def to_text(value: object, what: str) -> str:
    """Return a text; anything else is refused."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {_sort(value)}")
    return value


def to_texts(values: Iterable[str], what: str) -> frozenset[str]:
    """Return several texts."""
    return frozenset(to_many(values, what, lambda one: to_text(one, f"each of {what}")))


def to_many(values: Iterable[Any], what: str, convert: Callable[[Any], T]) -> list[T]:
    """Return several values, each converted; a single text or number is refused."""
    if isinstance(values, str | bytes):
        raise InvalidInput(f"{what} takes a list; write {what}=[{values!r}] instead of {what}={values!r}")
    try:
        given = list(values)
    except TypeError:
        raise InvalidInput(f"{what} takes a list, not {_sort(values)}") from None
    return [convert(one) for one in given]


def to_member(kind: type[E], value: object, what: str) -> E:
    """Return a member of an enumeration, also by its name."""
    if isinstance(value, kind):
        return value
    by_name = {one.name.lower() if issubclass(kind, IntEnum) else str(one.value): one for one in kind}
    if isinstance(value, str) and value.lower() in by_name:
        return by_name[value.lower()]
    raise InvalidInput(f"{value!r} is no {what}; use one of {', '.join(by_name)}")


def to_kind(value: KindName) -> Kind:
    """Return a kind of memory, also by its name."""
    return to_member(Kind, value, "kind")


def to_scope(value: ScopeName, binding: Binding) -> Scope:
    """Return a scope: itself, its text, or what the command calls it where the binding has one such."""
    if isinstance(value, Scope):
        return value
    text = to_text(value, "scope")
    if ":" in text:
        return Scope.parse(text)
    own = {*binding.reads, *binding.writes.values(), *binding.also_writes}
    fitting = sorted((one for one in own if one.kind == _PLACES.get(text, text)), key=str)
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(sorted(map(str, own)))
    raise InvalidInput(f"{text!r} is {'several scopes' if fitting else 'no scope'} here; use one of {known}")


def to_scopes(values: Iterable[ScopeName], binding: Binding) -> frozenset[Scope]:
    """Return several scopes."""
    return frozenset(to_many(values, "scopes", lambda one: to_scope(one, binding)))


def to_moment(value: Moment | None, what: str) -> datetime | None:
    """Return a moment; a date is its first second, and a text without a zone is in UTC."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    from commonplace.text.moments import parse_moment  # noqa: PLC0415 - few moments come as text

    try:
        return parse_moment(to_text(value, what))
    except InvalidInput:
        raise InvalidInput(f"{what} is {value!r}, which is no date; write 2026-12-01 or 2026-12-01T09:30Z") from None


def to_duration(value: Duration | None, what: str = "ttl") -> timedelta | None:
    """Return a duration; a number counts seconds."""
    if value is None or isinstance(value, timedelta):
        return value
    from commonplace.text.moments import parse_duration  # noqa: PLC0415 - few durations come as text

    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return timedelta(seconds=value)
        parsed = parse_duration(value) if isinstance(value, str) else None
    except (OverflowError, ValueError, InvalidInput):
        parsed = None
    if parsed is None:
        raise InvalidInput(f"{what} is {value!r}, which is no duration; write 12h, 7d, 2w, or a number of seconds")
    return parsed


def to_metadata_filter(wanted: Mapping[str, Json]) -> tuple[tuple[str, str | float | bool], ...]:
    """Return the names and values that the metadata must have."""
    if not isinstance(wanted, Mapping):
        raise InvalidInput(f"metadata takes names and values, such as {{'lang': 'en'}}, not {_sort(wanted)}")
    found: list[tuple[str, str | float | bool]] = []
    for name, value in wanted.items():
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput(f"metadata is searched for texts, numbers and true or false; {name!r} is {_sort(value)}")
        found.append((to_text(name, "a name in metadata"), value))
    return tuple(found)


def to_draft(fields: Mapping[str, Any], binding: Binding) -> Draft:
    """Return the draft that the arguments of ``remember`` describe."""
    given = {name: value for name, value in fields.items() if value is not None}
    converted: dict[str, Any] = {
        name: convert(given[name]) for name, convert in _CONVERTERS.items() if given.get(name) is not None
    }
    if "scope" in given:
        converted["scope"] = to_scope(given["scope"], binding)
    return Draft(**{**given, **converted})


def to_changes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that ``update`` changes, converted; None clears a date."""
    if unknown := [name for name in fields if name not in _EDITABLE]:
        from commonplace.text.suggest import suggestion  # noqa: PLC0415 - only for what is wrong

        raise InvalidInput(f"{unknown[0]!r} cannot be changed{suggestion(unknown[0], _EDITABLE)}")
    return {
        name: _CONVERTERS[name](value) if name in _CONVERTERS and value is not None else value
        for name, value in fields.items()
    }


def to_filter(
    binding: Binding,
    now: datetime,
    *,
    scopes: Iterable[ScopeName] | None = None,
    kinds: Iterable[KindName] | None = None,
    categories: Iterable[str] | None = None,
    tags: Iterable[str] = (),
    trusts: Iterable[TrustName] | None = None,
    states: Iterable[StateName] = (State.LIVE,),
    sources: Iterable[str] | None = None,
    metadata: Mapping[str, Json] | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    as_of: Moment | None = None,
) -> Filter:
    """Return the filter that a reader asks for; raises ``Forbidden`` for a scope that the binding may not read."""
    own = frozenset(binding.reads)
    asked = own if scopes is None else to_scopes(scopes, binding)
    if foreign := asked - own:
        raise Forbidden(f"this binding may not read {', '.join(sorted(map(str, foreign)))}")
    return Filter(
        scopes=asked,
        at=now,
        states=frozenset(to_many(states, "states", lambda one: to_member(State, one, "state"))),
        as_of=to_moment(as_of, "as_of"),
        tags=to_texts(tags, "tags"),
        trusts=_optional(trusts, "trusts", lambda one: to_member(Trust, one, "trust")),
        kinds=_optional(kinds, "kinds", to_kind),
        categories=None if categories is None else _known_categories(to_texts(categories, "categories"), binding),
        sources=_optional(sources, "sources", _text_as("each of sources")),
        metadata=() if metadata is None else to_metadata_filter(metadata),
        since=to_moment(since, "since"),
        until=to_moment(until, "until"),
    )


def _optional(values: Iterable[Any] | None, what: str, convert: Callable[[Any], T]) -> frozenset[T] | None:
    return None if values is None else frozenset(to_many(values, what, convert))


def _known_categories(asked: frozenset[str], binding: Binding) -> frozenset[str]:
    if binding.categories is not None and (unknown := asked - frozenset(binding.categories)):
        from commonplace.text.suggest import unknown_category  # noqa: PLC0415 - no recall is mistaken

        raise InvalidInput(unknown_category(min(unknown), binding.categories))
    return asked


def to_new_draft(item: NewRecord, binding: Binding) -> Draft:
    """Return the draft of one record among many: a text, or the arguments of ``remember``, or a draft."""
    if isinstance(item, Draft):
        return item
    fields = {"content": item} if isinstance(item, str) else item
    if not isinstance(fields, Mapping):
        raise InvalidInput(f"a record is a text or a mapping, not {_sort(fields)}")
    named = {("content" if name == "text" else name): value for name, value in fields.items()}
    if len(named) < len(fields):
        raise InvalidInput("'text' and 'content' are two names of one thing; give one of them")
    if unknown := [name for name in named if name not in Draft.fields]:
        from commonplace.text.suggest import suggestion  # noqa: PLC0415 - only for what is wrong

        meant = suggestion(str(unknown[0]), ("text", *Draft.fields)) or "; put what is your own into metadata"
        raise InvalidInput(f"{unknown[0]!r} is not a field of a record{meant}")
    return to_draft(named, binding)


def _pairs(value: Any) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {_sort(value)}")
    return value


def _moment_as(what: str) -> Callable[[Any], datetime | None]:
    return lambda value: to_moment(value, what)


def _text_as(what: str) -> Callable[[Any], str]:
    return lambda value: to_text(value, what)


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "content": _text_as("content"), "category": _text_as("category"), "key": _text_as("key"), "ref": _text_as("ref"),
    "kind": to_kind, "tags": lambda value: to_texts(value, "tags"), "metadata": _pairs,
    "parents": lambda value: tuple(to_many(value, "parents", _text_as("each of parents"))),
    "occurred_at": _moment_as("occurred_at"), "expires_at": _moment_as("expires_at"), "ttl": to_duration,
}  # fmt: skip


def _sort(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} ({str(value)[:40]!r})"
