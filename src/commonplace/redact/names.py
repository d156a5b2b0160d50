"""Find the names of secrets in a text, and the class of values that each announces.  The values are judged elsewhere.

"Password", `apiKey`, `spring.datasource.password` and "door code" name secrets; `token_count`, `public_key` and "the
primary key" name none.  The lowest module of this folder: what the others share is here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

# A private-use character: replaces one mark or one found secret while scanning, and is dropped from the input.
GONE = "\ue000"

Hit = tuple[int, int, str]  # start, end, kind
Noun = tuple[str, str]  # what class of values a name holds ("password", "token", ...), and the kind to print


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


@cache
def rx(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern; compiles it on first use."""
    return re.compile(pattern)


_FOREIGN = (
    r"(?<![a-z])(?:kennwort|passwort|contrase[ñn]a|clave|senha|mot de passe|wachtwoord|hasło|heslo"
    r"|lösenord(?:et)?|adgangskoden?|passord(?:et)?|salasana|parola|şifre|jelszó)(?![a-z])"
    r"|пароль|密码|密碼|パスワード|비밀번호|비번|암호|패스워드"
)
_MISSPELT = "passowrd|paasword|pasword|passwrd|passwrod|pssword"
_NAMES = (
    rf"{_FOREIGN}|{_MISSPELT}|pass(?:[ -]?(?:word|phrase|code|key)|wd)?s?|pwd|(?<![a-z0-9])p/?w(?![a-z0-9])|psk|token"
    r"|secret|cred|keys?(?![a-z])|(?<![a-z])(?:pin|otp)s?(?![a-z])|codes?(?![a-z])|combo|combination"
    r"|(?<![a-z0-9])_?auth(?=[\"']?[ ]?[=:])"
)
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$")
_NAME_AT_MOST = 48
_LEAD = 64  # characters before a name that say what it is about

_PASSWORD = ("password", "password")
_PASSPHRASE = ("passphrase", "passphrase")
_PASS = ("pass", "password")
KINDS: dict[str, Noun] = {
    **dict.fromkeys(("password", "passwords", "passwd", "pwd", "pw", "psk", "passkey"), _PASSWORD),
    **dict.fromkeys(_MISSPELT.split("|"), _PASSWORD),
    **dict.fromkeys(("passphrase", "passphrases"), _PASSPHRASE),
    **dict.fromkeys(("passcode", "passcodes"), ("password", "passcode")),
    **dict.fromkeys(("token", "tokens"), ("token", "token")),
    **dict.fromkeys(("secret", "secrets"), ("token", "secret")),
    **dict.fromkeys(("credential", "credentials", "cred", "creds", "auth"), ("credential", "credential")),
    **dict.fromkeys(("pin", "pins", "otp", "otps"), ("pin", "pin")),
}
# Names written in one word: `dbpassword`, `authtoken`.
_ENDINGS: dict[str, Noun] = {
    "password": _PASSWORD,
    "passwd": _PASSWORD,
    "passphrase": _PASSPHRASE,
    "token": ("token", "token"),
    "secret": ("token", "secret"),
    **{f"{head}key": ("token", f"{head}-key") for head in ("api", "access", "secret", "private", "auth")},
}
# "Our Mapbox key" holds a secret; "the primary key" does not.
_KEY_HEADS = word_set(
    "api access secret private signing encryption decryption master account storage auth authentication service"
    " deploy webhook recovery activation license licence product admin client shared subscription app application"
    " consumer hmac session cipher aes root vault bot server integration developer dev prod production staging live"
    " test backup cdn smtp openai anthropic claude stripe aws azure gcp google gemini maps mapbox algolia datadog"
    " sentry sendgrid mailgun mailchimp twilio github gitlab bitbucket cloudflare digitalocean heroku vercel netlify"
    " supabase firebase shopify paypal square slack discord telegram notion linear airtable figma huggingface cohere"
    " mistral groq pinecone weaviate elastic grafana pagerduty relic okta auth0 snyk postmark resend segment"
    " amplitude mixpanel intercom zendesk hubspot plaid coinbase binance etherscan infura alchemy rapidapi tavily"
    " serpapi brave deepgram elevenlabs replicate perplexity openrouter together fireworks"
)
_WIFI_HEADS = frozenset(("wifi", "fi", "wpa", "wpa2", "wpa3", "network", "wlan"))
_CODE_HEADS = word_set(
    "door gate alarm access entry security verification unlock safe garage building lockbox lock voicemail 2fa mfa"
    " otp authentication login auth backup recovery elevator apartment keypad pin sim puk vault"
)
_PIN_HEADS = frozenset(("my", "the", "your", "our", "his", "her", "sim", "card", "new", "phone"))
_TAILS = word_set(
    "value val prod production dev staging stage test live plain plaintext raw base64 b64 base str string text new"
    " old current default main primary secondary backup root admin db confirm confirmation again number code"
)
_NOT_SECRET_HEADS = word_set(
    "max min num n total count per input output prompt completion pad eos bos unk cls sep mask stop special start"
    " end next prev previous page continuation cursor pagination starting idempotency request change public is has"
    " no use show hide require requires forgot hashed encrypted design lexer gpio led"
)
GENERIC_KINDS = frozenset(
    ("password", "passphrase", "passcode", "token", "secret", "credential", "pin", "code", "key", "cookie", "query-key")
) | {f"{head}-key" for head in _KEY_HEADS}


