"""Secrets out of text.  Every token is put together at run time, so that no scanner takes this file for a leak."""

import base64
import os
import random
import re
import string
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.redact.redaction import redact
from commonplace.redact.vendors import PREFIXES, SHAPES
from stands import rows

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
MARK = re.compile(r"\[secret:[a-z0-9-]{1,40}:[0-9a-f]{4}\]")
PASSWORD = "hunter2" + "secret"


def run_of(alphabet, length, seed=7):
    """Characters that look random, always with a digit and a letter at the end."""
    return "".join(random.Random(seed).choices(alphabet, k=length - 2)) + "a7"


KEY = run_of(ALNUM, 32)


def vendor_token(prefix, alphabet, least):
    """A token as the table describes it, ending in letters that every alphabet has."""
    allowed = "".join(c for c in string.printable if re.fullmatch(f"[{alphabet}]", c) and c.isalnum())
    ending = "A7" if "a" not in allowed else "a7"
    return prefix + "".join(random.Random(prefix).choices(allowed, k=least - 2)) + ending


def jwt():
    """Three parts, of which the first says how the third was made."""
    parts = [b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}']
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), run_of(ALNUM, 43)])


def pem(kind="RSA ", *, newline="\n", end=True):
    """A private key that nobody ever used."""
    lines = [run_of(ALNUM + "+/", 64, seed) for seed in range(6)]
    closing = [f"-----END {kind}PRIVATE KEY-----"] if end else []
    return newline.join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, *closing])


SHAPED = {
    "aws-access-key": "AKIA" + run_of(string.ascii_uppercase, 18)[:-2],
    "sendgrid-key": "SG." + run_of(ALNUM, 22) + "." + run_of(ALNUM, 43),
    "telegram-bot": "123456789:AA" + run_of(ALNUM, 33),
    "discord-bot": "MT" + run_of(ALNUM, 22) + "." + run_of(ALNUM, 6) + "." + run_of(ALNUM, 38),
    "slack-webhook": "hooks.slack" + ".com/services/T0123ABCD/B0123ABCD/" + run_of(ALNUM, 24),
    "discord-webhook": "discord.com/api/webhooks/" + "1" * 18 + "/" + run_of(ALNUM, 68),
    "teams-webhook": "webhook.office.com/webhookb2/" + run_of(HEX, 36) + "/IncomingWebhook/" + run_of(HEX, 40),
    "zapier-webhook": "hooks.zapier.com/hooks/catch/123456/" + run_of(HEX, 7),
    "django-secret": "django-" + "insecure-" + run_of(ALNUM + "#$%^&*", 40),
    "mailchimp-key": run_of(HEX, 32) + "-us12",
    "terraform-token": run_of(ALNUM, 14) + ".atlasv1." + run_of(ALNUM, 64),
    "azure-ad-secret": "abc8Q~" + run_of(ALNUM, 34),
    "azure-devops-pat": run_of(ALNUM, 76) + "AZDO" + run_of(ALNUM, 4),
    "azure-key": "AccountKey=" + run_of(ALNUM, 86) + "==",
    "azure-sas": "https://x.blob.core.windows.net/c?sv=2022&sig=" + run_of(ALNUM, 43) + "%3D",
    "airtable-pat": "pat" + run_of(ALNUM, 14) + "." + run_of(HEX, 64),
    "asana-pat": "1/1234567890123456:" + run_of(HEX, 32),
    "clickup-token": "pk_1234567_" + run_of(string.ascii_uppercase, 34)[:-2],
    "maxmind-key": run_of(ALNUM, 6) + "_" + run_of(ALNUM, 29) + "_mmk",
    "onepassword-secret": "A3-ABC123-ABCDE1-" + "-".join(["A1B2C"] * 4),
    "cloudflare-ca": "v1.0-" + run_of(HEX, 24) + "-" + run_of(HEX, 146),
    "yandex-iam": "t1." + run_of(ALNUM, 60) + "." + run_of(ALNUM, 86),
}

