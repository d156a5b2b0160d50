"""All commands by name, each loaded when it is used: ``--help`` loads none of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from commonplace.cli.terminal import NAME, print_text
from commonplace.config.paths import STORE
from commonplace.model.errors import InvalidInput
from commonplace.version import VERSION

COMPLETION = "_COMMONPLACE_COMPLETE"  # what click calls it


PACKAGES = ("records", "learning", "cli", "roles", "ci", "intents", "hosts", "mcp", "server", "evaluation")


def all_commands() -> dict[str, tuple[str, str]]:
    """Every command by name: ``module:attribute``, and what it does.  Each package declares its own."""
    packages = {name: import_module(f"commonplace.{name}") for name in PACKAGES}
    return {
        command: (f"commonplace.{name}.{target}", summary)
        for name, package in packages.items()
        for command, (target, summary) in package.COMMANDS.items()
    }


class Command(click.Command):
    """A command whose help keeps the line breaks of its examples."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})


def keep_example_lines(help: str | None) -> str:
    """Help whose examples are not wrapped: click takes a backspace before a paragraph for that."""
    return re.sub(r"\n\n( *)(?=Examples?:)", "\n\n\\1\b\n\\1", help or "")


class Group(click.Group):
    """A group whose commands are listed in the order of their definition."""

    command_class = Command

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return list(self.commands)


class LazyGroup(click.Group):
    """A group that knows its commands by name and summary, and loads one when it runs."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return list(all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See ``click.Group``."""
        del ctx
        target, _ = all_commands().get(cmd_name, ("", ""))
        if not target:
            return None
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See ``click.Group``."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in all_commands().items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")
@click.option("--store", metavar="STORE", help="Use this file or postgresql:// address as the store.")
@click.option(
    "--as-user", is_flag=True, help="Act as the user, where an agent or a script runs this; asks on the terminal."
)
def root(store: str | None, as_user: bool) -> None:
    """Persistent memory for AI agents that people can read, edit and trust.

    Examples:
      commonplace demo
      commonplace init
      commonplace record add "Use pnpm, not npm" --category decisions
      commonplace recall "which package manager?"

    Exit codes: 0 success, 1 not found or attention needed, 2 usage error, 3 conflict, 4 forbidden, 5 settings,
    6 store or disk, 130 interrupted.
    """
    del as_user  # the command asks, when it knows what there is to show
    if store == "":
        raise click.UsageError("--store is empty; leave it out to use the configured store")
    if store:  # everything that this command opens or starts sees the same
        before = os.environ.get(STORE, "")
        os.environ[STORE] = store
        click.get_current_context().call_on_close(lambda: os.environ.update({STORE: before}))


def run(arguments: Sequence[str]) -> int:
    """Run a command; a usage error becomes ``InvalidInput`` with one line."""
    if COMPLETION in os.environ:  # a shell asks what could be typed next: that is click's own business
        root.main(args=list(arguments), prog_name=NAME)
    try:
        # Not root.main: it takes a reader that has enough for a failure.
        with root.make_context(NAME, list(arguments), obj=tuple(arguments)) as context:
            return int(root.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print_text(error.format_message())
        return 0
    except click.ClickException as error:
        raise InvalidInput(_sentence(error)) from error
    except click.Abort:
        raise KeyboardInterrupt from None


def _sentence(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    shown = f"; see `{context.command_path} --help`" if context else ""
    return " ".join(error.format_message().split()).rstrip(".") + shown
