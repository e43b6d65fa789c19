"""One model of the page: what is computed once for it, from its directory and its run's data."""

from bisect import bisect_left
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.data import Data
from equitrans.errors import EquitransError
from equitrans.explorer import views
from equitrans.explorer.evaluation import Evaluation
from equitrans.explorer.schema import Model, Recorded
from equitrans.paper import EOS
from equitrans.training import Run, Trained

LARGEST_TABLE = 4_000_000
"""Number of entries of a translator's table; a larger table is not kept in memory."""
COMMANDS = 100_000
"""Number of commands of the data to choose from: a search through them takes milliseconds."""
SUGGESTED = 12
"""Number of commands suggested at once."""


class FixedTranslator(nn.Module):
    """A translator's table, computed once: alignments take a third less time."""

    table: Float[Tensor, "x y"]

    def __init__(self, translator: nn.Module, words: int) -> None:
        super().__init__()
        self.register_buffer("table", translator(torch.arange(words)))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Return rows of the table."""
        return self.table[words]

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Return log p(y_m | x_n)."""
        return self.table[source[:, None], target[:, :, None]]


@torch.no_grad()
def fix_translator(trained: Trained) -> Trained:
    """Return a model with a FixedTranslator, or the model itself if it has no table or a large
    one.
    """
    model, words = trained.model, len(trained.symmetry.source)
    has_table = model.translation_table(torch.tensor([EOS])) is not None
    if not has_table or words * len(trained.symmetry.target) > LARGEST_TABLE:
        return trained
    fixed = deepcopy(model)
    fixed.register_module("translator", FixedTranslator(model.get_submodule("translator"), words))
    return replace(trained, model=fixed.eval())


@dataclass(frozen=True)
class Entry:
    """A model by its name, and its run if the directory has one."""

    name: str
    trained: Trained
    run: Run | None
    given: Data | None = None
    """Pairs of a model that has no run."""

    @cached_property
    def fixed(self) -> Trained:
        """The model for predictions and alignments, with a limit on the length of predictions."""
        fixed = fix_translator(self.trained)
        return replace(fixed, max_length=min(fixed.max_length, views.LONGEST_TARGET))

    @cached_property
    def data(self) -> Data | str:
        """The run's pairs, or why there are none."""
        if self.run is None:
            return self.given or "This model was exported without its data."
        return load(self.run)

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Commands of the data, test pairs first."""
        if isinstance(self.data, str):
            return ()
        pairs = chain(self.data.test, self.data.valid, self.data.train)
        texts = dict.fromkeys(self.trained.text(pair.source) for pair in pairs)
        return tuple(islice(texts, COMMANDS))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.commands)

    def suggest(self, like: str) -> tuple[str, ...]:
        """Return commands that begin with a text, or else contain it; for the empty text, commands
        spread evenly over the data.
        """
        like = " ".join(like.split()) if not self.trained.characters else like
        if not like:
            step = max(1, len(self.commands) // SUGGESTED)
            return self.commands[step // 2 :: step][:SUGGESTED]
        start = bisect_left(self._sorted, like)
        found = [c for c in self._sorted[start : start + SUGGESTED] if c.startswith(like)]
        return tuple(found or islice((c for c in self.commands if like in c), SUGGESTED))

    @cached_property
    def records(self) -> Recorded:
        """The orbits recorded through training."""
        if self.run is None or self.run.config.orbits is None:
            return Recorded(None, (), (), (), "Nothing was recorded through training.")
        try:
            return views.recorded(self.trained, self.run.config.orbits, self.run.orbit_records())
        except EquitransError as error:
            return Recorded(None, (), (), (), f"The record cannot be read: {error}.")

    @cached_property
    def evaluation(self) -> Evaluation | str:
        """An evaluation on the test pairs, or else the validation pairs; or why there is none.

        Rules are learned from all pairs, so a recursive aligner has no validation pairs.
        """
        if isinstance(self.data, str):
            return self.data
        if self.data.test:
            return Evaluation(self.fixed, self.data.test, "test")
        if self.trained.model.learned is not None:
            return Evaluation(self.fixed, self.data.train + self.data.valid, "training")
        if self.data.valid:
            return Evaluation(self.fixed, self.data.valid, "validation")
        return "The run has neither test nor validation pairs."

    def describe(self) -> Model:
        """Describe the model."""
        has_data, recorded = isinstance(self.data, Data), self.records.sentence
        return views.describe(self.name, self.trained, has_data=has_data, recorded=recorded)


def load(run: Run) -> Data | str:
    """Return the pairs of a run, or why there are none.

    config.json may be a stranger's and name any file, so the reason quotes no part of a file.
    """
    try:
        return run.load_data()
    except (EquitransError, OSError):
        return (
            "The data of the training cannot be read, or they have changed. "
            "The command equitrans evaluate shows the mistakes on any file of pairs."
        )
