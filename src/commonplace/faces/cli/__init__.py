"""The command ``commonplace``."""
