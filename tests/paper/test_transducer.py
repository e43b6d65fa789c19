"""The model against brute force and against the plain implementation; theorems 2, 3 and 4."""

import itertools
import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from equitrans.analysis.evaluation import predict
from equitrans.data.pairs import Pair
from equitrans.errors import SymmetryError
from equitrans.models.baselines.common import Baseline
from equitrans.paper.aligner import Aligner
from equitrans.paper.groups import Group
from equitrans.paper.layers import DIRECT, Stack, _differences
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.transducer import Transducer
from equitrans.paper.translator import Translator
from equitrans.paper.vocabulary import BOS, EOS, PAD, Vocabulary
from listed import GConv, GDecode, GEmbed, inverse
from plain import PlainTransducer
from worlds import (
    SOURCE,
    SYMMETRIES,
    TARGET,
    VERBS,
    assert_close,
    at,
    elements,
    moved,
    random_pairs,
    shared,
    small,
    symmetry,
    unshared,
)

MARGINALS = ["sum", "max", "annealed"]
every_symmetry = pytest.mark.parametrize("name", SYMMETRIES)
cyclic = pytest.mark.parametrize("name", [n for n, s in SYMMETRIES.items() if s.kind == "cyclic"])


# --- the translator


@every_symmetry
def test_the_translator_is_a_distribution_that_never_emits_pad_or_bos(name):
    world = SYMMETRIES[name]
    table = small(world).translator(torch.arange(BOS, len(world.source))).exp()
    assert_close(table.sum(1), torch.ones(len(table)))
    assert (table[:, [PAD, BOS]] == 0).all()
    assert (table[:, EOS:] > 0).all()


@every_symmetry
def test_the_translator_is_equivariant(name):
    """p(g∘y | g∘x) = p(y | x) for single words and every g."""
    world = SYMMETRIES[name]
    table = small(world).translator(torch.arange(len(world.source)))
    for g in elements(world):
        x = list(world.source_action(g, range(len(world.source))))
        y = list(world.target_action(g, range(len(world.target))))
        assert_close(table[x][:, y], table)


def test_a_translator_without_classes_is_not():
    world = symmetry(VERBS)
    table = small(symmetry()).translator(torch.arange(len(SOURCE)))
    g = world.group.generators[0]
    x, y = (
        list(world.source_action(g, range(len(world.source)))),
        list(world.target_action(g, range(len(world.target)))),
    )
    assert (table[x][:, y] - table)[BOS:, EOS:].abs().max() > 1e-2


def test_with_one_class_it_is_the_paper_s_translator_parameter_for_parameter():
    """Eqs. 1–3 with loops over the group and over all words, and no thought of classes."""
    world = symmetry(VERBS)
    translator = small(world).translator
    (factor,) = translator.factors
    group = world.group.elements
    number = {g: i for i, g in enumerate(group)}
    source_places, target_places = SOURCE.encode(VERBS.source), TARGET.encode(VERBS.target)

    def filters(size, places, moved_weights, fixed_weights, first):
        others = [w for w in range(first, size) if w not in places]
        return dict(zip(places, moved_weights, strict=True)) | dict(
            zip(others, fixed_weights, strict=True)
        )

    omega = filters(len(SOURCE), source_places, factor.omega, translator.omega, BOS)
    rho = filters(len(TARGET), target_places, factor.rho, translator.rho, BOS)
    psi = {g: factor.psi[number[g]] for g in group}
    assert sum(p.numel() for p in translator.parameters()) == (
        (len(SOURCE) - 1) * 5 + 4 * 5 * 4 + (len(TARGET) - 1) * 4
    )
    act, act_target = world.source_action, world.target_action
    for x in range(BOS, len(SOURCE)):
        e = {g: torch.tanh(omega[act(inverse(g), [x])[0]]) for g in group}
        phi = {
            g: torch.tanh(
                sum(e[h] @ psi[tuple(inverse(g)[i] for i in h)] for h in group)  # type: ignore[arg-type]
            )
            for g in group
        }
        logits = torch.stack(
            [
                sum(phi[h] @ rho[act_target(inverse(h), [y])[0]] for h in group)  # type: ignore[arg-type]
                for y in range(EOS, len(TARGET))
            ]
        )
        (row,) = translator(torch.tensor([x]))
        assert_close(row[EOS:], torch.log_softmax(logits, 0))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, DIRECT, DIRECT + 1, 50])
