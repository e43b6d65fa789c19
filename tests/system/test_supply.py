"""The dependencies of the project are few, pinned, and locked with hashes."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from test_architecture import imports, modules

ROOT = Path(__file__).parents[2]
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TABLES["project"]
SDIST = TABLES["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
CORE = {"filelock", "jaxtyping", "jsonargparse", "numpy", "pyyaml", "rich", "safetensors", "torch"}


def name(requirement: str) -> str:
    """Return the normalised name of the package of a requirement."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-").replace(".", "-")


def pins(text: str) -> dict[str, str]:
    """Return the pinned packages of a file with their versions."""
    lines = [line.partition(" ")[0] for line in text.splitlines() if re.match(r"[\w.-]+==", line)]
    return {name(line): line.partition("==")[2] for line in lines}


CONSTRAINTS = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")


def test_the_core_needs_eight_packages():
    assert {name(r) for r in PROJECT["dependencies"]} == CORE


def test_the_source_distribution_has_every_file_of_the_repository():
    if not (ROOT / ".git").exists():  # the source distribution itself
        assert {path.name for path in ROOT.iterdir()} >= {"pyproject.toml", *SDIST}
        return
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    tracked = {line.partition("/")[0] for line in done.stdout.splitlines()}
    visible = {top for top in tracked if not top.startswith(".")}
    assert visible - {"pyproject.toml"} == set(SDIST)  # pyproject.toml is always part of it


def test_the_package_tells_type_checkers_that_it_is_typed():
    """Without this file, mypy ignores the types of an installed package (PEP 561)."""
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "equitrans" / "py.typed").is_file()


def strangers(imported: set[str]) -> set[str]:
    """Return the packages that are neither in the standard library nor declared."""
    declared = CORE | {name(r) for rs in PROJECT["optional-dependencies"].values() for r in rs}
    names = {"scikit-learn": "sklearn", "pyyaml": "yaml"}  # of the package and of its import
    declared |= {imported for package, imported in names.items() if package in declared}
    tops = {each.partition(".")[0] for each in imported}
    return {top for top in tops if top not in sys.stdlib_module_names and top not in declared}


def test_imported_packages_are_declared():
    for _, path in modules():
        assert strangers(imports(path)) == set(), path


def test_an_undeclared_import_is_detected():
    assert strangers({"requests.get", "json", "torch.nn", "equitrans.data.pairs"}) == {"requests"}


def test_declared_packages_are_pinned():
    for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        assert {name(r) for r in requirements} - {"equitrans"} <= CONSTRAINTS.keys()


def test_the_lock_has_the_pinned_versions_with_hashes():
    locked = pins(LOCK)
    assert locked.keys() >= {"numpy", "pytest", "ruff", "mypy", "pyyaml", "hypothesis", "sphinx"}
    assert "torch" not in locked
    assert {each: CONSTRAINTS.get(each) for each in locked} == locked
    for entry in re.split(r"\n(?=\S)", LOCK.partition("\n")[2]):
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n?", entry), entry
    assert "://" not in LOCK


def load_audit():
    spec = importlib.util.spec_from_file_location("audit", ROOT / "release" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        (None, 0, "NOT AUDITED: the database gave no answer (no route)"),
        ([{"name": "a", "skip_reason": "not found"}], 0, "NOT AUDITED"),
        ([{"name": "a", "version": "1", "vulns": []}], 0, "audited 1, findings 0"),
        ([{"name": "a", "version": "1", "vulns": [{"id": "X-1"}]}], 1, "a 1: X-1\naudited 1"),
        (
            [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}],
            1,
            "b: not found\naudited 1, findings 1",
        ),
    ],
)
def test_the_audit_reports_findings_or_that_it_was_not_possible(packages, status, said):
    output = "" if packages is None else json.dumps({"dependencies": packages})
    verdict = load_audit().verdict(output, "trying\nno route\n")
    assert verdict[0] == status
    assert verdict[1].startswith(said)


def test_every_pinned_package_installs_on_the_oldest_python_we_support():
    """3.11.2 is the Python of Debian 12; some packages require a later 3.11."""
    refused = [
        f"{found.name} {found.version} requires Python {needed}"
        for found in metadata.distributions()
        if (needed := found.metadata.get("Requires-Python"))
        and not SpecifierSet(needed).contains("3.11.2")
    ]
    assert not refused
