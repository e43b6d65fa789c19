"""equitrans train: train a model on pairs, in a run directory."""

import os
import re
from argparse import SUPPRESS, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import (
    ActionConfigFile,
    ArgumentError,
    ArgumentParser,
    DefaultHelpFormatter,
)

from equitrans import analysis, models, training
from equitrans.cli.arguments import Parser, find_device, refuse, set_threads
from equitrans.cli.check import warn_of
from equitrans.cli.console import Console
from equitrans.cli.settings_files import MODE, read_config
from equitrans.data import Data, HoldOut
from equitrans.errors import ConfigError, few
from equitrans.lexical import LexicalClass
from equitrans.models import MODELS, find_model
from equitrans.settings import check_count
from equitrans.training import (
    RunConfig,
    Settings,
    TrainingConfig,
    default_recipe,
    recipe,
    recipe_names,
)

ABOUT = (
    "Train a model on a built-in split or on pairs of your own. Every setting has a dotted name."
)
EXAMPLES = """\
examples:
  equitrans train --split add_jump --out runs/jump --seed 0
  equitrans train --data pairs.tsv --classes classes.toml --out runs/mine
  equitrans train --data pairs.tsv --classes discover --out runs/found
  equitrans train --split length --recipe paper --out runs/length
  equitrans train --split add_jump --model gordon --out runs/gordon
  equitrans train --split simple_p1 --training.epochs 12 --model.hidden 64 --out runs/p1
  equitrans train --data pairs.tsv --classes classes.toml --model.aligner recursive --out runs/rules
  equitrans train --resume runs/jump
"""


def options() -> ArgumentParser:
    """The options of equitrans train, with the defaults of the transducer."""
    return _parser(recipe(default_recipe("transducer"), None))


def run(arguments: Sequence[str]) -> int:
    """Start a run or continue one."""
    asked = _parse(arguments)
    check_count("--workers", asked.workers)
    if asked.resume is not None:
        _refuse_changes(arguments)
    config = None if asked.resume is not None else _run_config(asked)
    console = Console(stderr=True, quiet=asked.quiet)
    set_threads(asked.threads)
    device = find_device(asked.device)
    from equitrans.cli.progress import follow
    from equitrans.cli.work import spread_over
    from equitrans.data import Rows

    if asked.tensorboard:
        training.load_tensorboard()  # if it is missing, the command fails before it makes a run
    if config is None:
        started = training.Run.open(asked.resume)
        started.repair()
        if started.is_finished:
            console.print(f"{started.path} is finished; there is nothing left to train")
            return 0
        data = started.load_data()
    else:
        warn_of(console, config.data)
        data = training.load_with_best_classes(config.data, config.model, seed=config.seed)
        started = training.Run.create(asked.out, config, data)
        _describe(console, data, all_learned=config.model.learner == "rules")

    def start(report: Callable[[str], None]) -> Iterator["training.Step"]:
        steps = started.train(data, device=device, report=report)
        return _written(steps, started.path / "tensorboard") if asked.tensorboard else steps

    try:
        with spread_over(asked.workers, asked.ray):
            follow(start, console)
    except KeyboardInterrupt:
        what = "continue" if started.has_checkpoint else "in the first epoch; start again"
        raise KeyboardInterrupt(
            f"interrupted; {what} with: equitrans train --resume {started.path}"
        ) from None
    trained = training.Trained.load(started.path, device=device)
    model = trained.model
    if model.learned is not None:
        _describe_rules(console, model.learned, started.path)
    else:
        console.print(f"weights of the best epoch: {started.path / training.WEIGHTS}")
    for name in analysis.stuck_classes(model, Rows.of(data.read.train, model.sharing)):
        console.print(
            f"class {name!r} was not learned: its target words do not come from its source words; "
            "check that its words can be exchanged; if they can, --model.aligner recursive learns "
            "large classes and small data, and another --seed may help",
        )
    warning = training.lessons_warning(started) or training.misfit_warning(
        trained, data.train, seed=started.config.seed
    )
    if warning is not None:
        console.print(f"warning: {warning}")
    return 0


def _written(steps: Iterator["training.Step"], folder: Path) -> Iterator["training.Step"]:
    """Yield the same steps and write each for TensorBoard."""
    with training.Board(folder) as board:
        for step in steps:
            board.add(step)
            yield step


