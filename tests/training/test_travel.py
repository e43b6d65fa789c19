"""Exported models: files, cards, the hub, other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest
import torch
import yaml
from huggingface_hub import ModelCard

from core_only import blocked, run_core_only
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import VERBS, load_split
from equitrans.errors import ConfigError, RunError
from equitrans.models.configs import TransducerConfig
from equitrans.training import hub
from equitrans.training.exporting import export
from equitrans.training.fitting import extend, fit
from equitrans.training.runs import Run
from equitrans.training.tensors import pack, read_header, read_tensors
from equitrans.training.trained import FILES, Trained
from loopback_hub import TOKEN, loopback_hub
from tiny import SETTINGS, tiny_split

PAIRS = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]
RULES = TransducerConfig(aligner="recursive")


pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def trained():
    torch.set_default_dtype(torch.float32)
    return fit(PAIRS, [VERBS], model=RULES)


@pytest.fixture(scope="module")
def split():
    with tiny_split():
        yield


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory, split):
    """A training run on a split."""
    from equitrans.cli.main import main

    torch.set_default_dtype(torch.float32)
    out = tmp_path_factory.mktemp("runs") / "tiny"
    settings = [f"--{name}={value}" for name, value in (SETTINGS | {"training.epochs": 2}).items()]
    assert main(["train", "--split", "tiny", "--out", str(out), "--quiet", *settings]) == 0
    return out


@pytest.fixture(scope="module")
def exported(run_directory):
    """The same, exported."""
    from equitrans.cli.main import main

    out = run_directory.parent / "exported"
    assert main(["export", str(run_directory), "--out", str(out), "--quiet"]) == 0
    return out


def change(path, **changes):
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))


def front_matter(directory):
    _, head, _ = (directory / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(head)


# --- files


@pytest.mark.parametrize(("number", "advice"), [(1, "train it again"), (3, "upgrade")])
def test_directories_of_another_format_are_rejected(trained, tmp_path, number, advice):
    trained.save(tmp_path)
    change(tmp_path / "config.json", format=number)
    message = rf"equitrans \S+ in format {number}; this version reads format 2: please {advice}"
    with pytest.raises(RunError, match=message):
        Trained.load(tmp_path)


def test_a_saved_model_is_complete_and_has_its_origin(trained, tmp_path):
    trained.save_pretrained(tmp_path / "model")
    assert {p.name for p in (tmp_path / "model").iterdir()} == {*FILES, "README.md"}
    again = Trained.from_pretrained(tmp_path / "model")
    assert again.origin == trained.origin
    assert again.origin.seed == 0
    assert again.symmetry == trained.symmetry
    again.save_pretrained(tmp_path / "again")
    for name in FILES:
        first, second = ((tmp_path / d / name).read_bytes() for d in ("model", "again"))
        assert first == second, name


def test_an_extended_model_does_not_keep_the_figures_of_the_original(exported, tmp_path):
    model = Trained.load(exported)
    assert model.origin.figures.exact_match is not None
    extend(model, "verbs", {"blick": "I_BLICK"}).trained.save_pretrained(tmp_path)
    assert Trained.load(tmp_path).origin.to_json() == {}
    assert "model-index" not in front_matter(tmp_path)


@pytest.mark.parametrize(
    "origin",
    [
        *([], "x", {"data": 3}, {"data": {"split": []}}, {"training": None}, {"seed": "x"}),
        *({"figures": []}, {"figures": {"test_right": "9"}}, {"figures": {"best": 1}}),
        *({"version": 3}, {"unknown": 1}),
    ],
)
def test_a_malformed_origin_is_rejected(trained, tmp_path, origin):
    trained.save(tmp_path)
    change(tmp_path / "config.json", origin=origin)
    with pytest.raises(RunError, match="does not describe a model"):
        Trained.load(tmp_path)


# --- export, and its card


def test_the_card_has_the_figures_of_the_run(run, exported, run_directory):
    _, out, _ = run("evaluate", run_directory, "--json")
    judged = json.loads(out)
    epochs = Run.open(run_directory).epochs()
    best = [epoch for epoch in epochs if epoch["is_best"]][-1]
    figures = Trained.load(exported).origin.figures
    assert figures.test_right == judged["right"]
    assert figures.test_pairs == judged["pairs"] == 40
    assert figures.exact_match == judged["exact_match"]
    assert figures.test_loss == judged["loss"]
    assert (figures.epochs, figures.best_epoch) == (len(epochs), best["number"])
    assert figures.valid_loss == best["valid_loss"]
    assert figures.valid_accuracy == best["valid_accuracy"]
    assert (figures.train_pairs, figures.valid_pairs) == (72, 8)
    text = (exported / "README.md").read_text()
    shown = f"{100 * judged['exact_match']:.2f} % ({judged['right']} of 40)"
    assert f"| exact match on SCAN tiny, test part | {shown} |" in text
    assert "| seed | 0 |" in text
    assert "| data.split | tiny |" in text
    assert "| model.hidden | 12 |" in text
    assert "| training.epochs | 2 |" in text
    assert "verbs: walk → I_WALK" in text


def test_huggingface_hub_reads_the_card(exported):
    card = ModelCard.load(exported / "README.md")
    (result,) = card.data.eval_results
    assert result.metric_type == "exact_match"
    assert result.metric_value == Trained.load(exported).origin.figures.exact_match
    assert result.dataset_name == "SCAN tiny, test part"
    assert card.data.library_name == "equitrans"
    assert "equivariance" in card.data.tags


def test_a_card_without_figures_has_none(run, run_directory, trained, tmp_path):
    status, _, err = run("export", run_directory, "--no-test", "--out", tmp_path / "model")
    assert status == 0
    assert err == (
        "equitrans: the card has no test figures; --data FILE or --split NAME makes some\n"
    )
    text = (tmp_path / "model" / "README.md").read_text()
    assert "exact match" not in text
    assert "None" not in text
    assert "model-index" not in front_matter(tmp_path / "model")


def test_markdown_characters_in_words_do_not_break_the_card(tmp_path):
    verbs = type(VERBS)("a|b\n# x", ("```", "---"), ("<b>", "|"))
    model = Trained.new(
        TransducerConfig(), fit([("---", "|")], [verbs], model=RULES).symmetry, max_length=9
    )
    model.save_pretrained(tmp_path, name="a: [b]")
    card = ModelCard.load(tmp_path / "README.md")
    assert "\n    a|b # x: ``` → <b>, --- → |\n" in card.text
    assert "\n# x" not in card.text


def test_an_exported_model_contains_no_folder_names(run, tmp_path):
    data, classes = tmp_path / "pairs.tsv", tmp_path / "classes.toml"
    data.write_text(format_tsv(PAIRS))
    classes.write_text(
        '[[class]]\nname = "v"\nsource = ["walk", "run"]\ntarget = ["I_WALK", "I_RUN"]\n'
    )
    made = ("--model.aligner", "recursive", "--out", tmp_path / "run", "--quiet")
    assert run("train", "--data", data, "--classes", classes, *made)[0] == 0
    assert str(tmp_path) in (tmp_path / "run" / "config.json").read_text()  # as a run should
    status, out, _ = run(
        "export", tmp_path / "run", "--data", data, "--out", tmp_path / "x", "--json"
    )
    assert status == 0
    assert json.loads(out)["figures"]["test_set"] == "pairs.tsv"
    assert json.loads(out)["data"]["file"] == "pairs.tsv"
    assert json.loads(out)["figures"]["train_pairs"] == len(PAIRS)  # rules need no validation
    assert "training" not in json.loads(out)
    for path in (tmp_path / "x").iterdir():
        assert str(tmp_path).encode() not in path.read_bytes(), path
    data.unlink()  # a run whose pairs are gone can still travel
    assert run("export", tmp_path / "run", "--out", tmp_path / "y", "--quiet")[0] == 0
    assert Trained.load(tmp_path / "y").origin.figures.train_pairs is None
    assert Trained.load(tmp_path / "y").origin.figures.seconds > 0


def test_commands_give_the_same_output_for_a_run_and_its_export(
    run, run_directory, exported, tmp_path
):
    data = tmp_path / "test.tsv"
    data.write_text(format_tsv(load_split("tiny").test))
    for arguments in (
        ("predict", "walk and run", "--json", "--n-best", 2),
        ("evaluate", "--json"),
        ("evaluate", "--data", data, "--json"),
        ("audit", "--data", data, "--json"),
        ("audit", "--json"),
        ("orbits", "walk and run", "--json"),
    ):
        name, *more = arguments
        of_run = run(name, run_directory, *more)
        assert of_run[0] == 0, of_run
        assert run(name, exported, *more) == of_run
    for source in (run_directory, exported):
        out = tmp_path / source.name
        assert run("extend", source, "--class", "verbs", "blick=I_BLICK", "--out", out)[0] == 0
    assert (tmp_path / "tiny" / "model.safetensors").read_bytes() == (
        tmp_path / "exported" / "model.safetensors"
    ).read_bytes()
    assert run("export", exported, "--no-test", "--out", tmp_path / "again")[0] == 0
    assert Trained.load(tmp_path / "again").origin == Trained.load(exported).origin
    status, _, err = run("train", "--resume", exported)
    assert status == 2
    assert "is a model, not a training run" in err


def test_loading_and_predicting_need_no_optional_packages(exported, trained, tmp_path):
    trained.save_pretrained(tmp_path / "rules")
    program = (
        "import json, sys\n"
        "from equitrans import Estimator, Trained, TransducerConfig\n"
        "from equitrans.cli.main import main\n"
        "for path, sentence in zip(sys.argv[1::2], sys.argv[2::2]):\n"
        "    found = Trained.from_pretrained(path).predict([sentence])[0]\n"
        "    print(json.dumps([found.words, found.log_prob]))\n"
        "assert main(['predict', sys.argv[1], sys.argv[2]]) == 0\n"
        "rules = Estimator(model=TransducerConfig(aligner='recursive'))\n"
        "print(rules.fit(['a', 'b'], ['A', 'B']).get_params()['seed'])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & BLOCKED))\n"
        "import matplotlib\n"
    )
    assert {"matplotlib", "huggingface_hub", "sklearn", "beartype"} <= blocked()
    asked = [(exported, "walk and run"), (tmp_path / "rules", "jump thrice")]
    done = run_core_only(program, *(part for each in asked for part in each))
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    for line, (path, sentence) in zip(lines, asked, strict=False):
        expected = Trained.load(path).predict([sentence])[0]
        assert json.loads(line) == [[*expected.words], pytest.approx(expected.log_prob, rel=1e-6)]
    assert lines[3:] == ["0", "[]"]
    # a control: what is blocked is out of reach
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'matplotlib'"


# --- the hub

VISIT = """\
import os, sys
from equitrans import EquitransError, Trained
model = Trained.load(sys.argv[1])
def attempt(what):
    try:
        print(what())
    except EquitransError as error:
        print(type(error).__name__, error)
