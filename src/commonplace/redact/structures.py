"""Find secrets by their form: vendors' tokens, and the structures that carry credentials.

PEM blocks, JWTs, URLs, headers, queries, cookies, command lines, seed phrases, tables, and one look inside what is
encoded.  Not for prose or assignments, where a name announces a secret: those are in `sentences.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from commonplace.redact.names import Hit, Noun, noun_of, rx, word_set
from commonplace.redact.values import (
    MIXED,
    RANDOM_FROM,
    SecretCandidate,
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
            tail = f"[{alphabet}]{{{least},{most}}}+(?![A-Za-z0-9])"
            end = _tail_end(text, at, prefix, tail) or _broken_end(text, at, prefix, alphabet, (least, most))
            if end:
                yield at, end, kind
            at = text.find(prefix, max(end, at + len(prefix)))
    for kind, needle, pattern in SHAPES:
        if needle in text:
            yield from ((m.start(), m.end(), kind) for m in rx(pattern).finditer(text))
    if "AKIA" in text or "ASIA" in text:
        yield from _aws_secrets(text)


def _broken_end(text: str, at: int, prefix: str, alphabet: str, span: tuple[int, int]) -> int:
    """Return the end of a token that a line break cuts in two; 0 if it is none."""
    begin = at + len(prefix)
    run = rf"([{alphabet}]{{6,{span[1]}}}+)\\?\r?\n[ \t>|*#]{{0,12}}([{alphabet}]{{2,{span[1]}}}+)(?![A-Za-z0-9])"
    m = rx(run).match(text, begin)
    if not m or not span[0] <= len(m[1]) + len(m[2]) <= span[1]:
        return 0
    halves = [rx(r"\d").search(half) and complexity(half) for half in (m[1], m[2])]
    whole = prefix + m[1] + m[2]
    return m.end() if all(halves) and _tail_end(whole, 0, prefix, f"[{alphabet}]+") and not _runs_on(text, at) else 0


def _runs_on(text: str, at: int) -> bool:
    return rx(r"[A-Za-z0-9][-_]?$").search(text[max(0, at - 2) : at]) is not None


_DUMMY_TAIL = r"[xX*.0_-]+|.*(?i:your|example|placeholder|xxxxx)[-_.].*"
_WORDY_TAIL = r"[-_.]?(?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4})(?:[-_.](?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4}))+"


def _tail_end(text: str, at: int, prefix: str, tail: str) -> int:
    """Return the end of the token that starts with this prefix; 0 if it is none."""
    # Inside a longer run is no start: each round would find one more token at the end of a hostile run.
    if _runs_on(text, at):
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


_HEADER_CHARS = 500  # of a row that names columns


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


def _rows(text: str) -> Iterator[Hit]:
    """Yield the cells of comma- or tab-separated rows in columns whose head, in the first row, names a secret."""
    columns: dict[int, Noun] = {}
    separator, count = "", 0
    for line in rx(r"[^\n]+").finditer(text):
        if columns and line[0].count(separator) == count:
            yield from _row_cells(line, separator, columns)
            continue
        separator = next((one for one in "\t;|," if one in line[0]), "") if len(line[0]) <= _HEADER_CHARS else ""
        count, columns = line[0].count(separator) if separator else 0, {}
        if count:
            names = [name.strip(" \t\"'*`_\r") for name in line[0].split(separator)]
            if sum(map(bool, names)) > 1 and all(rx(r"[A-Za-z][\w .#-]{0,30}|").fullmatch(name) for name in names):
                columns = {i: noun for i, name in enumerate(names) if (noun := noun_of(name, ""))}


def _row_cells(line: re.Match[str], separator: str, columns: dict[int, Noun]) -> Iterator[Hit]:
    at = line.start()
    for i, cell in enumerate(line[0].split(separator)):
        core = cell.strip(" \t\"'`\r")
        if i in columns and core:
            start = at + cell.index(core)
            value = SecretCandidate(core, start, start + len(core), quoted=False, closed=True)
            noun, kind = columns[i]
            if noun != "pin" and admits(value, noun, "far" if noun in {"password", "passphrase"} else "stated"):
                yield value.start, value.end, kind
        at += len(cell) + 1


_CODES = (
    r"(?i)\b(?:recovery|backup|scratch|emergency|2fa|mfa|two-factor|one-time|single-use)[ -](?:login[ -])?codes?\b"
    r"(?:[ ]?\([^()\n]{1,40}\))?(?:[^\n:=\d]{0,40}?(?:[:=]|\bare\b|\bis\b))?[\s\"'`*:-]{0,12}"
)
_CODE = (
    r"(?:\d{1,2}[.)][ \t]{1,3})?[\"'`*-]{0,2}[ ]?"
    r"([A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,12}){0,5})(?![\w-])[\"'`*.]{0,2}"
    r"(?:[\s,;|/]{1,12}(?:(?:and|or)\s)?[*-]?[ ]?|$)"
)
_CODES_AT_LEAST, _CODES_AT_MOST = 2, 32


def _codes(text: str) -> Iterator[Hit]:
    """Yield every one of several recovery codes."""
    for head in rx(_CODES).finditer(text):
        found: list[re.Match[str]] = []
        at = head.end()
        while len(found) < _CODES_AT_MOST and (m := rx(_CODE).match(text, at)) and _is_code_like(m[1]):
            found.append(m)
            at = m.end()
        if len(found) >= _CODES_AT_LEAST and (len({len(m[1]) for m in found}) == 1 or any("-" in m[1] for m in found)):
            yield from ((m.start(1), m.end(1), "recovery-code") for m in found)


def _is_code_like(code: str) -> bool:
    """Digits, letters with digits, or groups of letters of one length, as no two words are."""
    groups = code.split("-")
    digits = sum(letter.isdigit() for letter in code)
    even = len(groups) > 1 and len({len(group) for group in groups}) == 1
    return (digits > 1 or (even and (digits == 1 or not _is_wordy(groups)))) and (code.isdigit() or not is_stop(code))


def _is_wordy(groups: list[str]) -> bool:
    return all(
        rx(r"(?i)[^aeiouy]{0,3}[aeiouy]{1,2}(?:[^aeiouy]{1,3}[aeiouy]{1,2}){0,3}[^aeiouy]{0,2}").fullmatch(one)
        for one in groups
    )


_PAIR_NAME = r"(?:name|key|field|variable|property|option|attribute)"
_NAMED_VALUES = (
    (  # {"name": "db_password", "value": "x"}; Name=DB_PASSWORD,Value=x
        rf"(?i)(?<![A-Za-z]){_PAIR_NAME}\\?[\"']?\s{{0,3}}[:=]\s{{0,3}}\\?([\"']?)(?P<name>[\w .-]{{1,64}})\\?\1"
        r"\s{0,3}[,;\n]\s{0,24}\\?[\"']?value\\?[\"']?\s{0,3}[:=]\s{0,3}(?=\S)"
    ),
    (  # <name>db.password</name> <value>x</value>, also of tables and property lists
        rf"(?i)<(?P<tag>{_PAIR_NAME}|td|th|dt)>\s{{0,40}}(?P<name>[\w .-]{{1,64}}):?\s{{0,40}}</(?P=tag)>"
        r"\s{0,40}<(?:value|string|td|dd)>\s{0,40}(?=[^<\s])"
    ),
)
_VALUE_FIRST = (  # {"value": "x", "name": "db_password"}
    r"(?i)[\"']value[\"']\s{0,3}:\s{0,3}[\"'](?P<value>[^\"'\n]{1,512})[\"']\s{0,3},\s{0,24}"
    rf"[\"']{_PAIR_NAME}[\"']\s{{0,3}}:\s{{0,3}}[\"'](?P<name>[\w .-]{{1,64}})[\"']"
)


def _named_values(text: str) -> Iterator[Hit]:
    """Yield the values of objects that have the name and the value in two fields."""
    for m in (m for pattern in _NAMED_VALUES for m in rx(pattern).finditer(text)):
        value = value_at(text, m.end())
        noun = noun_of(m["name"], "")
        if value and noun and admits(value, noun[0], "stated"):
            yield value.start, value.end, noun[1]
    for m in rx(_VALUE_FIRST).finditer(text):
        noun = noun_of(m["name"], "")
        value = SecretCandidate(m["value"], m.start("value"), m.end("value"), quoted=True, closed=True)
        if noun and admits(value, noun[0], "stated"):
            yield value.start, value.end, noun[1]


def _pgpass(text: str) -> Iterator[Hit]:
    """Yield the last field of `host:port:database:user:password`."""
    line = r"(?m)^[ \t]{0,8}[^\s:#]{1,128}:(?:54\d\d|64\d\d|3306|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s]{4,256})$"
    for m in rx(line).finditer(text):
        if not is_stop(m[1]):
            yield m.start(1), m.end(1), "password"


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
    (("pass", "pwd", "token", "secret", "key", "cred"), _rows),
    (("value", "<td", "<dd", "<string"), _named_values),
    (("code",), _codes),
    ((":54", ":64", ":3306:", ":*:"), _pgpass),
)


def encoded_secrets(text: str, named: Callable[[str], Iterable[Hit]]) -> Iterator[Hit]:
    """Yield base64, hexadecimal and percent-encoded runs that hold a secret (one level deep)."""
    for m in rx(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}").finditer(text):
        inner = _unbase64(m[0])
        if inner and (_holds_secret(inner) or (_is_plain(inner) and any(True for _ in named(inner)))):
            yield m.start(), m.end(), "base64-secret"
    for m in rx(r"(?<![A-Za-z0-9])(?:[2-7][0-9a-fA-F]|0[9aAdD]){16,}+(?![A-Za-z0-9])").finditer(text):
        inner = bytes.fromhex(m[0]).decode("ascii")
        if _holds_secret(inner) or any(True for _ in named(inner)):
            yield m.start(), m.end(), "hex-secret"
    if "%" in text:
        for m in rx(r"(?:[\w.~+-]|%[0-9A-Fa-f]{2}){16,}+").finditer(text):
            if "%" in m[0] and _holds_secret(_unpercent(m[0])):
                yield m.start(), m.end(), "percent-secret"


def _holds_secret(inner: str) -> bool:
    looks = (vendor_hits, _pem, _jwts, _urls)
    return bool(inner) and any(True for look in looks for _ in look(inner))


def _is_plain(inner: str) -> bool:
    """Return whether decoded text is what people and programs write: chance rarely gives only such letters."""
    return inner.isascii() and inner.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable()


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
