"""A tool as any function-calling API wants it, and what a model sends to it, checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value


class Tool(Value):
    """One tool, and the function behind it."""

    name: str
    description: str
    parameters: Mapping[str, Any]  #: the JSON schema of its arguments
    function: Callable[..., Any]

    def schema(self) -> dict[str, Any]:
        """What a model is told of it."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def arguments(self, sent: str | Mapping[str, Any]) -> Mapping[str, Any]:
        """What a model sent, as JSON or parsed; raises ``InvalidInput`` with a sentence that it can act on."""
        if isinstance(sent, str):
            try:
                sent = json.loads(sent or "{}")
            except ValueError as error:
                raise InvalidInput(f"the arguments of {self.name} are not JSON: {error}") from error
        if not isinstance(sent, Mapping):
            raise InvalidInput(f"the arguments of {self.name} should be an object")
        known = self.parameters["properties"]
        for name in sent:
            if name not in known:
                raise InvalidInput(f"{self.name} takes no {name!r}; it takes {', '.join(known)}")
        return sent
