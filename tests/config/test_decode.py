"""The decoder of YAML dialects: what it forgives, and how it says what does not fit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from commonplace.config.decode import At, ConfigBlock, Misfit, Required, decode, parse_yaml, waves
from commonplace.model.errors import ConfigError


class Cup(ConfigBlock):
    """A mapping with keys of every sort, and a short form."""

    tea: Required
    sugar: Annotated[int, Meta(ge=0, le=3)] = 1
    milk: bool = False
    size: Literal["small", "large"] = "small"
    warmth: Annotated[float, Meta(ge=0, le=100)] | None = None
    label: str | None = field(name="on_the_cup", default=None)

    def __post_init__(self) -> None:
        """A small cup holds no three spoons."""
        if self.size == "small" and self.sugar > 2:
            raise Misfit("sugar", "is too much for a small cup")

    @classmethod
    def expand(cls, text: str) -> Any:
        """The name of a tea alone."""
        return {"tea": text}


class Hot(ConfigBlock, tag_field="type", tag="hot"):
    """A drink by its type."""

    cups: Annotated[tuple[Cup, ...], Meta(min_length=1)]


class Cold(ConfigBlock, tag_field="type", tag="cold"):
    """Another one."""

    ice: bool = True


class Order(ConfigBlock):
    """What contains all of them."""

    drinks: tuple[Hot | Cold, ...] = ()
    tables: Mapping[str, Cup] = {}
    notes: Annotated[str | tuple[str, ...], Meta(description="a note or a list of notes")] = ()


def order(text):
    """The order that a text describes."""
    return decode(parse_yaml(text, file="order.yaml"), Order, At(file="order.yaml"))


def test_people_may_write_yaml_as_they_do():
    """Null is absent, ``yes`` is true, a number is a text where one is wanted, and a short form is its mapping."""
    cup = "{tea: 1837, milk: yes, size: null, warmth: 60, on_the_cup: 7}"
    read = order(
        f"drinks: [{{type: hot, cups: [{cup}, mint]}}, {{type: cold, ice: off}}]\ntables: {{a: green}}\nnotes: 3\n"
    )
    assert read == Order(
        drinks=(Hot(cups=(Cup(tea="1837", milk=True, warmth=60.0, label="7"), Cup(tea="mint"))), Cold(ice=False)),
        tables={"a": Cup(tea="green")},
        notes="3",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a", "should be a mapping with drinks, tables, notes, not ['a']"),
        ("cups: 1", "cups: unknown key; valid keys: drinks, tables, notes"),
        ("drinks: {}", "drinks: should be a list"),
        ("drinks: [{type: warm}]", "drinks[0].type: should be one of hot, cold, not 'warm'"),
        ("drinks: [{ice: true}]", "drinks[0].type: should be one of hot, cold, not None"),
        ("drinks: [{type: hot}]", "drinks[0].cups: is missing"),
        ("drinks: [{type: hot, cups: []}]", "drinks[0].cups: should be a list with something in it"),
        ("drinks: [{type: hot, cups: [{tea: ' '}]}]", "drinks[0].cups[0].tea: is missing"),
        ("tables: {a: {tea: t, sugar: 4}}", "tables.a.sugar: should be between 0 and 3, not 4"),
        ("tables: {a: {tea: t, sugar: 3}}", "tables.a.sugar: is too much for a small cup"),
        ("tables: {a: {tea: t, sugar: '1'}}", "tables.a.sugar: should be a whole number, not '1'"),
        ("tables: {a: {tea: t, milk: oat}}", "tables.a.milk: should be true or false, not 'oat'"),
        ("tables: {a: {tea: t, size: xl}}", "tables.a.size: should be one of small, large, not 'xl'"),
        ("tables: {a: {tea: t, warmth: hot}}", "tables.a.warmth: should be a number, not 'hot'"),
        ("tables: {a: {tea: [t]}}", "tables.a.tea: should be text, not ['t']"),
        ("tables: {a: {tea: t, label: x}}",
         "tables.a.label: unknown key; valid keys: tea, sugar, milk, size, warmth, on_the_cup"),
        ("tables: {a: null}", "tables.a: should be a mapping with tea, sugar, milk, size, warmth, on_the_cup"),
        ("notes: {a: b}", "notes: should be a note or a list of notes, not {'a': 'b'}"),
        ("tables: {a: &x b}", "line 1: uses an anchor or an alias (& or *); write the value out"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_its_place_and_what_is_allowed(text, reason):
    """The innermost place, in one sentence."""
    with pytest.raises(ConfigError) as raised:
        order(text)
    assert str(raised.value) == f"order.yaml: {reason}"


def test_waves_keep_the_given_order_and_refuse_circles():
    """Each name comes after all that it waits for."""
    assert waves({"d": ["b", "c"], "a": [], "b": ["a"], "c": []}) == [("a", "c"), ("b",), ("d",)]
    with pytest.raises(CycleError):
        waves({"a": ["b"], "b": ["a"]})


def test_what_every_prompt_loads_does_not_load_the_decoder():
    """Settings, places and the project are read without msgspec."""
    program = "import sys, commonplace.config.project; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
