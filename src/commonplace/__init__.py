"""Persistent memory for AI agents, which their people can read, edit and trust."""
