"""Write requirements-dev.lock from constraints.txt (make lock).

The versions are those of constraints.txt. The lock adds the hashes of all their files from the
index, so that pip refuses any other file. It contains the packages of the extra ``dev``, except
torch, whose build depends on the machine.
"""

import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from piptools.repositories import PyPIRepository

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-dev.lock"
HEAD = "# Made by make lock from constraints.txt, with the hashes of all files of a version.\n"
OWN = {"equitrans", "torch", "setuptools"}
"""Packages that are not in the lock; their dependencies are."""


def needed() -> set[str]:
    """Return the names of all packages that the extra ``dev`` installs in this environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    queue = [Requirement(text) for text in (*project["dependencies"], *extras["dev"])]
    seen: set[tuple[str, str]] = set()
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            own = name == "equitrans"
            for text in extras[extra] if own and extra else [] if own else requires(name) or []:
                more = Requirement(text)
                if more.marker is None or more.marker.evaluate({"extra": extra}):
                    queue.append(more)
    return {name for name, _ in seen}


def main() -> int:
    """Get the hashes from the index and write the lock."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pins = {canonicalize_name(line.partition("==")[0]): line for line in lines}
    repository = PyPIRepository(["--quiet"], cache_dir=str(ROOT / ".venv" / "lock"))
    entries = []
    for name in sorted(needed() - OWN):
        version = pins[name].partition("==")[2]
        with repository.allow_all_wheels():
            links = [c.link for c in repository.find_all_candidates(name)
                     if str(c.version) == version]  # fmt: skip
        hashes = sorted({link.hash for link in links if link.hash_name == "sha256"})
        if not hashes:
            raise SystemExit(f"the index has no hash for {pins[name]}")
        entries.append(" \\\n".join([pins[name], *(f"    --hash=sha256:{h}" for h in hashes)]))
    LOCK.write_text(HEAD + "\n".join(entries) + "\n", encoding="utf-8")
    print(f"{LOCK.name}: {len(entries)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
