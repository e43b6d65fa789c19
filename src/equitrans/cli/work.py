"""Options and functions of the commands that train many models: reproduce and search."""

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from equitrans.cli.arguments import Parser, find_device
from equitrans.cli.console import Console
from equitrans.cli.progress import bar
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
    spread_locally,
    spread_on_ray,
)


def add_work(parser: Parser) -> None:
    """Add the options for training many models."""
    parser.add_argument("--scan-dir", metavar="DIR", help="folder of the official SCAN files")
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument(
        "--runs", default="runs/unfinished", metavar="DIR", help="folder of unfinished runs"
    )
    parser.add_argument("--keep", action="store_true", help="keep finished runs with their weights")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), metavar="N", help="number of processes"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="use a Ray cluster instead; 'local' starts one here"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


@contextmanager
def spread_over(workers: int, ray: str | None) -> Iterator[None]:
    """Inside this block, rules are learned by several processes or on a Ray cluster."""
    if ray is None and workers == 1:
        yield
        return
    local = ray is None
    with spread_locally(workers) if local else spread_on_ray(None if ray == "local" else ray):
        yield


class Work:
    """Trains jobs in local processes or on a cluster, and records each."""

    def __init__(self, asked: argparse.Namespace) -> None:
        find_device(asked.device)
        if asked.scan_dir is not None and not Path(asked.scan_dir).is_dir():
            raise DataError(f"{asked.scan_dir}: no such folder")
        self._asked = asked
        self._console = Console(stderr=True, quiet=asked.quiet)
        self.runs = Path(asked.runs).absolute()
        self.failed = 0
        """Number of jobs without a record."""

    def finish(self, jobs: Sequence[Job], records: Records, *, validation: bool = False) -> None:
        """Train all jobs and add their records."""
        for _ in self.do(jobs, records, total=len(jobs), validation=validation):
            pass

    def do(
        self, jobs: Iterable[Job], records: Records, *, total: int, validation: bool = False
    ) -> Iterator[tuple[Job, Record | None]]:
        """Yield each job when it has ended, with its record, or None if it failed.

        A line of progress shows the test figure, or with ``validation`` the validation loss.
        """
        with bar(self._console, total) as show:
            for done, (order, outcome) in enumerate(self._run(map(self._order, jobs)), start=1):
                record: Record | None = None
                if isinstance(outcome, Failed | Lost):
                    self.failed += 1
                    text = outcome.message if isinstance(outcome, Failed) else outcome.reason
                else:
                    record, text = outcome, _summary(outcome, validation=validation)
                    records.add(order.job, record)
                    if not self._asked.keep:  # not before the record is written
                        with suppress(RunError), claim(order.directory):
                            shutil.rmtree(order.directory, ignore_errors=True)
                show(f"{order.job.description}: {text}", done, total)
                yield order.job, record

    def _order(self, job: Job) -> Order:
        place = self._asked.scan_dir
        scan_dir = None if place is None else os.path.abspath(place)
        return Order(job, str(self.runs / job.name), scan_dir, self._asked.device)

    def _run(self, orders: Iterable[Order]) -> Outcomes[Order, Record]:
        if (ray := self._asked.ray) is None:
            return run_locally(perform, orders, workers=self._asked.workers)
        gpus = 1.0 if self._asked.device.startswith("cuda") else 0.0
        return run_on_ray(perform, orders, address=None if ray == "local" else ray, gpus=gpus)


def _summary(record: Record, *, validation: bool) -> str:
    if record["test"] is None:
        return str(record["failed"])
    seconds = f"in {record['seconds']['training']:.0f} s"
    if validation and record["valid"]["loss"] is not None:
        return f"validation {record['valid']['loss']:.4f} {seconds}"
    return f"{100 * record['test']['exact_match']:.2f} % right {seconds}"
