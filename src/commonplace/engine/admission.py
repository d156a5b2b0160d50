"""The one gate that every write passes: clean, redact, classify, limit, name.

Tools, commands, servers, extraction, import and edited files all use it, so its rules apply everywhere.  It stores
nothing: it turns a draft into an admitted record and reports what was removed.
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from commonplace.model.binding import CONTENT_BYTES_LIMIT, Binding
from commonplace.model.changes import Put, Terms
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.records import CEILING, Draft, Json, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding, mask, redact, redact_under
from commonplace.text.cleaning import clean, slug
from commonplace.text.suggest import unknown_category
from commonplace.text.words import terms

KEY_BYTES = 512
MAX_TAGS = 64
TAG_CHARS = 200
METADATA_BYTES = 16_384
FIELDS_BYTES = 30_000  # all but the content: as frontmatter it may take twice that, of which 64 KiB are read
JSON_DEPTH = 6  # collections inside each other: what the frontmatter of a file can hold
MAX_JSON_DEPTH = 64  # where no file has to hold it
BLOB_CHARS = 1024  # of base64 at least, to be a picture or a file; keys and tokens are shorter


#: Short texts, each behind its name, that came through as they were: fields, agents and tags come with every write.
_HARMLESS: set[tuple[str, str]] = set()
WORD_CHARS = 40
PERSONAL_TAG = "personal:"
PERSONAL_TAGS = frozenset(f"{PERSONAL_TAG}{kind}" for kind in ("card", "iban", "national-id"))
MAX_WORDS = 4096


def _remember_harmless(name: str, text: str) -> None:
    if len(_HARMLESS) >= MAX_WORDS:
        _HARMLESS.clear()
    _HARMLESS.add((name, text))


def check_name(name: str, what: str) -> str:
    """Return a name that a caller chose; raise ``InvalidInput``, which does not repeat it, if it holds a secret."""
    if ("", name) in _HARMLESS:
        return name
    if found := redact(name).findings or redact(name.replace("-", " ")).findings:
        raise InvalidInput(f"the name of {what} holds a secret ({found[0].kind}); choose a name without one")
    if len(name) <= WORD_CHARS:
        _remember_harmless("", name)
    return name


class Admitted(Value):
    """A record that may be stored."""

    record: Record
    terms: Terms  #: what it is found by
    redactions: tuple[Finding, ...] = ()  #: secrets that were removed
    notes: tuple[str, ...] = ()  #: other things that were changed, as sentences

    def put(self, *, expect: int = 0, dedupe: bool = False) -> Put:
        """The change that stores it."""
        return Put(record=self.record, terms=self.terms, expect=expect, dedupe=dedupe)


def transcript_policy(binding: Binding, scope: Scope) -> str | None:
    """Return the policy for the personal data of a session: nothing is tagged there, and no session is refused."""
    return "mask" if binding.personal.get(scope, "allow") != "allow" else None


class Gate:
    """Cleans and redacts texts, and collects what it removed."""

    def __init__(self, key: bytes, *, personal: str | None = None) -> None:
        """``personal`` says what becomes of personal data: one of ``binding.PERSONAL``; None: it is not looked for."""
        self.key = key
        self.findings: list[Finding] = []
        self.personal: set[str] = set()  #: the kinds of personal data that were found and may stay
        self.dropped = 0
        self._policy = personal

    def text(self, text: str, *, what: str, name: str = "") -> str:
        """Clean and redact one text; under a name, what that name says it is counts as well."""
        if (name, text) in _HARMLESS and (self._policy is None or not any(map(str.isdigit, text))):
            return text
        kept, dropped = clean(text, what=what)
        self.dropped += dropped
        found = redact_under(name, kept, key=self.key) if name else redact(kept, key=self.key)
        if found.text == text and len(name) + len(text) <= WORD_CHARS:
            _remember_harmless(name, text)
        self.findings += found.findings
        return found.text if self._policy is None else self._without_personal(found.text, what=what, name=name)

    def _without_personal(self, text: str, *, what: str, name: str) -> str:
        """Return a text as the policy for personal data wants it; raises ``InvalidInput`` if it is to be refused."""
        from commonplace.redact.personal import find_personal  # noqa: PLC0415 - what only writes chunks needs none

        hits = find_personal(text, name=name)
        if hits and self._policy == "block":
            raise InvalidInput(
                f"{what} holds personal data ({hits[0][2]}), which `personal_data: block` in the settings refuses;"
                " leave it out"
            )
        if self._policy != "mask":
            self.personal |= {kind for *_, kind in hits}
            return text
        masked = mask(text, hits, key=self.key)
        self.findings += masked.findings
        return masked.text

    def json(self, value: Json, *, what: str, name: str = "") -> Json:
        """Clean and redact every text in a JSON value; the blanks around it are part of the value."""
        if isinstance(value, str):
            return self._clean_inside_blanks(value, what=what, name=name)
        if isinstance(value, list):
            return [self.json(item, what=what, name=name) for item in value]
        if isinstance(value, dict):
            names = {key: self._clean_inside_blanks(key, what=what) for key in value}
            return {names[key]: self.json(item, what=what, name=names[key]) for key, item in value.items()}
        return value

    def _clean_inside_blanks(self, value: str, *, what: str, name: str = "") -> str:
        core = value.strip()
        if not core or _is_blob(core):  # chance alone writes "pw+" in every other screenshot
            return value
        at = value.find(core)
        return value[:at] + self.text(core, what=what, name=name) + value[at + len(core) :]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed besides secrets, as sentences."""
        return (f"{self.dropped} control characters were removed",) if self.dropped else ()


