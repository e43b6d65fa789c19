"""Words added after training are exactly as likely as their classmates."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st

from equitrans.analysis.evaluation import losses
from equitrans.data.pairs import Pair
from equitrans.errors import SymmetryError
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import extend, fit
from equitrans.training.trained import Trained
from worlds import SYMMETRIES, VERBS, assert_close, random_pairs, small, unshared


def trained_like(name, **settings):
    model = small(SYMMETRIES[name], **settings)
    sizes = {"k": 5, "d": 4, "embedding": 6, "hidden": 7, "warm_start": 0.0, "dropout": 0.0}
    group = {"group": SYMMETRIES[name].kind}
    return Trained(model, TransducerConfig(**(sizes | group | settings)), max_length=8)


@given(
    size=st.integers(1, 6),
    other=st.integers(1, 3),
    added=st.integers(1, 3),
    kind=st.sampled_from(["cyclic", "symmetric"]),
    seed=st.integers(0, 99),
)
def test_a_new_word_has_exactly_its_classmates_likelihood(size, other, added, kind, seed):
    words = [f"w{i}" for i in range(size)]
    verbs = LexicalClass("verbs", tuple(words), tuple(w.upper() for w in words))
    nouns = LexicalClass("nouns", tuple(f"n{i}" for i in range(other)),
                         tuple(f"N{i}" for i in range(other)))  # fmt: skip
    s = Symmetry.of([verbs, nouns], [(("twice",), ("again",))], kind)
    config = TransducerConfig(k=3, d=3, embedding=4, hidden=4, group=kind)
    trained = Trained.new(config, s, max_length=6, seed=seed)
    new = {f"x{i}": f"X{i}" for i in range(added)}
    extended = extend(trained, "verbs", new).trained
    old = Pair(("w0", "twice", "n0"), ("W0", "N0", "again", "W0"))
    likely = losses(extended.model, [old])[0]
    for word, target in new.items():
        swapped = {"w0": word, "W0": target}
        pair = Pair(*(tuple(swapped.get(w, w) for w in side) for side in old))
        assert losses(extended.model, [pair])[0] == pytest.approx(likely, rel=1e-12)
    pairs = [old, Pair(("x0", "twice", "w0"), ("W0", "X0"))]
    assert extended.audit(pairs, tolerance=1e-12).passed


@pytest.mark.parametrize("name", ["verbs", "verbs × turns", "symmetric verbs × colors"])
def test_an_extension_changes_the_table_by_no_more_than_it_reports(name):
    trained = trained_like(name)
    found = extend(trained, "verbs", {"blick": "BLICK", "dax": "DAX"})
    assert found.symmetrised <= found.in_class + 1e-15
    if SYMMETRIES[name].kind == "symmetric":
        assert found.symmetrised < 1e-15
    before, after = (
        t.model.translator(torch.arange(len(trained.symmetry.source)))[:, 2:].exp().detach()
        for t in (trained, found.trained)
    )
    old = after[:, : before.shape[1]]
    # what the old words have lost is what the new ones have, and no row lost more than was said
    kept = old.sum(1)
    assert_close(kept + after[:, before.shape[1] :].sum(1), torch.ones(len(kept)))
    assert float(-kept.log().min()) <= found.diluted + 1e-12
    assert float((old / kept[:, None] - before).abs().max()) <= found.symmetrised + 1e-12


def test_the_figures_of_an_extension_agree_with_its_tables():
    trained = trained_like("verbs")
    found = extend(trained, "verbs", {"blick": "BLICK"})
    s = trained.symmetry
    rows = [s.source.index[w] for w in VERBS.source]
    columns = [s.target.index[w] for w in VERBS.target]
    block = trained.model.translator(torch.tensor(rows)).detach()[:, columns].exp()
    others = block.masked_fill(torch.eye(4, dtype=torch.bool), 0)
    assert found.in_class == pytest.approx(float(others.max()), rel=1e-9)
    mean = others.sum(1, keepdim=True).expand(4, 4) / 3
    moved = (others - mean).masked_fill(torch.eye(4, dtype=torch.bool), 0).abs().max()
    assert found.symmetrised == pytest.approx(float(moved), rel=1e-9)
    every = torch.arange(len(s.source))
    new = found.trained.model.translator(every).detach().exp()[:, len(s.target)]
    assert found.diluted == pytest.approx(float((1 / (1 - new)).log().max()), rel=1e-9)


def test_extending_a_class_of_one_word_gives_classmates_the_least_probability():
    one = LexicalClass("one", ("a",), ("A",))
    s = Symmetry.of([one], [(("b",), ("B",))])
    trained = Trained.new(TransducerConfig(k=3, d=3, embedding=4, hidden=4), s, max_length=4)
    extended = extend(trained, "one", {"x": "X"}).trained
    table = extended.model.translator(torch.arange(len(extended.symmetry.source))).detach()
    a, own, other = (extended.symmetry.source.index["a"], *extended.symmetry.target.encode("AX"))
    assert table[a, other] <= table[a, 2:].min() + 1e-9
    assert table[a, own] > table[a, other]


def test_only_characters_are_added_to_a_model_of_characters():
    spelled = replace(trained_like("verbs"), characters=True)
    with pytest.raises(SymmetryError, match="is not a character"):
        extend(spelled, "verbs", {"blick": "BLICK"})
    assert extend(spelled, "verbs", {"x": "X"}).trained.symmetry.classes[0].source[-1] == "x"


def test_an_extension_keeps_the_aligner():
    trained = trained_like("verbs")
    extended = extend(trained, "verbs", {"blick": "BLICK"}).trained
    pairs = random_pairs(seed=1, count=5)
    before, after = (
        model.parts(unshared(pairs, model.symmetry)).aligned.detach()
        for model in (trained.model, extended.model)
    )
    assert before.exp().amax() < 0.99  # not by being certain anyway
    assert_close(after, before)
    expected = trained.model.aligner.state_dict()
    found = extended.model.aligner.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_an_extension_changes_posterior_alignments_no_more_than_it_dilutes():
    trained = trained_like("verbs")
    found = extend(trained, "verbs", {"blick": "BLICK"})
    for pair in random_pairs(seed=1, count=5):
        before, after = (torch.tensor(t.align(pair).prob) for t in (trained, found.trained))
        assert before.shape == after.shape
        assert float((after - before).abs().max()) <= math.expm1(found.diluted) + 1e-12 < 0.3


def test_a_cyclic_group_would_not_do():
    # the negative control: a cyclic group has another probability for each classmate's translation
    model = small(SYMMETRIES["verbs"])
    a, b = losses(model, [Pair(("walk",), ("LOOK",)), Pair(("walk",), ("RUN",))])
    assert a != pytest.approx(b, rel=1e-6)
    extended = extend(trained_like("verbs"), "verbs", {"blick": "BLICK"}).trained
    a, b = losses(extended.model, [Pair(("walk",), ("LOOK",)), Pair(("walk",), ("BLICK",))])
    assert a == pytest.approx(b, rel=1e-12)


def test_an_extended_model_is_saved_loaded_audited_and_extended_again(tmp_path):
    torch.set_default_dtype(torch.float32)
    pairs = [
        Pair((v, *rest), (a,) * n)
        for v, a in zip(VERBS.source, VERBS.target, strict=True)
        for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
    ]
    trained = fit(pairs, [VERBS], training=TrainingConfig(updates=300))
    found = extend(trained, "verbs", {"blick": "BLICK"})
    assert found.symmetrised < 1e-3
    found.trained.save(tmp_path / "model")
    loaded = Trained.load(tmp_path / "model")
    assert loaded.predict(["blick twice"])[0].words == ("BLICK", "BLICK")
    assert loaded.predict(["walk thrice"])[0].words == ("WALK",) * 3
    assert loaded.audit(pairs).passed
    again = extend(loaded, "verbs", {"dax": "DAX"})
    assert again.symmetrised == 0
    assert again.trained.predict(["dax twice"])[0].words == ("DAX", "DAX")
    assert len(again.trained.orbits("dax twice").family) == 6


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("verb", {"blick": "BLICK"}, "did you mean 'verbs'"),
        ("verbs", {"walk": "BLICK"}, "source word 'walk' already"),
        ("verbs", {"blick": "go"}, "target word 'go' already"),
        ("verbs", {}, "no words to add"),
    ],
)
def test_known_words_and_unknown_classes_are_rejected(name, words, message):
    with pytest.raises(SymmetryError, match=message):
        extend(trained_like("verbs"), name, words)


def test_two_new_words_need_two_translations():
    with pytest.raises(SymmetryError, match="each needs its own"):
        extend(trained_like("verbs"), "verbs", {"blick": "BLICK", "dax": "BLICK"})
