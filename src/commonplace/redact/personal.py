"""Find personal data by its check digits: card numbers, bank accounts and national ids.  Pure, like its siblings.

A number alone says little: one in ten has a valid Luhn digit.  So a plain run of digits counts only where a word
nearby says what it is; a number that is written in the groups or with the letters of its kind counts by itself.
Digits inside longer runs, paths, addresses and identifiers never count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from commonplace.redact.names import Hit, rx

CARD, IBAN, NATIONAL = "card", "iban", "national-id"
KINDS = (CARD, IBAN, NATIONAL)
_BEFORE, _AFTER = r"(?<![\w.+/=#$@%&-])", r"(?![\w/=+@%&-]|[.,:]\d)"
_NEAR_BEFORE, _NEAR_AFTER = 60, 30  # characters around a number in which a word may name it


class _Form(NamedTuple):
    """One way in which a number is written."""

    kind: str
    pattern: str
    is_valid: Callable[[str], bool]
    words: str = ""  # one of them must be near; none: the form says enough


def find_personal(text: str, *, name: str = "") -> list[Hit]:
    """Return where personal data is, in the order of the text; ``name`` is what the text is the value of."""
    if not rx(r"\d[\d .-]{6,}|[A-Z]{2}\d{2}|[A-Z]{6}\d{2}").search(text):
        return []
    found = sorted((m.start(), m.end(), form.kind) for form in _FORMS for m in _matches(form, text, name))
    apart: list[Hit] = []
    for hit in found:
        if not apart or hit[0] >= apart[-1][1]:
            apart.append(hit)
    return apart


def _matches(form: _Form, text: str, name: str) -> list[re.Match[str]]:
    found = rx(f"{_BEFORE}(?:{form.pattern}){_AFTER}").finditer(text)
    return [m for m in found if form.is_valid(m[0]) and _is_named(form, text, m, name) and not _is_other(text, m)]


def _is_named(form: _Form, text: str, m: re.Match[str], name: str) -> bool:
    if not form.words:
        return True
    words = rx(rf"(?i)(?<![^\W_])(?:{form.words})(?![^\W_])")
    near = text[max(0, m.start() - _NEAR_BEFORE) : m.start()] + " " + text[m.end() : m.end() + _NEAR_AFTER]
    return words.search(near) is not None or words.search(name) is not None


def _is_other(text: str, m: re.Match[str]) -> bool:
    """Return whether the word before says that it is another number."""
    lead = text[max(0, m.start() - 24) : m.start()]
    other = (
        r"(?i)\b(?:order|invoice|ticket|tracking|serial|build|version|commit|phone|tel|fax|mobile|isbn|ean|imei|sku)\b"
    )
    return rx(other + r"[^\n\d]{0,16}$").search(lead) is not None


# Check digits


def _digits(text: str) -> list[int]:
    return [int(letter) for letter in text if letter.isdigit()]


def _luhn(text: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(_digits(text))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the digits of a two-digit number are added
    return total % 10 == 0


#: Leading digits of the cards in use, with their lengths.
_ISSUERS = (
    (r"4", {13, 16, 19}),
    (r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)", {16}),
    (r"3[47]", {15}),
    (r"3(?:0[0-5]|[689])", {14, 16}),
    (r"35(?:2[89]|[3-8])", {16}),
    (r"6(?:011|4[4-9]|5|2)", {16, 17, 18, 19}),
)


def _is_card(text: str) -> bool:
    plain = "".join(map(str, _digits(text)))
    issued = any(len(plain) in lengths and rx(leading).match(plain) for leading, lengths in _ISSUERS)
    return issued and len(set(plain)) > 2 and _luhn(plain)  # noqa: PLR2004 - 4444 4444 ... is nobody's


_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24,
    "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    if _IBAN_LENGTHS.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1


def _weighted(text: str, weights: tuple[int, ...]) -> int:
    return sum(digit * weight for digit, weight in zip(_digits(text), weights, strict=False))


def _is_german(text: str) -> bool:
    """Steuer-ID: ISO 7064, and one digit comes twice or three times among the first ten."""
    digits = _digits(text)
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    counts = sorted(digits[:10].count(digit) for digit in set(digits[:10]))
    return digits[0] != 0 and counts[-1] in {2, 3} and (11 - product) % 10 == digits[10]


def _is_french(text: str) -> bool:
    """NIR: the last two digits are 97 less the rest of the others; Corsica's departments have letters."""
    plain = text.replace(" ", "").upper()
    number = int(plain[:13].replace("2A", "19").replace("2B", "18"))
    return number % 97 + int(plain[13:]) == 97  # noqa: PLR2004 - its modulus


