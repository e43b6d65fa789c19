"""What notebooks show: short tables in which every text is escaped."""

import html.parser

import pytest

from equitrans import Trained
from equitrans.analysis.reports import Prediction, Report
from equitrans.data.pairs import Pair
from equitrans.notebook import LONGEST, MOST, cell, table
from equitrans.training.study import Study
from ruled import home_rules

pytestmark = pytest.mark.usefixtures("float32")

EVIL = "<script>alert('&')</script>"
TAGS = {"div", "strong", "p", "table", "thead", "tbody", "tr", "th", "td"}


class Reader(html.parser.HTMLParser):
    """Collects the text, and fails at a tag that is not balanced or not allowed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"colspan", "style"}
        assert dict(attrs).get("style") in {None, "text-align:left", "text-align:right"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def text_of(value):
    reader = Reader()
    reader.feed(value._repr_html_())
    reader.close()
    assert not reader.open
    return reader.text


@pytest.fixture(scope="module")
def rules():
    return home_rules()


def test_a_model_shows_its_classes_and_rules(rules):
    text = text_of(rules)
    for found in ("things", "floor lamp → floor_lamp", "[0-9]+ → itself", "6 rules", "'level'"):
        assert found in text


def test_a_derivation_shows_words_and_rules(rules):
    text = text_of(rules.derive("call Ada and fix the fan"))
    assert "call ‹names 1› and fix the fan\n" in text
    assert "· fix the fan\n" in text


def test_predictions_show_target_margin_and_reason(rules):
    right, refused = rules.predict(["fix the light", "fix"])
    assert text_of(right).startswith("fix lamp\n")
    assert "margin" in text_of(right)
    assert text_of(refused).startswith("refused\n")
    evil = Prediction((EVIL,), -1.0, finished=False, margin=0.5, rival=(EVIL,), remark=EVIL)
    assert text_of(evil).count(EVIL) == 3
    assert "doubtful" in text_of(evil)
    assert "<script" not in evil._repr_html_()


def test_a_report_shows_figures_and_errors(rules):
    found = rules.evaluate([("fix the fan", "fix fan"), ("fix the fan", EVIL), (EVIL, "x")])
    text = text_of(found)
    assert "33.33%" in text
    assert text.count(EVIL) == 3  # as target, as source, and in the reason of refusal
    assert isinstance(found, Report)
    everything = Report((Pair(("a",), ("a",)),), (Prediction(("a",), 0.0),), (("a",),), None, 0)
    assert "reason of refusal" not in text_of(everything)


def test_a_study_shows_its_page(rules):
    study = Study(rules, None, None, (), (EVIL,), 1.0)
    assert isinstance(study.trained, Trained)
    text = text_of(study)
    assert EVIL in text
    assert "not judged" in text


def test_long_tables_and_cells_are_cut():
    shown = table(["n"], [[n] for n in range(MOST + 5)])
    assert shown.count("<tr>") == MOST + 2
    assert "and 5 more" in shown
    assert len(cell("x" * 1000)) == LONGEST
