"""Every model through the command line: train, predict, evaluate, audit, resume, save and load."""

import json

import pytest
import torch

import equitrans
import equitrans.cli.progress
from equitrans.analysis.evaluation import losses
from equitrans.cli.main import main
from equitrans.data.classes import format_classes
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import VERBS
from equitrans.models.configs import MODELS, TransducerConfig, name_of
from equitrans.training import runs
from equitrans.training.fitting import fit
from equitrans.training.runs import Run
from equitrans.training.trained import Trained

PAIRS = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]

SMALL = {
    "transducer": {"k": 4, "d": 3, "embedding": 5, "hidden": 8},
    "gordon": {"hidden": 4},
    "russin": {"semantics": 6, "syntax": 8},
    "wu": {"embedding": 6, "hidden": 8},
    "attention": {"embedding": 6, "hidden": 8},
    "trees": {"empty": 3, "draws": 30},
    "lane": {"size": 8, "samples": 2},
    "backoff": {"k": 4, "d": 3, "embedding": 5, "hidden": 8},
}

FREE = sorted(MODELS.keys() - {"transducer", "backoff"})
"""Models that are not equivariant with their default settings."""

SMOOTH = [name for name in MODELS if name != "lane"]
"""Models with a likelihood of their own; test_lane_model.py tests the other one."""


pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data, the classes and one run of each model."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("catalog")
    (folder / "pairs.tsv").write_text(format_tsv(PAIRS))
    (folder / "classes.toml").write_text(format_classes([VERBS]))
    for name in MODELS:
        assert train(folder, folder / name, "--model", name, *sizes(name)) == 0
    tied = ("--model.output_bias", "tied")
    assert train(folder, folder / "tied", "--model", "gordon", *sizes("gordon"), *tied) == 0
    return folder


def sizes(name):
    batch = ["--training.batch", "128"] if name == "lane" else []  # one update per epoch
    return batch + [part for key, n in SMALL[name].items() for part in (f"--model.{key}", str(n))]


def train(folder, out, *more):
    """The exit status of ``equitrans train`` on the pairs."""
    data = ("--data", folder / "pairs.tsv", "--classes", folder / "classes.toml", "--out", out)
    budget = ("--training.updates", "30", "--training.learning_rate", "0.02")
    return main(["train", *map(str, data), *budget, "--seed", "2", "--quiet", *more])


def fails(run, *arguments):
    """The one-line message of a command that fails with status 2."""
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err.removeprefix("equitrans: ").strip()


def config_of(path):
    return json.loads((path / "config.json").read_text())


def weights(path):
    return (path / "model.safetensors").read_bytes()


# --- every model


def test_config_json_holds_the_name_and_settings_of_every_model(folder):
    assert SMALL.keys() == MODELS.keys()
    for name, kind in MODELS.items():
        assert config_of(folder / name)["kind"] == name
        assert name_of(kind()) == name
        assert getattr(equitrans, kind.__name__) is kind
        assert SMALL[name].items() <= config_of(folder / name)["model"].items()


@pytest.mark.parametrize("name", SMOOTH)
def test_training_lowers_the_loss_and_evaluate_reports_it(run, folder, name):
    status, printed, _ = run("evaluate", folder / name, "--data", folder / "pairs.tsv", "--json")
    report = json.loads(printed)
    assert (status, report["pairs"]) == (0, len(PAIRS))
    trained = Trained.load(folder / name)
    assert report["exact_match"] == trained.score(PAIRS)
    assert report["loss"] == pytest.approx(sum(losses(trained.model, PAIRS)) / 12, rel=1e-5)
    assert report["loss"] < sum(losses(Run.open(folder / name).trained.model, PAIRS)) / 12


