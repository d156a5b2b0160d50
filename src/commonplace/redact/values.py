"""Decide whether a value is a secret, given what named it.  Not a search: the caller passes the place.

A value is read with or without its quotes, held against a stop list (placeholders, look-ups, references, words of the
language), and graded by how unlike a word it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from commonplace.redact.names import KINDS, noun_of, rx, word_set

How = Literal["assigned", "code", "loose", "stated", "far", "flag", "direct", "reversed", "nearby"]


class SecretCandidate(NamedTuple):
    """The text at a place where a secret could be."""

    text: str
    start: int
    end: int
    quoted: bool  # in quotes, backticks or bold: someone meant it literally
    closed: bool  # the clause ends after it


_VALUE = (
    r"(?:\s{0,4}```\w{0,12}[ ]?\r?\n[ \t]{0,8})?"
    r"(?:(?:[bBrRuU@](?=[\"']))?\\?(?P<q>\*\*|[\"'`])(?P<quoted>(?:(?!\\?(?P=q))[^\n]){1,512})\\?(?P=q)"
    r"|<(?P<tag>b|strong|em|code|kbd)>(?P<tagged>[^<\n]{1,512})</(?P=tag)>|(?P<bare>\S{1,80}))"
)
# From this length on, a value is taken to its end; it was judged by its beginning, which bounds the work.
LONG = 60
_CUT = (
    r"[\"`]|</|<br|\\[nrt\"]|[,;](?=\\?[\"']?[A-Za-z_][\w.-]{0,40}[\"']?\s?[=:])|&(?=[\w.-]{1,40}=)|\|$|,$"
    r"|(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff]"
)
_CLOSED = r"[\"'`*_)\]}]{0,3}[ \t]{0,3}(?:$|[\r\n.,;!?)\]|<#]|//|(?:for|on|and|but|please)\b|[\u2013\u2014-]\s)"
_UNITS = (
    r"(?i)[ \t-]{0,2}(?:digits?|chars?|characters?|numbers?|letters?|bits?|bytes?|days?|hours?|minutes?|mins?|seconds?"
    r"|secs?|weeks?|months?|years?|times|attempts?|words?|tokens?|users?|people|percent|%|k\b|kb\b|mb\b|ms\b|usd\b|dollars?)"
)


def value_at(text: str, at: int) -> SecretCandidate | None:
    """Return the value that begins here, with or without quotes; None for a word of the language."""
    m = rx(_VALUE).match(text, at)
    if not m:
        return None
    if m["bare"]:
        return None if m["bare"].lower() in _STOP_WORDS else bare(m["bare"], m.start("bare"), text)
    start, whole = (m.start("quoted"), m["quoted"]) if m["quoted"] else (m.start("tagged"), m["tagged"])
    start, kept = start + len(whole) - len(whole.lstrip()), whole.strip()
    return SecretCandidate(kept, start, start + len(kept), quoted=True, closed=True) if kept else None


def bare(word: str, at: int, text: str) -> SecretCandidate | None:
    """Return a value without quotes, less the punctuation of the sentence around it."""
    lead = len(word) - len(word.lstrip("(*'\""))
    cut = rx(_CUT).search(word, lead)
    kept = word[lead : cut.start() if cut else len(word)]
    while kept and (kept[-1] in ".,;:?'\"*…" or (kept[-1] in ")]}>" and "([{<"[")]}>".index(kept[-1])] not in kept)):
        kept = kept[:-1]
    end = at + lead + len(kept)
    if not kept or (kept.isdigit() and rx(_UNITS).match(text, end)):
        return None
    return SecretCandidate(kept, at + lead, end, quoted=False, closed=bool(rx(_CLOSED).match(text, end)))


_WORD, MIXED, _RANDOM = 1, 2, 3
# Characters in chunks that are neither words nor numbers, from which a string counts as random, and as no name.
RANDOM_FROM = 16
_COMPLEX_FROM = 6
# Characters of a password that is a plain word or number, and of a key that has no known shape.
SHORTEST, _SHORTEST_KEY = 4, 8
_PIN_DIGITS_AT_MOST = 12


def admits(value: SecretCandidate, noun: str, how: How) -> bool:
    """Whether the value is a secret, given what named it and how the text states it."""
    return _judge(value.text, noun, how, quoted=value.quoted, closed=value.closed)


@lru_cache(maxsize=2048)
def _judge(text: str, noun: str, how: How, *, quoted: bool, closed: bool) -> bool:
    """Judge a value wherever it is: a hostile text repeats itself a hundred thousand times."""
    value = SecretCandidate(text, 0, 0, quoted=quoted, closed=closed)
    if noun == "pin":
        return how not in {"flag", "reversed", "nearby"} and _is_pin(value.text)
    if (is_stop(value.text) and not value.text.isdigit()) or (not value.quoted and _is_program(value.text, noun, how)):
        return False
    match noun:
        case "password" | "passphrase" | "pass":
            return _admits_password(value, "far" if noun == "pass" else how)
        case "key":
            return how in {"stated", "far", "reversed"} and is_random(value.text)
        case "credential":
            return _admits_token(value, how) and not rx(r"[\w.@+-]{1,64}[:/]\S{1,64}").fullmatch(value.text)
        case _:
            return _admits_token(value, how)


def _admits_password(value: SecretCandidate, how: How) -> bool:
    secret = value.text
    if " " in secret:
        return value.quoted and how in {"assigned", "stated", "far"} and is_phrase(secret)
    if secret.isdigit():
        return len(secret) >= SHORTEST and how not in {"far", "nearby"}
    mixed = grade(secret.rstrip("!")) >= MIXED or is_two_names(secret)
    ends = value.closed and how in {"stated", "far", "loose"}
    mixed = mixed or ((ends or how == "reversed") and is_camel(secret))
    match how:
        case "assigned" | "stated" | "flag":
            stands = value.closed and len(secret) >= SHORTEST and not describes(secret)
            return mixed or value.quoted or stands
        case "direct":
            names = is_two_names(secret) or (value.closed and is_camel(secret))
            return value.quoted or names or (mixed and rx(r"(?=.{6})\D*\d|.*[!#&@$%*]").match(secret) is not None)
        case "nearby":
            # Letters, digits and signs in one word are no prose.
            signs = r"(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9].*[!@#$%^&*]"
            return is_random(secret) or (len(secret) > _SHORTEST_KEY - 2 and rx(signs).match(secret) is not None)
        case _:
            return mixed or (how == "reversed" and value.quoted and not describes(secret))


def _admits_token(value: SecretCandidate, how: How) -> bool:
    secret = value.text
    if " " in secret:
        return value.quoted and how == "assigned" and is_phrase(secret)
    match how:
        case "assigned" | "stated" | "code" | "loose":
            weak = how == "assigned" or (how == "stated" and value.quoted)
            return is_tokenish(secret) or (weak and _is_weak_key(secret))
        case "flag":
            return is_tokenish(secret) or is_odd(secret)
        case "far" | "reversed":
            return is_tokenish(secret) and len(secret) > _SHORTEST_KEY + 3
        case _:
            digits = how == "direct" and rx(r"(?:[A-Za-z]*\d){3}\w*").fullmatch(secret)
            return is_random(secret) or (bool(digits) and complexity(secret) >= _SHORTEST_KEY)


def _is_program(value: str, noun: str, how: How) -> bool:
    """`OAuth2Token`, `user1_password`, `pw[0]`: a name or a piece of a program."""
    speaks = r"(?:Password|Passwd|Token|Key|Secret)(?=[A-Z_]|s?$)|(?<![^_.])(?:password|token|key|secret)s?(?![^_.])"
    named = rx(r"(?!.*\d{6})[\w.]*[A-Za-z_.]").fullmatch(value) and rx(speaks).search(value)
    if how != "stated" and named:
        return True
    stated = noun in {"password", "passphrase"} and how in {"assigned", "stated"}
    return not stated and rx(r"[][(){}<>\"'`;]").search(value) is not None


def _is_pin(value: str) -> bool:
    if rx(r"(?=\D*\d\D*\d)[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,7}").fullmatch(value):
        return True
    digits = sum(c.isdigit() for c in value)
    shape = r"[#*]?\d(?:[ -]?\d){2,11}[#*]?|[A-Z]{1,4}-?\d{3,8}[A-Z]?|\d{3,8}[A-Z]{1,2}"
    return SHORTEST <= digits <= _PIN_DIGITS_AT_MOST and rx(shape).fullmatch(value) is not None


def forget_values() -> None:
    """Let go of the values that were judged: none of them stays in memory longer than its text."""
    _judge.cache_clear()


def is_phrase(value: str) -> bool:
    """Two to ten words, none of which belongs to the grammar of a sentence."""
    words = value.lower().replace("-", " ").split()
    return len(words) in range(2, 11) and all(word.isalnum() and word not in _FUNCTION_WORDS for word in words)


def _is_weak_key(value: str) -> bool:
    """Letters and a long number, as in `my-api-key-123456`: weak, and still a key if assigned to one."""
    return len(value) >= _SHORTEST_KEY and rx(r"[A-Za-z][\w-]*[A-Za-z_-]\d{3}|[\w-]*\d{6}").match(value) is not None


def is_tokenish(value: str) -> bool:
    """Long enough for a key, and complex enough or in groups like a licence key."""
    grouped = rx(r"[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7}").fullmatch(value)
    return len(value) >= _SHORTEST_KEY and (complexity(value) >= _COMPLEX_FROM or grouped is not None)


def is_odd(value: str) -> bool:
    """Too long or too mixed in case for a word."""
    return rx(r".{20}|.*?[a-z][A-Z]{1,9}[a-z]").match(value) is not None


def is_random(value: str) -> bool:
    """Random, and not in the form of an id."""
    return grade(value) == _RANDOM and not is_id(value)


def grade(value: str) -> int:
    """Grade a value: a word, a mix of letters with digits or signs (or of three words and more), or random."""
    if complexity(value) >= RANDOM_FROM:
        return _RANDOM
    mixes = rx(r"[^\W\d_]").search(value) and rx(r"[\d!@#$%^&*~\\]").search(value)
    joined = rx(r"[A-Za-z][a-z]{1,15}(?:-[A-Za-z][a-z]{1,15}|[A-Z][a-z]{1,15}){2,9}").fullmatch(value)
    return MIXED if joined or (mixes and len(value) > SHORTEST) else _WORD


# A word, an acronym, a name in camel case, each with a number behind; or a number.
_SIMPLE = (
    r"(?:[A-Z]{0,6}[a-z]{1,19}(?:(?:\d{1,2}(?=[A-Z][a-z]{4}))?[A-Z]{1,6}\d{0,2}(?:[a-z]{2,15}|[dfnopsty](?![a-z]))){0,7}[A-Z]{0,6}|[A-Z]{1,19})?\d{0,4}"
    r"|\d+[a-z]{0,2}"
)


def complexity(value: str) -> int:
    """Count the characters in chunks that are neither words nor numbers."""
    return sum(len(chunk) for chunk in rx(r"[^\W_]+").findall(value) if not _is_simple(chunk))


def _is_simple(chunk: str) -> bool:
    """A quarter of the letters of a long name are vowels; of random letters, a fifth."""
    if not rx(_SIMPLE).fullmatch(chunk):
        return False
    return len(chunk) < RANDOM_FROM or 4 * len(rx(r"[aeiouyAEIOUY]").findall(chunk)) >= len(chunk.strip("0123456789"))


_STOP = r"""(?xi)
    # nothing: xxxx, ****, sk-..., punctuation, placeholders
    [x*•·.…_\-\#?=~]{3,} | ([^\d])\1{4,} | (.)\2{11,} | .*(?:\.\.\.|…) | [^a-z0-9]+ | [)\]}>,;|&=].*
  | .*(?:placeholder|redacted|your[-_]).* | (?:1|one)password | \w+'s | [a-z]+(?:n't|'ll|'re|'ve)
    # templates and variables
  | <.* | \[.* | \{.* | \#\{.* | %\w+% | %[sdrv].* | %\(\w+\)s.* | @\w+@ | :[a-z_]+ | &[a-z_]\w* | \*[a-z_]\w*
  | \$\{.* | \$\(.* | \$[A-Z_]+\d? | \$\w+(?:->|\[|:|\.).* | !(?:vault|ref|sub|secret|env|getatt|include)\b.*
    # look-ups, calls and attributes
  | (?:os\.|process\.|import\.meta\.|system\.|deno\.)?(?:environ|getenv|env)\b\W.* | [a-z_][\w.:>-]*[(\[].*
  | (?:self|this|cls|config|settings|args|opts|options|params|req|request|ctx|context|user|data|form|body|app|env
      |secrets|vars?|local|module|conf|cfg|event|props|state|values|kwargs|row|obj|client|session|auth|record|node
      |parser)\.\w[\w.]*
    # references: hosts, paths, files, vaults, digests, public keys, addresses
  | [a-z_]+(?:\.[a-z_]+)+ | \w+://.* | projects/.* | [A-Z]:\\.* | (?:~|\.{1,2})/[\w./-]+
  | (?:op|vault|ssm|arn|env|file|urn|data|keyring|kms|sha1|sha256|sha384|sha512|md5)[:/-].* | AWS4-.*
  | [\w./-]+\.(?:pem|key|json|txt|env|ya?ml|toml|ini|cfg|conf|crt|cer|pub|p12|pfx|jks|py|js|ts|tsx|go|rs|rb|java|php
      |sh|md|csv|xml|html?|com|org|net|io|dev|local|internal)
  | ssh-(?:rsa|dss|ed25519).* | ecdsa-sha2.* | AAAA[BCE]3NzaC.*
  | [\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24} | \w+@localhost
    # numbers: dates, versions, addresses, prices, measures
  | v?\d+(?:[.:/-]\d+)+(?:T[\d:.]+)?Z? | [$€£]?[\d.,]+[%kKmM]?
  | \d+-?(?:bit|byte|char|character|day|digit|hour|minute|min|second|sec|week|month|year|word|letter|factor|step|way
      |time|x|k|kb|mb|ms)s?(?:-\w+)*
    # standards: SHA-256, base64-encoded, OAuth2; and adjectives made of them
  | (?:sha|md|hmac|aes|rsa|hs|rs|es|ps|ecdsa|ed|base|utf|iso|oauth|auth|argon|bcrypt|scrypt|pbkdf|pkcs|tls|ssl|http|ipv
      |erc|bip|web|rfc|gpt|python|node|java|int|uint|float|varchar|char|uuid|ulid|x|fido|log|sql|neo)[-_/]?v?\d{1,5}
      (?:url|id|encoded|hash|o|j)?(?:[-_.](?:[a-z]+|\d{1,4}))*
  | [a-z0-9]+-(?:based|only|protected|encoded|signed|level|side|specific|sensitive|free|wide|style|like|type|compatible
      |aware|scoped|bound|time|length|long|backed|issued|managed|hashed|encrypted|generated|less|friendly|party|factor
      |to-\w+)(?:-\w+)*
"""
_ASKED_FOR = r"(?:your|insert|enter|put|replace|change|provide|some|add|my[-_])[a-z_-]*\d{0,2}"
_ID = r"""(?x)
    [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} | [0-9a-f]{7,128} | [0-9A-F]{7,128}
  | [0-7][0-9A-HJKMNP-TV-Z]{25} | [0-9a-hjkmnp-tv-z]{20} | (?:Qm|baf)[A-Za-z0-9]{40,60}
  | (?:i|vol|ami|sg|subnet|vpc|eni|snap|rtb|igw|lt|acl|nat)-[0-9a-f]{8,17}
"""
_STOP_WORDS = word_set(
    # no values
    "given taken shown chosen forgotten sent found held left alias none null nil undefined true false yes no na n/a"
    " unset empty blank nothing something anything everything todo tbd fixme pass unknown missing default example"
    " sample dummy placeholder redacted masked hidden removed deleted omitted incomplete changeme changeit foo bar"
    " baz qux foobar test testing abc xyz value values string"
    # types and names in programs
    " str bytes int integer float bool boolean any object dict list tuple optional union secretstr number char"
    " varchar text blob uuid type void self this var let const func function def class return new await async yield"
    " import export input output data result response request config settings args kwargs params options body form"
    " field fields column variable argument parameter flag option prompt env environ getenv hash hashed digest salt"
    " plaintext cleartext raw"
    # adjectives of passwords
    " wrong correct incorrect right weak strong secure insecure safe valid invalid expired required optional"
    " mandatory encrypted stored rotated shared same different long short enough fine good bad broken stale old"
    " current secret private public confidential sensitive important compromised leaked exposed visible disabled"
    " enabled locked unlocked revoked active inactive temporary permanent static dynamic random unique easy hard"
    " simple complex obvious trivial crucial critical key case-sensitive alphanumeric numeric ascii unicode utf8"
    " base64 hex hexadecimal bcrypt scrypt argon2 jwt oauth oauth2 opaque longer shorter better worse next last"
    " first second more less most too very so really quite pretty almost nearly already available accessible present"
    " absent identical equal similar unchanged ready ok known unclear clear lost gone stuck weird odd strange"
    " terrible awful great perfect nice bogus fake real legit official standard common usual normal typical special"
    " separate personal internal external local remote global single plain complicated tricky final initial original"
    " legacy deprecated obsolete outdated recent latest fresh older newer stronger weaker safer harder easier"
    " simpler bigger smaller higher lower hers himself itself myself written printed there here below above"
    " elsewhere somewhere nowhere never always often sometimes only just also not now then okay still yet again soon"
    " today tomorrow yesterday what which who whose where when why how that these those it its it's"
    # grammar
    " they them mine yours ours theirs his her my our your their the a an and or but if as at by for from in into of"
    " on onto off to up down out over under with without within via per than like until till since because while"
    " during before after about between against through across along around behind beyond is are was were be been"
    " being has have had do does did can could will would shall should may might must all both each every either"
    " neither some such many much few several one two three four five six seven eight nine ten got set going made"
    " needed used kept part based case subject due up-to-date automatically manually usually typically please see"
    " ask check use enter we you he she i me us him"
)
_FUNCTION_WORDS = word_set(
    "the a an and or but if as at by for from in into of on to with without is are was were be been has have had do"
    " does can could will would shall should may might must not no your my our their his her its this that these"
    " those it you we they he she i all any some least than too very please enter contain contains characters"
    " character letters digits long short required needs need incorrect invalid wrong new password passwords token"
    " key secret here"
)


def is_stop(value: str) -> bool:
    """Whether it is a placeholder, look-up, reference, type or word of the language, under any name."""
    plain = value.lower().strip("!*-_=#~.<>()[]{}")
    if len(plain) <= 1 or plain in _STOP_WORDS or (rx(_STOP).fullmatch(value) and not is_two_names(value)):
        return True
    if is_documented(value):
        return True
    if rx(_ASKED_FOR).fullmatch(plain) and rx(r"pass|pwd|token|key|secret|value|here|this|me|it").search(plain):
        return True
    if value.startswith("/"):
        return complexity(value) < RANDOM_FROM
    # `db_password`, `apiKey`, "password": names of secrets, unless written as one long word, as people do in passwords.
    is_name = rx(r"[A-Za-z_.$-]+").fullmatch(value) and (plain in KINDS or rx(r"[a-z][A-Z]|[_.$-]").search(value))
    return bool(is_name) and noun_of(value, "") is not None


# The first characters of the SHA-256 of keys that vendors print in their documents, open to everybody.
_DOCUMENTED = word_set("2cafc0970149a84f f2d6ca16515033e5 3543c50b0cb9cea8 7f75367e78812551 da816f9f2c16e6c5")


def is_documented(value: str) -> bool:
    """Return whether it is a key that a vendor prints as an example."""
    if rx(r"[A-Za-z0-9/+_-]{9,80}EXAMPLE(?:KEY)?").fullmatch(value):
        return True
    if not rx(r"sk_test_\w{24}|ghp_\w{36}|eyJ[\w.-]{60,200}").fullmatch(value):
        return False
    from hashlib import sha256  # noqa: PLC0415  # start-up

    return sha256(value.encode()).hexdigest()[:16] in _DOCUMENTED


def is_id(value: str) -> bool:
    """Digests, UUIDs, ULIDs, our own ids, cloud resources: random, and no secret unless named as one."""
    return bool(rx(_ID).fullmatch(value))


_PROGRAM_WORDS = word_set(
    "string text value settings password passwd token secret key empty length name user username system security config"
    " form input field type class object model view error exception builder provider manager service client request"
    " response data json hash encoder script case camel pascal snake kebab point drive box area store pass auth face"
    " book link encoder encoding crypto digest bcrypt plain forms controls windows resources properties account login"
)


def is_two_names(value: str) -> bool:
    """Return whether it is two capitalised words with a sign between or behind them: `Amber.Kettle`, `AmberKettle!`."""
    m = rx(r"([A-Z][a-z]{2,15})([._/&#@+*-]?)([A-Z][a-z]{2,15})([!#?$*.]?)").fullmatch(value)
    return bool(m and (m[2] or m[4]) and not {m[1].lower(), m[3].lower()} & _PROGRAM_WORDS)


def is_camel(value: str) -> bool:
    """Return whether it is two words written as one: `AmberKettle`, but neither `GitHub` nor `TextInput`."""
    m = rx(r"([A-Z][a-z]{3,15})([A-Z][a-z]{3,15})").fullmatch(value)
    return bool(m and not {m[1].lower(), m[2].lower()} & _PROGRAM_WORDS)


def describes(word: str) -> bool:
    """An adjective or participle by its ending: "the password is guessable"."""
    return bool(rx(r"(?i)\w{2,}(?:ed|ing|ly|able|ible|less|ful|ous|ive|'s)").fullmatch(word))
