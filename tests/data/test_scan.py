"""SCAN against its checksums, from rules, from official files and from a download."""

import functools
import http.server
import re
import socket
import threading

import pytest

from equitrans.data import DataConfig, Pair, load_data
from equitrans.data.pairs import format_scan
from equitrans.data.scan import RULES, checksum, download, everything, interpret, load_split
from equitrans.errors import ConfigError, DataError

RULE_MADE = [name for name, rule in RULES.items() if not rule.drawn]


def test_there_are_20910_commands_and_they_are_the_official_ones():
    assert len(everything()) == len(set(everything())) == 20_910
    assert checksum(everything()) == "345bff3c25864652"


@pytest.mark.parametrize("name", RULE_MADE)
def test_rule_made_splits_match_their_checksums(name):
    split = load_split(name)
    assert (checksum(split.train), checksum(split.test)) == RULES[name].shas
    assert split.origin == "rule"
    assert not set(split.train) & set(split.test)


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("simple", 16728, 4182),
        ("add_jump", 14670, 7706),
        ("add_turn_left", 21890, 1208),
        ("around_right", 15225, 4476),
        ("opposite_right", 15225, 4476),
        ("right", 15225, 4476),
        ("jump_around_right", 18528, 1173),
        ("length", 16990, 3920),
        ("simple_p1", 209, 20701),
        ("simple_p64", 13382, 7528),
    ],
)
def test_splits_have_the_official_numbers_of_rows(name, train, test):
    split = load_split(name)
    assert (len(split.train), len(split.test)) == (train, test)


def test_a_random_split_is_reproducible_and_names_its_seed():
    split = load_split("simple_p2")
    assert split == load_split("simple_p2")
    assert split.origin == "drawn with seed 2018"
    assert set(split.train) | set(split.test) == set(everything())
    assert checksum(split.train) != RULES["simple_p2"].shas[0]


def test_interpret_returns_the_actions_of_a_command():
    def means(command):
        return " ".join(interpret(tuple(command.split())))

    assert means("turn opposite left") == "I_TURN_LEFT I_TURN_LEFT"
    assert means("look around right twice") == " ".join(["I_TURN_RIGHT I_LOOK"] * 8)
    assert means("run and jump opposite left after walk") == means("run") + " " + " ".join(
        [means("walk"), means("jump opposite left")]
    )
    with pytest.raises(DataError, match="not a SCAN command"):
        interpret(("walk", "left", "left", "left"))


def test_an_unknown_split_raises_with_the_nearest_name():
    with pytest.raises(ConfigError, match="unknown split 'add_jmp'; did you mean 'add_jump'"):
        load_split("add_jmp")


def official(folder, name, *, wrong=False):
    """Write a rule-made split like its official files."""
    split = load_split(name)
    for part, pairs in (("train", split.train), ("test", split.test)):
        path = folder / RULES[name].files.format(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(format_scan(pairs[1:] if wrong else pairs))


def test_official_files_are_read_and_checked(tmp_path):
    official(tmp_path, "length")
    assert load_split("length", tmp_path).origin == "official"
    assert load_split("add_jump", tmp_path).origin == "rule"
    official(tmp_path, "length", wrong=True)
    with pytest.raises(DataError, match="not the official rows of length"):
        load_split("length", tmp_path)
    with pytest.raises(DataError, match="simple_p1 is a random draw, so its files must be there"):
        load_split("simple_p1", tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        load_split("length", tmp_path / "nowhere")


@pytest.fixture
def server(tmp_path):
    """A loopback server of a folder; ``asked`` lists the requested paths."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{httpd.server_port}", asked
        httpd.shutdown()


def test_a_download_skips_right_files_and_keeps_no_wrong_ones(tmp_path, server, monkeypatch):
    folder, url, asked = server
    two = {name: RULES[name] for name in ("length", "add_jump")}
    monkeypatch.setattr("equitrans.data.scan.RULES", two)
    official(folder, "length")
    official(folder, "add_jump", wrong=True)
    out = tmp_path / "scan"
    with pytest.raises(DataError, match="add_jump: checksum"):
        list(download(out, url=url))
    assert load_split("length", out).origin == "official"
    assert sorted(p.name for p in out.rglob("*.txt")) == [
        "tasks_test_length.txt",
        "tasks_train_length.txt",
    ]
    assert not list(out.rglob("*.part"))

    official(folder, "add_jump")
    asked.clear()
    assert len(list(download(out, url=url))) == 4
    assert all("addprim_jump" in path for path in asked)
    assert load_split("add_jump", out).origin == "official"
    with pytest.raises(DataError, match=r"127\.0\.0\.1"):
        list(download(tmp_path / "other", url=url + "/nothing"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nIN: walk", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nIN", "IncompleteRead"),
        (b"\x1b[2Jnonsense\r\n\r\n", "BadStatusLine: .*x1b"),
        (b"", "closed connection"),
    ],
)
def test_a_download_that_breaks_off_names_the_address(tmp_path, answer, message):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            caller, _ = listening.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(DataError, match=f"{url}/.*{message}"):
            list(download(tmp_path, url=url))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://a b", "http://[::1", "gopher://x"])
def test_a_download_from_an_invalid_address_names_it(tmp_path, url):
    with pytest.raises(DataError, match=re.escape(url)):
        list(download(tmp_path, url=url))


def test_distinct_pairs_count_once():
    some, once = (
        load_data(DataConfig(split="add_jump", distinct=distinct), seed=0)
        for distinct in (False, True)
    )
    jump = Pair(("jump",), ("I_JUMP",))
    assert (some.train + some.valid).count(jump) > 1000
    assert sorted(once.train + once.valid) == sorted(set(some.train + some.valid))
