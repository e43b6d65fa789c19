"""From pairs to a model that one can rely on: classes, rules, a judgement, and what to write next.

The judgement is a cross-validation over forms: all pairs whose sources differ only in words of a
class are held out together, and a model that is learned from the others, classes included, answers
them. So every held-out sentence has a form that the model of its fold has never seen.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from equitrans.analysis import Prediction, Report
from equitrans.data import AnyPair, Pair, as_pairs, format_tsv, inspect_pairs
from equitrans.errors import ConfigError, DataError
from equitrans.models import Learned, ModelConfig, Suggestion, TransducerConfig
from equitrans.paper import LexicalClass
from equitrans.settings import check_count, check_iterable, check_pairs
from equitrans.training import studied
from equitrans.training.asking import sentences_to_ask
from equitrans.training.config import TrainingConfig, usual_training
from equitrans.training.fitting import fitted
from equitrans.training.trained import Trained

FOLDS = 5
"""Number of folds if time allows."""

QUICK_UPDATES = 500
"""Number of updates of a second model that was not asked for: seconds for hundreds of pairs."""

SAMPLE, USEFUL = 200, 0.5
"""Number of pairs on which a second model that was not asked for is tried, and the share that it
must predict; a worse model is left out."""

SECONDS = 30.0
"""CPU time in seconds after which no further fold begins; one fold is always judged."""

RULES, SECOND = TransducerConfig(aligner="recursive"), TransducerConfig()

Tell = Callable[[str], None]
"""A function that shows a text."""


@dataclass(frozen=True)
class Held:
    """The answers to held-out pairs, by models that saw no sentence of their forms."""

    report: Report
    seconds: tuple[Prediction | None, ...]
    """For each pair that the rules refuse, the answer of the second model, if there is one."""
    folds: int
    """Number of folds that were judged."""
    planned: int
    """Number of folds into which the forms were divided."""

    @property
    def right(self) -> int:
        """Number of pairs that the rules answer rightly."""
        return sum(self.report.right)

    @property
    def wrong(self) -> int:
        """Number of pairs that the rules answer wrongly."""
        return len(self.report.pairs) - self.right - self.report.refused

    @property
    def sure(self) -> tuple[int, int]:
        """Number of answers that are not doubtful, and of right ones among them."""
        judged = zip(self.report.predictions, self.report.right, strict=True)
        sure = [right for p, right in judged if not (p.refused or p.doubtful)]
        return len(sure), sum(sure)

    @property
    def second(self) -> tuple[int, int]:
        """Number of refused pairs that the second model answers, and of right answers."""
        asked = [
            p.gives(pair.target)
            for pair, p in zip(self.report.pairs, self.seconds, strict=True)
            if p is not None and not p.refused
        ]
        return len(asked), sum(asked)


@dataclass(frozen=True)
class Study:
    """What was learned from pairs, and how far it can be trusted; ``print`` shows the page."""

    trained: Trained
    """The rules."""
    second: Trained | None
    """A model without rules for sentences that the rules refuse, if one was learned."""
    held: Held | None
    """The judgement; None with 0 folds, and if all pairs have one form."""
    suggestions: tuple[Suggestion, ...]
    """Sentences whose targets would teach the most."""
    warnings: tuple[str, ...]
    seconds: float
    """Time of everything."""

    @property
    def grammar(self) -> Learned:
        """The rules with their evidence."""
        grammar = self.trained.grammar
        assert grammar is not None
        return grammar

    @cached_property
    def unexplained(self) -> tuple[tuple[Pair, str], ...]:
        """The pairs that the rules do not explain, each with the reason and, where the rules give
        another target, that target.
        """
        return studied.unexplained(self.trained)

    def __str__(self) -> str:
        return studied.page(self)

    def _repr_html_(self) -> str:
        return studied.html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON or a data frame."""
        return studied.to_dict(self)