@pytest.mark.parametrize("name", SMOOTH)
def test_predict_prints_the_best_targets_first_with_log_prob_and_alignment(run, folder, name):
    status, printed, _ = run(
        "predict", folder / name, "jump twice", "--json", "--n-best", 3, "--alignments"
    )
    assert status == 0
    answer = json.loads(printed)
    best = answer["n_best"]
    assert len({found["target"] for found in best}) == 3
    # beam search ranks by log p per word, rules and trees rank by p
    ranked = [
        f["log_prob"]
        / (1 if name in ("backoff", "trees") else len(f["target"].split()) + f["finished"])
        for f in best
    ]
    assert ranked == sorted(ranked, reverse=True)
    trained = Trained.load(folder / name)
    ended = [found for found in best if found["finished"]]
    assert ended
    pairs = [Pair(("jump", "twice"), tuple(found["target"].split())) for found in ended]
    for found, loss in zip(ended, losses(trained.model, pairs), strict=True):
        assert found["log_prob"] == pytest.approx(-loss, rel=1e-4)  # float32, another order
    source = ("BOS", "jump", "twice", "EOS")
    assert [row["target"] for row in answer["alignment"]] == [*answer["target"].split(), "EOS"]
    for row in answer["alignment"]:
        assert row["source"] == source[row["position"] + 1]
        assert 0.25 <= row["prob"] <= 1 + 1e-6  # the largest of four probabilities


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_and_resumed_run_ends_with_the_same_bits(
    run, folder, tmp_path, monkeypatch, name
):
    def interrupted(start, console):
        epochs = start(print)
        for _ in range(4):
            next(epochs)
        raise KeyboardInterrupt

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(equitrans.cli.progress, "follow", interrupted)
        assert train(folder, out, "--model", name, *sizes(name)) == 130
    assert not Run.open(out).is_finished
    status, _, _ = run("train", "--resume", out, "--quiet")
    assert status == 0
    assert weights(out) == weights(folder / name)
    ended = [Run.open(path) for path in (folder / name, out)]
    before, after = (run.learning(run.load_data()).model.state_dict() for run in ended)
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", [*MODELS, "tied"])
def test_saving_and_loading_keeps_settings_weights_and_losses(folder, tmp_path, name):
    trained = Trained.load(folder / name)
    trained.save(tmp_path / "kept")
    again = Trained.load(tmp_path / "kept")
    assert again.config == trained.config
    assert losses(again.model, PAIRS) == losses(trained.model, PAIRS)
    assert weights(tmp_path / "kept") == weights(folder / name)


@pytest.mark.parametrize("name", MODELS)
def test_fit_and_train_give_equal_weights_for_equal_settings(folder, name):
    config = Run.open(folder / name).config
    fitted = fit(PAIRS, [VERBS], model=config.model, training=config.training, seed=config.seed)
    expected = Trained.load(folder / name).model.state_dict()
    found = fitted.model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in found)


# --- equivariance


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("transducer", True),
        ("backoff", True),
        ("tied", True),
        *((name, False) for name in FREE if name in SMOOTH),
    ],
)
def test_audit_and_orbits_find_which_models_are_equivariant(run, folder, name, passes):
    audited = run("audit", folder / name, "--data", folder / "pairs.tsv", "--json")
    assert audited[0] == (0 if passes else 1)
    assert json.loads(audited[1])["passed"] is passes
    _, printed, _ = run(
        "orbits", folder / name, "jump twice", "--target", "I_JUMP I_JUMP", "--json"
    )
    found = json.loads(printed)
    assert found["theoretical"] == [[0, 1, 2, 3]]
    assert (found["observed"] == [[0, 1, 2, 3]]) is passes


@pytest.mark.parametrize("name", [*FREE, "backoff", "tied"])
def test_extend_refuses_models_other_than_the_transducer(run, folder, tmp_path, name):
    line = fails(
        run,
        *("extend", folder / name, "--class", "verbs", "blick=I_BLICK", "--out", tmp_path / "x"),
    )
    assert line.startswith("only a transducer can be extended")
    assert not (tmp_path / "x").exists()


