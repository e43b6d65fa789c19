"""Records: the settings and figures of one training each, without weights.

A folder of records has one file per split, ``SPLIT.jsonl``, with one record per line, sorted by
name. Tables and pictures are made from records alone.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from equitrans.errors import ConfigError, shown
from equitrans.experiments.jobs import CURVE, FORMAT, Job, Record
from equitrans.files import locked, read_text, write_atomically

LOCK_SECONDS = 60.0
"""Seconds that ``Records.add`` waits for other processes that write to the same file."""

NUMBER = int | float
SETTINGS = {"seed": int, "settings": {"width": int, "official": bool}}
FIGURES = {
    "test": {"exact_match": NUMBER},
    "valid": {"loss": NUMBER | None},
    "seconds": {"training": NUMBER},
    "curve": {name: [NUMBER | None] for name in CURVE},
    "orbits": [{"epoch": int, "observed": [int], "sharpness": NUMBER | None}],
}
"""Types of the values that tables and pictures use; a list has one type for all its items."""

OPTIONAL: Record = {"width": 3, "official": False, "orbits": [], "sharpness": None, "failed": ""}
"""Defaults of names that a record may lack."""

MISSING = object()


@dataclass(frozen=True)
class Records:
    """A folder of records. Several processes of one machine may add records at once."""

    directory: Path

    def find(self, job: Job) -> Record | None:
        """The record of a job with the same settings, or None.

        Folders of earlier versions, with one JSON file per record, are read too.
        """
        path, name = self._place(job)
        record = _read_cached(path).get(name)
        if record is None and (single := path.with_suffix("") / f"{name}.json").is_file():
            record = read_record(single)
        # a record keeps its name when a default changes, but it has other settings then
        if record is None or any(
            record["settings"].get(k, v) != v for k, v in job.settings.items()
        ):
            return None
        return record

    def add(self, job: Job, record: Record) -> None:
        """Write a record; it replaces an earlier record of the same job."""
        path, name = self._place(job)
        self.directory.mkdir(parents=True, exist_ok=True)
        with locked(f"{path}.lock", what=str(path), timeout=LOCK_SECONDS):
            records = (_read(path) if path.is_file() else {}) | {name: record}
            lines = [
                json.dumps({"name": name} | records[name], ensure_ascii=False)
                for name in sorted(records)
            ]
            write_atomically(path, "\n".join([*lines, ""]))

    def missing(self, jobs: Iterable[Job], *, version: str | None = None) -> list[Job]:
        """The jobs without a record, in order, without duplicates. With ``version``, records of
        other versions of equitrans do not count.
        """
        return [job for job in dict.fromkeys(jobs) if not _counts(self.find(job), version)]

    def _place(self, job: Job) -> tuple[Path, str]:
        split, _, name = job.name.partition("/")
        return self.directory / f"{split}.jsonl", name


def _counts(record: Record | None, version: str | None) -> bool:
    if record is None or version is None:
        return record is not None
    return bool(record.get("version", {}).get("equitrans") == version)


def read_records(path: Path) -> dict[str, Record]:
    """Records by ``DIR/SPLIT/NAME``: all of the file ``DIR/SPLIT.jsonl``, those whose name matches
    the pattern in ``DIR/SPLIT/PATTERN``, or the one of a JSON file.
    """
    if path.is_file() and path.suffix != ".jsonl":
        return {str(path): read_record(path)}
    folder, pattern = path.parent, path.name.removesuffix(".json")
    if path.suffix == ".jsonl":
        folder, pattern = path.with_suffix(""), "*"
    records = _read_cached(Path(f"{folder}.jsonl"))
    return {f"{folder}/{name}": r for name, r in records.items() if fnmatchcase(name, pattern)}


def read_record(path: Path) -> Record:
    """The record of a JSON file; raise ConfigError if it is damaged."""
    return _parse(read_text(path, ConfigError), str(path))


def _read_cached(path: Path) -> dict[str, Record]:
    """The records of a JSONL file by name; none if there is no such file."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return {}
    return _read_version(path, (stat.st_ino, stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=32)
def _read_version(path: Path, version: tuple[int, ...]) -> dict[str, Record]:
    return _read(path)


def _read(path: Path) -> dict[str, Record]:
    found: dict[str, Record] = {}
    # not splitlines(), which also splits at characters that JSON allows within strings
    for number, line in enumerate(read_text(path, ConfigError).split("\n"), start=1):
        if line.strip():
            record = _parse(line, where := f"{path}:{number}")
            name = record.pop("name", None)
            if not isinstance(name, str) or name in found:
                raise ConfigError(f"{where} is damaged: name is {shown(name)}, missing or repeated")
            found[name] = record
    return found


def _parse(text: str, where: str) -> Record:
    """A record from JSON; raise ConfigError unless tables and pictures can be made from it."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise ConfigError(f"{where} is damaged: {wrong}") from None
    if not isinstance(record, dict) or not record.keys() >= {"settings", "seed", "test"}:
        raise ConfigError(f"{where} is not a record: it needs settings, seed and test")
    if (found := record.get("format", FORMAT)) != FORMAT:
        raise ConfigError(f"{where} has format {shown(found)}; this version reads {FORMAT}")
    try:
        _check("", record, SETTINGS)
        _check("", record, {"failed": str} if record["test"] is None else FIGURES)
    except ConfigError as error:
        raise ConfigError(f"{where} is damaged: {error}") from None
    return record


def _check(name: str, value: Any, kind: Any) -> None:
    """Raise ConfigError unless a value has a type: a class, a dict of types or a list of one."""
    if isinstance(kind, dict) and isinstance(value, dict):
        for key, part in kind.items():
            _check(f"{name}.{key}".lstrip("."), value.get(key, OPTIONAL.get(key, MISSING)), part)
        if name == "curve" and len({len(value[column]) for column in CURVE}) > 1:
            raise ConfigError("the columns of its curve differ in length")
    elif isinstance(kind, list) and isinstance(value, list):
        for item in value:
            _check(name, item, kind[0])
    elif (
        isinstance(kind, dict | list)
        or not isinstance(value, kind)
        or (isinstance(value, bool) and kind is not bool)
        or (isinstance(value, int) and abs(value) >= 2**63)
        or (name == "test.exact_match" and not 0 <= value <= 1)
    ):
        raise ConfigError(f"its {name} is {'missing' if value is MISSING else shown(value)}")


def figures(records: Sequence[Record]) -> list[float]:
    """Exact match in percent, by record; 0 for a training that diverged."""
    return [100 * r["test"]["exact_match"] if r["test"] else 0.0 for r in records]