def learn(
    pairs: Iterable[AnyPair],
    *,
    folds: int | None = None,
    seconds: float = SECONDS,
    second: bool | TrainingConfig | None = None,
    suggestions: int = 5,
    seed: int = 0,
    characters: bool = False,
    split_words: str | Literal["auto"] | None = "auto",
    tell: Tell = lambda _: None,
    report: Tell | None = None,
) -> Study:
    """Discover classes, learn rules, judge them on held-out forms and suggest what to write next.

    Without ``folds``, as many of FOLDS folds are judged as end within ``seconds`` of CPU time, at
    least one; with 0 none. The search for the rules of a fold is shorter than that of all pairs.
    If the rules leave pairs unexplained, a second model without rules is learned too, in a short
    training, and left out if that taught it less than half of the pairs; ``second`` gives it a full
    training (True: half a minute for each fold), other settings, or none (False).
    ``split_words`` are the signs at which target words are read apart; "auto" finds them. ``tell``
    gets a text about each stage, and ``report`` texts about the progress within one.

    >>> words = ["lamp", "fan", "heater"]
    >>> pairs = [(f"start the {w}", f"{w.upper()} start") for w in words]
    >>> pairs += [(f"stop the {w}", f"{w.upper()} stop") for w in words[:2]]
    >>> learn(pairs).trained.predict(["stop the heater"])[0].words
    ('HEATER', 'stop')
    """
    started, begun = time.monotonic(), time.thread_time()
    if folds is not None and (type(folds) is not int or folds < 0 or folds == 1):
        raise ConfigError(f"folds is {folds}; it must be 0, or 2 or more")
    check_count("suggestions", suggestions)
    check_iterable("pairs", pairs)
    pairs = as_pairs(pairs, characters=characters)
    if not pairs:
        raise DataError("there are no pairs to learn from")
    check_pairs(pairs)
    if split_words == "auto":
        split_words = None if characters else compound_sign(pairs)
        if split_words is not None:
            tell(f"reading target words apart at {signs(split_words)}")
    training = second if isinstance(second, TrainingConfig) else usual_training(SECOND)
    if second is None:
        training = replace(training, updates=QUICK_UPDATES, restarts=0)
    learner = _Learner(seed, characters, split_words, training, report)
    tell(f"learning rules from {len(pairs)} pair{'' if len(pairs) == 1 else 's'}")
    trained, warnings = learner.rules(pairs)
    grammar = trained.grammar
    assert grammar is not None
    backup = None
    if second is not False and grammar.exceptions:
        some = len(grammar.exceptions)
        are = "pair is" if some == 1 else "pairs are"
        tell(f"learning a second model: {some} {are} unexplained")
        backup, told = learner.second(pairs, trained)
        if second is None and (right := backup.score(pairs[:SAMPLE], width=1)) < USEFUL:
            backup, told = (
                None,
                [
                    f"it is left out: a short training of {QUICK_UPDATES} updates taught it only "
                    f"{100 * right:.0f} % of the pairs; --second full trains it to the end"
                ],
            )
        warnings += [f"second model: {warning}" for warning in told]
    limit = None if folds is not None else begun + seconds
    wants = backup is not None
    parts = divide(pairs, trained, FOLDS if folds is None else folds, seed=seed)
    held = _judge(learner, pairs, parts, trained, wants, limit, tell) if len(parts) > 1 else None
    return Study(
        trained=trained if held is None else _with_figures(trained, held),
        second=backup,
        held=held,
        suggestions=sentences_to_ask(trained, suggestions, pairs) if grammar.texts else (),
        warnings=studied.with_pairs(
            [text.removeprefix("learned rules: ") for text in warnings], trained, pairs
        ),
        seconds=time.monotonic() - started,
    )


def _with_figures(trained: Trained, held: Held) -> Trained:
    """The model with the figures of its judgement, for its card."""
    figures = replace(
        trained.origin.figures,
        test_set=f"held-out forms, {held.folds} of {held.planned} folds",
        test_pairs=len(held.report.pairs),
        test_right=held.right,
        test_refused=held.report.refused,
    )
    return replace(trained, origin=replace(trained.origin, figures=figures))


