"""The explorer's page in a real browser, served by the real command."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from shows import SENTENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def address(shown):
    """The address that the command prints; Ctrl-C stops the server with a message of one line."""
    runs = [str(shown / name) for name in ("jump", "rules", "attention", "bare")]
    command = [sys.executable, "-m", "equitrans.cli.main", "explore", *runs, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    line = server.stdout.readline()
    assert line.startswith("jump, rules, attention, bare: http://127.0.0.1:")
    assert server.stdout.readline() == "Press Ctrl-C to stop.\n"
    yield line.split(": ", 1)[1].strip()
    server.send_signal(signal.SIGINT)
    _, err = server.communicate(timeout=120)
    assert server.returncode == 130
    assert err == "equitrans: interrupted\n"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Open the page; a logged error, a request to another server or a violated policy fails."""
    wrong: list[str] = []
    contexts = []

    def opened(query="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if _is_wrong(m) else None)
        page.on("request", lambda r: r.url.startswith(address) or wrong.append(r.url))
        page.goto(address + query)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong


def _is_wrong(message):
    """Some tests cause refused requests, which the browser logs as errors."""
    return message.type == "error" and "Failed to load resource" not in message.text


def serious(page):
    """The serious violations of accessibility, each with an element."""
    found = Axe().run(page).response["violations"]
    grave = [v for v in found if v["impact"] in ("serious", "critical")]
    return [(v["id"], v["nodes"][0]["html"]) for v in grave]


def token(page, word):
    return page.locator(".sentence").get_by_role("button", name=word, exact=True)


def test_alignment_of_a_typed_command_is_read_with_mouse_and_keys(open_page):
    page = open_page()
    expect(page.get_by_text("Type a command above")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("jump twice")
    expect(page.locator(".said")).to_contain_text("I_JUMP")
    expect(page).to_have_url(re.compile(r"command=jump\+twice"))
    cell = page.get_by_role("gridcell", name=re.compile("^I_JUMP ← jump")).first
    cell.hover()
    readout = page.locator(".readout")
    expect(readout).to_contain_text("I_JUMP ← jump")
    expect(readout).to_contain_text("p(a), from classes only")
    expect(readout).to_contain_text("p(y | x), I_JUMP from jump")
    cell.click()
    page.keyboard.press("ArrowLeft")
    expect(readout).to_contain_text("← BOS")
    page.get_by_text("other guess").click()
    assert page.locator(".others li").count() > 1
    page.locator(".guess").nth(1).click()
    expect(page.get_by_text("back to the prediction")).to_be_visible()
    expect(page).to_have_url(re.compile("target="))


def test_suggested_command_is_picked(open_page):
    page = open_page()
    chip = page.locator("#picks .chip").first
    text = chip.inner_text()
    chip.click()
    expect(page.get_by_label("Command", exact=True)).to_have_value(text)
    expect(page.locator(".said .word").first).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Type a command above")).to_be_visible()


def test_page_opens_on_a_summary_with_an_example_and_a_form_for_suggestions(open_page):
    page = open_page("?run=rules")
    expect(page.get_by_role("tab", name="Summary")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("Rules; they explain")).to_be_visible()
    expect(page.get_by_text("verbs: walk")).to_be_visible()
    expect(page.locator(".cards .words .word").first).to_be_visible()
    field = page.get_by_placeholder("its target").first
    source = page.locator(".next li a").first.inner_text()
    field.fill(" I_WALK  ")
    lines = page.get_by_label("Lines for the file of pairs")
    expect(lines).to_have_value(f"{source}\tI_WALK")
    page.locator(".class", has_text="An example").get_by_role("link").click()
    expect(page.locator(".said .word").first).to_be_visible()
    expect(page.get_by_role("tab", name="Alignment")).to_have_attribute("aria-selected", "true")


def test_answers_are_learned_from_the_page_and_both_models_compared(open_page):
    page = open_page("?run=rules")
    page.get_by_placeholder("its target").first.fill("I_WALK")
    page.get_by_role("button", name="Learn again with these answers").click()
    expect(page.get_by_text("What changed")).to_be_visible()
    expect(page.get_by_text("unexplained pairs:")).to_be_visible()
    expect(page.locator(".next [role=status]")).to_contain_text(re.compile(r"of 8\d|to 8\d"))
    assert not serious(page)
    page.get_by_role("link", name="Compare both").click()
    expect(page.get_by_label("compare with")).to_have_value("rules+1")
    expect(page.locator(".pane.wide")).to_contain_text("of the training pairs of rules")
    expect(page.locator(".pane.wide")).to_contain_text("right: rules")
    page = open_page("?run=rules&with=attention&tab=errors")
    rows = page.locator(".pane.wide tbody tr")
    expect(rows.first).to_contain_text("✓")
    assert not serious(page)


def test_wide_derivation_is_dragged_and_says_so(open_page):
    page = open_page(
        "?run=rules&command=walk+twice+and+jump+twice&tab=derivation",
        viewport={"width": 390, "height": 844},
    )
    expect(page.get_by_text("The tree is wider than the page")).to_be_visible()
    frame = page.get_by_label("Derivation tree")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 20, steps=4)
    page.mouse.up()
    assert frame.evaluate("frame => frame.scrollLeft") == 100
    rule = page.locator(".node .rule").first.bounding_box()
    assert box["x"] <= rule["x"] <= rule["x"] + rule["width"] <= box["x"] + box["width"] + 1
    wide = open_page("?run=rules&command=jump+twice&tab=derivation")
    expect(wide.locator(".tree")).to_be_visible()
    expect(wide.locator(".hint")).to_be_hidden()


def test_a_wide_alignment_becomes_narrower_and_says_if_it_is_still_clipped(open_page):
    query = "?run=rules&command=" + "+and+".join(["walk+twice"] * 7)
    page = open_page(query)
    frame = page.locator(".map .scroll")
    expect(page.locator(".heat.dense")).to_be_visible()
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth + 1")
    expect(page.locator(".hint")).to_be_hidden()
    page = open_page(query, viewport={"width": 320, "height": 700})
    expect(page.get_by_text("The picture is wider than the page")).to_be_visible()


def test_differing_sentences_are_a_list_on_a_phone(open_page):
    page = open_page("?run=rules&with=attention&tab=errors", viewport={"width": 390, "height": 844})
    row = page.locator(".pane.wide tbody tr").first
    expect(row).to_contain_text("✓")
    frame = page.locator(".pane.wide .scroll")
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth + 1")
    names = row.locator("td").evaluate_all("cells => cells.map((cell) => cell.dataset.name)")
    assert names == ["sentence", "target", "rules", "attention"]
    assert not serious(page)


def test_pointing_at_an_output_word_lights_its_source_and_names_the_rule(open_page):
    page = open_page("?run=rules&command=walk+and+jump+twice")
    page.locator(".said .word").nth(2).hover()
    expect(page.locator(".origin")).to_contain_text("I_JUMP comes from jump, word 3, by the rule")
    expect(page.locator(".sentence .lit")).to_have_text("jump")
    page.locator("#command").hover()
    expect(page.locator(".lit")).to_have_count(0)
    page = open_page("?run=jump&command=jump+twice")
    page.locator(".said .word").first.click()
    expect(page.locator(".origin")).to_contain_text("comes from")


def test_large_classes_are_searched(open_page):
    page = open_page("?command=jump&tab=words")
    found = page.evaluate(
        """async () => {
          const { searchable, h } = await import("/static/dom.js");
          const words = [...Array(200).keys()].map((n) => `w${n}`);
          const [field, list] = searchable(words, (word) => h("b", {}, word), "search");
          const before = list.textContent;
          field.value = "w19";
          field.dispatchEvent(new Event("input"));
          const few = searchable(["a"], (word) => word, "").length;
          return [before.includes("and 170 more"), list.textContent, few];
        }"""
    )
    assert found == [True, "w19" + "".join(f"w{n}" for n in range(190, 200)), 1]


def test_arrow_keys_change_tabs(open_page):
    page = open_page("?command=jump&tab=table")
    expect(page.locator("td.edge-top.edge-left")).to_have_count(2)  # two classes outlined
    page.get_by_role("tab", name="Table").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Orbits")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".orbit").first).to_be_visible()
    expect(page).to_have_url(re.compile("tab=orbits"))
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Errors")).to_be_focused()


def test_clicking_a_word_swaps_it(open_page):
    page = open_page("?command=jump+twice")
    token(page, "jump").click()
    page.get_by_role("button", name="walk", exact=True).click()
    expect(page.get_by_label("Command", exact=True)).to_have_value("walk twice")
    facts = page.get_by_label("Effect of the swap")
    expect(facts).to_contain_text("After jump → walk")
    expect(facts).to_contain_text("the form provably stays")
    expect(facts).to_contain_text("p(a), the alignment provably stays")
    expect(facts).to_contain_text("p(y | x) provably stays")
    expect(facts.locator(".word.moved").first).to_be_visible()
    facts.get_by_role("link", name="back to jump twice").click()
    expect(page.get_by_label("Command", exact=True)).to_have_value("jump twice")
    token(page, "jump").click()
    page.get_by_role("button", name="look", exact=True).focus()
    page.keyboard.press("Escape")
    expect(token(page, "jump")).to_be_focused()


def test_model_without_symmetry_has_explanations_in_place_of_views(open_page):
    page = open_page("?run=attention&command=walk+twice&from=jump+twice&tab=table")
    expect(page.get_by_label("Effect of the swap")).to_contain_text("nothing is promised")
    expect(page.get_by_text("This model has no translator")).to_be_visible()
    page.get_by_role("tab", name="Alignment").click()
    expect(page.get_by_text("Attention is soft")).to_be_visible()
    page.get_by_role("tab", name="Derivation").click()
    expect(page.get_by_text("--model.aligner recursive")).to_be_visible()


def test_slider_shows_orbits_over_epochs(open_page):
    page = open_page(f"?command={SENTENCE.replace(' ', '+')}&tab=orbits&epoch=0")
    expect(page.locator(".epochs output")).to_have_text("epoch 0")
    expect(page.locator(".count")).to_contain_text("16 pairs · in theory 4 × 4 · observed")
    expect(page.locator(".orbit").first).to_be_visible()
    assert page.locator(".orbit").count() <= 4  # observed orbits are unions of theoretical ones
    slider = page.get_by_role("slider", name="epoch")
    slider.press("ArrowRight")
    expect(page.locator(".epochs output")).to_have_text("epoch 10")
    expect(page).to_have_url(re.compile("epoch=10"))
    slider.press("End")
    expect(page.locator(".epochs output")).to_have_text("epoch 30")
    page.locator(".orbit a").nth(1).click()
    expect(page.get_by_label("Command", exact=True)).not_to_have_value(SENTENCE)


def test_run_without_recorded_orbits_shows_how_to_record_them(open_page):
    page = open_page("?run=rules&command=walk+and+run&tab=orbits")
    expect(page.locator(".orbit").first).to_be_visible()
    assert not page.get_by_text("Nothing was recorded").count()
    page = open_page("?run=attention&command=walk+and+run&tab=orbits")
    expect(page.get_by_text("Nothing was recorded through training.")).to_be_visible()
    expect(page.get_by_text('--orbits "walk and run"')).to_be_visible()
    expect(page.locator(".orbit").first).to_be_visible()


def test_derivation_is_drawn_and_refusal_explained(open_page):
    page = open_page("?run=rules&command=jump+twice+and+walk&tab=derivation")
    tree = page.get_by_role("group", name="Derivation tree")
    expect(tree.locator(".node").first).to_contain_text("□ and □ → 0 2")
    expect(tree.locator(".leaf")).to_have_count(4)
    page.get_by_label("Command", exact=True).fill("jump jump")
    expect(page.get_by_text("The model refuses this command")).to_have_count(2)


def test_added_word_is_used_at_once(open_page):
    page = open_page("?command=jump+twice&tab=words")
    form = page.get_by_role("form", name="Add a word to a class")
    form.get_by_label("word", exact=True).fill("jump")
    form.get_by_label("its translation").fill("I_X")
    form.get_by_role("button", name="Add").click()
    expect(form.get_by_role("alert")).to_contain_text("knows the source word 'jump' already")
    form.get_by_label("word", exact=True).fill("blick")
    form.get_by_label("its translation").fill("I_BLICK")
    form.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Command", exact=True)).to_have_value("blick twice")
    expect(page.locator(".said")).to_contain_text("I_BLICK")
    expect(page.get_by_text("No training was needed")).to_be_visible()
    token(page, "blick").click()
    page.get_by_role("button", name="run", exact=True).click()
    expect(page.locator(".said")).to_contain_text("I_RUN")
    page.get_by_role("link", name="remove blick").click()
    expect(page.get_by_text("No training was needed")).to_have_count(0)


def test_two_runs_are_compared_side_by_side(open_page):
    page = open_page("?command=jump+twice")
    page.get_by_label("compare with").select_option("attention")
    expect(page.get_by_role("heading", name="attention")).to_be_visible()
    expect(page.get_by_text("The predictions differ.")).to_be_visible()
    expect(page.locator(".said .moved").first).to_be_visible()
    expect(page.get_by_role("grid")).to_have_count(2)
    page.get_by_label("compare with").select_option("bare")
    expect(page.get_by_text("Both predictions are the same.")).to_be_visible()
    expect(page).to_have_url(re.compile("with=bare"))
    page.get_by_label("compare with").select_option("nothing")
    expect(page.get_by_role("grid")).to_have_count(1)


def test_errors_are_filtered_and_link_to_alignments(open_page):
    page = open_page("?run=attention&tab=errors")
    expect(page.get_by_text("exact match")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)  # done
    template = page.get_by_label("Template")
    value = template.locator("option").nth(1).get_attribute("value")
    template.select_option(value)
    expect(page).to_have_url(re.compile("template="))
    expect(page.locator(".mistakes > li").first).to_be_visible()
    link = page.locator(".mistakes > li > a").first
    page.get_by_role("link", name="expected").first.click()
    expect(page.get_by_text("back to the prediction")).to_be_visible()
    page.go_back()
    command = (
        link.inner_text()
    )  # read after the filter, because the list of all templates comes first
    link.click()
    expect(page.get_by_label("Command", exact=True)).to_have_value(command)
    expect(page.get_by_role("grid")).to_be_visible()
    page.goto(page.url.split("?")[0] + "?run=bare&tab=errors")
    expect(page.get_by_text("exported without its data")).to_be_visible()


def test_rules_are_shown_as_learned_from_all_pairs(open_page):
    page = open_page("?run=rules&tab=errors")
    expect(page.get_by_text(re.compile(r"exact match · .* training pairs"))).to_be_visible()
    expect(page.get_by_text("learned from all these pairs")).to_be_visible()


def test_unknown_word_and_unknown_run_have_links_to_repair_them(open_page):
    page = open_page("?command=junp+twice")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("unknown word 'junp'; did you mean 'jump'?")
    page.get_by_role("alert").get_by_role("link", name="jump twice").click()
    expect(page.locator(".said")).to_contain_text("I_JUMP")
    page = open_page("?command=blick+twice")
    expect(page.locator(".token.unknown")).to_have_text("blick")
    page.get_by_role("alert").get_by_role("link", name="add it to a class").click()
    expect(page.get_by_label("its translation")).to_have_attribute("placeholder", "like I_WALK")
    expect(page.get_by_label("word", exact=True)).to_have_value("blick")
    page = open_page("?command=blick+and+zonk")
    expect(page.locator(".token.unknown")).to_have_text(["blick", "zonk"])
    page = open_page("?run=gone&command=jump")
    expect(page.get_by_role("alert")).to_contain_text("There is no model 'gone' here.")
    page.get_by_role("alert").get_by_role("link", name="jump").click()
    expect(page.locator(".said")).to_contain_text("I_JUMP")


def test_page_reports_a_server_that_does_not_answer(open_page):
    page = open_page("?command=jump")
    expect(page.locator(".said")).to_be_visible()
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_label("Command", exact=True).fill("jump and jump")
    expect(page.get_by_role("alert").first).to_contain_text("Is equitrans explore still running?")


def test_text_from_address_is_never_markup(open_page):
    page = open_page("?command=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&run=%3Cb%3Ebold%3C/b%3E")
    expect(page.get_by_role("alert")).to_contain_text("<b>bold</b>")
    assert page.locator("main img, main b:text('bold')").count() == 0
    page = open_page("?command=%3Cimg/src=x/onerror=alert(1)%3E&tab=derivation&run=rules")
    expect(page.get_by_role("alert")).to_contain_text("unknown word '<img/src=x/onerror=alert(1)>'")
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_serious_accessibility_violation(open_page, scheme):
    queries = {
        "": "Type a command above",
        "?run=rules": "Rules; they explain",
        "?command=walk+twice&from=jump+twice": "provably stays",
        "?command=jump&tab=table": "the translation of each word",
        f"?command={SENTENCE.replace(' ', '+')}&tab=orbits&epoch=0": "in theory",
        "?run=rules&command=jump+twice&tab=derivation": "likeliest derivation",
        "?command=jump&tab=words&add=blick+I_BLICK+verbs": "Add a word",
        "?run=attention&tab=errors": "exact match",
        "?command=junp&with=rules": "did you mean",
    }
    page = open_page(color_scheme=scheme)
    for query, text in queries.items():
        page.goto(page.url.split("?")[0] + query)
        expect(page.get_by_text(text).first).to_be_visible()
        assert not serious(page), query


def test_accessibility_check_notices_a_missing_label(open_page):
    page = open_page("?command=jump")
    expect(page.locator(".said")).to_be_visible()
    page.evaluate("document.querySelector('label.command').remove()")
    page.evaluate("document.getElementById('command').removeAttribute('placeholder')")
    assert serious(page)


def test_phone_needs_no_horizontal_scrolling(open_page):
    phone = {"viewport": {"width": 390, "height": 844}}
    for query in (
        "?command=walk+left+and+run+thrice",
        "?command=walk+and+run&tab=orbits",
        "?command=jump&tab=words",
        "?run=rules",
        "?run=jump&with=rules&command=jump+twice&tab=table",
    ):
        page = open_page(query, **phone)
        expect(page.locator("#views article").first).to_be_visible()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, query


def test_chosen_colour_scheme_survives_a_reload(open_page):
    page = open_page("?command=jump", color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Change between light and dark").click()
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark


@contextmanager
def exposed(*arguments, **environment):
    command = [sys.executable, "-m", "equitrans.cli.main", "explore", *map(str, arguments)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.communicate()


def test_exposed_page_needs_its_token(browser, shown):
    with exposed(shown / "bare", "--host", "0.0.0.0", "--expose", "--port", "0") as line:
        link = line.split(": ", 1)[1].replace("0.0.0.0", "127.0.0.1")
        page = browser.new_page()
        page.goto(link.split("?")[0])
        expect(page.get_by_text("token missing or wrong")).to_be_visible()
        page.goto(link)
        expect(page.get_by_text("Type a command above")).to_be_visible()
        assert "token" not in page.url
        page.close()
