"""The expressions of LANE, for equitrans grammar."""

import json
from typing import TYPE_CHECKING

from equitrans import training
from equitrans.cli.console import Console
from equitrans.errors import ConfigError, RunError

if TYPE_CHECKING:
    from equitrans.models import Lane


def show_expressions(path: str, model: "Lane", *, as_json: bool) -> int:
    """Print the expressions that solve the run's training sentences; return the exit status."""
    try:
        data = training.Run.open(path).load_data()
    except RunError as error:
        raise ConfigError(
            f"{error}; the expressions of LANE are those that solve its training sentences; "
            "--derive SENTENCE shows those of one sentence"
        ) from None
    pairs = list(dict.fromkeys(data.train + data.valid))
    source, target = model.symmetry.source, model.symmetry.target
    sentences = [source.encode(pair.source) for pair in pairs]
    targets = ["".join(map(chr, target.encode(pair.target))) for pair in pairs]
    _, right = model.judged(sentences, targets)
    rules = model.rules(sentences).most_common()
    if as_json:
        listed = [{"text": text, "support": count} for text, count in rules]
        content = {"expressions": listed, "pairs": len(pairs), "right": sum(right)}
        print(json.dumps(content, ensure_ascii=False))
        return 0
    console = Console()
    console.print(
        f"{len(rules)} expressions; {sum(right)} of {len(pairs)} distinct pairs predicted"
    )
    width = max((len(text) for text, _ in rules), default=0)
    for text, count in rules:
        console.print(f"  {text:{width}}  {count} {'pair' if count == 1 else 'pairs'}")
    return 0
