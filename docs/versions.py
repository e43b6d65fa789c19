"""Put a built documentation into a site of all versions: make site.

python docs/versions.py HTML SITE

The pages go to SITE/VERSION; a version that is there already is replaced. SITE/versions.json lists
the versions, the newest first, for the select in the sidebar, and SITE/index.html opens the newest.
"""

import json
import re
import shutil
import sys
from pathlib import Path

OPEN = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>equitrans</title>
<meta http-equiv="refresh" content="0; url={0}/index.html"></head>
<body><a href="{0}/index.html">equitrans {0}</a></body></html>
"""


def version_of(html: Path) -> str:
    """The version of built pages; raise SystemExit if there is none."""
    options = html / "_static" / "documentation_options.js"
    found = options.is_file() and re.search(r"VERSION: '([^']+)'", options.read_text("utf-8"))
    if not found:
        raise SystemExit(f"{html} has no built documentation; run make docs first")
    return found[1]


def order(version: str) -> list[tuple[int, str]]:
    """The key by which versions are sorted: numbers by value.

    >>> sorted(["0.10.0", "0.9.0", "1.0.0"], key=order)
    ['0.9.0', '0.10.0', '1.0.0']
    """
    parts = re.findall(r"\d+|[^\d.]+", version)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def add(html: Path, site: Path) -> str:
    """Put built pages into a site, list its versions, and return the version of the pages."""
    version = version_of(html)
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(html, site / version, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    folders = (path.parent.name for path in site.glob("*/index.html"))
    versions = sorted(folders, key=order, reverse=True)
    text = json.dumps({"versions": versions}, indent=2)
    (site / "versions.json").write_text(f"{text}\n", encoding="utf-8")
    (site / "index.html").write_text(OPEN.format(versions[0]), encoding="utf-8")
    return version


if __name__ == "__main__":
    html, site = map(Path, sys.argv[1:])
    print(f"{site / add(html, site)}")
