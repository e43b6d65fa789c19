"""Finds the command, runs it, and turns what went wrong into one line and an exit status.

0 done, 1 a check failed, 2 an error of the user's, 3 a sentence without a derivation, 130
interrupted. Anything else is our bug and
keeps its traceback.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from equitrans.errors import ConfigError, EquitransError, nearest

COMMANDS = {
    "scan": "list, show, export or download the splits of SCAN",
    "train": "train a model on a split or on pairs of your own",
    "evaluate": "judge a trained model by exact match",
    "predict": "transduce sentences with a trained model",
    "grammar": "show the rules of a recursive aligner, or a derivation",
}

USAGE = """\
equitrans: string transduction with exact symmetry

usage: equitrans COMMAND …

commands:
{commands}

examples:
  equitrans train --split add_jump --out runs/jump --seed 0
  equitrans evaluate runs/jump --split add_jump
  equitrans predict runs/jump "jump twice" --alignments

equitrans COMMAND --help says more."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(arguments)
    except EquitransError as error:
        return _fail(str(error))
    except KeyboardInterrupt as interrupt:
        _fail(str(interrupt) or "interrupted")
        return 130
    except BrokenPipeError:
        # the reader has enough; without this Python would complain when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")


def _run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        lines = [f"  {name:{width}}  {about}" for name, about in COMMANDS.items()]
        print(USAGE.format(commands="\n".join(lines)))
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        from equitrans import __version__

        print(f"equitrans {__version__}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        raise ConfigError(f"unknown command {name!r}{nearest(name, COMMANDS)}")
    # commands are imported one at a time, so that a quick one does not wait for what others need
    status: int = import_module(f"equitrans.cli.{name}").run(arguments[1:])
    return status


def _fail(message: str) -> int:
    print(f"equitrans: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
