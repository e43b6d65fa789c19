"""Wrong types in the public functions: an EquitransError that names the value, no other exception.

The calls run in a process of their own, without the type checks of the tests.
"""

import json
import subprocess
import sys

CALLS = """
fit(pairs, [verbs], model="gordon")
fit(pairs, [verbs], model=TransducerConfig)
fit(pairs, [verbs], model="gordon", training=quick)
fit(pairs, [verbs], training="fast")
fit(pairs, [verbs], training={"epochs": 1})
fit(pairs, [verbs], training=quick, seed="x")
fit(pairs, 5, training=quick)
fit(pairs, None, training=quick)
fit(pairs, [5], training=quick)
fit(pairs, ["verbs"], training=quick)
fit(pairs, {"walk": "WALK"}, training=quick)
fit(5, [verbs], training=quick)
fit(None, [verbs], training=quick)
trained.predict("walk")
trained.predict(5)
trained.predict(None)
trained.predict([5])
trained.predict([None])
trained.predict([["walk", 5]])
trained.predict([b"walk"])
trained.predict(["walk"], width="3")
trained.predict(["walk"], width=0)
trained.predict(["walk"], width=2.5)
trained.n_best(["walk"], n=0)
trained.n_best(["walk"], n="3")
trained.evaluate(5)
trained.score(None)
trained.audit(5)
trained.audit(pairs, 5)
trained.audit(pairs, [5])
trained.audit(pairs, "verbs")
trained.orbits(5)
trained.orbits("walk", 5)
trained.words(5)
extend(trained, "verbs", 5)
extend(trained, "verbs", ["a"])
extend(trained, "verbs", {"a": 5})
extend(trained, "verbs", {})
extend(trained, 5, {"a": "A"})
extend("model", "verbs", {"a": "A"})
extend(None, "verbs", {"a": "A"})
Trained.load(5)
Trained.load(None)
Trained.load("a\\0b")
Trained.from_pretrained(5)
Trained.from_pretrained(None)
trained.save(5)
trained.save("a\\0b")
trained.save_pretrained(None)
trained.push_to_hub(5)
Trained.new("gordon", trained.symmetry, max_length=3)
Estimator(5).fit(["walk"], ["WALK"])
Estimator("x").fit(["walk"], ["WALK"])
Estimator(model="gordon").fit(["walk"], ["WALK"])
Estimator(model="gordon").get_params()
Estimator(training=5).get_params()
Estimator(seed="x").fit(["walk"], ["WALK"])
Estimator().fit(5, 5)
Estimator().fit(["walk"], 5)
Estimator().set_params(training__epochs="x")
Estimator().predict(["walk"])
export(5, "out")
export("model", None)
Run.open(5)
Run.open(None)
RunConfig(data=5)
RunConfig.from_settings(5)
RunConfig.from_settings({5: 5})
RunConfig.from_settings({"kind": [], "split": "simple"})
"""

PROGRAM = """
import json, sys
from equitrans import *
from equitrans.errors import EquitransError
pairs = [("walk twice", "WALK WALK"), ("walk", "WALK"), ("jump", "JUMP")]
verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
quick = TrainingConfig(epochs=1)
trained = fit(pairs, [verbs], training=quick)
found = {}
for call in json.loads(sys.argv[1]):
    try:
        found[call] = f"gives {eval(call)!r}"
    except EquitransError as error:
        found[call] = [str(error)]
    except Exception as error:
        found[call] = f"raises {error!r}"
print(json.dumps(found))
"""


def test_wrong_types_are_reported_by_the_exceptions_of_the_package(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(CALLS.strip().splitlines())],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    found = json.loads(done.stdout)
    assert {call: said for call, said in found.items() if isinstance(said, str)} == {}
    assert found['fit(pairs, [verbs], model="gordon")'] == [
        "model is 'gordon'; expected settings such as GordonConfig()"
    ]
    assert max(len(said[0]) for said in found.values()) < 300
    assert not list(tmp_path.iterdir())
