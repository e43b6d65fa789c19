"""The documentation shows what its commands print, and its references match the code."""

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


update, reference, picture = load("update"), load("reference"), load("picture")


def test_tables_in_the_documentation_match_the_records():
    shown = 0
    for path in pages.pages():
        page = path.read_text(encoding="utf-8")
        shown += len(update.MARKED.findall(page)) + len(update.ROWS.findall(page))
        assert update.updated(page) == page, f"{path} differs from the records; run make results"
    assert shown >= 9


def test_an_outdated_table_is_detected():
    page = "<!-- $ equitrans tables table1 -->\nnothing\n<!-- end -->\n"
    assert "| system | Simple |" in update.updated(page)
    page = "<!-- rows of records/reliability/limits.json -->\nnothing\n<!-- end -->\n"
    assert "| trained and decoded |" in update.updated(page)


# --- pages


@pytest.fixture(scope="module")
def outcomes():
    """Return the result of each page. A new process runs them, without runtime type checks and in
    float32, as a reader would.
    """
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "fixtures" / "pages.py", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    # programs of the pages print too; the results are the last line
    return {found["page"]: found for found in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("path", pages.pages(), ids=lambda path: path.name)
def test_a_page_shows_what_its_commands_print(path, outcomes):
    found = outcomes[path.name]
    assert not found["wrong"], found["wrong"]
    # a drawing in SVG is its own source
    shown = re.findall(r"!\[[^\]]*\]\((?:docs/)?pictures/([^)]+png)\)", path.read_text("utf-8"))
    made = set(found["pictures"]) | {
        name for line, _ in found["skipped"] for name in re.findall(r"[\w-]+\.png", line)
    }
    assert set(shown) <= made, f"{path.name} shows pictures that no command of the page makes"


def test_most_commands_run_and_many_outputs_are_compared(outcomes):
    ran = sum(len(found["ran"]) for found in outcomes.values())
    skipped = [line for found in outcomes.values() for line, _ in found["skipped"]]
    assert ran >= 60
    assert sum(found["compared"] for found in outcomes.values()) >= 45
    # skipped: installations, downloads, accounts, clusters, servers, other data, hours of training
    assert len([line for line in skipped if line.startswith("equitrans")]) <= 36, skipped
    assert len(skipped) <= 70, skipped


def test_pictures_have_at_most_100_kb():
    for path in (DOCS / "pictures").iterdir():
        assert path.stat().st_size <= 100_000, path


def read(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return pages.Reader(tmp_path / "folder").read(page)


def test_a_page_with_correct_output_passes(tmp_path):
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
        ("```console\nls\n```", "starts with"),
        ("```python\n1 + 1  # 3\n```", "is 2"),
        ("```python\nimport nowhere\n```", "No module named"),
        ("<!-- test: be kind -->\n```console\n$ true\n```", "not a known comment"),
        ("<!-- test: skip -->\n```console\n$ true\n```", "not a known comment"),
        ("<!-- test: skip 1 because -->\n```console\n$ true\n```", "not a known comment"),
        ("<!-- test: skip 1 because of a -->\n```console\n$ true\n$ false\n```", "status 1"),
        ("<!-- test: scan with --no -->\n```console\n$ equitrans scan list\n```", "status 2"),
        ("<!-- test: status 1 -->\nHello.\n", "directly above its block"),
    ],
)
def test_a_page_with_wrong_output_or_comments_fails(tmp_path, text, message):
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
def test_output_is_compared_exactly_except_where_allowed(shown, output, any_figures, same):
    assert pages.matches(shown.split("\n"), output, any_figures=any_figures) is same


def broken_links(text, folder):
    """Return links to missing files; Sphinx checks the links between its own pages."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`", "", text))
    return [link for link in links if not (folder / link).exists()]


def test_links_of_the_readme_exist():
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


def test_tests_named_in_the_documentation_exist():
    theory = (DOCS / "theory.md").read_text(encoding="utf-8")
    assert theory.count(".py::") >= 40
    for path in pages.pages():
        assert not unknown_tests(path.read_text(encoding="utf-8")), path


def test_a_missing_test_is_detected():
    assert unknown_tests("`test_groups.py::test_nothing`") == ["test_groups.py::test_nothing"]


def test_every_statement_of_the_paper_has_code_and_a_test():
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
def test_the_command_reference_has_every_option_and_valid_examples(command):
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


def test_a_name_of_a_package_leads_to_the_module_that_defines_it():
    assert reference.home_of("Group") == equitrans.Group.__module__
    assert reference.home_of("VERBS").startswith("equitrans.data.")  # a constant
    with pytest.raises(KeyError):
        reference.home_of("nonsense")


def test_the_picture_of_the_packages_stacks_them_by_imports():
    sizes, imports = picture.read_package()
    places = picture.from_bottom_to_top(sizes, imports)
    assert (places[0], places[-1]) == (picture.BASE, "cli")
    assert all(places.index(upper) > places.index(lower) for upper, lower in imports)
    lines = sum(len(p.read_text("utf-8").splitlines()) for p in picture.PACKAGE.rglob("*.py"))
    assert sum(sum(modules.values()) for modules in sizes.values()) == lines


# --- notebook


def texts(notebook):
    """Returns what each cell printed; a kernel may send one cell's lines in several parts."""
    return [
        "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
            if output.get("name") != "stderr"
        )
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.filterwarnings("ignore")  # from the Jupyter packages
def test_the_notebook_prints_what_it_shows(tmp_path):
    kept = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(run, timeout=1000, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert texts(run) == texts(kept)
    assert any("image/png" in o.get("data", {}) for c in run.cells for o in c.get("outputs", []))
