"""The message of every mistake on the command line, word for word."""

import os
import shlex
from pathlib import Path

import pytest
import torch

from equitrans.cli.main import COMMANDS
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import VERBS
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.trained import Trained

MISTAKES = """\
trian
    unknown command 'trian'; did you mean 'train'?
export model --out out --standalone out.py
    export: give --out DIR or --standalone FILE
export model --standalone out.py
    model has no rules; equitrans learn and train --model.aligner recursive learn some
serve
    serve: the following arguments are required: RUN
serve nowhere
    nowhere: no such run directory
serve model --port 70000
    serve: --port is 70000; it must be from 0 to 65535
serve model --host 0.0.0.0
    serve: other machines can reach --host 0.0.0.0; add --expose to allow that
serve model --fallback nowhere
    nowhere: no such run directory
certify model
    certify: the following arguments are required: --data
certify nowhere --data pairs.tsv
    nowhere: no such run directory
certify model --data nothing.tsv
    nothing.tsv: No such file or directory
certify model --data -
    --data must be a file, because its hash is part of the certificate
certify model --data pairs.tsv --least-right 95
    certify: --least-right is 95.0; it must be from 0 to 1
certify model --data pairs.tsv --tolerance 0
    certify: --tolerance is 0.0; it must be above 0
curve pairs.tsv
    curve: the following arguments are required: --sizes
curve pairs.tsv --sizes 3,x
    --sizes is '3,x'; expected numbers such as 20,40,80
curve pairs.tsv --sizes 3 --seeds 0
    curve: --seeds is 0; it must be 1 or more
curve pairs.tsv --sizes 2000
    a sample of 2000 pairs; the data have 5 distinct pairs, and one is left to judge
curve pairs.tsv --sizes 2 --model ruls
    curve: argument --model: unknown 'ruls'; did you mean 'rules'?
curve pairs.tsv --sizes 2 --plot pairs.tsv
    --plot pairs.tsv would overwrite what the command reads (pairs.tsv); choose another file
learn pairs.tsv
    learn: the following arguments are required: --out
learn nothing.tsv --out out
    nothing.tsv: No such file or directory
learn pairs.tsv --out used
    used already exists; choose another directory
learn pairs.tsv --out out --folds 1
    learn: --folds is 1; it must be 0, or 2 or more
learn pairs.tsv --out out --suggestions 0
    learn: --suggestions is 0; it must be 1 or more
train --split add_jmp --out out
    unknown split 'add_jmp'; did you mean 'add_jump'?
train --split length
    give --out RUN, a directory for the new run, or --resume RUN
train --out out
    give either --split NAME or --data FILE
train --split length --data pairs.tsv --out out
    give either --split NAME or --data FILE
train --split length --out out --model.hiden 3
    --model.hiden is not an option; did you mean '--model.hidden'?
train --split length --out out --model.hid 3
    --model.hid is not an option; did you mean '--model.d'?
train --split length --out out --model.hidden x
    model.hidden is 'x'; expected int
train --split length --out out --model.hidden 0
    model.hidden is 0; it must be 1 or more
train --split length --out out --training.epochs x
    training.epochs is 'x'; expected int or null
train --split length --out out --training.epochs 0
    training.epochs is 0; it must be 1 or more
train --split length --out out --model.marginal sumo
    model.marginal is 'sumo'; expected 'sum' or 'max' or 'annealed'
train --split length --out out --model transduser
    unknown model 'transduser'; did you mean 'transducer'?
train --split length --out out --recipe papr
    unknown recipe 'papr'; did you mean 'paper'?
train --split length --out out --recipe paper --model gordon
    recipe 'paper' is for the model 'transducer', not 'gordon'
train --split length --out out --classes verb
    'verb' is neither a name of classes nor a TOML file; did you mean 'verbs'?
train --split length --out out --device abacus
    --device is 'abacus'; it must be auto, cpu or cuda
train --split length --out out --threads 0
    --threads is 0; it must be from 1 to 1024
train --split length --out out --threads x
    threads is 'x'; expected int
train --split length --out out --seed -1
    seed is -1; it must be an integer from 0 to 2**63 - 1
train --split length --out out --validation 1
    data.validation is 1.0; it must lie in [0, 1)
train --split length --out out --scan-dir nowhere
    HERE/nowhere: no such folder
train --split length --out used
    used already exists; choose another directory
train --split length --out out extra
    unexpected argument 'extra'
train --split length --out out --config nowhere.yaml
    nowhere.yaml: No such file or directory
train --split length --out out --config odd.yaml
    odd.yaml: expected lines of the form name: value
train --data pairs.tsv --out out
    own data need --classes: a TOML file, discover to find them, or none for no symmetry
train --data nothing.tsv --classes none --out out
    HERE/nothing.tsv: No such file or directory
train --data bad.tsv --classes none --out out
    HERE/bad.tsv:2: expected source<TAB>target, got no TAB in 'run I_RUN'
train --data empty.tsv --classes none --out out
    HERE/empty.tsv: no pairs; …
train --data pairs.tsv --classes short.toml --out out
    HERE/short.toml: class 'v': 2 source words but 1 target words; …
train --data pairs.tsv --classes twice.toml --out out
    HERE/twice.toml: source word 'walk' is in two classes, 'v' and 'w'; …
train --resume nowhere
    nowhere: no such run directory
train --resume model
    model is a model, not a training run: no 'seed' in config.json
train --resume model --seed 3
    --resume uses the settings of the run; leave out --seed
evaluate
    evaluate: the following arguments are required: RUN
evaluate nowhere
    nowhere: no such run directory
evaluate model
    model was not trained on a SCAN split; give --data FILE
evaluate model --split lenght
    unknown split 'lenght'; did you mean 'length'?
evaluate model --data nothing.tsv
    nothing.tsv: No such file or directory
evaluate model --data pairs.tsv --split length
    evaluate: argument --split: not allowed with argument --data
evaluate model --data pairs.tsv --part all
    evaluate: argument --part: unknown 'all'; known: test, train
evaluate model --data pairs.tsv --width 0
    --width is 0; it must be 1 or more
evaluate model --data pairs.tsv --width x
    evaluate: argument --width: invalid int value: 'x'
predict
    predict: the following arguments are required: RUN
predict nowhere walk
    nowhere: no such run directory
predict model walk --jsn
    --jsn is not an option; did you mean '--json'?
predict model walk --n-best 0
    predict: --n-best is 0; it must be 1 or more
predict model walk --width 0
    --width is 0; it must be 1 or more
predict model walk --threads 0
    --threads is 0; it must be from 1 to 1024
predict model walk --device abacus
    --device is 'abacus'; it must be auto, cpu or cuda
predict model walk --file x
    predict: give sentences or --file, not both
predict model --file nothing.txt
    nothing.txt: No such file or directory
predict model walk --tsv --json
    predict: argument --json: not allowed with argument --tsv
predict model walk --tsv --alignments
    predict: --tsv cannot show --alignments; use --json or plain text
predict model walk --fallback nowhere
    nowhere: no such run directory
audit
    audit: the following arguments are required: RUN
audit model
    model was not trained on a SCAN split; give --data FILE
audit plain --data pairs.tsv
    the model has no classes; give some with --classes
audit model --data pairs.tsv --tolerance 0
    audit: --tolerance is 0.0; it must be above 0
audit model --data pairs.tsv --classes verb
    'verb' is neither a name of classes nor a TOML file; did you mean 'verbs'?
audit model --data fly.tsv
    nothing to audit: every pair has an unknown word
orbits
    orbits: the following arguments are required: RUN
orbits model
    orbits: give a sentence, or --plot FILE
orbits model fly
    'fly' has no family: unknown word 'fly'
orbits model walk run
    unexpected argument 'run'
orbits model --plot x.png
    model is a model, not a training run: no 'seed' in config.json
orbits model walk --target I_FLY
    unknown word 'I_FLY'
export
    export: the following arguments are required: RUN
export nowhere --out out
    nowhere: no such run directory
explore nowhere
    nowhere: no such run directory
export model
    export: give --out DIR or --standalone FILE
export model --out used
    used already exists; choose another directory
export model --out out --no-test --split length
    export: give --no-test, or --data or --split, not both
export model --out out --split lenght
    unknown split 'lenght'; did you mean 'length'?
extend
    extend: the following arguments are required: --class, --out
extend model --class verbs blick --out out
    'blick' is not of the form word=TARGET
extend model --class verbs blick=I_BLICK
    extend: the following arguments are required: --out
extend model --class verb blick=I_BLICK --out out
    the model has no class 'verb'; did you mean 'verbs'?
extend model --class verbs walk=I_DAX --out out
    the model knows the source word 'walk' already; only new words can join
extend model --class verbs dax=I_DAX dax=I_DOX --out out
    the word 'dax' is given twice
extend model --class verbs blick=I_BLICK --out used
    used already exists; choose another directory
grammar
    grammar: the following arguments are required: RUN
grammar model
    model has no rules; equitrans train --model.aligner recursive learns some
grammar model --plot x.png
    grammar: --plot draws a derivation; add --derive SENTENCE
suggest
    suggest: the following arguments are required: RUN
suggest model
    model has no rules; equitrans train --model.aligner recursive learns some
suggest model --n 0
    suggest: --n is 0; it must be 1 or more
check
    check: the following arguments are required: FILE
check nothing.tsv
    nothing.tsv: No such file or directory
check pairs.tsv --classes short.toml
    short.toml: class 'v': 2 source words but 1 target words…
check pairs.tsv --columns 2
    columns is '2'; expected the numbers of two columns, such as 1,2
train --data pairs.tsv --columns 0,1 --classes none --out out
    columns is '0,1'; expected the numbers of two columns, such as 1,2
train --split length --columns 1,2 --out out
    --columns chooses columns of --data FILE; a split has none
compare model --data pairs.tsv pairs.tsv
    a file is given twice: pairs.tsv, pairs.tsv
compare model
    compare: the following arguments are required: --data
evaluate model --by-column 3 --split length
    --by-column is the number of a column of --data FILE
evaluate model --split length --columns 1,2
    --columns chooses columns of --data FILE; a split has none
discover csv.tsv
    csv.tsv:1: 3 lines are not pairs: expected source<TAB>target, got no TAB in 'walk…
discover --split length --columns 1,2
    --columns chooses columns of a FILE; a split has none
discover
    give either a FILE of pairs or --split NAME
discover pairs.tsv --split length
    give either a FILE of pairs or --split NAME
discover nothing.tsv
    nothing.tsv: No such file or directory
discover bad.tsv
    bad.tsv:2: expected source<TAB>target, got no TAB in 'run I_RUN'
discover pairs.tsv --tolerance 1
    discover: --tolerance is 1.0; it must lie in [0, 1)
discover --split lenght
    unknown split 'lenght'; did you mean 'length'?
scan
    scan: the following arguments are required: what
scan lst
    scan: argument what: unknown 'lst'; did you mean 'list'?
scan show
    scan: show needs the name of a split; equitrans scan list prints them
scan show lenght
    unknown split 'lenght'; did you mean 'length'?
scan show length --rows -1
    scan: --rows is -1; it must be 0 or more
scan show length --json
    scan: --json works with list only; show has --format
scan export length
    scan: export needs --out DIR
scan download
    scan: download needs --out DIR
reproduce
    reproduce: the following arguments are required: table
reproduce table9
    reproduce: argument table: unknown 'table9'; did you mean 'table1'?
reproduce table1 --only nothing --records r
    table1 has no system with 'nothing' in its name
reproduce table1 --device abacus --records r
    --device is 'abacus'; it must be auto, cpu or cuda
reproduce beyond --data-dir nowhere --records r
    --data-dir is nowhere; expected a folder with the files of the benchmarks
reproduce beyond --only nothing --records r
    beyond has no training with 'nothing' in its title
reproduce table1 --scan-dir nowhere --records r
    nowhere: no such folder
search
    give the name of a search (search, search-length), or --split NAME and --space FILE
search nothing
    unknown search 'nothing'; known: search, search-length
search search --split length
    give the name of a search, or --split and --space, not both
search --split length --space nothing.toml
    nothing.toml: No such file or directory
search --split length --space space.toml
    space.toml has no table [space]
search --split length --space space.toml --sampler best
    search: argument --sampler: unknown 'best'; known: random, tpe
tables table9 --records used
    unknown experiment 'table9'; did you mean 'table1'?
tables table1 --records nowhere
    nowhere: no such folder; the package has no records: those of its authors are the folder …
plot lowdata --out x.png --records nowhere
    nowhere: no such folder; the package has no records: those of its authors are the folder …
plot search-length --out x.png --records nowhere
    nowhere: no such folder; the package has no records: those of its authors are the folder …
plot
    plot: the following arguments are required: --out
plot curve --out x.png
    plot: argument what: unknown 'curve'; did you mean 'curves'?
plot curves --out x.png
    plot: curves need records to draw
plot curves nowhere --out x.png
    nowhere: no such run or record
plot lowdata model --out x.png
    plot: lowdata is drawn from --records; files are for curves and lengths
doctor now
    unexpected argument 'now'
doctor --jsn
    --jsn is not an option; did you mean '--json'?
completion
    completion: the following arguments are required: shell
completion tcsh
    completion: argument shell: unknown 'tcsh'; known: bash, fish, zsh
"""
LINES = MISTAKES.splitlines()
TABLE = list(zip(LINES[::2], map(str.strip, LINES[1::2]), strict=True))


