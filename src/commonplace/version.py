"""Which Commonplace this is.  A literal: asking the installation costs more than a recall."""

VERSION = "0.1.0"
PRODUCT = f"Commonplace {VERSION}"
