"""The training loop: what it learns, which epoch is best, when it ends."""

import dataclasses
import math
import random

import pytest
import torch

from equitrans.analysis import decode, judge
from equitrans.analysis.evaluation import mean_loss, stuck_classes
from equitrans.data.batches import Rows
from equitrans.data.pairs import Pair
from equitrans.data.scan import CLASSES, everything
from equitrans.errors import ConfigError, DivergenceError
from equitrans.models.configs import TransducerConfig
from equitrans.paper.base import Batch
from equitrans.paper.symmetry import LexicalClass
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.loop import TrainState, epochs_to_train, train
from equitrans.training.runs import Run
from equitrans.training.tensors import part
from equitrans.training.trained import Trained
from worlds import SYMMETRIES, random_pairs, small

WORLD = SYMMETRIES["verbs"]
PAIRS = [
    Pair(("walk",), ("WALK",)),
    Pair(("walk", "twice"), ("WALK", "WALK")),
    Pair(("look", "twice"), ("LOOK", "LOOK")),
    Pair(("run", "and", "look"), ("RUN", "LOOK")),
    Pair(("run", "after", "walk", "twice"), ("WALK", "WALK", "RUN")),
]
QUICK = TrainingConfig(epochs=4, batch=2)
SMALL = TransducerConfig(embedding=16, hidden=32)


def state(config=QUICK, seed=0, **settings):
    return TrainState.new(small(WORLD, seed, **settings), config, seed=seed)


def rows(pairs=PAIRS):
    return Rows.of(pairs, WORLD)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    def numbers(seed):
        s = state(seed=seed, dropout=0.5)
        losses = [e.train_loss for e in train(s, rows(), rows(), QUICK)]
        return losses, torch.cat([p.flatten() for p in s.model.parameters()])

    (first, weights), (again, same), (other, _) = numbers(0), numbers(0), numbers(1)
    assert first == again
    assert torch.equal(weights, same)
    assert first != other


def test_the_best_epoch_is_the_one_of_lowest_validation_loss():
    config = TrainingConfig(epochs=12, batch=2, learning_rate=0.3, schedule="constant")
    s = state(config)
    epochs = list(train(s, rows(), rows(PAIRS[:2]), config))
    losses = [e.valid_loss for e in epochs]
    assert s.best_epoch == 1 + losses.index(min(losses))
    assert [e.is_best for e in epochs] == [
        loss < min(losses[:i], default=math.inf) for i, loss in enumerate(losses)
    ]
    s.model.load_state_dict(s.best)
    assert mean_loss(s.model, rows(PAIRS[:2])) == min(losses)


def test_without_validation_data_the_last_epoch_is_the_best():
    s = state()
    epochs = list(train(s, rows(), None, QUICK))
    assert [(e.valid_loss, e.valid_accuracy, e.is_best) for e in epochs] == [(None, None, True)] * 4
    assert s.best_epoch == 4
    assert all(torch.equal(s.best[k], v) for k, v in s.model.state_dict().items())


@pytest.mark.parametrize("updates", [1, 3, 4, 7])
def test_training_makes_exactly_the_updates_asked_for_and_ends_within_an_epoch(updates):
    config = TrainingConfig(updates=updates, batch=2, learning_rate=0.01)
    s = state(config)
    epochs = list(train(s, rows(), None, config))
    assert epochs[-1].updates == s.updates == updates
    assert len(epochs) == math.ceil(updates / 2)


def test_the_smaller_of_two_budgets_ends_training():
    for config in (
        TrainingConfig(updates=3, epochs=50, batch=2),
        TrainingConfig(updates=500, epochs=2, batch=2),
    ):
        assert len(list(train(state(config), rows(), None, config))) == 2