attempt(lambda: model.push_to_hub("someone/small"))
attempt(lambda: Trained.from_pretrained("someone/small").predict(["jump twice"])[0].words)
attempt(lambda: Trained.from_pretrained("someone/nothing"))
attempt(lambda: Trained.from_pretrained("someone/else"))
os.environ["HF_TOKEN"] = "wrong"
attempt(lambda: model.push_to_hub("someone/small"))
"""


def visit(address, model, home):
    """What a process prints that goes to the hub and back."""
    settings = {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_TOKEN": TOKEN}
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", VISIT, str(model)],
        capture_output=True,
        text=True,
        env=os.environ | settings | quiet,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_model_is_uploaded_to_the_hub_and_downloaded_again(trained, tmp_path):
    """The hub's own library, and a hub on this machine whose repositories are folders."""
    model, root = tmp_path / "model", tmp_path / "hub"
    trained.save_pretrained(model, name="someone/small")
    with loopback_hub(root) as address:
        (root / "someone" / "else").mkdir(parents=True)
        (root / "someone" / "else" / "config.json").write_text("{}")
        pushed, fetched, nothing, other, refused = visit(address, model, tmp_path / "home")
        assert pushed == f"{address}/someone/small"
        assert fetched == "('I_JUMP', 'I_JUMP')"
        assert nothing.startswith(
            "RunError someone/nothing: no such folder, and none on the hub: Repository Not Found"
        )
        assert other.startswith("RunError someone/else on the hub: ")
        assert other.endswith("is not a complete run directory: vocabulary.json is missing")
        stored = root / "someone" / "small"
        assert {p.name for p in stored.iterdir()} == {*FILES, "README.md"}
        for path in stored.iterdir():
            assert path.read_bytes() == (model / path.name).read_bytes(), path
        kept = (tmp_path / "home").rglob("models--someone--small/snapshots/*/*")
        assert {p.name for p in kept} == set(FILES)  # and nothing that is not needed
        assert refused.startswith("RunError someone/small could not be uploaded to the hub: ")
        assert "401" in refused


