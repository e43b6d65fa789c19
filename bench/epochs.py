r"""How much the test figure of a training depends on the epoch that is chosen.

    equitrans train --split around_right --recipe russin --training.batch 1 \
        --training.updates 200000 --training.schedule constant --training.clip null --out runs/0 &
    python bench/epochs.py --keep runs/0
    python bench/epochs.py runs/0 --out records/studies/russin-epochs.jsonl
    python bench/epochs.py --show records/studies/russin-epochs.jsonl

A run keeps the weights of two epochs: the best by validation loss, and the last. --keep copies
those of every epoch into runs/0.kept while the run trains. The second call tests all weights there
are on the official test set. This describes a training; no choice of settings may use it.
"""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from report import percent
from studies import arguments, origin, print_study
from torch import Tensor

from equitrans.data import load_split
from equitrans.experiments import title
from equitrans.experiments.tables import markdown
from equitrans.training import Run, Trained
from equitrans.training.tensors import part, read_header, read_tensors

STATE, LOG, BEST = "state.safetensors", "epochs.jsonl", "model.safetensors"
WAIT = 5.0
"""Seconds between two looks at a run."""


def main() -> None:
    parser = arguments(__doc__, runs="finished runs of a split of SCAN")
    parser.add_argument("--keep", type=Path, help="a run that trains; copy each of its epochs")
    asked = parser.parse_args()
    if asked.keep:
        keep(asked.keep)
    else:
        print_study(asked, measured, table)


def keep(run: Path) -> None:
    """Copy the state of a run after each epoch, until it has ended."""
    kept = run.with_name(f"{run.name}.kept")
    kept.mkdir(exist_ok=True)
    copy = kept / "new"
    ended = False
    while not ended:
        ended = Run.open(run).is_finished
        if (run / STATE).exists():
            shutil.copyfile(run / STATE, copy)
            copy.replace(kept / f"{number_of(copy)}.safetensors")
        time.sleep(WAIT)


def measured(path: Path) -> dict[str, Any]:
    """The test figures of all epochs whose weights there are."""
    config, trained, log = Run.open(path).config, Trained.load(path), epochs_of(path)
    if config.data.split is None:
        raise SystemExit(f"{path} is a run on a file of its own; expected a split of SCAN")
    test = load_split(config.data.split).test
    epochs: list[dict[str, Any]] = []
    found = dict(weights_of(path, log))
    for number in sorted(found):
        trained.model.load_state_dict(found[number])
        epoch, exact_match = log[number - 1], trained.evaluate(test, width=1).exact_match
        epochs.append(
            {
                "number": number,
                "valid": {"loss": epoch["valid_loss"], "accuracy": epoch["valid_accuracy"]},
                "exact_match": exact_match,
            }
        )
        print(f"{path}: epoch {number}: {percent(100 * exact_match)}", flush=True)
    return origin(config) | {"best": best_of(log), "epochs": epochs}


def epochs_of(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    log = run / LOG
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def number_of(state: Path) -> int:
    """The epoch of a state."""
    return int(json.loads(read_header(state).metadata["counters"])["epoch"])


def best_of(log: list[dict[str, Any]]) -> int:
    """The number of the epoch that the validation loss chooses."""
    return int(max(epoch["number"] for epoch in log if epoch["is_best"]))


def weights_of(run: Path, log: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The epochs whose weights there are: those kept, the best, and the last; each once."""
    states = {
        int(file.stem): file for file in run.with_name(f"{run.name}.kept").glob("*.safetensors")
    }
    for number, file in (states | {len(log): run / STATE}).items():
        yield number, part(read_tensors(file), "model.")
    if (best := best_of(log)) not in states and best != len(log):
        yield best, read_tensors(run / BEST)


def table(rows: list[dict[str, Any]]) -> str:
    """A line per run; the chosen epoch is bold."""
    lines = []
    for row in rows:
        settings, figures = row["settings"], []
        for epoch in row["epochs"]:
            figure, number = percent(100 * epoch["exact_match"]), epoch["number"]
            figures.append(
                f"{number}: **{figure}**" if number == row["best"] else f"{number}: {figure}"
            )
        training = f"{settings['kind']}, {title(settings['split'])}, batches of "
        batch, updates = settings["training.batch"], settings["training.updates"]
        lines.append([f"{training}{batch}", f"{updates:,}", str(row["seed"]), ", ".join(figures)])
    return markdown(["training", "updates", "seed", "epoch: exact match, %"], lines)


if __name__ == "__main__":
    main()
