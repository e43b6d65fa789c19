"""Licences: what may stand where, refusals by category, margins."""

import json
import math
from itertools import product

import pytest

from equitrans.cli.main import main
from equitrans.data.pairs import Pair
from equitrans.data.scan import CLASSES, everything
from equitrans.errors import DataError
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.io import Names, learned_from_json, learned_to_json
from equitrans.models.recursive.licences import ROOT, Licences
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.paper.symmetry import LexicalClass
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained

RECURSIVE = TransducerConfig(aligner="recursive")
TOOLS = LexicalClass("tool", ("saw", "file", "drill"), ("SAW", "FILE", "DRILL"))
SHELVES = LexicalClass("shelf", ("top", "side", "floor"), ("TOP", "SIDE", "FLOOR"))


def commands():
    """Put a tool on a shelf or take it from there, and two commands; some names have two words."""
    tools = [((x,), (x.upper(),)) for x in TOOLS.source]
    tools.append((("spirit", "level"), ("SPIRIT_LEVEL",)))
    shelves = [((x,), (x.upper(),)) for x in SHELVES.source]
    shelves.append((("work", "bench"), ("WORK_BENCH",)))
    found = []
    for (x, y), (where, there) in product(tools, shelves):
        found += [
            Pair(("put", *x, "on", *where), ("PUT", *there, *y)),
            Pair(("take", *x, "from", *where), ("TAKE", *there, *y)),
        ]
    found += [
        Pair((*a.source, "and", *b.source), (*a.target, ";", *b.target))
        for a, b in zip(found[::3], found[1::3], strict=False)
    ]
    return found


@pytest.fixture(scope="module")
def trained():
    return fit(commands(), [TOOLS, SHELVES], model=RECURSIVE)


def test_a_combination_that_no_pair_suggests_is_refused_by_name(trained):
    (refused,) = trained.predict(["put top on saw"])
    assert refused.refused
    assert refused.reason == "'top' (shelf) cannot stand where tool stands: put □tool on □"
    (refused,) = trained.predict(["put saw and file on top"])
    assert "cannot stand where tool stands" in refused.reason


def test_a_part_that_never_is_a_sentence_is_refused(trained):
    (refused,) = trained.predict(["spirit level"])
    assert refused.reason == (
        "'spirit level' (tool) cannot stand by itself: no training sentence is like it"
    )


def test_a_lenient_prediction_has_a_remark(trained):
    (best,) = trained.predict(["put top on saw"], lenient=True)
    assert best.words == ("PUT", "SAW", "TOP")
    assert best.remark == "'top' (shelf) cannot stand where tool stands: put □tool on □"
    (best,) = trained.predict(["put saw on top"], lenient=True)
    assert best.remark is None


def test_a_new_combination_of_like_parts_is_licensed(trained):
    # no training pair has more than two commands, or the spirit level in a second one from the side
    text = "take spirit level from side and put saw on floor and take spirit level from top"
    (best,) = trained.predict([text])
    assert " ".join(best.words) == "TAKE SIDE SPIRIT_LEVEL ; PUT FLOOR SAW ; TAKE TOP SPIRIT_LEVEL"


def test_rules_name_the_categories_of_their_holes(trained):
    texts = set(trained.grammar.texts)
    assert "put □tool on □shelf → 'PUT' 3 1" in texts
    assert "□sentence and □sentence → 0 ';' 2" in texts


def test_an_evaluation_counts_a_refused_sentence_as_wrong(trained):
    pair = Pair(("put", "top", "on", "saw"), ("PUT", "SAW", "TOP"))
    assert trained.score([pair]) == 0.0


def test_licences_survive_a_directory(trained, tmp_path):
    trained.save(tmp_path / "model")
    again = Trained.load(tmp_path / "model")
    assert again.grammar.licences.needed == trained.grammar.licences.needed
    assert again.grammar.texts == trained.grammar.texts
    assert (
        again.predict(["put top on saw"])[0].reason == trained.predict(["put top on saw"])[0].reason
    )


def test_a_grammar_without_licences_accepts_every_combination(trained):
    content = learned_to_json(trained.grammar, trained.symmetry)
    del content["root"]
    assert learned_from_json(content, trained.symmetry).licences is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root": [99]}, "root is"),
        ({"root": "all"}, "root is"),
        ({"root": [True]}, "root is"),
    ],
)
def test_a_wrong_root_in_a_file_is_refused(trained, change, message):
    content = learned_to_json(trained.grammar, trained.symmetry) | change
    with pytest.raises(DataError, match=message):
        learned_from_json(content, trained.symmetry)


def test_wrong_holes_in_a_file_are_refused(trained):
    content = json.loads(json.dumps(learned_to_json(trained.grammar, trained.symmetry)))
    content["rules"][0]["holes"] = [[0], [0], [0]]
    with pytest.raises(DataError, match="holes of rule 1"):
        learned_from_json(content, trained.symmetry)