SHORT = '[[class]]\nname = "v"\nsource = ["walk", "run"]\ntarget = ["I_WALK"]\n'
TWICE = """\
[[class]]
name = "v"
source = ["walk"]
target = ["I_WALK"]
[[class]]
name = "w"
source = ["walk"]
target = ["I_RUN"]
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with untrained models, and with correct and wrong files."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("world")
    pairs = [
        *(Pair((v,), (a,)) for v, a in zip(VERBS.source, VERBS.target, strict=True)),
        Pair(("walk", "twice"), ("I_WALK", "I_WALK")),
    ]
    for name, classes in (("model", [VERBS]), ("plain", [])):
        symmetry = Symmetry.of(classes, pairs, "cyclic")
        Trained.new(TransducerConfig(), symmetry, max_length=9).save(folder / name)
    (folder / "used").mkdir()
    for name, text in {
        "pairs.tsv": format_tsv(pairs),
        "bad.tsv": "walk\tI_WALK\nrun I_RUN\n",
        "csv.tsv": "walk,I_WALK\nrun,I_RUN\njump,I_JUMP\n",
        "fly.tsv": "walk\tI_FLY\n",
        "space.toml": "x = 1\n",
        "odd.yaml": "- 1\n",
        "used/x": "",
        "empty.tsv": "",
        "short.toml": SHORT,
        "twice.toml": TWICE,
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("line", "message"), TABLE, ids=LINES[::2])
def test_a_mistake_prints_one_line_and_leaves_no_files(run, world, monkeypatch, line, message):
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(world)
    before = {*Path().rglob("*")}
    expected = f"equitrans: {message.replace('HERE', os.getcwd())}\n"
    status, out, err = run(*shlex.split(line))
    assert (status, out, err.count("\n")) == (2, "", 1)
    if expected.endswith("…\n"):  # the rest of the line varies
        assert err.startswith(expected.removesuffix("…\n"))
    else:
        assert err == expected
    assert {*Path().rglob("*")} == before


def test_every_command_has_a_mistake_in_the_table():
    assert {line.split()[0] for line, _ in TABLE} >= set(COMMANDS)
