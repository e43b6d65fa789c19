"""Imports point down; the symbolic rooms know no torch; what is public is what is listed."""

import ast
import subprocess
import sys
from pathlib import Path

import equitrans

PACKAGE = Path(equitrans.__file__).parent

FLOORS = [
    {"errors", "files"},
    {"texts"},
    {"vocabulary", "groups", "pairs", "settings", "workers", "spaces", "hub", "locks"},
    {"symmetry", "lexicon", "executors", "search"},
    {"scan", "grouping", "grammar", "cards", "limits"},
    {"discovery", "folders"},
    {"data", "download"},
    {"batches", "glayers", "marginals", "decoding", "lstm", "recurrence", "tensors"},
    {"models", "graphs"},
    {"breakdowns"},
    {"training", "evaluation", "recursion"},
    {"audit", "orbits", "checkpoints"},
    {"config", "trained"},
    {"extension", "fitting", "plots", "boards"},
    {"runs", "estimator"},
    {"records", "exporting"},
    {"experiments"},
    {"tables"},
    {"explorer"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
SYMBOLIC = set().union(*FLOORS[:7])


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


def rooms() -> list[tuple[str, Path]]:
    paths = [p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py"]
    return [(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path) for path in paths]


def offences(room: str, imported: set[str]) -> set[str]:
    """Imports of rooms that are not on a lower floor."""
    ours = {name.split(".")[1] for name in imported if name.startswith("equitrans.")}
    return {other for other in ours & FLOOR.keys() if other != room and FLOOR[other] >= FLOOR[room]}


def test_every_room_has_a_floor():
    assert {room for room, _ in rooms()} == set(FLOOR)


def test_imports_point_down():
    for room, path in rooms():
        assert not offences(room, imports(path)), path


def test_an_import_that_points_up_or_sideways_is_noticed():
    assert offences("scan", {"equitrans.training.train"}) == {"training"}
    assert offences("groups", {"equitrans.vocabulary.BOS"}) == {"vocabulary"}
    assert offences("training", {"equitrans.batches.Batch"}) == set()


def test_the_symbolic_rooms_know_no_torch():
    for room, path in rooms():
        outside = {name.split(".")[0] for name in imports(path)}
        if room in SYMBOLIC:
            assert not outside & {"torch", "numpy", "jaxtyping", "safetensors"}, path


def test_what_only_some_need_is_known_to_one_room_each():
    homes = {
        "matplotlib": {"plots"},
        "rich": {"cli"},
        "jsonargparse": {"cli"},
        "optuna": {"search"},
        "ray": {"executors"},
        "tensorboard": {"boards"},
        "huggingface_hub": {"hub"},
        "shtab": {"cli"},
        "sklearn": {"estimator"},
        "fastapi": {"explorer"},
        "pydantic": {"explorer"},
        "starlette": {"explorer"},
        "uvicorn": {"explorer"},
    }
    for room, path in rooms():
        for name in imports(path):
            assert room in homes.get(name.split(".")[0], {room}), path


def test_importing_the_package_loads_none_of_what_only_some_need():
    heavy = ["matplotlib", "rich", "jsonargparse", "beartype", "optuna", "ray", "tensorboard"]
    heavy += ["huggingface_hub", "shtab", "sklearn"]
    heavy += ["fastapi", "uvicorn", "pydantic"]
    program = f"import sys, equitrans; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_all_is_exact_and_sorted():
    names = {name for name in imports(PACKAGE / "__init__.py") if name.startswith("equitrans.")}
    assert set(equitrans.__all__) == {name.rpartition(".")[2] for name in names} | {"__version__"}
    assert equitrans.__all__ == sorted(equitrans.__all__)
    assert all(hasattr(equitrans, name) for name in equitrans.__all__)


def test_no_file_is_longer_than_it_should_be():
    for _, path in rooms():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path


def test_the_changelog_s_top_version_is_the_package_s():
    root = PACKAGE.parent.parent
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    top = next(line for line in lines if line.startswith("## [") and "Unreleased" not in line)
    declared = next(
        line
        for line in (root / "pyproject.toml").read_text().splitlines()
        if line.startswith("version")
    )
    assert declared.split('"')[1] == top.split("[")[1].split("]")[0]