# --- names of models


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "gorden"], "unknown model 'gorden'; did you mean 'gordon'?"),
        (
            ["--model", "gordon", "--recipe", "paper", "--split", "add_jump"],
            "recipe 'paper' is for the model 'transducer', not 'gordon'",
        ),
        (["--model", "wu", "--recipe", "russin"], "is for the model 'russin', not 'wu'"),
        (["--model", "gordon", "--model.k", "3"], "--model.k is not an option"),
        (["--model", "gordon", "--model.output_bias", "fre"], "expected 'free' or 'tied' or"),
        (["--model", "russin", "--model.syntax", "3"], "it must be even and 2 or more"),
        (["--config", "WRITTEN:kind: gorden"], "unknown model 'gorden'; did you mean 'gordon'?"),
        (["--config", "WRITTEN:kind: [gordon]"], "'kind' is ['gordon']; expected a value"),
        (["--config", "WRITTEN:model: gordon"], "write kind: gordon, and its settings under model"),
        (["--config", "WRITTEN:model: 'a\n\n b'"], r"model is 'a\nb'; write kind: 'a\nb', and its"),
    ],
)
def test_an_invalid_name_or_setting_gives_a_one_line_message(
    run, folder, tmp_path, arguments, message
):
    for i, argument in enumerate(arguments):
        if argument.startswith("WRITTEN:"):
            (tmp_path / "mine.yaml").write_text(argument.removeprefix("WRITTEN:") + "\n")
            arguments[i] = tmp_path / "mine.yaml"
    data = [] if "--split" in arguments else ["--data", folder / "pairs.tsv", "--classes", "none"]
    assert message in fails(run, "train", *data, "--out", tmp_path / "run", *arguments)
    assert not (tmp_path / "run").exists()


def test_the_command_line_overrides_the_model_of_a_config_file(folder, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("kind: gordon\nmodel:\n  hidden: 4\n")
    assert train(folder, tmp_path / "run", "--config", str(mine)) == 0
    assert weights(tmp_path / "run") == weights(folder / "gordon")
    command_line = ("--model", "wu", "--model.hidden", "8", "--model.embedding", "6")
    assert train(folder, tmp_path / "other", "--config", str(mine), *command_line) == 0
    assert weights(tmp_path / "other") == weights(folder / "wu")


def test_a_recipe_selects_its_model(folder, tmp_path):
    assert train(folder, tmp_path / "run", "--recipe", "gordon", "--model.hidden", "4") == 0
    assert weights(tmp_path / "run") == weights(folder / "gordon")


@pytest.mark.parametrize("name", MODELS)
def test_help_shows_the_settings_of_the_selected_model(capsys, name):
    with pytest.raises(SystemExit) as done:
        main(["train", "--model", name, "--help"])
    assert done.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"--model.{key}" in printed for key in SMALL[name])
    assert ("--model.marginal" in printed) is (name == "transducer")


def rewrite(path, **changes):
    content = config_of(path) | changes
    (path / "config.json").write_text(
        json.dumps({key: value for key, value in content.items() if value is not None})
    )


def test_a_run_without_a_model_name_is_a_transducer(run, folder, tmp_path):
    Trained.load(folder / "transducer").save(tmp_path / "old")
    rewrite(tmp_path / "old", kind=None)
    assert "kind" not in config_of(tmp_path / "old")
    assert isinstance(Trained.load(tmp_path / "old").config, TransducerConfig)
    assert run("predict", tmp_path / "old", "jump") == run("predict", folder / "transducer", "jump")


@pytest.mark.parametrize("kind", ["gorden", ["gordon"], 3])
def test_a_run_of_an_unknown_model_gives_a_one_line_message(run, folder, tmp_path, kind):
    Trained.load(folder / "gordon").save(tmp_path / "run")
    rewrite(tmp_path / "run", kind=kind)
    line = fails(run, "predict", tmp_path / "run", "jump")
    assert line.startswith(f"{tmp_path / 'run'} does not describe a model: unknown model {kind!r}")
    rewrite(tmp_path / "run", kind="wu")
    assert "'output_bias' is not a setting" in fails(run, "predict", tmp_path / "run", "jump")
