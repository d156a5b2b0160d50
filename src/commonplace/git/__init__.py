"""Git: the only code that reads a repository's own data or runs Git."""
