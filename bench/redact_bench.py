"""What the redactor finds, what it leaves behind, what it takes by mistake, and how fast it is.

Everything is generated here from a seed; nothing is read, and no real-looking secret stands in this file.
Run: `python bench/redact_bench.py [--misses]`.  The sentences are meant to differ from those the rules were made from;
both have one author all the same, so expect less on other people's prose.  Those held out (`redact_classes.py`) were
written before the rules for their class, and their misses are counted and never shown.
"""

from __future__ import annotations

import base64
import random
import re
import string
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from redact_classes import (
    PROSE_HELD_OUT,
    PROSE_TUNED,
    SYNTAX_HELD_OUT,
    SYNTAX_TUNED,
    TABLE_HELD_OUT,
    TABLE_TUNED,
)

from commonplace.redact.personal import find_personal
from commonplace.redact.redaction import redact
from commonplace.redact.vendors import PREFIXES

Case = tuple[str, str, str]  # class, text, the secret in it

SEED = 20240229
CASES_PER_CLASS = 300

ALNUM = string.ascii_letters + string.digits
PLACES = [
    "the staging box",
    "prod",
    "Grafana",
    "the NAS",
    "my Netflix",
    "the office printer",
    "db-02",
    "the VPN",
    "our CI",
]
PEOPLE = ["Maria", "the intern", "Tom", "Priya from ops", "my brother", "the client"]
SERVICES = [
    "Datadog",
    "Mapbox",
    "Algolia",
    "OpenWeather",
    "Sentry",
    "the billing service",
    "Twilio",
    "our CDN",
    "Stripe",
]
WORD_LIST = "amber bridge copper dolphin ember falcon garnet harbor island jungle kettle lantern meadow nickel orchid"
SEED_LIST = """abandon ability able about above absent absorb abstract absurd abuse access accident account acid
acoustic across act action actor actress actual adapt add addict address adjust admit adult advance
advice aerobic affair afford again age agent agree ahead aim air airport aisle alarm album alcohol
alert alien all alley allow almost alone alpha"""
WORDS, SEED_WORDS = WORD_LIST.split(), SEED_LIST.split()


def run(rng: random.Random, alphabet: str, length: int) -> str:
    """Return random characters."""
    return "".join(rng.choices(alphabet, k=length))


def human_password(rng: random.Random) -> str:
    """What people choose: a word bent a little, two words, a season and a year, or a generator's line."""
    word = rng.choice(WORDS)
    return rng.choice(
        [
            f"{word.title()}{rng.randint(10, 9999)}",
            f"{word}{rng.choice('!#$%&*')}{rng.randint(1, 99)}",
            word.replace("a", "@").replace("e", "3") + str(rng.randint(0, 99)) + "!",
            f"{word.title()}-{rng.choice(WORDS)}-{rng.randint(1, 999)}",
            f"{rng.choice(['Spring', 'Summer', 'Winter'])}{rng.randint(2019, 2026)}{rng.choice('!?$')}".rstrip("?"),
            run(rng, ALNUM + "!@#$%^&*", rng.randint(10, 18)).strip("!@#$%^&*") + "x7",
            f"{word}{rng.choice(WORDS)}{rng.randint(1, 9)}",
        ]
    )


def random_token(rng: random.Random) -> str:
    """Return what a service would hand out."""
    return rng.choice(
        [
            run(rng, ALNUM, rng.choice([24, 32, 40])),
            run(rng, "0123456789abcdef", rng.choice([32, 40])),
            run(rng, ALNUM + "_-", 36).strip("_-") + "9a",
            base64.b64encode(rng.randbytes(30)).decode(),
        ]
    )


