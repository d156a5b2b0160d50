"""Decisions.  No input or output but through ports."""
