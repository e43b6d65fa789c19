"""Gordon et al.'s model against a plain implementation and torch's LSTM; its equivariance."""

import math

import pytest
import torch
from torch import nn

from equitrans.analysis import decode, judge
from equitrans.analysis.evaluation import mean_loss
from equitrans.data import scan
from equitrans.data.batches import Rows, pad_source
from equitrans.data.pairs import Pair
from equitrans.errors import ConfigError
from equitrans.models import build
from equitrans.models.configs import GordonConfig
from equitrans.paper.base import Moment
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.vocabulary import BOS, EOS, PAD
from gordon_plain import PlainGordon
from worlds import (
    SOURCE,
    SYMMETRIES,
    TARGET,
    assert_close,
    at,
    elements,
    moved,
    random_pairs,
    symmetry,
    unshared,
)

GROUPS = ["no class", "verbs", "turns", "verbs × turns"]
BIASES = ["free", "tied", "none"]
every_group = pytest.mark.parametrize("name", GROUPS)
every_bias = pytest.mark.parametrize("bias", BIASES)


def gordon(world, seed=0, *, spread=2.0, **settings):
    """A small model with enlarged random weights, so that words have different probabilities."""
    torch.manual_seed(seed)
    model = build(GordonConfig(**({"hidden": 3} | settings)), world)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    return model.eval()


@torch.no_grad()
def inclined_to_end(model):
    """Change the weights so that the model says EOS early for some sources."""
    model.readout.decode.rho[EOS - BOS] *= 5


def encoded(pair):
    return SOURCE.encode(pair.source), TARGET.encode(pair.target)


def gradients(model, loss):
    """The gradients of all parameters that the loss depends on, by name."""
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


# --- parameters and settings


@pytest.mark.parametrize(
    ("classes", "count"),
    [("none", 201_288), ("directions", 397_896), ("verbs", 791_112), ("both", 1_577_544)],
)
def test_the_number_of_parameters_on_scan_is_that_of_the_released_code(classes, count):
    model = build(GordonConfig(), Symmetry.of(scan.CLASSES[classes], scan.everything()))
    assert sum(p.numel() for p in model.parameters()) == count


def test_a_tied_bias_has_one_parameter_per_orbit_of_words():
    world = SYMMETRIES["verbs × turns"]
    size = {b: sum(p.numel() for p in gordon(world, output_bias=b).parameters()) for b in BIASES}
    assert size["free"] - size["none"] == len(TARGET) - 1
    assert size["tied"] - size["none"] == len(TARGET) - 1 - 3 - 1


def test_initial_weights_have_the_ranges_of_the_released_code():
    model = build(GordonConfig(hidden=16), SYMMETRIES["verbs"])
    bounds = {
        model.encoder.convs.psi: 16**-0.5,
        model.encoder.bias: 16**-1.0,
        model.decoder.convs.psi: 32**-0.5,
        model.decoder.bias: 32**-1.0,
        model.combine.conv.psi: 32**-0.5,
        model.combine.bias: (64 * 32) ** -0.5,
        model.readout.decode.rho: 32**-0.5,
    }
    for parameter, bound in bounds.items():
        assert 0.85 * bound < float(parameter.detach().abs().max()) <= bound
    assert float(model.readout.bias.detach().abs().max()) <= 32**-0.5
    for embed in (model.source_embed, model.target_embed):
        assert abs(float(embed.omega.detach().std()) - 1) < 0.15


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, "model.hidden is 0; it must be 1 or more"),
        ({"teacher_forcing": 1.5}, r"model.teacher_forcing is 1.5; it must lie in \[0, 1\]"),
        ({"teacher_forcing": -0.1}, "must lie in"),
    ],
)
def test_invalid_settings_raise_an_error(settings, message):
    with pytest.raises(ConfigError, match=message):
        GordonConfig(**settings)


# --- against the plain implementation


