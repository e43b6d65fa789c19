"""The routes: each reads what is asked, has it worked out at the desk, and gives JSON."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from equitrans.data import Pair
from equitrans.errors import EquitransError
from equitrans.explorer import schema, swaps, views
from equitrans.explorer.judging import Judge, Judged, nothing_to_judge
from equitrans.explorer.queue import BusyError, Desk
from equitrans.explorer.registry import MissingRunError, Shelf
from equitrans.explorer.security import App, Door, Guard
from equitrans.training import Trained

TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Models:
    """All that is shown."""

    models: tuple[schema.Model, ...]


@dataclass(frozen=True)
class Suggestions:
    """Commands to pick from."""

    commands: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """What is wrong, for the person who must act."""

    error: str


Name = Annotated[str, Path(max_length=200, description="a model's name")]
Command = Annotated[str, Query(max_length=2000, description="a command, as words")]
Target = Annotated[str | None, Query(max_length=8000, description="its target, if not predicted")]
Add = Annotated[
    list[Annotated[str, Query(max_length=200)]],
    Query(max_length=8, description="words to add, each as: word translation class"),
]
Page = Annotated[int, Query(ge=1, le=1_000_000)]

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "the command cannot be read",
        404: "there is no such model",
        422: "a parameter is not what it should be",
        503: "too busy",
    }.items()
}


def create_app(shelf: Shelf, door: Door) -> App:
    """The explorer as an ASGI application, behind its guard."""
    desk = Desk()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for one in shelf.shown.values():
            desk.foresee((one.name,), one.quick, one.all_commands)
        yield
        desk.close()

    app = FastAPI(
        title="equitrans explorer",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_pages(app)
    _add_routes(app, shelf, desk)
    _add_handlers(app)
    return Guard(app, door)


def _add_pages(app: FastAPI) -> None:
    """The files of the page, read once: nothing that a request says becomes a path."""
    static = files("equitrans.explorer") / "static"
    pages = {entry.name: entry.read_bytes() for entry in static.iterdir() if entry.is_file()}

    def page(name: str) -> Response:
        kind = TYPES.get(name.rpartition(".")[2])
        if name not in pages or kind is None:
            raise HTTPException(404, "there is no such page")
        return Response(
            pages[name], media_type=f"{kind}; charset=utf-8", headers={"cache-control": "no-cache"}
        )

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return page("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static_file(name: str) -> Response:
        return page(name)


def _add_routes(app: FastAPI, shelf: Shelf, desk: Desk) -> None:
    """Everything under /api; the models change with nothing, so their answers are remembered."""
    overview = _json(Models, Models(tuple(one.describe() for one in shelf.shown.values())))

    async def model(run: str, add: list[str]) -> tuple[tuple[str, ...], Trained]:
        key = (run, *add)
        if not add:
            return key, shelf.find(run).quick
        return key, (await desk.work(shelf.extended, run, tuple(add))).quick

    async def answered(run: str, add: list[str], command: str) -> tuple[Trained, schema.Answer]:
        key, trained = await model(run, add)
        words = views.read_command(trained, command)
        best = await desk.best(key, trained, words)
        return trained, views.answer(trained, words, best)

    def path(name: str) -> str:
        return f"/api/models/{{run}}/{name}"

    def options(kind: type) -> dict[str, Any]:
        return {"response_model": kind, "responses": _PROBLEMS}

    @app.get("/api/models", response_model=Models)
    async def list_models() -> Response:
        """All models that are shown."""
        return _response(overview)

    @app.get(path("commands"), **options(Suggestions))
    async def suggest(run: Name, like: Command = "") -> Response:
        """Commands of the model's data that begin with a text, or have it in them."""
        one = shelf.find(run)

        async def make() -> bytes:
            return _json(Suggestions, Suggestions(await desk.work(one.suggest, like)))

        return _response(await desk.remembered(("commands", like, run), make))

    @app.get(path("answer"), **options(schema.Answer))
    async def answer(run: Name, command: Command, add: Add = []) -> Response:  # noqa: B006
        """The best targets of a command."""

        async def make() -> bytes:
            _, found = await answered(run, add, command)
            return _json(schema.Answer, found)

        return _response(await desk.remembered(("answer", command, run, *add), make))

    @app.get(path("alignment"), **options(schema.Aligned))
    async def alignment(
        run: Name,
        command: Command,
        target: Target = None,
        add: Add = [],  # noqa: B006
    ) -> Response:
        """Which word of a command each word of its target comes from."""

        async def make() -> bytes:
            if target is None:
                trained, found = await answered(run, add, command)
                pair = _pair(found)
            else:
                _, trained = await model(run, add)
                pair = Pair(
                    views.read_command(trained, command), views.read_target(trained, target)
                )
            return await desk.work(lambda: _json(schema.Aligned, views.align(trained, pair)))

        key = ("alignment", command, repr(target), run, *add)
        return _response(await desk.remembered(key, make))

    @app.get(path("table"), **options(schema.Table))
    async def table(run: Name, add: Add = []) -> Response:  # noqa: B006
        """The translator's table."""

        async def make() -> bytes:
            _, trained = await model(run, add)
            return await desk.work(lambda: _json(schema.Table, views.table(trained)))

        return _response(await desk.remembered(("table", run, *add), make))

    @app.get(path("orbits"), **options(schema.Family))
    async def orbits(run: Name, command: Command, add: Add = []) -> Response:  # noqa: B006
        """The family of a command, and its orbits."""

        async def make() -> bytes:
            trained, found = await answered(run, add, command)
            pair = _pair(found)
            return await desk.work(lambda: _json(schema.Family, views.orbits(trained, pair)))

        return _response(await desk.remembered(("orbits", command, run, *add), make))

    @app.get(path("recorded"), **options(schema.Recorded))
    async def recorded(run: Name) -> Response:
        """What was recorded of orbits through training."""

        async def make() -> bytes:
            return _json(schema.Recorded, shelf.find(run).records)

        return _response(await desk.remembered(("recorded", run), make))

    @app.get(path("derivation"), **options(schema.Derivation))
    async def derivation(run: Name, command: Command, add: Add = []) -> Response:  # noqa: B006
        """How a recursive aligner derives a command."""

        async def make() -> bytes:
            _, trained = await model(run, add)
            words = views.read_command(trained, command)
            return await desk.work(lambda: _json(schema.Derivation, views.derive(trained, words)))

        return _response(await desk.remembered(("derivation", command, run, *add), make))

    @app.get(path("swap"), **options(schema.Swap))
    async def swap(run: Name, before: Command, after: Command, add: Add = []) -> Response:  # noqa: B006
        """What changes between two commands of one form, and what cannot."""

        async def make() -> bytes:
            trained, one = await answered(run, add, before)
            _, other = await answered(run, add, after)
            return await desk.work(lambda: _json(schema.Swap, swaps.compare(trained, one, other)))

        return _response(await desk.remembered(("swap", before, after, run, *add), make))

    @app.get(path("added"), **options(schema.Added))
    async def added(
        run: Name, add: Annotated[list[Annotated[str, Query(max_length=200)]], Query(max_length=8)]
    ) -> Response:
        """What it takes to add words, the last of them above all."""
        found = await desk.work(shelf.extended, run, tuple(add))
        return _response(_json(schema.Added, found.added))

    @app.get(path("errors"), **options(Judged))
    async def errors(
        run: Name,
        template: Annotated[str | None, Query(max_length=2000)] = None,
        page: Page = 1,
    ) -> Response:
        """The mistakes on the test pairs; asking for them has them looked for."""
        judge = await desk.work(lambda: shelf.find(run).judge)
        if not isinstance(judge, Judge):
            return _response(_json(Judged, nothing_to_judge(judge)))
        desk.judge(run, judge)
        return _response(_json(Judged, await desk.work(judge.report, template, page)))


def _pair(answer: schema.Answer) -> Pair:
    """A command with its prediction, which is empty if there is none."""
    return Pair(
        tuple(word.text for word in answer.words), answer.best[0].words if answer.best else ()
    )


def _json(kind: type, value: object) -> bytes:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind].dump_json(value)


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _response(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})


def _add_handlers(app: FastAPI) -> None:
    """Whatever goes wrong is one line of JSON; a traceback stays in the terminal."""

    def problem(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse({"error": message}, status, headers)

    async def ours(_: Request, error: Exception) -> Response:
        if isinstance(error, MissingRunError):
            return problem(404, str(error))
        if isinstance(error, BusyError):
            return problem(503, str(error), {"retry-after": "1"})
        return problem(400, str(error))

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return problem(422, f"{where}: {first['msg']}")

    async def plain(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    async def unforeseen(_: Request, error: Exception) -> Response:
        return problem(500, "something went wrong here; the terminal has the details")

    app.add_exception_handler(EquitransError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, unforeseen)
