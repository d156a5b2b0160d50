"""Each YAML dialect becomes a binding; below that line nobody sees YAML or an environment variable."""