def test_a_budget_of_updates_becomes_epochs():
    data = rows()
    assert data.n_forms == 4
    assert epochs_to_train(data, TrainingConfig(updates=10, batch=2)) == 5
    assert epochs_to_train(data, TrainingConfig(updates=10, batch=3, batching="pairs")) == 5
    assert epochs_to_train(data, TrainingConfig(epochs=3)) == 3
    assert epochs_to_train(data, TrainingConfig(seconds=3.0)) is None


def test_without_a_budget_there_are_a_hundred_updates_per_form_within_limits():
    few, some = rows(), Rows.of(random_pairs(0, 30), WORLD)
    many = Rows.of(random_pairs(0, 300), WORLD)
    assert epochs_to_train(few, TrainingConfig(batch=1)) == math.ceil(500 / 4)
    assert epochs_to_train(some, TrainingConfig(batch=1)) == 100
    assert epochs_to_train(many, TrainingConfig(batch=1)) == math.ceil(7500 / many.n_forms)


def test_time_ends_training():
    s = state()
    config = TrainingConfig(seconds=0.3, batch=2)
    epochs = list(train(s, rows(), None, config))
    assert len(epochs) > 1
    assert 0.3 <= epochs[-1].seconds < 3


def test_patience_ends_training():
    config = dataclasses.replace(
        QUICK, epochs=100, learning_rate=0.5, schedule="constant", patience=3
    )
    s = state(config)
    epochs = list(train(s, rows(), rows(), config))
    assert len(epochs) < 100
    assert epochs[-1].number - s.best_epoch == 3


def test_the_learning_rate_follows_the_schedule():
    for schedule, last in (("cosine", 0.02), ("constant", 1.0)):
        config = TrainingConfig(epochs=50, batch=2, schedule=schedule)
        s = state(config)
        list(train(s, rows(), None, config))
        rate = s.optimizer.param_groups[0]["lr"]
        assert rate == pytest.approx(last * config.learning_rate, rel=0.1)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("batching", ["forms", "pairs"])
def test_every_optimizer_and_batching_lowers_the_loss(optimizer, batching):
    config = TrainingConfig(epochs=15, batch=2, optimizer=optimizer, batching=batching, clip=None)
    s = state(config, encoder="separate")
    before = mean_loss(s.model, rows())
    list(train(s, rows(), None, config))
    assert mean_loss(s.model, rows()) < before / 2


def test_gradients_are_clipped(monkeypatch):
    norms = []
    original = torch.nn.utils.clip_grad_norm_

    def spy(parameters, largest):
        parameters = list(parameters)
        norm = original(parameters, largest)
        grads = [p.grad.flatten() for p in parameters if p.grad is not None]
        norms.append(float(torch.cat(grads).norm()))
        return norm

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spy)
    config = dataclasses.replace(QUICK, clip=0.1)
    list(train(state(config), rows(), None, config))
    assert norms
    assert max(norms) <= 0.1 + 1e-9


def poison(model):
    with torch.no_grad():
        model.aligner.bilinear.fill_(math.nan)


GROWING = {"learning_rate": 1000.0, "weight_decay": 1e30, "clip": None, "schedule": "constant"}


@pytest.mark.parametrize(
    ("kind", "where", "config", "before"),
    [
        ("training", "epoch 1, update 1", QUICK, poison),
        ("training", r"epoch \d, update \d+", TrainingConfig(epochs=9, batch=1, **GROWING), None),
        (
            "validation",
            "epoch 1",
            TrainingConfig(epochs=1, batch=99, weight_decay=1e305, learning_rate=1000.0),
            None,
        ),
    ],
)
def test_a_nan_or_infinite_loss_stops_training_with_the_batch(kind, where, config, before):
    s = state(config, dropout=0.5)
    if before is not None:
        before(s.model)
    message = rf"^{where}: the {kind} loss is -?(nan|inf); a smaller training.learning_rate"
    with pytest.raises(DivergenceError, match=message) as error:
        list(train(s, rows(), rows(), config))
    broken = error.value.breakdown
    assert not math.isfinite(broken["loss"])
    assert ("moment" in broken) == (kind == "training")
    model = small(WORLD, 7, dropout=0.5)
    model.load_state_dict(part(broken, "weights."))
    batch = Batch(**part(broken, "batch."))
    assert not model.eval().loss(batch).isfinite().all()