def test_predict_refuses_and_lenient_answers_on_the_command_line(trained, tmp_path, capsys):
    trained.save(tmp_path / "model")
    assert main(["predict", str(tmp_path / "model"), "put top on saw"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "\n"
    assert "cannot stand where tool stands" in captured.err
    assert main(["predict", str(tmp_path / "model"), "put top on saw", "--lenient", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["target"] == "PUT SAW TOP"
    assert "cannot stand where tool stands" in json.loads(captured.out)["remark"]


# --- margins


def test_the_margin_is_the_distance_to_the_likeliest_other_target():
    # whether a before b after c means (a before b) after c is never shown
    words = LexicalClass("w", ("a", "b", "c"), ("A", "B", "C"))
    pairs = [Pair((x,), (x.upper(),)) for x in "abc"]
    for x, y in product("abc", repeat=2):
        pairs += [
            Pair((x, "before", y), (x.upper(), y.upper())),
            Pair((x, "after", y), (y.upper(), x.upper())),
        ]
    model = fit(pairs, [words], model=RECURSIVE)
    ((best, second),) = model.n_best(["a before b after c"], n=2)
    assert best.margin == pytest.approx(best.log_prob - second.log_prob)
    assert second.margin == pytest.approx(-best.margin)
    assert best.rival == second.words
    assert best.doubtful
    assert abs(best.margin) < 0.5
    (sure,) = model.predict(["a before b"])
    assert sure.rival is None
    assert not sure.doubtful
    assert sure.margin == pytest.approx(sure.log_prob - math.log(model.grammar.noise))


# --- the sets themselves


def test_places_accept_the_rules_of_places_with_which_they_share_one():
    words = [Rule((n,), (0,)) for n in range(4)]
    grammar = Grammar([*words, Rule((9, HOLE), (~1, 1)), Rule((8, HOLE), (~2, 1))])
    needed = {(*ROOT, 4), (*ROOT, 5), (4, 0, 0), (4, 0, 1), (5, 0, 1), (5, 0, 2)}
    licences = Licences(grammar, frozenset(needed))
    assert licences.accepted[4, 0] == {0, 1, 2}
    assert licences.accepted[ROOT] == {4, 5}
    assert not licences.accepts(ROOT, 0)
    assert licences.categories == ({0, 1, 2}, {4, 5})
    assert licences.category(3) is None


def test_a_grammar_of_one_category_prints_plain_holes(trained):
    names = Names(trained.symmetry)
    grammar = Grammar([Rule((HOLE, trained.symmetry.source_classes[5]), (0, 0))])
    licences = Licences(grammar, frozenset({(*ROOT, 0), (0, 0, 0)}))
    assert names.rules(grammar, licences) == (names.rule(grammar.rules[0]),)


def test_a_hole_names_few_categories(trained):
    symmetry = trained.symmetry
    numbers = map(symmetry.source.index.__getitem__, ("put", "take", "on", "saw"))
    put, take, on, saw = map(symmetry.source_classes.__getitem__, numbers)
    grammar = Grammar(
        [*(Rule((word, HOLE), (~5, 1)) for word in (put, take, on)), Rule((saw,), (0,))]
    )
    needed = {(*ROOT, 0), (*ROOT, 1), (0, 0, 1), (0, 0, 2), (1, 0, 2), (2, 0, 3)}
    licences, names = Licences(grammar, frozenset(needed)), Names(symmetry)
    assert names.categories(grammar, licences) == ["sentence1", "sentence2", "tool"]
    lefts = [text.partition(" →")[0] for text in names.rules(grammar, licences)]
    # all that stands at the root is one name, not sentence1|sentence2
    assert lefts == ["put □sentence", "take □sentence2", "on □tool", "<tool>"]


# --- suggestions


def test_a_suggestion_is_a_sentence_with_a_reason(trained):
    found = trained.suggest(4)
    assert 0 < len({each.source for each in found}) == len(found)
    known = {pair.source for pair in commands()}
    for each in found:
        assert each.reasons
        assert each.source not in known
        assert each.worth > 0


def test_a_rule_that_one_pair_supports_is_asked_for():
    words = LexicalClass("w", ("a", "b", "c"), ("A", "B", "C"))
    pairs = [Pair((x,), (x.upper(),)) for x in "abc"]
    pairs += [Pair((x, "and", y), (x.upper(), y.upper())) for x, y in product("abc", repeat=2)]
    model = fit([*pairs, Pair(("a", "twice"), ("A", "A"))], [words], model=RECURSIVE)
    assert any("twice" in each.source for each in model.suggest(3))


def test_a_word_in_place_of_a_hole_is_asked_for_in_other_holes_of_that_kind():
    short = [pair for pair in everything() if len(pair.source) <= 3]
    around = [pair for pair in everything() if pair.source[:2] == ("turn", "around")][:4]
    pairs = [*(pair for pair in short if "turn" not in pair.source), *around]
    model = fit(pairs, CLASSES["both"], model=RECURSIVE)
    asked = {each.source[:-1] for each in model.suggest(4)}
    assert asked >= {("turn",), ("turn", "opposite")}


def test_suggest_prints_sentences_and_reasons(trained, tmp_path, capsys):
    trained.save(tmp_path / "model")
    assert main(["suggest", str(tmp_path / "model"), "--n", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(trained.suggest(2))
    assert main(["suggest", str(tmp_path / "model"), "--n", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [tuple(row["source"].split()) for row in rows] == [
        each.source for each in trained.suggest(2)
    ]


def test_a_derivation_is_a_value(trained):
    derivation = trained.derive("put saw on top")
    assert derivation.root.rule == "put □ on □ → 'PUT' 3 1"
    assert trained.derive("saw saw") is None
