"""The house keeps its shape: who may import whom, what may be raised, what may be caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "commonplace"
MODULES = sorted(SOURCE.rglob("*.py"))

CORE = {
    "model",
    "text",
    "redact",
    "engine",
    "stores",
    "files",
    "providers",
    "config",
    "app",
    "verbs",
    "wire",
    "version",
}
ROOMS = {"records", "learning", "roles", "ci", "intents"}
FACES = {"cli", "mcp", "server"}
#: What each folder or top-level module may import besides itself and the standard library.
ALLOWED = {
    "version": set(),
    "model": set(),
    "text": {"model"},
    "redact": {"model"},
    "wire": {"model"},
    "verbs": {"model", "wire"},
    "engine": {"model", "text", "redact", "wire"},
    "stores": {"model", "version"},
    "providers": {"model"},
    "config": {"model", "text"},
    "files": {"model", "text", "redact", "engine"},
    "app": CORE | {"intents", "learning"},
    "agents": CORE,
    "__init__": CORE | {"intents"},  # each name is loaded when it is used
} | {
    name: CORE | ROOMS | FACES | {"agents", "hosts", "adapters"}
    for name in ROOMS | FACES | {"hosts", "adapters", "evaluation"}
}
#: Libraries and the only folders that may know them.
LIBRARIES = {
    "apsw": {"stores"},
    "psycopg": {"stores"},
    "psycopg_pool": {"stores"},
    "lancedb": {"stores"},
    "pyarrow": {"stores"},
    "starlette": {"server", "mcp", "intents"},
    "uvicorn": {"server", "mcp"},
    "msgspec": {"server", "records", "intents"},
    "mcp": {"mcp"},
    "tomlkit": {"hosts"},
    "cronsim": {"roles"},
    "watchfiles": {"roles"},
    "langgraph": {"adapters"},
    "langchain_core": {"adapters"},
    "agents": {"adapters"},
    "anthropic": {"adapters"},
    "yaml": {"text"},
    "click": {"cli", "mcp", "server", "evaluation", "hosts", *ROOMS},
    "pydantic_ai": {"providers", "agents", "adapters", "roles", "ci", "intents"},
    "onnxruntime": {"providers"},
    "numpy": {"providers"},
}


def layer(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "commonplace":
            yield from ((f"commonplace.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield node.module or "", node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_its_own_layer_or_one_below(path):
    """No import climbs, goes sideways between faces, or names a library outside of its layer."""
    own = layer(path)
    for name, line in imports(path):
        top, *rest = name.split(".")
        if top == "commonplace" and rest and rest[0] != own:
            assert rest[0] in ALLOWED[own], f"{path}:{line} imports {name}"
        assert own in LIBRARIES.get(top, {own}), f"{path}:{line} imports {name}"


def test_every_layer_is_known():
    """A new folder or top-level module has to say what it may import."""
    assert {layer(path) for path in MODULES} <= ALLOWED.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_forgiven_wholesale(path):
    """`except Exception` has one address, agents/quietly.py; anywhere else it has to raise again."""
    if path == SOURCE / "agents" / "quietly.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            names = [getattr(name, "id", "") for name in ast.walk(node.type)] if node.type else ["everything"]
            reraises = isinstance(node.body[-1], ast.Raise)
            assert reraises or not {"Exception", "BaseException", "everything"} & set(names), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_opens_with_what_it_is(path):
    """Every module has a docstring, and none is called after nothing in particular."""
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert path.stem not in {"utils", "helpers", "base", "common", "misc"}
