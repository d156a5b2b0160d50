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


@dataclass(frozen=True, slots=True)
class _Value:
    """What stands where a secret could stand."""

    text: str
    start: int
    end: int
    quoted: bool  # in quotes, backticks or bold: someone meant it literally
    closed: bool  # the clause ends after it


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
    if at and (text[at - 1].isalnum() and text[at - 1].isascii()):
        return 0
    m = _rx(tail).match(text, at + len(prefix))
    if not m or _rx(r"[xX*.0_-]+|.*(?i:your|example|placeholder|xxxxx)[-_.].*").fullmatch(m[0]):
        return 0
    # A bare word as prefix is also the start of ordinary names; so are `sk-` and its like before hyphenated words.
    if prefix.isalnum() and not _rx(r"\d").search(m[0]):
        return 0
    if _rx(r"[-_.]").search(m[0]) and not _complexity(m[0]):
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
_AUTHORIZATION = rf"(?i)authorization[\"']?\s{{0,3}}[:=,]\s{{0,3}}\\?[\"']?(?:({_SCHEMES})\s{{1,3}})?([^\s\"',;\\<>]{{6,4096}})"


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
        if name == "secret" or (_tokenish(value) and not (name in {"hash", "code", "key"} and _is_id(value))):
            if not _is_stop(value):
                yield m.start(2), m.start(2) + len(value), "query-" + re.sub(r"[^a-z0-9]+", "-", name).strip("-")[-20:]


_COOKIE_NAMES = r"(?i)sess|sid|auth|token|jwt|csrf|xsrf|remember|login|ticket|secret|credential|__host|__secure|connect"


def _cookies(text: str) -> Iterator[_Hit]:
    for line in _rx(r"(?i)cookie[\"']?(?:\s?[:=]|\s)\s{0,3}[\"']?([^\n]{1,4096})").finditer(text):
        for m in _rx(r"(?<![^\s;\"':])([^=;\s\"']{1,64})=([^;\s\"',]{6,2048})").finditer(text, line.start(1), line.end(1)):
            named = _rx(_COOKIE_NAMES).search(m[1])
            if _grade(m[2]) >= (_MIXED if named else _RANDOM) and not (_is_id(m[2]) and not named):
                yield m.start(2), m.end(2), "cookie"


# `-p` is a port or a parent directory in most commands; only in these is it a password.
_COMMANDS = (
    r"(?<![\w-])sshpass[ \t]{1,3}-p[ \t]?(\S{1,256})",
    r"(?<![\w-])(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|7z|7za)\b[^\n|;&]{0,160}?[ \t]-p(?![ \t])(\S{1,256})",
    r"(?<![\w-])(?:login|mongo|mongosh|mongodump|mongorestore|clickhouse-client|cqlsh|cypher-shell|impala-shell)\b"
    r"[^\n|;&]{0,160}?[ \t]-p[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])redis-cli\b[^\n|;&]{0,160}?[ \t]-a[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])(?:sqlcmd|bcp|zip|unzip|mosquitto_pub|mosquitto_sub)\b[^\n|;&]{0,160}?[ \t]-P[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])(?:ldapsearch|ldapadd|ldapmodify|ldapwhoami)\b[^\n|;&]{0,160}?[ \t]-w[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])(?:curl|http|https|wget|xh)\b[^\n|;]{0,200}?[ \t](?:-u|--user|-a|--auth)[ =]{1,3}[\"']?[\w.@%+\\-]{1,64}:([^\s\"']{1,256})",
    r"(?<![\w-])-u[ =]{0,2}\S{1,64}[ \t]{1,3}-p[ =]{0,2}(\S{1,256})",
    r"(?<![\w-])smbclient\b[^\n|;&]{0,160}?[ \t]-U[ \t]{1,3}[\"']?[^\s%]{1,64}%(\S{1,256})",
    r"(?<![\w-])-(?:storepass|keypass|password|passwd|pass)[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])-pass(?:in|out)?[ \t]{1,3}[\"']?pass:(\S{1,256})",
    r"(?<![\w/])/p:(\S{1,256})",
    r"(?<![\w-])htpasswd[ \t]{1,3}-\w{0,6}b\w{0,6}[ \t]{1,3}(?:\S{1,128}[ \t]{1,3})?\S{1,64}[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])net[ \t]{1,3}user[ \t]{1,3}\S{1,64}[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])(?:rabbitmqctl[ \t]{1,3}(?:add_user|change_password)|chpasswd)[ \t]{1,3}\S{1,64}[ \t]{1,3}(\S{1,256})",
    r"(?<![\w-])(?:requirepass|masterauth)[ \t]{1,3}(\S{1,256})",
    r"(?i)identified[ \t]{1,3}(?:with[ \t]{1,3}\w{1,40}[ \t]{1,3})?by[ \t]{1,3}(['\"][^'\"\n]{1,256}['\"])",
)


def _commands(text: str) -> Iterator[_Hit]:
    for pattern in _COMMANDS:
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
        if _rx(r"\s{0,8}\|?(?:\s{0,8}:?-{2,80}:?\s{0,8}\|?){1,30}\s{0,8}").fullmatch(line[0]) and "|" in above[0]:
            names = enumerate(above[0].strip().strip("|").split("|"))
            columns = {i: noun for i, name in names if (noun := _noun(name.strip(" *`_"), ""))}
        elif "|" not in line[0]:
            columns = {}
        elif columns:
            yield from _cells(text, line, columns)


