"""What the documentation shows is what its commands print."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("update", ROOT / "docs" / "update.py")
assert spec is not None
assert spec.loader is not None
update = importlib.util.module_from_spec(spec)
spec.loader.exec_module(update)


def test_the_tables_of_the_documentation_are_those_of_the_records():
    shown = 0
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        page = path.read_text(encoding="utf-8")
        shown += len(update.MARKED.findall(page)) + len(update.ROWS.findall(page))
        assert update.updated(page) == page, f"{path} is behind the records: make results"
    assert shown >= 9


def test_a_page_that_is_behind_is_noticed():
    page = "<!-- $ equitrans tables table1 -->\nnothing\n<!-- end -->\n"
    assert "| system | Simple |" in update.updated(page)
    page = "<!-- rows of records/reliability/limits.json -->\nnothing\n<!-- end -->\n"
    assert "| trained and decoded |" in update.updated(page)
