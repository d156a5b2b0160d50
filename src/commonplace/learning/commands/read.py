"""``commonplace read``: print what is at a ``memory://`` address."""

from __future__ import annotations

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.session import Session, json_option
from commonplace.engine.rendering import iso
from commonplace.learning.addresses import AddressedText, read_page
from commonplace.learning.opening import addresses_of, quote_page


@click.command(cls=Command)
@click.argument("url", metavar="URL")
@click.option("--quote", is_flag=True, help="Quote it as data, as a model should see it.")
@json_option
def read(url: str, quote: bool, as_json: bool) -> None:
    """Print what is at a memory:// address.

    memory://root is the summary, memory://root/MEMORY.md all that was learned, memory://root/skills/NAME/SKILL.md a
    skill, memory://root/ a list of all artifacts, and memory://ID a record.

    Examples:
      commonplace read memory://root
      commonplace read memory://root/skills/
      commonplace read memory://1m7gmb4480
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        page = read_page(addresses_of(app), url)
        session.add_notes(*page.notes)
        if page.edited:
            session.add_notes("this is the text of the file, which was edited by hand")
        session.answer(quote_page(page, app) if quote else page.text, _to_json(page))


def _to_json(page: AddressedText) -> dict[str, object]:
    return {
        "url": page.url,
        "content_type": page.content_type,
        "text": page.text,
        "updated_at": iso(page.updated_at),
        "source": page.channel.value if page.channel else None,
        "trust": page.trust.name.lower() if page.trust is not None else None,
        "edited": page.edited,
    }