def _cells(text: str, line: re.Match[str], columns: dict[int, tuple[str, str]]) -> Iterator[_Hit]:
    first = 1 if line[0].lstrip().startswith("|") else 0
    for i, cell in enumerate(_rx(r"[^|]*").finditer(line[0].rstrip())):
        # finditer yields an empty cell at every bar; even steps are the cells themselves.
        column = i // 2 - first
        if i % 2 == 0 and column in columns and cell[0].strip():
            value = _value_at(text, line.start() + cell.start() + len(cell[0]) - len(cell[0].lstrip()))
            if value and _admits(value, columns[column][0], "told"):
                yield value.start, value.end, columns[column][1]


_STRUCTURES = (
    (("private key", "private-lines:"), _pem),
    (("eyj",), _jwts),
    (("://",), _urls),
    (("authorization", "bearer", "basic "), _headers),
    (("?", "&"), _queries),
    (("cookie",), _cookies),
    ((" -", "/p:", "net user", "requirepass", "masterauth", "identified", "rabbitmqctl", "chpasswd"), _commands),
    (("phrase", "mnemonic", "seed", "words"), _seeds),
    (("--|", "|--", "-- |", "| --", "|:-", "| :-"), _tables),
)


# ---- layers 3 to 5: what a name gives away --------------------------------------------------------------------------

_NAMES = (
    r"pass(?:[ -]?(?:word|phrase|code|wort|key)|wd)?s?|pwd|(?<![a-z0-9])p/?w(?![a-z0-9])|psk|kennwort|contrase\u00f1a|senha"
    r"|mot de passe|wachtwoord|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|\u5bc6\u78bc|\u30d1\u30b9\u30ef\u30fc\u30c9"
    r"|\ube44\ubc00\ubc88\ud638|token|secret|cred|keys?(?![a-z])|(?<![a-z])pins?(?![a-z])|(?<![a-z])otp(?![a-z])"
    r"|codes?(?![a-z])|combination|(?<![a-z0-9])_?auth(?=[\"']?[ ]?[=:])"
)
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$")
_NAME_AT_MOST = 48

_KINDS = {
    **dict.fromkeys("password passwords passwd pwd pw psk passwort kennwort senha wachtwoord passkey".split(), ("password", "password")),
    **dict.fromkeys("passphrase passphrases".split(), ("password", "passphrase")),
    **dict.fromkeys("passcode passcodes".split(), ("password", "passcode")),
    **dict.fromkeys("token tokens".split(), ("token", "token")),
    **dict.fromkeys("secret secrets".split(), ("token", "secret")),
    **dict.fromkeys("credential credentials cred creds".split(), ("token", "credential")),
    **dict.fromkeys("pin pins otp".split(), ("pin", "pin")),
    "auth": ("token", "credential"),
    "apikey": ("token", "api-key"),
}
_KIND_ENDINGS = {
    "password": ("password", "password"),
    "passwd": ("password", "password"),
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
    " elastic grafana pagerduty newrelic relic okta auth0 snyk postmark resend segment amplitude mixpanel intercom zendesk"
    " hubspot plaid coinbase binance etherscan infura alchemy openweather newsapi rapidapi tavily serpapi brave deepgram"
    " elevenlabs replicate perplexity openrouter together fireworks".split()
)
_WIFI_HEADS = frozenset("wifi wi-fi wpa wpa2 wpa3 network security fi".split())
_CODE_HEADS = frozenset(
    "door gate alarm access entry security verification unlock safe garage building lockbox lock voicemail 2fa mfa otp"
    " authentication login auth backup recovery elevator apartment keypad pin sim puk vault".split()
)
_TAILS = frozenset(
    "value val prod production dev staging stage test live plain plaintext raw base64 b64 base str string text new old"
    " current default main primary secondary backup root admin db confirm confirmation again number code v".split()
)
_NOT_SECRET_HEADS = frozenset(
    "max min num n total count per input output prompt completion pad eos bos unk cls sep mask stop special start end next"
    " prev previous page continuation cursor public is has no use show hide require requires forgot hashed encrypted"
    " design lexer gpio led refresh_count invalid_count pagination".split()
)
_GENERIC_KINDS = frozenset(
    "password passphrase passcode token secret credential pin code key api-key access-key secret-key private-key auth-key"
    " query-key".split()
)


@lru_cache(maxsize=4096)
def _noun(name: str, prior: str) -> tuple[str, str] | None:
    """What a name says it holds: its class and its slug; None for `token_count` and `public_key`."""
    words = [word.lower() for word in _rx(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+").findall(name)]
    for i in range(len(words) - 1, -1, -1):
        kind = _kind_of(words[i], words[i - 1] if i else prior)
        if kind:
            head, tail = {prior, *words[:i]}, words[i + 1 :]
            if head & _NOT_SECRET_HEADS or any(word not in _TAILS and not word.isdigit() for word in tail):
                return None
            return kind
    return None


def _kind_of(word: str, prior: str) -> tuple[str, str] | None:
    if word in _KINDS:
        return _KINDS[word]
    if word == "pass":
        return ("password", "password") if prior else None
    if word in {"key", "keys"}:
        if prior in _WIFI_HEADS:
            return "password", "password"
        return ("token", f"{prior}-key") if prior in _KEY_HEADS else ("key", "key")
    if word in {"code", "codes", "combination"}:
        return ("pin", "code") if prior in _CODE_HEADS or word == "combination" else None
    return next((kind for ending, kind in _KIND_ENDINGS.items() if word.endswith(ending)), None) or _foreign(word)


def _foreign(word: str) -> tuple[str, str] | None:
    return ("password", "password") if not word.isascii() or word == "passe" else None
