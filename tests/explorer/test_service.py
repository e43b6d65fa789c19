"""equitrans serve: answers as JSON over HTTP, with the guards of the explorer."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from equitrans import Symmetry, Trained, TransducerConfig
from equitrans.explorer import service as services, views
from equitrans.explorer.entry import Entry
from equitrans.explorer.service import Service
from equitrans.explorer.summaries import summary
from ruled import home_rules
from servers import TOKEN, served

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def rules():
    return home_rules()


@pytest.fixture(scope="module")
def server(rules):
    with served(Service("home", rules)) as running:
        yield running


DIM = "dim the light in the living room to 70"


def test_a_sentence_is_answered(server):
    found = server.get("/predict?sentence=" + DIM.replace(" ", "+")).json
    assert found["source"] == DIM
    assert found["target"] == "liv.lamp level 70"
    assert (found["refused"], found["reason"], found["by"]) == (False, None, "model")
    assert found["margin"] > 0
    assert found["derivation"] is None


def test_a_batch_is_answered_in_order_with_reasons_and_derivations(server, rules):
    asked = [DIM, "dim the lamb", "call Ada", DIM, ""]
    reply = server.post("/predict", {"sentences": asked, "derivation": True})
    answers = reply.json["answers"]
    expected = rules.predict(asked)
    assert [a["source"] for a in answers] == asked
    assert [a["target"] for a in answers] == [
        None if p.refused else rules.text(p.words) for p in expected
    ]
    assert [a["reason"] for a in answers] == [p.reason for p in expected]
    assert answers[1]["derivation"] is None
    assert answers[2]["derivation"] == str(rules.derive("call Ada")).splitlines()
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_lenient_request_is_answered_with_a_remark(server):
    sentence = "lamp"
    strict, lenient = (
        server.post("/predict", {"sentences": [sentence], "lenient": lenient}).json["answers"][0]
        for lenient in (False, True)
    )
    assert strict["refused"]
    assert "cannot stand" in strict["reason"]
    assert not lenient["refused"]
    assert lenient["target"] == "lamp"
    assert lenient["remark"] == strict["reason"]


def test_health_and_model_describe_the_service(server, rules):
    before = server.get("/health").json
    server.get("/predict?sentence=call+Ada")
    after = server.get("/health").json
    assert (after["status"], after["model"]) == ("ok", "home")
    assert after["sentences"] == before["sentences"] + 1
    model = server.get("/model").json
    assert model["rules"] == list(rules.grammar.texts)
    assert model["classes"]["things"] == 3
    assert set(server.get("/openapi.json").json["paths"]) == {"/predict", "/health", "/model"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "sentences"),
        ({"sentences": []}, "sentences"),
        ({"sentences": ["a"] * 1001}, "sentences"),
        ({"sentences": ["a" * 2001]}, "sentences.0"),
        ({"sentences": [3]}, "sentences.0"),
        ({"sentences": ["a"], "lenien": True}, "lenien"),
        ([], ""),
    ],
)
def test_a_malformed_request_is_refused_with_one_line(server, content, message):
    reply = server.post("/predict", content)
    assert reply.status == 422
    assert reply.json["error"].startswith(message)


def test_large_and_chunked_bodies_hosts_and_sites_are_refused(server):
    assert server.get("/predict", "POST", content_length="2000000").status == 413
    assert server.get("/predict", "POST", transfer_encoding="chunked").status == 411
    assert server.get("/health", host="evil.example").status == 421
    assert server.get("/health", origin="http://evil.example").status == 403


def test_a_token_is_required_if_there_is_one(rules):
    with served(Service("home", rules), token=TOKEN) as running:
        assert running.get("/health").status == 401
        assert running.get("/health", authorization=f"Bearer {TOKEN}").status == 200


def test_a_fallback_answers_what_the_rules_refuse(rules):
    symmetry = Symmetry.of([], [(("dim", "lamp"), ("x",))])
    other = Trained.new(TransducerConfig(k=2, d=2, hidden=3), symmetry, max_length=2)
    found = Service("home", rules, other)
    (answer,) = found.answer([("dim lamp", "", "")])
    assert b'"by": "fallback"' in answer
    (refused,) = found.answer([("dim blick", "", "")])
    assert b"unknown word 'blick'; words of class 'names' stand only after call" in refused


def test_a_model_without_rules_answers_in_batches():
    symmetry = Symmetry.of([], [(("dim", "lamp"), ("x",))])
    model = Trained.new(TransducerConfig(k=2, d=2, hidden=3), symmetry, max_length=2)
    sentences = [" ".join(["dim"] * n) for n in range(1, 20)]
    with served(Service("lstm", model)) as running:
        answers = running.post("/predict", {"sentences": sentences}).json["answers"]
    expected = [model.text(p.words) for p in model.predict(sentences)]
    assert [a["target"] for a in answers] == expected


def test_the_cache_is_bounded(rules, monkeypatch):
    monkeypatch.setattr(services, "CACHE_BYTES", 20_000)
    small = Service("home", rules)
    for n in range(200):
        small.answer([(f"call n{n}", "", "")])
    assert 0 < small.cache.size <= 20_000


def test_clients_at_once_get_the_answers_of_one(server, rules):
    sentences = [f"dim the fan in the kitchen to {n}" for n in range(40)]
    expected = [rules.text(p.words) for p in rules.predict(sentences)]
    found = {}

    def ask(number):
        reply = server.post("/predict", {"sentences": sentences, "derivation": number % 2 == 0})
        found[number] = [answer["target"] for answer in reply.json["answers"]]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(8)] == [expected] * 8


def test_the_command_serves_and_stops_at_a_signal(rules, tmp_path):
    rules.save(tmp_path / "home")
    process = subprocess.Popen(
        [sys.executable, "-m", "equitrans.cli.main", "serve", tmp_path / "home", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        name, link = process.stdout.readline().split(": ", 1)
        assert name == "home"
        from servers import Server

        port = int(link.rstrip("/\n").rpartition(":")[2])
        found = Server(port).get("/predict?sentence=call+Ada").json
        assert found["target"] == "call Ada"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGTERM)
        assert err == ""
    finally:
        process.kill()


def test_the_explorer_derives_commands_with_phrases_and_shows_an_answered_example(rules):
    """Phrases are one symbol in a derivation."""
    entry = Entry("home", rules, None)
    command = "fix the floor lamp"
    found = views.derive(rules, rules.words(command))
    assert found.words == ("fix", "the", "floor lamp")
    assert [node.rule for node in found.nodes] == ["fix the □ → 'fix' 2", "<things> → 0"]
    told = summary(entry)
    assert told.example is not None
    assert not rules.predict([told.example])[0].refused
    assert len(told.rules) == 6