def _is_spanish(text: str) -> bool:
    """DNI and NIE: the letter is the rest of 23; X, Y and Z of foreigners count as 0, 1 and 2."""
    plain = text.replace("-", "").upper()
    number = int(plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == plain[-1]


_ITALIAN_ODD = dict(
    zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
        22, 25, 24, 23,
    ), strict=True)
)  # fmt: skip


def _is_italian(text: str) -> bool:
    """Codice fiscale: letters count by a table in odd places and by the alphabet in even ones."""
    plain = text.upper()
    even = sum(int(one) if one.isdigit() else ord(one) - 65 for one in plain[1:15:2])
    return (sum(_ITALIAN_ODD[one] for one in plain[:15:2]) + even) % 26 == ord(plain[15]) - 65


def _is_dutch(text: str) -> bool:
    return any(_digits(text)) and _weighted(text, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _is_polish(text: str) -> bool:
    """PESEL: weights, and a date, whose month tells the century by twenties."""
    digits = _digits(text)
    month, day = (digits[2] * 10 + digits[3]) % 20, digits[4] * 10 + digits[5]
    return 1 <= month <= 12 and 1 <= day <= 31 and _weighted(text, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0  # noqa: PLR2004 - a date


def _is_brazilian(text: str) -> bool:
    """CPF: two check digits, the second over the first."""
    digits = _digits(text)
    checks = [_weighted(text, tuple(range(n + 1, 1, -1))[:n]) * 10 % 11 % 10 for n in (9, 10)]
    return len(set(digits)) > 1 and checks == digits[9:]


def _is_belgian(text: str) -> bool:
    plain = "".join(map(str, _digits(text)))
    return int(plain[9:]) in {97 - int(century + plain[:9]) % 97 for century in ("", "2")}


def _is_swiss(text: str) -> bool:
    return _weighted(text, (1, 3) * 6 + (1,)) % 10 == 0


def _is_swedish(text: str) -> bool:
    return _luhn("".join(map(str, _digits(text)[-10:])))


def _is_american(text: str) -> bool:
    """SSN: it has no check digit, only numbers that are never given."""
    area, group, serial = text.split("-")
    return area not in {"000", "666"} and area[0] != "9" and group != "00" and serial != "0000"


_CARD_WORDS = (
    r"cards?|credit|debit|visa|mastercard|amex|american express|discover|maestro|cc|pan|cardholder|cvv|cvc"
    r"|kreditkarten?(?:nummer)?|karten?(?:nummer)?|carte|tarjeta|carta|cartão|card_?(?:number|no)|card_?num"
)
_FORMS = (
    _Form(CARD, r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ -])\d{6}\2\d{4,5}", _is_card),
    _Form(CARD, r"\d{13,19}", _is_card, _CARD_WORDS),
    _Form(IBAN, r"[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?", _is_iban),
    _Form(
        NATIONAL, r"\d{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}", _is_german,
        r"steuer-?id(?:entifikationsnummer)?|steuernummer|steuerliche|idnr|identifikationsnummer|tax id|tin",
    ),
    _Form(NATIONAL, r"[12] \d{2} (?:0[1-9]|1[0-2]|[2-9]\d) \d[\dABab] \d{3} \d{3} \d{2}", _is_french),
    _Form(
        NATIONAL, r"[12]\d{2}(?:0[1-9]|1[0-2]|[2-9]\d)\d[\dABab]\d{6}[ ]?\d{2}", _is_french,
        r"nir|insee|sécu|sécurité sociale|securite sociale|numéro de sécurité",
    ),
    _Form(
        NATIONAL, r"(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]", _is_spanish,
        r"dni|nie|nif|documento|identidad",
    ),
    _Form(NATIONAL, r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", _is_italian),
    _Form(NATIONAL, r"\d{4}\.?\d{2}\.?\d{3}", _is_dutch, r"bsn|burgerservicenummer|sofinummer|sofi"),
    _Form(NATIONAL, r"\d{11}", _is_polish, r"pesel"),
    _Form(NATIONAL, r"\d{3}\.\d{3}\.\d{3}-\d{2}", _is_brazilian),
    _Form(NATIONAL, r"\d{11}", _is_brazilian, r"cpf|cadastro de pessoa"),
    _Form(NATIONAL, r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", _is_belgian),
    _Form(NATIONAL, r"756\.\d{4}\.\d{4}\.\d{2}", _is_swiss),
    _Form(NATIONAL, r"(?:19|20)?\d{6}[-+]\d{4}", _is_swedish, r"personnummer|personal identity number"),
    _Form(NATIONAL, r"\d{3}[ -]\d{3}[ -]\d{3}", _luhn, r"sin|social insurance(?: number)?"),
    _Form(NATIONAL, r"\d{3}-\d{2}-\d{4}", _is_american, r"ssn|social security(?: number)?|social_security"),
)  # fmt: skip
