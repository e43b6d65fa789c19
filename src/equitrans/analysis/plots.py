"""Figures of records and models; no other module imports matplotlib."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from equitrans.analysis.reports import Alignment
from equitrans.errors import ConfigError, nearest
from equitrans.files import write_atomically

COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00"]
"""Colors that people with any kind of color blindness can distinguish (Okabe and Ito)."""

MARKERS = "osD^v<>P"
"""Marks beside the colors, for print without colors."""


def draw_alignments(alignments: Sequence[Alignment]) -> Figure:
    """A heat map per pair: target words down, source words across, p(a_m = n | x, y) as
    darkness.
    """
    widths = [max(2.5, 0.42 * len(a.source) + 1.6) for a in alignments]
    height = max(0.24 * len(a.target) for a in alignments) + 1.5
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    panels = figure.subplots(1, len(alignments), squeeze=False, width_ratios=widths)[0]
    for panel, alignment in zip(panels, alignments, strict=True):
        image = panel.imshow(np.array(alignment.prob), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        panel.set_xticks(range(len(alignment.source)), alignment.source, rotation=60, ha="left")
        panel.set_yticks(range(len(alignment.target)), alignment.target)
        panel.xaxis.tick_top()
        panel.set_xticks(np.arange(len(alignment.source)) - 0.5, minor=True)
        panel.set_yticks(np.arange(len(alignment.target)) - 0.5, minor=True)
        panel.grid(which="minor", color="0.85", linewidth=0.5)
        panel.tick_params(which="both", length=0)
    figure.colorbar(image, ax=list(panels), shrink=0.6, label="p(a = n | x, y), or attention")
    return figure


def draw_orbits(records: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Observed orbits over epochs, as in §4.4: a bubble per orbit, as large as the orbit.

    Below them is the sharpness of the alignments, if it was recorded.
    """
    most = max(len(record["observed"]) for record in records)
    pairs = sum(records[0]["observed"])
    sharpness = [record.get("sharpness") for record in records]
    known = None not in sharpness
    height = 0.42 * most + 0.7
    figure = Figure(figsize=(max(4.0, 0.34 * len(records) + 1.5), height + (1.9 if known else 0.9)))
    figure.set_layout_engine("constrained")
    panel, *others = figure.subplots(
        1 + known, sharex=True, squeeze=False, height_ratios=[height, 1.0][: 1 + known]
    ).flat
    for place, record in enumerate(records):
        for row, size in enumerate(record["observed"]):
            # centred vertically
            level = row - (len(record["observed"]) - 1) / 2
            panel.scatter(place, level, s=420 * size / pairs + 25, color="C0", alpha=0.75)
            panel.text(place, level, str(size), ha="center", va="center", fontsize=6)
    for below in others:
        below.plot(range(len(records)), sharpness, "o-", ms=3, color=COLORS[0])
        below.set_ylim(0, 1.05)
        below.set_ylabel("sharpness")
        below.grid(alpha=0.3)
    last = others[0] if others else panel
    step = max(1, len(records) // 12)
    shown = range(0, len(records), step)
    last.set_xticks(list(shown), [str(records[i]["epoch"]) for i in shown])
    last.set_xlabel("epoch")
    panel.set_ylim(-most / 2 - 0.3, most / 2 + 0.3)
    panel.set_xlim(-0.7, len(records) - 0.3)
    panel.set_yticks([])
    panel.set_ylabel("observed orbits")
    panel.set_title(title, fontsize=9)
    return figure


def draw_curves(
    curves: Mapping[str, Sequence[Mapping[str, Sequence[int | float | None]]]],
) -> Figure:
    """Losses over updates, one color per name: training thin and dashed, validation solid, or
    dotted where a color is used again. Of many runs only the validation losses are drawn.
    """
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    panel = figure.subplots()
    few = sum(map(len, curves.values())) < len(COLORS)
    for place, (name, found) in enumerate(curves.items()):
        color = COLORS[place % len(COLORS)]
        style = ("-", ":")[place // len(COLORS) % 2]
        for n, curve in enumerate(found):
            training, validation = (_points(curve, loss) for loss in ("train_loss", "valid_loss"))
            if few:
                panel.plot(*training.T, ls="--", lw=0.9, alpha=0.6, color=color)
            panel.plot(*validation.T, color=color, ls=style, label="" if n else name)
    panel.set_yscale("log")
    panel.set_xlabel("updates")
    dashed = " (dashed: the loss in training)" if few else ", validation"
    panel.set_ylabel(f"−log p per pair{dashed}")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7)
    return figure


def _points(
    curve: Mapping[str, Sequence[int | float | None]], column: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    known = [p for p in zip(curve["updates"], curve[column], strict=True) if p[1] is not None]
    return np.array(known, dtype=float).reshape(-1, 2)


def draw_bands(
    bands: Mapping[str, Mapping[float, Sequence[float]]],
    published: Mapping[str, Mapping[float, float]],
    *,
    unit: str = " %",
    what: str = "commands to learn from",
) -> Figure:
    """Exact match over the amount of data, on a logarithmic axis: a line for the median of the
    seeds, a dot for each seed, and a dashed line of the same color for published values.

    Many systems are drawn in several panels: those with the same first words, up to a comma, share
    one.
    """
    groups = _groups(list(bands))
    rows, columns = (1, 1) if len(groups) == 1 else (-(-len(groups) // 2), 2)
    figure = Figure(figsize=(7.0, 4.6 if rows == 1 else 3.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for panel, names in zip(panels, groups, strict=False):
        for place, name in enumerate(names):
            band, color = bands[name], COLORS[place % len(COLORS)]
            medians = [float(np.median(seeds)) for seeds in band.values()]
            mark = MARKERS[place % len(MARKERS)]
            panel.plot(list(band), medians, color=color)
            panel.plot([], [], mark + "-", ms=3, label=fill(name, 24), color=color)
            points = [(x, y) for x, seeds in band.items() for y in seeds]
            panel.scatter(*zip(*points, strict=True), s=12, marker=mark, color=color, alpha=0.6)
            if values := published.get(name):
                panel.plot(*zip(*values.items(), strict=True), "--", lw=1, color=color)
        if published:
            panel.plot([], [], "--", lw=1, color="0.5", label="published")
        panel.set_xscale("log", base=2)
        shares = sorted({x for band in bands.values() for x in band})
        panel.set_xticks(shares, [f"{x:g}{unit}" for x in shares])
        panel.grid(alpha=0.3)
        panel.legend(
            fontsize=7,
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=2,
            columnspacing=1,
            handlelength=1.7,
            borderpad=0,
        )
    figure.supxlabel(what, fontsize="medium")
    figure.supylabel("exact match, %", fontsize="medium")
    return figure


def _groups(names: Sequence[str]) -> list[list[str]]:
    """Names in groups of at most eight with the same first words; names alone share the last."""
    if len(names) <= len(COLORS):
        return [list(names)]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition(",")[0], []).append(name)
    alone = [name for group in groups.values() if len(group) == 1 for name in group]
    return [group for group in groups.values() if len(group) > 1] + ([alone] if alone else [])


def draw_seeds(
    cells: Mapping[str, Mapping[str, Sequence[float]]],
    published: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Exact match by system, one panel per split: a dot per seed, a line at the median, and a cross
    for the published value.
    """
    splits = list(dict.fromkeys(split for row in cells.values() for split in row))
    figure = Figure(figsize=(1.7 * len(splits) + 3.2, 0.38 * len(cells) + 1.4))
    figure.set_layout_engine("constrained")
    panels = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    for panel, split in zip(panels, splits, strict=True):
        for place, (name, row) in enumerate(cells.items()):
            if values := row.get(split):
                # dots with equal values lie above each other
                heights = place + np.linspace(-0.25, 0.25, len(values)) * (len(values) > 1)
                panel.scatter(values, heights, s=14, color=COLORS[0], alpha=0.7, linewidths=0)
                panel.plot([np.median(values)] * 2, [place - 0.38, place + 0.38], color="0.2", lw=1)
            if (value := published.get(name, {}).get(split)) is not None:
                panel.scatter([value], [place], marker="x", s=30, color=COLORS[1], zorder=3)
        panel.set_title(split, fontsize=9)
        panel.set_xlim(-4, 104)
        panel.set_xlabel("exact match, %", fontsize=8)
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(cells)), [fill(name, 44) for name in cells], fontsize=8)
    panels[0].set_ylim(len(cells) - 0.5, -0.5)
    return figure


def draw_lengths(lengths: Mapping[str, Mapping[int, tuple[int, int]]]) -> Figure:
    """Exact match over the number of target words, a line per system; each point is a length with
    its right and all pairs.
    """
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    panel = figure.subplots()
    for place, (name, counts) in enumerate(lengths.items()):
        panel.plot(
            sorted(counts),
            [100 * counts[n][0] / counts[n][1] for n in sorted(counts)],
            marker=MARKERS[place % len(MARKERS)],
            ms=4,
            lw=1,
            color=COLORS[place % len(COLORS)],
            label=fill(name, 60),
        )
    panel.set_xlabel("words of the target")
    panel.set_ylabel("exact match, %")
    panel.set_ylim(-3, 103)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7)
    return figure


def draw_sizes(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """The shares of right, refused and wrong answers over the number of training pairs: a point
    per sample, and lines through the means.
    """
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    panel = figure.subplots()
    sizes = sorted({row["pairs"] for row in rows})
    for name, color, marker in zip(("right", "refused", "wrong"), COLORS, MARKERS, strict=False):
        points = [(row["pairs"], 100 * row[name] / row["test"]) for row in rows]
        means = [np.mean([share for n, share in points if n == size]) for size in sizes]
        panel.plot(sizes, means, color=color, label=name)
        places, shares = zip(*points, strict=True)
        panel.scatter(places, shares, color=color, marker=marker, s=16)
    panel.set_xticks(sizes)
    panel.set_xlabel("training pairs")
    panel.set_ylabel("test pairs, %")
    panel.set_ylim(-3, 103)
    panel.legend()
    panel.grid(alpha=0.3)
    return figure


def draw_trials(
    trials: Sequence[tuple[float, float]], best: tuple[float, float], reference: float | None
) -> Figure:
    """Trials of a search: exact match on the test set over the validation loss, by which the best
    trial is chosen, and a histogram of the exact match.
    """
    figure = Figure(figsize=(7.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 1], sharey=True)
    left.scatter(*zip(*trials, strict=True), s=14, alpha=0.7)
    left.scatter(*best, s=60, facecolors="none", edgecolors=COLORS[1], label="chosen by validation")
    if np.min([loss for loss, _ in trials]) > 0:
        left.set_xscale("log")
    left.set_xlabel("validation −log p per pair")
    left.set_ylabel("exact match on the test set, %")
    right.hist([test for _, test in trials], bins=20, orientation="horizontal")
    right.set_xlabel("trials")
    for panel in (left, right):
        panel.grid(alpha=0.3)
        if reference is not None:
            panel.axhline(reference, color="0.4", ls="--", lw=1, label="the paper's best")
    left.legend(fontsize=7)
    return figure


def draw_tree(tree: dict[str, Any]) -> Figure:
    """A derivation tree: each rule above the words that it spans, the words at the bottom."""
    words = tree["words"]
    depth = _depth(tree)
    figure = Figure(figsize=(max(4.0, 1.3 * len(words)), 0.8 * depth + 1.2), layout="constrained")
    panel = figure.subplots()
    panel.set_axis_off()
    panel.set_xlim(-0.6, len(words) - 0.4)
    panel.set_ylim(-0.6, depth + 0.3)

    def draw(node: dict[str, Any], level: int) -> tuple[float, float]:
        start, n = node["start"], len(node["words"])
        here = (start + (n - 1) / 2, float(depth - level))
        within = {
            p for c in node["children"] for p in range(c["start"], c["start"] + len(c["words"]))
        }
        feet = [(float(p), 0.0) for p in range(start, start + n) if p not in within]
        for foot in [*(draw(child, level + 1) for child in node["children"]), *feet]:
            panel.plot([here[0], foot[0]], [here[1] - 0.12, foot[1] + 0.12], color="0.6", lw=1)
        panel.text(*here, node["rule"], ha="center", va="center", fontsize=9)
        return here

    draw(tree, 0)
    for p, word in enumerate(words):
        panel.text(p, 0, word, ha="center", va="center", fontsize=10, weight="bold")
    return figure


def _depth(tree: dict[str, Any]) -> int:
    return 1 + max(map(_depth, tree["children"]), default=0)


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format of its file name's suffix."""
    ending = Path(path).suffix.removeprefix(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise ConfigError(f"{path}: no picture format {ending!r}{nearest(ending, known)}")
    content = BytesIO()
    figure.savefig(content, format=ending, dpi=150)
    write_atomically(path, content.getvalue())
