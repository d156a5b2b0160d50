"""From the name of a secret to its value: assignments in any syntax, and sentences that state a password.

It is not a grammar.  It looks a bounded way around a name for the places where a value could be, most usual first;
`values.py` decides whether the text there is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from commonplace.redact.names import GONE, Hit, Noun, is_foreign, names_in, rx, word_set
from commonplace.redact.values import (
    LONG,
    MIXED,
    SHORTEST,
    How,
    SecretCandidate,
    admits,
    describes,
    grade,
    is_camel,
    is_phrase,
    is_stop,
    value_at,
)


class _Place(NamedTuple):
    """Where a name is, and how far around it the text is about it."""

    start: int
    end: int
    since: int
    until: int


# One name so many times in a row, with no more characters than this between, is a hostile text and names nothing.
_DRUM, _DRUM_GAP = 3, 4


def named_secrets(text: str, low: str) -> Iterator[Hit]:
    """Yield the secrets that names in the text point to."""
    names = list(names_in(text, low))
    done = 0
    for i, (start, end, noun) in enumerate(names):
        # A name's reach ends at the second next name; without that, a text of nothing but names is read many times.
        since = names[i - 2][1] if i > 1 else 0
        until = names[i + 2][0] if i + 2 < len(names) else len(text)
        if start < done or _is_drumming(low, names[i : i + _DRUM]):
            continue
        for value in _values(text, _Place(start, end, since, until), noun[0]):
            yield value.start, value.end, noun[1]
            done = max(done, value.end)


def _is_drumming(low: str, names: list[tuple[int, int, Noun]]) -> bool:
    close = all(after[0] - before[1] <= _DRUM_GAP for before, after in pairwise(names))
    return close and len(names) == _DRUM and len({low[start:end] for start, end, _ in names}) == 1


_ASSIGN = r"""(?xi)
    ["']?[ \t]{0,3},?\s{1,40}["']?value["']?\s{0,3}[:=]\s{0,3}               # name: PASSWORD / value: x
  | \s?:\s?[A-Z_][\w.<>\[\],|?]{0,40}\s?=\s{0,3}(?=["'`])                     # password: str = "x"
  | (?<=\w)\\?["']\s{0,2},\s{0,3}(?=["']) | \(\s{0,2}(?=["'])               # define('PASSWORD', 'x'), set_password("x")
  | (?:\s{0,3}[(\[][^()\[\]\n]{1,40}[)\]])? [\\"'`*_\]]{0,5} [ \t]{0,10}    # password (staging), "password", **password
    (?: => | :{1,3}= | [?+.]= | \?\?= | \|\|= | -> | → | ⇒ | <- | ={1,3} | ::?
      | (?<=[)\]][ ])[\u2013\u2014-](?=[ ]) | (?<=[ \t])\|(?=[ \t]) ) (?!//) [*_]{0,3} [ \t]{0,10}
    (?: !!\w{1,12}[ ] | [|>]?[+-]?\r?\n[ \t>*-]{0,10} )?                      # a YAML tag or block, or the next line
"""
_XML = r"(?:\s[^<>\n]{0,80})?>\s{0,40}(?=[^<\n]{1,512}\s{0,40}</)"

_BE = r"is|was|are|were|be|been|being|ist|lautet|est|es|è|é|equals?|becomes|became|remains|stays|reads"
_HELP = (
    r"will|should|must|would|has|have|had|to|as|from|set|changed|reset|updated|rotated|switched|now|currently|still|just"
    r"|actually|jetzt|nun|nu|ahora|agora|adesso|maintenant|literally|simply|always|again|temporarily|both|like|something|the\s+following|as\s+follows"
)
_GIVE = r"type|enter|try|use"
_LINK = (
    rf"(?i)(?<!\s)(?:(?:'s|\s{{1,3}}(?:{_BE}|{_HELP}))(?=[\s:=])(?:\s{{1,3}}(?:{_BE}|{_HELP})(?=[\s:=])){{0,6}}"
    rf"\s{{0,3}}[:=\u2013\u2014-]?\s{{1,3}}|[,;:.]?\s{{1,3}}(?:(?:then|just|please)\s{{1,3}})?(?:{_GIVE})\s{{1,3}}"
    r"|\s{0,3}(?:=>|:=|->|→|⇒|={1,3}|:(?!//)|[\u2013\u2014]|-(?=\s))\s{0,3}|(?:是|为|為|は|が|은|는)\s?:?\s?)"
)
_STATES = (
    rf"(?i)'s|\b(?:{_BE}|{_GIVE})\b|(?:set|changed|reset|updated|rotated|switched)\s+(?:to|from)"
    r"|[=:>→⇒\u2013\u2014-]|是|为|為|は|が|은|는"
)
# Between the name in another language and its value, within the clause.
_FOREIGN_LINK = (
    r"(?i)(?:[^\n.:=?!]{0,60}?\s(?:war|heißt|heisst|jest|to|je|är|er|var|on|olan|era|fue|sont)"
    r"|[^\n.:=?!]{0,40}?\s?[:\uff1a])\s{1,3}(?:(?:nu|jetzt|neu)\s)?"
)
# "Set the password of the guest account to x": the verb before the name makes "to" state the value.
_SETS = r"(?i)\b(?:set|sets|change|changed|reset|resetting|update|updated|rotate|rotated|switch|switched|went)\b"
_STATES_TO = _STATES + r"|\s(?:to|as|from)\s"
_OTHER_TO = ("due", "according", "thanks", "related", "access", "similar", "next")  # what "to" belongs to as well
_SENTENCE_END = r"[.!?](?=\s)(?!\s{1,3}(?:[Ii]t|[Tt]hat)(?:'s|\s(?:is|was))\s)|\n"
# "The password POLICY is x" is about the policy.
_COMPOUNDS = word_set(
    "manager managers policy policies reset resets hash hashes hashing field fields prompt provider providers"
    " issuer algorithm rotation generator generation length hint file files name names id ids type types format"
    " endpoint url store storage vault service server column variable parameter check checker strength validation"
    " authentication auth protection protected count counts limit limits bucket ring refresh exchange expiry"
    " expiration lifetime ttl management handling header headers cookie scanning scanner detection tool group chain"
    " chains pair pairs usage based stuffing cracking dump list lists book entry table dialog box input page screen"
    " form change changes update updates request requests response error errors message mismatch requirement"
    " requirements rule rules setting settings option options complexity history recovery sharing sync syntax stream"
    " sequence classification embedding budget window price sale standard contract pool leak leaks breach access"
    " holder owner version number per path env envs"
)
# How far from its name, in characters, a value is looked for.
_REACH = 80


def _values(text: str, place: _Place, noun: str) -> Iterator[SecretCandidate]:
    """Yield the values of this name: the first place that holds one, and its companions after a plural."""
    if noun == "passphrase" and (phrase := _phrase_after(text, place.end)):
        yield phrase
        return
    for value, how in _candidates(text, place):
        if GONE in value.text:
            return
        if admits(value, noun, how):
            yield _whole(text, value)
            yield from _companions(text, value, noun, _LISTED if text[place.end - 1] in "sS" else _NOW)
            return


def _phrase_after(text: str, end: int) -> SecretCandidate | None:
    """Return words up to the end of the clause: "the passphrase is correct horse battery staple"."""
    link = rx(_ASSIGN).match(text, end) or rx(_LINK).match(text, end)
    words = r"[a-z]{3,12}(?:[ -][a-z]{3,12}){2,9}(?=[ \t]{0,2}(?:[.,;!\n]|$))"
    m = rx(words).match(text, link.end()) if link else None
    if not m or not is_phrase(m[0]) or describes(m[0].split()[0]):
        return None
    return SecretCandidate(m[0], m.start(), m.end(), quoted=False, closed=True)


def _whole(text: str, value: SecretCandidate) -> SecretCandidate:
    """Extend a secret that is longer than what was matched to its end."""
    if value.quoted or value.end - value.start < LONG:
        return value
    rest = rx(r"[^\s\"'`<>,;]*+").match(text, value.end)
    return value._replace(end=rest.end()) if rest else value


# "The keys are a, b and c", and "it was a, but now it's b".
_NOW = r"[!\"'`]{0,2}[^\n.!?]{0,24}\bnow\s{1,2}(?:it's\s|it\sis\s|is\s)?"
_LISTED = rf"[\"'`]?(?:(?:\s{{0,2}}(?:,|;|/|&|\band\b|\bor\b)){{1,2}}\s{{0,2}}|\s{{0,2}}\n[ \t*-]{{0,8}})|{_NOW}"


def _companions(text: str, value: SecretCandidate, noun: str, between: str) -> Iterator[SecretCandidate]:
    """Yield further values of the sentence after its first."""
    for _ in range(24):
        more = rx(between).match(text, value.end)
        following = value_at(text, more.end()) if more else None
        if not following or not admits(following, noun, "direct"):
            return
        yield following
        value = following


def _candidates(text: str, place: _Place) -> Iterator[tuple[SecretCandidate, How]]:
    # What is assigned is the value, secret or not.  A word is none, so prose goes on: "Password: it was reset to x".
    if assigned := _assignment(text, place.start, place.end):
        yield assigned
        return
    if cell := _next_cell(text, place):
        yield cell, "loose"
        return
    yield from _answers(text, place)
    yield from _values_after_link(text, place)
    gap = rx(r"[,?]?[ \t]{1,3}[(\u2013\u2014]?").match(text, place.end)
    value = value_at(text, gap.end()) if gap else None
    if gap and value:
        adjacent: How = "flag" if text.startswith("--", place.start) else "direct"
        after_comma = value._replace(closed=False)  # where two words written as one are a name of a program
        yield (value, adjacent) if gap[0][0] in " \t" else (after_comma, "far")
    yield from _values_before_name(text, place)
    yield from _values_nearby(text, place)


def _assignment(text: str, start: int, end: int) -> tuple[SecretCandidate, How] | None:
    xml = rx(_XML).match(text, end) if text[max(0, start - 1) : start] in {"<", ":"} else None
    link = xml or rx(_ASSIGN).match(text, end)
    value = value_at(text, link.end()) if link else None
    if not link or not value or ("," in link[0] and text[max(0, start - 2) : start - 1] != "("):
        return None
    if rx(r"[\n,(]").search(link[0]):
        return value, "loose"
    chosen = value.quoted or (value.closed and is_camel(value.text))
    return value, "code" if not chosen and _is_code(text, start, value, link[0]) else "assigned"


def _is_code(text: str, start: int, value: SecretCandidate, link: str) -> bool:
    """`password: SecretStr` declares, `password = pw` and `connect(password=pw)` pass a name of a program."""
    if "=" not in link:
        return bool(rx(r"[a-z][A-Z]").search(value.text))
    before = text[max(0, start - 200) : start]
    return link[0] == " " or text[value.end : value.end + 1] == ")" or before.count("(") > before.count(")")


def _values_after_link(text: str, place: _Place) -> Iterator[tuple[SecretCandidate, How]]:
    """Yield what follows, within the sentence, "is", "was changed to", "for staging:"."""
    start, end, reach = place.start, place.end, min(place.end + _REACH, place.until)
    stop = rx(_SENTENCE_END).search(text, end + 1, reach)
    first = rx(r"[ \t]{1,3}([A-Za-z]+)").match(text, end)
    foreign = rx(_FOREIGN_LINK).match(text, end, reach) if is_foreign(text[start:end].lower()) else None
    if foreign and (value := value_at(text, foreign.end())):
        yield value, "far"
    for link in rx(_LINK).finditer(text, end, max(stop.start() if stop else reach, end + 2)):
        verb = rx(_STATES).search(link[0])
        if not verb and rx(_STATES_TO).search(link[0]) and not text.endswith(_OTHER_TO, 0, link.start()):
            verb = rx(_STATES_TO).search(link[0]) if _is_set(text, place, reach) else None
        if not verb or (link.start() > end and not _may_reach(text[end], first and first[1], verb[0].strip())):
            continue
        value = value_at(text, link.end())
        if value:
            yield value, "stated" if _is_near(text, end, link, verb[0]) else "far"


def _is_set(text: str, place: _Place, reach: int) -> bool:
    """Return whether somebody sets or changes what the name stands for, said before it or after it."""
    before = rx(_SETS).search(text, max(place.since, place.start - 32), place.start)
    return bool(before or rx(_SETS).search(text, place.end, reach))


def _may_reach(after: str, first: str | None, verb: str) -> bool:
    """Prose may put words between; the colons and equals signs of a program are not prose."""
    return first.lower() not in _COMPOUNDS if first else after in " \t,.;(['\"`" and (verb[0].isalpha() or verb == "'s")


def _is_near(text: str, end: int, link: re.Match[str], verb: str) -> bool:
    """Whether a plain word may be the value: right after "is", also in "the password for the wifi is x"."""
    if verb.lower() in _GIVE.split("|"):
        return False
    between = r"\s(?:for|of|to|on|at)\s(?:(?:the|my|our|your|his|her|their|this)\s)?[\w.-]{1,30}(?:\s[\w.-]{1,30}){0,2}"
    return link.start() == end or rx(between).fullmatch(text, end, link.start()) is not None


def _next_cell(text: str, place: _Place) -> SecretCandidate | None:
    """Return the cell after a name that begins a line of comma-separated values."""
    if text[place.end : place.end + 1] not in {",", '"', "'"} or (place.start and text[place.start - 1] not in "\n\"'"):
        return None
    m = rx(r"[\"']?,[\"']?([^\s,;\"']{8,256})(?=[\"',;]|\s*?(?:\n|$))").match(text, place.end)
    return SecretCandidate(m[1], m.start(1), m.end(1), quoted=False, closed=True) if m else None


_ANSWER = (  # "What is the password?", and on the next line, perhaps after a speaker's name, nothing but the answer
    r"[^\n?]{0,60}\?[ \t\"'*_]{0,4}(?:\r?\n[ \t]{0,8}){1,3}(?:[A-Za-z][\w ]{0,16}:|[>*-])?[ \t*_]{0,4}"
    r"(?i:(?:it|that)(?:'s|\sis)\s{1,2})?"
)


def _answers(text: str, place: _Place) -> Iterator[tuple[SecretCandidate, How]]:
    """Yield the whole of the line that follows a question about the name."""
    asks = text.find("?", place.end, min(place.until, place.end + _REACH)) >= 0
    question = rx(_ANSWER).match(text, place.end, place.until) if asks else None
    value = value_at(text, question.end()) if question else None
    if value and rx(r"[ \t.!\"'`*_]{0,4}(?:\r?\n|$)").match(text, value.end):
        yield value, "far"


_GIVES = word_set("use using used enter type typed try put give with pick choose set")


def _value_before_parenthesis(text: str, place: _Place) -> SecretCandidate | None:
    """Return the word before a name in parentheses: "unlock it with x (the password)"."""
    if text[place.end : place.end + 1] != ")":
        return None
    lead = rx(r"\S{1,80}[ ]\((?:the |my |our |old |new )?$").search(
        text[max(place.since, place.start - 96) : place.start]
    )
    if not lead:
        return None
    return value_at(text, max(place.since, place.start - 96) + lead.start())


def _values_before_name(text: str, place: _Place) -> Iterator[tuple[SecretCandidate, How]]:
    """Yield the value before the name: "use x as the password", "x is our staging key", "type x into the field"."""
    if value := _value_before_parenthesis(text, place):
        yield value, "far"
    follows = rx(r"[ \t]{1,2}([A-Za-z]+)").match(text, place.end)
    field = bool(follows and follows[1] in {"field", "prompt", "box", "input"})
    if follows and not field and follows[1].lower() in _COMPOUNDS:
        return
    pivots = {"in", "into", "at"} if field else {"as", "is", "was", "are", "for", "that's"}
    lead = text[max(place.since, place.start - 120) : place.start].rpartition("\n")[2]
    words, at = lead.split(), len(lead)
    for i in range(len(words) - 1, max(0, len(words) - 9), -1):
        at = lead.rfind(words[i], 0, at)
        if words[i].lower() in pivots:
            before = i - 1 - (words[i - 1].lower() in {"-", "\u2013", "\u2014", "that", "it", "this"})
            if before >= 0 and (words[i] != "for" or words[max(0, before - 1)].lower() in _GIVES):
                yield from _ending_before(text, place.start - len(lead) + lead.rfind(words[before], 0, at), place.start)
            return
        if words[i][-1] in ".!?:;":
            return


def _ending_before(text: str, at: int, end: int) -> Iterator[tuple[SecretCandidate, How]]:
    value = value_at(text, at)
    if value and value.end <= end:
        yield value, "reversed"


_DIGESTS = (
    r"(?i)\b(?:hash|ids?|sha|sha1|sha256|digest|commit|checksum|fingerprint|uuid|version|public|arn|etag|revision|trace"
    r"|request)\b"
)


def _values_nearby(text: str, place: _Place) -> Iterator[tuple[SecretCandidate, How]]:
    """Yield a random string in the same line, unless something there calls it a digest or an id."""
    line = text[place.end : min(place.end + _REACH, place.until)].partition("\n")[0]
    for word in rx(r"\S{7,}").finditer(line):
        value = value_at(text, place.end + word.start())
        if value and not rx(_DIGESTS).search(line, 0, word.start()):
            yield value, "nearby"


_USER = r"([\"'`]?)(?P<user>(?!(?:user|username|name|id|login|email|host)\b)[\w.@+\\-]{2,64})\1"
_LOGIN_PAIR = (  # login: bob / x; credentials are bob:x; the test account (bob / x)
    r"(?i)(?<![\w-])(?:(?:(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?in|logins?|creds?|credentials?)\b"
    r"[^\n/:=]{0,48}?(?:\s?[:=]|[ ](?:is|are|was|were|with|as|using|via))[ \t]{1,3}"
    r"|(?:account|auth)\b[^\n/:=(]{0,32}?(?:\s?[:=][ \t]{1,3}|[ ]\())"
    rf"{_USER}(?:[ \t]{{0,2}}(?:[/:|,&-]|\band\b|(?<=[ ])with\b)[ \t]{{0,2}}(?=\S)"
    r"|(?<=\w)(?P<blank>[ ])(?=\S{0,64}[\d!#$%&@]))"
)
_LABEL_PAIR = (  # id/pw bob/x; username and password are bob and x
    r"(?i)(?<![\w-])(?:id|user(?:name)?|login|account)[ ]?(?:/|&|\+|and|:|[ ])[ ]?p(?:ass(?:word|wd)?|wd?)s?\b"
    rf"[ ]?(?:is\b|are\b|->|[:=(-]|(?=[ ]))[ ]?{_USER}[ \t]{{0,2}}(?://|[/:|,(&-]|\band\b|(?<=[ ]))[ \t]{{0,2}}(?=\S)"
)
_HOST_PAIR = rf"(?<![\d.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}[ ]?(?:-{{1,2}}>|\(){_USER}/"  # 10.0.0.1 (bob/x)
_USERS = word_set(
    "admin administrator root user guest test demo postgres ubuntu pi sa oracle mysql tomcat jenkins deploy"
)


def pairs(text: str, low: str) -> Iterator[Hit]:
    """Yield the password of a user and password side by side, where the text says that they are."""
    if not rx(r"log|sign|cred|user|account|auth|\bid\b|\d\.\d").search(low):
        return
    for m in (m for pattern in (_LOGIN_PAIR, _LABEL_PAIR, _HOST_PAIR) for m in rx(pattern).finditer(text)):
        value = value_at(text, m.end())
        if not value or GONE in value.text or (is_stop(value.text) and not value.text.isdigit()):
            continue
        blank = m.groupdict().get("blank")
        if blank and is_stop(m["user"]):
            continue
        known = value.closed and not blank and (m["user"].lower() in _USERS or "@" in m["user"])
        camel = m["user"].islower() and not blank and rx(r"(?:[A-Z][a-z]{3,15}[._&#-]?){2}!?").fullmatch(value.text)
        strong = camel or (grade(value.text.rstrip("!")) >= MIXED and rx(r"[\d!@#$%^&*]").search(value.text))
        if strong or rx(r"\d{6,}").fullmatch(value.text) or (known and len(value.text) >= SHORTEST):
            yield value.start, value.end, "password"