STRUCTURES = {
    "PEM": (f"deploy with\n{pem()}\nthanks", pem().splitlines()[3]),
    "PEM in JSON": ('{"key": "' + pem("", newline="\\n") + '\\n", "id": 1}', pem("").splitlines()[3]),
    "PEM cut off": (f"I have\n{pem('EC ', end=False)}", pem().splitlines()[-2]),
    "PGP": (f"{pem('PGP ').replace('KEY-', 'KEY BLOCK-')}", pem().splitlines()[2]),
    "JWT": (f"it sent {jwt()} and failed", jwt()),
    "URL password": (f"postgres://app:{PASSWORD}@db.example.com:5432/app", PASSWORD),
    "URL password with an at": ("mysql://app:p@ss" + "w0rd1@db.example.com/app", "p@ssw0rd1"),
    "URL without user": (f"redis://:{PASSWORD}@cache:6379/0", PASSWORD),
    "URL token": (f"git clone https://{KEY}@git.example.com/a.git", KEY),
    "bearer header": (f"Authorization: Bearer {KEY}", KEY),
    "bearer in code": (f'headers={{"Authorization": "Bearer {KEY}"}}', KEY),
    "basic header": (f"Authorization: Basic {base64.b64encode(b'bob:swordfish').decode()}", "Ym9iOnN3b3JkZmlzaA"),
    "bearer alone": (f"send bearer {KEY} along", KEY),
    "otpauth": ("otpauth://totp/Ex:bob?secret=" + "JBSWY3DPEHPK3PXP" + "&issuer=Ex", "JBSWY3DPEHPK3PXP"),
    "query key": (f"https://maps.example.com/js?v=3&key={KEY}&lang=en", KEY),
    "query signature": (f"https://s3.example.com/f?X-Amz-Signature={run_of(HEX, 64)}", run_of(HEX, 64)),
    "query token": (f"https://example.com/cb?access_token={KEY}#top", KEY),
    "cookie": (f"Cookie: theme=dark; sessionid={KEY}; lang=en", KEY),
    "set-cookie": (f"Set-Cookie: connect.sid={KEY}; Path=/; HttpOnly", KEY),
    "mysql": (f"mysql -h db -u root -p{PASSWORD} shop", PASSWORD),
    "sshpass": (f"sshpass -p {PASSWORD} ssh bob@host", PASSWORD),
    "curl": (f"curl -u bob:{PASSWORD} https://api.example.com", PASSWORD),
    "docker login": (f"docker login -u bob -p {PASSWORD} registry.example.com", PASSWORD),
    "long flag": (f"tool --password {PASSWORD} --verbose", PASSWORD),
    "long flag with equals": (f"tool --api-key={KEY} run", KEY),
    "single dash": (f"Connect -Password '{PASSWORD}'", PASSWORD),
    "SQL": (f"CREATE USER bob IDENTIFIED BY '{PASSWORD}';", PASSWORD),
    "redis configuration": (f"requirepass {PASSWORD}", PASSWORD),
    "seed phrase": ("the seed phrase is " + "abandon ability able " * 4 + "and keep it", "abandon ability able"),
    "numbered seed words": ("mnemonic:\n" + "".join(f"{i}. zebra\n" for i in range(1, 25)), "zebra"),
    "AWS pair": (f"use {SHAPED['aws-access-key']} and {run_of(ALNUM + '/+', 40)} for it", run_of(ALNUM + "/+", 40)),
    "table column": (f"| user | password |\n|---|---|\n| bob | {PASSWORD} |", PASSWORD),
    "login pair": (f"login: bob / {PASSWORD}", PASSWORD),
    "credentials pair": (f"The credentials are bob:{PASSWORD}", PASSWORD),
    "log in pair": (f"log in with bob@example.com / {PASSWORD} to see it", PASSWORD),
    "label pair": (f"id/pw: bob/{PASSWORD}", PASSWORD),
    "user and password": (f"username and password are bob and {PASSWORD}", PASSWORD),
}

