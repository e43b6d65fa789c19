"""Draw how the time of an update grows, from the measurements of ``make bench``.

python bench/plot_scaling.py bench/scaling.json docs/pictures/scaling.png
"""

import json
import sys

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

TITLES = {
    "words": "words of no class",
    "size": "words in the class",
    "classes": "classes",
    "source": "words in a source",
    "target": "words in a target",
    "batch": "rows in a batch",
}


def main() -> None:
    measured, picture = sys.argv[1:]
    with open(measured) as file:
        found = json.load(file)["benchmarks"]
    figure, axes = plt.subplots(2, 3, figsize=(9, 5.2), sharey=True, layout="constrained")
    for plot, (axis, title) in zip(axes.flat, TITLES.items(), strict=True):
        rows = [b for b in found if b["extra_info"]["axis"] == axis]
        x = [b["extra_info"]["value"] for b in rows]
        y = [1000 * b["stats"]["min"] for b in rows]
        plot.loglog(x, y, "o-", color="#2b6cb0", markersize=4, linewidth=1.4)
        plot.loglog(x, [y[-1] * value / x[-1] for value in x], ":", color="#999999", linewidth=1)
        plot.set_xlabel(title)
        plot.spines[["top", "right"]].set_visible(False)
        plot.grid(color="#eeeeee")
        plot.set_ylim(min(1.0, *y), None)
    for plot in axes[:, 0]:
        plot.set_ylabel("ms an update")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