@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_a_factor_is_the_three_layers_on_its_class(n, kind):
    """Eqs. 1–3 as they stand in glayers, with every element or point listed."""
    group = Group.cyclic(n) if kind == "cyclic" else Group.symmetric(n)
    moves = group.generators
    factor = Stack(n, kind=kind, k=5, d=3)
    embed = GEmbed(moves, moves, k=5)
    conv, decode = GConv(moves, k=5, d=3), GDecode(moves, moves, d=3)
    embed.omega, conv.psi, decode.rho = factor.omega, factor.psi, factor.rho
    phi = torch.tanh(conv(torch.tanh(embed(torch.arange(n)))))
    pooled, own = factor()
    assert_close(pooled, phi[0].sum(0))
    assert_close(own, decode(phi)[0])
    # a word that nothing moves has the same features everywhere
    features = torch.randn(2, 5)
    everywhere = torch.tanh(conv(features[:, None].expand(-1, n, -1)))
    assert_close(factor.fixed(features), everywhere.sum(1))
    assert_close(factor.mean_rho(), decode.rho[decode.shared[:, 0]].mean(0))
    # and the gradient is the same too
    weight = torch.randn(n)
    parameters = (factor.omega, factor.psi, factor.rho)
    mine = torch.autograd.grad(own @ weight, parameters)
    theirs = torch.autograd.grad(decode(phi)[0] @ weight, parameters)
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other, 1e-10)


def scattered(words: int, classes: int = 0, size: int = 0, kind: str = "cyclic") -> Symmetry:
    """Some words of no class, and classes of one size."""
    names = [[f"{c}.{i}" for i in range(size)] for c in range(classes)]
    sides = tuple(f"w{i}" for i in range(words)) + tuple(itertools.chain(*names))
    made = [LexicalClass(f"c{c}", tuple(own), tuple(own)) for c, own in enumerate(names)]
    return Symmetry(Vocabulary(sides), Vocabulary(sides[::-1]), tuple(made), kind)