def test_a_hub_that_does_not_answer_is_reported(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(RunError, match="someone/small: no such folder, and none on the hub: "):
        Trained.from_pretrained("someone/small")
    with pytest.raises(RunError, match=r"could not be uploaded to the hub: .*onnect"):
        trained.push_to_hub("someone/small")


def test_an_invalid_hub_name_is_rejected(trained, tmp_path):
    for name in ("nowhere", "some one/x", "a/b/c", tmp_path / "x"):
        with pytest.raises(RunError, match="a name on the hub has the form owner/name"):
            Trained.from_pretrained(name)
    with pytest.raises(ConfigError, match="'small' is not a name on the hub; expected owner/name"):
        trained.push_to_hub("small")


def test_a_missing_huggingface_hub_is_reported_with_the_package_to_install(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError) as error:
        Trained.from_pretrained("owner/name")
    assert str(error.value) == "the hub needs huggingface_hub: pip install 'equitrans[hub]'"
    with pytest.raises(ConfigError, match="pip install"):
        trained.push_to_hub("owner/name")


def test_a_folder_has_priority_over_a_hub_name(trained, tmp_path, monkeypatch):
    trained.save(tmp_path / "owner" / "name")
    monkeypatch.chdir(tmp_path)
    with hub.fetched("owner/name", FILES) as folder:
        assert folder == Path("owner/name")


def test_a_run_under_way_is_exported_without_training_figures(run_directory, tmp_path):
    """The log of a run may be ahead of its weights until the run has finished."""
    copytree(run_directory, tmp_path / "run")
    path = tmp_path / "run" / "state.safetensors"
    counters = json.loads(read_header(path).metadata["counters"]) | {"finished": False}
    path.write_bytes(pack(read_tensors(path), {"counters": json.dumps(counters)}))
    for source, known in ((tmp_path / "run", None), (run_directory, 2)):
        out = tmp_path / f"{known} epochs"
        export(source, out)
        assert Trained.load(out).origin.figures.epochs == known
