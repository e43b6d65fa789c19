"""The transducer with a recursive aligner: theorems, probabilities, learning, command line."""

import json
import math
from itertools import product

import pytest
import torch

from equitrans.cli.main import main
from equitrans.data.batches import Rows
from equitrans.data.classes import format_classes
from equitrans.data.pairs import Pair, format_tsv
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.rules import HOLE, Rule
from equitrans.models.recursive.weights import fit_weights
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained
from tongues import TONGUES
from worlds import (
    TURNS,
    VERBS,
    assert_close,
    elements,
    moved,
    shared,
    small_recursive,
    symmetry,
    unshared,
)

RECURSIVE = TransducerConfig(aligner="recursive", k=5, d=4)


def rules(symmetry, *texts):
    """Rules from text, such as ``_ twice = 0 0``; a word stands for its class, a quoted target
    word for a constant.
    """

    def one(text):
        left, right = text.split(" = ")
        return Rule(
            tuple(
                HOLE if s == "_" else symmetry.source_classes[symmetry.source.index[s]]
                for s in left.split()
            ),
            tuple(
                int(s) if s.isdigit() else ~symmetry.target.index[s.strip("'")]
                for s in right.split()
            ),
        )

    return [one(text) for text in texts]


SIMPLE = ("walk = 0", "_ twice = 0 0", "_ and _ = 0 2", "_ after _ = 2 0", "_ left = 1 0")


def model_of(symmetry, *texts, noise=0.05, **settings):
    """A transducer with rules given as texts, random weights and a random translator."""
    return small_recursive(symmetry, rules(symmetry, *texts), noise=noise, **settings)


BOTH = symmetry(VERBS, TURNS)
PAIRS = [
    Pair(("walk", "and", "look", "twice"), ("WALK", "LOOK", "WALK", "LOOK")),
    Pair(("walk", "and", "look", "twice"), ("WALK", "LOOK", "LOOK")),
    Pair(("run", "left", "after", "jump", "right"), ("RTURN", "JUMP", "LTURN", "RUN")),
    Pair(("run", "twice"), ("RUN", "stop")),
    Pair(("twice", "run"), ("RUN",)),
]


@pytest.mark.parametrize("marginal", ["sum", "max"])
@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_theorem_3_the_likelihood_is_the_same_along_an_orbit(marginal, kind):
    world = symmetry(VERBS, TURNS, kind=kind)
    model = model_of(world, *SIMPLE, marginal=marginal)
    expected = model.loss(unshared(PAIRS, world)).detach()
    assert len({round(float(x), 6) for x in expected}) > 3
    for g in elements(world):
        assert_close(model.loss(unshared(moved(PAIRS, g, world), world)), expected)


def test_theorem_3_fails_for_a_rule_that_writes_a_word_of_a_class():
    model = model_of(BOTH, *SIMPLE, "and _ = 'WALK' 1")
    pair = [Pair(("and", "look"), ("WALK", "LOOK"))]
    losses = {
        round(float(model.loss(unshared(moved(pair, g, BOTH), BOTH))[0].detach()), 6)
        for g in elements(BOTH)
    }
    assert len(losses) > 1


def test_theorem_2_the_alignment_is_the_same_along_an_orbit():
    model = model_of(BOTH, *SIMPLE)
    expected = model.alignments(unshared(PAIRS, BOTH))
    for g in elements(BOTH):
        assert_close(model.alignments(unshared(moved(PAIRS, g, BOTH), BOTH)), expected)


def family():
    """The orbit under G^N: all pairs with the form and the alignment of ``walk twice and look
    left``.
    """
    for v, w in product(range(4), repeat=2):
        for d in range(2):
            x = (VERBS.source[v], "twice", "and", VERBS.source[w], TURNS.source[d])
            yield Pair(x, (VERBS.target[v], VERBS.target[v], TURNS.target[d], VERBS.target[w]))


def test_theorem_4_the_orbit_given_the_alignment_is_the_product_of_the_class_sizes():
    # under these rules the form has only one alignment
    model = model_of(BOTH, "walk = 0", "walk twice = 0 0", "walk left = 1 0", "_ and _ = 0 2")
    pairs = list(family())
    assert len(set(pairs)) == 4 * 4 * 2
    losses = model.loss(unshared(pairs, BOTH))
    assert_close(losses, losses[:1].expand_as(losses))


def test_theorem_4_needs_the_alignment_to_be_known():
    # the alignment of (walk twice and look) left also has a positive probability
    model = model_of(BOTH, "walk = 0", "_ twice = 0 0", "_ left = 1 0", "_ and _ = 0 2")
    pairs = [p._replace(target=(p.target[2], *p.target[:2], p.target[3])) for p in family()]
    mixed = [pairs[0], *list(family())[1:]]
    losses = model.loss(unshared(mixed, BOTH)).detach()
    assert len({round(float(x), 6) for x in losses}) > 1


