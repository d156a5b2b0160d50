"""Records as Markdown files that people edit: format, plan, mirror and sync."""
