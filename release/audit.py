"""Known vulnerabilities of everything that is pinned (make audit).

0 if there are none, 1 if there are some. Where the database cannot be reached nothing is known, and
that is what is said: not audited, status 0, since there is nothing to mend here.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def verdict(output: str, errors: str) -> tuple[int, str]:
    """The exit status and what to say, from what pip-audit has left.

    It lists every package, with what is known of it or why nothing is. If nothing is known of any,
    the database was not there; if of some, these are a finding like any other.
    """
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        packages = []
    known = [p for p in packages if "skip_reason" not in p]
    if not known:
        reason = (errors.strip().splitlines() or ["no reason given"])[-1][:300]
        return 0, f"NOT AUDITED: the database gave no answer ({reason})"
    found = [f"{p['name']} {p['version']}: {v['id']}" for p in known for v in p["vulns"]]
    found += [f"{p['name']}: {p['skip_reason']}" for p in packages if "skip_reason" in p]
    return bool(found), "\n".join([*found, f"audited {len(known)}, findings {len(found)}"])


def audit(*options: str) -> tuple[str, str]:
    """What pip-audit says of the pins, and its complaints."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", *options, "--no-deps", "--disable-pip"),
            *("-r", ROOT / "constraints.txt", "-f", "json", "--progress-spinner", "off"),
        ],
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


def main() -> int:
    """Audit the pins; strictly, unless that ends at the first package that is not known."""
    output, errors = audit("--strict")
    if not output.strip():
        output, _ = audit()
    status, said = verdict(output, errors)
    print(said)
    return status


if __name__ == "__main__":
    sys.exit(main())
