"""The lint rules against code in data files refuse what they should, and nothing else."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(code: str) -> subprocess.CompletedProcess[str]:
    """Return the result of ruff, with the rules of the project, on a file of the package."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    return subprocess.run(
        [ruff, "check", "--no-cache", "--output-format=concise", "--stdin-filename=src/x.py", "-"],
        input=f'"""A file."""\n\n{code}\n',
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import pickle", "TID251 `pickle` is banned"),
        ("from pickle import loads", "TID251 `pickle` is banned"),
        ("import marshal", "TID251 `marshal` is banned"),
        ("import shelve", "TID251 `shelve` is banned"),
        ("import cloudpickle", "TID251 `cloudpickle` is banned"),
        ('import torch\n\ntorch.load("x")', "TID251 `torch.load` is banned"),
        ('from torch import save\n\nsave({}, "x")', "TID251 `torch.save` is banned"),
        ('import torch\n\ntorch.jit.load("x")', "TID251 `torch.jit.load` is banned"),
        ('import numpy as np\n\nnp.load("x")', "TID251 `numpy.load` is banned"),
        ('import yaml\n\nyaml.load("x", yaml.Loader)', "S506 "),
        ('eval("1")', "S307 "),
        ('exec("1")', "S102 "),
    ],
)
def test_functions_that_can_run_foreign_code_are_refused(code, rule):
    done = lint(code)
    assert done.returncode == 1
    assert rule in done.stdout


def test_reading_json_is_allowed():
    done = lint('import json\n\njson.loads("1")')
    assert done.returncode == 0, done.stdout


def test_paths_of_mutation_testing_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["mutmut"]
    paths = settings["only_mutate"] + settings["pytest_add_cli_args_test_selection"]
    assert [path for path in paths if not list(ROOT.glob(path))] == []