def test_a_nan_or_infinite_gradient_stops_training_before_the_weights_change():
    s = state()
    s.model.aligner.bilinear.register_hook(lambda gradient: gradient * math.inf)
    before = {name: value.clone() for name, value in s.model.state_dict().items()}
    with pytest.raises(DivergenceError, match=r"update 1: the gradient is (nan|inf)") as error:
        list(train(s, rows(), None, QUICK))
    assert math.isfinite(error.value.breakdown["loss"])
    assert all(torch.equal(value, before[name]) for name, value in s.model.state_dict().items())


def test_an_infinite_sum_of_finite_losses_stops_training_without_a_batch(monkeypatch):
    monkeypatch.setattr("equitrans.training.loop.judge", lambda model, data: (math.inf, 0.0))
    with pytest.raises(DivergenceError, match="epoch 1: the validation loss is inf") as error:
        list(train(state(), rows(), rows(), QUICK))
    assert error.value.breakdown is None


def test_a_nan_gradient_without_clipping_stops_training_before_the_weights_change():
    config = dataclasses.replace(QUICK, clip=None)
    s = state(config)
    before = {name: value.clone() for name, value in s.model.state_dict().items()}
    weight = next(s.model.parameters())
    weight.register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(DivergenceError, match="the gradient is nan"):
        list(train(s, rows(), None, config))
    assert all(torch.equal(before[name], v) for name, v in s.model.state_dict().items())


def test_infinite_weights_after_the_last_update_stop_training():
    config = TrainingConfig(updates=1, batch=2, learning_rate=1000.0, weight_decay=1e305)
    with pytest.raises(DivergenceError, match=r"epoch 1: the weight \S+ is -?(inf|nan)"):
        list(train(state(config), rows(), None, config))


def test_passes_multiply_the_updates_of_an_epoch_and_divide_the_epochs():
    once, thrice = (TrainingConfig(epochs=2, batch=2, passes=passes) for passes in (1, 3))
    counts = [[e.updates for e in train(state(c), rows(), None, c)] for c in (once, thrice)]
    assert counts == [[2, 4], [6, 12]]
    assert epochs_to_train(rows(), TrainingConfig(updates=12, batch=2)) == 6
    assert epochs_to_train(rows(), TrainingConfig(updates=12, batch=2, passes=3)) == 2


def test_every_pass_covers_all_data_in_a_new_order():
    config = TrainingConfig(epochs=1, batch=1, passes=20, learning_rate=1e-9, weight_decay=0.0)
    s = state(config)
    seen = []
    original = s.model.loss
    s.model.loss = lambda batch, moment: (
        seen.append(batch.target),
        original(batch, moment=moment),
    )[1]
    list(train(s, rows(), None, config))
    orders = [tuple(str(t.tolist()) for t in seen[i : i + 4]) for i in range(0, 80, 4)]
    assert len(seen) == 80
    assert len({tuple(sorted(order)) for order in orders}) == 1
    assert len(set(orders)) > 5


def test_greedy_accuracy_is_what_greedy_decoding_gets_right():
    model = fit(PAIRS, WORLD.classes, training=TrainingConfig(updates=60)).model
    data = Rows.of(PAIRS, model.symmetry)
    right = 0
    for pair in PAIRS:
        ((best,),) = decode(
            model,
            torch.tensor([[1, *model.symmetry.source.encode(pair.source), 2]]),
            width=1,
            max_length=20,
        )
        right += model.symmetry.target.decode(best.words) == pair.target
    assert judge(model, data)[1] == right / len(PAIRS)


