"""Take secrets out of a text and keep the sentence around them.  Pure: no store, no clock, no model, no settings.

It is not a proof that a text is harmless.  It knows vendors' prefixes (`vendors.py`), structures (PEM blocks, JWTs, URLs,
headers, cookies, command lines, seed phrases), assignments in any syntax, and sentences that tell a password.  A random
string that nothing names as a secret stays: commits, digests and ids are everywhere in an agent's memory.

Every repeat in a pattern is bounded or possessive, and patterns are compiled on first use, because this module is
imported on the start-up path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from commonplace.engine.vendors import PREFIXES, SHAPES

# A private-use character: stands for one mark or one found secret while scanning, and is dropped from what comes in.
_GONE = "\ue000"

# The redacted text must scan clean.  Two rounds settle ordinary text; the rest is for hostile ones.
_ROUNDS_AT_MOST = 8

_Hit = tuple[int, int, str]  # start, end, kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One secret that was taken out."""

    kind: str  # a slug: "github-pat", "password", "pem-private-key"
    start: int  # where it began in the original text
    end: int  # where it ended in the original text
    mark: str  # what stands in its place


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and what was taken out of it."""

    text: str  # the text to keep
    findings: tuple[Finding, ...]  # in the order of the text, never overlapping


class _Value(NamedTuple):  # not a dataclass, as is _Place: those two would double the cost of the import
    """What stands where a secret could stand."""

    text: str
    start: int
    end: int
    quoted: bool  # in quotes, backticks or bold: someone meant it literally
    closed: bool  # the clause ends after it


class _Place(NamedTuple):
    """Where a name stands, and how far around it the talk is of it."""

    start: int
    end: int
    since: int
    until: int


def redact(text: str, *, key: bytes = b"") -> Redacted:
    """Replace every secret by `[secret:<kind>:<4 hex>]`; equal secrets under one key get equal marks."""
    hits: list[_Hit] = []
    for _ in range(_ROUNDS_AT_MOST):
        seen, where = _seen(text, hits)
        fresh = _merged(seen, _scan(seen))
        if not fresh:
            break
        hits = sorted(hits + [(where[start], where[end - 1] + 1, kind) for start, end, kind in fresh])
    if not hits:
        return Redacted(text=text, findings=())
    findings = tuple(Finding(kind=kind, start=s, end=e, mark=_mark(text[s:e], kind, key)) for s, e, kind in hits)
    return Redacted(text=_replaced(text, findings), findings=findings)


def _mark(secret: str, kind: str, key: bytes) -> str:
    """Name the secret without giving it away; invisible characters do not make it another secret."""
    import hmac  # noqa: PLC0415  # start-up: pulls in OpenSSL

    plain = _seen(secret, [])[0].encode("utf-8", "surrogatepass")
    return f"[secret:{kind}:{hmac.digest(key, plain, 'sha256').hex()[:4]}]"


def _replaced(text: str, findings: tuple[Finding, ...]) -> str:
    pieces, at = [], 0
    for finding in findings:
        pieces += [text[at : finding.start], finding.mark]
        at = finding.end
    return "".join([*pieces, text[at:]])


# ---- the text as it is matched --------------------------------------------------------------------------------------

_INVISIBLE = "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\ue000\U000e0000-\U000e007f]"
_SKIPPED = rf"{_INVISIBLE}|\[secret:[a-z0-9-]{{1,40}}:[0-9a-f]{{4}}\]"


@cache
def _rx(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _folds() -> dict[int, str]:
    """Look-alikes, one character for one, so that positions stay."""
    folds = {wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)}
    folds |= dict.fromkeys([0xA0, 0x3000, 0x202F, 0x205F, *range(0x2000, 0x200B)], " ")
    folds |= dict.fromkeys([0x2028, 0x2029, 0x85], "\n")
    folds |= dict.fromkeys(map(ord, "‘’‚‛′"), "'") | dict.fromkeys(map(ord, "“”„‟«»″"), '"')
    return folds | dict.fromkeys(map(ord, "‐‑−"), "-")


def _seen(text: str, hits: list[_Hit]) -> tuple[str, range | list[int]]:
    """The text as it is matched, and where each of its characters came from.

    A mark and a found secret both become one character, so the second round sees what a second call would see.
    """
    cuts = [(start, end, _GONE) for start, end, _ in hits]
    if not text.isascii() or "[secret:" in text:
        cuts += [(m.start(), m.end(), _GONE if m[0][0] == "[" else "") for m in _rx(_SKIPPED).finditer(text)]
    folded = text if text.isascii() else text.translate(_folds())
    if not cuts:
        return folded, range(len(text))
    pieces, where, at = [], [], 0
    for start, end, kept in sorted(cuts):
        if start >= at:
            pieces += [folded[at:start], kept]
            where += [*range(at, start), *([start] if kept else [])]
            at = end
    return "".join([*pieces, folded[at:]]), [*where, *range(at, len(text))]


def _lower(text: str) -> str:
    """Lower case of the same length: a capital dotted I would grow by one and shift all that follows."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _merged(seen: str, hits: list[_Hit]) -> list[_Hit]:
    """Overlapping hits become one, so that no rest of a secret is left beside its mark; the more telling kind stays."""
    merged: list[_Hit] = []
    for start, end, kind in sorted(piece for hit in hits for piece in _pieces(seen, hit)):
        if merged and start < merged[-1][1]:
            first, last, known = merged[-1]
            merged[-1] = (first, max(last, end), kind if known in _GENERIC_KINDS else known)
        else:
            merged.append((start, end, kind))
    return merged


def _pieces(seen: str, hit: _Hit) -> Iterator[_Hit]:
    """A hit around an earlier mark is cut at the mark: what is gone stays gone."""
    start, end, kind = hit
    if _GONE not in seen[start:end]:
        yield hit
        return
    for m in _rx(rf"[^{_GONE}\s][^{_GONE}]*").finditer(seen, start, end):
        yield m.start(), m.end(), kind


def _scan(text: str) -> list[_Hit]:
    low = _lower(text)
    hits = list(_vendor_hits(text))
    for needles, look in _STRUCTURES:
        if any(needle in low for needle in needles):
            hits.extend(look(text))
    hits.extend(_named(text, low))
    hits.extend(_pairs(text, low))
    hits.extend(_encoded(text))
    return hits


# ---- layer 1: vendors -----------------------------------------------------------------------------------------------


def _vendor_hits(text: str) -> Iterator[_Hit]:
    for kind, prefix, alphabet, least, most in PREFIXES:
        at = text.find(prefix)
        while at >= 0:
            end = _tail_end(text, at, prefix, f"[{alphabet}]{{{least},{most}}}+(?![A-Za-z0-9])")
            if end:
                yield at, end, kind
            at = text.find(prefix, max(end, at + len(prefix)))
    for kind, needle, pattern in SHAPES:
        if needle in text:
            yield from ((m.start(), m.end(), kind) for m in _rx(pattern).finditer(text))
    if "AKIA" in text or "ASIA" in text:
        yield from _aws_secrets(text)


