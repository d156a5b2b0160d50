"""The house keeps its shape: who may import whom, what may be raised, what may be caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "commonplace"
MODULES = sorted(SOURCE.rglob("*.py"))

CORE = {
    *("model", "text", "redact", "engine", "git", "stores", "files", "providers", "config"),
    "app",
    "verbs",
    "wire",
    "routes",
}
SHARED = {"version", "lazy", "install"}  # which may be imported everywhere
ROOMS = {"records", "learning", "roles", "ci", "intents", "hosts"}
FACES = {"cli", "mcp", "server", "page"}
OUTER = ROOMS | FACES | {"adapters", "evaluation"}
#: What modules of commands may import of cli.
TOOLKIT = {
    *("terminal", "session", "person", "exits", "dates", "commands", "screen", "completion", "progress", "agreement"),
}
#: What each folder or module of the core may import besides itself, the standard library and what is shared.
ALLOWED = {
    "version": set(),
    "lazy": set(),
    "install": set(),
    "model": set(),
    "text": {"model"},
    "redact": {"model"},
    "wire": {"model"},
    "verbs": {"model", "wire"},
    "routes": {"model", "wire"},
    "engine": {"model", "text", "redact", "wire"},
    "git": {"model"},
    "stores": {"model"},
    "providers": {"model"},
    "config": {"model", "text", "files", "git"},
    "files": {"model", "text", "redact", "engine", "git"},
    "app": CORE,
    "agents": CORE,
    "__init__": CORE,
}
#: Libraries and the only folders that may know them.
LIBRARIES = {
    "apsw": {"stores"},
    "psycopg": {"stores"},
    "psycopg_pool": {"stores"},
    "lancedb": {"stores"},
    "pyarrow": {"stores"},
    "starlette": {"server", "mcp", "roles", "page"},
    "jinja2": {"page"},
    "uvicorn": {"server", "mcp", "roles"},
    "msgspec": {"config", "roles", "ci", "server", "records", "intents", "routes"},
    "httpx": {"intents"},
    "mcp": {"mcp"},
    "tomlkit": {"hosts"},
    "cronsim": {"roles"},
    "watchfiles": {"roles"},
    "langgraph": {"adapters"},
    "langchain_core": {"adapters"},
    "agents": {"adapters"},
    "anthropic": {"adapters"},
    "yaml": {"text"},
    "click": {"cli", "mcp", "server", "evaluation", *ROOMS},
    "pydantic_ai": {"providers", "agents", "adapters", "roles", "ci", "intents"},
    "onnxruntime": {"providers"},
    "tokenizers": {"providers"},
    "numpy": {"providers"},
}


def layer(path: Path) -> str:
    """The folder or top-level module that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module or name that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def module_of(name: str) -> str:
    """The longest beginning of a dotted name that is a module."""
    parts = name.split(".")[1:]
    while parts:
        inside = SOURCE.joinpath(*parts)
        if inside.with_suffix(".py").exists() or (inside / "__init__.py").exists():
            return ".".join(parts)
        parts.pop()
    return ""


def is_command(path: Path) -> bool:
    """Whether a file declares commands for the command line."""
    return path.stem == "command" or path.stem.endswith("_command") or path.parent.name == "commands"


def may_import(path: Path, module: str) -> bool:
    """Whether a file may import a module of ours.

    Nothing of the core climbs.  A room is imported through its package.  Faces and rooms do not import faces, but that
    modules of commands use the toolkit of the command line, which itself knows the core only, and that the server
    mounts the page through its package.
    """
    own, (target, *inside) = layer(path), module.split(".")
    if target == own or target in SHARED:
        return True
    if own not in OUTER:
        return target in ALLOWED[own] or (own == "__init__" and target in ROOMS and not inside)
    if own == "cli" and path.stem in TOOLKIT:
        return target in CORE
    if target == "cli":
        return is_command(path) and bool(inside) and inside[0] in TOOLKIT
    if own == "server" and target == "page":
        return not inside
    return target in CORE | {"agents"} or (target in ROOMS and not inside)


def climbs(path: Path) -> set[str]:
    """The imports of a file that the layers do not allow, as ``file -> module``."""
    found = {module_of(name) for name, _ in imports(path) if name.split(".")[0] == "commonplace"}
    return {f"{path.relative_to(SOURCE)} -> {module}" for module in found if module and not may_import(path, module)}


def test_a_module_imports_its_own_layer_or_one_below():
    """No import climbs, goes into a room's insides, or sideways between faces."""
    assert sorted(set().union(*map(climbs, MODULES))) == []


def loaded_by(path: Path) -> set[str]:
    """The modules of ours that are loaded with a file: what it imports outside of functions and type checking."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [
        f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("commonplace")
        for alias in node.names
    ]
    return {module_of(name) for name in names}


def test_no_modules_import_each_other_in_a_circle():
    """Modules can be put in an order in which each imports earlier ones only."""
    waiting = {".".join(path.relative_to(SOURCE).with_suffix("").parts): loaded_by(path) for path in MODULES}
    waiting = {name.removesuffix(".__init__"): loads for name, loads in waiting.items()}
    while ready := {name for name, loads in waiting.items() if not loads & waiting.keys() - {name}}:
        waiting = {name: loads for name, loads in waiting.items() if name not in ready}
    assert sorted(waiting) == []


def test_a_library_has_its_folder():
    """No import names a library outside of the folders that may know it."""
    found = [(path, name.split(".")[0], line) for path in MODULES for name, line in imports(path)]
    assert [one for one in found if layer(one[0]) not in LIBRARIES.get(one[1], {layer(one[0])})] == []


def test_every_layer_is_known():
    """A new folder or top-level module has to say what it may import."""
    assert {layer(path) for path in MODULES} <= ALLOWED.keys() | OUTER


def test_lazy_names_are_declared_as_they_are_imported():
    """What a package loads lazily is what it tells the type checker, and hides no module of the same name."""
    for path in SOURCE.rglob("__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        homes = next((call.args[1] for call in calls if getattr(call.func, "id", "") == "lazy_names"), None)
        if homes is None:
            continue
        package = "commonplace" if path.parent == SOURCE else f"commonplace.{layer(path)}"
        lazy = {
            f"{package}.{module}.{name}" for module, names in ast.literal_eval(homes).items() for name in names.split()
        }
        told = {name for name, _ in imports(path)} - {"commonplace.version", "commonplace.lazy.lazy_names"}
        assert lazy == {name for name in told if name.startswith("commonplace.")}, path
        shadowed = [name for name in lazy if (path.parent / f"{name.rpartition('.')[2]}.py").exists()]
        assert shadowed == [], path


def test_nothing_is_forgiven_wholesale():
    """`except Exception` has one address, agents/tolerance.py; anywhere else it has to raise again."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and path != SOURCE / "agents" / "tolerance.py":
                names = [getattr(name, "id", "") for name in ast.walk(node.type)] if node.type else ["everything"]
                raises = isinstance(node.body[-1], ast.Raise)
                assert raises or not {"Exception", "BaseException", "everything"} & {*names}, f"{path}:{node.lineno}"


def test_a_module_opens_with_what_it_is():
    """Every module has a docstring, and none is called after nothing in particular."""
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
        assert path.stem not in {"utils", "helpers", "base", "common", "misc"}
