"""The OpenAPI document, made from the table of routes and the types that decode and encode: one source.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, get_origin

import msgspec

from commonplace.routes import Route
from commonplace.server.errors import Problem
from commonplace.version import VERSION

Document = dict[str, Any]
REF = "#/components/schemas/{name}"
DESCRIPTION = (
    "Memory for AI agents: entries with keys, versions and tiers (intent memory, RFC-0015), and records that are"
    " recalled by rank.  Every error is a Problem."
)
_NAME = re.compile(r"\{(\w+)(?::path)?\}")
_COMMON = (400, 401, 403, 429)  # what every route with a key may answer besides its own


def document(routes: Sequence[Route]) -> Document:
    """Return the OpenAPI document of these routes."""
    schemas, components = _schemas(routes)
    paths: dict[str, Document] = {}
    for route in routes:
        path = _NAME.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Commonplace", "version": VERSION, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"key": []}, {"bearer": []}],
    }


def _schemas(routes: Sequence[Route]) -> tuple[dict[Any, Document], Document]:
    """Return the schema of every type in the routes, and the components that the schemas refer to."""
    bodies = [route.body for route in routes if route.body is not None and route.body_schema is None]
    named = bodies + [route.answers for route in routes if route.answer_schema is None]
    kinds = [Problem, *dict.fromkeys(named)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    return dict(zip(kinds, schemas, strict=True)), components


def _operation(route: Route, schemas: dict[Any, Document]) -> Document:
    schema = route.body_schema or schemas.get(route.body)
    body = {"required": not route.optional_body, "content": {"application/json": {"schema": schema}}}
    return {
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-z0-9]+', '_', route.path.lower()).rstrip('_')}",
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_in_path(route), *_in_query(route), *_in_headers(route)],
        **({"requestBody": body} if route.body is not None else {}),
        "responses": _responses(route, schemas),
        **({"security": []} if route.open else {}),
    }


def _in_path(route: Route) -> list[Document]:
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in _NAME.findall(route.path)]


def _in_query(route: Route) -> list[Document]:
    if route.query is None:
        return []
    _, components = msgspec.json.schema_components([route.query], ref_template=REF)
    schemas = components[route.query.__name__]["properties"]
    found = []
    for part in msgspec.structs.fields(route.query):
        listed = {"style": "form", "explode": False} if get_origin(part.type) is list else {}
        schema = _without_null(schemas[part.encode_name])
        found.append({"name": part.encode_name, "in": "query", "required": part.required, "schema": schema, **listed})
    return found


def _without_null(schema: Document) -> Document:
    """Return the schema of a parameter without null, which a query string cannot express."""
    kept = {name: part for name, part in schema.items() if not (name == "default" and part is None)}
    if "anyOf" in kept:
        ways = [way for way in kept.pop("anyOf") if way != {"type": "null"}]
        return {**kept, **ways[0]} if len(ways) == 1 else {**kept, "anyOf": ways}
    if "enum" in kept:
        kept["enum"] = [word for word in kept["enum"] if word is not None]
    return kept


def _in_headers(route: Route) -> list[Document]:
    if route.match == "no":
        return []
    description = 'The version that you have read: 3, "3" or W/"3".'
    schema = {"type": "string", "pattern": r'^(W/)?"?[0-9]{1,15}"?$'}
    required = route.match == "must"
    return [{"name": "If-Match", "in": "header", "required": required, "schema": schema, "description": description}]


def _responses(route: Route, schemas: dict[Any, Document]) -> Document:
    content: Document = {"application/json": {"schema": route.answer_schema or schemas[route.answers]}}
    if route.stream is not None:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    answers: Document = {"200": {"description": route.summary, "content": content}}
    problem = {"application/json": {"schema": schemas[Problem]}}
    for status in sorted({*route.problems, *(() if route.open else _COMMON)}):
        answers[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    answers["default"] = {"description": "Anything else that went wrong.", "content": problem}
    return answers