def test_the_distribution_over_targets_sums_to_one():
    tiny = LexicalClass("v", ("a", "b"), ("A", "B"))
    data = [Pair(("a", "twice", "and"), ("A", "c"))]
    world = Symmetry.of([tiny], data)
    model = model_of(world, "a = 0", "_ twice = 0 0", "and _ = 'c' 1", "_ and = 0 'c'", noise=0.2)
    for source in (("a", "twice"), ("and", "b", "twice"), ("and", "a", "and"), ("twice",)):
        targets = [Pair(source, y) for m in range(5) for y in product(("A", "B", "c"), repeat=m)]
        total = float(torch.exp(-model.loss(unshared(targets, world))).detach().sum())
        share = 0.2 if model.derivation(source) else 1.0
        assert total == pytest.approx(1 - share * (3 / 4) ** 5, abs=1e-9)


def test_the_loss_of_a_pair_does_not_depend_on_its_batch():
    model = model_of(BOTH, *SIMPLE)
    together = model.loss(unshared(PAIRS, BOTH))
    alone = torch.cat([model.loss(unshared([pair], BOTH)) for pair in PAIRS])
    assert_close(together, alone)
    rows = Rows.of(PAIRS, BOTH)
    assert_close(model.loss(shared(PAIRS, BOTH))[rows.row], together)


def test_predictions_are_sorted_by_likelihood():
    model = model_of(BOTH, *SIMPLE, noise=1e-12)
    source = unshared(PAIRS[:1], BOTH).source
    (found,) = model.predict(source, max_length=9, n_best=5)
    assert len(found) == 2
    assert found[0].log_prob >= found[1].log_prob
    said = [Pair(PAIRS[0].source, BOTH.target.decode(h.words)) for h in found]
    expected = -model.loss(unshared(said, BOTH))
    assert_close(torch.tensor([h.log_prob for h in found]), expected, 1e-6)


def test_a_constant_is_aligned_with_a_word_of_its_rule():
    world = symmetry(VERBS)
    model = model_of(world, "walk = 0", "and _ = 'go' 1 'stop'")
    prob = model.alignments(unshared([Pair(("and", "walk"), ("go", "WALK", "stop"))], world))[0]
    assert prob.argmax(1).tolist() == [1, 2, 1, 3]


def test_trained_weights_prefer_the_derivations_of_the_targets():
    model = model_of(BOTH, "walk = 0", "_ twice = 0 0", "_ and _ = 0 2")
    walk, and_, twice = (
        BOTH.source_classes[BOTH.source.index[w]] for w in ("walk", "and", "twice")
    )
    form = (walk, and_, walk, twice)
    left = fit_weights(model.aligner, [(form, ("\0", "\2", "\2"))]).uncertainty
    best = model.aligner.alignments(form)[0]
    assert best.text == "\0\2\2"
    assert left < 0.1
    assert math.exp(best.log_prob) > 0.9


# --- learning


EXACT = {"doubling", "chains without short ones", "owners", "lists", "whole reversal"}


@pytest.mark.parametrize("tongue", [t for t in TONGUES if t.name in EXACT], ids=lambda t: t.name)
def test_small_languages_are_learned_exactly(tongue):
    train, _ = tongue.pairs(120, seed=0)
    trained = fit(train, tongue.classes, model=RECURSIVE)
    assert trained.score(tongue.judge(train, 30, seed=0)) == 1.0
    assert trained.model.learned.exceptions == ()


@pytest.mark.parametrize("name", ["polite", "owners"])
def test_wrong_pairs_become_exceptions(name):
    (tongue,) = (t for t in TONGUES if t.name == name)
    train, wrong = tongue.pairs(150, seed=1, wrong=0.05)
    trained = fit(train, tongue.classes, model=RECURSIVE)
    assert trained.score(tongue.judge(train, 30, seed=1)) == 1.0
    assert set(wrong) == {pair for pair, _ in trained.model.learned.exceptions}


def test_data_that_rules_cannot_express_give_a_warning():
    (sorting,) = (t for t in TONGUES if not t.within)
    train, _ = sorting.pairs(80, seed=0)
    warnings = fit(train, sorting.classes, model=RECURSIVE).model.learned.warnings
    assert any("unable to express the data" in w for w in warnings)


