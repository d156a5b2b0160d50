"""Records memory: project and assistant scope, five categories, sessions and tickets."""

COMMANDS = {
    "recall": ("commands.recall:recall", "Ask memory a question in plain words."),
    "record": ("commands.record:record", "Add, change, list and erase records."),
    "index": ("commands.index:index", "Make session transcripts and tickets searchable."),
}  #: name -> where it lives in this package, what it does
