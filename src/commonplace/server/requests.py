"""From the bytes of a request to the types of its route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_origin
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.requests import Request

from commonplace.routes import Call, RequestRefused, Route

T = TypeVar("T")
JSON = "application/json"


def parse(route: Route, request: Request, raw: bytes) -> Call:
    """Return a request as its route declares it."""
    return Call(
        path=decode_path(request.path_params), query=read_query(request.scope["query_string"], route.query),
        body=_body(route, request, raw), headers=request.headers,
    )  # fmt: skip


def _body(route: Route, request: Request, raw: bytes) -> Any:
    """Return the body in its type; refuse one where there should be none."""
    if route.body is None or (route.optional_body and not raw):
        if raw.strip() not in (b"", b"{}"):
            raise RequestRefused(400, "INVALID_INPUT", "this route takes no body")
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RequestRefused(415, "NOT_JSON", f"the body must be {JSON}")
    return read_body(raw, route.body)


def decode_path(params: Mapping[str, str]) -> dict[str, str]:
    """Return the names in a path, each decoded separately: an encoded slash is part of a name."""
    try:
        return {name: unquote(part, errors="strict") for name, part in params.items()}
    except UnicodeDecodeError:
        raise RequestRefused(400, "INVALID_INPUT", "the path is not UTF-8") from None


def read_query(query: bytes, kind: type[T] | None) -> T | None:
    """Return the parameters of a request as their type; a list may be repeated or joined by commas."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise RequestRefused(400, "INVALID_INPUT", "the query string cannot be read") from None
    if kind is None:
        if pairs:
            raise RequestRefused(400, "INVALID_INPUT", "this route takes no parameters")
        return None
    return _parameters(pairs, kind)


def _parameters(pairs: list[tuple[str, str]], kind: type[T]) -> T:
    fields = msgspec.structs.fields(cast("type[msgspec.Struct]", kind))
    lists = {field.encode_name for field in fields if get_origin(field.type) is list}
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in lists:
            given.setdefault(name, []).extend(part for part in text.split(",") if part)
        elif name in given:
            raise RequestRefused(400, "INVALID_INPUT", f"the parameter {name!r} is given twice")
        else:
            given[name] = text
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RequestRefused(400, "INVALID_INPUT", f"the parameters are wrong: {error}") from None


def read_body(body: bytes, kind: type[T]) -> T:
    """Return the body as its type."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:  # a wrong type is one of these too
        raise RequestRefused(400, "INVALID_INPUT", f"the body is wrong: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise RequestRefused(400, "INVALID_INPUT", "the body is nested too deeply, or is not UTF-8") from None
