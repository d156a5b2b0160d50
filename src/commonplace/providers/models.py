"""Language models behind the port, through pydantic-ai.  One prompt, one answer; no tools, no streaming, no history.

pydantic-ai and the providers' libraries take a second or two to import, so they are imported when the first question is
asked.  Retries are ours and theirs are turned off: one limit of time holds for all tries together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from random import random
from threading import Lock
from typing import TYPE_CHECKING, Any

from commonplace.install import hint
from commonplace.model.errors import InvalidInput, ProviderError
from commonplace.model.ports import Effort, ModelAnswer
from commonplace.providers import event_loop as loop
from commonplace.providers.services import (
    BUSY,
    ENDPOINT,
    SERVICES,
    Key,
    KeyHosts,
    address_of,
    check_key_host,
    key_of,
    retry_delay,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings

TIMEOUT_S = 120.0  # for an answer, with all tries
#: Tokens to think with, added to those of the answer: providers count both as output, and Anthropic wants more than the
#: 10,000 that its models may think at medium effort.
ROOM = {"low": 4_096, "medium": 12_288}
NO_KEY = "none"  # without one the libraries look into the process's environment, which may hold another service's
KNOWN = "openai:MODEL, anthropic:MODEL, google:MODEL, ollama:MODEL, or MODEL with the base_url of a compatible endpoint"

Sleep = Callable[[float], Awaitable[None]]


def model_of(
    spec: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    window: int | None = None,
    timeout: float = TIMEOUT_S,
    env: Mapping[str, str],
    key_hosts: KeyHosts = None,
    sleep: Sleep = asyncio.sleep,
) -> RemoteModel:
    """Return the model; ``ask`` makes the first request.  Raises ``InvalidInput``; without a key ``ProviderError``.

    ``key_hosts`` has to be given where a file that is not the user's own settings names the address or the variable.
    """
    provider, model = _parts(spec.strip(), custom=bool(base_url))
    name = f"{provider}:{model}"
    key = key_of(provider, api_key_env=api_key_env, custom=bool(base_url), env=env)
    key.require(f"the model {name!r}")
    address = address_of(provider, base_url=base_url, env=env)
    check_key_host(provider, key, address, env=env, key_hosts=key_hosts)
    # A custom address speaks OpenAI's protocol, for any provider.
    dialect = ENDPOINT if base_url and provider not in {"openai", "ollama"} else provider
    build = _Recipe(dialect, model, address, key)
    return RemoteModel(name, build, window=window, timeout=timeout, sleep=sleep)


def _parts(spec: str, *, custom: bool) -> tuple[str, str]:
    """Return the provider and the model; at a custom address, a name that is no provider's is a model's."""
    provider, _, model = spec.partition(":")
    if provider in SERVICES and model:
        return provider, model
    if custom and spec and spec not in SERVICES:
        return ENDPOINT, spec
    raise InvalidInput(f"there is no model {spec!r}; there are: {KNOWN}")


class _Recipe:
    """How to make pydantic-ai's model, once its libraries are there."""

    def __init__(self, dialect: str, model: str, address: str, key: Key) -> None:
        self.dialect, self.model, self.address, self.key = dialect, model, address, key

    def __call__(self) -> Model:
        """Make it.  Raises ``ProviderError`` if a library is missing."""
        try:
            return self._make()
        except ImportError as cause:
            raise ProviderError(hint("language models need pydantic-ai", "agent")) from cause

    def _make(self) -> Model:  # each import is an extra's, at its leaf, and of one provider only
        key = self.key.value
        if self.dialect == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            return AnthropicModel(self.model, provider=AnthropicProvider(api_key=key, base_url=self.address))
        if self.dialect == "google":
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

            return GoogleModel(self.model, provider=GoogleProvider(api_key=key, base_url=self.address))
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415

        if self.dialect == "ollama":
            from pydantic_ai.models.ollama import OllamaModel  # noqa: PLC0415
            from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415

            ollama = OllamaProvider(base_url=f"{self.address}/v1", api_key=key or NO_KEY)
            return OllamaModel(self.model, provider=ollama, profile=_compatible())
        if self.dialect == "openai":
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

            # Chat Completions for OpenAI as for everyone who is compatible: one way, which the tests walk.
            return OpenAIChatModel(self.model, provider=OpenAIProvider(base_url=self.address, api_key=key or NO_KEY))
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

        endpoint = OpenAICompatibleProvider(ENDPOINT, base_url=self.address, api_key=key or NO_KEY)
        return OpenAIChatModel(self.model, provider=endpoint, profile=_compatible())