def _is_blob(text: str) -> bool:
    """Whether a text is base64, as a data URL or bare, of binary data, in which no secret is readable."""
    shape = r"(?:data:[\w.+/-]{1,100};base64,)?([A-Za-z0-9+/]{900,}|[A-Za-z0-9_-]{900,})={0,2}"
    found = re.fullmatch(shape, text) if len(text) >= BLOB_CHARS else None
    if found is None:
        return False
    plain = found[1].replace("-", "+").replace("_", "/")
    data = a2b_base64(plain[: len(plain) // 4 * 4])
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end < len(data)  # a letter that was cut at the end is still text
    return False


def admit(
    draft: Draft, *, binding: Binding, id: str, now: datetime, secret: bytes = b"", parent_trust: Trust = Trust.USER
) -> Admitted:
    """Return a draft as a record; raise ``InvalidInput`` or ``Forbidden`` with the reason if it cannot be stored."""
    category, kind = _category(draft, binding)
    scope = _scope(draft, kind, binding)
    gate = Gate(secret, personal=binding.personal.get(scope, "allow"))
    value = _value(draft, gate, depth=JSON_DEPTH if binding.filed else MAX_JSON_DEPTH)
    record = Record(
        id=id,
        scope=scope,
        kind=kind,
        category=category,
        content=_content(draft, value, gate, binding),
        key=_key(draft.key, gate),
        value=value,
        tags=_tags(draft.tags, gate),
        metadata=_metadata(draft.metadata, gate),
        source=Source(
            channel=binding.channel,
            ref=None if draft.ref is None else gate.text(draft.ref, what="the reference"),
            parents=tuple(dict.fromkeys(draft.parents)),
        ),
        trust=min(CEILING[binding.channel], parent_trust),
        pinned=draft.pinned,
        held=draft.held,
        created_at=now.replace(microsecond=now.microsecond // 1000 * 1000),  # as exact as the id
        updated_at=now,
        occurred_at=draft.occurred_at,
        expires_at=_expiry(draft, category, binding, now),
    )
    record = tag_personal(record, gate.personal)
    if binding.filed:
        check_fits_file(record)
    return Admitted(record=record, terms=search_terms(record), redactions=tuple(gate.findings), notes=gate.notes)


def tag_personal(record: Record, kinds: Collection[str]) -> Record:
    """Return a record with the tags of the personal data that it holds, and without those of what it no longer does."""
    others = frozenset(tag for tag in record.tags if tag not in PERSONAL_TAGS)
    tags = others | {f"{PERSONAL_TAG}{kind}" for kind in kinds}
    return record if tags == record.tags else record.replace(tags=tags)


def check_fits_file(record: Record) -> None:
    """Refuse what no file could hold: a record that cannot be written would stop every sync."""
    _check_bytes(record.content, CONTENT_BYTES_LIMIT, "the content")
    source = record.source
    fields = [record.key, record.value, sorted(record.tags), dict(record.metadata), source.ref, source.parents]
    _check_depth(record.value, "the value")
    for item in record.metadata.values():
        _check_depth(item, "the metadata")
    _check_bytes(json.dumps(fields, ensure_ascii=False), FIELDS_BYTES, "everything but the content")


def search_terms(record: Record) -> Terms:
    """The terms by which a record is found: its words, its other names, its keywords and its key."""
    return tuple(terms("\n".join([record.content, *record.aliases, *record.keywords, record.key or ""])))


def _category(draft: Draft, binding: Binding) -> tuple[str, Kind]:
    check_name(draft.category or "", "a category")  # as it was given: its slug would hide a secret
    if binding.categories is None:
        return slug(draft.category or ""), draft.kind or Kind.SEMANTIC
    if draft.category is None:
        raise InvalidInput(f"a record needs a category: one of {', '.join(binding.categories)}")
    if draft.category not in binding.categories:
        raise InvalidInput(unknown_category(draft.category, binding.categories))
    return draft.category, draft.kind or binding.categories[draft.category]


def _scope(draft: Draft, kind: Kind, binding: Binding) -> Scope:
    scope = draft.scope or binding.writes.get(kind)
    if scope is None:
        raise Forbidden(f"{kind} memory is not enabled here")
    if not binding.may_write(scope):
        raise Forbidden(f"this binding may not write to {scope}")
    return check_scope(scope)


def check_scope(scope: Scope) -> Scope:
    """Return a scope; raise ``InvalidInput`` if one of its names holds a secret."""
    for kind, name in scope.segments:
        check_name(name, f"{'an' if kind == 'agent' else 'a'} {kind}")
    return scope


def _content(draft: Draft, value: Json, gate: Gate, binding: Binding) -> str:
    content = gate.text(draft.content, what="the content", name=secret_name(draft.key, draft.content))
    if not content and value is not None:
        content = render_value(value)
    if not content:
        raise InvalidInput("the content is blank; there is nothing to remember")
    return _check_bytes(content, binding.content_bytes, "the content")


def render_value(value: Json) -> str:
    """A value as the content of a record that says nothing else."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _value(draft: Draft, gate: Gate, *, depth: int) -> Json:
    if draft.value is None:
        return None
    _check_depth(draft.value, "the value", most=depth)
    try:
        plain: Json = json.loads(json.dumps(draft.value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the value is not JSON: {error}") from error
    return gate.json(plain, what="the value", name=secret_name(draft.key, plain))


def secret_name(key: str | None, text: Json) -> str:
    """Return the key as the name of a single word, which may be a secret; a sentence has none."""
    return key if key and isinstance(text, str) and len(text.split()) == 1 else ""


def _key(key: str | None, gate: Gate) -> str | None:
    if key is None:
        return None
    kept = gate.text(key, what="the key")
    if not kept or "\n" in kept:
        raise InvalidInput(f"{key!r} cannot be a key: it is blank or has several lines")
    return _check_bytes(kept, KEY_BYTES, "the key")


def _tags(tags: frozenset[str], gate: Gate) -> frozenset[str]:
    kept = frozenset(tag for tag in (gate.text(tag, what="a tag") for tag in sorted(tags)) if tag)
    if len(kept) > MAX_TAGS or any(len(tag) > TAG_CHARS for tag in kept):
        raise InvalidInput(f"a record takes at most {MAX_TAGS} tags of {TAG_CHARS} characters each")
    return kept


def _metadata(metadata: Mapping[str, Json], gate: Gate) -> Mapping[str, Json]:
    plain = gate.json(_to_json(metadata), what="the metadata")
    if not isinstance(plain, dict):
        raise InvalidInput("the metadata is not a mapping")
    for name in ("aliases", "keywords"):
        words = plain.get(name, [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InvalidInput(f"{name} must be a list of texts, not {words!r}")
        if name in plain:
            plain[name] = [word for word in dict.fromkeys(str(word).strip() for word in words) if word]
    _check_bytes(json.dumps(plain, ensure_ascii=False), METADATA_BYTES, "the metadata")
    return plain


def _to_json(metadata: Mapping[str, Any]) -> dict[str, Json]:
    for item in metadata.values():
        _check_depth(item, "the metadata")
    try:
        plain: dict[str, Json] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the metadata is not JSON: {error}") from error
    return plain


def _expiry(draft: Draft, category: str, binding: Binding, now: datetime) -> datetime | None:
    try:
        expires = now + draft.ttl if draft.ttl is not None else draft.expires_at
    except OverflowError:
        raise InvalidInput(f"a ttl of {draft.ttl} ends after the last day of the calendar") from None
    if expires is None:
        return None
    if binding.temporary is not None and category not in binding.temporary:
        lasting = ", ".join(sorted(binding.temporary))
        raise InvalidInput(f"{category} are permanent; only {lasting} can expire")
    if expires.tzinfo is None:
        raise InvalidInput(f"the expiry {expires} has no time zone")
    return expires


def _check_depth(value: Any, what: str, *, most: int = JSON_DEPTH, depth: int = 0) -> None:
    if not isinstance(value, Mapping | list | tuple):
        return
    if depth == most:
        raise InvalidInput(f"{what} is nested deeper than {most} levels")
    for item in value.values() if isinstance(value, Mapping) else value:
        _check_depth(item, what, most=most, depth=depth + 1)


def _check_bytes(text: str, most: int, what: str) -> str:
    size = len(text.encode())
    if size > most:
        raise InvalidInput(f"{what} has {size} bytes; the limit is {most}")
    return text
