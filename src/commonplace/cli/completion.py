"""Completion: ``commonplace completion SHELL`` prints the script, and shells ask here for ids, categories and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click
from click.shell_completion import CompletionItem, get_completion_class

from commonplace.app import open_app
from commonplace.cli.commands import COMPLETION, Command, root
from commonplace.cli.terminal import NAME, print_text
from commonplace.model.errors import CommonplaceError
from commonplace.model.records import CATEGORIES, Record
from commonplace.text.cleaning import one_line

LOOKED_AT = 500  # newest records whose ids and tags are offered
HELP_LETTERS = 60  # of a record beside its id, in shells that show it
SETUP = {
    "bash": 'eval "$(commonplace completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(commonplace completion zsh)" in ~/.zshrc',
    "fish": "commonplace completion fish > ~/.config/fish/completions/commonplace.fish",
}


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(SETUP)))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, ids, categories and tags in your shell.

    Bash: put `eval "$(commonplace completion bash)"` into ~/.bashrc.  Zsh: the same with zsh, into ~/.zshrc.  Fish:
    write the script to ~/.config/fish/completions/commonplace.fish.

    Examples:
      commonplace completion bash >> ~/.bashrc
      commonplace completion fish > ~/.config/fish/completions/commonplace.fish
    """
    kind = get_completion_class(shell)
    if kind is not None:
        print_text(kind(root, {}, NAME, COMPLETION).source())


def _newest() -> Sequence[Record]:
    """Return the records that are offered; none where there is no memory that can be read."""
    try:
        with open_app(embedder=None) as app:
            return app.memory.list(limit=LOOKED_AT)
    except CommonplaceError:
        return ()


def complete_ids(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer ids: the short ones, or whole ones if those begin as was typed."""
    found = []
    for record in _newest():
        name = record.id if typed and record.id.startswith(typed) else record.brief_id
        if name.startswith(typed):
            found.append(CompletionItem(name, help=one_line(record.content)[:HELP_LETTERS]))
    return found


def complete_tags(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the tags of records."""
    return _items(sorted({tag for record in _newest() for tag in record.tags}), typed)


def complete_categories(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the categories."""
    return _items(CATEGORIES, typed)


def _items(words: Iterable[str], typed: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(typed)]
