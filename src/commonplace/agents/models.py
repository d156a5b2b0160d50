"""The model that an agent runs on, from what a configuration calls it.  Keys and addresses are the providers' business.

PydanticAI takes a second to import, so it is imported when an agent is about to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.domain.errors import ProviderError
from commonplace.domain.values import Value
from commonplace.providers.models import RemoteModel, model_of
from commonplace.providers.services import SERVICES

if TYPE_CHECKING:
    from pydantic_ai.models import Model

HINT = "running agents needs pydantic-ai: pip install 'commonplace[agent]'"
TEST = "test"  # PydanticAI's own: asks nobody, calls every tool once


class Spoken(Value):
    """A model ready for an agent, and who can say what went wrong with it."""

    model: Model
    remote: RemoteModel | None = None  #: None: it is none of ours, and speaks for itself

    def failure(self, error: Exception) -> ProviderError:
        """What went wrong, as one sentence."""
        if self.remote is not None:
            return self.remote.failure(error)
        return ProviderError(f"the model {self.model.model_name!r} failed: {' '.join(str(error).split())}")


def spoken(
    name: str | Model, *, base_url: str | None = None, api_key_env: str | None = None, env: Mapping[str, str]
) -> Spoken:
    """The model of that name: ``openai:gpt-5``, ``anthropic/claude-opus-4-7``, or one of PydanticAI's as it is."""
    try:
        import pydantic_ai  # noqa: PLC0415 - see the module
        from pydantic_ai.models.test import TestModel  # noqa: PLC0415
    except ImportError as error:
        raise ProviderError(HINT) from error
    pydantic_ai.BANNER_ENABLED = False  # it would draw itself into the first answer at a terminal
    if not isinstance(name, str):
        return Spoken(model=name)
    if name.strip() == TEST:
        return Spoken(model=TestModel())
    remote = model_of(_spec(name.strip(), custom=bool(base_url)), base_url=base_url, api_key_env=api_key_env, env=env)
    return Spoken(model=remote.spoken(), remote=remote)


def _spec(name: str, *, custom: bool) -> str:
    """Pipelines write ``provider/model``; at a custom address a slash belongs to the model's own name."""
    provider, slash, model = name.partition("/")
    return f"{provider}:{model}" if slash and provider in SERVICES and not custom else name
