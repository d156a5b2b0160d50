"""The model of an agent, by the name a configuration gives it.  Keys and addresses are the providers' business.

PydanticAI takes a second to import, so it is imported when an agent is about to run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from commonplace.install import hint
from commonplace.model.errors import ProviderError
from commonplace.model.values import Value
from commonplace.providers.models import RemoteModel, model_of
from commonplace.providers.services import SERVICES, KeyHosts

if TYPE_CHECKING:
    from pydantic_ai.models import Model

TEST = "test"  # PydanticAI's own: calls every tool once and sends nothing


class AgentModel(Value):
    """A model that is ready to run, and the sentences for its failures."""

    model: Model
    remote: RemoteModel | None = None  #: None: an instance of PydanticAI's that a program passed in

    def failure(self, error: Exception) -> ProviderError:
        """Return one sentence about a failed run, without the key."""
        if self.remote is not None:
            return self.remote.failure(error)
        return ProviderError(f"the model {self.model.model_name!r} failed: {' '.join(str(error).split())}")


def load_model(
    name: str | Model,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    env: Mapping[str, str],
    key_hosts: KeyHosts = None,
) -> AgentModel:
    """Return the model ``openai:gpt-5``, ``anthropic/claude-opus-4-7`` or an instance of PydanticAI's as it is.

    ``key_hosts`` has to be given where a file names the address or the variable; see ``config.operator``.  Raises
    ``ProviderError`` if the key or PydanticAI itself is missing.
    """
    try:
        import pydantic_ai  # noqa: PLC0415 - see the module
        from pydantic_ai.models.test import TestModel  # noqa: PLC0415
    except ImportError as error:
        raise ProviderError(hint("running agents needs pydantic-ai", "agent")) from error
    pydantic_ai.BANNER_ENABLED = False  # it would draw itself into the first answer at a terminal
    if not isinstance(name, str):
        return AgentModel(model=name)
    if name.strip() == TEST:
        return AgentModel(model=TestModel())
    spec = _spec(name.strip(), custom=bool(base_url))
    remote = model_of(spec, base_url=base_url, api_key_env=api_key_env, env=env, key_hosts=key_hosts)
    return AgentModel(model=_wrap(remote.to_pydantic_model()), remote=remote)


def _wrap(model: Model) -> Model:
    """Return the same model; an answer that PydanticAI cannot parse, such as one without a choice, is its failure."""
    from pydantic_ai.exceptions import UnexpectedModelBehavior  # noqa: PLC0415 - see the module
    from pydantic_ai.models.wrapper import WrapperModel  # noqa: PLC0415

    @contextmanager
    def parsing() -> Iterator[None]:
        try:
            yield
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise UnexpectedModelBehavior(f"its answer cannot be understood: {error}") from error

    class Wrapped(WrapperModel):
        async def request(self, *args: Any, **options: Any) -> Any:
            with parsing():
                return await super().request(*args, **options)

        @asynccontextmanager
        async def request_stream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
            with parsing():
                async with super().request_stream(*args, **options) as stream:
                    yield stream

    return Wrapped(model)


def _spec(name: str, *, custom: bool) -> str:
    """Return ``provider:model`` for ``provider/model``; at a custom address a slash belongs to the model's name."""
    provider, slash, model = name.partition("/")
    return f"{provider}:{model}" if slash and provider in SERVICES and not custom else name