PROSE_PASSWORDS = [
    "Quick note, {place} wants the password {s} from now on.",
    "{who} told me that the password on {place} is {s}.",
    "I just reset my password to {s}, please remember it.",
    "The login for {place} is admin and the password is {s}",
    "If it asks for a password, type {s} and press enter.",
    "fyi the new pw is {s}",
    "You can get into {place} with the password {s}.",
    "Old password was {s} but we rotated it yesterday.",
    "password for {place} = {s}",
    "The Wi-Fi at the cabin: network LakeHouse, password {s}.",
    "My passphrase is {s}; don't tell {who}.",
    "We agreed on {s} as the root password.",
    "root's password on {place} has been changed to {s} this morning",
    "Please store this: username bob, password {s}.",
    'Remember that {who} uses "{s}" as password everywhere.',
    "Password ({place}): {s}",
    "The admin password, in case you need it, is {s}.",
    "credentials for {place}: bob / {s}",
    "log in to {place} as deploy with {s} as your password",
    "The password you are looking for is {s}.",
    "it's {s} - that's the password for {place}",
    "Use the following password: {s}",
    "the db password `{s}` still works",
    "My bank password? {s}. Keep it safe.",
    "> Password: {s}\n> URL: https://intranet.example.com",
    "Set the password of the guest account to {s}, then reboot.",
    "{who}'s password is {s}, I think.",
    "passwd: {s}",
    "Sign in with bob@example.com / {s} to see the dashboard.",
    "For {place} I always use the same password, {s}.",
]
# Plain words, which only the sentence gives away.
PROSE_WORDS = [
    "The wifi password at the cabin is {s}.",
    "the password for {place} is {s}",
    'My passphrase is "{s}".',
    "Password: {s}",
    "we set the password to {s} for now",
    "the password to {place} was {s}, I believe",
    "use '{s}' as the password",
    "password={s}",
    'It\'s "{s}", the password I mean',
    "{who} says the password is still {s}",
]
# Told in a roundabout way; known to be missed, and here so that nobody takes the other rows for the whole truth.
PROSE_OBLIQUE = [
    "the box on {place} wants {s}, same as always, for the password prompt",
    'Type "{s}" when it asks for the password',
    'It was "{s}" (the old wifi password)',
    "my router page: 192.168.1.1, admin/{s}",
    "I told {who} that {s} gets you in",
    "try {s}, and if that fails, ask {who} for the current password",
    "first {s}, then the password manager opens",
    "For the FTP server, use ftp_user and {s}",
    "the password starts with {s} and then the year",
    "Password changed by {who}, you now need {s}",
]
PROSE_TOKENS = [
    "Our API key for {service} is {s}, do not share it.",
    "I've generated a new access token for {service}: {s}",
    "{service} token: {s}",
    "Set the header X-Api-Key to {s} when you call {service}.",
    "the client secret we got from {service} is {s}",
    "{s} is the API key for {service}",
    "Please use {s} as the {service} token from now on.",
    "Here is the key for the {service} API: {s}",
    "The webhook signing secret changed. It's {s} now.",
    "{who} pasted the secret key {s} into the chat",
    "add {service} (api key {s}) to the config",
    "remember my {service} api key: `{s}`",
    "the auth token used by the cron job is {s}.",
    "Bearer token for tests → {s}",
    "we call {service} with the token {s} until Friday",
]
ASSIGNED_PASSWORDS = [
    "DB_PASSWORD={s}",
    '{{"user": "bob", "password": "{s}", "port": 5432}}',
    "spring.datasource.password={s}",
    "<connectionPassword>{s}</connectionPassword>",
    "$config['db_password'] = '{s}';",
    "Server=db;User Id=sa;Password={s};Encrypt=true",
    'password: str = "{s}"',
    "docker run -e POSTGRES_PASSWORD={s} postgres:16",
    "**Password:** {s}",
    "machine api.example.com login bob password {s}",
    '<add key="SmtpPassword" value="{s}" />',
    "| user | password |\n|---|---|\n| bob | {s} |",
    "ansible_become_pass: {s}",
    "password\t=\t{s}",
]
ASSIGNED_TOKENS = [
    "export SERVICE_TOKEN='{s}'",
    "  apiKey: {s}",
    "| api key | {s} |",
    'client_secret => "{s}"',
    '- name: API_TOKEN\n  value: "{s}"',
    'const authToken = "{s}";',
    "curl -H 'X-Auth-Token: {s}' https://api.example.com/v1",
    'os.environ["OPENAI_API_KEY"] = "{s}"',
    "//registry.example.com/:_authToken={s}",
    "SECRET_KEY_BASE={s}",
    "aws_secret_access_key = {s}",
    '"Secret": "{s}",',
    "encryption_key: !!binary {s}",
    "DD_API_KEY={s} ./run.sh",
]
COMMANDS = [
    "mysql -u root -p{s} shop",
    "sshpass -p '{s}' ssh deploy@host",
    "curl -u bob:{s} https://api.example.com",
    "docker login -u bob -p {s} registry.example.com",
    "redis-cli -h cache -a {s} ping",
    "psql postgresql://app:{s}@db.internal:5432/app",
    "vault login --token {s}",
    "az login -u bob@example.com -p {s}",
    "mongodump --username=bob --password={s}",
    "git clone https://oauth2:{s}@gitlab.example.com/a/b.git",
]
Maker = Callable[[random.Random], tuple[str, str]]
STRUCTURES: dict[str, Maker] = {}


