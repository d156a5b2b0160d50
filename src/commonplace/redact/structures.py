"""Find secrets by their form: vendors' tokens, and the structures that carry credentials.

PEM blocks, JWTs, URLs, headers, queries, cookies, command lines, seed phrases, tables, and one look inside what is
encoded.  Not for prose or assignments, where a name announces a secret: those are in `sentences.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from commonplace.redact.names import Hit, Noun, noun_of, rx, word_set
from commonplace.redact.values import (
    MIXED,
    RANDOM_FROM,
    admits,
    bare,
    complexity,
    grade,
    is_id,
    is_odd,
    is_random,
    is_stop,
    is_tokenish,
    value_at,
)
from commonplace.redact.vendors import PREFIXES, SHAPES

#: A name, a tag or a key of a mapping is shorter than every token there is; the other shapes are longer still.
_SHORTEST = min(len(prefix) + least for _, prefix, _, least, _ in PREFIXES)


def vendor_hits(text: str) -> Iterator[Hit]:
    """Yield tokens of the forms in the vendors' tables."""
    if len(text) < _SHORTEST:
        return
    for kind, prefix, alphabet, least, most in PREFIXES:
        at = text.find(prefix)
        while at >= 0:
            end = _tail_end(text, at, prefix, f"[{alphabet}]{{{least},{most}}}+(?![A-Za-z0-9])")
            if end:
                yield at, end, kind
            at = text.find(prefix, max(end, at + len(prefix)))
    for kind, needle, pattern in SHAPES:
        if needle in text:
            yield from ((m.start(), m.end(), kind) for m in rx(pattern).finditer(text))
    if "AKIA" in text or "ASIA" in text:
        yield from _aws_secrets(text)


_DUMMY_TAIL = r"[xX*.0_-]+|.*(?i:your|example|placeholder|xxxxx)[-_.].*"
_WORDY_TAIL = r"[-_.]?(?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4})(?:[-_.](?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4}))+"


def _tail_end(text: str, at: int, prefix: str, tail: str) -> int:
    """Return the end of the token that starts with this prefix; 0 if it is none."""
    # Inside a longer run is no start: each round would find one more token at the end of a hostile run.
    if rx(r"[A-Za-z0-9][-_]?$").search(text[max(0, at - 2) : at]):
        return 0
    m = rx(tail).match(text, at + len(prefix))
    if not m or rx(_DUMMY_TAIL).fullmatch(m[0]):
        return 0
    # A bare word as prefix also starts ordinary names, and `sk-` starts the names of style sheets.
    if (prefix.isalnum() and not rx(r"\d").search(m[0])) or rx(_WORDY_TAIL).fullmatch(m[0]):
        return 0
    return m.start() + len(m[0].rstrip("."))


def _aws_secrets(text: str) -> Iterator[Hit]:
    """Yield the 40 characters that follow an access key id: they have no prefix of their own."""
    for m in rx(r"(?:AKIA|ASIA)[A-Z0-9]{16}").finditer(text):
        near = rx(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])").search(text, m.end(), m.end() + 200)
        if near and complexity(near[0]):
            yield near.start(), near.end(), "aws-secret-key"


_PEM = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_PEM_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
# Quote signs, line numbers and headers may stand before the first line of base64; prose may not.
_PEM_BODY = r"(?:[\s>|+*#:.\"'`\\]|\\[nr]|\d{1,4}[:|]|[A-Z][A-Za-z-]{2,20}: [^\n]{1,80}\n){0,60}[A-Za-z0-9+/=]{8}"
_PROSE_RESUMES = r"(?:\n|\\n)[ \t]{0,8}(?:\n|\\n)(?=[^\n]{0,40}[A-Za-z']{1,20} [A-Za-z']{1,20} [A-Za-z']{1,20})"


def _pem(text: str) -> Iterator[Hit]:
    """Yield a block up to its END; a block cut off, to where prose resumes, or to the end of the text."""
    at, ends = 0, True
    while begin := rx(_PEM).search(text, at):
        # Without the memory that no END is left, a text of nothing but BEGINs would take quadratic time.
        stop = rx(_PEM_END).search(text, begin.end()) if ends else None
        ends = stop is not None
        at = stop.end() if stop else begin.end()
        body = rx(_PEM_BODY).match(text, begin.end())
        if body and (stop or _is_key_material(text[body.end() - 8 : body.end() + 8])):
            resumes = None if stop else rx(_PROSE_RESUMES).search(text, at)
            at = at if stop else resumes.start() if resumes else len(text)
            yield begin.start(), at, "pem-private-key"
    for m in rx(r"Private-Lines: \d{1,3}\s{1,2}((?:[A-Za-z0-9+/=]{1,80}\s{1,2}){1,200})").finditer(text):
        yield m.start(1), m.end(1), "putty-private-key"


