"""The routes: each reads its parameters, calls a view in the worker thread, and returns JSON."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from equitrans.data import Pair
from equitrans.errors import DataError, EquitransError
from equitrans.explorer import comparison, schema, summaries, views
from equitrans.explorer.differences import Comparison, Differences
from equitrans.explorer.lessons import Lessons
from equitrans.explorer.queue import BusyError, WorkQueue
from equitrans.explorer.registry import MissingRunError, Question, Registry
from equitrans.explorer.security import Access, SecurityMiddleware

LARGEST_RESPONSE = 8_000_000
"""Size of a response in bytes; a request for more gets status 400."""
TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}

Run = Annotated[str, Path(max_length=200, description="the name of a model")]
Command = Annotated[str, Query(max_length=2000, description="a command, as words")]
Target = Annotated[str | None, Query(max_length=8000, description="a target; else the predicted")]
Words = Annotated[
    list[Annotated[str, Query(max_length=200)]],
    Query(max_length=8, description="words to add, each written: word translation class"),
]
OtherRun = Annotated[str, Query(max_length=200, description="the name of another model")]
Answers = Annotated[
    list[Annotated[str, Query(max_length=10_000)]],
    Query(min_length=1, max_length=8, description="answers, each written: sentence, tab, target"),
]


async def _added(add: Words = []) -> tuple[str, ...]:  # noqa: B006
    return tuple(add)


Add = Annotated[tuple[str, ...], Depends(_added)]


async def _question(run: Run, command: Command, add: Add) -> Question:
    return Question(run, add, command)


Asked = Annotated[Question, Depends(_question)]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Problem, "description": text}
    for status, text in {
        400: "the command cannot be read",
        404: "no model has this name",
        422: "a parameter is invalid",
        503: "the server is busy",
    }.items()
}


def create_app(registry: Registry, access: Access) -> ASGIApp:
    """Return the explorer as an ASGI application."""
    queue, lessons = WorkQueue(registry.answer_together), Lessons(registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for run in tuple(registry.entries):
            queue.advance(registry.warm_up(run))
        yield
        queue.close()
        lessons.close()

    app = FastAPI(
        title="equitrans explorer", version="1", docs_url=None, redoc_url=None, lifespan=lifespan
    )
    _add_pages(app)
    _add_routes(app, registry, queue)
    _add_learning(app, registry, queue, lessons)
    add_handlers(app)
    app.openapi()  # computed once, and not on the event loop
    return SecurityMiddleware(app, access)


def _add_pages(app: FastAPI) -> None:
    """Add the files of the page, read once: no part of a request becomes a path."""
    static = files("equitrans.explorer") / "static"
    pages = {entry.name: entry.read_bytes() for entry in static.iterdir() if entry.is_file()}

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return page("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        return page(name)

    def page(name: str) -> Response:
        kind = TYPES.get(name.rpartition(".")[2])
        if name not in pages or kind is None:
            raise HTTPException(404, "there is no such page")
        return Response(
            pages[name], media_type=f"{kind}; charset=utf-8", headers={"cache-control": "no-cache"}
        )


def _add_routes(app: FastAPI, registry: Registry, queue: WorkQueue) -> None:
    """Add everything under /api."""
    described: dict[str, schema.Model] = {}
    overviews: dict[tuple[str, ...], bytes] = {}

    def overview(names: tuple[str, ...]) -> bytes:
        for name in names:
            if name not in described:
                described[name] = registry.find(name).describe()
        overviews.clear()
        overviews[names] = _json(schema.Models, schema.Models(tuple(described.values())))
        return overviews[names]

    overview(tuple(registry.entries))

    async def reply(
        request: Request, kind: type, view: Callable[[], object], *questions: Question
    ) -> Response:
        """Return what a view returns; models never change, so responses are cached."""
        key = (request.scope["path"], request.scope["query_string"].decode("latin-1"))
        content: bytes | None = registry.cache.get(key)
        if content is None:

            def work() -> bytes:
                content: bytes | None = registry.cache.get(key)
                if content is None:  # else the same request came shortly before
                    content = _json(kind, view())
                    registry.cache.put(key, content, len(content))
                return content

            content = await queue.run(work, *questions)
        return _response(content)

    def route(name: str, kind: type) -> Callable[[Any], Any]:
        path = f"/api/models/{{run}}/{name}"
        return app.get(path, response_model=kind, responses=PROBLEMS)

    @app.get("/api/models", response_model=schema.Models)
    async def list_models() -> Response:
        """All models of the page."""
        names = tuple(registry.entries)
        if (found := overviews.get(names)) is None:  # models were learned since
            found = await queue.run(lambda: overview(names))
        return _response(found)

    @route("commands", schema.Suggestions)
    async def commands(request: Request, run: Run, like: Command = "") -> Response:
        """Commands of the model's data that begin with a text, or else contain it."""
        return await reply(
            request,
            schema.Suggestions,
            lambda: schema.Suggestions(registry.find(run).suggest(like)),
        )

    @route("summary", schema.Summary)
    async def summary(request: Request, run: Run) -> Response:
        """What is known about a model."""
        return await reply(request, schema.Summary, lambda: summaries.summary(registry.find(run)))

    @route("answer", schema.Answer)
    async def answer(request: Request, asked: Asked) -> Response:
        """The best targets of a command."""
        return await reply(request, schema.Answer, lambda: registry.answer(asked), asked)

    @route("alignment", schema.Aligned)
    async def alignment(request: Request, asked: Asked, target: Target = None) -> Response:
        """The source position of each target word."""

        def view() -> schema.Aligned:
            trained = registry.model(asked.run, asked.add)
            if target is None:
                return views.align(trained, views.best_pair(registry.answer(asked)))
            words = views.read_command(trained, asked.command)
            return views.align(trained, Pair(words, views.read_target(trained, words, target)))

        questions = (asked,) if target is None else ()
        return await reply(request, schema.Aligned, view, *questions)

    @route("table", schema.Table)
    async def table(request: Request, run: Run, add: Add) -> Response:
        """The translator's table."""
        return await reply(request, schema.Table, lambda: views.table(registry.model(run, add)))

    @route("orbits", schema.Family)
    async def orbits(request: Request, asked: Asked) -> Response:
        """The family of a command, and its orbits."""

        def view() -> schema.Family:
            pair = views.best_pair(registry.answer(asked))
            return views.orbits(registry.model(asked.run, asked.add), pair)

        return await reply(request, schema.Family, view, asked)

    @route("recorded", schema.Recorded)
    async def recorded(request: Request, run: Run) -> Response:
        """The orbits recorded through training."""
        return await reply(request, schema.Recorded, lambda: registry.find(run).records)

    @route("derivation", schema.Derivation)
    async def derivation(request: Request, asked: Asked) -> Response:
        """The derivation of a command by a recursive aligner, or by LANE."""

        def view() -> schema.Derivation:
            trained = registry.model(asked.run, asked.add)
            return views.derive(trained, views.read_command(trained, asked.command))

        return await reply(request, schema.Derivation, view)

    @route("swap", schema.Swap)
    async def swap(
        request: Request, run: Run, before: Command, after: Command, add: Add
    ) -> Response:
        """What changes between two commands of one form, and what provably stays."""
        questions = [Question(run, add, command) for command in (before, after)]

        def view() -> schema.Swap:
            return comparison.swap(registry.model(run, add), *map(registry.answer, questions))

        return await reply(request, schema.Swap, view, *questions)

    @route("added", schema.Added)
    async def added(request: Request, run: Run, add: Words) -> Response:
        """The classes of a model with added words, and how far it is from the one before."""

        def view() -> schema.Added:
            found = registry.extension(run, tuple(add))
            classes = views.columns(found.trained)
            return schema.Added(classes, found.symmetrised, found.in_class, found.diluted)

        return await reply(request, schema.Added, view)

    @route("errors", schema.Errors)
    async def errors(
        run: Run,
        template: Annotated[str | None, Query(max_length=2000)] = None,
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        """The mistakes on the test pairs; the first request starts the search for them."""

        def view() -> schema.Errors:
            evaluation = registry.find(run).evaluation
            if isinstance(evaluation, str):
                return schema.Errors("missing", None, 0, 0, 0, (), (), 0, 1, 1, evaluation)
            if not evaluation.started:
                evaluation.started = True
                queue.advance(evaluation.steps())
            return evaluation.report(template, page)

        return _response(await queue.run(lambda: _json(schema.Errors, view())))


def _add_learning(app: FastAPI, registry: Registry, queue: WorkQueue, lessons: Lessons) -> None:
    """Add what goes on in the background: learning again, and the comparison of two models."""
    comparisons: dict[tuple[str, str], Comparison] = {}

    @app.get("/api/models/{run}/relearned", response_model=schema.Relearned, responses=PROBLEMS)
    async def relearned(run: Run, answer: Answers) -> Response:
        """What changes if a model is learned again with answers; the first request starts it."""
        return _response(
            await queue.run(lambda: _json(schema.Relearned, lessons.ask(run, tuple(answer))))
        )

    @app.get("/api/models/{run}/differences", response_model=Differences, responses=PROBLEMS)
    async def differences(run: Run, other: OtherRun) -> Response:
        """The sentences that two models answer differently; the first request starts the search."""

        def view() -> Differences:
            found = comparisons.get((run, other))
            if found is None:
                found = Comparison(registry.find(run), registry.find(other))
                if found.missing is not None:
                    return Differences("missing", found.missing)
                comparisons[run, other] = found
                queue.advance(found.steps())
            return found.report()

        return _response(await queue.run(lambda: _json(Differences, view())))


_adapter = lru_cache(TypeAdapter)


def _json(kind: type, value: object) -> bytes:
    """Return a response; raise DataError if it is too large."""
    content: bytes = _adapter(kind).dump_json(value)
    if len(content) > LARGEST_RESPONSE:
        raise DataError(
            f"the response ({kind.__name__}) would have {len(content):,} bytes; "
            f"the limit is {LARGEST_RESPONSE:,}"
        )
    return content


def _response(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})


def add_handlers(app: FastAPI) -> None:
    """Return every error as one line of JSON; a traceback goes to the terminal only."""

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

    async def bug(_: Request, error: Exception) -> Response:
        return problem(500, "internal error; the terminal of the server shows the details")

    app.add_exception_handler(EquitransError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, bug)
