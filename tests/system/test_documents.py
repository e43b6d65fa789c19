"""What the documentation shows is what its commands print; its references are the code's."""

import argparse
import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import equitrans
import pages
from equitrans.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOK = ROOT / "examples" / "tour.ipynb"


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


update, reference = load("update"), load("reference")


def test_the_tables_of_the_documentation_are_those_of_the_records():
    shown = 0
    for path in pages.pages():
        page = path.read_text(encoding="utf-8")
        shown += len(update.MARKED.findall(page)) + len(update.ROWS.findall(page))
        assert update.updated(page) == page, f"{path} is behind the records: make results"
    assert shown >= 9


def test_a_page_that_is_behind_is_noticed():
    page = "<!-- $ equitrans tables table1 -->\nnothing\n<!-- end -->\n"
    assert "| system | Simple |" in update.updated(page)
    page = "<!-- rows of records/reliability/limits.json -->\nnothing\n<!-- end -->\n"
    assert "| trained and decoded |" in update.updated(page)


# --- pages


@pytest.fixture(scope="module")
def outcomes():
    """What came of each page, done in one process of its own: without the tests' checks of types,
    and in float32, as by a reader.
    """
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "fixtures" / "pages.py", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    return {found["page"]: found for found in json.loads(done.stdout)}


@pytest.mark.parametrize("path", pages.pages(), ids=lambda path: path.name)
def test_a_page_does_as_it_says(path, outcomes):
    found = outcomes[path.name]
    assert not found["wrong"], found["wrong"]
    shown = re.findall(r"!\[[^\]]*\]\((?:docs/)?pictures/([^)]+)\)", path.read_text("utf-8"))
    made = set(found["pictures"]) | {
        name for line, _ in found["skipped"] for name in re.findall(r"[\w-]+\.png", line)
    }
    assert set(shown) <= made, f"{path.name} shows pictures that its commands do not make"


def test_nearly_everything_is_run_and_much_of_it_compared(outcomes):
    ran = sum(len(found["ran"]) for found in outcomes.values())
    skipped = [line for found in outcomes.values() for line, _ in found["skipped"]]
    assert ran >= 60
    assert sum(found["compared"] for found in outcomes.values()) >= 50
    # installations, downloads, accounts, clusters, and hours of training
    assert len([line for line in skipped if line.startswith("equitrans")]) <= 17, skipped
    assert len(skipped) <= 42, skipped


def test_pictures_are_small():
    for path in (DOCS / "pictures").iterdir():
        assert path.stat().st_size <= 100_000, path


def read(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return pages.Reader(tmp_path / "folder").read(page)


def test_a_page_that_tells_the_truth_passes(tmp_path):
    found = read(
        tmp_path,
        "<!-- test: file words.tsv -->\n```text\na\tA\n```\n\n"
        "```console\n$ cat words.tsv\na\tA\n$ equitrans --version\nequitrans …\n```\n\n"
        "<!-- test: status 2 -->\n```console\n$ equitrans nonsense\n…unknown command…\n```\n\n"
        "```python\nnumber = 3\nnumber + 1  # 4\nnumber  # three\n```\n",
    )
    assert found.wrong is None
    assert (len(found.ran), found.compared) == (4, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\n$ equitrans --version\nsomething else\n```", "should print"),
        ("```console\n$ equitrans nonsense\n```", "status 2"),
        ("```console\n$ false\n```", "status 1"),
        ("```console\nls\n```", "begins with"),
        ("```python\n1 + 1  # 3\n```", "is 2"),
        ("```python\nimport nowhere\n```", "No module named"),
        ("<!-- test: be kind -->\n```console\n$ true\n```", "not understood"),
        ("<!-- test: skip -->\n```console\n$ true\n```", "not understood"),
        ("<!-- test: skip 1 because -->\n```console\n$ true\n```", "not understood"),
        ("<!-- test: skip 1 because of a -->\n```console\n$ true\n$ false\n```", "status 1"),
        ("<!-- test: scan with --no -->\n```console\n$ equitrans scan list\n```", "status 2"),
        ("<!-- test: status 1 -->\nHello.\n", "right above its block"),
    ],
)
def test_a_page_that_does_not_is_noticed(tmp_path, text, message):
    assert message in (read(tmp_path, text).wrong or "")


