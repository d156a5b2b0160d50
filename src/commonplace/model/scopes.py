"""Scope: where a record is stored, and so who may see it.

A scope is a path of (kind, name) segments.  Two scopes are the same when their segments are equal; they are never
compared by text prefix, because ``project:app`` would then contain ``project:apple``.
"""

from __future__ import annotations

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value

KINDS = ("user", "project", "namespace", "pipeline", "agent", "task", "server")
NAME_BYTES = 512  # a repository's remote address fits; a paragraph pasted by mistake does not


class Scope(Value):
    """Where a record is stored, such as ``user:ada`` or ``pipeline:release/agent:reviewer``."""

    segments: tuple[tuple[str, str], ...]  #: (kind, name), outermost first

    @classmethod
    def of(cls, *segments: tuple[str, str]) -> Scope:
        """Build a scope from segments: ``Scope.of(("user", "ada"))``."""
        return cls(segments=segments)

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Parse the text of a scope, as ``str(scope)`` writes it."""
        parts = [segment.partition(":") for segment in text.split("/")]
        if not all(colon for _, colon, _ in parts):
            raise InvalidInput(f"{text!r} is not a scope; it should look like 'project:name' or 'pipeline:p/agent:a'")
        return cls(segments=tuple((kind, _unescape(name)) for kind, _, name in parts))

    @property
    def kind(self) -> str:
        """The kind of the innermost segment."""
        return self.segments[-1][0]

    @property
    def name(self) -> str:
        """The name of the innermost segment."""
        return self.segments[-1][1]

    @property
    def parent(self) -> Scope | None:
        """The scope around this one; dropping it drops this one too."""
        return Scope(segments=self.segments[:-1]) if len(self.segments) > 1 else None

    def __str__(self) -> str:
        return "/".join(f"{kind}:{_escape(name)}" for kind, name in self.segments)

    def _check(self) -> None:
        if not self.segments:
            raise InvalidInput("a scope needs at least one segment")
        for kind, name in self.segments:
            if kind not in KINDS:
                raise InvalidInput(f"{kind!r} is not a kind of scope; use one of {', '.join(KINDS)}")
            if not name.strip() or not name.isprintable():
                raise InvalidInput(f"{name!r} cannot name a {kind}: it is blank or holds control characters")
            if len(name.encode("utf-8", "replace")) > NAME_BYTES:
                raise InvalidInput(f"the name of a {kind} may have at most {NAME_BYTES} bytes: {name[:40]!r}...")


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _unescape(name: str) -> str:
    return name.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")
