"""Templates of texts that hold a secret, by the form in which they hold it, for ``redact_bench.py``.

``TUNED`` are those that the rules were made with.  ``HELD_OUT`` were written before the rules and are only counted:
never look at what is missed there to change a rule, or write new ones in their place when you did.
``{s}`` is the secret; ``{u}`` a user, ``{h}`` a host or a service, ``{i}`` a vendor's name in lower case.
"""

from __future__ import annotations

# What scanners generate their own tests with: a vendor's name and a token in the syntax of a language or a format.
SYNTAX_TUNED = [
    '{i}Token="{s}"', "{i}Token = {s}", '{{\n    "{i}_token": "{s}"\n}}', '\\{{\n    \\"{i}_token\\": \\"{s}\\"\n\\}}',
    "<{i}Token>{s}</{i}Token>", "<{i}Token>\n    {s}\n</{i}Token>", "{i}_token: {s}", "{i}_token: '{s}'",
    "{i}_token: |\n  {s}", "{i}_token: >\n  {s}", 'string {i}Token = "{s}";', 'var {i}Token string = "{s}"',
    '{i}Token := "{s}"', "{i}Token := `{s}`", '${i}Token .= "{s}"', "{i}Token,{s},", '  "{i}Token" => "{s}"',
    '{i}_TOKEN ::= "{s}"', '{i}_TOKEN :::= "{s}"', '{i}_TOKEN ?= "{s}"', '{i}_TOKEN += "{s}"', '{i}Token ??= "{s}"',
    'var {i}Token: string = "{s}"', '{{\n    "name": "{i}_token",\n    "value": "{s}"\n}}',
    '<entry name="{i}Token" value="{s}" />', '{{"name":"{i}_api_key","value":"{s}"}}',
]  # fmt: skip
SYNTAX_HELD_OUT = [
    'let {i}_secret: &str = "{s}";', '{i}.apiKey -> "{s}"', 'set {i}_token to "{s}"', "[{i}]\napi_key = {s}",
    "{i}_API_KEY ||= '{s}'", '%{{{i}_token: "{s}"}}', "- key: {i}_token\n  value: {s}", "{i}_token={s} make deploy",
    "<property>\n  <name>{i}.token</name>\n  <value>{s}</value>\n</property>", '"{i}AccessToken"    :    "{s}"',
    'const char *{i}_secret = "{s}";', "{i}-token:\n    {s}", 'export {i}_SECRET_KEY="{s}"; run', "{i}_token;{s};",
    "env:\n  - name: {i}_TOKEN\n    value: '{s}'", '<add key="{i}ApiKey" value="{s}"/>', "{i}.token.value={s}",
]  # fmt: skip

# What people write to each other and to an agent.
PROSE_TUNED = [
    "pass for {h} is {s}", "the pass for the {h} account: {s}", "my {h} pass is {s}", "log in with {u}/{s}",
    "you can log in with {u} / {s}", "sign in to {h} as {u}/{s}", "user: What is the password?\nassistant: {s}",
    "What's the wifi password?\n> {s}", "Q: password for {h}?\nA: {s}", "I changed my password from {s}.",
    "the admin password was changed from {s} yesterday", "Password for {h} was {s}; it was rotated.",
    "Das Passwort für {h} lautet {s}", "Mein Kennwort ist {s}.", "le mot de passe est {s}", "la contraseña es {s}",
    "A senha do {h} é {s}", "il wachtwoord? het wachtwoord is {s}", "la password di {h} è {s}", "Hasło do {h} to {s}",
    "PASS={s}", "[{h}]\nuser = {u}\npass = {s}", "USER={u} PASS={s} ./deploy.sh", "use {u} with password {s}",
    "Password - {s}", "Password (for {h}) - {s}", "pw {s} for {h}", "creds for {h}: {u} {s}",
    "The password to get in is {s} btw", "password:\n{s}", "{u}'s password on {h}: {s}", "pwd => {s}",
]  # fmt: skip
PROSE_HELD_OUT = [
    "just use {s} as the pass on {h}", "login {u}, pass {s}",
    "{h} creds ({u}/{s})", "authenticate as {u} using {s} as password",
    "What is the root password on {h}? It's {s}", "user: and the password?\nagent: it is {s}", "previous password: {s}",
    "I reset the password from {s} to something else", "old pw: {s}", "Passwort: {s}", "mot de passe : {s}",
    "contraseña de {h}: {s}", "password è {s}", "Wachtwoord voor {h}: {s}", "пароль: {s}", "密码是 {s}",
    "the passphrase of the key is {s}", "You asked for the password. Here it is: {s}", "SMTP_PASS={s}", 'pass = "{s}"',
    "remember the {h} password ({s})", "{h} password -> {s}", "set {u}'s password to {s}",
    "temp password {s}, change it soon",
    "the credentials are user {u} and password {s}", "password for user {u} is now {s}",
]  # fmt: skip

TABLE_TUNED = [
    "user,password,host\n{u},{s},{h}", "host;user;password\n{h};{u};{s}", "name\tpassword\n{u}\t{s}",
    "user | password\n{u} | {s}", "| {u} password | {s} |",
    "| service | user | password |\n|---|---|---|\n| {h} | {u} | {s} |",
    "db.internal:5432:shop:{u}:{s}", "*:*:*:{u}:{s}", '{{"name": "password", "value": "{s}"}}',
    '{{"key": "db_password", "value": "{s}"}}', '{{"value": "{s}", "name": "DB_PASSWORD"}}',
    '"username","password"\n"{u}","{s}"',
]  # fmt: skip
TABLE_HELD_OUT = [
    "id,login,pwd\n1,{u},{s}", "login\tsecret\tnote\n{u}\t{s}\tok", "username|password|role\n{u}|{s}|admin",
    "| Password | {s} |\n| User | {u} |", "localhost:5433:*:{u}:{s}", '[{{"name":"SMTP_PASSWORD","value":"{s}"}}]',
    "email, password\n{u}@example.com, {s}", "<tr><td>Password</td><td>{s}</td></tr>",
    "Name: DB_PASSWORD, Value: {s}", "Key=DB_PASSWORD,Value={s}",
]  # fmt: skip
