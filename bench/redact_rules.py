"""What the redactor finds of the secrets that another scanner's rules describe.

    python bench/redact_rules.py PATH/gitleaks.toml [--seed N] [--misses]
    python bench/redact_rules.py --ordinary FOLDER...

The file is gitleaks' own list of rules (Debian: ``golang-github-gitleaks-gitleaks-dev``); nothing of it is in this
repository.  For each rule secrets are generated from its expression.  A secret that the rule knows by a name beside it
(``adafruit ... = ...``) is put into assignments of many languages, as gitleaks tests its rules; one that is known by
itself stands alone, in an assignment and in a sentence.  A case counts if the rule itself finds it, and if nothing that
reads like an example was drawn.  It is found if no piece of twelve characters of the secret is left.

With ``--ordinary`` the paragraphs of other people's files (documents and source) are counted that would be changed.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from re import _constants as codes
from re import _parser as parser
from typing import Any, NamedTuple

from commonplace.redact.redaction import redact

SEED, DRAWN, LONGEST = 1, 3, 40
PIECE = 12
TEXTS, FILE_BYTES, SHORTEST = {".py", ".md", ".rst", ".txt", ".go", ".js", ".ts"}, 1_000_000, 40
ASSIGNED = (
    '{i}Token="{s}"', '{i}Token = "{s}"', "{i}Token={s}", "{i}Token = {s}", '{{\n    "{i}_token": "{s}"\n}}',
    "<{i}Token>{s}</{i}Token>", "<{i}Token>\n    {s}\n</{i}Token>", "{i}_token: {s}", "{i}_token: '{s}'",
    '{i}_token: "{s}"', 'string {i}Token = "{s}";', 'var {i}Token string = "{s}"', '{i}Token := "{s}"',
    "{i}Token := `{s}`", 'String {i}Token = "{s}";', 'const {i}Token = "{s}"', 'var {i}Token: string = "{s}"',
    '${i}Token .= "{s}"', "{i}Token = '{s}'", '  "{i}Token" => "{s}"', '{i}_TOKEN = "{s}"', '{i}_TOKEN := "{s}"',
    '{i}_TOKEN ::= "{s}"', '{i}_TOKEN :::= "{s}"', '{i}_TOKEN ?= "{s}"', "export {i}_TOKEN={s}",
)  # fmt: skip
ALONE = ("{s}", 'TOKEN = "{s}"', "the token is {s} as of today")
NAMED = re.compile(r"\[\\w\.-\]\{0,\d+\}\??\(\?:(.+?)\)\(\?:\[")  # what a rule wants to read before the sign
CLASSES = {
    codes.CATEGORY_DIGIT: "0123456789", codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
}  # fmt: skip
PRINTABLE = "".join(map(chr, range(33, 127)))


class Rule(NamedTuple):
    """A rule of the other scanner."""

    name: str
    pattern: re.Pattern[str]
    tree: Any  #: its expression, parsed
    words: tuple[str, ...]  #: of which one has to stand beside the secret; none: it is known by itself


class Drawer:
    """Texts that an expression matches, at random."""

    def __init__(self, chance: random.Random, secret: int) -> None:
        self.chance, self.secret, self.found = chance, secret, ""

    def draw(self, tree: Any) -> str:
        """A text for a part of the expression; the secret's own group is noted."""
        return "".join(self._one(code, value) for code, value in tree)

    def _one(self, code: Any, value: Any) -> str:  # noqa: PLR0911 - one line for each kind of part
        if code is codes.LITERAL:
            return chr(value)
        if code in (codes.ANY, codes.NOT_LITERAL):
            return self.chance.choice(PRINTABLE.replace(chr(value), "") if code is codes.NOT_LITERAL else PRINTABLE)
        if code is codes.IN:
            return self.chance.choice(_letters(value))
        if code is codes.BRANCH:
            return self.draw(self.chance.choice(value[1]))
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, part = value
            count = self.chance.randint(least, max(least, min(int(most), LONGEST)))
            return "".join(self.draw(part) for _ in range(count))
        if code is codes.SUBPATTERN:
            text = self.draw(value[3])
            if value[0] == self.secret and not self.found:
                self.found = text
            return text
        return ""  # borders and looks around


