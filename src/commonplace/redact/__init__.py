"""Find secrets in text and replace them with marks."""
