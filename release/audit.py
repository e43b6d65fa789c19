"""Known vulnerabilities of everything that is pinned (make audit).

0 if there are none, 1 if there are some. Where the database cannot be reached nothing is known, and
that is what is said: not audited, status 0, since there is nothing to mend here.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def verdict(status: int, output: str, errors: str) -> tuple[int, str]:
    """The exit status and the last line, from what pip-audit has left.

    Whoever was audited is listed, with or without findings; without a list no one was.
    """
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (errors.strip().splitlines() or ["no reason given"])[-1][:300]
        return 0, f"NOT AUDITED: the database gave no answer ({reason})"
    found = [f"{p['name']} {p['version']}: {v['id']}" for p in packages for v in p.get("vulns", [])]
    skipped = [f"{p['name']}: {p['skip_reason']}" for p in packages if "skip_reason" in p]
    if found or skipped or status:
        return 1, "\n".join([*found, *skipped, f"audited: {len(found)} vulnerabilities"])
    return 0, f"audited: {len(packages)} packages, no known vulnerability"


def main() -> int:
    """Audit the pins."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", "--strict", "--no-deps", "--disable-pip"),
            *("-r", ROOT / "constraints.txt", "-f", "json", "--progress-spinner", "off"),
            *("--timeout", "20"),
        ],
        capture_output=True,
        text=True,
    )
    status, line = verdict(done.returncode, done.stdout, done.stderr)
    print(line)
    return status


if __name__ == "__main__":
    sys.exit(main())