def structure(make: Maker) -> Maker:
    """Enter a maker of texts with a secret in them."""
    STRUCTURES[make.__name__.replace("_", "-")] = make
    return make


@structure
def pem(rng: random.Random) -> tuple[str, str]:
    """A private key, whole or cut off, with three kinds of line ends."""
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "])
    lines = [run(rng, ALNUM + "+/", 64) for _ in range(rng.randint(3, 24))]
    newline = rng.choice(["\n", "\\n", "\r\n"])
    end = rng.choice([f"{newline}-----END {kind}PRIVATE KEY-----", ""])
    return f"the key we deploy with:\n-----BEGIN {kind}PRIVATE KEY-----{newline}{newline.join(lines)}{end}", lines[-1]


@structure
def jwt(rng: random.Random) -> tuple[str, str]:
    """A signed token in three surroundings."""
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(b'{"sub":"' + str(rng.random()).encode() + b'"}').decode().rstrip("=")
    token = f"{header}.{body}.{run(rng, ALNUM + '_-', 43)}"
    texts = ["it failed with {} yesterday", "Authorization: Bearer {}", "cookie was session={}; Path=/"]
    return rng.choice(texts).format(token), token


@structure
def url(rng: random.Random) -> tuple[str, str]:
    """A password in a connection string."""
    password = run(rng, ALNUM, rng.randint(6, 20))
    scheme = rng.choice(["postgres", "mongodb+srv", "redis", "amqps", "https", "ftp", "smtp"])
    user, host = rng.choice(["app", "bob", ""]), f"host-{rng.randint(1, 9)}.example.com"
    return f"Connect to {scheme}://{user}:{password}@{host}/x for now", password


@structure
def header(rng: random.Random) -> tuple[str, str]:
    """An Authorization header."""
    basic = base64.b64encode(f"bob:{human_password(rng)}".encode()).decode()
    secret = rng.choice([basic, run(rng, ALNUM, 32)])
    scheme = "Basic" if secret == basic else rng.choice(["Bearer", "Token"])
    texts = ["Authorization: {} {}", '"authorization": "{} {}"', "-H 'Authorization: {} {}'"]
    return rng.choice(texts).format(scheme, secret), secret


@structure
def query(rng: random.Random) -> tuple[str, str]:
    """A parameter of a URL."""
    secret = run(rng, ALNUM, rng.randint(16, 40))
    name = rng.choice(["key", "token", "sig", "signature", "access_token", "api_key", "secret", "X-Amz-Signature"])
    return f"open https://api.example.com/v1/items?page=2&{name}={secret}&sort=asc please", secret


