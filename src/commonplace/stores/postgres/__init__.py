"""The shared store: one schema of a PostgreSQL database."""
