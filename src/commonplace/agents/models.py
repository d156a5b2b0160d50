"""The model that an agent runs on, from what a configuration calls it.  Keys and addresses are the providers' business.

PydanticAI takes a second to import, so it is imported when an agent is about to run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from commonplace.model.errors import ProviderError
from commonplace.model.values import Value
from commonplace.providers.models import RemoteModel, model_of
from commonplace.providers.services import SERVICES

if TYPE_CHECKING:
    from pydantic_ai import Tool as OfferedTool
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
    return Spoken(model=_understood(remote.spoken()), remote=remote)


def offered(
    call: Callable[..., Any], name: str, description: str, parameters: Mapping[str, Any], *, sequential: bool = True
) -> OfferedTool[None]:
    """A tool as PydanticAI wants it, one call after the other unless said; what is no object is told to the model.

    Its own check of tools that come with a schema is none, and it would break down on a list or a null.
    """
    from pydantic_ai import Tool as Offered  # noqa: PLC0415 - see the module
    from pydantic_core import SchemaValidator, core_schema  # noqa: PLC0415

    tool: OfferedTool[None] = Offered.from_schema(call, name, description, dict(parameters), sequential=sequential)
    tool.function_schema.validator = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
    return tool


def whole(said: Any) -> Any:
    """What a model said, without halves of characters: two that belong together are one, a single one is a mark.

    Some services send a character in two pieces, and half of one can be neither kept nor sent.
    """
    if isinstance(said, str):
        return said if said.isascii() else said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(said, list):
        return [whole(one) for one in said]
    return {name: whole(one) for name, one in said.items()} if isinstance(said, dict) else said


def _understood(model: Model) -> Model:
    """The same model, whose answers that nobody foresaw, such as one without a choice, are failures of the model."""
    from pydantic_ai.exceptions import UnexpectedModelBehavior  # noqa: PLC0415 - see the module
    from pydantic_ai.models.wrapper import WrapperModel  # noqa: PLC0415

    class Understood(WrapperModel):
        async def request(self, *asked: Any, **more: Any) -> Any:
            try:
                return await super().request(*asked, **more)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise UnexpectedModelBehavior(f"its answer cannot be understood: {error}") from error

        @asynccontextmanager
        async def request_stream(self, *asked: Any, **more: Any) -> AsyncIterator[Any]:
            try:
                async with super().request_stream(*asked, **more) as streamed:
                    yield streamed
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise UnexpectedModelBehavior(f"its answer cannot be understood: {error}") from error

    return Understood(model)


def _spec(name: str, *, custom: bool) -> str:
    """Pipelines write ``provider/model``; at a custom address a slash belongs to the model's own name."""
    provider, slash, model = name.partition("/")
    return f"{provider}:{model}" if slash and provider in SERVICES and not custom else name