def _tail_end(text: str, at: int, prefix: str, tail: str) -> int:
    """Where the token that starts with this prefix ends; 0 if it is none."""
    # Inside a longer run of the same letters is no start; each round would find one more end of a hostile run.
    if _rx(r"[A-Za-z0-9][-_]?$").search(text[max(0, at - 2) : at]):
        return 0
    m = _rx(tail).match(text, at + len(prefix))
    if not m or _rx(r"[xX*.0_-]+|.*(?i:your|example|placeholder|xxxxx)[-_.].*").fullmatch(m[0]):
        return 0
    # A bare word as prefix is also the start of ordinary names; so are `sk-` and its like before hyphenated words.
    if prefix.isalnum() and not _rx(r"\d").search(m[0]):
        return 0
    if _rx(r"[-_.]?(?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4})(?:[-_.](?:[a-z]{1,20}|[A-Z]{1,20}|\d{1,4}))+").fullmatch(m[0]):
        return 0
    return m.start() + len(m[0].rstrip("."))


def _aws_secrets(text: str) -> Iterator[_Hit]:
    """The 40 characters that are told together with an access key id have no prefix of their own."""
    for m in _rx(r"(?:AKIA|ASIA)[A-Z0-9]{16}").finditer(text):
        near = _rx(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])").search(text, m.end(), m.end() + 200)
        if near and _complexity(near[0]):
            yield near.start(), near.end(), "aws-secret-key"


# ---- layer 2: structures --------------------------------------------------------------------------------------------

_PEM = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_PEM_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_PROSE_RESUMES = r"(?:\n|\\n)[ \t]{0,8}(?:\n|\\n)(?=[^\n]{0,40}[A-Za-z']{1,20} [A-Za-z']{1,20} [A-Za-z']{1,20})"


def _pem(text: str) -> Iterator[_Hit]:
    """A block to its END; a block cut off, to where prose goes on, or to the end of the text."""
    at, ends = 0, True
    while begin := _rx(_PEM).search(text, at):
        # Without the memory that no END is left, a text of nothing but BEGINs would take quadratic time.
        stop = _rx(_PEM_END).search(text, begin.end()) if ends else None
        ends = stop is not None
        at = stop.end() if stop else begin.end()
        if _rx(r"[A-Za-z0-9+/=]{8}").search(text, begin.end(), stop.start() if stop else begin.end() + 300):
            resumes = None if stop else _rx(_PROSE_RESUMES).search(text, at)
            at = at if stop else resumes.start() if resumes else len(text)
            yield begin.start(), at, "pem-private-key"
    for m in _rx(r"Private-Lines: \d{1,3}\s{1,2}((?:[A-Za-z0-9+/=]{1,80}\s{1,2}){1,200})").finditer(text):
        yield m.start(1), m.end(1), "putty-private-key"


def _jwts(text: str) -> Iterator[_Hit]:
    for m in _rx(r"(?<![\w-])(eyJ[\w-]{8,}+)\.[\w-]{2,}+(?:\.[\w-]*+){1,3}").finditer(text):
        header = _unbase64(m[1])
        if header.startswith("{") and '"alg"' in header:
            yield m.start(), m.end(), "jwt"


def _urls(text: str) -> Iterator[_Hit]:
    """Only the password of `scheme://user:password@host` goes; the rest says where, and is worth keeping."""
    for m in _rx(r"://([^\s/?#@:\"'<>]{0,128}):([^\s/?#\"'<>]{1,256})@(?=[\w\[$<{])").finditer(text):
        if not _is_stop(m[2]) or m[2].isdigit():
            yield m.start(2), m.end(2), "url-password"
    for m in _rx(r"://([A-Za-z0-9_-]{20,256})@(?=\w)").finditer(text):
        if _complexity(m[1]) >= _RANDOM_FROM:
            yield m.start(1), m.end(1), "url-token"


_SCHEMES = "basic|bearer|token|apikey|api-key|key|digest|bot|splunk|oauth|negotiate"
_AUTHORIZATION = rf"(?i)(?<![a-z])authorization[\"']?\s{{0,3}}[:=,]\s{{0,3}}\\?[\"']?(?:({_SCHEMES})\s{{1,3}})?([^\s\"',;\\<>]{{6,4096}})"


def _headers(text: str) -> Iterator[_Hit]:
    for m in _rx(_AUTHORIZATION).finditer(text):
        if not _is_stop(m[2]) and (_grade(m[2]) >= _MIXED or _basic(m[2]) or (m[1] and _odd(m[2]))):
            yield m.start(2), m.end(2), f"{(m[1] or 'authorization').lower()}-credential"
    for m in _rx(r"(?i)(?<![\w-])bearer[ :]{1,3}([\w.~+/=-]{16,4096})").finditer(text):
        secret = m[1].rstrip(".")
        if _grade(secret) >= _MIXED and _complexity(secret):
            yield m.start(1), m.start(1) + len(secret), "bearer-credential"
    for m in _rx(r"(?<!\w)[Bb]asic ([A-Za-z0-9+/_-]{8,512}={0,2})").finditer(text):
        if _basic(m[1]):
            yield m.start(1), m.end(1), "basic-credential"


def _basic(value: str) -> bool:
    user, colon, password = _unbase64(value).partition(":")
    return bool(user and colon and password and user.isprintable() and password.isprintable())


def _odd(value: str) -> bool:
    """Too long or too mixed in case for a word."""
    return len(value) >= 20 or bool(_rx(r"[a-z][A-Z]{1,9}[a-z]").search(value))


_QUERY = (
    r"(?i)[?&;#]((?:[\w.-]{0,30}[_.-])?(?:key|sig|signature|auth|hash|code|sid|jwt|session|sessionid|credential|secret))"
    r"=([^&\s\"'<>#;)\]]{6,2048})"
)


def _queries(text: str) -> Iterator[_Hit]:
    for m in _rx(_QUERY).finditer(text):
        value = m[2].rstrip(".,:!?")
        name = m[1].lower()
        if name == "secret" or (_tokenish(value) and not (name in {"hash", "code", "key"} and ("/" in value or _is_id(value)))):
            if not _is_stop(value):
                yield m.start(2), m.start(2) + len(value), "query-" + re.sub(r"[^a-z0-9]+", "-", name).strip("-")[-20:]


_COOKIE_NAMES = r"(?i)sess|sid|auth|token|jwt|csrf|xsrf|remember|login|ticket|secret|credential|__host|__secure|connect"


def _cookies(text: str) -> Iterator[_Hit]:
    for line in _rx(r"(?i)cookie[\"']?(?:\s?[:=]|\s)\s{0,3}[\"']?([^\n]{1,4096})").finditer(text):
        for m in _rx(r"(?<![^\s;\"':])([^=;\s\"']{1,64})=([^;\s\"',]{6,2048})").finditer(text, line.start(1), line.end(1)):
            named = _rx(_COOKIE_NAMES).search(m[1])
            if _grade(m[2]) >= (_MIXED if named else _RANDOM) and not (_is_id(m[2]) and not named):
                yield m.start(2), m.end(2), "cookie"


