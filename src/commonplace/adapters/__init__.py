"""Commonplace inside other people's frameworks: one module each, importing its framework alone."""
