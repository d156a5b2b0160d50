"""What an installation costs: packages, megabytes on disk, and CPU seconds of the first import, in one run.

    python bench/installs.py [DISTRIBUTION=MODULE ...]

Installs this clone and, beside it, what a user would pick instead, each into an empty environment. What the package
index of this machine does not have is listed as not installable here. The import is measured as a fresh process with
warm byte code, less a Python that imports nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from measure import child_cpu_ms, clean_env, quantile

ROOT = Path(__file__).parents[1]
PEERS = {
    "mem0ai": "mem0",
    "langgraph": "langgraph.graph",
    "basic-memory": "basic_memory",
    "hindsight-api": "hindsight_api",
}
INSTALLER = {"pip", "setuptools", "wheel"}
RUNS = 5


def main() -> None:
    """Print a row for each distribution."""
    peers = dict(argument.split("=", 1) for argument in sys.argv[1:]) or PEERS
    print(f"{'distribution':<28}{'packages':>9}{'MB':>7}{'import, CPU s':>15}")
    for target, name, module in [
        (str(ROOT), "commonplace-memory", "commonplace"),
        *((n, n, m) for n, m in peers.items()),
    ]:
        with tempfile.TemporaryDirectory(prefix="installs-") as folder:
            print(row(target, name, module, Path(folder)), flush=True)


def row(target: str, name: str, module: str, folder: Path) -> str:
    """Install one and measure it."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    before = size(folder)
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "install", "--quiet", target], capture_output=True, check=False).returncode != 0:
        return f"{name:<28}not installable here"
    listing = subprocess.run([*pip, "list", "--format=json"], capture_output=True, check=True).stdout
    versions = {entry["name"]: entry["version"] for entry in json.loads(listing) if entry["name"] not in INSTALLER}
    megabytes = (size(folder) - before) / 1_000_000
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
        return f"{name + ' ' + versions[name]:<28}{len(versions):>9}{megabytes:>7.0f}{'does not start':>15}"
    seconds = (import_ms(python, f"import {module}") - import_ms(python, "pass")) / 1000
    return f"{name + ' ' + versions[name]:<28}{len(versions):>9}{megabytes:>7.0f}{seconds:>15.2f}"


def import_ms(python: str, program: str) -> float:
    """Median CPU milliseconds of a fresh process."""
    return quantile(child_cpu_ms([python, "-c", program], env=clean_env(), runs=RUNS), 0.5)


def size(folder: Path) -> int:
    """Bytes of the files of a folder, links not followed."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main()
