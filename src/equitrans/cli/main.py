"""Finds the command, runs it, and turns what went wrong into one line and an exit status.

0 done, 1 a check failed or a sentence has no derivation, 2 an error of the user's, 130 interrupted.
Anything else is our bug and keeps its traceback.
"""

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from equitrans.errors import ConfigError, EquitransError, nearest

COMMANDS = {
    "scan": "list, show, export or download the splits of SCAN",
    "discover": "find the lexical classes of some pairs",
    "train": "train a model on a split or on pairs of your own",
    "evaluate": "judge a trained model by exact match",
    "predict": "transduce sentences with a trained model",
    "audit": "measure how equivariant a trained model is",
    "orbits": "see which pairs a trained model cannot tell apart",
    "export": "write a trained model as one directory that needs nothing else",
    "extend": "add words to a class of a trained model",
    "explore": "look at trained models on a web page",
    "grammar": "show the rules of a recursive aligner, or a derivation",
    "reproduce": "run an experiment of the paper, with our figures beside its own",
    "search": "look for better settings, by validation loss",
    "tables": "print the tables of experiments that were run before",
    "plot": "draw learning curves, and the pictures of experiments that were run before",
    "doctor": "say what is installed, what is missing and how to get it",
    "completion": "print what a shell needs to complete command lines",
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

exit status:
  0    done
  1    a check failed, or a sentence has no derivation
  2    an error of yours; one line on standard error says which
  130  interrupted

Every command has --quiet, and --json where it prints figures. Colors are for terminals; NO_COLOR=1
turns them off. equitrans COMMAND --help says more."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _mend_streams()
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
    with _quitting_at_once():
        command = import_module(f"equitrans.cli.{name}")
    status: int = command.run(arguments[1:])
    return status


@contextmanager
def _quitting_at_once() -> Iterator[None]:
    """Ctrl-C while libraries are loading, some of which would swallow it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def quit_now(*_: object) -> None:
        _fail("interrupted")
        os._exit(130)

    before = signal.signal(signal.SIGINT, quit_now)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _mend_streams() -> None:
    """Closed streams lead nowhere, and characters that a terminal cannot show become others."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(message: str) -> int:
    print(f"equitrans: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
