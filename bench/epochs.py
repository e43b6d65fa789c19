r"""How much the test figure of a training depends on the epoch that is chosen.

    equitrans train --split around_right --recipe russin --training.batch 1 \
        --training.updates 200000 --training.schedule constant --training.clip null --out runs/0 &
    python bench/epochs.py --keep runs/0
    python bench/epochs.py runs/0 --out records/studies/russin-epochs.jsonl
    python bench/epochs.py --show records/studies/russin-epochs.jsonl

A run keeps the weights of two epochs: the best by validation loss, and the last. --keep copies
those of every epoch into runs/0.kept while the run trains, if an epoch takes some seconds. The
second call tests all weights there are on the official test set. This describes a training; no
choice of settings may use it.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from report import percent
from studies import arguments, origin, print_study

from equitrans.data import load_split
from equitrans.experiments import title
from equitrans.experiments.tables import markdown
from equitrans.training import Run, Trained
from equitrans.training.runs import STATE
from equitrans.training.tensors import part, read_header, read_tensors

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


def keep(path: Path) -> None:
    """Copy the state of a run after each epoch, until it has ended."""
    run, kept = Run.open(path), kept_by(path)
    kept.mkdir(exist_ok=True)
    copy = kept / "new"
    ended = False
    while not ended:
        ended = run.is_finished
        if run.has_checkpoint and not file_of(kept, path / STATE).exists():
            shutil.copyfile(path / STATE, copy)  # it may be of a later epoch by now
            copy.replace(file_of(kept, copy))
        time.sleep(WAIT)


def measured(path: Path) -> dict[str, Any]:
    """The test figures of all epochs whose weights there are."""
    run, trained = Run.open(path), Trained.load(path)
    split, best, log = run.config.data.split, run.figures().best_epoch, run.epochs()
    if split is None or best is None:
        raise SystemExit(f"{path}: expected a finished run on a split of SCAN, with epochs")
    test = load_split(split).test
    # a state has the weights of the best epoch, too; a kept file has its own epoch only
    found = {best: (path / STATE, "best."), len(log): (path / STATE, "model.")}
    found |= {int(file.stem): (file, "model.") for file in kept_by(path).glob("*.safetensors")}
    epochs = []
    for number, (file, prefix) in sorted(found.items()):
        trained.model.load_state_dict(part(read_tensors(file), prefix))
        epoch, exact_match = log[number - 1], trained.evaluate(test, width=1).exact_match
        epochs.append(
            {
                "number": number,
                "valid": {"loss": epoch["valid_loss"], "accuracy": epoch["valid_accuracy"]},
                "exact_match": exact_match,
            }
        )
        print(f"{path}: epoch {number}: {percent(100 * exact_match)}", flush=True)
    return origin(run.config) | {"best": best, "epochs": epochs}


def kept_by(run: Path) -> Path:
    """The folder of the states that are kept."""
    return run.with_name(f"{run.name}.kept")


def file_of(kept: Path, state: Path) -> Path:
    """The file for a state, by its epoch."""
    counters = json.loads(read_header(state).metadata["counters"])
    return kept / f"{counters['epoch']}.safetensors"


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