@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
@pytest.mark.parametrize("words", [8, 300])
@pytest.mark.parametrize("translator", ["stack", "table"])
def test_one_entry_of_the_table_is_that_of_its_word_s_row(words, kind, translator):
    world = scattered(words, classes=2, size=3, kind=kind)
    model = small(world, translator=translator).translator
    if translator == "table":
        torch.nn.init.normal_(model.logits)
    source = torch.randint(PAD, len(world.source), (4, 5))
    target = torch.randint(EOS, len(world.target), (4, 6))
    rows = model(torch.arange(len(world.source)))
    expected = rows[source[:, None, :], target[:, :, None]]
    assert_close(model.pairs(source, target), expected)
    assert_close(model(source), rows[source])


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that anything gives."""

    entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(given):
            if isinstance(tensor, torch.Tensor):
                self.entries = max(self.entries, tensor.numel())
        return given


@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_no_tensor_is_as_large_as_a_class_squared(kind):
    n = 700
    world = scattered(5, classes=1, size=n, kind=kind)
    pairs = [Pair((f"0.{i}", "w1", "0.3"), ("0.3", f"0.{i}")) for i in range(20)]
    model = small(world, k=5, d=4)
    batch = unshared(pairs, world)
    with Largest() as seen:
        model.loss(batch).sum().backward()
    assert seen.entries <= 2 * n * 5 * 4  # ψ and its gradient side by side
    assert seen.entries < n * n
    moves = Group.cyclic(n).generators
    with Largest() as seen, torch.no_grad():
        GConv(moves, k=1, d=1)(torch.ones(n, 1))  # what is to be avoided
    assert seen.entries >= n * n


def test_the_product_of_the_groups_is_never_listed():
    """Ten classes of ten words: ten thousand million elements."""
    world = scattered(5, classes=10, size=10)
    assert world.group.order == 10**10
    model = small(world)
    pairs = [Pair(("1.2", "w1", "7.3"), ("7.3", "1.2")), Pair(("1.5", "w1", "7.6"), ("7.6", "1.5"))]
    one, other = model.loss(unshared(pairs, world))
    assert_close(one, other)
    with pytest.raises(SymmetryError, match="use its generators"):
        len(world.group.elements)


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_all_words_at_once_are_judged_as_they_are_one_by_one(name, marginal):
    sources = [p.source for p in random_pairs(7, 20)]
    judged = []
    for seed in range(6):
        model = small(SYMMETRIES[name], seed, marginal=marginal)
        found = predict(model, sources, width=1, max_length=9)
        said = [Pair(x, best.words) for x, (best,) in zip(sources, found, strict=True)]
        batch = shared([*said, *random_pairs(8, 20)], model.symmetry)
        judged.append(model.judge(batch)[1])
        assert torch.equal(judged[-1], Baseline.judge(model, batch)[1])
    right = torch.cat(judged)
    assert 0 < right.sum() < len(right)


@every_symmetry
def test_rows_do_not_depend_on_which_others_are_asked_for(name):
    translator = small(SYMMETRIES[name]).translator
    whole = translator(torch.arange(len(SOURCE)))
    some = torch.tensor([9, 4, 4, 14, BOS])
    assert_close(translator(some), whole[some])


def test_the_symmetric_group_s_table_has_a_diagonal_and_an_off_diagonal_value():
    table = small(symmetry(VERBS, kind="symmetric")).translator(
        torch.tensor(SOURCE.encode(VERBS.source))
    )
    block = table[:, list(TARGET.encode(VERBS.target))]
    off = block[~torch.eye(4, dtype=torch.bool)]
    assert_close(block.diag(), block[0, 0].expand(4))
    assert_close(off, off[0].expand(12))
    assert abs(float((block[0, 0] - off[0]).detach())) > 1e-3


# --- eqs. 4 to 7


@every_symmetry
def test_eq_5_is_eq_4_summed_over_all_alignments(name):
    model = small(SYMMETRIES[name])
    (pair,) = [Pair(("walk", "left"), ("WALK", "LTURN"))]
    batch = unshared([pair], model.symmetry)
    joint = model._joint(batch, model._aligned(batch))[0].exp()
    m, n = joint.shape
    total = sum(
        math.prod(float(joint[i, a_i].detach()) for i, a_i in enumerate(a))
        for a in itertools.product(range(n), repeat=m)
    )
    assert_close(model.loss(batch), -torch.tensor([total]).log())


@cyclic
@pytest.mark.parametrize("encoder", ["tied", "separate"])
def test_loss_and_gradient_of_shared_forms_are_the_plain_ones_pair_by_pair(name, encoder):
    """The fast path against the oracle: one alignment per form and one row per orbit change
    nothing."""
    model = small(SYMMETRIES[name], encoder=encoder)
    plain = PlainTransducer(model)
    pairs = random_pairs(1, 12)
    # members of the same orbits and forms, and copies
    pairs += [q for g in elements(model.symmetry)[:4] for q in moved(pairs[:6], g, model.symmetry)]
    alone = unshared(pairs, model.symmetry)
    expected = plain.loss(alone.source, alone.target)
    expected.sum().backward()
    gradients = {k: p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}
    lstm = plain.decoder.weight_hh_l0.grad.clone()
    model.zero_grad()

    batch = shared(pairs, model.symmetry)
    assert len(batch.weight) < len(pairs)
    total = (model.loss(batch) * batch.weight).sum()
    total.backward()
    assert_close(total, expected.sum())
    for key, parameter in model.named_parameters():
        if key in gradients:
            assert_close(parameter.grad, gradients[key], 1e-9)
    assert_close(model.aligner.decoder.weight_hidden.grad, lstm, 1e-9)


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_sharing_changes_no_loss(name, marginal):
    model = small(SYMMETRIES[name], marginal=marginal)
    pairs = random_pairs(2, 30)
    batch, alone = shared(pairs, model.symmetry), unshared(pairs, model.symmetry)
    assert_close(
        (model.loss(batch, moment=at(9)) * batch.weight).sum(),
        model.loss(alone, moment=at(9)).sum(),
    )


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_a_pair_does_not_feel_its_neighbours(name, marginal):
    """Neither padding nor the rest of the batch changes a pair's loss."""
    model = small(SYMMETRIES[name], marginal=marginal)
    pairs = random_pairs(3, 10)
    together = model.loss(unshared(pairs, model.symmetry), moment=at(3))
    alone = torch.cat([model.loss(unshared([p], model.symmetry), moment=at(3)) for p in pairs])
    assert_close(together, alone)


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_step_by_step_scores_add_up_to_the_loss(name, marginal):
    model = small(SYMMETRIES[name], marginal=marginal)
    batch = unshared(random_pairs(4, 8), model.symmetry)
    state, previous, total = model.start(batch.source), torch.full((8,), BOS), torch.zeros(8)
    for gold in batch.target.T:
        scores, state = model.step(state, previous)
        assert (scores[:, [PAD, BOS]] == -math.inf).all()
        if marginal == "sum":
            assert_close(scores.exp().sum(1), torch.ones(8))
        total = total + torch.where(gold == PAD, 0.0, scores[torch.arange(8), gold])
        previous = gold
    assert_close(-total, model.loss(batch))


