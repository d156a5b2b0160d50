"""The OpenAPI document is true: it names every route, and whatever is made from it gets an answer that it foretells."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from commonplace.server.openapi import document
from commonplace.server.rooms import ROUTES
from commonplace.server.settings import VARIABLES
from stands import rows

PAGE = (Path(__file__).parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
EXAMPLES = 25  # of each operation: enough for every field to be left out, filled and overfilled
OPERATIONS = sorted((route.method, route.path.replace(":path", "")) for route in ROUTES)
WRONGABLE = {
    (route.method, route.path.replace(":path", ""))
    for route in ROUTES
    if route.body or route.query or "{" in route.path
}
CASES = [("positive", *one) for one in OPERATIONS] + [("negative", *one) for one in OPERATIONS if one in WRONGABLE]


def test_every_route_is_in_the_document_once(served):
    """And the one that is served is the one that is made from the table."""
    told = served.http("nobody").get("/openapi.json").json()
    named = sorted((method.upper(), path) for path, methods in told["paths"].items() for method in methods)
    ids = [operation["operationId"] for methods in told["paths"].values() for operation in methods.values()]

    assert named == OPERATIONS
    assert len(ids) == len(set(ids))
    assert told == document(ROUTES)


def test_every_reference_leads_somewhere():
    """No schema is named that is not there."""
    told = document(ROUTES)

    def references(part):
        if isinstance(part, dict):
            yield from [part["$ref"]] if "$ref" in part else []
            for inner in part.values():
                yield from references(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from references(inner)

    known = {f"#/components/schemas/{name}" for name in told["components"]["schemas"]}
    assert set(references(told)) == known


def test_a_route_without_a_key_says_so():
    """Health alone needs none."""
    told = document(ROUTES)
    free = [path for path, methods in told["paths"].items() for one in methods.values() if one.get("security") == []]
    assert free == ["/healthz", "/readyz"]


@rows("method, path", OPERATIONS)
def test_every_route_is_on_the_page(method, path):
    """docs/server.md tells of all of them."""
    assert f"`{method} {path}`" in PAGE


@rows("variable", VARIABLES.values())
def test_every_variable_is_on_the_page(variable):
    """And of everything that can be set."""
    assert f"`{variable}`" in PAGE


@pytest.fixture(scope="module")
def schema(served):
    """The document as schemathesis reads it."""
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


@pytest.mark.slow
@rows("mode, method, path", CASES)
def test_nothing_that_the_document_allows_or_forbids_breaks_the_server(served, schema, method, path, mode):
    """No 5xx, and every answer has a status, a type and a shape that the document names."""
    operation = schema[path][method]
    cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
    checks = schemathesis.checks
    held = [
        checks.not_a_server_error, schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
    ]  # fmt: skip

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases)
    def run(case):
        case.headers.pop("Authorization", None)  # two keys that differ are none
        response = case.call(base_url=served.url, headers={"X-API-Key": served.operator}, timeout=30)
        case.validate_response(response, checks=held)

    run()


HOSTILE = st.one_of(
    st.text(max_size=30), st.sampled_from(["", "*", "a*", "%", "..", "\x00", "a\nb", "x" * 600, "🦉", "'", '"', "a/b"])
)


@pytest.mark.slow
@settings(max_examples=150, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(agent=HOSTILE, namespace=HOSTILE, key=HOSTILE, tag=HOSTILE)
def test_hostile_names_are_kept_or_refused(http, agent, namespace, key, tag):
    """What is kept is read back by the same names; whatever else is refused with 400."""
    body = {"agent_id": agent, "namespace": namespace, "key": key, "tags": [tag], "value": 1, "tier": "episodic"}
    try:
        kept = http.post("/v1/intents/store", json=body)
    except UnicodeEncodeError:  # half a character does not leave this process
        return
    assert kept.status_code in (200, 400), kept.text
    if kept.status_code == 200:
        entry = kept.json()
        named = {"agent_id": agent, "namespace": namespace, "key": key}
        assert http.post("/v1/intents/get", json=named).json()["id"] == entry["id"]
