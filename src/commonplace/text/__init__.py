"""Pure functions over text: words, stems, dates, questions, cleaning, Markdown blocks, strict YAML."""
