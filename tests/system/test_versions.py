"""The site of the documentation has all versions, and its first page opens the newest."""

import importlib.util
import json
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "versions.py"


@pytest.fixture(scope="module")
def versions():
    spec = importlib.util.spec_from_file_location("versions", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder, version):
    (folder / "_static").mkdir(parents=True)
    options = f"const DOCUMENTATION_OPTIONS = {{\n    VERSION: '{version}',\n}};\n"
    (folder / "_static" / "documentation_options.js").write_text(options)
    (folder / "index.html").write_text(f"pages of {version}")
    return folder


def test_versions_are_listed_with_the_newest_first(versions, tmp_path):
    site = tmp_path / "site"
    for name in ("0.10.0", "0.9.0", "1.0.0", "0.9.0"):
        folder = tmp_path / name
        html = folder if folder.exists() else built(folder, name)
        assert versions.add(html, site) == name
    found = json.loads((site / "versions.json").read_text())
    assert found == {"versions": ["1.0.0", "0.10.0", "0.9.0"]}
    assert "1.0.0/index.html" in (site / "index.html").read_text()
    assert (site / "0.10.0" / "index.html").read_text() == "pages of 0.10.0"


def test_a_folder_without_pages_is_refused(versions, tmp_path):
    with pytest.raises(SystemExit, match="run make docs first"):
        versions.add(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()
