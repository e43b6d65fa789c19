"""Imports point down, through the face of each room; the paper's room stands alone."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import equitrans

PACKAGE = Path(equitrans.__file__).parent

RANKS = [
    {"errors"},
    {"notebook"},
    {"settings"},
    {"files"},
    {"lexical"},
    {"shards"},
    {"paper"},
    {"data"},
    {"models"},
    {"analysis"},
    {"testing"},
    {"training"},
    {"experiments"},
    {"explorer"},
    {"cli"},
]
BASE = ["errors", "notebook", "settings", "files", "lexical", "shards"]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
ROOMS = ["paper", "data", "models", "analysis", "training", "experiments", "explorer", "cli"]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def modules() -> list[tuple[str, Path]]:
    """Every module of the package with the room that it is in; `__main__` is the command line."""
    doors = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    paths = [p for p in PACKAGE.rglob("*.py") if p not in doors]
    return [(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path) for path in paths]


def upward(room: str, imported: set[str]) -> set[str]:
    """Rooms of the same rank or above that a room imports."""
    ours = {name.split(".")[1] for name in imported if name.startswith("equitrans.")}
    return {other for other in ours & RANK.keys() if other != room and RANK[other] >= RANK[room]}


def past_the_face(room: str, imported: set[str]) -> set[str]:
    """Imports from a module inside another room."""
    inside = {name for name in imported if name.startswith("equitrans.") and name.count(".") > 2}
    return {name for name in inside if name.split(".")[1] in ROOMS and name.split(".")[1] != room}


def test_every_module_is_in_a_room():
    assert {room for room, _ in modules()} == set(RANK)


def test_imports_point_down():
    for room, path in modules():
        assert not upward(room, imports(path)), path


def test_other_rooms_are_imported_by_their_face():
    for room, path in modules():
        assert not past_the_face(room, imports(path)), path


def test_an_import_that_points_up_or_past_a_face_is_noticed():
    assert upward("data", {"equitrans.training.fit"}) == {"training"}
    assert upward("training", {"equitrans.data.Rows"}) == set()
    assert past_the_face("data", {"equitrans.paper.groups.Group"}) == {
        "equitrans.paper.groups.Group"
    }
    assert past_the_face("data", {"equitrans.paper.Group", "equitrans.data.pairs.Pair"}) == set()


def loaded(program: str) -> list[str]:
    """The modules that a new process has loaded after a program."""
    program += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_paper_s_room_loads_itself_the_base_modules_and_torch_alone():
    every = "from equitrans.paper import *"
    ours = {name for name in loaded(every) if name.split(".")[0] == "equitrans"}
    assert {name for name in ours if name.startswith("equitrans.paper.")}
    others = {name for name in ours if not name.startswith("equitrans.paper")}
    assert others <= {f"equitrans.{base}" for base in BASE} | {"equitrans"}


def test_the_paper_s_room_is_read_in_one_sitting():
    lines = [len(p.read_text("utf-8").splitlines()) for p in (PACKAGE / "paper").glob("*.py")]
    assert sum(lines) < 1200


@pytest.mark.parametrize("room", ROOMS[:-1])
def test_a_face_offers_what_it_lists(room):
    face = __import__(f"equitrans.{room}", fromlist=["__all__"])
    listed = {
        name.rpartition(".")[2]
        for name in imports(PACKAGE / room / "__init__.py")
        if name.startswith(f"equitrans.{room}.")
    }
    assert set(face.__all__) == listed
    assert all(hasattr(face, name) for name in face.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        face.nonsense  # noqa: B018


def test_the_symbolic_modules_load_no_torch():
    program = "import equitrans.data.discovery, equitrans.data.scan, equitrans.training.config"
    assert not {"torch", "numpy", "jaxtyping"} & set(loaded(program))


def test_an_optional_dependency_is_imported_by_one_room_each():
    homes = {
        "matplotlib": {"analysis"},
        "rich": {"cli"},
        "jsonargparse": {"cli"},
        "optuna": {"experiments"},
        "ray": {"experiments"},
        "tensorboard": {"training"},
        "huggingface_hub": {"training"},
        "shtab": {"cli"},
        "sklearn": {"training"},
        "fastapi": {"explorer"},
        "pydantic": {"explorer"},
        "starlette": {"explorer"},
        "uvicorn": {"explorer"},
    }
    for room, path in modules():
        for name in imports(path):
            assert room in homes.get(name.split(".")[0], {room}), path


def test_importing_the_package_loads_no_optional_dependency():
    heavy = {"matplotlib", "rich", "jsonargparse", "beartype", "optuna", "ray", "tensorboard"}
    heavy |= {"huggingface_hub", "shtab", "sklearn", "fastapi", "uvicorn", "pydantic", "torch"}
    assert not heavy & set(loaded("import equitrans"))


def test_the_public_names_are_listed_sorted_and_there():
    names = {name for name in imports(PACKAGE / "__init__.py") if name.startswith("equitrans.")}
    assert set(equitrans.__all__) == {name.rpartition(".")[2] for name in names} | {"__version__"}
    assert equitrans.__all__[1:] == sorted(equitrans.__all__[1:])
    assert all(hasattr(equitrans, name) for name in equitrans.__all__)


def test_no_file_is_longer_than_350_lines():
    for _, path in modules():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path


def test_changelog_and_citation_have_the_version_of_the_package():
    root = PACKAGE.parent.parent
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    top = next(line for line in lines if line.startswith("## [") and "Unreleased" not in line)
    declared = next(
        line
        for line in (root / "pyproject.toml").read_text().splitlines()
        if line.startswith("version")
    )
    version = declared.split('"')[1]
    assert version == top.split("[")[1].split("]")[0]
    cited = (root / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {version}" in cited
    assert f"date-released: {top.split()[-1]}" in cited
