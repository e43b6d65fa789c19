"""Files of tensors, looked at before they are read: a file that is not just what was asked for is
refused by its header alone, and a model that asks for more room than its file has is not built.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.overrides import TorchFunctionMode

from equitrans.errors import RunError

LONGEST_HEADER = 4_000_000
"""Bytes; a training with as many classes as there may be has half of it."""

DIGEST = "sha256"

_SIZES = {"F64": 8, "F32": 4, "I64": 8, "U8": 1}
"""The kinds of numbers that we write, and their bytes."""


@dataclass(frozen=True)
class Entry:
    """What a header says of one tensor."""

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Header:
    """What a file says it holds, found to be of the size that this takes."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]

    @property
    def numbers(self) -> int:
        """How many numbers there are in all."""
        return sum(math.prod(entry.shape) for entry in self.entries.values())


def pack(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """A file of tensors, with the SHA-256 of their numbers in its header."""
    plain = save(dict(tensors))
    numbers = memoryview(plain)[8 + int.from_bytes(plain[:8], "little") :]
    digest = hashlib.sha256(numbers).hexdigest()
    return save(dict(tensors), metadata={**(metadata or {}), DIGEST: digest})


def read_header(path: Path) -> Header:
    """The header of a safetensors file: eight bytes that give its length, then JSON."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise _damaged(path, "it ends before its header does")
        if length > LONGEST_HEADER:
            raise _damaged(path, f"a header of {length} bytes; at most {LONGEST_HEADER} are read")
        text = file.read(length)
    try:
        content = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _damaged(path, "its header is not JSON") from None
    if not isinstance(content, dict):
        raise _damaged(path, "its header is not an object")
    metadata = content.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged(path, "its metadata are not texts")
    spans = {name: _entry(path, name, value) for name, value in content.items()}
    end = 0
    for name, (_, start, stop) in sorted(spans.items(), key=lambda item: item[1][1:]):
        if start != end:
            raise _damaged(path, f"{name} begins at byte {start} of the data, not at {end}")
        end = stop
    if size != 8 + length + end:
        raise _damaged(path, f"it has {size} bytes; its header declares {8 + length + end}")
    return Header({name: entry for name, (entry, _, _) in spans.items()}, metadata)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names stand once each, so that no reader sees another file than this one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _entry(path: Path, name: str, value: Any) -> tuple[Entry, int, int]:
    try:
        kind, shape, (start, stop) = value["dtype"], value["shape"], value["data_offsets"]
        if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)):
            raise ValueError
        size = _SIZES[kind] * math.prod(shape)
    except (KeyError, TypeError, ValueError):
        raise _damaged(path, f"{name!r} is declared as {str(value)[:100]}") from None
    if stop - start != size:
        raise _damaged(path, f"{name!r} has {stop - start} bytes; its shape takes {size}")
    return Entry(kind, tuple(shape)), start, stop


def check_tensors(path: Path, header: Header, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a file of other tensors than those expected, by name and shape; all must hold real
    numbers.
    """
    for name in expected:
        if name not in header.entries:
            raise _other(path, f"{name} is missing")
    for name, entry in header.entries.items():
        if name not in expected:
            raise _other(path, f"it has no {name!r}")
        if entry.shape != expected[name]:
            raise _other(path, f"{name} is {_by(entry.shape)}, not {_by(expected[name])}")
        if entry.kind not in ("F32", "F64"):
            raise _other(path, f"{name} is of kind {entry.kind}; it must be F32 or F64")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file whose header was found to be right; numbers that are not those that
    were written are refused, where the file says which these were.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        metadata = json.loads(file.read(length)).get("__metadata__", {})
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if metadata.get(DIGEST, found) != found:
            raise _damaged(path, "its numbers are not those that were written")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise _damaged(path, str(error)) from None


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin in a certain way, under what follows."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _damaged(path: Path, why: str) -> RunError:
    return RunError(f"{path} is damaged: {why}")


def _other(path: Path, why: str) -> RunError:
    return RunError(f"{path} is not of the model that {path.parent} describes: {why}")


def _by(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a single number"


class Budget(TorchFunctionMode):
    """While it holds, tensors of at most so many numbers in all are made from nothing.

    Counted before they are made: a setting of a thousand million is refused, not tried.

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
        if func in _MAKERS:
            size = args or (kwargs["size"],)
            self._left -= math.prod(size[0] if isinstance(size[0], tuple | list) else size)
            if self._left < 0:
                raise RunError(self._message)
        return func(*args, **kwargs)


_MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
"""What makes tensors from nothing but a size."""