def _is_key_material(start: str) -> bool:
    """Sixteen characters that no sentence would begin with."""
    return bool(rx(r"[A-Za-z0-9+/=]{16}").fullmatch(start) and rx(r"[A-Z0-9+/]").search(start))


def _jwts(text: str) -> Iterator[Hit]:
    for m in rx(r"(?<![\w-])(eyJ[\w-]{8,}+)\.[\w-]{2,}+(?:\.[\w-]*+){1,3}").finditer(text):
        header = _unbase64(m[1])
        if header.startswith("{") and '"alg"' in header:
            yield m.start(), m.end(), "jwt"


def _urls(text: str) -> Iterator[Hit]:
    """Yield only the password of `scheme://user:password@host`; the rest is an address and stays."""
    for m in rx(r"://[^\s/?#@:\"'<>]{0,128}:([^\s/?#\"'<>]{1,256})@(?=[\w\[$<{])").finditer(text):
        if not is_stop(m[1]) or m[1].isdigit():
            yield m.start(1), m.end(1), "url-password"
    for m in rx(r"://([A-Za-z0-9_-]{20,256})@(?=\w)").finditer(text):
        if complexity(m[1]) >= RANDOM_FROM:
            yield m.start(1), m.end(1), "url-token"


_AUTHORIZATION = (
    r"(?i)(?<![a-z])authorization[\"']?\s{0,3}[:=,]\s{0,3}\\?[\"']?"
    r"(?:(basic|bearer|token|apikey|api-key|key|digest|bot|splunk|oauth|negotiate)\s{1,3})?([^\s\"',;\\<>]{6,4096})"
)


def _headers(text: str) -> Iterator[Hit]:
    for m in rx(_AUTHORIZATION).finditer(text):
        if not is_stop(m[2]) and (grade(m[2]) >= MIXED or _is_basic(m[2]) or (m[1] and is_odd(m[2]))):
            yield m.start(2), m.end(2), f"{(m[1] or 'authorization').lower()}-credential"
    for m in rx(r"(?i)(?<![\w-])bearer[ :]{1,3}([\w.~+/=-]{16,4096})").finditer(text):
        secret = m[1].rstrip(".")
        if grade(secret) >= MIXED and complexity(secret):
            yield m.start(1), m.start(1) + len(secret), "bearer-credential"
    for m in rx(r"(?<!\w)[Bb]asic ([A-Za-z0-9+/_-]{8,512}={0,2})").finditer(text):
        if _is_basic(m[1]):
            yield m.start(1), m.end(1), "basic-credential"


def _is_basic(value: str) -> bool:
    """Base64 of `user:password`."""
    user, _, password = _unbase64(value).partition(":")
    return bool(user and password) and (user + password).isprintable()


# The names of parameters that are no names of secrets elsewhere; the others are assignments like any.
_QUERY = (
    r"(?i)[?&;#]((?:[\w.-]{0,30}[_.-])?(?:key|sig|signature|auth|hash|code|sid|jwt|session|sessionid|credential|secret))"
    r"=([^&\s\"'<>#;)\]]{6,2048})"
)


def _queries(text: str) -> Iterator[Hit]:
    for m in rx(_QUERY).finditer(text):
        value, name = m[2].rstrip(".,:!?"), m[1].lower()
        harmless = name in {"hash", "code", "key"} and ("/" in value or is_id(value))
        if not is_stop(value) and (name == "secret" or (is_tokenish(value) and not harmless)):
            slug = rx(r"[^a-z0-9]+").sub("-", name).strip("-")
            yield m.start(2), m.start(2) + len(value), f"query-{slug}"


_COOKIES = r"(?i)cookie[\"']?(?:\s?[:=]|\s)\s{0,3}[\"']?([^\n]{1,4096})"
_COOKIE = r"(?<![^\s;\"':])([^=;\s\"']{1,64})=([^;\s\"',]{6,2048})"
_SESSIONS = r"(?i)sess|sid|auth|token|jwt|csrf|xsrf|remember|login|ticket|secret|credential|__host|__secure|connect"