@pytest.mark.parametrize(
    ("shown", "output", "any_figures", "same"),
    [
        ("a b", "a b\n", False, True),
        ("a b", "a  b\n", False, False),
        ("a b", "a b\nc\n", False, False),
        ("a …\n…", "a b\nc\nd\n", False, True),
        ("…\nd", "a b\nc\nd\n", False, True),
        ("…\nb", "a b\nc\nd\n", False, False),
        ("loss 0.5", "loss 1e-07\n", False, False),
        ("loss 0.5", "loss 1e-07\n", True, True),
        ("loss 0.5", "loss nan\n", True, False),
    ],
)
def test_output_is_compared_word_for_word(shown, output, any_figures, same):
    assert pages.matches(shown.split("\n"), output, any_figures=any_figures) is same


def broken_links(text, folder):
    """Links to files that are not there; Sphinx looks after those of its own pages."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`", "", text))
    return [link for link in links if not (folder / link).exists()]


def test_links_of_the_readme_lead_somewhere():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("](docs/") >= 10
    assert not broken_links(readme, ROOT)
    assert broken_links("[a](docs/tutorial.md#train) [b](nowhere.md)", ROOT) == ["nowhere.md"]


# --- theory


def functions_of(name):
    tree = ast.parse(next((ROOT / "tests").rglob(name)).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def unknown_tests(text):
    named = re.findall(r"(test_\w+\.py)::(\w+)", text)
    return [f"{file}::{name}" for file, name in named if name not in functions_of(file)]


def test_every_test_that_the_documentation_names_exists():
    theory = (DOCS / "theory.md").read_text(encoding="utf-8")
    assert theory.count(".py::") >= 40
    for path in pages.pages():
        assert not unknown_tests(path.read_text(encoding="utf-8")), path


def test_a_test_that_does_not_exist_is_noticed():
    assert unknown_tests("`test_groups.py::test_nothing`") == ["test_groups.py::test_nothing"]


def test_every_statement_of_the_paper_has_its_code_and_its_test():
    theory = (DOCS / "theory.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in theory.split("\n### ")[1:]}
    for kind, numbers in (("Definition", range(1, 10)), ("Theorem", range(1, 5))):
        for number in numbers:
            (part,) = (s for head, s in sections.items() if head.startswith(f"{kind} {number}:"))
            assert "- Code: " in part
            assert "- Test: `test_" in part
    heads = " ".join(head for head in sections if head.startswith("Equation"))
    assert {int(n) for n in re.findall(r"\d+", heads.replace("G-", ""))} == set(range(1, 11))


# --- references


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_reference_has_every_option_and_examples_that_are_understood(command):
    text = reference.describe_command(command)
    parser = reference.find_parser(command)
    actions = [a for a in parser._actions if a.help != argparse.SUPPRESS]
    assert len(actions) > 2
    for action in actions:
        for name in reference._spellings(action):
            assert name in ("-h", "--help") or f"`{name}" in text
    examples = re.findall(r"^\$ equitrans (.*)$", text, re.MULTILINE)
    assert examples
    for example in examples:
        name, *arguments = shlex.split(example.partition(" <")[0].partition(" >")[0])
        parser = reference.find_parser(name)
        known = {option for action in parser._actions for option in action.option_strings}
        assert {a for a in arguments if a.startswith("--")} <= known, example


def test_the_api_reference_has_every_public_name():
    text = reference.describe_public()
    for name in set(equitrans.__all__) - {"__version__"}:
        assert f":: equitrans.{name}\n" in text, name


# --- notebook


def texts(notebook):
    return [
        [
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
            if output.get("name") != "stderr"
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.filterwarnings("ignore")  # of the notebook's machinery
def test_the_notebook_runs_from_top_to_bottom_and_prints_what_it_shows(tmp_path):
    kept = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(run, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert texts(run) == texts(kept)
    assert any("image/png" in o.get("data", {}) for c in run.cells for o in c.get("outputs", []))
