"""Verb: one thing that a system can be asked to do, declared once.

A verb is a typed function whose first parameter is the caller; its docstring holds the summary and, under "Args:", a
line for each other argument.  HTTP routes, OpenAPI operations, MCP tools, function-calling tools and the methods of
the remote client are derived from that declaration, so a new argument is a change in one place:

    @verb(reads=True)
    def recall(caller: MemoryAccess, query: str, *, limit: Annotated[int, Range(1, 50)] = 10) -> Recall: ...

The MCP server imports this at start-up: ``inspect``, ``dataclasses`` and msgspec cost more than they are worth here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_type_hints, overload

from commonplace.model.errors import InvalidInput
from commonplace.model.values import UNSET
from commonplace.wire import Mark, Schema, admits_null, decode, encode_as, object_schema, preview, schema_of

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


class Argument:
    """One argument of a verb."""

    def __init__(self, name: str, hint: Any, default: Any, description: str) -> None:
        self.name = name
        self.hint = hint
        self.default = default
        self.description = description

    @property
    def required(self) -> bool:
        """Whether a call must name it."""
        return self.default is ...

    @property
    def nullable(self) -> bool:
        """Whether null means something else than leaving the argument out."""
        return (self.required or self.default is UNSET) and admits_null(self.hint)

    def schema(self, *, for_models: bool = False) -> Schema:
        """Return its JSON Schema."""
        schema = schema_of(self.hint, nullable=self.nullable, for_models=for_models)
        if self.description:
            schema["description"] = self.description
        if not self.required and isinstance(self.default, bool | int | float | str) and self.default != "":
            schema["default"] = str(self.default) if isinstance(self.default, str) else self.default
        return schema


class Verb(Generic[C, P, R]):
    """A declared verb; calling it calls its function."""

    def __init__(
        self,
        function: Callable[Concatenate[C, P], R],
        *,
        reads: bool = False,
        destroys: bool = False,
        repeats: bool = False,
        guide: str = "",
        title: str = "",
        offers: Collection[str] | None = None,
        requires: Collection[str] = (),
        text: Callable[[Any, Any], str] | None = None,
    ) -> None:
        """Declare a verb.

        Args:
            function: The function; its first parameter is the caller.
            reads: It changes nothing that anybody would call memory.
            destroys: What it removes cannot be restored.
            repeats: Calling it twice has the effect of calling it once.
            guide: What a model reads about it: when to use it and when not.  Default: the docstring's first paragraphs.
            title: The name that people see.  Default: its name, capitalised.
            offers: The arguments that a model may set.  Default: all; an empty collection: the verb is no tool.
            requires: Arguments that a model must set although programs may leave them out.
            text: Renders a result for a model, from caller and result.
        """
        self.function = function
        self.name = function.__name__.rstrip("_")
        described, _, rest = _dedent(function.__doc__ or "").partition("\n\nArgs:\n")
        self.summary = described.partition("\n")[0]
        self.guide = guide or " ".join(described.split())
        self.title = title or self.name.replace("_", " ").capitalize()
        self.reads, self.destroys, self.repeats = reads, destroys, repeats or reads
        self.text = text
        self._documented = rest
        self._offers, self._requires = offers, requires
        self._arguments: tuple[Argument, ...] | None = None

    def __call__(self, caller: C, /, *args: P.args, **given: P.kwargs) -> R:
        """Call the function."""
        return self.function(caller, *args, **given)

    def __repr__(self) -> str:
        return f"<verb {self.name}>"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Every argument, in order; evaluated when first asked for."""
        if self._arguments is None:
            self._arguments = tuple(_arguments(self.function, _descriptions(self._documented)))
        return self._arguments

    @property
    def result(self) -> Any:
        """The type of what it returns."""
        return _hints(self.function, ["return"])["return"]

    @property
    def is_tool(self) -> bool:
        """Whether models are offered it."""
        return self._offers is None or len(self._offers) > 0

    def arguments_for(self, *, for_models: bool = True) -> tuple[Argument, ...]:
        """Return the arguments that a model may set, or those that a program may."""
        if not for_models or self._offers is None:
            return self.arguments
        return tuple(argument for argument in self.arguments if argument.name in self._offers)

    def required_names(self, *, for_models: bool = False) -> list[str]:
        """Return the names of the arguments that a call must give."""
        extra = self._requires if for_models else ()
        return [one.name for one in self.arguments_for(for_models=for_models) if one.required or one.name in extra]

    def parameters(self, *, for_models: bool = False) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        properties = {one.name: one.schema(for_models=for_models) for one in self.arguments_for(for_models=for_models)}
        return object_schema(properties, self.required_names(for_models=for_models))

    def check(self, sent: object, *, for_models: bool = False) -> dict[str, Any]:
        """Return what was sent as Python values; raise ``InvalidInput`` with a sentence that says what would be right.

        Null counts as leaving the argument out, except where null is a value of its own.
        """
        arguments = {argument.name: argument for argument in self.arguments_for(for_models=for_models)}
        if not isinstance(sent, Mapping):
            raise InvalidInput(f"the arguments of {self.name} should be an object, not {preview(sent)}")
        if unknown := [name for name in sent if name not in arguments]:
            takes = f"it takes {', '.join(arguments)}" if arguments else "it takes nothing"
            raise InvalidInput(f"{self.name} takes no {preview(unknown[0])}; {takes}")
        given = {name: item for name, item in sent.items() if item is not None or arguments[name].nullable}
        if missing := [name for name in self.required_names(for_models=for_models) if name not in given]:
            raise InvalidInput(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} required")
        return {name: decode(arguments[name].hint, item, name=name) for name, item in given.items()}

    def encode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return Python values as the JSON that ``check`` reads; None is left out where it is the default."""
        known = {argument.name: argument for argument in self.arguments}
        found = {}
        for name, item in arguments.items():
            argument = known.get(name)
            if argument is not None and item is None:
                if argument.default is None:
                    continue
                decode(argument.hint, None, name=name)  # raises where None is no value of the type
            if item is not UNSET:
                found[name] = item if argument is None else encode_as(argument.hint, item)
        return found


class ArgumentsOf(Mark):
    """Marks a mapping as the arguments of a verb: ``Sequence[Annotated[Mapping[str, Any], ArgumentsOf(store)]]``."""

    def __init__(self, verb: Verb[Any, ..., Any]) -> None:
        self._verb = verb

    def schema(self, *, for_models: bool) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return self._verb.parameters(for_models=for_models)

    def allows(self, _value: Any) -> bool:
        """Leave it to the verb to check its arguments."""
        return True

    def encode(self, arguments: Any) -> Any:
        """Return the arguments as JSON."""
        return self._verb.encode(arguments) if isinstance(arguments, Mapping) else arguments


@overload
def verb(function: Callable[Concatenate[C, P], R], /) -> Verb[C, P, R]: ...
@overload
def verb(
    *,
    reads: bool = False,
    destroys: bool = False,
    repeats: bool = False,
    guide: str = "",
    title: str = "",
    offers: Collection[str] | None = None,
    requires: Collection[str] = (),
    text: Callable[[Any, Any], str] | None = None,
) -> Callable[[Callable[Concatenate[C, P], R]], Verb[C, P, R]]: ...
def verb(function: Any = None, /, **options: Any) -> Any:
    """Declare a function as a verb; the options are those of ``Verb``."""
    return Verb(function) if function is not None else lambda declared: Verb(declared, **options)


def _arguments(function: Callable[..., Any], descriptions: Mapping[str, str]) -> list[Argument]:
    code = function.__code__
    positional, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1:total]
    late = function.__defaults__ or ()
    defaults = dict(zip(code.co_varnames[positional - len(late) : positional], late, strict=True))
    defaults |= function.__kwdefaults__ or {}
    hints = _hints(function, names)
    return [Argument(name, hints[name], defaults.get(name, ...), descriptions.get(name, "")) for name in names]


def _hints(function: Callable[..., Any], names: Collection[str]) -> dict[str, Any]:
    """Evaluate some annotations only: those of the caller and the result may name types that are not imported."""
    chosen = {name: function.__annotations__[name] for name in names}
    holder = type("Annotated", (), {"__annotations__": chosen})
    return get_type_hints(holder, globalns=function.__globals__, include_extras=True)


def _descriptions(documented: str) -> dict[str, str]:
    """Read the ``Args:`` part of a docstring; a line that is indented further continues the one before."""
    found: dict[str, str] = {}
    name = ""
    for line in _dedent(f"\n{documented}").splitlines():
        if line.startswith(" "):
            found[name] += f" {line.strip()}"
        elif line:
            name, _, description = line.partition(": ")
            found[name] = description
    return found


def _dedent(text: str) -> str:
    """Remove the common indentation of all lines but the first, as ``inspect.cleandoc`` does."""
    first, *rest = text.expandtabs().splitlines() or [""]
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip("\n")