@pytest.mark.parametrize(
    ("name", "bias"), [*((name, "free") for name in GROUPS), ("verbs", "tied"), ("turns", "none")]
)
def test_losses_and_gradients_equal_those_of_the_plain_model(name, bias):
    model = gordon(SYMMETRIES[name], output_bias=bias)
    plain = PlainGordon(model)
    pairs = [*random_pairs(1, 3, longest=5), Pair(("jump",), ())]
    losses = model.loss(unshared(pairs, model.symmetry))
    expected = torch.stack([plain.loss(*encoded(pair)) for pair in pairs])
    assert_close(losses, expected, 1e-10)
    # unequal weights detect an exchange of rows
    weight = torch.arange(1.0, 5.0)
    ours = gradients(model, (losses * weight).sum())
    theirs = gradients(model, (expected * weight).sum())
    assert ours.keys() == theirs.keys() == {k for k, _ in model.named_parameters()}
    for key in ours:
        assert_close(ours[key], theirs[key], 1e-9)


@pytest.mark.parametrize(
    ("name", "seed"), [("no class", 5), ("verbs", 5), ("turns", 5), ("verbs × turns", 2)]
)
@pytest.mark.parametrize("forced", [True, False])
def test_the_training_objective_and_its_gradient_equal_those_of_the_plain_model(name, seed, forced):
    """Words count up to the target's end or the model's first EOS, for both kinds of history."""
    model = gordon(SYMMETRIES[name], seed, teacher_forcing=float(forced))
    plain = PlainGordon(model)
    pairs = random_pairs(2, 4, longest=4)
    inclined_to_end(model)
    losses = model.loss(unshared(pairs, model.symmetry), moment=at(1))
    found = [plain.objective(*encoded(pair), forced=forced) for pair in pairs]
    expected = torch.stack([loss for loss, _ in found])
    assert_close(losses, expected, 1e-10)
    counts = [count - len(pair.target) - 1 for (_, count), pair in zip(found, pairs, strict=True)]
    assert min(counts) < 0
    assert max(counts) == 0
    weight = torch.arange(1.0, 5.0)
    ours = gradients(model, (losses * weight).sum())
    theirs = gradients(model, (expected * weight).sum())
    for key in ours:
        assert_close(ours[key], theirs[key], 1e-9)


def test_teacher_forcing_is_drawn_for_each_row():
    pairs = random_pairs(3, 64)
    batch = unshared(pairs, symmetry())
    forced, free = (
        gordon(symmetry(), teacher_forcing=share).loss(batch, moment=at(1)) for share in (1.0, 0.0)
    )
    differ = (forced - free).abs() > 1e-6
    assert differ.sum() > 20
    torch.manual_seed(5)
    half = gordon(symmetry(), teacher_forcing=0.5).loss(batch, moment=at(1))
    is_forced, is_free = torch.isclose(half, forced), torch.isclose(half, free)
    assert (is_forced | is_free).all()
    share = is_forced[differ].double().mean()
    assert 0.25 < share < 0.75


@every_group
@pytest.mark.parametrize(("moment", "forcing"), [(None, 0.5), (at(1), 1.0), (at(1), 0.0)])
def test_the_loss_of_a_pair_does_not_depend_on_its_batch(name, moment, forcing):
    model = gordon(SYMMETRIES[name], teacher_forcing=forcing)
    pairs = random_pairs(4, 8)
    together = model.loss(unshared(pairs, model.symmetry), moment=moment)
    alone = [model.loss(unshared([p], model.symmetry), moment=moment) for p in pairs]
    assert_close(together, torch.cat(alone), 1e-10)


@pytest.mark.parametrize("moment", [None, at(1)])
def test_the_loss_reads_no_value_on_the_host(moment):
    """Tensors on the meta device have no values, and reading one raises an error."""
    model = gordon(SYMMETRIES["verbs"]).to("meta")
    batch = unshared(random_pairs(5, 4), model.symmetry).to(torch.device("meta"))
    loss = model.loss(batch, moment=moment)
    loss.sum().backward()
    assert loss.shape == (4,)
    with pytest.raises(RuntimeError, match="meta"):
        loss[0].item()


# --- the trivial group


