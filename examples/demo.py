"""Learn SCAN from data in which `jump` occurs only alone, then use `jump` in sentences.

python examples/demo.py FOLDER
"""

import shutil
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from equitrans import DataConfig, Pair, Run, RunConfig, Trained, TrainingConfig
from equitrans.analysis.plots import draw_alignments, save_figure
from equitrans.data import load_data

COMMANDS = [
    "jump",
    "jump twice",
    "jump left",
    "jump opposite right thrice",
    "walk after jump",
    "jump around left and jump right",
    "look thrice after jump around right",
]


def main(folder: Path) -> None:
    """Train for about a minute, show predictions, draw one alignment."""
    torch.set_num_threads(1)
    console = Console(highlight=False)
    config = RunConfig(data=DataConfig(split="add_jump"), training=TrainingConfig(epochs=40))
    data = load_data(config.data, seed=config.seed)
    alone = sum("jump" in pair.source for pair in data.train)
    together = len({pair for pair in data.train if "jump" in pair.source and len(pair.source) > 1})
    console.print(
        f"Add Jump: {len(data.train)} training pairs; 'jump' is alone in {alone} of them "
        f"(copies of one pair) and with other words in {together}."
    )
    shutil.rmtree(folder, ignore_errors=True)
    run = Run.create(folder / "run", config, data)
    with Console(stderr=True).status("training") as status:
        for epoch in run.train(data):
            status.update(str(epoch))

    trained = Trained.load(run.path)
    answers = {pair.source: pair.target for pair in (*data.train, *data.valid, *data.test)}
    table = Table("command", "seen", "prediction", "right", box=None)
    shown = {pair.source for pair in data.train}
    for command, prediction in zip(COMMANDS, trained.predict(COMMANDS), strict=True):
        words = tuple(command.split())
        short = " ".join(word.removeprefix("I_") for word in prediction.words)
        seen = "yes" if words in shown else "never"
        table.add_row(command, seen, short, "yes" if prediction.words == answers[words] else "no")
    console.print(table)

    report = trained.evaluate(data.test)
    console.print(
        f"exact match on {len(report.pairs)} commands with 'jump': {report.exact_match:.2%}"
    )
    source = tuple(COMMANDS[-1].split())
    picture = folder / "alignment.png"
    save_figure(draw_alignments([trained.align(Pair(source, answers[source]))]), picture)
    console.print(f"alignment: {picture}; model: {run.path}")
    console.print(f'try it: .venv/bin/equitrans predict {run.path} "jump twice" --alignments')


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
