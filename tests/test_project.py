"""Checks of the project itself: imports point one way, modules explain themselves, docs name what exists."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import millstream
import millstream.cli

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "millstream"
MODULES = sorted(PACKAGE.rglob("*.py"))
DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

# A package imports only from itself and from those before it.
LAYERS = (
    "errors",
    "core",
    "kernels",
    "state",
    "language",
    "expressions",
    "settings",
    "plan",
    "io",
    "feedback",
    "operators",
    "graph",
    "progress",
    "pipeline",
    "runtime",
    "session",
    "testing",
    "bench",
    "figures",
    "demo",
    "cli",
    "__main__",
)
# Where the order alone would allow too much. Sources and sinks know nothing of plans, kernels nothing of Python objects,
# and a runtime nothing of the other.
NARROWER = {
    "io": {"errors", "core", "language", "expressions", "io"},
    "kernels": {"errors", "core", "kernels"},
}
APART = (("runtime.local", "runtime.spark"), ("runtime.spark", "runtime.local"))

LONGEST = 400


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """`runtime.spark.stage` for src/millstream/runtime/spark/stage.py; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """Our own modules that a file imports, anywhere in it, named without the leading `millstream.`."""
    found = set()
    base = ["millstream", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = base[: len(base) - node.level + 1] if node.level else []
            origin = ".".join([*parent, *([node.module] if node.module else [])])
            # `from millstream import errors` imports a module, `from millstream.errors import Place` a name.
            found.update(f"{origin}.{alias.name}" if origin == "millstream" else origin for alias in node.names)
    return {name.removeprefix("millstream.") for name in found if name.startswith("millstream.")}


def layer(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("path", [p for p in MODULES if module_of(p)], ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    module = module_of(path)
    own = layer(module)
    assert own in LAYERS, f"give {own} a place in LAYERS"
    allowed = NARROWER.get(own, set(LAYERS[: LAYERS.index(own) + 1]))
    for target in sorted(imports_of(path)):
        assert layer(target) in allowed or target == "__version__", f"{module} must not import {target}"
        for one, other in APART:
            assert not (module.startswith(one) and target.startswith(other)), f"{module} must not import {target}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_begins_with_one_sentence(path: Path) -> None:
    tree = ast.parse(path.read_text())
    docstring = ast.get_docstring(tree)
    assert docstring, "the first statement is not a docstring"
    first = docstring.splitlines()[0]
    assert first.endswith("."), f"not a sentence: {first}"
    assert not re.search(r"[.!?] [A-Z]", first), f"more than one sentence: {first}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_file_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST, f"{lines} lines: split it by role"


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


# Put together from pieces, so that this file does not contain what it forbids.
HOSTS = "|".join(re.escape(".".join(host)) for host in (("pypi", "org"), ("pythonhosted", "org"), ("repo", "maven"), ("maven", "org")))
FORBIDDEN = {
    "a path of one machine": re.compile(r"""(?:^|[\s"'`=(:])/(?:home|Users|root|work)/\w"""),
    "the host of a package registry": re.compile(HOSTS),
    "the address of a package index": re.compile(r"--(?:extra-)?index" + r"-url|--find" + r"-links"),
}


def test_nothing_of_one_machine_is_tracked() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or deleted and not yet committed
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{name_of(path)}:{number}: {what}" for what, pattern in FORBIDDEN.items() if pattern.search(line)]
    assert not found


def test_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert millstream.__version__ == project["version"]


def test_dependencies_are_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=!~\[]", requirement)[0] for requirement in wanted}
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert names <= pinned


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_docs_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


FILE_NAME = re.compile(r"`((?:src|tests|bench|docs|examples)/[\w/.-]+)`")


@pytest.mark.parametrize("name", ["papers.md", "glossary.md"])
def test_docs_tables_name_existing_files(name: str) -> None:
    """A table row that says `planned` may name files to come; every other row may not."""
    for number, line in enumerate((ROOT / "docs" / name).read_text().splitlines(), 1):
        if line.startswith("|") and "| planned |" not in line and "| in work |" not in line:
            for file in FILE_NAME.findall(line):
                assert (ROOT / file).exists(), f"line {number} names {file}, which is not there"


COMMAND = Path(sys.executable).with_name("millstream")


@pytest.mark.skipif(not COMMAND.exists() or not hasattr(millstream.cli, "main"), reason="the command is not installed")
def test_docs_first_pipeline_runs(tmp_path: Path) -> None:
    """The README's first pipeline, as it is printed there, gives the answer printed there."""
    text = (ROOT / "README.md").read_text()
    blocks = {kind: body for kind, body in re.findall(r"```(csv|sql)\n(.*?)```", text, re.DOTALL)}
    (tmp_path / "bids").mkdir()
    (tmp_path / "bids" / "1.csv").write_text(blocks["csv"])
    (tmp_path / "bids.sql").write_text(blocks["sql"])
    command = [str(COMMAND), "run", "bids.sql", "--runtime", "local"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for best in re.findall(r"^\| \d+ \| \d+ \| ([\d.]+) \|", text, re.MULTILINE):
        assert best in done.stdout, done.stdout
