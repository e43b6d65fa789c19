"""The batch at which a loss was no number, kept so that it can be met again.

``broken.safetensors`` has ``weights.*``, the model as the batch met it; ``batch.*``, the batch's
source, target, weight, form and first; ``random``, torch's random state, which decides on dropout;
``loss``, what came of it; and ``moment``, updates and the share of training done. Without a moment
the batch is one of validation.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from equitrans.analysis import in_parts
from equitrans.data import Rows
from equitrans.errors import RunError
from equitrans.files import write_atomically
from equitrans.paper import Batch, Model, Moment
from equitrans.training.tensors import pack, part, read_header, read_tensors


@dataclass(frozen=True)
class Breakdown:
    """A batch, and all that decides its loss."""

    batch: Batch
    weights: Mapping[str, Tensor]
    random: Tensor
    loss: float
    moment: Moment | None = None

    @classmethod
    def met(
        cls,
        model: Model,
        batch: Batch,
        *,
        random: Tensor,
        loss: float,
        moment: Moment | None = None,
    ) -> "Breakdown":
        """Before anything else happens to the model."""
        weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
        return cls(batch.to(torch.device("cpu")), weights, random, loss, moment)

    @classmethod
    def among(cls, model: Model, data: Rows) -> "Breakdown | None":
        """The first batch of some data whose loss is no number after training, if there is one."""
        for batch in in_parts(model, data):
            found = cls.met(model, batch, random=torch.get_rng_state(), loss=math.nan)
            if not math.isfinite(loss := found.meet(model)):
                return replace(found, loss=loss)
        return None

    def meet(self, model: Model) -> float:
        """The loss again, of a model of the same settings, which is left with these weights."""
        device = next(model.parameters()).device
        model.load_state_dict(self.weights)
        model.train(self.moment is not None)
        batch = self.batch.to(device)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random)
            losses = model.loss(batch, moment=self.moment)
            return float((losses * batch.weight).sum() / batch.weight.sum())

    def save(self, path: Path) -> None:
        """One file, of tensors only."""
        tensors = {f"weights.{name}": value for name, value in self.weights.items()}
        tensors |= {f"batch.{f.name}": getattr(self.batch, f.name) for f in fields(Batch)}
        tensors |= {"random": self.random, "loss": torch.tensor(self.loss)}
        if self.moment is not None:
            moment = [float(self.moment.updates), self.moment.done]
            tensors["moment"] = torch.tensor(moment, dtype=torch.float64)
        write_atomically(path, pack({name: t.contiguous() for name, t in tensors.items()}))

    @classmethod
    def load(cls, path: Path | str) -> "Breakdown":
        """Read what was saved."""
        path = Path(path)
        needed = {"random", "loss", *(f"batch.{f.name}" for f in fields(Batch))}
        if missing := sorted(needed - read_header(path).entries.keys()):
            raise RunError(f"{path} does not have a batch: no {missing[0]}")
        tensors = read_tensors(path)
        moment = tensors["moment"].tolist() if "moment" in tensors else None
        return cls(
            batch=Batch(**{f.name: tensors[f"batch.{f.name}"] for f in fields(Batch)}),
            weights=part(tensors, "weights."),
            random=tensors["random"],
            loss=float(tensors["loss"]),
            moment=None if moment is None else Moment(int(moment[0]), moment[1]),
        )