def test_without_classes_the_model_is_an_lstm_with_attention():
    model = gordon(symmetry())
    k = model.encoder.bias.shape[2]
    order = [0, 1, 3, 2]  # torch has the gates as i, f, g, o
    copies = []
    for ours in (model.encoder, model.decoder):
        theirs = nn.LSTMCell(ours.bias.shape[2], ours.bias.shape[2])
        for i, end in enumerate(("ih", "hh")):
            psi, bias = ours.convs.psi[0, i][:, order], ours.bias[i, order]
            getattr(theirs, f"weight_{end}").data = psi.flatten(1).T.detach()
            getattr(theirs, f"bias_{end}").data = bias.flatten().detach()
        copies.append(theirs)
    encoder, decoder = copies
    combine = nn.Linear(4 * k, 2 * k)
    combine.weight.data = model.combine.conv.psi[0, :, :, 0].flatten(0, 1).T.detach()
    combine.bias.data = model.combine.bias.detach()
    embed, embed_target = (e.omega.detach() for e in (model.source_embed, model.target_embed))
    rho, bias = model.readout.decode.rho.detach(), model.readout.bias.detach()

    def read(words):
        state, states = (torch.zeros(k), torch.zeros(k)), []
        for word in words:
            state = encoder(embed[word - 1], state)
            states.append(state[0])
        return torch.stack(states), state[1]

    for pair in random_pairs(6, 5):
        source, target = encoded(pair)
        forward, c = read([*source, EOS])
        backward, c_back = read([*source[::-1], EOS])
        memory = torch.cat([forward, torch.cat([backward[:-1].flip(0), backward[-1:]])], dim=1)
        state = memory[-1], torch.cat([c, c_back])
        total = torch.zeros(())
        for before, word in zip((BOS, *target), (*target, EOS), strict=True):
            context = torch.softmax(memory @ state[0], 0) @ memory
            z = torch.tanh(combine(torch.cat([embed_target[before - 1], context])))
            state = decoder(z, state)
            logits = (rho @ state[0] + bias)[EOS - BOS :]
            total = total - torch.log_softmax(logits, 0)[word - EOS]
        assert_close(model.loss(unshared([pair], model.symmetry))[0], total, 1e-10)


# --- equivariance


def deviation(model, pairs):
    """The largest relative change of −log p along a G-orbit."""
    world = model.symmetry
    start = model.loss(unshared(pairs, world))
    worst = 0.0
    for g in elements(world):
        other = model.loss(unshared(moved(pairs, g, world), world))
        worst = max(worst, float(((other - start) / start).abs().max().detach()))
    return worst


@every_group
@pytest.mark.parametrize("bias", ["tied", "none"])
def test_a_tied_or_missing_bias_makes_the_likelihood_invariant(name, bias):
    assert deviation(gordon(SYMMETRIES[name], output_bias=bias), random_pairs(7, 6)) <= 1e-12


def test_the_likelihood_is_invariant_under_three_classes_and_under_a_noncommutative_group():
    for name in ("three classes", "symmetric verbs"):
        model = gordon(SYMMETRIES[name], hidden=2, output_bias="tied")
        assert deviation(model, random_pairs(7, 3)) <= 1e-12


def test_the_likelihood_is_invariant_in_float32():
    model = gordon(SYMMETRIES["verbs × turns"], output_bias="tied").float()
    assert deviation(model, random_pairs(7, 6)) <= 1e-5


@pytest.mark.parametrize("name", GROUPS[1:])
def test_a_free_bias_breaks_the_invariance(name):
    assert deviation(gordon(SYMMETRIES[name], output_bias="free"), random_pairs(7, 6)) > 1e-2


def test_equivariance_is_global_and_not_word_by_word():
    """The 16 pairs with two verbs have four different likelihoods, not one."""
    model = gordon(SYMMETRIES["verbs"], output_bias="tied")
    verbs = SYMMETRIES["verbs"].classes[0]
    names = list(zip(verbs.source, verbs.target, strict=True))
    pairs = [Pair((v, "and", w), (a, b)) for v, a in names for w, b in names]
    losses = model.loss(unshared(pairs, model.symmetry)).detach()
    assert len({round(float(loss), 9) for loss in losses}) == 4


def test_only_an_equivariant_model_shares_rows_within_an_orbit():
    world = SYMMETRIES["verbs × turns"]
    pairs = [q for g in elements(world) for q in moved(random_pairs(8, 3), g, world)]
    for bias in BIASES:
        model = gordon(world, output_bias=bias)
        rows = Rows.of(pairs, model.sharing)
        assert (len(rows.weight) < len(set(pairs))) == (bias != "free")
        expected = float(model.loss(unshared(pairs, world)).detach().mean())
        assert mean_loss(model, rows) == pytest.approx(expected, rel=1e-10)