# `-p` is a port or a parent directory in most commands; only in these is it a password.  First, words that must occur.
_ARGS = r"[^\n|;&]{0,160}?[ \t]"
_COMMANDS = (
    ("sshpass", r"(?<![\w-])sshpass[ \t]{1,3}-p[ \t]?(\S{1,256})"),
    ("mysql mariadb 7z", rf"(?<![\w-])(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|7z|7za)\b{_ARGS}-p(?![ \t])(\S{{1,256}})"),
    ("login mongo clickhouse", rf"(?<![\w-])(?:login|mongo\w{{0,8}}|clickhouse-client)\b{_ARGS}-p[ \t]{{1,3}}(\S{{1,256}})"),
    ("redis-cli", rf"(?<![\w-])redis-cli\b{_ARGS}-a[ \t]{{1,3}}(\S{{1,256}})"),
    ("sqlcmd bcp zip mosquitto", rf"(?<![\w-])(?:sqlcmd|bcp|zip|unzip|mosquitto_\w{{3}})\b{_ARGS}-P[ \t]{{1,3}}(\S{{1,256}})"),
    ("ldap", rf"(?<![\w-])ldap\w{{3,8}}\b{_ARGS}-w[ \t]{{1,3}}(\S{{1,256}})"),
    (
        "curl http wget",
        r"(?<![\w-])(?:curl|https?|wget)\b[^\n|;]{0,200}?[ \t](?:-u|--user|-a|--auth)[ =]{1,3}[\"']?[\w.@%+\\-]{1,64}:([^\s\"']{1,256})",
    ),
    ("-u", r"(?<![\w-])-u[ =]{0,2}\S{1,64}[ \t]{1,3}-p[ =]{0,2}(\S{1,256})"),
    ("smbclient", rf"(?<![\w-])smbclient\b{_ARGS}-U[ \t]{{1,3}}[\"']?[^\s%]{{1,64}}%(\S{{1,256}})"),
    ("-storepass -keypass -pass -Pass", r"(?<![\w-])-(?:storepass|keypass|[Pp]assword|passwd|pass)[ \t]{1,3}(\S{1,256})"),
    ("pass:", r"(?<![\w-])-pass(?:in|out)?[ \t]{1,3}[\"']?pass:(\S{1,256})"),
    ("freerdp mstsc", rf"(?<![\w-])(?:[xw]freerdp|mstsc)\b{_ARGS}/p:(\S{{1,256}})"),
    ("htpasswd", r"(?<![\w-])htpasswd[ \t]{1,3}-\w{0,6}b\w{0,6}[ \t]{1,3}(?:\S{1,128}[ \t]{1,3})?\S{1,64}[ \t]{1,3}(\S{1,256})"),
    ("net user", r"(?<![\w-])net[ \t]{1,3}user[ \t]{1,3}\S{1,64}[ \t]{1,3}(\S{1,256})"),
    ("rabbitmqctl", r"(?<![\w-])rabbitmqctl[ \t]{1,3}(?:add_user|change_password)[ \t]{1,3}\S{1,64}[ \t]{1,3}(\S{1,256})"),
    ("requirepass masterauth", r"(?<![\w-])(?:requirepass|masterauth)[ \t]{1,3}(\S{1,256})"),
    (
        "identified IDENTIFIED",
        r"(?i)(?:user|to)[ \t]{1,3}\S{1,64}[ \t]{1,3}identified[ \t]{1,3}(?:with[ \t]{1,3}\w{1,40}[ \t]{1,3})?by[ \t]{1,3}(['\"][^'\"\n]{1,256}['\"])",
    ),
)


def _commands(text: str) -> Iterator[_Hit]:
    for needles, pattern in _COMMANDS:
        if not any(needle in text for needle in needles.split()):
            continue
        for m in _rx(pattern).finditer(text):
            value = _bare(m[1], m.start(1), text)
            if value and not _is_stop(value.text) and not value.text.startswith(("-", "/")):
                yield value.start, value.end, "password"


_SEED = r"(?i)(?:seed|recovery|mnemonic|backup|secret|wallet)[ -](?:phrase|words|seed|mnemonic)s?|\bmnemonic|\bseed(?=\s?[:=])"
_SEED_LEAD = r"[^\n:=]{0,60}?(?:\b(?:is|are|was)\b|[:=-])[\s\"'`*:(\[]{0,12}|[\s\"'`:]{1,6}"
_SEED_WORD = r"(?:\d{1,2}[.):]\s{0,2})?([a-z]{3,8})(?:[\s,;\"'`\])]{1,6}|$|(?=[.!]))"
# Frequent words that are on no list of seed words: they say that prose has begun again.
_NOT_A_SEED = frozenset(
    "the and your are was for from not our his her which would could but has been were phrase must keep their these"
    " those never store write down into than them they".split()
)


def _seeds(text: str) -> Iterator[_Hit]:
    """Twelve to twenty-four short lower-case words after "seed phrase", "mnemonic" and the like."""
    for head in _rx(_SEED).finditer(text):
        lead = _rx(_SEED_LEAD).match(text, head.end())
        words: list[re.Match[str]] = []
        at = lead.end() if lead else head.end()
        while len(words) < 24 and (m := _rx(_SEED_WORD).match(text, at)) and m[1] not in _NOT_A_SEED:
            words.append(m)
            at = m.end()
        if len(words) >= 12:
            yield words[0].start(1), words[-1].end(1), "seed-phrase"


def _tables(text: str) -> Iterator[_Hit]:
    """A Markdown table whose head names a column of secrets."""
    lines = list(_rx(r"[^\n]+").finditer(text))
    columns: dict[int, tuple[str, str]] = {}
    for above, line in zip(lines, lines[1:], strict=False):
        if "--" in line[0] and "|" in above[0] and _rx(r"[\s|:-]*+").fullmatch(line[0]):
            names = enumerate(above[0].strip().strip("|").split("|"))
            columns = {i: noun for i, name in names if (noun := _noun(name.strip(" *`_"), ""))}
        elif "|" not in line[0]:
            columns = {}
        elif columns:
            yield from _cells(text, line, columns)


def _cells(text: str, line: re.Match[str], columns: dict[int, tuple[str, str]]) -> Iterator[_Hit]:
    at = line.start()
    first = 1 if line[0].lstrip().startswith("|") else 0
    for i, cell in enumerate(line[0].split("|")):
        if i - first in columns and cell.strip():
            noun, kind = columns[i - first]
            value = _value_at(text, at + len(cell) - len(cell.lstrip()))
            if value and _admits(value, noun, "told"):
                yield value.start, value.end, kind
        at += len(cell) + 1


_STRUCTURES = (
    (("private key", "private-lines:"), _pem),
    (("eyj",), _jwts),
    (("://",), _urls),
    (("authorization", "bearer", "basic "), _headers),
    (("?", "&"), _queries),
    (("cookie",), _cookies),
    ((" -", " /p:", "net user", "requirepass", "masterauth", "identified", "rabbitmqctl", "chpasswd"), _commands),
    (("phrase", "mnemonic", "seed", "words"), _seeds),
    (("--|", "|--", "-- |", "| --", "|:-", "| :-"), _tables),
)


# ---- layers 3 to 5: what a name gives away --------------------------------------------------------------------------

_FOREIGN = (
    r"(?<![a-z])(?:kennwort|passwort|contraseña|senha|mot de passe|wachtwoord)(?![a-z])"
    r"|пароль|密码|密碼|パスワード|비밀번호|비번|암호|패스워드"
)
_MISSPELT = "passowrd|paasword|pasword|passwrd|passwrod|pssword"
_NAMES = (
    rf"{_FOREIGN}|{_MISSPELT}|pass(?:[ -]?(?:word|phrase|code|key)|wd)?s?|pwd|(?<![a-z0-9])p/?w(?![a-z0-9])|psk|token|secret|cred"
    r"|keys?(?![a-z])|(?<![a-z])(?:pin|otp)s?(?![a-z])|codes?(?![a-z])|combination|(?<![a-z0-9])_?auth(?=[\"']?[ ]?[=:])"
)
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$")
_NAME_AT_MOST = 48
# Three names with no more than this between the first and the third hold no values between them.
_DENSE = 20