def names_in(text: str, low: str) -> Iterator[tuple[int, int, Noun]]:
    """Yield every name of a secret in the text, with the class of values that it announces."""
    end = 0
    for m in rx(_NAMES).finditer(low):
        if m.start() < end:
            continue
        start, end = _name_span(text, m)
        if text[start - 1 : start] == ":" and rx(r"arn:|::").search(text, max(0, start - 80), start):
            continue
        noun = _PASSWORD if is_foreign(m[0]) else _noun_at(text, low, start, end)
        if noun:
            yield start, end, noun


def _name_span(text: str, m: re.Match[str]) -> tuple[int, int]:
    """Extend a word to the whole identifier around it: `password` in `spring.datasource.password`."""
    start, end = m.span()
    least, most = max(0, start - _NAME_AT_MOST), min(len(text), end + _NAME_AT_MOST)
    while start > least and text[start - 1] in _NAME_CHARS:
        start -= 1
    while end < most and text[end] in _NAME_CHARS:
        end += 1
    while end > m.end() and text[end - 1] in ".-$":
        end -= 1
    return start, end


@lru_cache(maxsize=256)
def is_foreign(name: str) -> bool:
    """Return whether a name is of another language than English."""
    return rx(_FOREIGN).fullmatch(name) is not None


def _noun_at(text: str, low: str, start: int, end: int) -> Noun | None:
    name, prior = low[start:end], _prior(low, start)
    if name == "pass":
        return _PASSWORD if _is_label(text, start, end) else _PASS if _is_owned(text, start, end) else None
    if text[start:end] in {"pin", "Pin"} and prior not in _PIN_HEADS and rx(r"\s\d").match(text, end):
        return None
    noun = noun_of(text[start:end], prior)
    if noun == ("key", "key") and rx(r"ssid|wi-?fi|wlan").search(low, max(0, start - 40), start):
        return _PASSWORD
    is_api = noun == ("key", "key") and "api" in low[max(0, start - 24) : end + 48]
    return ("token", "api-key") if is_api else noun


def _prior(low: str, start: int) -> str:
    """Return the word before, if only a blank or a hyphen is between."""
    end = start - (low[max(0, start - 1) : start] in {" ", "-"})
    at, least = end, max(0, end - 24)
    while at > least and low[at - 1].isalnum():
        at -= 1
    return low[at:end]


def _is_label(text: str, start: int, end: int) -> bool:
    """Alone, "pass" is a verdict, a road or a verb: a user must come before it, or a value right after."""
    if rx(r"(?i)user|login|account|e-?mail|smtp|ssid|admin|root|\bid\b").search(text, max(0, start - 80), start):
        listed = text[max(0, start - 4) : start].endswith((", ", "/", "and "))
        return rx(r"\s?(?:[:=/]|is\b|(?=\S{0,40}\d))" if listed else r"\s?(?:[:=/]|is\b)").match(text, end) is not None
    if rx(r"[ \t]{0,8}=[ \t]{0,8}(?=[^\s=])").match(text, end):  # `pass = x` begins a line of settings
        return not text[max(0, start - _LEAD) : start].rpartition("\n")[2].strip() or text[end] == "="
    return text[start] == "p" and rx(r":(?=\S)").match(text, end) is not None


def _is_owned(text: str, start: int, end: int) -> bool:
    """Somebody's pass, or the pass for something, that "is" something: only a value like no word makes it a secret."""
    mine = rx(r"(?i)\b(?:my|our|your|his|her|their|\w+'s)\s(?:[\w.-]{1,24}\s){0,2}$").search(
        text[max(0, start - 64) : start]
    )
    goal = r"\s(?:for|to|of|on)\s[\w.' -]{1,48}?\s?(?:[:=]|\bis\b|\bwas\b)"
    states = rx(r"\s?(?:[:=]|\bis\b|\bwas\b)").match(text, end)
    before = text[max(0, start - _LEAD) : start].rpartition("\n")[2].rstrip().rpartition(" ")[2].lower()
    named = before in {"", "the", "a", "new", "old", "my", "our"} and rx(goal).match(text, end)
    return bool(((mine or before not in _PASSES) and states) or named)


# What has a pass that opens no account.
_PASSES = word_set(
    "boarding season mountain hall day ski bus train free first second third next last this that each every single"
    " test tests all bypass forward backward lens high low band rail press checks"
)


@lru_cache(maxsize=4096)
def noun_of(name: str, prior: str) -> Noun | None:
    """Return the class of values that a name announces; None for `token_count` and `public_key`."""
    name = rx(r"(?i)(?<=pass)[ -](?=word|phrase|code|key)|(?<=p)/(?=w)").sub("", name)
    words = [word.lower() for word in rx(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+").findall(name)]
    for i in range(len(words) - 1, -1, -1):
        kind = _kind_of(words[i], words[i - 1] if i else prior)
        if kind:
            ends_plainly = all(word in _TAILS or word.isdigit() for word in words[i + 1 :])
            return kind if ends_plainly and not {prior, *words[:i]} & _NOT_SECRET_HEADS else None
    return None


def _kind_of(word: str, prior: str) -> Noun | None:
    if word in KINDS:
        return KINDS[word]
    if word == "pass":
        return _PASSWORD if prior else None
    if word in {"key", "keys"}:
        known = ("token", f"{prior}-key") if prior in _KEY_HEADS else ("key", "key")
        return _PASSWORD if prior in _WIFI_HEADS else known
    if word in {"code", "codes", "combo", "combination"}:
        return ("pin", "code") if prior in _CODE_HEADS else None
    return next((kind for ending, kind in _ENDINGS.items() if word.endswith(ending)), None)
