"""Thin, and strangers to each other: a face parses, calls one verb, renders."""