# --- the theorems


def deviation(model, pairs, *, moment=None):
    """The largest relative change of −log p along a G-orbit."""
    start = model.loss(unshared(pairs, model.symmetry), moment=moment)
    worst = 0.0
    for g in elements(model.symmetry):
        other = model.loss(unshared(moved(pairs, g, model.symmetry), model.symmetry), moment=moment)
        worst = max(worst, float(((other - start) / start).abs().max().detach()))
    return worst


@every_symmetry
def test_theorem_2_the_aligner_is_invariant(name):
    model = small(SYMMETRIES[name])
    pairs = random_pairs(5, 6)

    def aligned(pairs):
        batch = unshared(pairs, model.symmetry)
        return model.aligner.advance(model.aligner.start(batch.source), batch.target)[0]

    for g in elements(model.symmetry):
        assert torch.equal(aligned(moved(pairs, g, model.symmetry)), aligned(pairs))


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_the_model_is_equivariant(name, marginal, seed):
    model = small(SYMMETRIES[name], seed, marginal=marginal)
    assert deviation(model, random_pairs(seed, 6), moment=at(5)) <= 1e-12


@every_symmetry
def test_theorem_3_in_float32(name):
    model = small(SYMMETRIES[name]).float()
    assert deviation(model, random_pairs(6, 6)) <= 1e-5


def test_theorem_3_fails_if_the_aligner_sees_words():
    world = symmetry(VERBS)
    model = small(world)
    seeing = Aligner(symmetry(), embedding=6, hidden=7, tied=True, dropout=0.0)
    broken = Transducer(world, model.translator, seeing, model.marginal)
    assert deviation(broken, random_pairs(0, 6)) > 1e-3


def test_theorem_3_fails_if_the_translator_knows_no_classes():
    world = symmetry(VERBS)
    model = small(world)
    broken = Transducer(world, Translator(symmetry(), k=5, d=4), model.aligner, model.marginal)
    assert deviation(broken, random_pairs(0, 6)) > 1e-3


@pytest.mark.parametrize("name", ["verbs", "verbs × turns", "symmetric verbs"])
def test_theorem_4_given_the_alignment_the_model_is_equivariant_to_g_to_the_n(name):
    model = small(SYMMETRIES[name])
    world = model.symmetry
    x = ("walk", "left", "after", "run")
    a = (3, 1, 0, 1, 0)  # RUN LTURN WALK LTURN WALK
    y = ("RUN", "LTURN", "WALK", "LTURN", "WALK")

    def log_prob(source, target):
        table = model.translator(torch.tensor(world.source.encode(source)))
        return table[list(a), list(world.target.encode(target))].sum()

    expected = log_prob(x, y)
    moving = {w for c in world.classes for w in c.source}
    choices = [elements(world) if w in moving else elements(world)[:1] for w in x]
    orbit = set()
    for gs in itertools.product(*choices):
        each = [moved([Pair((w,), ())], g, world)[0].source for w, g in zip(x, gs, strict=True)]
        moved_x = tuple(itertools.chain(*each))
        each = [moved([Pair((), (w,))], gs[n], world)[0].target for w, n in zip(y, a, strict=True)]
        moved_y = tuple(itertools.chain(*each))
        orbit.add((moved_x, moved_y))
        assert_close(log_prob(moved_x, moved_y), expected)
    # the orbit is as large as the classes allow: one independent choice per class word of the
    # source
    sizes = {w: len(c.source) for c in world.classes for w in c.source}
    assert len(orbit) == math.prod(sizes.get(w, 1) for w in x)


