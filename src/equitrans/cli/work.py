"""What commands share that train many models: where these are trained, and how people follow it."""

import argparse
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from equitrans.cli.arguments import Parser, find_device
from equitrans.cli.console import Console
from equitrans.errors import DataError, RunError
from equitrans.experiments import (
    Failed,
    Job,
    Lost,
    Order,
    Outcomes,
    Record,
    Records,
    claim,
    perform,
    run_locally,
    run_on_ray,
)


def add_work(parser: Parser) -> None:
    """Options of these commands."""
    parser.add_argument("--scan-dir", metavar="DIR", help="folder of the official SCAN files")
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument(
        "--runs", default="runs/unfinished", metavar="DIR", help="folder of unfinished runs"
    )
    parser.add_argument("--keep", action="store_true", help="keep finished runs, with weights")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), metavar="N", help="processes at once"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="on a Ray cluster instead; local starts one here"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


@dataclass
class Work:
    """Trainings in local processes or on a cluster, each with a record when it is done."""

    console: Console
    runs: Path
    scan_dir: str | None
    device: str
    workers: int
    ray: str | None
    keep: bool
    failed: int = field(default=0, init=False)
    """How many came to nothing."""

    @classmethod
    def of(cls, asked: argparse.Namespace) -> "Work":
        """As the options of a command say."""
        find_device(asked.device)
        if asked.scan_dir is not None and not Path(asked.scan_dir).is_dir():
            raise DataError(f"{asked.scan_dir}: no such folder")
        return cls(
            console=Console(stderr=True, quiet=asked.quiet),
            runs=Path(asked.runs).absolute(),
            scan_dir=None if asked.scan_dir is None else os.path.abspath(asked.scan_dir),
            device=asked.device,
            workers=asked.workers,
            ray=asked.ray,
            keep=asked.keep,
        )

    def follow(self, jobs: Sequence[Job], records: Records) -> None:
        """Do the jobs, keep their records, and show how it goes."""
        with self.bar(len(jobs)) as advance:
            for job, record in self.do(jobs, records):
                advance(job, record)

    @contextmanager
    def bar(
        self, total: int, *, validation: bool = False
    ) -> Iterator[Callable[[Job, Record | str], None]]:
        """Something to call with every training that has ended, to show its test figure, or its
        validation loss alone.
        """
        result = _validation if validation else _result
        with _bar(self.console, total) as advance:
            yield lambda job, record: advance(f"{job.description}: {result(record)}")

    def do(self, jobs: Iterable[Job], records: Records) -> Iterator[tuple[Job, Record | str]]:
        """Jobs, pulled when there is room for one, with their records, or why there is none."""
        for order, outcome in self._run(map(self._order, jobs)):
            if isinstance(outcome, Failed | Lost):
                self.failed += 1
                yield order.job, outcome.message if isinstance(outcome, Failed) else outcome.reason
                continue
            records.add(order.job, outcome)
            if not self.keep:  # only now: until there is a record, the run is all there is
                with suppress(RunError), claim(order.directory):
                    shutil.rmtree(order.directory, ignore_errors=True)
            yield order.job, outcome

    def _order(self, job: Job) -> Order:
        directory = self.runs / job.name.removesuffix(".json")
        return Order(job, str(directory), self.scan_dir, self.device)

    def _run(self, orders: Iterable[Order]) -> Outcomes[Order, Record]:
        if self.ray is not None:
            address = None if self.ray == "local" else self.ray
            gpus = 1.0 if self.device.startswith("cuda") else 0.0
            return run_on_ray(perform, orders, address=address, gpus=gpus)
        return run_locally(perform, orders, workers=self.workers)


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """Something to call with a line for every training that has ended."""
    if not console.is_terminal:
        done = 0

        def say(line: str) -> None:
            nonlocal done
            done += 1
            console.print(f"{done} of {total}: {line}")

        yield say
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=total)

        def show(line: str) -> None:
            console.print(line)
            progress.update(task, advance=1)

        yield show


def _validation(record: Record | str) -> str:
    if isinstance(record, str) or record["test"] is None or record["valid"]["loss"] is None:
        return _result(record)
    return f"validation {record['valid']['loss']:.4f} in {record['seconds']['training']:.0f} s"


def _result(record: Record | str) -> str:
    if isinstance(record, str):
        return record
    if record["test"] is None:
        return str(record["failed"])
    seconds = record["seconds"]["training"]
    return f"{100 * record['test']['exact_match']:.2f} % right in {seconds:.0f} s"
