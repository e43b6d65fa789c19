"""Every command: its output, its files and its exit status."""

import io
import json
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean, stdev

import pytest
import torch

import equitrans
from equitrans.cli import doctor, scan
from equitrans.data.classes import format_classes, read_classes
from equitrans.data.pairs import Pair, format_scan, format_tsv, read_pairs
from equitrans.data.scan import CLASSES, RULES, VERBS, Rule, checksum, everything, load_split
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained

PAIRS = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]

RECORDS = Path(__file__).parents[2] / "records"

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a trained model, its data and its classes."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("world")
    fit(PAIRS, [VERBS], training=TrainingConfig(updates=300)).save(folder / "model")
    (folder / "pairs.tsv").write_text(format_tsv(PAIRS))
    (folder / "classes.toml").write_text(format_classes([VERBS]))
    return folder


def fails(run, *arguments):
    """The message of a command that fails with status 2."""
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("equitrans: ")
    assert err.count("\n") == 1
    return err.removeprefix("equitrans: ").strip()


# --- train


def test_train_evaluate_predict(run, world, tmp_path):
    out = tmp_path / "run"
    status, printed, err = run(
        *("train", "--data", world / "pairs.tsv", "--classes", world / "classes.toml"),
        *("--out", out, "--seed", 0, "--training.updates", 300),
    )
    assert (status, printed) == (0, "")
    assert "11 training and 1 validation pairs" in err
    assert f"weights of the best epoch: {out}/model.safetensors" in err
    status, printed, _ = run("evaluate", out, "--data", world / "pairs.tsv", "--json")
    report = json.loads(printed)
    assert status == 0
    assert report["exact_match"] == 1.0
    assert report["pairs"] == 12
    assert report["by_length"]["2"] == {"right": 4, "pairs": 4}
    assert report["by_template"]["<verbs> twice"] == {"right": 4, "pairs": 4}
    status, printed, _ = run("predict", out, "jump twice", "walk")
    assert (status, printed) == (0, "I_JUMP I_JUMP\nI_WALK\n")


def test_dotted_settings_replace_those_of_the_recipe(run, tmp_path):
    status, _, err = run(
        *("train", "--split", "simple_p1", "--training.epochs", 2, "--model.hidden", 9),
        *("--classes", "verbs", "--out", tmp_path / "run", "--seed", 5),
    )
    assert status == 0
    assert "classes: verbs (walk look run jump)" in err
    content = json.loads((tmp_path / "run" / "config.json").read_text())
    assert content["model"]["hidden"] == 9
    assert content["training"]["epochs"] == 2
    assert content["seed"] == 5
    assert len((tmp_path / "run" / "epochs.jsonl").read_text().splitlines()) == 2
    status, printed, _ = run("evaluate", tmp_path / "run", "--json", "--width", 1)
    assert json.loads(printed)["pairs"] == len(load_split("simple_p1").test)


def test_the_paper_s_recipes_and_their_swapped_sizes(run, tmp_path):
    for name, hidden, embedding in (("paper", 13, 67), ("paper-swapped", 67, 13)):
        out = tmp_path / name
        status, _, _ = run(
            *("train", "--split", "simple_p1", "--recipe", name, "--training.epochs", 1),
            *("--out", out, "--quiet"),
        )
        assert status == 0
        content = json.loads((out / "config.json").read_text())
        assert content["data"]["classes"] == "verbs"
        assert content["training"]["batching"] == "pairs"
        assert content["training"]["clip"] is None
        assert (content["model"]["hidden"], content["model"]["embedding"]) == (hidden, embedding)


def test_resuming_a_finished_run_says_so(run, world, tmp_path):
    out = tmp_path / "run"
    run(
        *("train", "--data", world / "pairs.tsv", "--classes", "none", "--out", out, "--quiet"),
        *("--training.epochs", 1),
    )
    before = (out / "model.safetensors").read_bytes()
    status, _, err = run("train", "--resume", out)
    assert status == 0
    assert "is finished; there is nothing left to train" in err
    assert (out / "model.safetensors").read_bytes() == before


