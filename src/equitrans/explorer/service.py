"""A trained model as a service: sentences in, answers out, as JSON.

Answers are cached by sentence. A rule model is asked without torch, and its short sentences are
answered at once. Every other sentence is answered in the worker thread, together with all others
that wait; the model itself is asked for reasons, remarks and derivations.
"""

import json
import math
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp

from equitrans import __version__
from equitrans.analysis import Prediction
from equitrans.errors import DataError
from equitrans.explorer.app import LARGEST_RESPONSE, PROBLEMS, add_handlers
from equitrans.explorer.queue import Cache, WorkQueue
from equitrans.explorer.security import Access, SecurityMiddleware
from equitrans.training import Trained, answerer

CACHE_BYTES = 32_000_000
"""Size of the cache of answers in bytes."""
LARGEST_BODY = 1_000_000
"""Size of a request in bytes; a larger one gets status 413."""
SHORT, AT_ONCE = 16, 10
"""Largest number of words of a sentence, and of sentences of a request, that are answered outside
the worker thread: milliseconds."""
MOST_SENTENCES, LONGEST = 1000, 2000
"""Largest number of sentences in a request, and of characters in a sentence."""

Key = tuple[str, str, str]
"""A sentence, "lenient" or nothing, "derivation" or nothing."""

Sentence = Annotated[str, Field(max_length=LONGEST, description="a sentence, as words")]
Lenient = Annotated[
    bool, Query(description="answer sentences that combine rules as no pair suggests, too")
]
Derive = Annotated[bool, Query(description="add the derivation of each sentence")]


class Answer(BaseModel):
    """The target of a sentence, or the reason why it is refused."""

    source: str
    target: str | None
    refused: bool
    reason: str | None
    margin: float | None = Field(description="log p less that of the rival, if the model knows it")
    rival: str | None = Field(description="the likeliest other target")
    doubtful: bool
    remark: str | None = Field(description="the combination that no training pair suggests")
    by: str = Field(description="model or fallback, or the part of the model: rules or second")
    derivation: list[str] | None = Field(description="the rules of the derivation, root first")


class Answers(BaseModel):
    """The answers to the sentences of a request, in order."""

    answers: list[Answer]


class Questions(BaseModel):
    """Sentences to answer."""

    model_config = ConfigDict(extra="forbid")
    sentences: Annotated[list[Sentence], Field(min_length=1, max_length=MOST_SENTENCES)]
    lenient: bool = False
    derivation: bool = False


class Health(BaseModel):
    """The state of the service."""

    status: str
    model: str
    version: str
    sentences: int = Field(description="number of sentences answered")
    seconds: float = Field(description="time since the start")


class Described(BaseModel):
    """What the model knows."""

    name: str
    source_words: int
    target_words: int
    classes: dict[str, int] = Field(description="number of words of each class")
    rules: list[str] = Field(description="the rules, if the model has some")
    figures: dict[str, Any] = Field(description="the known figures of training and test")


@dataclass
class Service:
    """A model, perhaps a second one for sentences that it refuses, and a cache of answers."""

    name: str
    trained: Trained
    fallback: Trained | None = None
    sentences: int = 0
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.cache = Cache(CACHE_BYTES)
        self.plain = answerer(self.trained)

    def at_once(self, keys: Sequence[Key]) -> list[bytes] | None:
        """The answers as JSON if all of them are in the cache or take little time."""
        found: list[bytes] = []
        for key in keys:
            content: bytes | None = self.cache.get(key)
            if content is None and len(keys) <= AT_ONCE and key[0].count(" ") < SHORT:
                content = self._plain(key)
            if content is None:
                return None
            found.append(content)
        return found

    def _plain(self, key: Key) -> bytes | None:
        """The answer of a rule model without torch, put into the cache; None if there is none."""
        sentence, _, derive = key
        if self.plain is None or derive:
            return None
        plain = self.plain.answer(sentence)
        if plain.reason is not None:
            return None
        rival = None if plain.rival is None else self.trained.text(plain.rival)
        return self._kept(key, _answer(sentence, plain.text, margin=plain.margin, rival=rival))

    def _kept(self, key: Key, answer: dict[str, Any]) -> bytes:
        """An answer as JSON, put into the cache."""
        content = json.dumps(answer).encode()
        self.cache.put(key, content, len(content))
        return content

    def answer(self, keys: Sequence[Key]) -> list[bytes]:
        """The answers as JSON: from the cache, plain ones, those of the model, the fallback's."""
        found: dict[Key, bytes] = {}
        for key in dict.fromkeys(keys):
            if (content := self.cache.get(key) or self._plain(key)) is not None:
                found[key] = content
        for lenient in ("", "lenient"):
            rest = [key for key in dict.fromkeys(keys) if key not in found and key[1] == lenient]
            said = self._asked(rest, self.trained, "model", lenient=bool(lenient))
            refused = [key for key in rest if said[key]["refused"]]
            if self.fallback is not None and refused:
                other = self._asked(refused, self.fallback, "fallback", lenient=bool(lenient))
                said |= {key: answer for key, answer in other.items() if not answer["refused"]}
            found |= {key: self._kept(key, answer) for key, answer in said.items()}
        return [found[key] for key in keys]

    def _asked(
        self, keys: Sequence[Key], trained: Trained, by: str, *, lenient: bool
    ) -> dict[Key, dict[str, Any]]:
        """The answers of a model."""
        said = trained.predict([sentence for sentence, _, _ in keys], lenient=lenient)
        found = {}
        for key, prediction in zip(keys, said, strict=True):
            answer = _predicted(trained, key[0], prediction, by)
            derived = trained.grammar is not None and prediction.by != "second"
            if key[2] and derived and not prediction.refused:
                answer["derivation"] = str(trained.derive(key[0])).splitlines()
            found[key] = answer
        return found

    def describe(self) -> Described:
        """What the model knows."""
        symmetry, grammar = self.trained.symmetry, self.trained.grammar
        figures = self.trained.origin.to_json().get("figures", {})
        return Described(
            name=self.name,
            source_words=len(symmetry.source.words),
            target_words=len(symmetry.target.words),
            classes={c.name: len(c.rows) for c in symmetry.classes},
            rules=[] if grammar is None else list(grammar.texts),
            figures=figures,
        )


