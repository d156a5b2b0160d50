"""Records as Markdown files that people edit.  Pure: nothing here reads or writes a disk."""
