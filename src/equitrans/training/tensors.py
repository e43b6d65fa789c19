"""Safetensors files with a checksum, and two checks before memory is allocated: a file with the
wrong tensors is rejected by its header, and a model with more weights than its file is not built.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from equitrans.errors import RunError, named, shown

LONGEST_HEADER = 4_000_000
"""Largest header in bytes; longer ones are rejected unread. A checkpoint with the largest number
of classes needs half of it."""

MOST_DIMENSIONS = 8
"""Largest number of dimensions of a tensor; no model has more than four."""

LARGEST_WEIGHT = 1e6
"""Largest absolute value of a weight. Training gives values below 100; products of weights above
1e12 overflow in float32."""

DIGEST = "sha256"
"""Metadata key of the SHA-256 checksum of the data behind the header."""


@dataclass(frozen=True)
class Header:
    """Shapes, data types and metadata of a safetensors file."""

    shapes: Mapping[str, tuple[int, ...]]
    kinds: Mapping[str, str]
    metadata: Mapping[str, str]

    @property
    def numbers(self) -> int:
        """Number of entries of all tensors together."""
        return sum(map(math.prod, self.shapes.values()))


def pack(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a safetensors file, with the SHA-256 checksum of its data in the metadata."""
    plain = save(dict(tensors))
    numbers = memoryview(plain)[8 + int.from_bytes(plain[:8], "little") :]
    digest = hashlib.sha256(numbers).hexdigest()
    return save(dict(tensors), metadata={**(metadata or {}), DIGEST: digest})


def read_header(path: Path) -> Header:
    """The header of a safetensors file; raise RunError unless it describes the whole file."""
    with path.open("rb") as raw:
        length = int.from_bytes(raw.read(8), "little")
    if LONGEST_HEADER < length < path.stat().st_size:
        raise _damaged(path, f"a header of {length} bytes; the limit is {LONGEST_HEADER}")
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
        if (most := max(map(len, shapes.values()), default=0)) > MOST_DIMENSIONS:
            found = f"a tensor of {most} dimensions; the limit is {MOST_DIMENSIONS}"
            raise _damaged(path, found)
        kinds = {name: part.get_dtype() for name, part in slices.items()}
        return Header(shapes, kinds, file.metadata() or {})


def check_tensors(path: Path, header: Header, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise RunError unless a file has the expected names and shapes, and real numbers only."""
    for name in expected:
        if name not in header.shapes:
            raise _unfit(path, f"tensor {named(name)} is missing")
    for name, shape in header.shapes.items():
        if name not in expected:
            raise _unfit(path, f"unexpected tensor {shown(name)}")
        if shape != expected[name]:
            found = f"{named(name)} has shape {_by(shape)}"
            raise _unfit(path, f"{found}; expected {_by(expected[name])}")
        if (kind := header.kinds[name]) not in ("F32", "F64"):
            raise _unfit(path, f"{named(name)} has data type {kind}; expected F32 or F64")


def check_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raise RunError if a tensor has a number that is NaN or infinite."""
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise RunError(f"{path}: {named(name)} has NaN or infinite numbers; train again")


def load_weights(path: Path, header: Header, model: nn.Module) -> None:
    """Copy the weights of a file into a model; raise RunError unless they fit. A weight that is
    NaN, infinite or so large that predictions would overflow is rejected.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    check_tensors(path, header, shapes)
    model.load_state_dict(read_tensors(path))
    weights = model.state_dict()
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise RunError(f"{path} has NaN or infinite weights; train the model again")
    for name, tensor in weights.items():
        if (tensor.abs() > LARGEST_WEIGHT).any():
            found = f"{named(name)} has weights of up to {float(tensor.abs().max()):.3g}"
            raise RunError(f"{path}: {found}; the limit is {LARGEST_WEIGHT:.0e}")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file whose header was checked; raise RunError if the checksum differs."""
    with _opened(path) as file:
        expected = (file.metadata() or {}).get(DIGEST)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    with path.open("rb") as raw:
        raw.seek(int.from_bytes(raw.read(8), "little"), 1)
        found = hashlib.file_digest(raw, "sha256").hexdigest()
    if expected not in (None, found):
        raise _damaged(path, "its data do not match its SHA-256 checksum")
    return tensors


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file as safetensors opens it, which checks that the header describes the whole file."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, MemoryError) as error:
        raise _damaged(path, str(error)) from None


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _damaged(path: Path, why: str) -> RunError:
    return RunError(f"{path} is damaged: {why[:200] if why.isprintable() else shown(why)}")


def _unfit(path: Path, why: str) -> RunError:
    return RunError(f"{path} does not fit the model that {path.parent} describes: {why}")


def _by(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "of a single number"


class Budget(TorchFunctionMode):
    """A context that raises RunError before new tensors have more than ``numbers`` entries in all.

    >>> import torch
    >>> with Budget(10, "more than {}"):
    ...     torch.zeros(2, 3) + torch.zeros(5)
    Traceback (most recent call last):
    equitrans.errors.RunError: more than 10
    """

    def __init__(self, numbers: int, message: str) -> None:
        super().__init__()
        self._left, self._message = numbers, message.format(numbers)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            size = args or (kwargs["size"],)
            self._left -= math.prod(size[0] if isinstance(size[0], tuple | list) else size)
            if self._left < 0:
                raise RunError(self._message)
        return func(*args, **kwargs)


_FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
"""The functions that allocate a tensor of a given size."""