def compound_sign(pairs: Sequence[Pair]) -> str | None:
    """The signs that join the parts of target words, such as . in kitchen.lamp, or None."""
    lines = format_tsv(pairs).encode().splitlines(keepends=True)
    found = inspect_pairs(lines).findings
    return next((finding.sign for finding in found if finding.sign is not None), None)


def signs(split_words: str) -> str:
    """The signs at which words are read apart, for people: each once."""
    return " ".join(dict.fromkeys(split_words))


@dataclass(frozen=True)
class _Learner:
    """How models are learned: the same way from all pairs and in every fold."""

    seed: int
    characters: bool
    split: str | None
    training: TrainingConfig
    """Settings of the second model."""
    report: Tell | None

    def rules(self, pairs: Sequence[Pair], *, quick: bool = False) -> tuple[Trained, list[str]]:
        """The rules of pairs, with classes that are discovered, and the warnings."""
        return self._fitted(pairs, "discover", model=RULES, quick=quick)

    def second(self, pairs: Sequence[Pair], trained: Trained) -> tuple[Trained, list[str]]:
        """A model without rules that has the classes of another, and the warnings."""
        classes = trained.symmetry.classes
        return self._fitted(pairs, classes, model=SECOND, training=self.training)

    def _fitted(
        self,
        pairs: Sequence[Pair],
        classes: Iterable[LexicalClass] | Literal["discover"],
        *,
        model: ModelConfig,
        training: TrainingConfig | None = None,
        quick: bool = False,
    ) -> tuple[Trained, list[str]]:
        return fitted(
            pairs,
            classes,
            model=model,
            training=training,
            seed=self.seed,
            characters=self.characters,
            split_words=self.split,
            quick=quick,
            report=self.report,
        )


def _judge(
    learner: _Learner,
    pairs: Sequence[Pair],
    parts: Sequence[tuple[Pair, ...]],
    trained: Trained,
    second: bool,
    limit: float | None,
    tell: Tell,
) -> Held:
    """Answer held-out pairs fold by fold; a fold that would end after ``limit`` is left out, except
    the first.
    """
    asked: list[Pair] = []
    answers: list[Prediction] = []
    seconds: list[Prediction | None] = []
    longest = 0.0
    done = 0
    for part in parts:
        begun = time.thread_time()
        if limit is not None and done and begun + longest > limit:
            break
        tell(f"judging: fold {done + 1} of {len(parts)}, {len(part)} held-out pairs")
        hidden = set(part)
        others = [pair for pair in pairs if pair not in hidden]
        model, _ = learner.rules(others, quick=True)
        found = model.predict([pair.source for pair in part])
        asked += part
        answers += found
        backup = learner.second(others, model)[0] if second else None
        refused = [pair.source for pair, p in zip(part, found, strict=True) if p.refused]
        said = iter([] if backup is None else backup.predict(refused))
        seconds += [next(said, None) if p.refused else None for p in found]
        longest = max(longest, time.thread_time() - begun)
        done += 1
    templates = tuple(trained.template(pair.source) for pair in asked)
    report = Report(tuple(asked), tuple(answers), templates, loss=None, scored=0)
    return Held(report, tuple(seconds), done, len(parts))


def divide(
    pairs: Sequence[Pair], trained: Trained, folds: int, *, seed: int
) -> list[tuple[Pair, ...]]:
    """The distinct pairs in up to ``folds`` parts of about equal size; pairs of one form share a
    part.
    """
    forms: dict[tuple[str, ...], list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        forms.setdefault(trained.template(pair.source), []).append(pair)
    order = list(forms.values())
    random.Random(seed).shuffle(order)
    parts: list[list[Pair]] = [[] for _ in range(min(folds, len(order)))]
    for group in order if parts else ():
        min(parts, key=len).extend(group)
    return [tuple(part) for part in parts]
