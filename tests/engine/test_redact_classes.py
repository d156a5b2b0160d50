"""Forms in which secrets come that a list of prefixes does not know, and what looks like them and is none."""

from __future__ import annotations

import base64

import pytest

from commonplace.redact.redaction import redact
from stands import rows

TOKEN = "7f3b" + "9c0d1e2a" * 3
PASSWORD = "Kettle" + "54!x"
TWO_WORDS = "Amber" + ".Kettle"
GITHUB = "ghp_" + "q7Rt2Yx9Lm" * 3 + "Kd4Wz8"
PNG = "iVBORw0KGgo" + "AAAANSUhEUgAAAAUpw+AAAAFCAYAAACNbyblpw+AAHElEQVQI12P4" * 3

OPERATORS = ["=", ":=", "::=", ":::=", "?=", "+=", ".=", "??=", "||=", "=>", "->", ":", "=="]
TOKENS = [
    "<vendorToken>\n    {s}\n</vendorToken>",
    "vendorToken,{s},",
    '{{\n  "name": "vendor_token",\n  "value": "{s}"\n}}',
    '{{"value": "{s}", "name": "vendor_token"}}',
    "<key>vendor_token</key>\n<string>{s}</string>",
    "Name=VENDOR_TOKEN,Value={s}",
    "name\ttoken\nbob\t{s}",
]
SENTENCES = [
    "pass for grafana is {s}",
    "my grafana pass is {s}",
    "log in with bob/{s}",
    "the login for db-02: bob with {s}",
    "user: What is the password?\nassistant: {s}",
    "Q: wifi password?\nA: it's {s}",
    "I changed my password from {s}.",
    "the password on db-02 was set by Tom to {s}",
    "unlock it with {s} (the password)",
    "to open it use {s}, that is the password",
    "Das neue Passwort ist jetzt {s}",
    "la contraseña del servidor es {s}",
    "la password di grafana è {s}",
    "Hasło do serwera to {s}",
    "lösenordet är {s}",
    "пароль от сервера: {s}",
    "PASS={s}",
    "[smtp]\npass = {s}",
    "user,password,host\nbob,{s},db",
    "user | password\nbob | {s}",
    "db.internal:5432:shop:bob:{s}",
    "<tr><td>Password</td><td>{s}</td></tr>",
]


@rows("operator", OPERATORS)
def test_every_operator_assigns(operator):
    """Make, PHP, Ruby and JavaScript write more than one sign."""
    assert TOKEN not in redact(f'VENDOR_TOKEN {operator} "{TOKEN}"').text


@rows("text", TOKENS)
def test_a_token_is_found_in_every_format(text):
    """On a line of its own, in the next cell, or in a field beside that of its name."""
    assert TOKEN not in redact(text.format(s=TOKEN)).text


@rows("text", SENTENCES)
def test_a_password_is_found_in_every_sentence(text):
    """In other orders of words, other languages, and answers on the next line."""
    for secret in (PASSWORD, TWO_WORDS):
        assert secret not in redact(text.format(s=secret)).text, secret


@rows(
    "text, secrets",
    [
        ("Recovery codes: a1b2-c3d4, e5f6-g7h8, i9j0-k1l2", ["a1b2", "g7h8", "k1l2"]),
        ("backup codes: 12345678 23456789 34567890", ["12345678", "23456789", "34567890"]),
        ("recovery codes (GitHub):\n1. 81a2-9k3l\n2. 99b1-0034", ["9k3l", "99b1"]),
        ("recovery codes\n\nxkqzv-plmwt\nabrtn-olkjh\nqwevs-zzxcv", ["plmwt", "abrtn", "zzxcv"]),
    ],
)
def test_every_one_of_several_recovery_codes_is_found(text, secrets):
    """Between commas, on lines of their own, numbered, or of letters alone."""
    left = redact(text).text
    assert not [secret for secret in secrets if secret in left]


ENCODED = {
    "base64 of an assignment": base64.b64encode(f"DB_PASSWORD={PASSWORD}".encode()).decode(),
    "hex of a token": GITHUB.encode().hex(),
    "hex of an assignment": f"password={PASSWORD}".encode().hex(),
    "entities": "".join(f"&#{ord(letter)};" for letter in GITHUB),
    "escapes": "".join(f"\\u{ord(letter):04x}" for letter in GITHUB),
    "a line break": f"{GITHUB[:20]}\n  {GITHUB[20:]}",
}


@pytest.mark.parametrize("secret", ENCODED.values(), ids=ENCODED)
def test_an_encoded_secret_is_taken_out_with_its_encoding(secret):
    """Whole: what is left of it would lead back to it."""
    left = redact(f"see {secret} there").text
    assert left.startswith("see [secret:")
    assert left.endswith("] there")
    assert left.count("[secret:") == 1


def test_entities_around_a_value_stay():
    """Only the value is replaced; what is written around it is read as what it stands for."""
    left = redact(f"{{&quot;password&quot;: &quot;{PASSWORD}&quot;}}").text
    assert left.startswith("{&quot;password&quot;: &quot;[secret:password:")
    assert left.endswith("]&quot;}")


HARMLESS = [
    "| key | value |\n|---|---|\n| phase2HeartbeatSeconds | 3 |\n| oauth2ClientTimeout | 4 |",
    f"![x](data:image/png;base64,{PNG})",
    "aws_access_key_id = AKIAIOSFODNN7" + "EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "curl -u sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc: https://api.stripe.com",
    "user,password,host\nstring,string,string",
    "the season pass is sold out",
    "the mountain pass is closed until May",
    "all tests pass: see the log of run-2024",
    "make test PASS=5 FAIL=2",
    "the password was changed due to CVE-2024-1234",
    "the password was changed on Monday",
    "What is the password?\nNobody knows.",
    "What about the token?\nassistant: Sorry",
    "log in with GitHub/GitLab",
    "sign in with Google/SharePoint",
    "recovery codes are printed on paper and kept in a safe",
    "the recovery codes page lists ten codes",
    "file.py:1200:error:foo:bar",
    '{"name": "password", "value": ""}',
    '{"name": "token_count", "value": "123456"}',
    "key,description\nretries,how often",
    "password: System.String",
    "password: SecretText",
    "&lt;password&gt;&lt;/password&gt;",
    "\\u0070lain text",
    "deadbeef" * 8,
    "std::tie(ResultPass, LocalChanged) = Resolver;",
    "names = [\n    'pwd',\n    'qr',\n    'read4b',\n]",
    "Union[\n    rsa.RSAPrivateKey,\n    dsa.DSAPrivateKey,\n    ed25519.Ed25519PrivateKey,\n]",
]


@rows("text", HARMLESS)
def test_what_looks_like_it_stays(text):
    """Names of settings, pictures, documented examples, verdicts and roads."""
    assert redact(text).text == text
