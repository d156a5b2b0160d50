"""Measure how well recall finds what it should, on built-in, own and public data sets."""

COMMANDS = {
    "eval": ("command:eval_", "Measure how well recall finds what it should.", "Store"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)
