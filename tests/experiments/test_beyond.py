"""Benchmarks beyond SCAN: their description, trainings, records and table."""

import json
from pathlib import Path

import pytest

from equitrans.data import Pair
from equitrans.errors import ConfigError, DataError
from equitrans.experiments.beyond import (
    Benchmark,
    Results,
    Training,
    curve_bands,
    load_benchmarks,
    make_beyond,
    perform_training,
)

pytestmark = pytest.mark.usefixtures("float32")

RULES = {"model.aligner": "recursive", "classes": "discover"}
WORDS = ("lamp", "fan", "heater", "radio")


@pytest.fixture
def folder(tmp_path):
    """A folder with two episodes and a benchmark of two kinds."""
    (tmp_path / "mlc").mkdir()
    (tmp_path / "home").mkdir()
    for n, verb in enumerate(("dim", "stop")):
        lines = [f"{verb} the {w}\t{w.upper()} {verb}\n" for w in WORDS]
        lines.append(f"{verb} the lamp twice\tLAMP {verb} LAMP {verb}\n")
        (tmp_path / "mlc" / f"ep{n}.train.tsv").write_text("".join(lines))
        asked = f"{verb} the fan twice\tFAN {verb} FAN {verb}\n{verb} the moon\tMOON {verb}\n"
        (tmp_path / "mlc" / f"ep{n}.test.tsv").write_text(asked)
    rows = [f"dim the {w}\t{w.upper()} dim\tplain\n" for w in WORDS]
    rows += [f"dim the {w} now\tNOW {w.upper()} dim\thurried\n" for w in WORDS]
    (tmp_path / "home" / "train.tsv").write_text("".join(rows))
    return tmp_path


def home(*trainings, **more):
    tests = {"seen": "home/train.tsv"}
    return Benchmark("home", "Home", "home/train.tsv", tests, trainings, kinds=3, **more)


def test_the_description_has_four_benchmarks_and_valid_settings():
    found = load_benchmarks()
    assert [each.name for each in found] == ["cogs", "pcfg", "geo", "mlc"]
    titles = [training.title for each in found for training in each.trainings]
    assert len(titles) == len(set(titles))
    for benchmark in found:
        for training in benchmark.trainings:
            assert training.config.seed == training.seed
        assert all(set(row["figures"]) <= set(benchmark.tests) for row in benchmark.published)


def test_benchmarks_are_chosen_by_title_seeds_and_size():
    (geo,) = load_benchmarks(only="geo: LSTM", seeds=2)
    assert [training.seed for training in geo.trainings] == [0, 1]
    quick = load_benchmarks(quick=True)
    assert not any(training.is_point for each in quick for training in each.trainings)
    with pytest.raises(ConfigError, match="no training with 'nothing'"):
        load_benchmarks(only="nothing")


def test_the_pairs_of_a_training_are_chosen_by_kind_size_and_seed():
    rows = [(Pair(("a", str(n)), ("A", str(n))), "odd" if n % 2 else "even") for n in range(20)]
    every = Training("home", "all", RULES)
    assert every.chosen(rows) == [pair for pair, _ in rows]
    even = Training("home", "even", RULES, without=("odd",))
    assert even.chosen(rows) == [pair for pair, kind in rows if kind == "even"]
    few = Training("home", "few", RULES, sample=3, always=("odd",), seed=1)
    assert len(few.chosen(rows)) == 13
    assert few.chosen(rows) == few.chosen(rows)
    spoiled = Training("home", "spoiled", RULES, spoiled=1.0).chosen(rows)
    assert [pair.source for pair in spoiled] == [pair.source for pair, _ in rows]
    assert sum(pair != old for pair, (old, _) in zip(spoiled, rows, strict=True)) > 10


def test_every_part_is_learned_and_judged_by_itself(folder):
    (mlc,) = load_benchmarks(only="mlc")
    record = perform_training(mlc.trainings[0], mlc, folder)
    (tally,) = record["tests"].values()
    assert record["pairs"] == 10
    assert record["rules"] > 0
    assert (tally["pairs"], tally["right"], tally["refused"]) == (4, 2, 2)
    assert tally["kinds"] == {"ep0": [1, 2], "ep1": [1, 2]}
    json.dumps(record, allow_nan=False)
    with pytest.raises(DataError, match=r"train\.tsv: no such file"):
        perform_training(mlc.trainings[0], mlc, folder / "home")


def test_the_back_off_counts_the_answers_of_its_second_model(folder):
    small = {"kind": "backoff", "classes": "discover", "model.wrong": 1.0, "model.hidden": 4}
    asked = Training("home", "both", small | {"training.updates": 2}, sample=6)
    tally = perform_training(asked, home(asked), folder)["tests"]["seen"]
    assert tally["pairs"] == 8
    assert 0 <= tally["second"] <= 8 - tally["refused"]


def test_records_make_the_table_the_kinds_and_the_curves(folder, tmp_path):
    points = tuple(Training("home", "rules", RULES, sample=n, is_point=True) for n in (4, 8))
    shown = Training("home", "plain ones", RULES, without=("hurried",))
    published = ({"name": "others", "figures": {"seen": 12.5}},)
    benchmark = home(shown, *points, published=published)
    results = Results(tmp_path / "records")
    for each in benchmark.trainings:
        results.add("home", perform_training(each, benchmark, folder))
    table = make_beyond([benchmark], results)
    assert "| plain ones | 4 |" in table
    assert "| 50.00 (0 wrong, 4 refused) |" in table
    assert "| plain ones | seen | hurried 0/4 |" in table
    assert "| *published: others* |  |  |  | *12.5* |" in table
    bands = curve_bands(benchmark, results, "seen")
    assert list(bands) == ["rules"]
    assert list(bands["rules"]) == [4, 8]
    assert bands["rules"][8] == [100.0]


def test_a_damaged_file_of_records_is_named(tmp_path):
    (tmp_path / "beyond").mkdir()
    (tmp_path / "beyond" / "geo.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"geo\.jsonl is damaged"):
        Results(tmp_path).of("geo")


def test_reproduce_makes_missing_records_once_and_tables_and_plot_show_them(run, folder, tmp_path):
    records = ("--records", tmp_path / "records", "--only", "mlc")
    status, out, err = run("reproduce", "beyond", "--data-dir", folder, *records)
    assert status == 0
    assert "mlc: rules, classes discovered, seed 0: test pairs 2/4" in err
    assert "| rules, classes discovered | 10 |" in out
    assert run("reproduce", "beyond", *records) == (0, out, "")
    assert run("tables", "beyond", *records)[1] == out
    content = json.loads(run("tables", "beyond", "--json", *records)[1])
    assert list(content["beyond"]) == ["mlc"]
    status, _, err = run("plot", "beyond", "--out", tmp_path / "x.png", *records)
    assert (status, Path(tmp_path / "x.png").exists()) == (2, False)
    assert "no records of curves" in err