def test_a_warning_names_a_rule_with_one_supporting_pair():
    train = [Pair((v,), (a,)) for v, a in zip(VERBS.source, VERBS.target, strict=True)] + [
        Pair(("walk", "twice"), ("WALK", "WALK"))
    ]
    with pytest.warns(UserWarning, match="only 1 pair supports □ twice → 0 0"):
        trained = fit(train, [VERBS], model=RECURSIVE)
    assert "warning: only 1 pair supports □ twice → 0 0" in str(trained.grammar)
    assert "  □ twice → 0 0  1 pair\n" in str(trained.grammar)
    assert fit(train, [VERBS], training=TrainingConfig(epochs=1)).grammar is None


def test_a_grammar_that_two_starts_find_is_no_rival():
    (lists,) = (t for t in TONGUES if t.name == "lists")
    train, _ = lists.pairs(80, seed=0)
    warnings = fit(train, lists.classes, model=RECURSIVE).grammar.warnings
    rivals = [w for w in warnings if "another grammar" in w]
    assert len(rivals) == len({w.partition(":")[2] for w in rivals}) == 1
    assert not any("longer sentences" in w for w in warnings)


# --- the command line


TRAIN = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]


@pytest.fixture(scope="module")
def run_of_rules(tmp_path_factory):
    """A run directory made by the command line."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("rules")
    (folder / "pairs.tsv").write_text(format_tsv(TRAIN))
    (folder / "classes.toml").write_text(format_classes([VERBS]))
    arguments = ["--data", folder / "pairs.tsv", "--classes", folder / "classes.toml"]
    kinds = {"run": ("--model.aligner", "recursive"), "lstm": ("--training.updates", "20")}
    for name, more in kinds.items():
        out = ("--quiet", "--out", str(folder / name))
        assert main(["train", *map(str, arguments), *more, *out]) == 0
    return folder / "run"


@pytest.fixture
def call(capsys):
    def run(*arguments):
        torch.set_default_dtype(torch.float32)
        status = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_grammar_prints_the_rules_with_their_support(call, run_of_rules):
    status, out, _ = call("grammar", run_of_rules)
    assert status == 0
    assert "□ twice → 0 0" in out
    assert "12 of 12 distinct pairs explained" in out
    content = json.loads(call("grammar", run_of_rules, "--json")[1])
    assert {rule["text"]: rule["support"] for rule in content["rules"]}["□ twice → 0 0"] == 4


def test_grammar_prints_and_plots_a_derivation(call, run_of_rules, tmp_path):
    picture = tmp_path / "tree.png"
    status, out, _ = call(
        "grammar", run_of_rules, "--derive", "jump thrice twice", "--plot", picture
    )
    assert status == 0
    assert out.splitlines() == [
        "jump thrice twice   [□ twice → 0 0]",
        "  jump thrice   [□ thrice → 0 0 0]",
        "    jump   [<verbs> → 0]",
        "→ JUMP JUMP JUMP JUMP JUMP JUMP",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_predict_fails_on_a_sentence_without_a_derivation(call, run_of_rules):
    status, out, err = call("predict", run_of_rules, "jump twice", "jump jump")
    assert (status, out) == (1, "JUMP JUMP\n\n")
    assert err.startswith("equitrans: sentence 2: ")
    status, out, _ = call("predict", run_of_rules, "jump jump", "--json", "--alignments")
    assert json.loads(out)["target"] is None
    assert call("grammar", run_of_rules, "--derive", "jump jump")[0] == 1


def test_predict_uses_the_fallback_run_without_a_derivation(call, run_of_rules):
    fallback = run_of_rules.parent / "lstm"
    status, out, err = call(
        "predict", run_of_rules, "jump jump", "jump twice", "--fallback", fallback
    )
    assert status == 0
    assert "no derivation" not in err
    assert out.splitlines()[1] == "JUMP JUMP"
    _, out, _ = call(
        "predict", run_of_rules, "jump jump", "jump twice", "--fallback", fallback, "--json"
    )
    assert [json.loads(line)["by"] for line in out.splitlines()] == ["fallback", "model"]


def test_a_finished_run_resumes_evaluates_and_loads(call, run_of_rules):
    status, _, err = call("train", "--resume", run_of_rules)
    assert status == 0
    assert "nothing left to train" in err
    status, out, _ = call("evaluate", run_of_rules, "--data", run_of_rules.parent / "pairs.tsv")
    assert out.startswith("exact match 100.00 % (12 of 12)")
    trained = Trained.load(run_of_rules)
    assert [len(best) for best in trained.n_best(["jump thrice twice"], n=3)] == [1]


def test_grammar_rejects_a_run_with_an_lstm(call, run_of_rules):
    status, _, err = call("grammar", run_of_rules.parent / "lstm")
    assert status == 2
    assert "--model.aligner recursive" in err
