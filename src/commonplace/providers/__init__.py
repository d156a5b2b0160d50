"""Embedders that need no service: the one that comes with the package."""
