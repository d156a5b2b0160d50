"""The HTTP server: routing, keys, limits and the OpenAPI document. Needs the extra `server`."""

COMMANDS = {
    "ui": ("ui_command:ui", "Open the page to look at memory in the browser.", "Server"),
    "serve": ("command:serve", "Serve memory over HTTP.", "Server"),
    "keys": ("command:keys", "Make, list and revoke the keys of the server.", "Server"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)
