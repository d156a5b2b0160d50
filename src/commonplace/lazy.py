"""Public names of a package that are loaded when they are first used: start-up pays for every import."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs six milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package; ``homes`` lists by module, relative to the package, the names in it."""

    def load(name: str) -> object:
        import sys  # noqa: PLC0415 - see the module
        from importlib import import_module  # noqa: PLC0415 - see the module

        for module, names in homes.items():
            if name in names.split():
                found: object = getattr(import_module(f"{package}.{module}"), name)
                setattr(sys.modules[package], name, found)  # the next use finds it there
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def load(target: str) -> Any:
    """Return what ``module:attribute`` of this package names: a layer calls one above it by name, when it is needed."""
    from importlib import import_module  # noqa: PLC0415 - see the module

    module, _, attribute = target.partition(":")
    return getattr(import_module(f"commonplace.{module}"), attribute)