def test_a_word_known_only_from_its_class_is_used_like_its_classmates():
    torch.set_default_dtype(torch.float32)
    pairs = [*PAIRS, Pair(("walk", "and", "look"), ("WALK", "LOOK")), Pair(("jump",), ("JUMP",))]
    verbs = LexicalClass("verbs", ("walk", "look", "run", "jump"), ("WALK", "LOOK", "RUN", "JUMP"))
    for seed in range(3):
        trained = fit(pairs, [verbs], model=SMALL, training=TrainingConfig(updates=300), seed=seed)
        assert trained.predict(["jump twice"])[0].words == ("JUMP", "JUMP")


def test_a_word_without_a_class_is_not_used_like_others():
    """The negative control of the test above."""
    torch.set_default_dtype(torch.float32)
    pairs = [*PAIRS, Pair(("jump",), ("JUMP",))]
    wrong = 0
    for seed in range(3):
        trained = fit(pairs, (), model=SMALL, training=TrainingConfig(updates=300), seed=seed)
        wrong += trained.predict(["jump after look twice"])[0].words != ("LOOK", "LOOK", "JUMP")
    assert wrong


def start_of_scan(seed, warm_start, restarts=0):
    """A short training on short commands, cold or warm, and the classes that were not learned."""
    torch.set_default_dtype(torch.float32)
    pairs = random.Random(0).sample([p for p in everything() if len(p.target) <= 8], 60)
    trained = fit(
        pairs,
        CLASSES["both"],
        model=TransducerConfig(hidden=32, embedding=16, dropout=0.0, warm_start=warm_start),
        training=TrainingConfig(updates=250, restarts=restarts),
        seed=seed,
    )
    return stuck_classes(trained.model, Rows.of(pairs, trained.symmetry))


def test_stuck_classes_of_a_cold_start_are_found_and_a_warm_start_has_none():
    """Cold, some seeds align a class's words with words of no class, and stay there."""
    seed = next(seed for seed in range(3, 15) if start_of_scan(seed, 0.0))
    assert start_of_scan(seed, 0.1) == ()
    assert start_of_scan(seed, 0.0, restarts=3) == ()  # validation notices it


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "training.epochs is 0; it must be 1 or more"),
        ({"batch": 0}, "training.batch is 0"),
        ({"seconds": 0.0}, "training.seconds is 0.0; it must be above 0"),
        ({"learning_rate": 0.0}, "training.learning_rate is 0.0; it must be above 0"),
        ({"learning_rate": 1001.0}, "training.learning_rate is 1001.0; it must be at most 1000"),
        ({"clip": -1.0}, "training.clip is -1.0"),
        ({"weight_decay": -0.1}, "training.weight_decay is -0.1; it must be 0 or more"),
    ],
)
def test_impossible_settings_are_rejected(settings, message):
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**settings)


def test_capitals_are_read_in_training_and_in_prediction_and_saved(tmp_path, run):
    (tmp_path / "pairs.tsv").write_text(
        "The cat ran\trun cat\nThe dog ran\trun dog\nsee the cat\tsee cat\nsee the dog\tsee dog\n"
    )
    out = ("--model.aligner", "recursive", "--classes", "discover", "--quiet", "--capitals")
    status, _, err = run("train", "--data", tmp_path / "pairs.tsv", "--out", tmp_path / "r", *out)
    assert (status, err) == (0, "")
    trained = Trained.load(tmp_path / "r")
    assert "The" not in trained.symmetry.source.index
    one, other = trained.predict(["The cat ran", "the cat ran"])
    assert one == other
    assert one.words == ("run", "cat")
    trained.save(tmp_path / "kept")
    assert Trained.load(tmp_path / "kept").capitals
    assert Run.open(tmp_path / "r").load_data().train[0].source[0] == "the"
    _, out, _ = run("check", tmp_path / "pairs.tsv")
    assert "source words that differ in case are different words: The and the" in out
    assert "train with --capitals" in out
