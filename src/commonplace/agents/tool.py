"""A tool as the model loop takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from commonplace.model.values import Value


class Tool(Value):
    """One tool: what a model reads about it, and the function that answers its calls."""

    name: str
    description: str
    parameters: Mapping[str, Any]  #: the JSON schema of its arguments
    function: Callable[..., Any]  #: plain or async; a mistake of the model is an answer, not an exception
