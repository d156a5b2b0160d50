"""``commonplace recall`` as click sees it: built from the table in ``recall_command``."""

from __future__ import annotations

from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.completion import complete_categories, complete_tags
from commonplace.records.recall_command import HELP, OPTIONS, QUESTION, Option, run

COMPLETERS = {"category": complete_categories, "tag": complete_tags}


def _ask(**asked: Any) -> int:
    return run(asked)


def _parameter(option: Option) -> click.Option:
    kind: Any = click.Choice(option.choices) if option.choices else int if option.number else str
    described: dict[str, Any] = {"help": option.help, "default": option.default}
    if option.flag:
        described = {"help": option.help, "is_flag": True}
    elif option.many:
        described = {"help": option.help, "multiple": True, "type": kind}
    else:
        described |= {"type": kind, "show_default": option.default is not None}
    if option.name in COMPLETERS:
        described["shell_complete"] = COMPLETERS[option.name]
    if not option.choices and not option.flag:
        described["metavar"] = option.metavar
    return click.Option([f"--{option.name}"], **described)


recall = Command(
    "recall",
    callback=_ask,
    help=HELP,
    params=[
        click.Argument([QUESTION], nargs=-1, required=True, metavar="QUESTION"),
        *[_parameter(option) for option in OPTIONS],
    ],
)
