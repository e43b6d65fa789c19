"""One thread that does all the work, in the order in which it is asked for.

Predictions that are asked for while it is busy are made together: a beam search over ten sentences
takes little longer than over one. One sentence of an orbit is predicted for all of it, and those of
a model's own data in advance. Answers are remembered up to a size. What is not done: work that has
begun is not broken off, so the sizes of what may be asked are what bounds it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from equitrans.analysis import Words
from equitrans.data import Renaming
from equitrans.errors import EquitransError
from equitrans.explorer.judging import Judge
from equitrans.paper import Hypothesis
from equitrans.training import Trained

SECONDS = 10.0
"""So long may an answer take."""
WAITING = 256
"""So many may wait for answers at once."""
TOGETHER = 32
"""So many sentences are predicted at once."""
N_BEST = 5
REMEMBERED_BYTES = 32_000_000
REMEMBERED_WORDS = 4_000_000
"""What is kept of answers, and of predictions."""
FORESEEN, AT_ONCE, PATIENCE = 20_000, 16, 0.15
"""So many orbits are predicted in advance, and so few at once that nobody waits for long; none any
more once that takes longer than so many seconds of the thread."""

Value = TypeVar("Value")
Key = tuple[str, ...]


class BusyError(EquitransError):
    """Too many are waiting, or it takes too long; try again."""


class Orbit:
    """A sentence as the one that stands for its orbit (theorem 3), and the way back."""

    def __init__(self, trained: Trained, words: Words) -> None:
        self._sharing = trained.model.sharing
        self._renaming = Renaming(self._sharing)
        source = self._sharing.source
        self.words: Words = source.decode(self._renaming.source(source.encode(words)))

    def back(self, prediction: Hypothesis[str]) -> Hypothesis[str]:
        """A prediction for the sentence itself."""
        target = self._sharing.target
        words = self._renaming.original_target(target.encode(prediction.words))
        return replace(prediction, words=target.decode(words))


def _weight(best: list[Hypothesis[str]]) -> int:
    """How much room predictions take, in words."""
    return sum(len(prediction.words) + 20 for prediction in best)


class Desk:
    """Work for one thread; its methods are for one event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="desk")
        self._waiting = 0
        self._asked: dict[Key, dict[Words, asyncio.Future[list[Hypothesis[str]]]]] = {}
        self._models: dict[Key, Trained] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._predictions: OrderedDict[tuple[Key, Words], list[Hypothesis[str]]] = OrderedDict()
        self._words = 0
        self._seconds: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: OrderedDict[Key, bytes] = OrderedDict()
        self._bytes = 0
        self._judging: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        """Begin nothing more."""
        for task in (*self._tasks, *self._judging.values()):
            task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def work(self, do: Callable[..., Value], *arguments: Any) -> Value:
        """What a function gives, in its turn."""
        loop = asyncio.get_running_loop()
        return await self._limited(loop.run_in_executor(self._thread, do, *arguments))

    async def remembered(self, key: Key, make: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """An answer, made if it is not there yet."""
        if key in self._answers:
            self._answers.move_to_end(key)
            return self._answers[key]
        content = await make()
        if key not in self._answers and len(content) < REMEMBERED_BYTES // 8:
            self._answers[key] = content
            self._bytes += len(content)
            while self._bytes > REMEMBERED_BYTES:
                self._bytes -= len(self._answers.popitem(last=False)[1])
        return content

    async def best(self, key: Key, trained: Trained, words: Words) -> list[Hypothesis[str]]:
        """The best targets of a sentence whose words are known."""
        orbit = Orbit(trained, words)
        found = self._predictions.get((key, orbit.words))
        if found is not None:
            self._predictions.move_to_end((key, orbit.words))
            return [orbit.back(prediction) for prediction in found]
        self._models[key] = trained
        asked = self._asked.setdefault(key, {})
        if orbit.words not in asked:
            asked[orbit.words] = asyncio.get_running_loop().create_future()
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        found = await self._limited(asyncio.shield(asked[orbit.words]))
        return [orbit.back(prediction) for prediction in found]

    def foresee(self, key: Key, trained: Trained, commands: Callable[[], Iterable[str]]) -> None:
        """Predict the commands of a model's data, between other work."""
        self._tasks.append(asyncio.create_task(self._foresee(key, trained, commands)))

    async def _foresee(
        self, key: Key, trained: Trained, commands: Callable[[], Iterable[str]]
    ) -> None:
        loop = asyncio.get_running_loop()

        def orbits() -> list[Words]:
            known = trained.symmetry.source.index.keys()
            sentences = (trained.words(command) for command in commands())
            found = (Orbit(trained, s).words for s in sentences if set(s) <= known)
            return list(islice(dict.fromkeys(found), FORESEEN))

        waiting = await loop.run_in_executor(self._thread, orbits)
        for start in range(0, len(waiting), AT_ONCE):
            if self._words >= REMEMBERED_WORDS // 2 or self._seconds.get(key[0], 0.0) > PATIENCE:
                break  # the rest of the room, and of the time, is for what is really asked
            chunk = [
                s for s in waiting[start : start + AT_ONCE] if (key, s) not in self._predictions
            ]
            await self._predict(loop, key, trained, {s: loop.create_future() for s in chunk})

    async def _flush(self) -> None:
        """Predict what is asked for, until nothing is."""
        loop = asyncio.get_running_loop()
        try:
            while self._asked:
                key = next(iter(self._asked))
                asked, trained = self._asked.pop(key), self._models.pop(key)
                sentences = list(asked)
                for start in range(0, len(sentences), TOGETHER):
                    chunk = sentences[start : start + TOGETHER]
                    await self._predict(loop, key, trained, {s: asked[s] for s in chunk})
        finally:
            self._flushing = None

    async def _predict(
        self,
        loop: asyncio.AbstractEventLoop,
        key: Key,
        trained: Trained,
        asked: dict[Words, asyncio.Future[list[Hypothesis[str]]]],
    ) -> None:
        def predict() -> list[list[Hypothesis[str]]]:
            begun = time.thread_time()
            found = trained.n_best(list(asked), n=N_BEST, width=N_BEST)
            self._seconds[key[0]] = time.thread_time() - begun
            return found

        try:
            found = await loop.run_in_executor(self._thread, predict)
        except Exception as error:  # whoever waits is told, and the others go on
            for future in asked.values():
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # it may be that nobody waits any more
            return
        for words, future, best in zip(asked, asked.values(), found, strict=True):
            if (key, words) not in self._predictions:
                self._predictions[key, words] = best
                self._words += _weight(best)
            if not future.done():
                future.set_result(best)
        while self._words > REMEMBERED_WORDS:
            self._words -= _weight(self._predictions.popitem(last=False)[1])

    def judge(self, name: str, judge: Judge) -> None:
        """See to it that a model is being judged, between other work."""
        if name not in self._judging:
            self._judging[name] = asyncio.create_task(self._judge(judge))

    async def _judge(self, judge: Judge) -> None:
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(self._thread, judge.step):
            pass

    async def _limited(self, waited: asyncio.Future[Value]) -> Value:
        if self._waiting >= WAITING:
            waited.cancel()
            raise BusyError("too many requests are waiting; try again")
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS):
                return await waited
        except TimeoutError:
            raise BusyError(f"this takes longer than {SECONDS:g} seconds; try less") from None
        finally:
            self._waiting -= 1
