"""Draw the packages of equitrans, their sizes and their imports: make house.

python docs/picture.py PICTURE

A bar is a package, its segments are modules, and lengths are lines of code. A package stands above
all packages that it imports. An arc on the right joins a package with one that it imports.
"""

import ast
import io
import sys
from collections import Counter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Curve
from PIL import Image

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "equitrans"
BASE = "base modules"
BASE_MODULES = ("__init__", "errors", "files", "lexical", "notebook", "settings", "shards")
COLOURS = {
    BASE: "#D0D0D0",
    "paper": "#0072B2",
    "data": "#E69F00",
    "models": "#009E73",
    "testing": "#000000",
    "analysis": "#CC79A7",
    "training": "#56B4E9",
    "experiments": "#D55E00",
    "explorer": "#D8C820",
    "cli": "#808080",
}
"""Colours after Okabe and Ito, which colour-blind people can tell apart."""

WHITE_TEXT = ("paper", "models", "testing", "experiments", "cli")
WAYS = ((0, 8), (0, 7), (90, 8), (90, 7), (90, 6))
"""Rotation and size in points of the name of a module; the first that fits is taken."""
DOTS = 110
"""Pixels of an inch."""
HALF = 0.38
"""Half the height of a bar."""

Sizes = dict[str, dict[str, int]]
Imports = Counter[tuple[str, str]]


def place_of(name: str) -> str:
    """Return the bar of a package or module directly below equitrans."""
    return BASE if name in BASE_MODULES else name


def read_package() -> tuple[Sizes, Imports]:
    """Return the lines of each module by package, and the imports between top packages."""
    sizes: Sizes = {}
    imports: Imports = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        *folders, module = path.relative_to(PACKAGE).with_suffix("").parts
        if not folders and module == "__main__":
            folders = ["cli"]  # the command line by another name
        top = folders[0] if folders else place_of(module)
        sizes.setdefault("/".join(folders) or top, {})[module] = len(text.splitlines())
        if not folders and module == "__init__":
            continue  # it imports the public names of all packages
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("equitrans."):
                other = place_of(str(node.module).split(".")[1])
                imports[top, other] += other != top
    return sizes, +imports


def from_bottom_to_top(sizes: Sizes, imports: Imports) -> list[str]:
    """Sort the packages so that each stands above all that it imports."""

    def below(place: str) -> set[str]:
        direct = {other for one, other in imports if one == place}
        return direct.union(*map(below, direct))

    def height(place: str) -> tuple[int, int, int]:
        top = place.split("/")[0]
        return len(below(top)), list(COLOURS).index(top), -len(place)

    return sorted(sizes, key=height)


def draw_bar(axes: Axes, y: int, place: str, modules: dict[str, int]) -> None:
    """Draw a package at height y: its name, its lines, and one segment per module."""
    top = place.split("/")[0]
    start = 0
    for lines in sorted(modules.values(), reverse=True):
        corner = start, y - HALF
        axes.add_patch(Rectangle(corner, lines, 2 * HALF, fc=COLOURS[top], ec="white"))
        start += lines
    weight = "normal" if "/" in place else "bold"
    axes.text(-40, y + 0.13, place, ha="right", va="center", fontsize=11, weight=weight)
    axes.text(-40, y - 0.2, f"{start:,} lines", ha="right", va="center", fontsize=9)


def write_names(axes: Axes, y: int, place: str, modules: dict[str, int]) -> None:
    """Write the names of modules into their segments, upright or along them, if they fit.

    The limits of the axes and the layout are final.
    """
    colour = "white" if place.split("/")[0] in WHITE_TEXT else "black"
    start = 0
    for module, lines in sorted(modules.items(), key=lambda item: -item[1]):
        middle, start = start + lines / 2, start + lines
        if module == "__init__":
            continue
        for rotation, size in WAYS:
            name = axes.text(middle, y, module, ha="center", va="center", color=colour)
            name.set(fontsize=size, rotation=rotation)
            box = name.get_window_extent().transformed(axes.transData.inverted())
            if box.width < 0.95 * lines and box.height < 1.9 * HALF:
                break
            name.remove()


def draw_arc(axes: Axes, x: float, top: int, bottom: int, colour: str, count: int) -> None:
    """Draw an import as an arc from the upper package to a dot at the lower one."""
    reach = x + 75 * (top - bottom)
    curve = Curve(
        [(x, top), (reach, top), (reach, bottom), (x, bottom)],
        [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
    )
    axes.add_patch(PathPatch(curve, fc="none", ec=colour, lw=1 + count**0.5 / 2.5))
    axes.plot([x], [bottom], "o", ms=4, color="black", zorder=3)


def draw(path: Path) -> None:
    """Write the picture to a file."""
    sizes, imports = read_package()
    places = from_bottom_to_top(sizes, imports)
    longest = max(sum(modules.values()) for modules in sizes.values())
    figure = Figure(figsize=(11, 10.5), dpi=DOTS, layout="constrained")
    axes = figure.add_subplot()
    for y, place in enumerate(places):
        draw_bar(axes, y, place, sizes[place])
    for (place, other), count in sorted(imports.items()):
        heights = places.index(place), places.index(other)
        draw_arc(axes, longest + 60, *heights, COLOURS[place], count)
    axes.set_xlim(-0.22 * longest, longest + 60 + 60 * len(places))
    axes.set_ylim(-0.5, len(places) - 0.5)
    axes.set_axis_off()
    total = sum(sum(modules.values()) for modules in sizes.values())
    axes.set_title(f"src/equitrans, {total:,} lines", fontsize=12, loc="left")
    figure.draw_without_rendering()
    for y, place in enumerate(places):
        write_names(axes, y, place, sizes[place])
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DOTS)
    Image.open(drawn).convert("RGB").quantize(48).save(path, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    draw(Path(sys.argv[1]))
