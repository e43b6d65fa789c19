"""equitrans learn: one command from pairs to a judged model."""

import json

import pytest

from equitrans import Trained

pytestmark = pytest.mark.usefixtures("float32")

PAIRS = """\
start the lamp\tLAMP start
stop the fan\tFAN stop
start the fan\tFAN start
stop the lamp\tLAMP stop
start the lamp twice\tLAMP start start
stop the fan twice\tFAN stop stop
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    (folder / "pairs.tsv").write_text(PAIRS)
    return folder


def test_the_model_is_written_and_the_page_printed(run, world):
    status, page, err = run("learn", world / "pairs.tsv", "--out", world / "model", "--seconds", 0)
    assert status == 0
    assert "judging: fold 1 of 2" in err
    for title in ("Classes", "Rules", "Held-out pairs", "Continue"):
        assert f"\n{title}\n" in f"\n{page}"
    answer = Trained.load(world / "model").predict(["start the fan twice"])[0]
    assert answer.words == ("FAN", "start", "start")


def test_the_page_as_json_and_nothing_on_standard_error(run, world):
    out = world / "quiet"
    status, page, err = run(
        "learn", world / "pairs.tsv", "--out", out, "--folds", 2, "--json", "--quiet"
    )
    assert (status, err) == (0, "")
    content = json.loads(page)
    assert content["out"] == str(out)
    assert content["explained"] == content["pairs"] == 6
    assert content["held_out"]["folds"] == 2
