"""A batch that is filled up to a fixed size has the same loss and the same gradients."""

from dataclasses import replace

import pytest
import torch

from equitrans.data.batches import Rows, by_form, by_pair
from equitrans.models import build
from equitrans.models.configs import (
    MODELS,
    AttentionConfig,
    GordonConfig,
    RussinConfig,
    TransducerConfig,
    WuConfig,
)
from equitrans.paper.base import Batch, Model, Moment
from equitrans.paper.vocabulary import PAD
from equitrans.training.cuda_graphs import FixedBatch
from worlds import SYMMETRIES, assert_close, at, random_pairs, small

CPU = torch.device("cpu")
WORLD = SYMMETRIES["verbs × turns"]
CONFIGS = {
    "gordon": GordonConfig(hidden=5, teacher_forcing=1.0),
    "gordon, after its own words": GordonConfig(hidden=5, teacher_forcing=0.0),
    "russin": RussinConfig(semantics=4, syntax=6, dropout=0.0),
    "wu": WuConfig(embedding=4, hidden=6, dropout=0.0),
    "attention": AttentionConfig(embedding=4, hidden=6, dropout=0.0),
    "attention, context after": AttentionConfig(
        embedding=4, hidden=6, dropout=0.0, context="after"
    ),
    "transducer": TransducerConfig(k=4, d=3, embedding=4, hidden=6, dropout=0.0, warm_start=0.0),
}
ROOM = 8


def model_of(name: str) -> Model:
    torch.manual_seed(0)
    return build(CONFIGS[name], WORLD).train()


def data_of(model: Model) -> Rows:
    """Forty-three pairs, some of them twice: batches of eight rows or fewer, the last of three
    pairs.
    """
    pairs = random_pairs(0, 30)
    return Rows.of([*pairs, *pairs[:13]], model.sharing)


def batches(data: Rows) -> list[Batch]:
    return list(by_pair(data, pairs=ROOM, generator=torch.Generator().manual_seed(0)))


def descent(model: Model, batch: Batch, updates: int | None = 1):
    """The loss of an update, and its gradients, as training computes them."""
    model.zero_grad()
    loss = model.loss(batch, moment=at(updates))
    total = (loss * batch.weight).sum() / batch.weight.sum()
    total.backward()
    return total.detach(), [
        torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()
    ]


def test_every_model_that_a_cuda_graph_can_record_is_tested_here():
    static = {name for name, kind in MODELS.items() if build(kind(), WORLD).static}
    assert static == {name.partition(",")[0] for name in CONFIGS}
    assert not small(WORLD, translator="table").static


def test_the_phase_changes_when_the_operations_of_the_loss_change():
    model = small(WORLD, marginal="annealed", warm_start=0.3)
    warm, early, late = Moment(10, 0.1), Moment(500, 0.4), Moment(3000, 0.9)
    assert model.phase(warm) != model.phase(early) != model.phase(late)
    assert model.phase(early) == model.phase(Moment(501, 0.41))
    assert small(WORLD).phase(early) == small(WORLD).phase(late)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_batch_at_its_fixed_size_has_the_same_loss_and_gradients(name):
    model = model_of(name)
    data = data_of(model)
    room = FixedBatch.for_training(data, "pairs", ROOM, device=CPU)
    sizes = set()
    for batch in batches(data):
        expected, gradients = descent(model, batch)
        fixed = room.fill(batch)
        assert fixed.source.shape == (ROOM, data.source.shape[1])
        assert fixed.target.shape == (ROOM, data.target.shape[1])
        found, others = descent(model, fixed)
        assert_close(found, expected)
        for one, other in zip(gradients, others, strict=True):
            assert_close(one, other, 1e-10)  # sums in another order
        sizes.add((len(batch.weight), batch.source.shape[1] < data.source.shape[1]))
    # some batches were full and some were not, some were as wide as the room and some were not
    assert {rows for rows, _ in sizes} >= {ROOM, 3}
    assert {narrow for _, narrow in sizes} == {True, False}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_room_as_wide_as_the_longest_target_of_a_batch_gives_the_same_loss_and_gradients(name):
    model = model_of(name)
    data = data_of(model)
    for batch in batches(data):
        words = batch.target.shape[1] + 2
        room = FixedBatch.for_training(data, "pairs", ROOM, device=CPU, words=words)
        expected, gradients = descent(model, batch)
        fixed = room.fill(batch)
        assert fixed.target.shape == (ROOM, words)
        found, others = descent(model, fixed)
        assert_close(found, expected)
        for one, other in zip(gradients, others, strict=True):
            assert_close(one, other, 1e-10)


def test_a_batch_of_forms_at_its_fixed_size_has_the_same_loss_and_gradients():
    model = model_of("transducer")
    data = data_of(model)
    room = FixedBatch.for_training(data, "forms", 5, device=CPU)
    made = list(by_form(data, forms=5, generator=torch.Generator().manual_seed(0)))
    for batch in made:
        expected, gradients = descent(model, batch)
        found, others = descent(model, room.fill(batch))
        assert_close(found, expected)
        for one, other in zip(gradients, others, strict=True):
            assert_close(one, other, 1e-10)
    assert {len(batch.first) for batch in made} == {5, data.n_forms % 5}
    assert len({len(batch.weight) for batch in made}) > 1


@pytest.mark.parametrize("name", CONFIGS)
def test_spare_rows_with_weight_would_change_the_loss(name):
    """The negative control of the test above."""
    model = model_of(name)
    data = data_of(model)
    *_, batch = batches(data)
    expected, gradients = descent(model, batch)
    fixed = FixedBatch.for_training(data, "pairs", ROOM, device=CPU).fill(batch)
    heavy = replace(fixed, weight=torch.where(fixed.weight == 0, 1.0, fixed.weight))
    found, others = descent(model, heavy)
    assert abs(float(found - expected)) > 1e-6
    assert any(
        (one - other).abs().max() > 1e-6 for one, other in zip(gradients, others, strict=True)
    )


def test_filling_a_fixed_batch_overwrites_the_batch_before():
    model = model_of("attention")
    data = data_of(model)
    first, *_, last = batches(data)
    used, fresh = (FixedBatch.for_training(data, "pairs", ROOM, device=CPU) for _ in range(2))
    places = [part.data_ptr() for part in (used.batch.source, used.batch.target, used.batch.weight)]
    used.fill(first)
    again, once = used.fill(last), fresh.fill(last)
    for name in ("source", "target", "weight", "form", "first"):
        assert torch.equal(getattr(again, name), getattr(once, name))
    # what was recorded reads from where it read before
    assert [part.data_ptr() for part in (again.source, again.target, again.weight)] == places
    kept, (rows, width) = again.source[: len(last.weight)], last.source.shape
    assert torch.equal(kept[:, :width], last.source)
    assert (kept[:, width:] == PAD).all()
    assert again.weight.tolist() == [*last.weight.tolist(), *[0.0] * (ROOM - rows)]
    assert (again.source[rows:] == again.source[0]).all()


def test_a_fixed_batch_has_at_most_as_many_rows_as_there_are_pairs():
    data = Rows.of(random_pairs(0, 3), SYMMETRIES["no class"])
    room = FixedBatch.for_training(data, "pairs", 128, device=CPU)
    assert len(room.batch.weight) == 3
