"""Embedders of services: any OpenAI-compatible endpoint, OpenAI, Google, Ollama.  Plain HTTP, no provider's library.

What they share is the spine: batches, one whole answer or an error, vectors checked and brought to unit length.  What
differs is the form of a request and of its answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from math import inf, isfinite, sqrt
from typing import Any, ClassVar
from urllib.parse import quote

from commonplace.model.errors import ProviderError
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Vector
from commonplace.providers.http_json import Endpoint

LONGEST = 8_000  # characters of a text: OpenAI refuses a whole batch for one text of more than 8,191 tokens
MOST_CHARACTERS = 200_000  # of a batch: well below OpenAI's 300,000 tokens a request
BLANK = "(nothing)"  # stands for a blank text, which OpenAI refuses
WORD = "dimension"  # embedded to learn how long a model's vectors are

#: How long the vectors of well-known models are; others are asked for a word.
DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "text-embedding-004": 768,
    "gemini-embedding-001": 3072,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
}
#: The prefixes that a model wants: of a stored text, and of a query.
PREFIXES = {
    "nomic-embed-text": ("search_document: ", "search_query: "),
    "mxbai-embed-large": ("", "Represent this sentence for searching relevant passages: "),
    "gemini-embedding-2": ("title: none | text: ", "task: search result | query: "),
}


class RemoteEmbedder(ABC):
    """The spine of every embedder behind HTTP.  Threads may share one."""

    batch: ClassVar[int]  #: texts of one request

    def __init__(self, name: str, model: str, endpoint: Endpoint, *, dimensions: int | None = None) -> None:
        self._name = name
        self._model = model
        self._endpoint = endpoint
        self._requested = dimensions  # shorter vectors than the model's own, if it can
        self._dimensions = dimensions or DIMENSIONS.get(_plain(model))

    @property
    def identity(self) -> EmbedderIdentity:
        """Provider and model; the length is asked for once if it is not known.  Raises ``ProviderError`` then."""
        if self._dimensions is None:
            self.embed([WORD])
        return EmbedderIdentity(name=self._name, dimensions=self._dimensions or 0)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """Return one vector of unit length per text, in order, or none at all.  Raises ``ProviderError``."""
        vectors: list[Vector] = []
        for batch in _batches(texts, self.batch):
            rows = self._rows(self._ask(batch, query=query))
            if len(rows) != len(batch):
                raise ProviderError(f"{self._endpoint.who} gave {len(rows)} vectors for {len(batch)} texts")
            vectors += [self._vector(row) for row in rows]
        return vectors

    @abstractmethod
    def _ask(self, batch: list[str], *, query: bool) -> Any:
        """Send one batch and return the answer."""

    @abstractmethod
    def _rows(self, answer: Any) -> list[Any]:
        """The vectors of an answer, in the order of the texts."""

    def _vector(self, row: Any) -> Vector:
        """Check one vector and bring it to unit length."""
        who = self._endpoint.who
        if not isinstance(row, list) or not all(type(number) in {int, float} for number in row):
            raise ProviderError(f"{who} gave something that is not a vector")
        if len(row) != (self._dimensions or len(row)):
            raise ProviderError(f"{who} gave a vector of {len(row)} numbers instead of {self._dimensions}")
        length = _length(row)
        if not isfinite(length) or not length:
            raise ProviderError(f"{who} gave a vector without a direction")
        self._dimensions = len(row)
        return array("f", [number / length for number in row])

    def _add_prefix(self, batch: list[str], *, query: bool) -> list[str]:
        prefix = PREFIXES.get(_plain(self._model), ("", ""))[query]
        return [prefix + text for text in batch]

    def _list(self, answer: Any, field: str) -> list[Any]:
        rows = answer.get(field) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise ProviderError(f"{self._endpoint.who} answered without {field!r}")
        return rows


class OpenAIEmbedder(RemoteEmbedder):
    """``POST /embeddings``, as OpenAI and all that are compatible with it have it."""

    batch = 96

    def _ask(self, batch: list[str], *, query: bool) -> Any:  # noqa: ARG002 - this protocol has one sort of text
        body: dict[str, object] = {"model": self._model, "input": batch}
        if self._requested:
            body["dimensions"] = self._requested
        return self._endpoint.post("/embeddings", body, hint=f"is {self._model!r} one of its models?")

    def _rows(self, answer: Any) -> list[Any]:
        rows = self._list(answer, "data")
        if not all(isinstance(row, dict) for row in rows):
            raise ProviderError(f"{self._endpoint.who} gave something that is not a vector")
        if any("index" in row for row in rows):
            places = {row.get("index"): row for row in rows}
            if set(places) != set(range(len(rows))):
                raise ProviderError(
                    f"{self._endpoint.who} gave vectors that are not numbered from 0 to {len(rows) - 1}"
                )
            rows = [places[place] for place in range(len(rows))]
        return [row.get("embedding") for row in rows]


class GoogleEmbedder(RemoteEmbedder):
    """``batchEmbedContents`` of the Gemini API."""

    batch = 100

    def _ask(self, batch: list[str], *, query: bool) -> Any:
        model = f"models/{self._model}"
        common: dict[str, object] = {"model": model}
        if self._model not in PREFIXES:
            common["taskType"] = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        if self._requested:
            common["outputDimensionality"] = self._requested
        texts = self._add_prefix(batch, query=query)
        requests = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        path = f"/v1beta/models/{quote(self._model, safe='')}:batchEmbedContents"
        hint = "Google retired text-embedding-004 and has gemini-embedding-001 instead"
        return self._endpoint.post(path, {"requests": requests}, hint=hint)

    def _rows(self, answer: Any) -> list[Any]:
        rows = self._list(answer, "embeddings")
        return [row.get("values") if isinstance(row, dict) else None for row in rows]


class OllamaEmbedder(RemoteEmbedder):
    """``POST /api/embed`` of an Ollama server."""

    batch = 32

    def _ask(self, batch: list[str], *, query: bool) -> Any:
        body: dict[str, object] = {
            "model": self._model,
            "input": self._add_prefix(batch, query=query),
            "truncate": True,
        }
        if self._requested:
            body["dimensions"] = self._requested
        return self._endpoint.post("/api/embed", body, hint=f"get the model with: ollama pull {self._model}")

    def _rows(self, answer: Any) -> list[Any]:
        return self._list(answer, "embeddings")


def _length(row: list[float]) -> float:
    try:
        return sqrt(sum(float(number) ** 2 for number in row))
    except OverflowError:
        return inf


def _plain(model: str) -> str:
    """A model's name without the tag that Ollama takes for granted."""
    return model.removesuffix(":latest")


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Texts as they are sent, as many at a time as a request may have."""
    batch: list[str] = []
    size = 0
    for text in texts:
        sent = text[:LONGEST].encode("utf-8", "replace").decode() if text.strip() else BLANK
        if batch and (len(batch) == most or size + len(sent) > MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(sent)
        size += len(sent)
    if batch:
        yield batch