def test_theorem_4_needs_the_alignment():
    """Without it an untrained model's 16 pairs of one form fall into four orbits of four (§4.4)."""
    model = small(symmetry(VERBS))
    pairs = [
        Pair((v, "right", "twice", "after", w), (b, "RTURN", a, "RTURN", a))
        for v, a in zip(VERBS.source, VERBS.target, strict=True)
        for w, b in zip(VERBS.source, VERBS.target, strict=True)
    ]
    losses = model.loss(unshared(pairs, model.symmetry)).detach()
    sizes: list[int] = []
    left = list(range(16))
    while left:
        orbit = [i for i in left if torch.isclose(losses[i], losses[left[0]], rtol=1e-12)]
        left = [i for i in left if i not in orbit]
        sizes.append(len(orbit))
    assert sizes == [4, 4, 4, 4]


# --- alignments, warm start


def test_the_posterior_is_a_distribution_over_the_source_s_positions():
    model = small(SYMMETRIES["verbs × turns"])
    batch = unshared(random_pairs(7, 5), model.symmetry)
    posterior = model.alignments(batch)
    assert_close(posterior.sum(2), torch.ones(batch.target.shape))
    assert (posterior[(batch.source == PAD)[:, None].expand_as(posterior)] == 0).all()


def test_the_posterior_is_bayes_rule():
    model = small(SYMMETRIES["verbs"])
    batch = unshared([Pair(("walk", "twice"), ("WALK", "RUN"))], model.symmetry)
    previous = torch.cat([torch.tensor([[BOS]]), batch.target[:, :-1]], dim=1)
    aligned, _ = model.aligner.advance(model.aligner.start(batch.source), previous)
    emitted = model.translator(batch.source[0])[:, batch.target[0]].T[None]
    joint = aligned.exp() * emitted.exp()
    assert_close(model.alignments(batch), joint / joint.sum(2, keepdim=True))


def test_while_the_start_is_warm_alignments_are_uniform_and_only_words_are_learned():
    model = small(SYMMETRIES["verbs"], warm_start=0.1)
    batch = unshared(random_pairs(8, 5), model.symmetry)
    model.loss(batch, moment=at(9, 0.09)).sum().backward()
    assert all(p.grad is None for p in model.aligner.parameters())
    assert all(p.grad is not None for p in model.translator.parameters())
    n = (batch.source != PAD).sum(1)
    table = model.translator(torch.arange(len(SOURCE))).exp()
    for row in range(5):
        words = table[batch.source[row, : n[row]]].mean(0)  # IBM Model 1: the mean over positions
        gold = batch.target[row][batch.target[row] != PAD]
        assert_close(model.loss(batch, moment=at(9, 0.09))[row], -words[gold].log().sum())
    assert not torch.allclose(
        model.loss(batch, moment=at(10, 0.1)), model.loss(batch, moment=at(9, 0.09))
    )


def test_dropout_acts_in_training_only():
    model = small(SYMMETRIES["verbs"], dropout=0.5)
    batch = unshared(random_pairs(9, 5), model.symmetry)
    assert torch.equal(model.loss(batch), model.loss(batch))
    model.train()
    assert not torch.equal(model.loss(batch, moment=at(1)), model.loss(batch, moment=at(1)))


def test_a_table_first_made_for_asking_only_serves_for_training_too():
    world = symmetry(VERBS)
    model = small(world)
    batch = unshared(random_pairs(9, 3), world)
    _differences.cache_clear()
    with torch.inference_mode():
        model.loss(batch)
    model.loss(batch).sum().backward()
    assert model.translator.factors[0].omega.grad is not None
