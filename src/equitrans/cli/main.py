"""Runs a command and turns errors into one line and an exit status.

0 done, 1 a check failed or a sentence has no derivation, 2 wrong input, 130 interrupted. Any other
exception is a bug in equitrans and keeps its traceback.
"""

import io
import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from threading import current_thread, main_thread

from equitrans.errors import ConfigError, EquitransError, nearest, printable

COMMANDS = {
    "learn": "learn a model from a file of pairs, and judge it, in one command",
    "check": "look for mistakes in a file of pairs before training",
    "predict": "predict the targets of sentences with a trained model",
    "suggest": "suggest sentences whose targets would teach a recursive aligner the most",
    "explore": "look at trained models on a web page",
    "serve": "answer the requests of programs with a trained model",
    "certify": "certify what is proven and what is measured about a trained model",
    "export": "write a trained model as one self-contained directory",
    "evaluate": "measure the exact match of a trained model",
    "compare": "compare several models on several files in one table",
    "curve": "measure the exact match over the number of training pairs",
    "grammar": "show the rules of a recursive aligner, or a derivation",
    "discover": "find the lexical classes of pairs",
    "train": "train a model on a split or on pairs of your own",
    "extend": "add words to a class of a trained model",
    "audit": "measure how equivariant a trained model is",
    "orbits": "show which pairs a trained model cannot tell apart",
    "scan": "list, show, export or download the splits of SCAN",
    "reproduce": "run an experiment of the paper and print its table",
    "search": "search for better settings by validation loss",
    "tables": "print tables from the records of experiments",
    "plot": "draw learning curves, and pictures from the records of experiments",
    "doctor": "print what is installed, what is missing and how to install it",
    "completion": "print a script with which a shell completes command lines",
}

USAGE = """\
equitrans: string transduction with exact symmetry

usage: equitrans COMMAND …

commands:
{commands}

examples:
  equitrans learn pairs.tsv --out model
  equitrans predict model "a sentence" "another one"
  equitrans train --split add_jump --out runs/jump --seed 0
  equitrans evaluate runs/jump --split add_jump
  equitrans predict runs/jump "jump twice" --alignments

exit status:
  0    done
  1    a check failed, or a sentence was refused
  2    wrong input; one line on standard error says what is wrong
  130  interrupted

Every command has --quiet, and every command that prints figures has --json. Terminals get colors
unless NO_COLOR=1 is set. equitrans COMMAND --help prints the options of a command."""


PATIENCE_SECONDS = 5.0
"""Seconds after the first Ctrl-C in which others are ignored, so that a command can clean up."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status. Without arguments, this process has no other
    purpose, and Ctrl-C stays without effect when the command has ended.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and current_thread() is main_thread()
    try:
        if ours:
            signal.signal(signal.SIGINT, _Interrupt())
        return _checked(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt as interrupt:
        _fail(str(interrupt) or "interrupted")
        return 130
    finally:
        if ours:
            # a function first: Python complains about a signal that waits for a handler when it
            # becomes ignored
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.signal(signal.SIGINT, signal.SIG_IGN if arguments is None else before)


class _Interrupt:
    """The first Ctrl-C raises KeyboardInterrupt; one after PATIENCE_SECONDS ends the process."""

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, *_: object) -> None:
        if self._first is None:
            self._first = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self._first > PATIENCE_SECONDS:
            os._exit(130)


def _checked(arguments: Sequence[str]) -> int:
    """Run a command line; turn errors into a message and an exit status."""
    _mend_streams()
    try:
        return _run(arguments)
    except EquitransError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # nobody reads the output; without this Python prints an error when it flushes at exit
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
    # only this command is imported, so that a quick one does not wait for the libraries of others
    from equitrans.cli.arguments import exiting_on_interrupt

    with exiting_on_interrupt():
        command = import_module(f"equitrans.cli.{name}")
    status: int = command.run(arguments[1:])
    return status


def _mend_streams() -> None:
    """Replace closed streams by /dev/null, and characters that a terminal cannot show by '?'."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(message: str) -> int:
    print(f"equitrans: {printable(message)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