ASSIGNMENTS = [
    "password={s}", "PASSWORD = '{s}'", "password: {s}", "password:{s}", 'password := "{s}"', "password -> {s}",
    "export DB_PASSWORD={s}", "spring.datasource.password={s}", '{{"password": "{s}"}}', "{{'password': '{s}'}}",
    '{{\\"password\\":\\"{s}\\"}}', "'password' => '{s}',", "<password>{s}</password>", "| password | {s} |",
    '<add key="DbPassword" value="{s}"/>', "- name: DB_PASSWORD\n  value: {s}", "**Password:** {s}",
    "`password`: `{s}`", "$config['db_password'] = '{s}';", "define('DB_PASSWORD', '{s}');", 'password: str = "{s}"',
    "password (staging): {s}", "Password:\n  {s}",
    "Server=x;Password={s};Encrypt=true", "?user=bob&password={s}&x=1", "smtp_pass: {s}",
    "user: bob, pass: {s}", "api_key={s}", 'API-Key: "{s}"', "X-Auth-Token: {s}", "client_secret = '{s}'",
    "SECRET_KEY_BASE={s}", "aws_secret_access_key={s}", "//registry.example.com/:_authToken={s}", "privateKey: '{s}'",
    "passphrase => {s}", "wpa_passphrase={s}", "psk={s}", "WIFI KEY: {s}", "set_password('{s}')",
]  # fmt: skip

TOLD = [
    "the password is {s}, use it for staging", "My password was {s}.", "the wifi password is {s}", "the pw's {s} now",
    "the password for the staging box is {s}", "the root password has been changed to {s} today",
    "I set the password to {s}", "Set the password of the guest account to {s}, then reboot.",
    "use {s} as the password", "{s} is our staging password", "the password, if you need it, is {s}",
    "Old password: {s} (do not reuse)", "password {s} works", "my password? {s}.", "the passphrase is {s}",
    "type {s} into the password field", "It asks for a password, enter {s} there", "the password (`{s}`) is fine",
    "I changed the password. It's {s} now.", "Das Passwort ist {s}", "la contraseña es {s}", "пароль: {s}", "密码是{s}",
    "The password you want is “{s}”.", "user bob, password {s}", "For prod I use the same password, {s}",
]  # fmt: skip

TOLD_KEYS = [
    "the API key is {s}", "our Datadog key is {s}", "{s} is our Mapbox key", "use {s} as the token from now on",
    "here is the token you asked for: {s}", "the client secret for Okta is {s}.", "we call it with the token {s} today",
    "the signing secret was rotated. It's {s} now", "Here is the key for the weather API: {s}", "api key `{s}`",
]  # fmt: skip

WORDS_AS_PASSWORDS = [
    ("the wifi password is swordfish", "swordfish"), ("the password for the wifi is swordfish.", "swordfish"),
    ("password=swordfish", "swordfish"), ("password: swordfish", "swordfish"), ("the password is 'letmein'", "letmein"),
    ("the passphrase is correct horse battery staple.", "horse battery"),
    ("passphrase: 'correct horse'", "correct horse"), ("my password is <b>swordfish</b>", "swordfish"),
    ("It was Fluffy2012 as password but now it's Fluffy2024", "Fluffy2024"),
    ("use this password:\n```\nTangerine88\n```", "Tangerine88"), ("recovery code: 8F2K-99QP-11ZX", "99QP"),
    ("My PIN is 4821.", "4821"), ("the door code is 4711#", "4711"), ("my password is 123456", "123456"),
    ("backup codes are 1234-5678, 2345-6789 and 3456-7890", "3456-7890"), ("login: admin / admin", "/ admin"),
]  # fmt: skip