_PASSWORD = ("password", "password")
_KINDS = {
    **dict.fromkeys(("password", "passwords", "passwd", "pwd", "pw", "psk", "passkey", *_MISSPELT.split("|")), _PASSWORD),
    **dict.fromkeys(("passphrase", "passphrases"), ("password", "passphrase")),
    **dict.fromkeys(("passcode", "passcodes"), ("password", "passcode")),
    **dict.fromkeys(("token", "tokens"), ("token", "token")),
    **dict.fromkeys(("secret", "secrets"), ("token", "secret")),
    **dict.fromkeys(("credential", "credentials", "cred", "creds", "auth"), ("credential", "credential")),
    **dict.fromkeys(("pin", "pins", "otp", "otps"), ("pin", "pin")),
}
# Names written in one word: `dbpassword`, `authtoken`.
_ENDINGS = {
    "password": _PASSWORD,
    "passwd": _PASSWORD,
    "passphrase": ("password", "passphrase"),
    "token": ("token", "token"),
    "secret": ("token", "secret"),
    "apikey": ("token", "api-key"),
    "accesskey": ("token", "access-key"),
    "secretkey": ("token", "secret-key"),
    "privatekey": ("token", "private-key"),
    "authkey": ("token", "auth-key"),
}
_KEY_HEADS = frozenset(
    "api access secret private signing encryption decryption master account storage auth authentication service deploy"
    " webhook recovery activation license licence product admin client shared subscription app application consumer hmac"
    " session cipher aes root vault bot server integration developer dev prod production staging live test backup cdn smtp"
    " openai anthropic claude stripe aws azure gcp google gemini maps mapbox algolia datadog sentry sendgrid mailgun"
    " mailchimp twilio github gitlab bitbucket cloudflare digitalocean heroku vercel netlify supabase firebase shopify"
    " paypal square slack discord telegram notion linear airtable figma huggingface cohere mistral groq pinecone weaviate"
    " elastic grafana pagerduty relic okta auth0 snyk postmark resend segment amplitude mixpanel intercom zendesk hubspot"
    " plaid coinbase binance etherscan infura alchemy rapidapi tavily serpapi brave deepgram elevenlabs replicate"
    " perplexity openrouter together fireworks".split()
)
_WIFI_HEADS = frozenset(("wifi", "fi", "wpa", "wpa2", "wpa3", "network", "wlan"))
_CODE_HEADS = frozenset(
    "door gate alarm access entry security verification unlock safe garage building lockbox lock voicemail 2fa mfa otp"
    " authentication login auth backup recovery elevator apartment keypad pin sim puk vault".split()
)
_TAILS = frozenset(
    "value val prod production dev staging stage test live plain plaintext raw base64 b64 base str string text new old"
    " current default main primary secondary backup root admin db confirm confirmation again number code".split()
)
_NOT_SECRET_HEADS = frozenset(
    "max min num n total count per input output prompt completion pad eos bos unk cls sep mask stop special start end next"
    " prev previous page continuation cursor pagination starting idempotency request change public is has no use show hide"
    " require requires forgot hashed encrypted design lexer gpio led".split()
)
_GENERIC_KINDS = frozenset(
    ("password", "passphrase", "passcode", "token", "secret", "credential", "pin", "code", "key", "cookie", "query-key")
) | {f"{head}-key" for head in _KEY_HEADS}


def _named(text: str, low: str) -> Iterator[_Hit]:
    names = list(_names(text, low))
    done = 0
    for i, (start, end, noun) in enumerate(names):
        # A sentence about one name ends at the second next: otherwise a text of nothing but names would be read often.
        since = names[i - 2][1] if i > 1 else 0
        until = names[i + 2][0] if i + 2 < len(names) else len(text)
        if start < done or (until - end <= _DENSE and i + 2 < len(names)):
            continue
        for value in _values(text, _Place(start, end, since, until), noun[0]):
            yield value.start, value.end, noun[1]
            done = max(done, value.end)


