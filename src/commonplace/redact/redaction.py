"""Replace the secrets in a text by marks; the sentences stay.  Pure: no store, no clock, no model, no settings.

It is not a proof that a text is harmless.  It knows vendors' prefixes (`vendors.py`), structures (PEM blocks, JWTs,
URLs, headers, cookies, command lines, seed phrases), assignments in any syntax, and sentences that state a password.
A random string that nothing names as a secret stays: digests and ids are everywhere in an agent's memory.

This module folds, marks, merges and repeats the scan; its siblings hold what is looked for.  Every
repeat in a pattern is bounded or possessive, so time grows with the text and no faster.  Patterns are compiled on first
use, because this module is imported on the start-up path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from commonplace.model.values import Value
from commonplace.redact.names import GENERIC_KINDS, GONE, Hit, names_in, rx
from commonplace.redact.sentences import named_secrets, pairs
from commonplace.redact.structures import STRUCTURES, encoded_secrets, vendor_hits
from commonplace.redact.values import forget_values, is_documented

# The redacted text must scan clean.  Two rounds settle ordinary text; the rest is for hostile ones.
_ROUNDS_AT_MOST = 8


class Finding(Value):
    """One secret that was replaced."""

    kind: str  # a slug: "github-pat", "password", "pem-private-key"
    start: int  # where it began in the original text
    end: int  # where it ended in the original text
    mark: str  # what replaces it


class Redacted(Value):
    """A text without its secrets, and what was replaced."""

    text: str  # the text to store
    findings: tuple[Finding, ...]  # in the order of the text, never overlapping


def redact(text: str, *, key: bytes = b"") -> Redacted:
    """Replace every secret by `[secret:<kind>:<4 hex>]`; equal secrets under one key get equal marks."""
    hits: list[Hit] = []
    for _ in range(_ROUNDS_AT_MOST):
        seen, where, ends = _fold_text(text, hits)
        fresh = _merge_hits(seen, _scan(seen))
        if not fresh:
            break
        hits = sorted(
            hits + [(where[start], ends.get(end - 1, where[end - 1] + 1), kind) for start, end, kind in fresh]
        )
    forget_values()
    return _without(text, hits, key)


def redact_under(name: str, text: str, *, key: bytes = b"") -> Redacted:
    """Redact a text that is the value of a name, as in JSON: the name may be all that shows that it is a secret."""
    alone = redact(text, key=key)
    if alone.findings or not names_secret(name):
        return alone
    label = f"{name}:"
    before, plain = f'{label} "', text.replace('"', "_")
    found = redact(f'{before}{plain}"').findings
    hits = [(one.start - len(before), min(one.end - len(before), len(text)), one.kind) for one in found]
    return _without(text, [hit for hit in hits if hit[0] >= 0], key)


def mask(text: str, hits: Iterable[Hit], *, key: bytes = b"") -> Redacted:
    """Replace what was found otherwise, such as personal data, by marks of the same form."""
    return _without(text, list(hits), key)


def names_secret(name: str) -> bool:
    """Return whether a name announces a secret: `apiKey` does, `token_count` does not."""
    label = f"{name}:"
    return any(names_in(label, _lower(label)))


def _without(text: str, hits: list[Hit], key: bytes) -> Redacted:
    findings = tuple(Finding(kind=kind, start=s, end=e, mark=_mark(text[s:e], kind, key)) for s, e, kind in hits)
    return Redacted(text=_insert_marks(text, findings), findings=findings) if hits else Redacted(text=text, findings=())


def _mark(secret: str, kind: str, key: bytes) -> str:
    """Name the secret without giving it away; invisible characters do not make it another secret."""
    import hmac  # noqa: PLC0415  # start-up: brings OpenSSL

    plain = _fold_text(secret, [])[0].encode("utf-8", "surrogatepass")
    return f"[secret:{kind}:{hmac.digest(key, plain, 'sha256').hex()[:4]}]"


def _insert_marks(text: str, findings: tuple[Finding, ...]) -> str:
    pieces, at = [], 0
    for finding in findings:
        pieces += [text[at : finding.start], finding.mark]
        at = finding.end
    return "".join([*pieces, text[at:]])


_PICTURE_CHARS = 90  # a text that is shorter holds no picture

_SKIPPED = (
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\ue000\U000e0000-\U000e007f]"
    r"|\[secret:[a-z0-9-]{1,40}:[0-9a-f]{4}\]"
)


@cache
def _folds() -> dict[int, str]:
    """Return look-alikes, one for one, so that positions stay: full width, blanks, line ends, quotes, hyphens."""
    folds = {wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)}
    folds |= dict.fromkeys([0xA0, 0x202F, 0x205F, 0x3000, *range(0x2000, 0x200B)], " ")
    folds |= dict.fromkeys([0x85, 0x2028, 0x2029], "\n")
    folds |= dict.fromkeys([*range(0x2018, 0x201C), 0x2032], "'")
    folds |= dict.fromkeys([0xAB, 0xBB, *range(0x201C, 0x2020), 0x2033], '"')
    return folds | dict.fromkeys([0x2010, 0x2011, 0x2212], "-")


# Pictures and archives as base64: no secret is readable in them, and chance alone writes "pw+" into every other one.
_PICTURE = (
    r"(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi0|d09GR|d09GMg|UEsDB|H4sIA|AAABAA)"
    r"[A-Za-z0-9+/]{80,}+={0,2}"
)
_ESCAPES = r"&(?:quot|apos|amp|lt|gt|#\d{2,5}|#[xX][0-9a-fA-F]{2,4});|\\u[0-9a-fA-F]{4}|\\x[2-7][0-9a-fA-F]"
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">"}


def _fold_text(text: str, hits: list[Hit]) -> tuple[str, range | list[int], dict[int, int]]:
    """Return the text as it is matched, where each of its characters begins, and where those end that replace several.

    A mark and a found secret both become one character, so the second round sees what a second call would see.
    """
    cuts = [(start, end, GONE) for start, end, _ in hits]
    if not text.isascii() or "[secret:" in text:
        cuts += [(m.start(), m.end(), GONE if m[0][0] == "[" else "") for m in rx(_SKIPPED).finditer(text)]
    if len(text) > _PICTURE_CHARS:
        cuts += [(m.start(), m.end(), GONE) for m in rx(_PICTURE).finditer(text)]
    if "&" in text or "\\" in text:
        cuts += [
            (m.start(), m.end(), char) for m in rx(_ESCAPES).finditer(text) if (char := _unescape(m[0])) is not None
        ]
    folded = text if text.isascii() else text.translate(_folds())
    if not cuts:
        return folded, range(len(text)), {}
    pieces: list[str] = []
    where: list[int] = []
    ends: dict[int, int] = {}
    at = 0
    for start, end, kept in sorted(cuts, key=lambda cut: (cut[0], -cut[1])):
        if start >= at:
            pieces += [folded[at:start], kept]
            where += range(at, start)
            if kept:
                ends[len(where)] = end
                where.append(start)
            at = end
    where += range(at, len(text))
    return "".join([*pieces, folded[at:]]), where, ends


def _unescape(escape: str) -> str | None:
    """Return the character that an escape stands for, as it is matched; None if it stands for none."""
    if escape[0] == "&":
        name = escape[1:-1]
        code = ord(_ENTITIES[name]) if name in _ENTITIES else int(name.replace("#", "0"), 16 if name[1] in "xX" else 10)
    else:
        code = int(f"0x{escape[2:]}", 16)
    if code in {0, ord("\n"), ord(GONE)} or 0xD800 <= code < 0xE000:  # noqa: PLR2004 - surrogates
        return None
    char = chr(code)
    return "" if rx(_SKIPPED).fullmatch(char) else char.translate(_folds())


def _lower(text: str) -> str:
    """Return lower case of the same length: a capital dotted I would grow by one and shift all that follows."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _merge_hits(seen: str, hits: list[Hit]) -> list[Hit]:
    """Merge overlapping hits, so that no rest of a secret is left next to its mark; the more specific kind stays."""
    merged: list[Hit] = []
    for start, end, kind in sorted(piece for hit in hits for piece in _pieces(seen, hit)):
        if merged and start < merged[-1][1]:
            first, last, known = merged[-1]
            merged[-1] = (first, max(last, end), kind if known in GENERIC_KINDS else known)
        else:
            merged.append((start, end, kind))
    return merged


def _pieces(seen: str, hit: Hit) -> Iterator[Hit]:
    """Cut a hit around an earlier mark at the mark: a secret is replaced only once."""
    start, end, kind = hit
    if GONE not in seen[start:end]:
        yield hit
        return
    for m in rx(rf"[^{GONE}\s][^{GONE}]*").finditer(seen, start, end):
        yield m.start(), m.end(), kind


def _scan(text: str) -> list[Hit]:
    low = _lower(text)
    hits = [hit for hit in vendor_hits(text) if not is_documented(text[hit[0] : hit[1]])]
    for needles, look in STRUCTURES:
        if any(needle in low for needle in needles):
            hits.extend(look(text))
    hits.extend(named_secrets(text, low))
    hits.extend(pairs(text, low))
    hits.extend(encoded_secrets(text, lambda inner: named_secrets(inner, _lower(inner))))
    return hits
