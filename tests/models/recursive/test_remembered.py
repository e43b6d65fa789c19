"""Inductions are made once for the same observations."""

from equitrans import Pair, Symmetry
from equitrans.models.recursive import inductions_remembered, remembered
from equitrans.models.recursive.observe import observe

PAIRS = [Pair(("go", w), (w.upper(), "GO")) for w in ("a", "b", "c")]


def test_pairs_in_another_order_give_the_same_induction_with_their_own_observations(monkeypatch):
    symmetry = Symmetry.of((), PAIRS)
    calls = []

    def counted(seen, report=None, *, quick=False):
        calls.append(quick)
        return induce(seen, report, quick=quick)

    induce = remembered.induce
    monkeypatch.setattr(remembered, "induce", counted)
    one, other = observe(PAIRS, symmetry), observe(PAIRS[::-1], symmetry)
    with inductions_remembered():
        first = remembered.induce_once(one)
        again = remembered.induce_once(other)
        remembered.induce_once(one, quick=True)
    assert calls == [False, True]
    assert again.grammar is first.grammar
    assert {*again.lost} <= {*other.all}
    remembered.induce_once(one)
    assert calls == [False, True, False]
