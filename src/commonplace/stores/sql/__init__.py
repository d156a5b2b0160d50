"""The rules of a store in SQL, once for all databases: see ``dialect`` for what a database contributes."""