NEAR_MISSES = """
rotate the password every 90 days
the token is stored in Vault
password reset flow
the API key is missing
password is required
use a password manager
the secret to good coffee is fresh water
the secret ingredient is cinnamon
the password must be at least 12 characters long
passwords need 2 digits and 1 symbol
the password is 8-16 characters
the password is too short
the password was wrong
the password is case-sensitive
the password is base64-encoded
the password was changed on Monday
the password was leaked in 2019
the password is the same as before
the password for the wifi is written on the board
the password to the vault is unknown.
the password is not stored in plaintext
what is the wifi password?
is the password still valid?
the new password didn't work
my password expired last week
her password is stronger than mine
no password set
the password lives in 1Password
password-protected archives
the password policy is NIST800-63B
the password hint is your pet's name
1Password is our password manager
Auth0 is our token provider
the token expires after 3600 seconds
the token is SHA-256 hashed
the token is a JWT signed with RS256
the token is valid until 2026-03-04
the access token is in ~/.config/app/token.json
the API key is 32 characters long
the API key goes into the .env file
the private key is encrypted on disk
the PIN is 4 digits long
enter your PIN at the terminal
pin 1013 is the clock line
GPIO pin 13 drives the LED
pin: 13
the zip code is 94110
the error code was 5003
exit code 137 means it was killed
promo code SAVE20 still works
status code 404 on /login
verification code sent to your phone
the passphrase is optional
the passphrase is derived from hardware
the key signature is D minor
press the enter key twice
the primary key is 550e8400-e29b-41d4-a716-446655440000
the cache key is user:1234:profile
the cache key is 5d41402abc4b2a76b9719d911017c592
sort_key=created_at
max_tokens=4096
"tokens": 1234
token_count: 4096
completion_tokens=512, prompt_tokens=128
next_page_token: CAUQAA2x7k9Zq81mmPz
eos_token: </s>
tokenizer: cl100k_base
Tokens per second: 83.2
ERC20 token on mainnet
password_hash_rounds: 12
password_min_length = 12
PASSWORD_RESET_TIMEOUT_DAYS=3
task_scheduler_service_account
secretName: db-credentials-v2
api_key_id: 12345678
password = get_password()
password = input("Password: ")
password = os.environ["DB_PASSWORD"]
api_key=os.getenv("API_KEY")
apiKey: process.env.API_KEY
token = request.headers.get("Authorization")
self.token = token
user.password = hash_password(password)
connect(password=pw, user=name)
if password == confirm_password:
password: str
password: SecretStr
token: OAuth2Token
def login(password: str, token: Optional[str] = None) -> bool:
password: Annotated[str, Field(min_length=8)]
password VARCHAR(255) NOT NULL
print("Password: ")
raise ValueError("password must not be empty")
from secrets import token_urlsafe
<input type="password" name="password" placeholder="Password">
<label for="token">Token</label>
password: "{{ vault_password }}"
secret: ${SECRET}
DB_PASSWORD=$DB_PASSWORD
token: <your-token>
password=********
password=xxxxxxxx
Database password: --omitted--
api_key = "YOUR_API_KEY"
password: changeme
SECRET_KEY=example
password: none
token: null
password: true
"password": ""
| password | required |
| name | type | password | string |
--password PASSWORD
--token TOKEN   the token to use
--password-file /run/pw
password: op://vault/db/password
private key: /etc/ssl/private/server.key
arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf
kubectl get secrets -n prod
secrets are mounted at /run/secrets/db
the token change landed in commit 8f4b7a0c1d2e3f405162738495a6b7c8d9e0f1a2
commit 8f4b7a0c1d2e3f405162738495a6b7c8d9e0f1a2
request id 550e8400-e29b-41d4-a716-446655440000 failed: token expired
order 01ARZ3NDEKTSV4RRFFQ69G5FAV needs a key account manager
record 1m7gm8r0xbhv4k784ejq mentions the password policy
"integrity": "sha512-oRLwz4RkJSaU7pqDmXWzAbnZQ2K9VtnqgkNeY0pJ3xE8h1vCwB6fTsGdHiLuMyQa=="
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bob@laptop
ssh -p 2222 deploy@host
mkdir -p build/output2024
docker run -p 8080:80 nginx
curl -u admin https://example.com
https://example.com:8443/path
postgres://user:password@localhost/db
https://user:pass@host:8000/path
postgresql://user:${PGPASSWORD}@localhost/db
https://example.com/search?key=name&sort=asc
https://example.com/?token=
Authorization: Bearer <token>
the bearer of this letter
basic authentication is disabled
Cookie: theme=dark; lang=en-US
Set-Cookie: consent=accepted; Max-Age=3600
log in with Google / Facebook
login: username / password
sign in with your email and password
log in at 10:30 tomorrow
a tax-advantaged retirement account, such as a 401(k) or IRA
credentials are rotated weekly
PASS: test_login_with_token
tests pass: 45 fail: 2
they pass `mask=None` to users
design token color-primary-500
seed: 1234
recovery phrase must be written down on paper and kept in a safe place away from any computer or phone
-----BEGIN PUBLIC KEY-----
look for the -----BEGIN RSA PRIVATE KEY----- header somewhere in the repository
between the -----BEGIN PRIVATE KEY----- and the matching -----END PRIVATE KEY----- markers
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk-your-key-here
sk-fading-circle-animation-container
npm_config_registry=https://registry.example.com
the prefix ghp_ marks personal access tokens
JWTs start with eyJ
my card is 4111 1111 1111 1111
""".strip().splitlines()


