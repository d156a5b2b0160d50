# ruff: noqa: INP001, S311, E501, PLR2004, T201
"""The labelled clauses that the classifier of learning is trained on: written by hand, then varied by voice.

`clauses/*.txt` are ours, one clause a line: a kind for each file, ``none`` for what is not worth keeping.  ``Q => A`` is a
clause with the sentence before it; ``A! => ...`` is said by the assistant and confirmed in the next turn.  From these the
variations are made: registers, courtesies, typos, and the same words asked, supposed, quoted or joked, which are worth
nothing.  ``python training/clauses.py`` counts them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "clauses"
KINDS = ("none", "decisions", "procedures", "principles", "preferences", "facts")
SEED = 20260


class Labelled(NamedTuple):
    """One labelled clause."""

    text: str
    before: str
    speaker: str
    kind: str
    source: int  #: the line that it was made from: what is made of one line is never on both sides of a split


TOOLS = [
    "Redis",
    "Postgres",
    "Kafka",
    "Terraform",
    "Docker",
    "Nginx",
    "Sentry",
    "Grafana",
    "React",
    "Vue",
    "Django",
    "Flask",
    "Celery",
    "Ansible",
    "Jest",
    "Vitest",
    "Playwright",
    "Poetry",
    "Webpack",
    "Vite",
    "Kubernetes",
    "Helm",
    "Airflow",
    "Snowflake",
    "MongoDB",
    "Elixir",
    "Godot",
    "Unity",
    "Blender",
    "LaTeX",
    "Zotero",
    "Excel",
    "Notion",
    "Figma",
    "Shopify",
    "WordPress",
    "Zigbee",
    "Obsidian",
    "Ableton",
    "Lightroom",
    "Quarto",
    "Stata",
]
DEV = [
    "pnpm",
    "npm",
    "yarn",
    "bun",
    "ruff",
    "black",
    "flake8",
    "mypy",
    "pyright",
    "pytest",
    "jest",
    "vitest",
    "webpack",
    "vite",
    "rollup",
    "poetry",
    "uv",
    "pip",
    "conda",
    "docker",
    "podman",
    "kafka",
    "redis",
    "postgres",
    "mysql",
    "sqlite",
    "mongo",
    "terraform",
    "pulumi",
    "helm",
    "react",
    "vue",
    "svelte",
    "angular",
    "django",
    "flask",
    "fastapi",
    "rails",
    "express",
    "zod",
    "pydantic",
    "eslint",
    "prettier",
    "biome",
    "sentry",
    "grafana",
    "nginx",
    "caddy",
    "celery",
    "airflow",
    "dbt",
    "cypress",
    "playwright",
    "gradle",
    "maven",
    "bazel",
    "cargo",
]
AREAS = [
    "formatting",
    "linting",
    "the tests",
    "validation",
    "the cache",
    "the api",
    "the frontend",
    "the backend",
    "the charts",
    "auth",
    "background jobs",
    "the docs",
    "logging",
    "the build",
    "packages",
    "the worker",
    "search",
    "the admin",
    "CI",
]
CODES = [
    "make check",
    "make image",
    "npm run build",
    "just test",
    "tox",
    "make lint",
    "cargo test",
    "bin/setup",
    "make i18n",
    "scripts/release.sh",
    "uv sync",
    "pnpm gen",
    "terraform plan",
    "mix test",
    "make docs",
]
DO = [
    "fix",
    "add",
    "remove",
    "rename",
    "update",
    "bump",
    "use",
    "try",
    "move",
    "put",
    "drop",
    "change",
    "make",
    "rewrite",
    "refactor",
    "split",
    "inline",
    "extract",
    "revert",
    "skip",
    "disable",
    "enable",
    "check",
    "look-at",
    "test",
    "run",
    "build",
    "start",
    "stop",
    "leave",
    "keep",
    "write",
    "create",
    "delete",
    "open",
    "close",
    "clean",
    "sort",
    "wrap",
    "cache",
    "log",
    "print",
    "mock",
    "replace",
    "import",
    "export",
    "format",
    "document",
    "explain",
    "raise",
    "lower",
]
PIECES = [
    "the lint errors in {Y}",
    "a flag for {Y}",
    "the header",
    "the button",
    "{D}",
    "the {D} config",
    "the date column",
    "that file",
    "this function",
    "line 40",
    "the second test",
    "the old class",
    "a helper",
    "python",
    "a set instead",
    "as is",
    "the icon",
    "the import",
    "both tests",
    "the loop",
    "inline styles here",
    "a package called tools",
    "the version",
    "the import of {D}",
    "the fixture",
    "the error text",
    "it raise when the order is old",
    "the timeout to 30",
    "the margin",
    "the names in this file",
    "the last commit",
    "the new field",
    "the typo",
    "a test for the empty list",
    "the two functions",
    "the TODO",
]
THINGS = [
    "the api",
    "the frontend",
    "the shop",
    "the newsletter",
    "the report",
    "the billing job",
    "the importer",
    "the search",
    "the mobile app",
    "the thesis",
    "the website",
    "the parser",
    "the dashboard",
    "the greenhouse",
    "the workshop",
    "the archive",
    "the export",
    "the scheduler",
    "the game",
    "the choir",
    "the survey",
    "the lab notebook",
    "the label printer",
    "the heating",
    "the course",
    "the magazine",
    "the pipeline",
]
PEOPLE = [
    "Marta",
    "Oleg",
    "Priya",
    "Tom",
    "Ines",
    "Jana",
    "Ben",
    "Katrin",
    "Piet",
    "Selam",
    "Nora",
    "Ali",
    "Kim",
    "Eva",
    "Rolf",
    "Lena",
    "Marek",
    "Ana",
]
TIMES = [
    "mondays",
    "the 1st of the month",
    "3 am",
    "midnight",
    "friday noon",
    "every two weeks",
    "the first tuesday",
    "6:30",
    "weekdays only",
    "the evening",
]
AMOUNTS = [
    "30 days",
    "500 rows",
    "2 MB",
    "15 minutes",
    "90 percent",
    "12 euro",
    "4 GB",
    "60 seconds",
    "a week",
    "three retries",
    "1200 pixels",
    "8 people",
]
ACTS = [
    "deploy",
    "merge",
    "publish",
    "print",
    "ship",
    "delete anything",
    "restart the server",
    "send the mail",
    "change the schema",
    "touch the config",
    "upload photos",
    "run the migration",
    "order material",
    "edit the wording",
    "update plugins",
]
REPLIES = [
    "answers",
    "explanations",
    "summaries",
    "commit messages",
    "code comments",
    "examples",
    "diffs",
    "mails",
    "reports",
    "plans",
]
STYLES = [
    "short",
    "in plain english",
    "without emojis",
    "in bullet points",
    "in french",
    "with units",
    "without jargon",
    "one at a time",
    "with a source",
    "in lower case",
    "formal",
    "blunt",
]

TEMPLATES = {
    "decisions": ["we use {D} here", "we use {D}", "We use {D} for {Y}.", "use {D}, not {D}", "use {D}, not {D}, in this repo", "no, use {D}", "we moved to {D} last month", "we switched from {D} to {D}", "we no longer use {D}", "we don't use {D} any more", "let's go with {D} for {Y}", "we decided to use {D} for {Y} because it is simpler", "we chose {D} over {D}", "for {Y} we'll use {D}", "{Y}: {D}", "we're on {D}", "we moved off {D}", "we use {D} as the package manager in this repo", "from now on {D} for {Y}", "A! => I suggest we use {D} for {Y}.", "we use {T} for {X}", "{X} runs on {T}", "{X} is done with {T} now", "we moved {X} from {T} to {T}", "{T} is out, {X} uses {T}", "we decided that {X} stays on {T}", "{X} goes with {T}, decided", "{X}: {T}, final", "no {T} for {X}", "we keep {T} for {X}", "we dropped {T}", "{T} it is for {X}", "we picked {T} because {P} knows it", "{X} is limited to {N}", "{X} runs at {W} now", "the limit for {X} is {N}, we agreed on that", "{X} moves to {W}", "switched {X} to {T} last week", "we're staying with {T} until next year", "Should we use {T} or {T} for {X}? => {T}", "Which one for {X}? => {T}, and that's final", "{T} or {T}? => {T}", "How long should {X} keep things? => {N}", "Should I move {X} to {T}? => no, {X} stays on {T}", "A! => I would use {T} for {X}.", "A! => Then I suggest {T} for {X}.", "A! => We could limit {X} to {N}.", "A! => Let's run {X} at {W}."],
    "principles": ["always run {D} before committing", "never use {D} in {Y}", "never push without running {C}", "don't use {D} in {Y}", "all of {Y} must be covered by {D}", "no {D} in {Y}", "{Y} must not depend on {D}", "every change in {Y} needs a test", "always use {D} in {Y}", "never {A} without {P}", "always ask {P} before you {A}", "nobody may {A} on a friday", "{X} must never take longer than {N}", "every change of {X} needs a test", "all of {X} is reviewed by {P}", "no {T} in {X}", "{X} is never changed by hand", "don't {A} before {W}", "we don't {A} without a backup", "only {P} may {A}", "{X} has to work without {T}", "everything in {X} needs a label", "rule: {A} only after {W}", "from now on {P} checks {X} first", "never more than {N} in {X}", "dont {A} when {P} is away", "{X} may not depend on {T}", "tests for {X} never use {T}", "nothing goes into {X} that {P} has not read", "we always {A} in pairs", "May I {A}? => never without {P}", "Can I use {T} in {X}? => no {T} in {X}, that's a rule here", "in {X} names are always in english"],
    "preferences": ["I want {R} {S}, always", "give me {R} {S} in every project", "please keep your {R} {S}", "I prefer {R} {S}", "no {T} in my own projects, anywhere", "for me: {R} {S}", "I like {T} better than {T}, personally", "{R} {S} please, that's how I want it everywhere", "don't give me {R} unless I ask", "I hate {T}, in any project", "always write my {R} {S}", "never {A} for me, I do that myself", "ask me before you {A}, in all my projects", "when you write {R} for me: {S}", "my {R} should be {S}, wherever we work", "I can't read long {R}", "personally I always use {T}", "stop sending me {R}", "me, I like {R} {S}", "How do you like your {R}? => {S}, always", "Anything about style? => {R} {S}, in everything you do for me", "also I want {R} {S} in general"],
    "facts": ["{P} owns {X}", "{X} belongs to {P}", "{P} is responsible for {X}", "{X} is open until {W}", "{X} needs {N}", "{X} has {N} at most", "the contract for {X} ends in may", "{X} lives in /srv/{t}", "{X} is in the repo {t}-tools", "{P} is away until june", "{X} restarts at {W}", "the password for {X} is in the vault under {t}", "the docs of {X} are at docs.corp/{t}", "{X} listens on 8443", "our {T} instance is called {t}-2", "{P} knows {T} best", "context: {X} is a {T} setup for a small clinic", "fyi {X} is rebuilt {W}", "the deadline for {X} is 14 june", "{X} holds {N} of data", "Who owns {X}? => {P}, since january", "Where is {X}? => on the old host, under /opt/{t}", "When does {X} run? => {W}", "the {T} licence expires in october", "{X} is written in {T}, about ten years old"],
    "procedures": ["to deploy, run `{C}`, then run `{C}`", "before you push, run `{C}`", "before you commit run {C} and {C}", "run `{C}` first, then `{C}`", "to set it up: {C}, then {C}", "after every change of {Y} run {C}", "to test {Y} use {C}", "to {A}: tell {P}, wait for the ok, then do it, then log it", "before you {A} run make check", "how we {A}: {P} prepares it, I look, then it goes out", "first stop {X}, then {A}, then start it again", "{X} is restored like this: take the dump, load it, check the counts", "to set up {X}: install {T}, copy the config, start it", "release of {X} goes: version, tag, wait for CI, tell {P}", "you open {T} first, then import, then {P} signs", "when {X} hangs: stop it, clear the queue, start it, watch for {N}", "rollback of {X}: pick the last tag, deploy it, tell {P}", "How do you {A}? => {P} writes it, I check, then we do it together"],
    "none": ["{O} {Z}", "{O} {Z}", "{O} {Z}", "{O} {Z}", "{O} {Z}", "{O} {Z}", "{O} {Z} please", "then {O} {Z}", "and {O} {Z}", "ok {O} {Z}", "now {O} {Z}", "hmm, {O} {Z} instead", "no, {O} {Z}", "{O} {Z} and {O} {Z}", "first {O} {Z}", "can you {O} {Z}", "I want to {O} {Z}", "let's {O} {Z}", "don't {O} {Z}", "don't bother with {Z}", "you could {O} {Z}", "we have to {O} {Z} today", "I am wanting to {O} {Z}, can you help", "oh wow, {N}", "{X} depth is {N}", "it has {N} now", "options are {D} or {D}", "so, for {X}", "What next? => {O} {Z}", "Which one? => {O} {Z}", "Should I go on? => yes, and {O} {Z}", "do we use {D} in {Y}", "should we use {D} for {Y}", "maybe we use {D} for {Y}", "we used to use {D}", "we used to use {D} for {Y}", "we haven't decided on {D} yet", "not sure if we use {D}", "I never said we use {D}", "what if we used {D}", "I wish we used {D}", "we use {D} in main.py, see line 4", "run {C}", "run {C} again", "{C} fails", "{C} takes forever", "I ran {C}", "add {D} to {Y}", "install {D}", "{D} fails in {Y}", "fix {Y}", "{Y} is broken", "{D} is slow", "the {D} config is wrong", "is {D} any good", "how do I use {D}", "why not {D}", "{D} or {D}?", "{Y} broke because of {D}", "the fix was to upgrade {D}", "can you look at {X}", "{X} is broken", "{X} is slow today", "why does {X} use {T}", "is {T} better than {T}", "does {X} run on {T}", "install {T} on this box", "open {X}", "restart {X} for me", "add {T} to {X}", "write a test for {X}", "I'm working on {X} today", "{P} asked me about {X}", "{P} is on the phone", "I talked to {P} yesterday", "{X} crashed at {W}", "we lost {N} because of {X}", "{X} took {N} this time", "maybe {T} would be better", "I think {P} wrote that", "we might move {X} to {T}", "the docs of {T} say you must never do that", "{P} says we should use {T}", "I used {T} at my last job", "if we had {T} this would be easy", "what if {X} used {T}", "let's look at {X} first", "let's ask {P}", "just use {T} for this one", "make {X} faster", "rename {X} to {t}", "I like how {X} looks", "{X} looks good now", "{X} is fixed", "deployed {X}, works", "I tested {X} with {N}, no errors", "show me {X}", "explain {T} to me", "compare {T} and {T}", "summarise {X} in {N}", "I need {X} by {W}", "send {X} to {P}", "ping {P} about it", "{P} will look at it tomorrow", "waiting for {P}", "still waiting for {T} to install", "the {T} build fails", "{T} gives me an error", "I got {N} back", "Should I change {X}? => not now", "Shall I look at {X}? => yes", "Is it {X}? => no, something else", "Which one is broken? => {X}", "Did {P} see it? => yes, this morning", "How does {X} look? => fine", "Does {T} work? => yes, it works now", "A! => I changed {X}.", "A! => I could use {T} for {X} or leave it.", "A! => {X} is running again.", "A! => Should I ask {P}?", "A! => It may be {T}.", "A! => I will look at {X} now.", "can you {A} now", "did you {A} yet", "{A} now please", "I will {A} tomorrow", "we {A} too often lol", "who should {A}", "don't {A} yet", "I forgot to {A}", "{A} and tell me when it's done"],
}  # fmt: skip

OPENINGS = [
    "btw ",
    "oh and ",
    "also ",
    "also, ",
    "and ",
    "so ",
    "ok so ",
    "fyi ",
    "one more thing: ",
    "ah, ",
    "for the record: ",
    "please note: ",
    "just so you know, ",
    "important: ",
    "by the way, ",
    "quick note: ",
    "hey, ",
    "no, ",
    "yes, ",
    "ok, ",
    "right, ",
    "well ",
]
CLOSINGS = [" ok?", " please", " pls", ", thanks", " btw", " :)", ", ok", " !!", ", got it?", " I mean it", ", period"]
SUPPOSED = [
    "maybe ",
    "what if ",
    "I think ",
    "suppose ",
    "perhaps ",
    "I wonder if ",
    "imagine ",
    "is it true that ",
    "do you think ",
    "someone said ",
    "the readme says ",
    "the docs say ",
    "my old boss said ",
    "at my last job ",
    "if only ",
    "in theory ",
    "they told me ",
    "I read that ",
    "let's pretend ",
    "it would be nice if ",
]
JOKED = [" lol", " haha", " /s", " 😂", " jk", ", yeah right", ", just kidding"]


def read_lines() -> Iterator[Labelled]:
    """Yield what was written by hand."""
    number = 0
    for kind in KINDS:
        for line in (HERE / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
            number += 1
            yield _labelled(line, kind, number)


def _labelled(line: str, kind: str, number: int) -> Labelled:
    before, arrow, text = line.partition(" => ")
    if not arrow:
        return Labelled(line, "", "user", kind, number)
    if before == "A!":
        return Labelled(text, "", "assistant", kind, number)
    return Labelled(text, before, "user", kind, number)


def read_templates(chance: random.Random, *, each: int) -> Iterator[Labelled]:
    """Yield what was made of templates."""
    number = 100_000
    for kind, templates in TEMPLATES.items():
        for template in templates:
            number += 1
            for _ in range(each):
                yield _labelled(_filled(template, chance), kind, number)


def _filled(template: str, chance: random.Random) -> str:
    slots = {
        "O": [one.replace("-", " ") for one in DO],
        "Z": PIECES,
        "D": DEV,
        "Y": AREAS,
        "C": CODES,
        "T": TOOLS,
        "X": THINGS,
        "P": PEOPLE,
        "W": TIMES,
        "N": AMOUNTS,
        "A": ACTS,
        "R": REPLIES,
        "S": STYLES,
    }

    def pick(found: re.Match[str]) -> str:
        name = found[1]
        return chance.choice(TOOLS).lower() if name == "t" else chance.choice(slots[name])

    return re.sub(r"\{(\w)\}", pick, re.sub(r"\{(\w)\}", pick, template))  # a piece has places of its own


def vary(one: Labelled, chance: random.Random) -> Labelled:
    """Return a clause in another voice."""
    text = one.text
    if chance.random() < 0.35:
        text = chance.choice(OPENINGS) + text
    if chance.random() < 0.2 and not text.endswith("?"):
        text += chance.choice(CLOSINGS)
    if chance.random() < 0.3:
        text = text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?:)" else ".")
    elif chance.random() < 0.4:
        text = text.lower()
    if chance.random() < 0.25:
        text = text.replace("'", "")
    if chance.random() < 0.12:
        text = re.sub(r"\byou\b", "u", re.sub(r"\byour\b", "ur", text))
    if chance.random() < 0.15:
        text = _with_typo(text, chance)
    if chance.random() < 0.08:
        text = re.sub(r"\b(never|always|not|no|only|must)\b", lambda m: m[0].upper(), text)
    return one._replace(text=text)


def _with_typo(text: str, chance: random.Random) -> str:
    at = chance.randrange(max(1, len(text) - 2))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def unsay(one: Labelled, chance: random.Random) -> Labelled:
    """Return a clause that is worth nothing: the same asked, supposed, reported or joked."""
    way = chance.random()
    if way < 0.55:
        text = chance.choice(SUPPOSED) + one.text
    elif way < 0.75:
        text = one.text + chance.choice(JOKED)
    else:
        text = one.text.rstrip(".!") + "?"
    return one._replace(text=text, kind="none", before="" if way < 0.75 else one.before)


def all_clauses() -> list[Labelled]:
    """Return every labelled clause, in a fixed order."""
    chance = random.Random(SEED)
    written = list(read_lines())
    made = list(read_templates(chance, each=4))
    base = [*written, *made]
    durable = [one for one in base if one.kind != "none" and one.speaker == "user"]
    varied = [vary(one, chance) for one in base]
    more = [vary(one, chance) for one in written]
    unsaid = [vary(unsay(one, chance), chance) for one in chance.sample(durable, len(durable) // 2)]
    return [*base, *varied, *more, *unsaid]


if __name__ == "__main__":
    every = all_clauses()
    print(len(every), "clauses", dict(Counter(one.kind for one in every)))
