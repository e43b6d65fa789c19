"""Mutation testing of what the theorems are about (make mutation): mutmut changes the code in one
place at a time, and a test has to notice.

    python bench/mutation.py run --workers 2     # two hours; goes on where it was
    python bench/mutation.py run 'equitrans.paper.groups.*'
    python bench/mutation.py write               # records/reliability/mutation.json

Which modules are changed, and which tests are asked, stands in pyproject.toml. Why a survivor may
live stands in bench/survivors, by function and change.
"""

import argparse
import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RECORD = HERE.parent / "records" / "reliability" / "mutation.json"

PARTS = {
    "groups": ["groups"],
    "layers": ["glayers", "lstm", "models.aligner", "models.translator"],
    "marginals": ["marginals"],
    "decoding": ["decoding"],
    "discovery": ["discovery", "grouping", "lexicon"],
    "recursive aligner": ["recursion", "grammar", "models"],
}
"""What the modules are for, in the order of their rows; the first that fits counts."""

KINDS = ("same", "cost", "text", "tie", "gap", "unexplained")
"""Why a mutant survives: nothing can show it, it only costs, it only says it otherwise, it chooses
otherwise among equals, no test shows it yet; or nobody has looked.
"""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mutmut 3.8 asks for a name that pytest 9.2 does not have any more."""
    item._nodeid = item.nodeid


def run(workers: int, names: list[str]) -> None:
    """Run mutmut, with this file as a plugin of its pytest."""
    from mutmut.__main__ import cli
    from mutmut.configuration import config

    config().pytest_add_cli_args.extend(
        [
            *("-p", "mutation", "-p", "no:cacheprovider", "-W", "ignore:Module already imported"),
            # a second collection in one process would escape the names of tests once more
            *("-o", "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"),
        ]
    )
    cli(["run", "--max-children", str(workers), *names])


def part(module: str) -> str:
    """The part of the package to which a module belongs."""
    inside = module.removeprefix("equitrans.")
    return next(
        name
        for name, modules in PARTS.items()
        if any(inside == each or inside.startswith(f"{each}.") for each in modules)
    )


def explanations() -> dict[str, dict[str, str]]:
    """For every function, why which change of it may survive."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((HERE / "survivors").glob("*.json")):
        for function, changes in json.loads(path.read_text(encoding="utf-8")).items():
            found.setdefault(function, {}).update(changes)
    return found


def write() -> None:
    """The counts of every part, and every survivor with what was changed and why it lives."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code
    from mutmut.utils.file_utils import walk_mutatable_files

    counts: dict[str, Counter[str]] = {name: Counter() for name in PARTS}
    survivors: dict[str, dict[str, str]] = {}
    known = explanations()
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            status = status_by_exit_code[code]
            module, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
            count = counts[part(module)]
            count[status] += 1
            if status not in ("killed", "timeout", "not checked"):
                lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
                changed = " ".join(" ".join(line for line in lines if line[:1] in "+-").split())
                why = known.get(f"{module}.{function}", {}).get(changed, "unexplained")
                count[why.partition(":")[0]] += 1
                survivors[name] = {"change": changed, "why": why}
    rows = []
    for name, count in counts.items():
        noticed = count["killed"] + count["timeout"]
        made = noticed + sum(count[kind] for kind in KINDS)
        row = {"part": name, "mutants": made, "killed": noticed}
        row["killed, %"] = round(100 * noticed / max(made, 1), 1)
        rows.append(row | {kind: count[kind] for kind in KINDS})
        print(rows[-1], f"not run: {count['not checked']}")
    versions = {name: version(name) for name in ("equitrans", "mutmut", "pytest", "torch")}
    record = {"rows": rows, "version": versions, "survivors": survivors}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="mutation testing")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run what has not been run yet")
    running.add_argument("--workers", type=int, default=2)
    running.add_argument("names", nargs="*", help="mutants, to be run once more")
    commands.add_parser("write", help="write the record")
    asked = parser.parse_args()
    sys.exit(run(asked.workers, asked.names) if asked.command == "run" else write())