def _predicted(trained: Trained, sentence: str, p: Prediction, by: str) -> dict[str, Any]:
    rival = None if p.rival is None else trained.text(p.rival)
    target = None if p.refused else trained.text(p.words)
    margin = p.margin if p.margin is not None and math.isfinite(p.margin) else None
    answer = _answer(sentence, target, margin=margin, rival=rival)
    return answer | {
        "reason": p.reason,
        "refused": p.refused,
        "doubtful": p.doubtful,
        "remark": p.remark,
        "by": p.by or by,
    }


def _answer(
    sentence: str, target: str | None, *, margin: float | None, rival: str | None
) -> dict[str, Any]:
    doubtful = rival is not None and margin is not None and margin < math.log(9)
    return {
        "source": sentence,
        "target": target,
        "refused": False,
        "reason": None,
        "margin": margin,
        "rival": rival,
        "doubtful": doubtful,
        "remark": None,
        "by": "model",
        "derivation": None,
    }


def create_service(service: Service, access: Access) -> ASGIApp:
    """Return the service as an ASGI application."""

    def prepare(questions: Iterable[Key]) -> None:
        service.answer(list(dict.fromkeys(questions)))

    queue = WorkQueue(prepare)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        queue.close()

    app = FastAPI(
        title=f"equitrans: {service.name}",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )

    async def answers(sentences: Sequence[str], lenient: bool, derivation: bool) -> list[bytes]:
        flags = "lenient" if lenient else "", "derivation" if derivation else ""
        keys = [(" ".join(sentence.split()), *flags) for sentence in sentences]
        found = service.at_once(keys)
        if found is None:
            found = await queue.run(lambda: service.answer(keys), *keys)
        service.sentences += len(keys)
        return found

    @app.post("/predict", response_model=Answers, responses=PROBLEMS)
    async def predict(asked: Questions) -> Response:
        """The answers to up to 1,000 sentences."""
        found = await answers(asked.sentences, asked.lenient, asked.derivation)
        return _response(b'{"answers":[' + b",".join(found) + b"]}")

    @app.get("/predict", response_model=Answer, responses=PROBLEMS)
    async def predict_one(
        sentence: Annotated[str, Query(max_length=LONGEST, description="a sentence, as words")],
        lenient: Lenient = False,
        derivation: Derive = False,
    ) -> Response:
        """The answer to one sentence."""
        return _response((await answers([sentence], lenient, derivation))[0])

    @app.get("/health", response_model=Health)
    async def health() -> Health:
        """Whether the service runs, and for how long."""
        seconds = round(time.monotonic() - service.started, 3)
        return Health(
            status="ok",
            model=service.name,
            version=__version__,
            sentences=service.sentences,
            seconds=seconds,
        )

    @app.get("/model", response_model=Described)
    async def model() -> Described:
        """What the model knows."""
        return described

    described = service.describe()
    add_handlers(app)
    app.openapi()  # computed once, and not on the event loop
    return SecurityMiddleware(app, access, largest_body=LARGEST_BODY)


def _response(content: bytes) -> Response:
    if len(content) > LARGEST_RESPONSE:
        raise DataError(
            f"the answers would have {len(content):,} bytes; the limit is {LARGEST_RESPONSE:,}; "
            "send fewer sentences"
        )
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})
