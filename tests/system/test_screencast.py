"""The recording of a terminal in the documentation."""

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def screencast():
    spec = importlib.util.spec_from_file_location("screencast", DOCS / "screencast.py")
    module = sys.modules["screencast"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["screencast"]


def texts(picture):
    return [
        "".join(e.itertext()) for e in ElementTree.fromstring(picture).iter() if "text" in e.tag
    ]


def test_the_kept_picture_shows_every_command_and_is_small(screencast):
    picture = (DOCS / "pictures" / "screencast.svg").read_text(encoding="utf-8")
    assert len(picture) < 300_000
    shown = " ".join(texts(picture))
    for command in screencast.COMMANDS:
        assert command in shown
    assert "Held-out pairs" in shown


def test_the_kept_picture_has_the_figures_of_the_page():
    page = (DOCS / "learn.md").read_text(encoding="utf-8")
    figures = re.findall(r"right \d+ of \d+ \(\d+ %\), refused \d+, wrong \d+", page)
    picture = (DOCS / "pictures" / "screencast.svg").read_text(encoding="utf-8")
    assert figures
    assert figures[0] in " ".join(texts(picture))


def test_outputs_appear_after_their_commands_and_long_ones_scroll(screencast, tmp_path):
    (tmp_path / "a.txt").write_text("<one>\n" * 30 + "x" * 150)
    pieces, seconds = screencast.record(("cat a.txt", "cat a.txt"), tmp_path)
    assert [p.at for p in pieces] == sorted(p.at for p in pieces)
    assert pieces[-1].at < seconds
    assert max(len(p.text) for p in pieces) <= screencast.COLUMNS
    picture = screencast.svg(pieces, seconds)
    assert texts(picture).count("<one>") == 60
    last = max(p.row for p in pieces) - screencast.ROWS + 1
    assert f"translateY(-{last * screencast.HEIGHT}px)" in picture


def test_the_files_are_those_of_the_page(screencast):
    files = screencast.files_of((DOCS / "learn.md").read_text(encoding="utf-8"))
    assert set(files) == {"commands.tsv", "test.tsv"}
    assert "\t" in files["commands.tsv"]
