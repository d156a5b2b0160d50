"""Embedders and language models behind the ports: the one that comes with the package, and those of others."""
