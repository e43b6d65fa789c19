"""Words that one form of sentence compares, and that stand in other places everywhere else."""

from equitrans import Pair, discover

RIVERS = ("rhine", "elbe", "oder", "main", "isar", "saar")
STATES = ("hesse", "saxony", "bavaria")


def questions() -> list[Pair]:
    """Questions in which ``point`` and ``state`` are compared in one form of sentence only."""
    alike = [
        (f"what is the largest {thing} in {name}", f"largest {thing.upper()} {name.upper()}")
        for thing in ("point", "state")
        for name in STATES
    ]
    apart = [
        *(
            (f"how high is each point {w} {name}", f"{w.upper()} POINT {name.upper()}")
            for w in ("near", "beyond", "above", "below", "before")
            for name in RIVERS
        ),
        *(
            (f"which state {w} the {name}", f"{name.upper()} STATE {w.upper()}")
            for w in ("has", "borders", "owns", "wants", "loves")
            for name in RIVERS
        ),
    ]
    return [Pair(tuple(x.split()), tuple(y.split())) for x, y in [*alike, *apart]]


def test_words_of_other_places_are_no_class():
    found = discover(questions())
    classes = [{*c.source} for c in found.classes]
    assert {*STATES} in classes
    assert {*RIVERS} in classes
    assert not any({"point", "state"} & words for words in classes)
    assert found.left_out["state"] == found.left_out["point"]
    assert "stands in other places" in found.left_out["state"]


def test_words_of_the_same_places_are_a_class_with_one_comparison():
    alike = [*questions()[:6], Pair(("each", "point"), ("POINT", "EACH"))]
    assert {"point", "state"} in [{*c.source} for c in discover(alike).classes]
