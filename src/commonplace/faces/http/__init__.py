"""The server: four wire surfaces of intent memory and our own verbs over one store.  Needs the extra ``server``."""
