"""equitrans compare: tables of several models on several files."""

import csv
import json

import pytest

from equitrans import Symmetry, Trained, TransducerConfig, compare, fit, read_pairs
from equitrans.data import as_pairs, format_tsv
from equitrans.data.scan import CLASSES
from equitrans.errors import ConfigError

VERBS = ("walk", "look", "jump")
PAIRS = as_pairs(
    [
        (f"{verb}{end}", " ".join([f"I_{verb.upper()}"] * n))
        for verb in VERBS
        for end, n in (("", 1), (" twice", 2), (" thrice", 3))
    ]
)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models and two files; only the second model solves a pair."""
    folder = tmp_path_factory.mktemp("compared")
    symmetry = Symmetry.of(CLASSES["verbs"], PAIRS)
    Trained.new(TransducerConfig(), symmetry, max_length=9, seed=0).save(folder / "random")
    rules = TransducerConfig(aligner="recursive")
    fit(PAIRS, classes=CLASSES["verbs"], model=rules).save(folder / "rules")
    (folder / "one.tsv").write_text(format_tsv(PAIRS))
    (folder / "two.tsv").write_text("run\tI_RUN\nrun twice\tI_RUN I_RUN\nfly\tI_FLY\n")
    return folder


def test_every_model_is_compared_with_the_first_on_every_file(run, models, tmp_path):
    asked = ("compare", models / "random", models / "rules", "--data")
    files = (models / "one.tsv", models / "two.tsv")
    status, out, err = run(*asked, *files, "--json")
    assert status == 0
    assert f"{models / 'rules'} on {files[1]}" in err
    content = json.loads(out)
    assert [row["exact_match"] for row in content["figures"][2:]] == [100.0, pytest.approx(66.6667)]
    assert [row["refused"] for row in content["figures"]] == [0, 1, 0, 1]
    assert [(row["low"], row["high"]) for row in content["figures"][2:3]] == [(100.0, 100.0)]
    assert all(row["low"] <= row["exact_match"] <= row["high"] for row in content["figures"])
    one, two = content["differences"]
    assert one["than"] == str(models / "random")
    for row, pairs in ((one, len(PAIRS)), (two, 3)):
        assert row["difference"] == pytest.approx(100 * (row["gained"] - row["lost"]) / pairs)
        assert row["low"] <= row["difference"] <= row["high"]
    assert run(*asked, *files, "--json", "--quiet") == (0, out, "")
    assert run(*asked, *files, "--format", "json", "--quiet") == (0, out, "")


def test_tables_are_markdown_csv_or_latex(run, models):
    asked = ("compare", models / "rules", models / "random", "--data", models / "two.tsv")
    _, out, _ = run(*asked)
    figures, differences = out.split("\n\n")
    assert figures.splitlines()[0].startswith("| model | data | pairs | exact match, % |")
    assert len(differences.splitlines()) == 3
    _, out, _ = run(*asked, "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))  # one table, which a data frame takes
    assert [row["refused"] for row in rows] == ["1", "1"]
    assert [row["than"] for row in rows] == ["", str(models / "rules")]
    assert float(rows[1]["difference_low"]) <= float(rows[1]["difference"])
    _, out, _ = run(*asked, "--format", "latex")
    assert out.count("\\toprule") == 2
    assert "exact match, \\%" in out
    # one model has nothing to be compared with
    _, out, _ = run(*asked[:2], *asked[3:])
    assert "\n\n" not in out


def test_python_gives_the_rows_of_the_command(run, models):
    names = [str(models / name) for name in ("random", "rules")]
    file = models / "two.tsv"
    found = compare({name: Trained.load(name) for name in names}, {str(file): read_pairs(file)})
    _, out, _ = run("compare", *names, "--data", file, "--json", "--quiet")
    content = json.loads(out)
    assert list(found.figures) == content["figures"]
    assert list(found.differences) == content["differences"]
    first, second = found.rows
    assert first["difference"] is None
    assert second["difference"] == found.differences[0]["difference"]
    assert found._repr_html_().count("<table>") == 2
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare({}, {})


def test_wrong_input_gets_a_message(run, models):
    rules, data = models / "rules", models / "one.tsv"
    for asked, message in (
        ((rules, rules, "--data", data), "a model is given twice"),
        ((rules, "--data", data, data), "a file is given twice"),
        ((rules,), "the following arguments are required: --data"),
        ((rules, "--data", models / "none.tsv"), "none.tsv: No such file"),
        ((models / "none", "--data", data), "none: no such run directory"),
    ):
        status, out, err = run("compare", *asked, "--quiet")
        assert (status, out) == (2, "")
        assert message in err