# --- decoding


@every_group
@every_bias
def test_step_scores_are_distributions_and_add_up_to_the_loss(name, bias):
    model = gordon(SYMMETRIES[name], output_bias=bias)
    batch = unshared(random_pairs(10, 8), model.symmetry)
    state, previous, total = model.start(batch.source), torch.full((8,), BOS), torch.zeros(8)
    for gold in batch.target.T:
        scores, state = model.step(state, previous)
        assert (scores[:, [PAD, BOS]] == -math.inf).all()
        assert_close(scores.exp().sum(1), torch.ones(8))
        total = total + torch.where(gold == PAD, 0.0, scores[torch.arange(8), gold])
        previous = gold
    assert_close(-total, model.loss(batch), 1e-10)


def test_log_probs_of_beam_search_equal_the_loss():
    model = gordon(SYMMETRIES["verbs"], 3)
    inclined_to_end(model)
    sources = [p.source for p in random_pairs(11, 5)]
    encoded = [SOURCE.encode(x) for x in sources]
    found = decode(model, pad_source(encoded), width=3, max_length=6, n_best=3)
    pairs, scores = zip(
        *(
            (Pair(x, TARGET.decode(h.words)), h.log_prob)
            for x, hypotheses in zip(sources, found, strict=True)
            for h in hypotheses
            if h.finished
        ),
        strict=True,
    )
    assert len(pairs) >= 10
    assert max(len(y) for _, y in pairs) > 1
    assert_close(-model.loss(unshared(pairs, model.symmetry)), torch.tensor(scores), 1e-10)


@torch.no_grad()
def test_start_uses_current_weights_and_a_state_keeps_its_weights():
    model = gordon(SYMMETRIES["verbs"])
    batch = unshared(random_pairs(12, 1), model.symmetry)
    first = torch.tensor([BOS])
    state = model.start(batch.source)
    before, _ = model.step(state, first)
    for parameter in model.parameters():
        parameter.data.mul_(1.1)
    assert torch.equal(model.step(state, first)[0], before)
    after, _ = model.step(model.start(batch.source), first)
    assert not torch.allclose(after, before)
    source = batch.source[0, 1:-1].tolist()
    (expected,), _, _ = PlainGordon(model).words(source, (), forced=True)
    assert_close(after[0, EOS:], expected, 1e-10)


def test_attention_is_a_distribution_over_source_words_and_eos():
    model = gordon(SYMMETRIES["verbs"])
    pairs = random_pairs(13, 4)
    batch = unshared(pairs, model.symmetry)
    attention = model.alignments(batch)
    assert attention.shape == (*batch.target.shape, batch.source.shape[1])
    assert_close(attention.sum(2), torch.ones(batch.target.shape))
    nothing = (batch.source == PAD) | (batch.source == BOS)
    assert (attention[nothing[:, None].expand_as(attention)] == 0).all()
    for row, pair in zip(attention, pairs, strict=True):
        _, _, expected = PlainGordon(model).words(*encoded(pair), forced=True)
        m, n = expected.shape
        assert_close(row[:m, 1 : n + 1], expected, 1e-10)


# --- learning


@pytest.mark.parametrize("bias", ["free", "tied"])
def test_training_fits_twenty_pairs_and_an_equivariant_model_also_their_images(bias):
    commands = [p for p in scan.everything() if len(p.target) <= 4 and len(p.source) <= 4]
    world = Symmetry.of([scan.VERBS], commands)
    seen = [p for p in commands if "jump" not in p.source][:19]
    seen.append(Pair(("jump",), ("I_JUMP",)))
    torch.manual_seed(1)
    model = build(GordonConfig(hidden=12, output_bias=bias), world)
    rows = Rows.of(seen, model.sharing)
    batch = rows.batch(torch.arange(len(rows.weight)), rows.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(80):
        optimizer.zero_grad()
        model.loss(batch, moment=Moment(update, update / 80)).mean().backward()
        optimizer.step()
    assert judge(model, rows)[1] == 1
    images = [q for g in elements(world) for q in moved(seen, g, world)]
    if bias != "free":
        assert judge(model, Rows.of(images, nothing_shared(world)))[1] == 1


def nothing_shared(world):
    """The symmetry without classes, so that every image is decoded."""
    return Symmetry(world.source, world.target)
