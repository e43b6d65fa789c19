"""equitrans curve: exact match over the number of pairs."""

import csv
import io
import json

import pytest

from equitrans import TransducerConfig, curve
from equitrans.errors import ConfigError, DataError

pytestmark = pytest.mark.usefixtures("float32")

PAIRS = [
    (f"{v} the {w}", f"{w.upper()} {v}")
    for v in ("dim", "stop")
    for w in ("lamp", "fan", "heater", "radio")
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curve")
    for name, pairs in (("pairs.tsv", PAIRS), ("test.tsv", [("dim the fan", "FAN dim")])):
        (folder / name).write_text("".join(f"{x}\t{y}\n" for x, y in pairs))
    return folder


def test_rows_have_all_answers_and_samples_are_nested(world):
    rows = list(curve(PAIRS, sizes=[6, 3], seeds=[0, 1]))
    assert [(row["pairs"], row["seed"]) for row in rows] == [(3, 0), (6, 0), (3, 1), (6, 1)]
    for row in rows:
        assert row["test"] == 2 == row["right"] + row["refused"] + row["wrong"]
        assert row["exact_match"] == row["right"] / 2
    assert rows == [
        {**row, "cpu_seconds": old["cpu_seconds"]}
        for row, old in zip(curve(PAIRS, sizes=[3, 6], seeds=[0, 1]), rows, strict=True)
    ]


def test_the_command_prints_means_rows_and_a_picture(run, world):
    base = ("curve", world / "pairs.tsv", "--data", world / "test.tsv", "--sizes", "3,6")
    status, table, err = run(*base, "--plot", world / "curve.png")
    assert status == 0
    assert table.splitlines()[0].startswith("| pairs | samples | right")
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| 3", "| 6"]
    assert "6 pairs, seed 0: " in err
    assert (world / "curve.png").read_bytes().startswith(b"\x89PNG")
    _, text, _ = run(*base, "--format", "csv", "--quiet")
    _, content, _ = run(*base, "--json", "--quiet")
    rows = json.loads(content)
    assert [int(row["right"]) for row in csv.DictReader(io.StringIO(text))] == [
        row["right"] for row in rows
    ]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"sizes": []}, ConfigError),
        ({"sizes": [0]}, ConfigError),
        ({"sizes": [8]}, DataError),
        ({"sizes": [9], "test": PAIRS, "model": TransducerConfig()}, DataError),
    ],
)
def test_sizes_that_cannot_be_drawn_are_refused(more, error):
    with pytest.raises(error):
        next(iter(curve(PAIRS, **more)))