@structure
def otpauth(rng: random.Random) -> tuple[str, str]:
    """The secret of a second factor."""
    secret = run(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
    return f"scan otpauth://totp/Example:bob?secret={secret}&issuer=Example", secret


@structure
def cookie(rng: random.Random) -> tuple[str, str]:
    """A session."""
    secret = run(rng, ALNUM, 26)
    name = rng.choice(["sessionid", "PHPSESSID", "connect.sid", "auth_token", "_session_id"])
    return rng.choice(["Cookie: theme=dark; {}={}", "Set-Cookie: {}={}; HttpOnly; Path=/"]).format(name, secret), secret


@structure
def seed_phrase(rng: random.Random) -> tuple[str, str]:
    """The words of a wallet."""
    words = rng.choices(SEED_WORDS, k=rng.choice([12, 15, 18, 24]))
    leads = ["My wallet's seed phrase is: ", "recovery phrase for the Ledger - ", 'mnemonic = "', "the seed words are "]
    return f"{rng.choice(leads)}{' '.join(words)}\nNever lose it.", " ".join(words[-4:])


@structure
def pin(rng: random.Random) -> tuple[str, str]:
    """Digits that open something."""
    secret = str(rng.randint(1000, 999999))
    texts = [
        "the alarm code is {}",
        "My PIN is {}.",
        "door code: {}",
        "the access code was changed to {}",
        "SIM PIN {}",
    ]
    return rng.choice(texts).format(secret), secret


@structure
def hidden(rng: random.Random) -> tuple[str, str]:
    """A token that was disguised."""
    secret = "ghp_" + run(rng, ALNUM, 36)
    split = rng.randint(5, 30)
    invisible = secret[:split] + rng.choice(["\u200b", "\u2060", "\u00ad"]) + secret[split:]
    wide = "".join(chr(ord(c) + 0xFEE0) for c in secret)
    packed = base64.b64encode(f"token={secret}".encode()).decode()
    percent = secret.replace("_", "%5F")
    return rng.choice([(f"see {x} here", x) for x in (invisible, wide, packed, percent)])


def vendor(rng: random.Random) -> Case:
    """One row of the vendors' table, in one of a few surroundings."""
    _, prefix, alphabet, least, most = rng.choice(PREFIXES)
    letters = "".join(c for c in map(chr, range(33, 127)) if re.match(f"[{alphabet}]", c))
    solid = "".join(c for c in letters if c.isalnum())
    length = rng.randint(least, min(most, least + 12))
    secret = prefix + run(rng, letters, length - 2) + rng.choice(solid) + rng.choice(string.digits)
    text = rng.choice(["try {} for this", "{}", "it said: {}.", "({})", "key={}", "the value `{}` was in the log"])
    return "vendor", text.format(secret), secret


def positives(rng: random.Random) -> list[Case]:
    """Every class, with the secret that must go."""
    cases: list[Case] = []
    for _ in range(CASES_PER_CLASS):
        fill = {"place": rng.choice(PLACES), "who": rng.choice(PEOPLE), "service": rng.choice(SERVICES)}
        cases.append(vendor(rng))
        for label, templates, make in (
            ("prose-password", PROSE_PASSWORDS, human_password),
            ("prose-word", PROSE_WORDS, lambda r: r.choice(WORDS) + r.choice(["", r.choice(WORDS)])),
            ("prose-oblique", PROSE_OBLIQUE, human_password),
            ("prose-token", PROSE_TOKENS, random_token),
            ("assigned-password", ASSIGNED_PASSWORDS, human_password),
            ("assigned-token", ASSIGNED_TOKENS, random_token),
            ("command", COMMANDS, lambda r: run(r, ALNUM, r.randint(8, 20))),
        ):
            secret = make(rng)
            cases.append((label, rng.choice(templates).format(s=secret, **fill), secret))
    for label, build in STRUCTURES.items():
        cases += [(label, *build(rng)) for _ in range(CASES_PER_CLASS // 3)]
    return cases


# Sentences and lines that speak of secrets and hold none.
NEAR_MISSES = """
rotate the password every {n} days
the token is stored in Vault
password reset flow
the API key is missing
password is required
use a password manager
the secret to good coffee is fresh beans
she is the key to the whole project
my password expired last week
the password must be at least 12 characters long
passwords should contain 2 digits and 1 symbol
the token expires after 3600 seconds
the access token is valid until 2026-03-04
I forgot my password again
the secret is out
the PIN is 4 digits long
enter your PIN at the terminal
GPIO pin 13 drives the LED
the zip code is 94110
the area code is 415
the error code was 5003
exit code 137 means it was killed
promo code SAVE20 still works
status code 404 on /login
the cache key is user:{n}:profile
primary key is {uuid}
foreign key customer_id references customers
public key {hex}{hex}
press the enter key twice
the key signature is D minor
token bucket of size {n}
max_tokens=4096
"tokens": 1234
token_count: 4096
completion_tokens=512, prompt_tokens=128
password_hash_rounds: 12
password_min_length = 12
PASSWORD_RESET_TIMEOUT_DAYS=3
password = get_password()
password = os.environ["DB_PASSWORD"]
token = request.headers.get("Authorization")
api_key=os.getenv("API_KEY")
secret: ${{SECRET}}
password: "{{{{ vault_password }}}}"
DB_PASSWORD=$DB_PASSWORD
apiKey: process.env.API_KEY
token: <your-token>
password=********
password=xxxxxxxx
api_key = "YOUR_API_KEY"
password: changeme
SECRET_KEY=example
password: str
def login(password: str, token: Optional[str] = None) -> bool:
password: Annotated[str, Field(min_length=8)]
self.token = token
user.password = hash_password(password)
if password == confirm_password:
assert token is not None
raise ValueError("password must not be empty")
print("Password: ")
<input type="password" name="password" placeholder="Password">
<label for="token">Token</label>
password VARCHAR(255) NOT NULL
ALTER TABLE users ADD COLUMN password_hash text
commit {sha}
fixed in {sha}, see the token refresh change
the token change landed in commit {sha}
sha256:{hex}{hex}
"integrity": "sha512-{b64}=="
request id {uuid} failed: token expired
trace {hex} shows the password reset mail
order {ulid} needs a new key account manager
record {own} mentions the password policy
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} bob@laptop
the public key is ssh-rsa AAAAB3NzaC1yc2E{b64}
task_scheduler_service_account
secret_manager_client = SecretManagerClient()
from secrets import token_urlsafe
import getpass
kubectl get secrets -n prod
kubectl create secret generic db-credentials --from-env-file=.env
the secret name is prod/db/main
secretName: db-credentials-v2
arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf
password: op://vault/db/password
the password lives in 1Password
the token is in ~/.config/app/token.json
private key: /etc/ssl/private/server.key
ssh -p 2222 deploy@host
mkdir -p build/output2024
docker run -p 8080:80 nginx
curl -u admin https://example.com
git push -u origin feature/token-refresh
https://example.com:8443/path
postgres://user:password@localhost/db
https://example.com/search?key=name&sort=asc
https://example.com/?token=
Authorization: Bearer <token>
Authorization header is missing
the bearer of this letter
basic authentication is disabled
Cookie: theme=dark; lang=en-US
Set-Cookie: consent=accepted; Max-Age=3600
the cookie banner shows twice
log in with Google / Facebook
login: username / password
sign in with your email and password
log in at 10:30 tomorrow
credentials are rotated weekly
our credentials page is under /settings
the password hint is your pet's name
the passphrase is optional
her password is stronger than mine
the password is case-sensitive
the password is base64-encoded
the token is SHA-256 hashed
the token is a JWT signed with RS256
the API key is 32 characters long
the password is too short
the password was leaked in 2019
the password was changed on Monday
the password is the same as before
what is the wifi password?
is the password still valid?
the new password didn't work
that's the whole secret
secrets are mounted at /run/secrets/db
no password set
password: none
token: null
password: true
"password": ""
"password": null
| password | required |
| name | type | password | string |
--password PASSWORD
--token TOKEN   the token to use
--password-file /run/pw
PASS: test_login_with_token
tests pass: 45 fail: 2
boarding pass for gate B12
mountain pass at 2300 m
design token color-primary-500
eos_token: </s>
next_page_token: abc
tokenizer: cl100k_base
the tokenizer splits on whitespace
lost my keys in the car
the keynote is at 9
keyword arguments: key=value
sort_key=created_at
ERC20 token on mainnet
Tokens per second: 83.2
the seed is 42
seed: 1234
plant the tomato seed in spring when the soil is warm and dry and water it every day until it sprouts
recovery phrase must be written down on paper and kept in a safe place away from any computer or phone
-----BEGIN PUBLIC KEY-----
-----BEGIN CERTIFICATE-----
look for the -----BEGIN RSA PRIVATE KEY----- header
api_key_id: {n}
key_id = {uuid}
the secret ingredient is cinnamon
secret santa is on December 12th
two-factor codes are sent by SMS
verification code sent to your phone
dress code is smart casual
source code is on GitHub
the combination of both is {word}
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk-your-key-here
sk-fading-circle-animation-container
npm_config_registry=https://registry.example.com
hf_transformers_cache_directory
AKIA is the prefix of access key ids
the prefix ghp_ marks personal access tokens
JWTs start with eyJ
""".strip().splitlines()


def near_misses(rng: random.Random) -> list[str]:
    """Fill in digests, ids and numbers, each line alone and within a note."""
    lines = []
    for template in NEAR_MISSES:
        fill = {
            "hex": run(rng, "0123456789abcdef", 32),
            "sha": run(rng, "0123456789abcdef", 40),
            "uuid": "-".join(run(rng, "0123456789abcdef", k) for k in (8, 4, 4, 4, 12)),
            "ulid": "01" + run(rng, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24),
            "own": run(rng, "0123456789abcdefghjkmnpqrstvwxyz", 20),
            "b43": run(rng, ALNUM, 43),
            "b64": run(rng, ALNUM, 64),
            "word": rng.choice(WORDS),
            "n": str(rng.randint(10, 9999)),
        }
        lines += [template.format(**fill), f"Note for later: {template.format(**fill)}"]
    return lines


def ordinary(rng: random.Random, size: int) -> str:
    """Plain sentences about an engineer's day, some of which name secrets without telling them."""
    parts = [
        "We moved the {} service to the new cluster and the latency went down by {} percent.",
        "{} asked whether the report about {} could wait until Thursday, and I said yes.",
        "The build of {} failed twice because the disk was full; after cleaning up it took {} minutes.",
        "Please remember that I prefer short answers and tabs over spaces in {} files.",
        "The token for {} expires every {} days, so put a reminder in the calendar.",
        "See https://docs.example.com/{}/guide?page={} for how the password policy is set.",
    ]
    text = ""
    while len(text) < size:
        text += rng.choice(parts).format(rng.choice(WORDS), rng.randint(2, 90)) + " "
    return text[:size]


def is_clean(secret: str, kept: str) -> bool:
    """No six characters in a row of the secret are left; the marks name vendors and do not count."""
    kept = re.sub(r"\[secret:[a-z0-9-]+:[0-9a-f]{4}\]", "\0", kept)
    width = min(6, len(secret))
    return not any(secret[i : i + width] in kept for i in range(len(secret) - width + 1))


def report_recall(rng: random.Random, *, show: bool) -> None:
    """Print how many texts were flagged, and how many left nothing of their secret."""
    tally: dict[str, list[int]] = {}
    for label, text, secret in positives(rng):
        result = redact(text, key=b"bench")
        found, clean = bool(result.findings), is_clean(secret, result.text)
        row = tally.setdefault(label, [0, 0, 0])
        row[0] += 1
        row[1] += int(found)
        row[2] += int(clean)
        if show and not clean:
            print(f"  miss [{label}] {text!r} -> {result.text!r}")
    print(f"{'class':<20}{'cases':>7}{'recall':>9}{'clean':>9}")
    plain = [row for label, row in tally.items() if label != "prose-oblique"]
    tally["all but oblique"] = [sum(column) for column in zip(*plain, strict=True)]
    for label, (cases, flagged, cleaned) in tally.items():
        print(f"{label:<20}{cases:>7}{flagged / cases:>9.1%}{cleaned / cases:>9.1%}")


VENDOR_NAMES = ["adafruit", "adobe", "algolia", "asana", "codecov", "fastly", "kraken", "lob", "okta", "snyk"]
TWO_WORD_SHAPES = ["{}.{}!", "{}-{}", "{}{}", "{}_{}", "{}&{}", "{}{}!", "{}.{}", "{}/{}#"]


def two_word_password(rng: random.Random) -> str:
    """Return two capitalised words with a sign or none, which the form of the text has to give away."""
    return rng.choice(TWO_WORD_SHAPES).format(*(word.title() for word in rng.sample(WORDS, 2)))


def vendor_secret(rng: random.Random) -> str:
    """Return a token without a prefix, as most vendors hand out: of one alphabet, or a UUID."""
    uuid = "-".join(run(rng, "0123456789abcdef", k) for k in (8, 4, 4, 4, 12))
    lower = run(rng, string.ascii_lowercase + string.digits, rng.choice([20, 24, 32, 40, 64]))
    return rng.choice([uuid, lower, run(rng, "0123456789abcdef", rng.choice([32, 40, 64])), random_token(rng)])


FORMS: dict[str, tuple[list[str], list[str], Callable[[random.Random], str]]] = {
    "syntax": (SYNTAX_TUNED, SYNTAX_HELD_OUT, vendor_secret),
    "prose": (PROSE_TUNED, PROSE_HELD_OUT, human_password),
    "prose, two words": (PROSE_TUNED, PROSE_HELD_OUT, two_word_password),
    "table": (TABLE_TUNED, TABLE_HELD_OUT, human_password),
}


def report_forms(rng: random.Random, *, show: bool) -> None:
    """Print how many secrets left nothing of themselves, form by form, tuned and held out."""
    print(f"{'form':<20}{'tuned':>16}{'held out':>16}")
    for name, (tuned, held_out, make) in FORMS.items():
        shares = [_clean_share(rng, tuned, make, show=show), _clean_share(rng, held_out, make, show=False)]
        print(f"{name:<20}" + "".join(f"{share:>16.1%}" for share in shares))


def _clean_share(
    rng: random.Random, templates: list[str], make: Callable[[random.Random], str], *, show: bool
) -> float:
    clean = 0
    cases = [(template, make(rng)) for template in templates for _ in range(40)]
    for template, secret in cases:
        fill = {"u": rng.choice(["bob", "deploy", "ada"]), "h": rng.choice(["grafana", "staging", "db-02", "the NAS"])}
        text = template.format(s=secret, i=rng.choice(VENDOR_NAMES), **fill)
        left = redact(text, key=b"bench").text
        clean += is_clean(secret, left)
        if show and not is_clean(secret, left):
            print(f"  miss {text!r} -> {left!r}")
    return clean / len(cases)


def report_near_misses(rng: random.Random, *, show: bool) -> None:
    """Print what was taken by mistake."""
    lines = near_misses(rng)
    alarms = [line for line in lines if redact(line).findings]
    print(f"near misses: {len(alarms)} false alarms in {len(lines)} lines ({len(alarms) / len(lines):.2%})")
    for line in alarms if show else []:
        print(f"  alarm {line!r} -> {redact(line).text!r}")


# Where numbers are found that may be a card: named, in groups, and as part of something else.
CARD_PLACES = ["my card is {g}", "Visa {p}, 12/29", "pay with {g}.", '{{"card": "{p}"}}', "credit card no. {p}"]
OTHER_PLACES = [
    "order {g}", "id={p}", "https://example.com/{p}?card=1", "sku_{p}_x", "0x{p}", "item {p}", "at {p} ns", "{p}a1b2",
    "tracking {p}", "commit {p}abcdef", "[{p}]", "line {p}: ok",
]  # fmt: skip


def with_luhn(digits: str) -> str:
    """Return digits with the check digit of a card number."""
    doubled = [int(one) * (2 - place % 2) for place, one in enumerate(reversed(digits))]
    return digits + str(-sum(one // 10 + one % 10 for one in doubled) % 10)


def with_mod97(country: str, account: str) -> str:
    """Return an account with the check digits of an IBAN."""
    number = int("".join(str(int(letter, 36)) for letter in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02}{account}"


def grouped(number: str) -> str:
    """Return a number in groups of four."""
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


def report_personal(rng: random.Random) -> None:
    """Print how many numbers with a right check digit are recognised, and how many others."""
    right = wrong = elsewhere = 0
    for _ in range(CASES_PER_CLASS):
        card = with_luhn(rng.choice("45") + str(rng.randint(1, 5)) + run(rng, string.digits, 13))
        false = card[:-1] + str((int(card[-1]) + rng.randint(1, 9)) % 10)
        iban = with_mod97("DE", run(rng, string.digits, 18))
        off = f"DE{(int(iban[2:4]) % 97) + 1:02}{iban[4:]}"
        place = rng.choice(CARD_PLACES)
        right += bool(find_personal(place.format(p=card, g=grouped(card))))
        right += bool(find_personal(f"wire it to {rng.choice([iban, grouped(iban)])}, please"))
        wrong += bool(find_personal(place.format(p=false, g=grouped(false))))
        wrong += bool(find_personal(f"wire it to {off}, please"))
        elsewhere += bool(find_personal(rng.choice(OTHER_PLACES).format(p=card, g=grouped(card))))
    cases = 2 * CASES_PER_CLASS
    print(f"personal data: {right / cases:.1%} of {cases} cards and IBANs recognised; tagged by mistake: {wrong} of")
    print(f"  {cases} with a wrong check digit, {elsewhere} of {cases // 2} with a right one that are no card")


def best_of(work: Callable[[], object], times: int = 7) -> float:
    """Return the processor time of the fastest run."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def report_speed(rng: random.Random) -> None:
    """As a ratio to the cheapest useful pass over the same text, because absolute times say more about the machine."""
    texts = [ordinary(rng, 1000) for _ in range(200)]
    plain = re.compile(r"password\s*[:=]\s*\S+")
    ours = best_of(lambda: [redact(text) for text in texts])
    theirs = best_of(lambda: [plain.sub("x", text.lower()) for text in texts])
    print(f"speed: {ours / len(texts) * 1e3:.2f} ms per kB, {ours / theirs:.0f} times a lower() and one sub()")


def main() -> None:
    """Print all figures."""
    show = "--misses" in sys.argv
    rng = random.Random(SEED)
    report_recall(rng, show=show)
    report_forms(rng, show=show)
    report_near_misses(rng, show=show)
    report_personal(rng)
    report_speed(rng)


if __name__ == "__main__":
    main()