def _letters(items: Any) -> str:
    found = ""
    for code, value in items:
        if code is codes.LITERAL:
            found += chr(value)
        elif code is codes.RANGE:
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        elif code is codes.CATEGORY:
            found += CLASSES.get(value, PRINTABLE)
    if items[0][0] is codes.NEGATE:
        return "".join(letter for letter in PRINTABLE if letter not in found)
    return found


def read_rules(path: Path) -> Iterator[Rule]:
    """The rules of a file that Python's expressions can say too."""
    for rule in tomllib.loads(path.read_text())["rules"]:
        text = rule.get("regex", "").replace(r"\z", r"\Z")
        text = re.sub(r"\[\[:alnum:\]\]", "[A-Za-z0-9]", text)
        flags = re.IGNORECASE if "(?i)" in text else 0
        text = text.replace("(?i)", "")
        named = NAMED.search(text)
        words = tuple(re.sub(r"\W", "", one) for one in re.split(r"\|", named[1])) if named else ()
        try:
            yield Rule(
                rule["id"], re.compile(text, flags), parser.parse(text, flags), tuple(filter(str.isalpha, words))
            )
        except re.error as error:
            print(f"left out: {rule['id']}: {error}", file=sys.stderr)


def cases(rule: Rule, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Texts with a secret of a rule in them, and that secret."""
    for _ in range(1 if rule.words else DRAWN):
        drawer = Drawer(chance, 1)
        whole = drawer.draw(rule.tree)
        secret = drawer.found or whole
        for form in ASSIGNED if rule.words else ALONE:
            text = form.format(i=chance.choice(rule.words or ("",)), s=secret)
            if rule.pattern.search(text) and len(secret) >= PIECE and secret.strip() == secret:
                yield text, secret


def is_found(text: str, secret: str) -> bool:
    """Whether nothing is left of a secret but pieces that are too short to be of use."""
    left = redact(text).text
    return not any(secret[at : at + PIECE] in left for at in range(len(secret) - PIECE + 1))


def paragraphs(folder: Path) -> Iterator[str]:
    """The paragraphs of a folder's texts, each once."""
    seen = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix in TEXTS and path.is_file() and path.stat().st_size < FILE_BYTES:
            for part in re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8", errors="replace")):
                if len(part) >= SHORTEST and part not in seen:
                    seen.add(part)
                    yield part


def count_ordinary(folders: list[Path], *, shown: bool) -> None:
    """Print how many paragraphs of ordinary texts would be changed."""
    for folder in folders:
        parts = list(paragraphs(folder))
        changed = [part for part in parts if redact(part).text != part]
        print(f"{folder}: {len(changed)} of {len(parts)}, {1000 * len(changed) / max(len(parts), 1):.2f} per 1,000")
        if shown:
            print("\n---\n".join(part[:300] for part in changed))


def main() -> None:
    """Print how much is found, or how much is changed of what holds no secrets."""
    given = ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("rules", type=Path, metavar="gitleaks.toml", nargs="?")
    given.add_argument("--ordinary", type=Path, metavar="FOLDER", nargs="+", help="count what is changed in texts")
    given.add_argument("--seed", type=int, default=SEED)
    given.add_argument("--misses", action="store_true", help="count the misses of each rule; show what is changed")
    options = given.parse_args()
    if options.ordinary:
        count_ordinary(options.ordinary, shown=options.misses)
    if options.rules:
        count_found(options)


def count_found(options: Namespace) -> None:
    """Print how much is found, and with ``--misses`` which rules' secrets are not."""
    chance, missed = random.Random(options.seed), dict[str, int]()
    counts = {"named beside it": [0, 0], "known by itself": [0, 0]}
    rules = list(read_rules(options.rules))
    for rule in rules:
        for text, secret in cases(rule, chance):
            found = is_found(text, secret)
            tally = counts["named beside it" if rule.words else "known by itself"]
            tally[0] += found
            tally[1] += 1
            missed[rule.name] = missed.get(rule.name, 0) + (not found)
    everything = [sum(column) for column in zip(*counts.values(), strict=True)]
    for name, (found, of) in (counts | {"together": everything}).items():
        print(f"{name:<20}{found:>7} of {of:<7}{found / max(of, 1):>8.1%}")
    print(f"{len(missed)} of {len(rules)} rules made a case")
    if options.misses:
        print("\n".join(f"  {name}: {count}" for name, count in sorted(missed.items()) if count))


if __name__ == "__main__":
    main()