def _refuse_changes(arguments: Sequence[str]) -> None:
    """Raise ConfigError for an option that would change the settings of a resumed run."""
    allowed = ("--resume", "--device", "--threads", "--workers", "--ray", "--quiet")
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--") and name not in (*allowed, "--tensorboard"):
            raise ConfigError(f"--resume uses the settings of the run; leave out {name}")


def _parse(arguments: Sequence[str]) -> Any:
    """Parse in two passes: the first finds model and recipe, whose settings are the defaults of the
    second.
    """
    first = Parser("train", ABOUT, EXAMPLES)
    for names in (["--split"], ["--recipe"], ["--config"], ["--model", "--kind"]):
        first.add_argument(*names)
    chosen, _ = first.parse_known_args([a for a in arguments if a not in ("-h", "--help")])
    written = read_config(chosen.config)
    kind = chosen.model or written.get("kind")
    find_model(kind or "transducer")
    name = chosen.recipe or written.get("recipe") or default_recipe(kind or "transducer")
    settings = recipe(name, chosen.split or written.get("split"))
    if kind is not None and settings["kind"] != kind:
        raise ConfigError(f"recipe {name!r} is for the model {settings['kind']!r}, not {kind!r}")
    parser = _parser(settings | {"recipe": name})
    try:
        asked = parser.parse_args(_without_model(arguments))
    except ArgumentError as error:
        if unknown := re.match(r"unrecognized arguments: (.*)", str(error)):
            refuse(unknown[1].split(), parser)
        raise ConfigError(_one_line(str(error))) from None
    asked.kind = settings["kind"]  # a file may name another model than the command line
    return asked


def _without_model(arguments: Sequence[str]) -> list[str]:
    """The arguments without --model NAME, because jsonargparse would read NAME as a file.

    >>> _without_model(["--model", "gordon", "--model.hidden", "8", "--model=wu"])
    ['--model.hidden', '8']
    """
    kept, skip = [], False
    for argument in arguments:
        if not skip and argument != "--model" and not argument.startswith("--model="):
            kept.append(argument)
        skip = argument == "--model"
    return kept


def _one_line(message: str) -> str:
    """A message of jsonargparse, shortened to option, value found and type expected."""
    key = re.match(r'Parser key "(.+?)":', message)
    expected = [
        _kind(found)
        for found in re.findall(r"Expected an? (.+?)(?:\. Got|$)", message, re.MULTILINE)
    ]
    got = re.search(r"(?:Got|Given) value: (.*)", message)
    if key and expected and got:
        return f"{key[1]} is {got[1]!r}; expected {' or '.join(expected)}"
    return " ".join(message.split())


def _kind(python: str) -> str:
    """The name of a type without Python's punctuation.

    >>> _kind("<class 'int'>"), _kind("typing.Literal['sum', 'max']")
    ('int', "'sum' or 'max'")
    """
    if match := re.fullmatch(r"typing\.Literal\[(.*)\]", python):
        return match[1].replace(", ", " or ")
    return re.sub(r"<class '(.*)'>", r"\1", python).replace("NoneType", "null")


