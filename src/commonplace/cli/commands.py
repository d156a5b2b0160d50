"""All commands by name, each loaded when it is used: ``--help`` loads none of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import click

from commonplace.cli.terminal import COLOR, NAME, print_text
from commonplace.config.paths import STORE, require_store
from commonplace.model.errors import InvalidInput
from commonplace.text.suggest import suggestion
from commonplace.version import VERSION

COMPLETION = "_COMMONPLACE_COMPLETE"  # what click calls it


PACKAGES = ("records", "learning", "cli", "roles", "ci", "intents", "hosts", "mcp", "server", "evaluation")
PARTS = ("Everyday", "Project", "Learning", "History", "Agents", "Store", "Server")  # of the help, in this order
#: What people type who come from other tools, and what it is called here.
SYNONYMS = {
    "remember": "add", "save": "add", "store": "add", "new": "add", "find": "search", "query": "search",
    "grep": "search", "ask": "search", "ls": "list", "get": "show", "cat": "show", "view": "show", "update": "edit",
    "change": "edit", "rm": "forget", "remove": "forget", "delete": "forget", "del": "forget", "erase": "forget",
    "configure": "config", "settings": "config", "path": "where", "install": "connect", "check": "doctor",
    "repair": "doctor", "fix": "doctor", "dump": "export", "load": "import", "server": "serve", "web": "ui",
}  # fmt: skip


#: Commands that only read: a store that they are to read must exist.
READING = frozenset(
    {
        "recall", "search", "list", "show", "why", "log", "status", "doctor", "export", "read", "brief", "used",
        "audit", "eval", "backup",
    }
)  # fmt: skip


class Listed(NamedTuple):
    """A command as its package declares it."""

    target: str  #: ``module:attribute``
    summary: str  #: what it does
    part: str  #: where it is in the help; "": hidden


def all_commands() -> dict[str, Listed]:
    """Every command by name.  Each package declares its own."""
    packages = {name: import_module(f"commonplace.{name}") for name in PACKAGES}
    return {
        command: Listed(f"commonplace.{name}.{target}", summary, part)
        for name, package in packages.items()
        for command, (target, summary, part) in package.COMMANDS.items()
    }


class Command(click.Command):
    """A command whose help keeps the line breaks of its examples."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})


def keep_example_lines(help: str | None) -> str:
    """Help whose examples are not wrapped: click takes a backspace before a paragraph for that."""
    return re.sub(r"\n\n( *)(?=Examples?:)", "\n\n\\1\b\n\\1", help or "")


class Suggesting(click.Group):
    """A group that answers a mistyped command with the one that was probably meant."""

    def known(self) -> list[str]:
        """The commands that people should know of."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See ``click.Group``."""
        typed = args[0]
        if typed.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, typed) is not None:
            return super().resolve_command(ctx, args)
        known = self.known()
        way = SYNONYMS.get(typed.lower())
        meant = f"; did you mean {way!r}?" if way in known else suggestion(typed, known)
        raise click.UsageError(f"there is no command {typed!r}{meant or f'; see `{ctx.command_path} --help`'}")


class Group(Suggesting):
    """A group whose commands are listed in the order of their definition."""

    command_class = Command

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return self.known()


def hidden(command: click.Command) -> click.Command:
    """The same command, without a line in the help: an earlier name of it that keeps working."""
    copied = copy(command)
    copied.hidden = True
    return copied


class LazyGroup(Suggesting):
    """A group that knows its commands by name and summary, and loads one when it runs."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": keep_example_lines(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return self.known()

    def known(self) -> list[str]:
        """See ``Suggesting``."""
        return [name for name, listed in all_commands().items() if listed.part]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See ``click.Group``."""
        del ctx
        listed = all_commands().get(cmd_name)
        if listed is None:
            return None
        module, _, attribute = listed.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See ``click.Group``."""
        del ctx
        for part in PARTS:
            names: dict[Listed, list[str]] = {}
            for name, listed in all_commands().items():
                if listed.part == part:
                    names.setdefault(listed, []).append(name)
            with formatter.section(part):
                formatter.write_dl([(", ".join(several), listed.summary) for listed, several in names.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")
@click.option("--store", metavar="STORE", help="Use this file or postgresql:// address as the store.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    help="Use colours (default: auto, on a terminal unless NO_COLOR is set).",
)
@click.option(
    "--as-user", is_flag=True, help="Act as the user, where an agent or a script runs this; asks on the terminal."
)
def root(store: str | None, color: str | None, as_user: bool) -> None:
    """Persistent memory for AI agents that people can read, edit and trust.

    Examples:
      commonplace demo
      commonplace init
      commonplace add "Use pnpm, not npm" --category decisions
      commonplace search "which package manager?"

    Exit codes: 0 success, 1 not found or attention needed, 2 usage error, 3 conflict, 4 forbidden, 5 settings,
    6 store or disk, 130 interrupted.
    """
    del as_user  # the command asks, when it knows what there is to show
    if store == "":
        raise click.UsageError("--store is empty; leave it out to use the configured store")
    for name, value in ((STORE, store), (COLOR, color)):
        if value:  # everything that this command opens or starts sees the same
            before = os.environ.get(name, "")
            os.environ[name] = value
            click.get_current_context().call_on_close(partial(os.environ.update, {name: before}))
    _check_store(click.get_current_context().obj)


def _check_store(arguments: Sequence[str]) -> None:
    """Refuse to read a store that is named and does not exist: it would be made, and be empty."""
    named = os.environ.get(STORE, "")
    words = [word for word in arguments if not word.startswith("-") and word != named]
    if named and words and is_read(words):
        require_store(named)


def is_read(words: Sequence[str]) -> bool:
    """Whether a command, with its subcommand, only reads."""
    return words[0] in READING or (words[0] == "record" and not {"list", "get", "history"}.isdisjoint(words[1:2]))


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
    if isinstance(error, click.NoSuchOption) and context:
        options = [one for param in context.command.params for one in (*param.opts, *param.secondary_opts)]
        if meant := suggestion(error.option_name, [one for one in options if one.startswith("--")]):
            return f"there is no option {error.option_name}{meant}"
    text = " ".join(error.format_message().split()).rstrip(".")
    shown = f"; see `{context.command_path} --help`" if context and "did you mean" not in text else ""
    return text + shown