def _names(text: str, low: str) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Every name of a secret in the text, with what it says it holds."""
    end = 0
    for m in _rx(_NAMES).finditer(low):
        if m.start() < end:
            continue
        start, end = _name_span(text, m)
        if text[start - 1 : start] == ":" and _rx(r"arn:|::").search(text, max(0, start - 80), start):
            continue
        noun = _noun_at(text, low, m, start, end)
        if noun and noun[0] == "key" and "api" in low[max(0, start - 24) : end + 48]:
            noun = ("token", "api-key")
        if noun:
            yield start, end, noun


def _name_span(text: str, m: re.Match[str]) -> tuple[int, int]:
    """From the word to the whole identifier around it: `password` in `spring.datasource.password`."""
    start, end = m.span()
    least, most = max(0, start - _NAME_AT_MOST), min(len(text), end + _NAME_AT_MOST)
    while start > least and text[start - 1] in _NAME_CHARS:
        start -= 1
    while end < most and text[end] in _NAME_CHARS:
        end += 1
    while end > m.end() and text[end - 1] in ".-$":
        end -= 1
    return start, end


def _prior(low: str, start: int) -> str:
    """The word before, if only a blank or a hyphen is between."""
    end = start - (low[max(0, start - 1) : start] in {" ", "-"})
    at, least = end, max(0, end - 24)
    while at > least and low[at - 1].isalnum():
        at -= 1
    return low[at:end]


def _noun_at(text: str, low: str, m: re.Match[str], start: int, end: int) -> tuple[str, str] | None:
    if _rx(_FOREIGN).fullmatch(low, *m.span()):
        return _PASSWORD
    if low[start:end] == "pass":
        return _PASSWORD if _is_label(text, start, end) else None
    return _noun(text[start:end], _prior(low, start))


def _is_label(text: str, start: int, end: int) -> bool:
    """ "pass" alone is a verdict of tests, a mountain road, a verb: a user must come before, or a value right after."""
    user = _rx(r"(?i)user|login|account|e-?mail|smtp|ssid|admin|root|\bid\b").search(text, max(0, start - 80), start)
    return bool(_rx(r"\s?(?:[:=/]|is\b)" if user else r"[:=](?=\S)").match(text, end)) and (bool(user) or text[start] == "p")


@lru_cache(maxsize=4096)
def _noun(name: str, prior: str) -> tuple[str, str] | None:
    """What a name says it holds: its class and its slug; None for `token_count` and `public_key`."""
    name = _rx(r"(?i)(?<=pass)[ -](?=word|phrase|code|key)|(?<=p)/(?=w)").sub("", name)
    words = [word.lower() for word in _rx(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+").findall(name)]
    for i in range(len(words) - 1, -1, -1):
        kind = _kind_of(words[i], words[i - 1] if i else prior)
        if kind:
            tail_is_plain = all(word in _TAILS or word.isdigit() for word in words[i + 1 :])
            return kind if tail_is_plain and not {prior, *words[:i]} & _NOT_SECRET_HEADS else None
    return None


def _kind_of(word: str, prior: str) -> tuple[str, str] | None:
    if word in _KINDS:
        return _KINDS[word]
    if word == "pass":
        return _PASSWORD if prior else None
    if word in {"key", "keys"}:
        known = ("token", f"{prior}-key") if prior in _KEY_HEADS else ("key", "key")
        return _PASSWORD if prior in _WIFI_HEADS else known
    if word in {"code", "codes", "combination"}:
        return ("pin", "code") if prior in _CODE_HEADS else None
    return next((kind for ending, kind in _ENDINGS.items() if word.endswith(ending)), None)


# ---- where a named value stands -------------------------------------------------------------------------------------

_ASSIGN = r"""(?xi)
    ["']?[ \t]{0,3},?\s{1,40}["']?value["']?\s{0,3}[:=]\s{0,3}               # name: PASSWORD / value: x
  | \s?:\s?[A-Z_][\w.<>\[\],|?]{0,40}\s?=\s{0,3}(?=["'`])                     # password: str = "x"
  | (?<=\w)\\?["']\s{0,2},\s{0,3}(?=["']) | \(\s{0,2}(?=["'])                   # define('PASSWORD', 'x'), set_password("x")
  | (?:\s{0,3}[(\[][^()\[\]\n]{1,40}[)\]])? [\\"'`*_\]]{0,5} [ \t]{0,10}
    (?: => | := | -> | → | ⇒ | <- | ={1,3} | ::? | (?<=[ \t])\|(?=[ \t]) ) (?!//) [*_]{0,3} [ \t]{0,10}
    (?: !!\w{1,12}[ ] | [|>]?[+-]?\r?\n[ \t>*-]{0,10} )?
"""
_XML = r"(?:\s[^<>\n]{0,80})?>(?=[^<\n]{1,512}</)"

_BE = r"is|was|are|were|be|been|being|ist|lautet|est|es|equals?|becomes|became|remains|stays|reads"
_HELP = (
    r"will|should|must|would|has|have|had|to|as|set|changed|reset|updated|rotated|switched|now|currently|still|just"
    r"|actually|literally|simply|always|again|temporarily|both|like|something|the\s+following|as\s+follows"
)
_LINK = (
    rf"(?i)(?<!\s)(?:(?:'s|\s{{1,3}}(?:{_BE}|{_HELP}))(?=[\s:=])(?:\s{{1,3}}(?:{_BE}|{_HELP})(?=[\s:=])){{0,6}}\s{{0,3}}[:=]?\s{{1,3}}"
    r"|[,;:.]?\s{1,3}(?:(?:then|just|please)\s{1,3})?(?:type|enter|try|use)\s{1,3}"
    r"|\s{0,3}(?:=>|:=|->|→|⇒|={1,3}|:(?!//)|[—–]|-(?=\s))\s{0,3}|(?:是|为|為|は|が|은|는)\s?:?\s?)"
)
_STATES = rf"(?i)'s|\b(?:{_BE})\b|(?:set|changed|reset|updated|rotated|switched)\s+to|\b(?:type|enter|try|use)\b|[=:>→⇒—–-]|是|为|為|は|が|은|는"
# "Set the password of the guest account to x": the verb before the name makes "to" tell the value.
_SETS = r"(?i)\b(?:set|sets|change|changed|reset|resetting|update|updated|rotate|rotated|switch|switched)\b"
_STATES_TO = _STATES + r"|\sto\s"
_SENTENCE_END = r"[.!?](?=\s)(?!\s{1,3}(?:[Ii]t|[Tt]hat)(?:'s|\s(?:is|was))\s)|\n"
# What may not follow: "the password POLICY is x" tells of the policy.
_COMPOUNDS = frozenset(
    "manager managers policy policies reset resets hash hashes hashing field fields prompt provider providers issuer"
    " algorithm rotation generator generation length hint file files name names id ids type types format endpoint url store"
    " storage vault service server column variable parameter check checker strength validation authentication auth"
    " protection protected count counts limit limits bucket ring refresh exchange expiry expiration lifetime ttl management"
    " handling header headers cookie scanning scanner detection tool group chain chains pair pairs usage based stuffing"
    " cracking dump list lists book entry table dialog box input page screen form change changes update updates request"
    " requests response error errors message mismatch requirement requirements rule rules setting settings option options"
    " complexity history recovery sharing sync syntax stream sequence classification embedding budget window price sale"
    " standard contract pool leak leaks breach access holder owner version number per path env envs".split()
)
_REACH = 80


def _values(text: str, place: _Place, noun: str) -> Iterator[_Value]:
    """The values that this name gives away: the first place that holds one, and its companions after a plural."""
    for value, how in _candidates(text, place):
        if _GONE in value.text:
            return
        if _admits(value, noun, how):
            yield _whole(text, value)
            if text[place.end - 1] in "sS":
                yield from _companions(text, value, noun)
            return


def _whole(text: str, value: _Value) -> _Value:
    """A secret longer than what was looked at goes to its end."""
    if value.quoted or value.end - value.start < _LOOKED_AT:
        return value
    rest = _rx(r"[^\s\"'`<>,;]*+").match(text, value.end)
    return value._replace(end=rest.end()) if rest else value


def _companions(text: str, value: _Value, noun: str) -> Iterator[_Value]:
    """ "The keys are a, b and c"."""
    for _ in range(24):
        more = _rx(r"[\"'`]?(?:\s{0,2}(?:,|;|/|&|\band\b|\bor\b)){1,2}\s{0,2}|[\"'`]?\s{0,2}\n[ \t*-]{0,8}").match(text, value.end)
        following = _value_at(text, more.end()) if more else None
        if not following or not _admits(following, noun, "direct"):
            return
        yield following
        value = following


def _candidates(text: str, place: _Place) -> Iterator[tuple[_Value, str]]:
    start, end = place.start, place.end
    for value, how in _assigned(text, start, end):
        yield value, how
        # What is assigned is the value, secret or not.  A word is none, so prose goes on: "Password: it was reset to x".
        return
    yield from _linked(text, place)
    gap = _rx(r"[,?]?[ \t]{1,3}[(\u2013\u2014]?").match(text, end)
    if gap and (value := _value_at(text, gap.end())):
        yield value, "flag" if text.startswith("--", start) else "direct"
    yield from _reversed(text, place)
    yield from _beside(text, place)


def _assigned(text: str, start: int, end: int) -> Iterator[tuple[_Value, str]]:
    xml = _rx(_XML).match(text, end) if text[max(0, start - 1) : start] in {"<", ":"} else None
    link = xml or _rx(_ASSIGN).match(text, end)
    value = _value_at(text, link.end()) if link else None
    if not link or not value or ("," in link[0] and text[max(0, start - 2) : start - 1] != "("):
        return
    if _rx(r"[\n,(]").search(link[0]):
        yield value, "loose"
    elif not value.quoted and _is_code(text, start, value, link[0]):
        yield value, "code"
    else:
        yield value, "assigned"


def _is_code(text: str, start: int, value: _Value, link: str) -> bool:
    """`password: SecretStr` declares, `password = pw` and `connect(password=pw)` pass a name of a program."""
    if "=" not in link:
        return bool(_rx(r"[a-z][A-Z]").search(value.text))
    before = text[max(0, start - 200) : start]
    return link[0] == " " or text[value.end : value.end + 1] == ")" or before.count("(") > before.count(")")


def _linked(text: str, place: _Place) -> Iterator[tuple[_Value, str]]:
    """ "is", "was changed to", "for staging: " within the sentence."""
    start, end, reach = place.start, place.end, min(place.end + _REACH, place.until)
    stop = _rx(_SENTENCE_END).search(text, end + 1, reach)
    first = _rx(r"[ \t]{1,3}([A-Za-z]+)").match(text, end)
    states = _STATES_TO if _rx(_SETS).search(text, max(place.since, start - 32), start) else _STATES
    for link in _rx(_LINK).finditer(text, end, max(stop.start() if stop else reach, end + 2)):
        told, near = _rx(states).search(link[0]), link.start() == end
        if not near and not (told and _may_reach(text[end], first and first[1], told[0].strip())):
            continue
        value = _value_at(text, link.end())
        if value:
            yield value, "told" if near and told and told[0].lower() not in {"type", "enter", "try", "use"} else "far"


def _may_reach(after: str, first: str | None, told: str) -> bool:
    """Prose may put words between; the colons and equals signs of a program are not prose."""
    return first.lower() not in _COMPOUNDS if first else after in " \t,(['\"`" and told[0].isalpha()


def _reversed(text: str, place: _Place) -> Iterator[tuple[_Value, str]]:
    """ "use x as the password", "x is our staging key", "type x into the password field"."""
    follows = _rx(r"[ \t]{1,2}([A-Za-z]+)").match(text, place.end)
    field = bool(follows and follows[1] in {"field", "prompt", "box", "input"})
    if follows and not field and follows[1].lower() in _COMPOUNDS:
        return
    pivots = {"in", "into", "at"} if field else {"as", "is", "was", "are", "for", "that's"}
    lead = text[max(place.since, place.start - 120) : place.start].rpartition("\n")[2]
    words, at = lead.split(), len(lead)
    for i in range(len(words) - 1, max(0, len(words) - 9), -1):
        at = lead.rfind(words[i], 0, at)
        if words[i].lower() in pivots:
            i -= words[i - 1] in {"-", "\u2013", "\u2014"}
            if words[i] != "for" or words[max(0, i - 2)].lower() in _GIVES:
                yield from _ending_before(text, place.start - len(lead) + lead.rfind(words[i - 1], 0, at), place.start)
            return
        if words[i][-1] in ".!?:;":
            return


def _ending_before(text: str, at: int, end: int) -> Iterator[tuple[_Value, str]]:
    value = _value_at(text, at)
    if value and value.end <= end:
        yield value, "reversed"


_GIVES = frozenset("use using used enter type typed try put give with pick choose set".split())
_DIGESTS = r"(?i)\b(?:hash|id|ids|sha|sha1|sha256|digest|commit|checksum|fingerprint|uuid|version|public|arn|etag|revision|trace|request)\b"


def _beside(text: str, place: _Place) -> Iterator[tuple[_Value, str]]:
    """Layer 5: a random string in the same line, unless something there calls it a digest or an id."""
    line = text[place.end : min(place.end + _REACH, place.until)].partition("\n")[0]
    for word in _rx(r"\S{16,}").finditer(line):
        value = _value_at(text, place.end + word.start())
        if value and not _rx(_DIGESTS).search(line, 0, word.start()):
            yield value, "beside"


# ---- values ---------------------------------------------------------------------------------------------------------

_VALUE = (
    r"(?:[bBrRuU@](?=[\"']))?\\?(?P<q>\*\*|[\"'`])(?P<quoted>(?:(?!\\?(?P=q))[^\n]){1,512})\\?(?P=q)|(?P<bare>\S{1,160})"
)
# Enough of a value to judge it by; long values made texts of names and equals signs slow.
_LOOKED_AT = 100
_CUT = r"[\"`]|</|<br|\\[nrt\"]|[,;](?=\\?[\"']?[A-Za-z_][\w.-]{0,40}[\"']?\s?[=:])|&(?=[\w.-]{1,40}=)|\|$|,$|(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff]"
_CLOSED = r"[\"'`*_)\]}]{0,3}[ \t]{0,3}(?:$|[\r\n.,;!?)\]|<]|(?:for|on|and|but|please)\b|[—–-]\s)"
_UNITS = (
    r"(?i)[ \t-]{0,2}(?:digits?|char|chars|characters?|numbers?|letters?|bits?|bytes?|days?|hours?|minutes?|mins?|seconds?|secs?"
    r"|weeks?|months?|years?|times|attempts?|words?|tokens?|users?|people|percent|%|k\b|kb\b|mb\b|ms\b|usd\b|dollars?)"
)


def _value_at(text: str, at: int) -> _Value | None:
    m = _rx(_VALUE).match(text, at)
    if not m:
        return None
    if m["bare"]:
        return None if m["bare"].lower() in _STOP_WORDS else _bare(m["bare"], at, text)
    return _Value(m["quoted"].strip(), *_stripped(m, "quoted"), quoted=True, closed=True)


def _stripped(m: re.Match[str], group: str) -> tuple[int, int]:
    whole = m[group]
    return m.start(group) + len(whole) - len(whole.lstrip()), m.end(group) - len(whole) + len(whole.rstrip())


def _bare(word: str, at: int, text: str) -> _Value | None:
    """A value without quotes, less the punctuation of the sentence around it."""
    lead = len(word) - len(word.lstrip("(*'\""))
    cut = _rx(_CUT).search(word, lead)
    kept = word[lead : cut.start() if cut else len(word)]
    while kept and (kept[-1] in ".,;:?'\"*…" or (kept[-1] in ")]}>" and "([{<"[")]}>".index(kept[-1])] not in kept)):
        kept = kept[:-1]
    end = at + lead + len(kept)
    if not kept or (kept.isdigit() and _rx(_UNITS).match(text, end)):
        return None
    return _Value(kept, at + lead, end, quoted=False, closed=bool(_rx(_CLOSED).match(text, end)))


_WORD, _MIXED, _RANDOM = 1, 2, 3
# Characters in chunks that are neither words nor numbers, from which a string counts as random.
_RANDOM_FROM = 16


def _admits(value: _Value, noun: str, how: str) -> bool:
    """Whether the value is a secret, given what named it and how it was said."""
    if (noun != "pin" and _is_stop(value.text) and not value.text.isdigit()) or (how != "told" and not value.quoted and _is_identifier(value.text)):
        return False
    # Brackets and quotes inside: a piece of a program, unless it was plainly assigned.
    if not value.quoted and (noun != "password" or how not in {"assigned", "told"}) and _rx(r"[][(){}<>\"'`;]").search(value.text):
        return False
    match noun:
        case "password":
            return _admits_password(value, how)
        case "pin":
            return how in {"assigned", "told", "far", "direct", "code", "loose"} and _is_pin(value)
        case "key":
            return how in {"told", "far", "reversed"} and not value.text.startswith("/") and _grade(value.text) == _RANDOM and not _is_id(value.text)
        case _:
            return _admits_token(value, how) and not (noun == "credential" and _rx(r"[\w.@+-]{1,64}[:/]\S{1,64}").fullmatch(value.text))


def _admits_password(value: _Value, how: str) -> bool:
    secret = value.text
    if " " in secret:
        return value.quoted and how in {"assigned", "told", "far"} and _is_phrase(secret)
    if secret.isdigit():
        return len(secret) >= 4 and how not in {"far", "beside"}
    grade = _grade(secret.rstrip("!"))
    if how in {"assigned", "told", "flag"}:
        return grade >= _MIXED or value.quoted or (value.closed and len(secret) >= 4 and not _describes(secret))
    if how == "reversed":
        return grade >= _MIXED or (value.quoted and not _describes(secret))
    if how in {"code", "loose", "far"}:
        return grade >= _MIXED
    if how == "direct":
        return (grade >= _MIXED and len(secret) >= 6 and bool(_rx(r"\d").search(secret))) or (value.quoted and grade >= _WORD)
    return grade == _RANDOM and not _is_id(secret)


def _admits_token(value: _Value, how: str) -> bool:
    secret = value.text
    if " " in secret:
        return value.quoted and how == "assigned" and _is_phrase(secret)
    if how == "assigned" or (how == "told" and value.quoted):
        return _tokenish(secret) or _is_weak_key(secret)
    if how in {"told", "code", "flag", "loose"}:
        return _tokenish(secret) or (how == "flag" and _odd(secret))
    if how in {"far", "reversed"}:
        return _tokenish(secret) and len(secret) >= 12
    if how == "direct" and (_rx(r"[0-9a-f]{32,}").fullmatch(secret) or _rx(r"(?:[A-Za-z]*\d){3}\w*").fullmatch(secret)):
        return _complexity(secret) >= 8
    return _grade(secret) == _RANDOM and not _is_id(secret)


def _is_weak_key(value: str) -> bool:
    """Letters and a long number: `my-api-key-123456`, `AccountKey=key123`.  Weak, and still a key if assigned to one."""
    return len(value) >= 8 and _rx(r"[A-Za-z][\w-]*[A-Za-z_-]\d{3}|[\w-]*\d{6}").match(value) is not None


def _is_pin(value: _Value) -> bool:
    digits = sum(c.isdigit() for c in value.text)
    return 4 <= digits <= 12 and bool(_rx(r"[#*]?\d(?:[ -]?\d){2,11}[#*]?|[A-Z]{1,4}-?\d{3,8}[A-Z]?|\d{3,8}[A-Z]{1,2}").fullmatch(value.text))


def _is_phrase(value: str) -> bool:
    """Two to ten words, none of which belongs to the grammar of a sentence."""
    words = value.lower().split()
    return 2 <= len(words) <= 10 and all(word.isalnum() and word not in _FUNCTION_WORDS for word in words)


def _grade(value: str) -> int:
    """How unlike a word: a word, a mix of letters with digits or signs, or random."""
    if _complexity(value) >= _RANDOM_FROM:
        return _RANDOM
    letters, digits = _rx(r"[^\W\d_]").search(value), _rx(r"\d").search(value)
    if letters and len(value) >= 5 and (digits or _rx(r"[!@#$%^&*~\\]").search(value)):
        return _MIXED
    return _MIXED if len(_rx(r"[-_]?([A-Za-z][a-z]+)").findall(value)) >= 3 and _rx(r"[A-Za-z-]+").fullmatch(value) else _WORD


_SIMPLE = r"(?:[A-Z]{0,6}[a-z]{1,19}(?:[A-Z]{1,6}\d{0,2}[a-z]{2,15}){0,7}[A-Z]{0,6}|[A-Z]{1,19})?\d{0,4}|\d+[a-z]{0,2}"


def _complexity(value: str) -> int:
    """How many characters stand in chunks that are neither words nor numbers."""
    return sum(len(chunk) for chunk in _rx(r"[^\W_]+").findall(value) if not _rx(_SIMPLE).fullmatch(chunk))


def _tokenish(value: str) -> bool:
    grouped = _rx(r"[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7}").fullmatch(value)
    return len(value) >= 8 and (_complexity(value) >= 6 or grouped is not None)


# ---- layer 6: what is no secret -------------------------------------------------------------------------------------

_STOP = r"""(?xi)
    [x*•·.…_\-\#?=~]{3,} | ([^\d])\1{4,} | (.)\2{11,}                                              # xxxx, ****, aaaaa
  | <.* | \[.* | \{.* | \#\{.* | %\w+% | %[sdrv] | %\(\w+\)s.* | @\w+@ | :[a-z_]+ | &[a-z_]\w* | \*[a-z_]\w*
  | \$\{.* | \$\(.* | \$[A-Z_]+\d? | \$\w+(?:->|\[|:|\.).* | !(?:vault|ref|sub|secret|env|getatt|include)\b.*
  | (?:os\.|process\.|import\.meta\.|system\.|deno\.)?(?:environ|getenv|env)\b\W.* | [a-z_][\w.:>-]*[(\[].*        # look-ups, calls
  | (?:self|this|cls|config|settings|args|opts|options|params|req|request|ctx|context|user|data|form|body|app|env|secrets
      |vars?|local|module|conf|cfg|event|props|state|values|kwargs|row|obj|client|session|auth|record|node|parser)\.\w[\w.]*
  | [a-z_]+(?:\.[a-z_]+)+ | \w+://.* | (?:op|vault|ssm|arn|env|file|urn|data|keyring|kms|sha1|sha256|sha384|sha512|md5)[:/-].*
  | projects/.* | ssh-(?:rsa|dss|ed25519).* | ecdsa-sha2.* | AAAA[BCE]3NzaC.* | [A-Z]:\\.*
  | (?:~|\.{1,2})/[\w./-]+
  | [\w./-]+\.(?:pem|key|json|txt|env|ya?ml|toml|ini|cfg|conf|crt|cer|pub|p12|pfx|jks|py|js|ts|tsx|go|rs|rb|java|php|sh|md|csv|xml|html?|com|org|net|io|dev|local|internal)
  | [\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24} | \w+@localhost
  | v?\d+(?:[.:/-]\d+)+(?:T[\d:.]+)?Z? | [$€£]?[\d.,]+[%kKmM]?
  | \d+-?(?:bit|byte|char|character|day|digit|hour|minute|min|second|sec|week|month|year|word|letter|factor|step|way|time|x|k|kb|mb|ms)s?(?:-\w+)*
  | (?:sha|md|hmac|aes|rsa|hs|rs|es|ps|ecdsa|ed|base|utf|iso|oauth|auth|argon|bcrypt|scrypt|pbkdf|pkcs|tls|ssl|http|ipv|erc
      |bip|web|rfc|gpt|python|node|java|int|uint|float|varchar|char|uuid|ulid|x|fido|log|sql|neo|es)[-_/]?v?\d{1,5}
      (?:url|id|encoded|hash|o|j)?(?:[-_.](?:[a-z]+|\d{1,4}))*
  | [a-z0-9]+-(?:based|only|protected|encoded|signed|level|side|specific|sensitive|free|wide|style|like|type|compatible|aware
      |scoped|bound|time|length|long|backed|issued|managed|hashed|encrypted|generated|less|friendly|party|factor|to-\w+)(?:-\w+)*
  | AWS4-.* | .*(?:\.\.\.|…) | [^a-z0-9]+ | [)\]}>,;|&=].* | .*(?:placeholder|redacted|your[-_]).* | (?:1|one)password | \w+'s | [a-z]+(?:n't|'ll|'re|'ve)
"""
_ASKED_FOR = r"(?:your|insert|enter|put|replace|change|provide|some|add|my[-_])[a-z_-]*\d{0,2}"
_ID = r"""(?x)
    [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12} | [0-9a-f]{7,128} | [0-9A-F]{7,128}
  | [0-7][0-9A-HJKMNP-TV-Z]{25} | [0-9a-hjkmnp-tv-z]{20} | (?:i|vol|ami|sg|subnet|vpc|eni|snap|rtb|igw|lt|acl|nat)-[0-9a-f]{8,17}
  | (?:Qm|baf)[A-Za-z0-9]{40,60}
"""
_STOP_WORDS = frozenset(
    # no values
    "none null nil undefined true false yes no na n/a unset empty blank nothing something anything everything todo tbd"
    " fixme unknown missing default example sample dummy placeholder redacted masked hidden removed deleted omitted"
    " incomplete changeme changeit foo bar baz qux foobar test testing abc xyz value values string"
    # types and names in programs
    " str bytes int integer float bool boolean any object dict list tuple optional union secretstr number char varchar text"
    " blob uuid type void self this var let const func function def class return new await async yield import export"
    " input output data result response request config settings args kwargs params options body form field fields column"
    " variable argument parameter flag option prompt env environ getenv hash hashed digest salt plaintext cleartext raw"
    # what one says of passwords
    " wrong correct incorrect right weak strong secure insecure safe valid invalid expired required optional mandatory"
    " encrypted stored rotated shared same different long short enough fine good bad broken stale old current secret"
    " private public confidential sensitive important compromised leaked exposed visible disabled enabled locked unlocked"
    " revoked active inactive temporary permanent static dynamic random unique easy hard simple complex obvious trivial"
    " crucial critical key case-sensitive alphanumeric numeric ascii unicode utf8 base64 hex hexadecimal bcrypt scrypt"
    " argon2 jwt oauth oauth2 opaque longer shorter better worse next last first second more less most too very so really"
    " quite pretty almost nearly already available accessible present absent identical equal similar unchanged ready ok"
    " okay there here below above elsewhere somewhere nowhere never always often sometimes only just also not now then"
    " still yet again soon today tomorrow yesterday what which who whose where when why how that these those it its it's"
    " they them mine yours ours theirs his her hers my our your their the a an and or but if as at by for from in into of"
    " on onto off to up down out over under with without within via per than like until till since because while during"
    " before after about between against through across along around behind beyond is are was were be been being has have"
    " had do does did can could will would shall should may might must all both each every either neither some such many"
    " much few several one two three four five six seven eight nine ten got set going made needed used kept part based"
    " case subject due up-to-date automatically manually usually typically please see ask check use enter".split()
)
_FUNCTION_WORDS = frozenset(
    "the a an and or but if as at by for from in into of on to with without is are was were be been has have had do does"
    " can could will would shall should may might must not no your my our their his her its this that these those it you"
    " we they he she i all any some least than too very please enter contain contains characters character letters digits"
    " long short required needs need incorrect invalid wrong new password passwords token key secret here".split()
)


def _is_stop(value: str) -> bool:
    """Placeholders, look-ups, references, types, and words of the language; whoever named them."""
    plain = value.lower().strip("!*-_=#~.<>()[]{}")
    if len(plain) < 2 or plain in _STOP_WORDS or _rx(_STOP).fullmatch(value):
        return True
    if _rx(_ASKED_FOR).fullmatch(plain) and _rx(r"pass|pwd|token|key|secret|value|here|this|me|it").search(plain):
        return True
    if value.startswith("/"):
        return _complexity(value) < _RANDOM_FROM
    # `db_password`, `apiKey`, "password": names of secrets, unless written as one long word, as people do in passwords.
    is_name = _rx(r"[A-Za-z_.$-]+").fullmatch(value) and (plain in _KINDS or _rx(r"[a-z][A-Z]|[_.$-]").search(value))
    return bool(is_name) and _noun(value.rstrip("!"), "") is not None


def _is_identifier(value: str) -> bool:
    """`OAuth2Token`, `user1_password`: a name in a program that itself speaks of secrets."""
    speaks = r"(?:Password|Passwd|Token|Key|Secret|Credential)(?=[A-Z_]|s?$)|(?<![^_.])(?:password|token|key|secret)s?(?![^_.])"
    return bool(_rx(r"[\w.]*[A-Za-z_.]").fullmatch(value) and _rx(speaks).search(value))


def _is_id(value: str) -> bool:
    """Digests, UUIDs, ULIDs, our own ids, cloud resources: random, and no secret unless named as one."""
    return bool(_rx(_ID).fullmatch(value))


def _describes(word: str) -> bool:
    """An adjective or participle by its ending: "the password is guessable"."""
    return bool(_rx(r"(?i)\w{2,}(?:ed|ing|ly|able|ible|less|ful|ous|ive|'s)").fullmatch(word))


# ---- pairs of user and password -------------------------------------------------------------------------------------

_USER = r"([\"'`]?)(?P<user>(?!(?:user|username|name|id|login|email|host)\b)[\w.@+\\-]{2,64})\1"
_PAIRS = (
    r"(?i)(?<![\w-])(?:(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?in|logins?|creds?|credentials?)\b"
    r"[^\n/:=]{0,48}?(?:\s?[:=]|[ ](?:is|are|was|were|with|as|using|via))[ \t]{1,3}"
    + _USER + r"[ \t]{0,2}(?:[/:|,&-]|\band\b)[ \t]{0,2}(?=\S)",
    r"(?i)(?<![\w-])(?:id|user(?:name)?|login|account)[ ]?(?:/|&|\+|and|:|[ ])[ ]?p(?:ass(?:word|wd)?|wd?)s?\b"
    r"[ ]?(?:is\b|are\b|->|[:=(-]|(?=[ ]))[ ]?" + _USER + r"[ \t]{0,2}(?://|[/:|,(&-]|\band\b|(?<=[ ]))[ \t]{0,2}(?=\S)",
    r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}[ ]?(?:-{1,2}>|\()" + _USER + "/",
)
_USERS = frozenset("admin administrator root user guest test demo postgres ubuntu pi sa oracle mysql tomcat jenkins deploy".split())


def _pairs(text: str, low: str) -> Iterator[_Hit]:
    """ "login: bob / x", "credentials are bob:x", "id/pw bob/x"."""
    if not _rx(r"log|sign|cred|user|account|\bid\b|\d\.\d").search(low):
        return
    for m in (m for pattern in _PAIRS for m in _rx(pattern).finditer(text)):
        value = _value_at(text, m.end())
        if not value or _GONE in value.text or (_is_stop(value.text) and not value.text.isdigit()):
            continue
        known = m["user"].lower() in _USERS or "@" in m["user"]
        strong = _grade(value.text.rstrip("!")) >= _MIXED and _rx(r"[\d!@#$%^&*]").search(value.text)
        if strong or (value.text.isdigit() and len(value.text) >= 6) or (known and value.closed and len(value.text) >= 4):
            yield value.start, value.end, "password"


# ---- one look inside encodings --------------------------------------------------------------------------------------


def _encoded(text: str) -> Iterator[_Hit]:
    for m in _rx(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}").finditer(text):
        if _holds_secret(_unbase64(m[0])):
            yield m.start(), m.end(), "base64-secret"
    if "%" in text:
        for m in _rx(r"(?:[\w.~+-]|%[0-9A-Fa-f]{2}){16,}+").finditer(text):
            if "%" in m[0] and _holds_secret(_unpercent(m[0])):
                yield m.start(), m.end(), "percent-secret"


def _holds_secret(inner: str) -> bool:
    looks = (_vendor_hits, _pem, _jwts, _urls)
    return bool(inner) and any(True for look in looks for _ in look(inner))


def _unbase64(run: str) -> str:
    """What a base64 run says, in either alphabet; nothing if it says no text."""
    from binascii import Error, a2b_base64  # noqa: PLC0415  # start-up

    plain = run.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        return a2b_base64(plain[: len(plain) - (len(plain) % 4 == 1)] + "==").decode()
    except (Error, UnicodeDecodeError):
        return ""


def _unpercent(run: str) -> str:
    from urllib.parse import unquote  # noqa: PLC0415  # start-up

    return unquote(run)