@rows("kind, prefix, alphabet, least, most", PREFIXES)
def test_a_token_with_a_vendors_prefix_is_taken_out_wherever_it_stands(kind, prefix, alphabet, least, most):
    """The whole token goes and its vendor is named."""
    token = vendor_token(prefix, alphabet, least)
    result = redact(f"I tried {token} and it failed")
    assert least <= most
    assert MARK.sub("#", result.text) == "I tried # and it failed"
    assert result.findings[0].kind == kind or prefix.startswith("sk")


@rows("kind, needle, pattern", SHAPES)
def test_a_token_of_a_vendors_shape_is_taken_out(kind, needle, pattern):
    """Every row of the table has an example, and the example is found by that row."""
    example = SHAPED["azure-key"].replace("Account", "SharedAccess") if "Shared" in needle else SHAPED[kind]
    result = redact(f"see {example} here")
    assert needle in example
    assert re.search(pattern, example)[0] not in result.text
    assert kind in {finding.kind for finding in result.findings}


@rows("text, secret", STRUCTURES.values())
def test_a_structure_that_holds_a_secret_loses_it(text, secret):
    """PEM blocks, URLs, headers, cookies, command lines and their like."""
    assert secret in text.replace("\\n", "\n")
    assert secret not in redact(text).text


@rows("line", ASSIGNMENTS)
def test_a_value_assigned_to_the_name_of_a_secret_is_taken_out(line):
    """Whatever the syntax, the name stays and the value goes."""
    secret = run_of(ALNUM, 20)
    text = line.format(s=secret)
    assert MARK.sub(secret, redact(text).text) == text
    assert secret not in redact(text).text


@rows("sentence", TOLD)
def test_a_password_told_in_a_sentence_is_taken_out_and_the_sentence_stays(sentence):
    """The secret goes, and not a character besides."""
    text = sentence.format(s=PASSWORD)
    result = redact(text)
    assert PASSWORD not in result.text
    assert MARK.sub(PASSWORD, result.text) == text


@rows("secret", [KEY, run_of(HEX, 40), base64.b64encode(KEY.encode()[:30]).decode()])
@rows("sentence", TOLD_KEYS)
def test_a_key_told_in_a_sentence_is_taken_out_and_the_sentence_stays(sentence, secret):
    """A key named as one is a secret even if it looks like a digest."""
    text = sentence.format(s=secret)
    result = redact(text)
    assert secret not in result.text
    assert MARK.sub(secret, result.text) == text


@rows("text, secret", WORDS_AS_PASSWORDS)
def test_plain_words_and_numbers_are_secrets_where_a_sentence_says_so(text, secret):
    """People choose words, and a PIN is only digits."""
    assert secret in text
    assert secret not in redact(text).text


@rows("text", NEAR_MISSES)
def test_a_text_that_speaks_of_secrets_and_tells_none_is_left_alone(text):
    """What is no secret is returned as it came, character for character."""
    result = redact(text)
    assert result.findings == ()
    assert result.text is text


def test_the_sentence_of_the_manual_reads_as_the_manual_says():
    """The secret is replaced in place, and the rest can still be read."""
    result = redact(f"the password is {PASSWORD}, use it for staging", key=b"k")
    assert re.fullmatch(r"the password is \[secret:password:[0-9a-f]{4}\], use it for staging", result.text)
    assert [(f.kind, f.start, f.end) for f in result.findings] == [("password", 16, 29)]
    assert result.findings[0].mark in result.text


def test_equal_secrets_get_equal_marks_and_others_other_marks():
    """One can see that two notes mean one secret."""
    same = redact(f"password: {PASSWORD}\nold password: {PASSWORD}\ndb password: {PASSWORD}x").findings
    assert same[0].mark == same[1].mark != same[2].mark


def test_another_key_gives_another_mark():
    """Without the key nobody can try out guesses against a mark."""
    marks = {redact(f"password: {PASSWORD}", key=bytes([k])).findings[0].mark for k in range(8)}
    assert len(marks) > 4


def test_the_user_and_the_host_of_a_url_stay():
    """Only the password of a connection string is a secret."""
    text = redact(f"postgres://app:{PASSWORD}@db.example.com:5432/app").text
    assert MARK.sub("#", text) == "postgres://app:#@db.example.com:5432/app"