def _compatible() -> ModelProfile:
    """What is different where OpenAI's protocol is spoken by others: ``max_tokens`` has its old name."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415

    return OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)


class RemoteModel:
    """A language model that a service runs.  Threads may share one, inside of event loops or not."""

    def __init__(
        self,
        name: str,
        recipe: _Recipe,
        *,
        window: int | None = None,
        timeout: float = TIMEOUT_S,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._name = name
        self._recipe = recipe
        self._window = window
        self._timeout = timeout
        self._sleep = sleep
        self._model: Model | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._name

    @property
    def window(self) -> int | None:
        """As it was given, else as pydantic-ai knows it."""
        return self._window if self._window is not None else self._shared_model().context_window

    def ask(self, system: str, prompt: str, *, max_tokens: int, effort: Effort = "low") -> ModelAnswer:
        """Answer in at most ``max_tokens`` tokens, not counting those for thinking.  Raises ``ProviderError``."""
        model = self._shared_model()
        return loop.run(self._answer(model, system, prompt, max_tokens=max_tokens, effort=effort))

    def to_pydantic_model(self) -> Model:
        """Return a new pydantic-ai model, to run an agent on; its connections belong to one event loop."""
        return self._recipe()

    def failure(self, error: Exception) -> ProviderError:
        """Turn an error of such a run into one sentence; the cause is kept unless it would print the key."""
        failure = self._failure(error, tried=1)
        failure.__cause__ = self._cause(error)
        return failure

    def _shared_model(self) -> Model:
        """The model of ``ask``: made once, and not on the loop, where the imports would block all requests."""
        with self._lock:
            self._model = self._model or self._recipe()
            return self._model

    async def _answer(self, model: Model, system: str, prompt: str, *, max_tokens: int, effort: Effort) -> ModelAnswer:
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._request(model, system, prompt, self._settings(model, max_tokens, effort))
        except TimeoutError as cause:
            raise ProviderError(f"the model {self._name!r} did not answer within {self._timeout:g} s") from cause
        return self._to_answer(response, max_tokens)

    def _settings(self, model: Model, max_tokens: int, effort: Effort) -> ModelSettings:
        thinks = bool(model.profile.get("supports_thinking"))
        if self._recipe.dialect == "anthropic" and effort == "low":
            thinks = False  # its models think only if thinking is switched on
        room = ROOM[effort] if thinks else 0
        settings: ModelSettings = {"max_tokens": max_tokens + room, "timeout": self._timeout, "max_retries": 0}
        settings["thinking"] = effort if thinks else False
        return settings

    async def _request(self, model: Model, system: str, prompt: str, settings: ModelSettings) -> ModelResponse:
        from pydantic_ai.direct import model_request  # noqa: PLC0415 - see the module
        from pydantic_ai.exceptions import ModelAPIError  # noqa: PLC0415
        from pydantic_ai.messages import ModelRequest  # noqa: PLC0415

        until = time.monotonic() + self._timeout
        request = [ModelRequest.user_text_prompt(prompt, instructions=system or None)]
        tried = 0
        while True:
            try:
                async with model:  # closes its connections after the last use
                    return await model_request(model, request, model_settings=settings)
            except ModelAPIError as error:
                tried += 1
                left = until - time.monotonic()
                wait = retry_delay(tried=tried, retry_after=error.retry_after, left=left, chance=random())  # noqa: S311
                if wait is None or not _is_passing(error):
                    raise self._failure(error, tried=tried) from self._cause(error)
            except Exception as error:  # noqa: BLE001 - libraries raise anything, such as IndexError for no choices
                raise self._failure(error, tried=1) from self._cause(error)
            await self._sleep(wait)

    def _to_answer(self, response: ModelResponse, max_tokens: int) -> ModelAnswer:
        refusal = (response.provider_details or {}).get("refusal")
        if refusal:
            raise ProviderError(f"the model {self._name!r} refused to answer: {self._recipe.key.hide(refusal)}")
        if response.finish_reason == "content_filter":
            raise ProviderError(f"the model {self._name!r} did not answer: its provider filtered the content")
        text = response.text or ""
        if not text and response.finish_reason == "length":
            raise ProviderError(f"the model {self._name!r} used up {max_tokens} tokens before it answered")
        usage = response.usage
        return ModelAnswer(
            text=text,
            model=response.model_name or self._name,
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
        )

    def _failure(self, error: Exception, *, tried: int) -> ProviderError:
        from pydantic_ai import exceptions as errors  # noqa: PLC0415

        who, key = f"the model {self._name!r}", self._recipe.key
        times = f" after {tried} tries" if tried > 1 else ""
        match error:
            case errors.ModelAuthenticationError():
                return key.as_provider_error(who)
            case errors.ModelQuotaExceededError():
                return ProviderError(f"{who} has no quota left for this account")
            case errors.ModelContextWindowExceededError():
                return ProviderError(f"{who} cannot take in so long a prompt: it is longer than its context window")
            case errors.ModelHTTPError():
                wait = f", and asks to wait {error.retry_after:g} s" if error.retry_after else ""
                return ProviderError(f"{who} answered {error.status_code}{times}{key.quote(error.body)}{wait}")
            case errors.ModelConnectionError():
                return ProviderError(f"{who} cannot be reached at {self._recipe.address}{times}: {key.hide(error)}")
            case _:
                return ProviderError(f"{who} failed{times}: {key.hide(error)}")

    def _cause(self, error: BaseException) -> BaseException | None:
        """The cause, unless it or what is behind it would print the key."""
        key, at = self._recipe.key.value, error
        seen: BaseException | None = at
        while key and seen is not None:
            if key in f"{seen!s} {seen!r} {getattr(seen, 'body', '')!r}":
                return None
            seen = seen.__cause__ or seen.__context__
        return error


def _is_passing(error: Any) -> bool:
    """Whether the same question may be answered in a moment."""
    from pydantic_ai import exceptions as errors  # noqa: PLC0415

    if isinstance(error, errors.ModelHTTPError):
        return error.status_code in BUSY and not isinstance(error, errors.ModelQuotaExceededError)
    return isinstance(error, (errors.ModelConnectionError, errors.ModelRateLimitError, errors.ModelUnavailableError))