def test_settings_are_read_from_a_yaml_file(run, world, tmp_path):
    (tmp_path / "mine.yaml").write_text("model:\n  hidden: 11\ntraining:\n  epochs: 1\n")
    status, _, _ = run(
        *("train", "--config", tmp_path / "mine.yaml", "--data", world / "pairs.tsv", "--quiet"),
        *("--classes", "none", "--out", tmp_path / "run", "--training.batch", 3),
    )
    assert status == 0
    content = json.loads((tmp_path / "run" / "config.json").read_text())
    assert content["model"]["hidden"] == 11
    assert content["training"]["batch"] == 3


# --- predict


def test_predict_reads_arguments_a_file_or_standard_input(run, world, tmp_path, monkeypatch):
    expected = "I_JUMP I_JUMP\nI_RUN\n"
    assert run("predict", world / "model", "jump twice", "run")[1] == expected
    (tmp_path / "sentences.txt").write_text("jump twice\nrun\n")
    assert run("predict", world / "model", "--file", tmp_path / "sentences.txt")[1] == expected
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfjump twice\nrun\n"))
    )
    assert run("predict", world / "model")[1] == expected


def test_predict_takes_options_before_and_after_sentences(run, world):
    model = world / "model"
    expected = run("predict", model, "jump twice", "run", "--json")
    assert expected[0] == 0
    assert run("predict", "--json", model, "jump twice", "run") == expected
    assert run("predict", model, "--json", "jump twice", "run") == expected
    assert run("predict", model, "jump twice", "--json", "run") == expected


def test_predict_prints_json_tsv_and_n_best(run, world):
    model = world / "model"
    _, out, _ = run("predict", model, "jump twice", "--json", "--n-best", 3, "--alignments")
    answer = json.loads(out)
    assert answer["source"] == "jump twice"
    assert answer["target"] == "I_JUMP I_JUMP"
    assert answer["finished"] is True
    assert answer["n_best"][0]["target"] == "I_JUMP I_JUMP"
    assert len(answer["n_best"]) == 3
    first, *_, last = answer["alignment"]
    assert (first["target"], first["source"], first["position"]) == ("I_JUMP", "jump", 0)
    assert last["target"] == "EOS"
    _, out, _ = run("predict", model, "jump twice", "--tsv", "--n-best", 2)
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0][:2] == ["jump twice", "I_JUMP I_JUMP"]
    assert [row[3] for row in rows] == ["1", "2"]
    _, out, _ = run("predict", model, "jump twice", "--n-best", 2)
    assert out.splitlines()[0] == "jump twice"
    assert out.splitlines()[1].endswith("  I_JUMP I_JUMP")