def _cookies(text: str) -> Iterator[Hit]:
    for line in rx(_COOKIES).finditer(text):
        for m in rx(_COOKIE).finditer(text, line.start(1), line.end(1)):
            named = rx(_SESSIONS).search(m[1])
            if (named and grade(m[2]) >= MIXED) or (not named and is_random(m[2])):
                yield m.start(2), m.end(2), "cookie"


# `-p` is a port or a parent directory in most commands; only in these is it a password.  First, words that must occur.
_ARGS = r"\b[^\n|;&]{0,160}?[ \t]"
_GAP = r"[ \t]{1,3}"
_WORD_AT_MOST = r"(\S{1,256})"
_IDENTIFIED = (
    rf"(?i)(?:user|to){_GAP}\S{{1,64}}{_GAP}identified{_GAP}(?:with{_GAP}\w{{1,40}}{_GAP})?by{_GAP}"
    r"(['\"][^'\"\n]{1,256}['\"])"
)
_COMMANDS = (
    ("sshpass", rf"\bsshpass{_GAP}-p[ \t]?{_WORD_AT_MOST}"),
    ("mysql mariadb 7z", rf"\b(?:mysql(?:dump|admin)?|mariadb(?:-dump)?|7za?){_ARGS}-p(?![ \t]){_WORD_AT_MOST}"),
    ("login mongo clickhouse", rf"\b(?:login|mongo\w{{0,8}}|clickhouse-client){_ARGS}-p{_GAP}{_WORD_AT_MOST}"),
    ("redis-cli", rf"\bredis-cli{_ARGS}-a{_GAP}{_WORD_AT_MOST}"),
    ("sqlcmd bcp zip mosquitto", rf"\b(?:sqlcmd|bcp|zip|unzip|mosquitto_\w{{3}}){_ARGS}-P{_GAP}{_WORD_AT_MOST}"),
    ("ldap", rf"\bldap\w{{3,8}}{_ARGS}-w{_GAP}{_WORD_AT_MOST}"),
    ("curl wget", rf"\b(?:curl|wget){_ARGS}(?:-u|--user)[ =]{{1,3}}[\"']?[\w.@%+\\-]{{1,64}}:([^\s\"']{{1,256}})"),
    ("-u", rf"(?<![\w-])-u[ =]{{0,2}}\S{{1,64}}{_GAP}-p[ =]{{0,2}}{_WORD_AT_MOST}"),
    ("smbclient", rf"\bsmbclient{_ARGS}-U{_GAP}[\"']?[^\s%]{{1,64}}%{_WORD_AT_MOST}"),
    ("-storepass -keypass -pass -Pass", rf"(?<![\w-])-(?:storepass|keypass|[Pp]ass(?:word|wd)?){_GAP}{_WORD_AT_MOST}"),
    ("pass:", rf"(?<![\w-])-pass(?:in|out)?{_GAP}[\"']?pass:{_WORD_AT_MOST}"),
    ("freerdp mstsc", rf"\b(?:[xw]freerdp|mstsc){_ARGS}/p:{_WORD_AT_MOST}"),
    ("htpasswd", rf"\bhtpasswd{_GAP}-\w{{0,6}}b\w{{0,6}}{_GAP}(?:\S{{1,128}}{_GAP})?\S{{1,64}}{_GAP}{_WORD_AT_MOST}"),
    ("net", rf"\bnet{_GAP}user{_GAP}\S{{1,64}}{_GAP}{_WORD_AT_MOST}"),
    ("rabbitmqctl", rf"\brabbitmqctl{_GAP}(?:add_user|change_password){_GAP}\S{{1,64}}{_GAP}{_WORD_AT_MOST}"),
    ("requirepass masterauth", rf"\b(?:requirepass|masterauth){_GAP}{_WORD_AT_MOST}"),
    ("identified IDENTIFIED", _IDENTIFIED),
)


def _commands(text: str) -> Iterator[Hit]:
    for needles, pattern in _COMMANDS:
        if any(needle in text for needle in needles.split()):
            for m in rx(pattern).finditer(text):
                value = bare(m[1], m.start(1), text)
                if value and not is_stop(value.text) and not value.text.startswith(("-", "/")):
                    yield value.start, value.end, "password"


