"""equitrans serve: a trained model as a service for programs."""

from collections.abc import Sequence
from pathlib import Path

from equitrans import explorer, training
from equitrans.cli.arguments import Parser, add_model, load
from equitrans.cli.explore import add_address, check_address, listen, load_server

ABOUT = """\
Answer the requests of programs, as JSON: POST /predict with sentences, GET /predict?sentence=…,
GET /health, GET /model; /openapi.json describes them. Only this machine can ask. To let other
machines ask, give --host and --expose: a program then needs a token, which is printed as part of
the link, in a header Authorization: Bearer TOKEN. EQUITRANS_TOKEN sets the token. Ctrl-C or SIGTERM
ends the service after the requests that have begun."""
EXAMPLES = """\
  equitrans serve model --port 8018
  equitrans serve model --fallback model/second
  curl 'http://127.0.0.1:8018/predict?sentence=dim+the+lamp'
  curl http://127.0.0.1:8018/predict -H 'content-type: application/json' \\
    -d '{"sentences": ["dim the lamp", "start the fan"]}'"""


def options() -> Parser:
    """The options of equitrans serve."""
    parser = Parser("serve", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("--fallback", metavar="RUN", help="a run for sentences that RUN refuses")
    add_address(parser, 8018)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Serve until interrupted."""
    parser = options()
    asked = parser.parse(arguments)
    check_address(parser, asked)
    server = load_server("the service")
    trained = load(asked)
    fallback = None if asked.fallback is None else training.Trained.load(asked.fallback)
    service = explorer.Service(Path(asked.run).resolve().name, trained, fallback)
    sock, access, link = listen(server, asked)
    print(f"{service.name}: {link}", flush=True)
    server.serve(explorer.create_service(service, access)).run(sockets=[sock])
    return 0
