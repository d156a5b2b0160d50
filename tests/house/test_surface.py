"""What the world sees: names, errors, twins."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import commonplace
from commonplace.engine.asynchronous import AsyncMemory
from commonplace.engine.memory import Memory
from commonplace.model import errors
from stands import rows

ROOT = Path(__file__).parents[2]
SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.CommonplaceError) and value is not errors.CommonplaceError
]
UNRAISED = {"ProviderError"}  # raised by embedders, which come from outside of this package


def test_every_public_name_is_there():
    """`commonplace.__all__` is what can be imported, no less."""
    assert [name for name in commonplace.__all__ if not hasattr(commonplace, name)] == []


def test_a_name_that_is_not_public_is_an_attribute_error():
    """A typing mistake is told as such."""
    with pytest.raises(AttributeError, match="no attribute 'rember'"):
        commonplace.rember  # noqa: B018 - the access is the test


@rows("error", ERRORS)
def test_every_error_is_public_drawn_in_the_tree_and_raised(error):
    """No error is declared that nobody raises, and none is hidden."""
    assert error.__name__ in commonplace.__all__
    assert error.__name__ in (errors.__doc__ or "")
    raised = any(f"{error.__name__}(" in text.replace(f"class {error.__name__}(", "") for text in SOURCES)
    assert raised or error.__name__ in UNRAISED


def verbs(kind):
    return {name: member for name, member in vars(kind).items() if not name.startswith("_") and callable(member)}


def test_the_asynchronous_memory_has_every_verb():
    """Each verb of Memory can be awaited, with the same arguments."""
    assert verbs(AsyncMemory).keys() == verbs(Memory).keys()
    for name, verb in verbs(AsyncMemory).items():
        assert inspect.signature(verb) == inspect.signature(verbs(Memory)[name])


@rows("path", sorted((ROOT / "tests").rglob("test_*.py")))
def test_every_test_is_a_sentence(path):
    """A test says in one sentence what holds."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            assert (ast.get_docstring(node) or "").strip().endswith("."), f"{path}:{node.lineno} {node.name}"