def _parser(settings: Settings) -> ArgumentParser:
    parser = ArgumentParser(
        prog="equitrans train",
        parser_mode=MODE,
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=_Help,
        exit_on_error=False,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--split", type=str | None, help="a SCAN split; equitrans scan list prints them"
    )
    parser.add_argument(
        "--scan_dir",
        "--scan-dir",
        type=str | None,
        metavar="DIR",
        help="folder of the official SCAN files",
    )
    parser.add_argument(
        "--data", type=str | None, metavar="FILE", help="pairs of your own, TSV or SCAN format"
    )
    parser.add_argument(
        "--classes",
        type=str | None,
        metavar="FILE",
        help="a TOML file, discover, or none; with a split also verbs, directions, both",
    )
    parser.add_argument("--columns", type=str | None, metavar="N,M", help="of source and target")
    parser.add_argument("--characters", action="store_true", help="words are single characters")
    parser.add_argument(
        "--capitals", action="store_true", help="The at the start of a sentence is the"
    )
    parser.add_argument(
        "--split_words",
        "--split-words",
        type=str | None,
        metavar="SIGN",
        help="read target words apart at this sign, such as . in kitchen.lamp",
    )
    parser.add_argument(
        "--hold_out",
        "--hold-out",
        type=HoldOut,
        default="random",
        help="how validation pairs are chosen",
    )
    parser.add_argument(
        "--validation", type=float, default=0.1, help="share of distinct pairs held out"
    )
    parser.add_argument("--out", type=str | None, metavar="RUN", help="the new run directory")
    parser.add_argument(
        "--resume", type=str | None, metavar="RUN", help="a run directory to continue"
    )
    parser.add_argument("--recipe", help=f"default settings: {', '.join(recipe_names())}")
    parser.add_argument("--kind", help=SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument(
        "--orbits",
        type=str | None,
        help="a sentence of the data whose orbits are recorded during training",
    )
    parser.add_argument(
        "--orbits_every",
        "--orbits-every",
        type=int,
        default=5,
        help="epochs between two records of the orbits",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; 1 is fastest")
    parser.add_argument("--workers", type=int, default=1, help="processes that learn rules")
    parser.add_argument("--ray", type=str | None, help="a Ray cluster that learns rules, or local")
    parser.add_argument("--quiet", action="store_true", help="no notes and no progress")
    parser.add_argument(
        "--tensorboard", action="store_true", help="write RUN/tensorboard for TensorBoard"
    )
    parser.add_argument(
        "--config",
        action=ActionConfigFile,
        metavar="FILE",
        help="settings from a YAML or JSON file",
    )
    parser.add_class_arguments(find_model(settings["kind"]), "model")
    (choice,) = (action for action in parser._actions if "--model" in action.option_strings)
    choice.metavar, choice.help = "NAME", f"one of {', '.join(MODELS)}; its settings:"
    parser.add_class_arguments(TrainingConfig, "training")
    parser.set_defaults(settings)
    return parser


class _Help(DefaultHelpFormatter, RawDescriptionHelpFormatter):
    """Help with the line breaks of the examples."""


def _run_config(asked: Any) -> RunConfig:
    if asked.out is None:
        raise ConfigError("give --out RUN, a directory for the new run, or --resume RUN")
    classes = asked.classes  # a file, or the name of built-in classes
    if classes is not None and Path(classes).is_file():
        classes = _absolute(classes)
    settings = {
        "split": asked.split,
        "scan_dir": _absolute(asked.scan_dir),
        "file": _absolute(asked.data),
        "classes": classes,
    }
    names = ("columns", "characters", "split_words", "capitals", "hold_out", "validation")
    others = ("kind", "seed", "orbits", "orbits_every")
    settings |= {name: getattr(asked, name) for name in (*names, *others)}
    for section in ("model", "training"):
        settings |= {f"{section}.{n}": v for n, v in vars(getattr(asked, section)).items()}
    return RunConfig.from_settings(settings)


def _absolute(path: str | None) -> str | None:
    """An absolute path, so that the run can be resumed from another folder."""
    return None if path is None else os.path.abspath(path)


def _describe(console: Console, data: Data, *, all_learned: bool) -> None:
    """Print the numbers of pairs, the classes, and class words that are in no pair."""
    names = ", ".join(f"{c.name} ({_members(c)})" for c in data.classes) or "none"
    pairs = f"{len(data.train)} training and {len(data.valid)} validation pairs ({data.origin})"
    if all_learned:
        pairs = f"{len(data.train) + len(data.valid)} pairs, all learned from ({data.origin})"
    console.print(f"{pairs}; classes: {names}")
    if data.unseen:
        console.print(f"class words that no pair shows: {few(data.unseen, 10)}")


def _members(c: LexicalClass) -> str:
    """The first four lexemes of a class, the number of the others, and what may join it."""
    words = [source[0] for source, _ in c.rows]
    parts = [" ".join(words[:4])] if words else []
    if len(words) > 4:
        parts.append(f"{len(words) - 4} more")
    if c.is_open:
        parts.append("new words" if c.pattern is None else f"words like {c.pattern}")
    return " and ".join(parts)


def _describe_rules(console: Console, learned: "models.Learned", path: Path) -> None:
    """Print where the rules of a recursive aligner are, and its warnings."""
    console.print(f"rules: {path / 'grammar.json'}; equitrans grammar {path} shows them")
    for warning in learned.warnings:
        console.print(f"warning: {warning}")