def test_the_user_of_a_pair_stays():
    """Who logs in is worth remembering."""
    assert MARK.sub("#", redact(f"credentials are bob:{PASSWORD}").text) == "credentials are bob:#"


def test_prose_after_a_key_that_was_cut_off_stays():
    """A truncated block ends where sentences begin again."""
    text = redact(f"{pem(end=False)}\n\nThat was the key we used.").text
    assert text.endswith("\n\nThat was the key we used.")
    assert "BEGIN" not in text


def test_every_value_of_a_plural_is_taken_out():
    """A list of keys is more than its first."""
    keys = [run_of(ALNUM, 32, seed) for seed in range(3)]
    text = redact(f"the API keys are {keys[0]}, {keys[1]} and {keys[2]}.").text
    assert MARK.sub("#", text) == "the API keys are #, # and #."


def test_a_secret_longer_than_is_looked_at_goes_to_its_end():
    """What is judged by its beginning is not left at its end."""
    assert MARK.sub("#", redact(f"token={run_of(ALNUM, 900)} done").text) == "token=# done"


def test_a_vendors_token_inside_an_assigned_value_leaves_nothing_behind():
    """Overlapping finds become one, named by the more telling."""
    token = vendor_token("ghp_", "A-Za-z0-9", 36)
    result = redact(f"password=abc.{token}.def")
    assert MARK.sub("#", result.text) == "password=#"
    assert result.findings[0].kind == "github-pat"


@rows("invisible", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ue000"])
def test_invisible_characters_do_not_hide_a_secret(invisible):
    """They are skipped in matching, and go with the secret they were in."""
    token = vendor_token("ghp_", "A-Za-z0-9", 36)
    hidden = token[:9] + invisible + token[9:]
    result = redact(f"é {hidden} {token}")
    assert MARK.sub("#", result.text) == "é # #"
    assert result.findings[0].mark == result.findings[1].mark


def test_full_width_characters_do_not_hide_a_secret():
    """Positions are those of the text as it came."""
    wide = "".join(chr(ord(c) + 0xFEE0) for c in f"password={PASSWORD}")
    result = redact(f"so {wide} there")
    assert [(f.start, f.end) for f in result.findings] == [(12, 25)]
    assert result.text.endswith(" there")


@pytest.mark.parametrize("pack", [lambda s: base64.b64encode(s.encode()).decode(), lambda s: s.replace("_", "%5F")])
def test_an_encoded_vendor_token_is_taken_out_with_its_encoding(pack):
    """One look inside base64 and percent encoding."""
    packed = pack(vendor_token("ghp_", "A-Za-z0-9", 36))
    assert MARK.sub("#", redact(f"see {packed} here").text) == "see # here"


@pytest.mark.parametrize("text", ["password=[secret:password:9f3a]", "the token is [secret:github-pat:0000] now"])
def test_marks_are_left_as_they_are(text):
    """What was taken out before is not taken out again."""
    assert redact(text).text is text


def test_every_kind_of_the_tables_makes_a_mark_that_is_known_again():
    """A mark that is not recognised would be redacted a second time."""
    kinds = {row[0] for row in (*PREFIXES, *SHAPES)}
    assert all(MARK.fullmatch(f"[secret:{kind}:0a1b]") for kind in kinds)
    assert len({row[1] for row in PREFIXES}) == len(PREFIXES) >= 100


@rows("text", ["", "\x00", "\ud800", "password=\ud800abc123", f"İİİ password={PASSWORD}", "🔑"])
def test_strange_text_is_no_reason_to_fail(text):
    """Lone surrogates, NUL, letters that grow in lower case."""
    result = redact(text)
    assert PASSWORD not in result.text
    assert redact(result.text).text == result.text


def test_importing_the_module_compiles_nothing_and_loads_no_cryptography():
    """It is imported on the way to every command, most of which never meet a secret."""
    imports = "import sys, commonplace.redact.redaction; from commonplace.redact.names import rx"
    code = f"{imports}; print(rx.cache_info().currsize, 'hmac' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True).split() == ["0", "False"]


WORDS = "password PASSWORD token secret key api_key pin login credentials is was are to as for the our and use pass"
SIGNS = [" ", "  ", "\n", "=", ": ", "'", '"', "`", "/", ", ", ". ", "|", "(", ")", "://", "@", "?", "&", "--", "%5F"]
STARTS = ["sk-", "ghp_", "eyJ", "AKIA", "-----BEGIN PRIVATE KEY-----", "Cookie: ", "Authorization: Bearer ", "seed: "]
VALUES = [PASSWORD, KEY, run_of(HEX, 40), "swordfish", "4821", "[secret:password:9f3a]", "[secret:", "\u200b", "\ue000"]
FRAGMENTS = st.sampled_from([*WORDS.split(), *SIGNS, *STARTS, *VALUES])
TEXTS = st.one_of(
    st.text(),
    st.lists(FRAGMENTS, max_size=40).map("".join),
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=4))).map("".join),
)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text):
    """The redacted text holds nothing more to find."""
    once = redact(text, key=b"k")
    twice = redact(once.text, key=b"k")
    assert twice.findings == ()
    assert twice.text is once.text


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_findings_are_in_order_apart_and_inside_the_text(text):
    """What was found accounts for every change of the text, and for nothing else."""
    result = redact(text)
    rebuilt, at = "", 0
    for finding in result.findings:
        assert at <= finding.start < finding.end <= len(text)
        rebuilt, at = rebuilt + text[at : finding.start] + finding.mark, finding.end
    assert rebuilt + text[at:] == result.text


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PREFIXES), st.randoms(use_true_random=False), st.text(max_size=60), st.text(max_size=60))
def test_a_vendors_token_is_gone_whatever_is_around_it(row, rng, before, after):
    """Prose on both sides, set off by blanks, does not hide it."""
    _, prefix, alphabet, least, _ = row
    allowed = [c for c in string.printable if re.fullmatch(f"[{alphabet}]", c) and c.isalnum()]
    token = prefix + "".join(rng.choices(allowed, k=least - 1)) + "7"
    assert token not in redact(f"{before} {token} {after}").text


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TOLD), st.text(ALNUM, min_size=4, max_size=20), st.text(max_size=30))
def test_a_told_password_is_gone_whatever_it_is_made_of(sentence, letters, before):
    """Any letters with a digit and a sign among them."""
    secret = f"{letters}7!{letters}z"
    assert secret not in redact(f"{before}\n{sentence.format(s=secret)}").text


