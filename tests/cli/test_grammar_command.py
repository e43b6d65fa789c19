"""equitrans grammar on deep derivations, long targets, refused sentences and damaged rules."""

import json

import pytest

from equitrans.explorer import views
from equitrans.models import TransducerConfig
from equitrans.models.recursive.rules import HOLE, Rule
from equitrans.training import Trained
from worlds import SOURCE, VERBS, small_recursive, symmetry

WORLD = symmetry(VERBS)


def word(text):
    return WORLD.source_classes[SOURCE.index[text]]


RULES = [
    Rule((word("walk"),), (0,)),
    Rule((HOLE, word("twice")), (0, 0)),
    Rule((HOLE, word("after")), (0,)),
    Rule((HOLE, word("and"), HOLE), (0, 2)),
]
DEEP = " ".join(["walk", *["after"] * 999])
LONG = " ".join(["walk", *["twice"] * 22])


@pytest.fixture
def model(tmp_path, float32):
    """A model directory with these rules, whose predictions have at most 50 words."""
    config = TransducerConfig(aligner="recursive", k=5, d=4)
    model = small_recursive(WORLD, RULES, noise=0.05)
    Trained(model, config, max_length=50).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_derivation_a_thousand_deep_is_printed(run, model):
    status, out, _ = run("grammar", model, "--derive", DEEP)
    assert status == 0
    assert len(out.splitlines()) == 1001
    status, out, _ = run("grammar", model, "--derive", DEEP, "--json")
    assert status == 0
    assert out.count('"children"') == 1000
    status, out, _ = run("predict", model, DEEP)
    assert status == 0
    assert len(out.split()) == 1


def test_a_picture_of_too_many_words_is_refused(run, model, tmp_path):
    status, _, err = run("grammar", model, "--derive", DEEP, "--plot", tmp_path / "tree.png")
    assert status == 2
    assert err == "equitrans: --plot draws at most 100 words; the sentence has 1000\n"


def test_a_target_that_is_too_long_is_refused_with_its_length(run, model):
    status, out, err = run("grammar", model, "--derive", LONG)
    assert status == 1
    assert len(out.splitlines()) == 23
    reason = "the target would have 4194304 words; the limit is 50"
    assert err.endswith(f"': {reason}\n")
    status, out, _ = run("grammar", model, "--derive", LONG, "--json", "--quiet")
    assert status == 1
    assert json.loads(out)["target"] is None
    trained = Trained.load(model)
    assert reason in views.derive(trained, tuple(LONG.split())).missing


def test_a_sentence_without_a_derivation_gets_a_reason(run, model):
    status, out, err = run("grammar", model, "--derive", "walk twice run")
    assert (status, out) == (1, "")
    assert err == (
        "equitrans: 'walk twice run': no rule joins 'walk twice' and 'run'; "
        "derived: 'walk twice' (words 1 to 2), 'run' (word 3)\n"
    )


def change(path, **changes):
    content = json.loads((path / "grammar.json").read_text())
    (path / "grammar.json").write_text(json.dumps(content | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right": ["WALK"]}, "constant 'WALK' is in a class; expected a word of no class"),
        (
            {"left": ["and"], "right": [0]},
            "place 0 is 'and'; expected the place of a class or hole",
        ),
    ],
)
def test_a_damaged_grammar_is_one_line(run, model, changes, message):
    rules = json.loads((model / "grammar.json").read_text())["rules"]
    change(model, rules=[rules[0] | changes, *rules[1:]])
    status, _, err = run("predict", model, "walk")
    assert status == 2
    assert err == (
        f"equitrans: {model} does not describe a model: not a grammar: rule 1: {message}\n"
    )


def test_warnings_are_printed_on_one_line_each_and_shortened(run, model):
    change(model, warnings=["two\nlines", "x" * 100_000])
    status, out, _ = run("grammar", model)
    assert status == 0
    assert "warning: two lines\n" in out
    assert len(out.splitlines()[-1]) < 600
    change(model, warnings=["\x1b[2J"])
    status, _, err = run("grammar", model)
    assert status == 2
    assert "\x1b" not in err