_SEED = (
    r"(?i)\b(?:(?:seed|recovery|mnemonic|backup|secret|wallet)[ -](?:phrase|words|seed|mnemonic)s?"
    r"|mnemonic|seed(?=\s?[:=]))"
)
_SEED_LEAD = r"[^\n:=]{0,60}?(?:\b(?:is|are|was)\b|[:=-])[\s\"'`*:(\[]{0,12}|[\s\"'`:]{1,6}"
_SEED_WORD = r"(?:\d{1,2}[.):]\s{0,2})?([a-z]{3,8})(?:[\s,;\"'`\])]{1,6}|$|(?=[.!]))"
_SEED_WORDS_AT_LEAST, _SEED_WORDS_AT_MOST = 12, 24
# Frequent words that are on no list of seed words: there prose has resumed.
_NOT_A_SEED = word_set(
    "the and your are was for from not our his her which would could but has been were phrase must keep their these"
    " those never store write down into than them they"
)


def _seeds(text: str) -> Iterator[Hit]:
    """Yield twelve to twenty-four short lower-case words after "seed phrase", "mnemonic" and the like."""
    for head in rx(_SEED).finditer(text):
        lead = rx(_SEED_LEAD).match(text, head.end())
        words: list[re.Match[str]] = []
        at = lead.end() if lead else head.end()
        while len(words) < _SEED_WORDS_AT_MOST and (m := rx(_SEED_WORD).match(text, at)) and m[1] not in _NOT_A_SEED:
            words.append(m)
            at = m.end()
        if len(words) >= _SEED_WORDS_AT_LEAST:
            yield words[0].start(1), words[-1].end(1), "seed-phrase"


def _tables(text: str) -> Iterator[Hit]:
    """Yield the cells of Markdown tables in columns whose head names a secret."""
    columns: dict[int, Noun] = {}
    for above, line in pairwise(rx(r"[^\n]+").finditer(text)):
        if "--" in line[0] and "|" in above[0] and rx(r"[\s|:-]*+").fullmatch(line[0]):
            names = enumerate(above[0].strip().strip("|").split("|"))
            columns = {i: noun for i, name in names if (noun := noun_of(name.strip(" *`_"), ""))}
        elif "|" not in line[0]:
            columns = {}
        elif columns:
            yield from _cells(text, line, columns)


def _cells(text: str, line: re.Match[str], columns: dict[int, Noun]) -> Iterator[Hit]:
    at = line.start()
    first = 1 if line[0].lstrip().startswith("|") else 0
    for i, cell in enumerate(line[0].split("|")):
        if i - first in columns and cell.strip():
            noun, kind = columns[i - first]
            value = value_at(text, at + len(cell) - len(cell.lstrip()))
            if value and admits(value, noun, "stated"):
                yield value.start, value.end, kind
        at += len(cell) + 1


# What must occur, in lower case, for a structure to be looked for.
STRUCTURES = (
    (("private key", "private-lines:"), _pem),
    (("eyj",), _jwts),
    (("://",), _urls),
    (("authorization", "bearer", "basic "), _headers),
    (("?", "&"), _queries),
    (("cookie",), _cookies),
    ((" -", " /p:", "net user", "requirepass", "masterauth", "identified", "rabbitmqctl"), _commands),
    (("phrase", "mnemonic", "seed", "words"), _seeds),
    (("--|", "|--", "-- |", "| --", "|:-", "| :-"), _tables),
)


def encoded_secrets(text: str) -> Iterator[Hit]:
    """Yield base64 and percent-encoded runs that hold a secret (one level deep)."""
    for m in rx(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}").finditer(text):
        if _holds_secret(_unbase64(m[0])):
            yield m.start(), m.end(), "base64-secret"
    if "%" in text:
        for m in rx(r"(?:[\w.~+-]|%[0-9A-Fa-f]{2}){16,}+").finditer(text):
            if "%" in m[0] and _holds_secret(_unpercent(m[0])):
                yield m.start(), m.end(), "percent-secret"


def _holds_secret(inner: str) -> bool:
    looks = (vendor_hits, _pem, _jwts, _urls)
    return bool(inner) and any(True for look in looks for _ in look(inner))


def _unbase64(run: str) -> str:
    """Decode a base64 run, in either alphabet; empty if it is not text."""
    from binascii import Error, a2b_base64  # noqa: PLC0415  # start-up

    plain = run.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        return a2b_base64(plain[: len(plain) - (len(plain) % 4 == 1)] + "==").decode()
    except (Error, ValueError):
        return ""


def _unpercent(run: str) -> str:
    from urllib.parse import unquote  # noqa: PLC0415  # start-up

    return unquote(run)