HOSTILE = [
    "password=", "password ", "the password is ", "token: ", "key-", "use a1 as the password ", "a", " ", "'", "://a:b",
    "eyJ", "eyJa.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIEabcd1234abcd1234\n", "ghp_", "sk-",
    "glpat-a", "AKIA", "login: a / ", "cookie: a=b; ", "mysql -p", "curl -u a:", "seed phrase is abandon ",
    "| password |\n|--|\n", "%41", "A" * 30 + " ", "?key=", "[secret:a:", "\u200b", "Authorization: Bearer ",
    "passwords are a1b2c3, ", "password" + " " * 60, "x@y.", "<password>", "-" * 70 + "|\n", "user, pass 1",
    "password=your-key-", "password: it is now ", "|--|\n| a ",
    '"name": "password", "value": ', "my pass is ", "the pass for x ", "user,password\nbob,x1y2z3\n",
    "token,abcdefgh1,",
    "recovery codes a1b2 ", "a1b2-c3d4 ", "&#97;", "\\u0070", "x (password) ", "password?\nA: ", "*:*:*:d:eeee\n",
    "<password>\n ", "token ::=", "ghp_abcdefg1\n", "70617373", "iVBORw0KGgo", "hasło to ", "ssid key ",
]  # fmt: skip


def seconds_for(text):
    """Processor time, the better of two, because the machine has other work."""
    spent = []
    for _ in range(2):
        began = time.process_time()
        redact(text)
        spent.append(time.process_time() - began)
    return min(spent)


@rows("unit", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(unit):
    """Four times the text may take some times as long, but not sixteen times."""
    short = unit * (10_000 // len(unit))
    seconds_for(short[:100])
    assert seconds_for(short * 4) < 10 * max(seconds_for(short), 0.002)


@pytest.mark.slow
@rows("unit", HOSTILE)
def test_long_hostile_text_takes_no_more_than_twice_and_some_of_half_of_it(unit):
    """No pattern may make one write of 128 KB hold up the rest."""
    half = unit * (64_000 // len(unit))
    assert seconds_for(half * 2) < 4 * max(seconds_for(half), 0.01)
