"""The models that are shown, each loaded once. Requests name them and never reach the disk by a
path of their own.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.data import Data
from equitrans.errors import ConfigError, DataError, EquitransError, nearest
from equitrans.explorer.judging import Judge
from equitrans.explorer.schema import Added, Model, Recorded
from equitrans.explorer.views import add_word, describe, recorded
from equitrans.files import read_json
from equitrans.paper import EOS
from equitrans.training import Run, Trained

ADDED = 8
"""So many words can be added to a model at once."""
EXTENDED = 32
"""So many extended models are kept."""
LARGEST_TABLE = 4_000_000
"""A table of so many entries is kept."""
SUGGESTED = 12
"""So many commands are suggested at once."""


class MissingRunError(EquitransError):
    """A run that is not shown."""


class Settled(nn.Module):
    """A translator's table, worked out once."""

    table: Float[Tensor, "x y"]

    def __init__(self, translator: nn.Module, words: int) -> None:
        super().__init__()
        self.register_buffer("table", translator(torch.arange(words)))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Rows of the table."""
        return self.table[words]

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n)."""
        return self.table[source[:, None], target[:, :, None]]


@torch.no_grad()
def settle(trained: Trained) -> Trained:
    """The same model, which will not learn any more and so has its table at hand."""
    model = trained.model
    size = len(trained.symmetry.source) * len(trained.symmetry.target)
    if model.translation_table(torch.tensor([EOS])) is None or size > LARGEST_TABLE:
        return trained
    quick, translator = deepcopy(model), model.get_submodule("translator")
    setattr(quick, "translator", Settled(translator, len(trained.symmetry.source)))  # noqa: B010
    return replace(trained, model=quick.eval())


@dataclass(frozen=True)
class Shown:
    """A model by its name, and the run that it comes from if that is here too."""

    name: str
    trained: Trained
    run: Run | None

    @cached_property
    def quick(self) -> Trained:
        """The model for whoever only asks."""
        return settle(self.trained)

    @cached_property
    def data(self) -> Data | str:
        """The run's pairs, or why there are none."""
        if self.run is None:
            return "This model was exported without its data."
        try:
            return self.run.load_data()
        except (EquitransError, OSError) as error:
            return f"The data cannot be read: {error}."

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Commands of the data: those to judge by first."""
        if isinstance(self.data, str):
            return ()
        pairs = self.data.test + self.data.valid + self.data.train
        return tuple(dict.fromkeys(self.trained.text(pair.source) for pair in pairs))

    def all_commands(self) -> tuple[str, ...]:
        """The same, for whoever wants them later."""
        return self.commands

    def suggest(self, like: str) -> tuple[str, ...]:
        """Some commands that begin with a text, or else that have it in them; spread evenly over
        the data if the text is empty.
        """
        like = " ".join(like.split()) if not self.trained.characters else like
        if not like:
            step = max(1, len(self.commands) // SUGGESTED)
            return self.commands[step // 2 :: step][:SUGGESTED]
        start = bisect_left(self._sorted, like)
        found = [c for c in self._sorted[start : start + SUGGESTED] if c.startswith(like)]
        if not found:
            found = list(islice((c for c in self.commands if like in c), SUGGESTED))
        return tuple(found)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.commands)

    @cached_property
    def records(self) -> Recorded:
        """What was recorded of orbits through training."""
        if self.run is None or self.run.config.orbits is None:
            return Recorded(None, (), (), (), "Nothing was recorded through training.")
        try:
            return recorded(self.trained, self.run.config.orbits, self.run.orbit_records())
        except EquitransError as error:
            return Recorded(None, (), (), (), f"The record cannot be read: {error}.")

    @cached_property
    def judge(self) -> Judge | str:
        """What judges the model by its test pairs, or by those held out; or why nothing does."""
        if isinstance(self.data, str):
            return self.data
        pairs, which = self.data.test, "test"
        if not pairs:
            pairs, which = self.data.valid, "validation"
        if not pairs:
            return "The run has neither test nor validation pairs."
        return Judge(self.quick, pairs, which)

    def describe(self) -> Model:
        """The model at a glance."""
        return describe(
            self.name,
            self.trained,
            has_data=self.run is not None,
            recorded=self.records.sentence,
        )


@dataclass(frozen=True)
class Extended:
    """A model with words added to it, and the same for whoever only asks."""

    trained: Trained
    quick: Trained
    added: Added


class Shelf:
    """Models by name, and with words added to them."""

    def __init__(self, shown: Iterable[Shown]) -> None:
        self.shown = {one.name: one for one in shown}
        self._extended: OrderedDict[tuple[str, ...], Extended] = OrderedDict()

    @classmethod
    def load(cls, paths: Iterable[Path | str]) -> "Shelf":
        """The models of some directories; equal names get numbers."""
        shown: dict[str, Shown] = {}
        for path in map(Path, paths):
            stem = path.resolve().name or "model"
            name = next(n for n in _numbered(stem) if n not in shown)
            trained = Trained.load(path)
            has_run = "data" in read_json(path / "config.json")
            shown[name] = Shown(name, trained, Run.open(path) if has_run else None)
        if not shown:
            raise ConfigError("there is nothing to show: give one run directory or more")
        return cls(shown.values())

    def find(self, name: str) -> Shown:
        """What is shown under a name."""
        if name not in self.shown:
            raise MissingRunError(f"there is no run {name!r} here{nearest(name, self.shown)}")
        return self.shown[name]

    def extended(self, name: str, add: tuple[str, ...]) -> Extended:
        """A model with words added to it, each written ``word translation class``."""
        one = self.find(name)
        if not add:
            raise DataError("there is no word to add")
        if len(add) > ADDED:
            raise DataError(f"{len(add)} words are too many to add at once; {ADDED} can be")
        key = (name, *add)
        found = self._extended.get(key)
        if found is None:
            parts = add[-1].split(maxsplit=2)
            if len(parts) != 3:
                raise DataError(
                    f"{add[-1]!r} does not say what to add; write: word translation class"
                )
            before = self.extended(name, add[:-1]).trained if add[1:] else one.trained
            trained, added = add_word(before, parts[2], parts[0], parts[1])
            found = self._extended[key] = Extended(trained, settle(trained), added)
            while len(self._extended) > EXTENDED:
                self._extended.popitem(last=False)
        else:
            self._extended.move_to_end(key)
        return found


def _numbered(stem: str) -> Iterable[str]:
    """A name, and the name with numbers."""
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