def test_predict_prints_and_draws_alignments(run, world, tmp_path):
    _, out, err = run(
        *("predict", world / "model", "jump twice", "run thrice", "--alignments"),
        *("--plot", tmp_path / "a.png"),
    )
    lines = out.splitlines()
    assert lines[0] == "I_JUMP I_JUMP"
    assert lines[1].startswith("  I_JUMP ← 1 jump  ")
    assert lines[3].startswith("  EOS    ← ")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "a.png") in err
    _, _, _ = run("predict", world / "model", "run", "--plot", tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()


# --- evaluate


def test_evaluate_writes_errors_and_counts_unknown_target_words_as_wrong(run, world, tmp_path):
    (tmp_path / "test.tsv").write_text("jump twice\tI_JUMP I_JUMP\nwalk\tI_FLY\n")
    status, out, err = run(
        *("evaluate", world / "model", "--data", tmp_path / "test.tsv"),
        *("--errors", tmp_path / "errors.tsv"),
    )
    assert status == 0
    assert "exact match 50.00 % (1 of 2)" in out
    assert "no target word 'I_FLY'; 1 pairs with it count as wrong" in err
    assert (tmp_path / "errors.tsv").read_text() == (
        "source\ttarget\tpredicted\nwalk\tI_FLY\tI_WALK\n"
    )


def test_evaluate_counts_tied_predictions(run, world, tmp_path):
    config, symmetry = TransducerConfig(translator="table"), Symmetry.of([VERBS], PAIRS)
    # all target words are equally likely
    Trained.new(config, symmetry, max_length=3).save(tmp_path / "even")
    data = ("--data", world / "pairs.tsv")
    assert "(0 of 12), 12 tied, −log p" in run("evaluate", tmp_path / "even", *data)[1]
    assert json.loads(run("evaluate", tmp_path / "even", *data, "--json")[1])["tied"] == 12
    assert "tied" not in run("evaluate", world / "model", *data)[1]


def test_evaluate_breaks_figures_down_by_a_column(run, world, tmp_path):
    lines = "jump twice\tI_JUMP\tlong\nwalk\tI_WALK\tshort\n\njump\tI_JUMP\tshort\n"
    (tmp_path / "test.tsv").write_text(lines)
    asked = ("evaluate", world / "model", "--data", tmp_path / "test.tsv", "--by-column")
    status, out, _ = run(*asked, 3)
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["long", "0.0", "%", "1"] in rows
    assert ["short", "100.0", "%", "2"] in rows
    content = json.loads(run(*asked, 3, "--json")[1])
    assert content["by_column"]["short"] == {"right": 2, "pairs": 2}
    assert "test.tsv:1: expected 4 columns" in run(*asked, 4)[2]
    assert "it must lie in [1, 100]" in run(*asked, 0)[2]
    assert "a column of --data FILE" in run("evaluate", world / "model", "--by-column", 3)[2]


def test_evaluate_prints_lengths_and_the_worst_templates(run, world, tmp_path):
    (tmp_path / "test.tsv").write_text("jump twice\tI_JUMP\nwalk\tI_WALK\n")
    _, out, _ = run("evaluate", world / "model", "--data", tmp_path / "test.tsv")
    assert "target words" in out
    assert "worst of 1 templates with errors" in out
    assert "<verbs> twice" in out


# --- scan


def test_scan_lists_shows_and_exports(run, tmp_path):
    _, out, _ = run("scan", "list")
    assert "add_jump" in out
    assert "14670" in out
    assert "drawn with seed 2018" in out
    _, out, _ = run("scan", "show", "add_jump", "--part", "test", "--rows", 2)
    assert out == "jump twice\tI_JUMP I_JUMP\njump thrice\tI_JUMP I_JUMP I_JUMP\n"
    _, out, _ = run("scan", "show", "length", "--format", "scan", "--rows", 1)
    assert out == "IN: walk OUT: I_WALK\n"
    status, out, _ = run("scan", "export", "add_jump", "--out", tmp_path)
    assert status == 0
    split = load_split("add_jump")
    assert read_pairs(tmp_path / "add_jump.train.tsv") == split.train
    assert read_pairs(tmp_path / "add_jump.test.tsv") == split.test
    assert [c.name for c in read_classes(tmp_path / "classes.toml")] == ["verbs", "directions"]
    assert out.split() == [
        str(p)
        for p in (
            tmp_path / "add_jump.train.tsv",
            tmp_path / "add_jump.test.tsv",
            tmp_path / "classes.toml",
        )
    ]


# --- files


def test_an_unknown_picture_format_is_refused(run, world, tmp_path):
    status, _, err = run("predict", world / "model", "walk", "--plot", tmp_path / "x.pmg")
    assert status == 2
    assert "no picture format 'pmg'; did you mean 'png'" in err


def test_train_names_class_words_that_are_in_no_pair(run, world, tmp_path):
    classes = tmp_path / "c.toml"
    classes.write_text(
        '[[class]]\nname = "v"\nsource = ["walk", "jmup"]\ntarget = ["I_WALK", "I_JUMP"]\n'
    )
    line = ("train", "--data", world / "pairs.tsv", "--classes", classes, "--training.epochs", 1)
    _, _, err = run(*line, "--out", tmp_path / "run")
    assert "class words that no pair shows: jmup" in err


def test_train_names_the_first_of_many_class_words_that_are_in_no_pair(run, world, tmp_path):
    classes = tmp_path / "c.toml"
    many = ", ".join(f'"w{i}"' for i in range(92))
    classes.write_text(f'[[class]]\nname = "w"\nsource = [{many}]\ntarget = [{many.upper()}]\n')
    line = ("train", "--data", world / "pairs.tsv", "--classes", classes, "--training.epochs", 1)
    _, _, err = run(*line, "--out", tmp_path / "run")
    assert "class words that no pair shows: w0, w1," in err
    assert "w9 and 174 more" in err


def test_ten_pairs_are_learned_with_default_settings(run, world, tmp_path):
    (tmp_path / "ten.tsv").write_text(format_tsv(PAIRS[:9] + PAIRS[9:10]))
    started = time.process_time()
    status, _, _ = run(
        *("train", "--data", tmp_path / "ten.tsv", "--classes", world / "classes.toml"),
        *("--out", tmp_path / "run", "--quiet"),
    )
    assert status == 0
    assert time.process_time() - started < 60
    assert run("predict", tmp_path / "run", "jump thrice")[1] == "I_JUMP I_JUMP I_JUMP\n"


def test_brackets_are_printed_unchanged(run, tmp_path):
    data, classes = tmp_path / "p[bold].tsv", tmp_path / "c.toml"
    data.write_text("a b\t[red] B\n[/b] b\tB [red]\n")
    classes.write_text('[[class]]\nname = "[/x]"\nsource = ["b"]\ntarget = ["B"]\n')
    out = tmp_path / "run[/y]"
    status, _, err = run(
        "train", "--data", data, "--classes", classes, "--out", out, "--training.epochs", 1
    )
    assert status == 0
    assert "p[bold].tsv" in err
    assert "[/x] (b)" in err
    status, printed, _ = run("evaluate", out, "--data", data)
    assert status == 0
    assert "[/b] <[/x]>" in printed


def test_resuming_restores_missing_or_damaged_weights(run, world, tmp_path):
    out = tmp_path / "run"
    run("train", "--data", world / "pairs.tsv", "--classes", "none", "--out", out,
        "--training.epochs", 2)  # fmt: skip
    best = out / "model.safetensors"
    saved = best.read_bytes()
    for damaged in (None, b"", b"junk"):
        best.unlink() if damaged is None else best.write_bytes(damaged)
        status, _, err = run("train", "--resume", out)
        assert status == 0
        assert "nothing left to train" in err
        assert best.read_bytes() == saved


@pytest.mark.parametrize("merge", ["<<: [{}]", "b: [{}]"])
@pytest.mark.parametrize("options", [("--config",), ("--config", "ok.yaml", "--config"), None])
def test_aliases_in_a_yaml_file_are_refused_at_once(run, tmp_path, monkeypatch, merge, options):
    monkeypatch.chdir(tmp_path)
    lines = ["a0: &a0 {x: 1}"]
    for i in range(1, 30):
        many = merge.format(", ".join([f"*a{i - 1}"] * 9))
        lines.append(f"a{i}: &a{i} {{{many}}}")
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    (tmp_path / "ok.yaml").write_text("seed: 3\n")
    (tmp_path / "nested.yaml").write_text("config: bomb.yaml\n")
    files = ("--config", "nested.yaml") if options is None else (*options, "bomb.yaml")
    started = time.process_time()
    message = fails(run, "train", "--split", "length", "--out", "out", *files)
    assert message.endswith("line 2: *a0 is an alias; write its value")
    message = fails(
        run, "train", "--split", "length", "--out", "out", *files, "--config", "ok.yaml"
    )
    assert message.endswith("line 2: *a0 is an alias; write its value")
    assert time.process_time() - started < 10


def test_deep_nesting_in_a_yaml_file_is_refused_at_once(run, tmp_path):
    (tmp_path / "deep.yaml").write_text("a: " + "[" * 100_000)
    started = time.process_time()
    files = ("--config", tmp_path / "deep.yaml")
    message = fails(run, "train", "--split", "length", "--out", tmp_path / "out", *files)
    assert message.endswith("line 1: more than 10 levels; settings have two")
    assert time.process_time() - started < 5


def test_recipe_and_split_are_read_from_a_yaml_file(run, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("recipe: paper\nsplit: length\n")
    run("train", "--config", settings, "--out", tmp_path / "run", "--training.epochs", 1,
        "--training.seconds", 0.01)  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["model"]["hidden"] == 149
    assert config["data"]["hold_out"] == "longest"


def test_evaluate_writes_errors_through_a_link_and_to_a_device(run, world, tmp_path):
    real, link = tmp_path / "real.tsv", tmp_path / "link.tsv"
    real.write_text("old")
    link.symlink_to(real)
    for where in (link, "/dev/null"):
        arguments = ("evaluate", world / "model", "--data", world / "pairs.tsv", "--json")
        assert run(*arguments, "--errors", where)[0] == 0
    assert link.is_symlink()
    assert real.read_text().startswith("source")
    assert not Path("/dev/null").is_file()


def test_train_on_a_full_disk_leaves_no_directory(run, world, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("equitrans.training.directories.write_atomically", full)
    out = tmp_path / "run"
    line = fails(run, "train", "--data", world / "pairs.tsv", "--classes", "none", "--out", out)
    assert "No space left" in line
    assert not out.exists()


def test_discover_prints_classes_with_their_evidence_and_writes_them(run, world, tmp_path):
    out = tmp_path / "found.toml"
    status, printed, _ = run("discover", world / "pairs.tsv", "--out", out)
    assert status == 0
    assert "pairs confirm it, 0 contradict it" in printed
    assert "in no class" in printed
    (c,) = read_classes(out)
    assert set(zip(c.source, c.target, strict=True)) == set(
        zip(VERBS.source, VERBS.target, strict=True)
    )
    status, printed, _ = run("discover", world / "pairs.tsv", "--json")
    content = json.loads(printed)
    assert content["classes"][0]["contradicted"] == 0
    assert set(content["left_out"]) == {"twice", "thrice"}
    assert content["misfits"] == []


def test_discover_ends_with_1_without_classes(run, tmp_path):
    (tmp_path / "p.tsv").write_text("walk\tWALK\nlook\tLOOK\n")
    out = tmp_path / "c.toml"
    status, printed, _ = run("discover", tmp_path / "p.tsv", "--out", out)
    assert status == 1
    assert "no classes were found" in printed
    assert "seen only alone" in printed
    assert not out.exists()
    status, _, noted = run("train", "--data", tmp_path / "p.tsv", "--classes", "discover",
                           "--training.updates", "1", "--out", tmp_path / "run")  # fmt: skip
    assert status == 0
    assert "classes: none" in noted


def test_train_can_discover_its_classes(run, world, tmp_path):
    status, _, err = run("train", "--data", world / "pairs.tsv", "--classes", "discover",
                         "--out", tmp_path / "run", "--training.epochs", 1)  # fmt: skip
    assert status == 0
    assert "class1 (walk look run jump)" in err
    assert run("audit", tmp_path / "run", "--data", world / "pairs.tsv")[0] == 0


def test_audit_passes_or_fails_with_its_status(run, world, tmp_path):
    pairs = world / "pairs.tsv"
    status, printed, _ = run("audit", world / "model", "--data", pairs, "--json")
    assert status == 0
    content = json.loads(printed)
    assert content["passed"] is True
    assert content["max_deviation"] <= 1e-5
    assert content["mismatches"] == 0
    plain = tmp_path / "plain"
    run("train", "--data", pairs, "--classes", "none", "--out", plain, "--training.epochs", 1)
    status, printed, _ = run("audit", plain, "--data", pairs, "--classes", world / "classes.toml")
    assert status == 1
    assert printed.startswith("NOT equivariant")


def test_orbits_as_a_table_as_json_and_as_a_picture(run, world, tmp_path):
    status, printed, _ = run("orbits", world / "model", "walk twice")
    assert status == 0
    assert "4 pairs, one orbit" in printed
    content = json.loads(run("orbits", world / "model", "walk twice", "--json")[1])
    assert len(content["family"]) == 4
    assert content["theoretical"] == [[0, 1, 2, 3]]
    out = tmp_path / "run"
    run("train", "--data", world / "pairs.tsv", "--classes", world / "classes.toml", "--out", out,
        "--training.epochs", 2, "--orbits", "walk twice", "--orbits-every", 1)  # fmt: skip
    picture = tmp_path / "orbits.png"
    assert run("orbits", out, "--plot", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_extend_adds_words_that_behave_like_their_classmates(run, world, tmp_path):
    out = tmp_path / "blick"
    status, printed, _ = run(
        "extend", world / "model", "--class", "verbs", "blick=I_BLICK", "--out", out
    )
    assert status == 0
    assert "made symmetric" in printed
    assert run("predict", out, "blick twice")[1] == "I_BLICK I_BLICK\n"
    likely = [json.loads(run("predict", out, s, "--json")[1]) for s in ("blick twice", "run twice")]
    assert len({json.dumps(p["log_prob"]) for p in likely}) == 1
    assert run("audit", out, "--data", world / "pairs.tsv")[0] == 0


def test_discover_lists_pairs_that_do_not_fit(run, tmp_path):
    pairs = [pair for pair in everything() if len(pair.source) <= 5]
    wrong = pairs[200]._replace(target=("I_RUN", "I_LOOK", "I_RUN"))
    (tmp_path / "pairs.tsv").write_text(format_tsv([*pairs[:200], wrong, *pairs[201:]]))
    status, out, _ = run("discover", tmp_path / "pairs.tsv")
    assert status == 0
    assert "1 pairs do not fit the classes, wrong or irregular:" in out
    assert f"  {' '.join(wrong.source)} → {' '.join(wrong.target)}" in out


def test_grammar_lists_unexplained_pairs_with_the_reason(run, tmp_path):
    pairs = [pair for pair in everything() if len(pair.source) <= 3]
    wrong = [pair._replace(target=("I_RUN",) * 7) for pair in pairs[30:32]]
    (tmp_path / "pairs.tsv").write_text(format_tsv([*pairs[:30], *wrong, *pairs[32:]]))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    data = ["--data", tmp_path / "pairs.tsv", "--classes", tmp_path / "classes.toml"]
    rules = ["--model.aligner", "recursive", "--out", tmp_path / "run"]
    status, _, err = run("train", *data, *rules)
    assert status == 0
    assert f"{len(pairs)} pairs, all learned from (" in err
    assert "validation" not in err
    assert "epoch" not in err
    _, out, _ = run("grammar", tmp_path / "run")
    assert "2 pairs are not explained:" in out
    assert f"  {' '.join(wrong[0].source)} → {' '.join(wrong[0].target)}   (" in out
    _, out, _ = run("grammar", tmp_path / "run", "--derive", "jump left", "--json")
    found = json.loads(out)
    assert found["source"] == "jump left"
    assert found["target"] == "I_TURN_LEFT I_JUMP"
    assert found["tree"]


def test_quiet_prints_no_notes(run, world, tmp_path):
    data = tmp_path / "test.tsv"
    data.write_text("walk\tI_FLY\n")
    told = run("evaluate", world / "model", "--data", data)
    assert "no target word 'I_FLY'" in told[2]
    assert run("evaluate", world / "model", "--data", data, "--quiet") == (*told[:2], "")


def test_scan_list_and_extend_print_json(run, world, tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "RULES", {"length": RULES["length"]})  # all splits take long
    status, out, _ = run("scan", "list", "--json")
    assert status == 0
    assert json.loads(out)["length"]["train"] == len(load_split("length").train)
    words = ("--class", "verbs", "blick=I_BLICK", "--out", tmp_path / "x")
    status, out, _ = run("extend", world / "model", *words, "--json")
    assert status == 0
    assert json.loads(out)["source"] == [*VERBS.source, "blick"]
    assert json.loads(out)["diluted"] >= 0


def test_tables_print_the_same_figures_as_json(run):
    _, text, _ = run("tables", "orbits", "--records", RECORDS)
    _, out, _ = run("tables", "orbits", "--records", RECORDS, "--json")
    systems = json.loads(out)["orbits"]["systems"]
    assert systems
    for name, splits in systems.items():
        values = splits["add_jump"]["exact_match"]
        cell = f"{fmean(values):.2f} ± {stdev(values):.2f} ({len(values)})"
        assert f"| {name} | {cell} |" in text


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "equitrans", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"equitrans {equitrans.__version__}\n")


def test_doctor_prints_versions_and_data(run):
    status, out, _ = run("doctor")
    assert status == 0
    assert f"torch      {torch.__version__}" in out
    assert "20910 commands from its grammar" in out
    status, out, _ = run("doctor", "--json")
    content = json.loads(out)
    assert status == 0
    assert content["torch"]["threads"] == torch.get_num_threads()
    assert content["problems"] == []
    found = {p["name"]: p for p in content["packages"]}
    assert found["numpy"]["found"] == version("numpy")
    assert found["numpy"]["extra"] is None
    assert found["matplotlib"]["extra"] == "plot"
    assert "pytest" not in found


def without(monkeypatch, missing):
    def installed(name):
        if name == missing:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor, "version", installed)


def test_doctor_prints_how_to_install_a_missing_package(run, monkeypatch):
    without(monkeypatch, "matplotlib")
    status, out, _ = run("doctor")
    assert status == 0  # matplotlib is optional
    assert "matplotlib —: pip install 'equitrans[plot]'" in out
    without(monkeypatch, "numpy")
    status, out, _ = run("doctor")
    assert status == 1
    assert out.endswith("PROBLEM    numpy is missing: pip install 'numpy>=1.26'\n")
    monkeypatch.setattr(doctor, "version", lambda name: "0.1" if name == "rich" else version(name))
    status, out, _ = run("doctor")
    assert status == 1
    assert out.endswith("PROBLEM    rich is 0.1: pip install 'rich>=13'\n")


def test_doctor_checks_the_official_files(run, tmp_path, monkeypatch):
    parts = {"train": everything()[:9], "test": everything()[9:12]}
    shas = (checksum(parts["train"]), checksum(parts["test"]))
    rules = {name: Rule(name + "_{}.txt", lambda: (), shas) for name in ("here", "absent")}
    monkeypatch.setattr(doctor, "RULES", rules)
    for part, pairs in parts.items():
        (tmp_path / f"here_{part}.txt").write_text(format_scan(pairs))
    _, out, _ = run("doctor", "--scan-dir", tmp_path, "--json")
    assert json.loads(out)["scan"]["official"] == {"here": True, "absent": False}
    (tmp_path / "here_test.txt").write_text(format_scan(parts["test"][1:]))
    _, out, _ = run("doctor", "--scan-dir", tmp_path)
    assert f"official files of 0 splits in {tmp_path}" in out
    assert "missing or changed: here, absent" in out
    assert f"equitrans scan download --out {tmp_path}" in out
