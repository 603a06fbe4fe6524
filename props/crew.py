"""Who does the work: this process, local processes, or the workers of a Dask scheduler.

Results come in the order of the shards, each once, whoever did them. A worker that dies loses nothing: what it had
is done again. So a run's result depends on its shards alone.
"""

from __future__ import annotations

import importlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any, Protocol, TypeVar

from foldproof.impl.errors import FoldproofError, one_line
from foldproof.impl.orphans import end_with_parent

S = TypeVar("S")
R = TypeVar("R")
MOST_TRIES = 4
"""How often one shard may cost a worker its life before the run is given up."""


class NotRun(FoldproofError):
    """Something was asked for and could not be run: the command exits with 3."""

    code = "NotRun"


def in_order(
    task: Callable[[S], R], shards: Iterable[S], *, workers: int = 1, scheduler: str = ""
) -> Iterator[tuple[S, R]]:
    """Each shard with its result, in order; shards are drawn only as workers come free.

    `task` and shards must pickle unless one worker does it all. Raises what the task raises, and `NotRun` where the
    scheduler cannot be reached or a shard ends every worker that takes it.
    """
    if scheduler:
        yield from _windowed(task, shards, DaskPool(scheduler))
    elif workers > 1:
        yield from _windowed(task, shards, _Local(workers))
    else:
        for shard in shards:
            yield shard, task(shard)


class _Pool(Protocol):
    """Somewhere to send work to."""

    def width(self) -> int:
        """How many shards can be under way without one waiting for a worker."""

    def submit(self, task: Callable[[Any], Any], shard: Any) -> Any:
        """Start a shard."""

    def result(self, future: Any) -> Any:
        """Wait for it; raises `_WorkerLostError` if its worker died."""

    def close(self) -> None:
        """Let the workers go; what is under way is dropped."""


class _WorkerLostError(Exception):
    pass


def _windowed(task: Callable[[S], R], shards: Iterable[S], pool: _Pool) -> Iterator[tuple[S, R]]:
    waiting: deque[tuple[S, Any, int]] = deque()
    source = iter(shards)
    with closing(pool):
        while True:
            while len(waiting) < 2 * pool.width() and (shard := next(source, None)) is not None:
                waiting.append((shard, pool.submit(task, shard), 1))
            if not waiting:
                return
            shard, future, tries = waiting.popleft()
            try:
                result = pool.result(future)
            except _WorkerLostError as lost:
                if tries == MOST_TRIES:
                    why = f"{tries} workers died of one shard: {one_line(str(lost))}"
                    raise NotRun(why, where=one_line(repr(shard)), fix="run it with one worker") from None
                # Its neighbours may have died with it; they are asked again when their turn comes.
                waiting.appendleft((shard, pool.submit(task, shard), tries + 1))
                continue
            yield shard, result


class _Local:
    """Processes of this machine. One that dies breaks its pool; the next shard opens a fresh one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        # Spawned, not forked: the caller may have threads and open selectors.
        spawning = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, mp_context=spawning, initializer=end_with_parent)

    def width(self) -> int:
        return self._workers

    def submit(self, task: Callable[[Any], Any], shard: Any) -> Future[Any]:
        try:
            return self._pool.submit(task, shard)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._fresh()
            return self._pool.submit(task, shard)

    def result(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except BrokenProcessPool as problem:
            raise _WorkerLostError(str(problem)) from None

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class DaskPool:
    """The workers of a Dask scheduler. They import foldproof, and find the selector under the same path."""

    def __init__(self, address: str) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise NotRun("needs the extra dask", where="--scheduler", fix="pip install 'foldproof[dask]'") from None
        self._lost = (distributed.KilledWorker, distributed.client.FutureCancelledError)
        try:
            self._client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as problem:
            why = f"no scheduler answers: {one_line(str(problem))}"
            raise NotRun(why, where=address, fix="start one with: dask scheduler") from None
        if not self.width():
            self._client.close()
            raise NotRun("the scheduler has no workers", where=address, fix=f"start one with: dask worker {address}")

    def width(self) -> int:
        """Threads of all workers."""
        threads: dict[str, int] = self._client.nthreads()
        return sum(threads.values())

    def submit(self, task: Callable[[Any], Any], shard: Any) -> Any:
        """See `_Pool`."""
        return self._client.submit(task, shard, pure=False)

    def result(self, future: Any) -> Any:
        """See `_Pool`."""
        try:
            return future.result()
        except self._lost as problem:
            raise _WorkerLostError(str(problem)) from None

    def close(self) -> None:
        """Leave the scheduler; its workers stay."""
        self._client.close()
