"""A session of the decoder on a device: its memory, its windows, and the bytes that every launch of them wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from foldproof.gpu.replay.backend import Backend
from foldproof.gpu.replay.inputs import Bytes
from foldproof.gpu.scenarios.decoder import (
    CHUNK,
    WINDOW,
    Call,
    Place,
    commit_call,
    kept,
    sinks,
    weights,
    window_calls,
    workspace,
)
from foldproof.gpu.scenarios.launching import Launcher

SPACING = 1024


@dataclass(frozen=True, slots=True)
class Wrote:
    """What one launch wrote for one token: the launch, the variant that served it, the output's name, its bytes."""

    call: str
    fn: str
    variant: str
    output: str
    data: bytes


@dataclass(frozen=True, slots=True)
class State:
    """A session saved between two windows: the next position, its token, the bytes of caches and recurrent state."""

    position: int
    token: int
    kept: Mapping[str, Bytes]


class Model:
    """The weights on a device, shared by sessions."""

    def __init__(self, backend: Backend, seed: int) -> None:
        made = weights(seed)
        self.seed = seed
        self.places = _allocated(backend, {name: data.size for name, data in made.items()})
        for name, data in made.items():
            backend.upload(self.places[name][0], data)


@dataclass(slots=True)
class _Window:
    """A window under way: where it starts, its calls, and the variants that serve them."""

    position: int
    tokens: Sequence[int]
    calls: Sequence[Call]
    variants: list[str] = field(default_factory=list)


class Session:
    """One sequence being decoded on one lane.

    `history` maps a position to what each launch wrote for it, in launch order, from the last window that took the
    position with the right token. `commits` maps the last position of a window, as far as it was taken, to the
    recurrent state after it: two runs share those at which both ended a window.
    """

    def __init__(
        self, backend: Backend, model: Model, launcher: Launcher, lane: int = 0, state: State | None = None
    ) -> None:
        self._backend, self._launcher, self._lane = backend, launcher, lane
        self._own = _allocated(backend, workspace() | kept())
        self._places = model.places | self._own
        for name, (address, size) in self._own.items():
            backend.clear(address, size)
            if name in sinks(model.seed) and state is None:
                backend.upload(address, sinks(model.seed)[name])
        self.position = CHUNK
        self.history: dict[int, list[Wrote]] = {}
        self.commits: dict[int, Wrote] = {}
        self.tokens: dict[int, int] = {}
        self.token = 0
        if state is not None:
            self.position, self.token = state.position, state.token
            for name, data in state.kept.items():
                backend.upload(self._own[name][0], data)
        self._window: _Window | None = None

    def close(self) -> None:
        """Give the session's memory back."""
        for address, _ in self._own.values():
            self._backend.release(address)

    def room(self) -> int:
        """How many tokens the next window can take before its chunk ends."""
        return min(WINDOW, CHUNK - self.position % CHUNK)

    def begin(self, tokens: Sequence[int], *, graph: bool = False) -> None:
        """Submit a window that starts at the session's position; `finish` waits for it."""
        window = _Window(self.position, list(tokens), list(window_calls(self.position, len(tokens))))
        positions = np.arange(self.position, self.position + len(tokens), dtype=np.int32)
        self._backend.upload(self._own["tokens"][0], np.asarray(tokens, np.int32).view(np.uint8))
        self._backend.upload(self._own["pos"][0], positions.view(np.uint8))
        if graph:
            self._backend.begin_graph(self._lane)
        window.variants = [self._launcher.run(call, self._address, self._lane) for call in window.calls]
        self._window = window
        self._graph = self._backend.end_graph(self._lane) if graph else None

    def submit(self) -> None:
        """Run the window's graph, if it was begun as one."""
        if self._graph is not None:
            self._backend.run_graph(self._graph, self._lane)

    def finish(self) -> list[int]:
        """Wait for the window; keep what it wrote, position by position; gives the token after each of its tokens."""
        window = self._window
        if window is None:
            raise AssertionError("no window was begun")
        self._window = None
        after = self._backend.download(self._own["next"][0], 4 * len(window.tokens)).view(np.int32)
        for row in range(len(window.tokens)):
            self.history[window.position + row] = []
            self.tokens[window.position + row] = int(window.tokens[row])
        for call, variant in zip(window.calls, window.variants, strict=True):
            for output, place, size in call.outputs:
                address, _ = self._address(place)
                data = self._backend.download(address, size * len(window.tokens)).tobytes()
                for row in range(len(window.tokens)):
                    part = data[row * size : (row + 1) * size]
                    self.history[window.position + row].append(Wrote(call.name, call.fn, variant, output, part))
        return [int(token) for token in after]

    def advance(self, accepted: int, token: int) -> None:
        """Take the first `accepted` tokens of the last window as right, into the recurrent state; `token` is next."""
        for position in list(self.history):
            if position >= self.position + accepted:
                del self.history[position], self.tokens[position]
        self.position += accepted
        self.token = token
        call = commit_call(accepted)
        variant = self._launcher.run(call, self._address, self._lane)
        self._backend.sync()
        for output, place, size in call.outputs:
            data = self._backend.download(self._address(place)[0], size).tobytes()
            self.commits[self.position - 1] = Wrote(call.name, call.fn, variant, output, data)

    def save(self) -> State:
        """The state between two windows, on the host."""
        held = {name: self._backend.download(*self._own[name]) for name in kept()}
        return State(self.position, self.token, held)

    def _address(self, place: Place) -> tuple[int, int]:
        address, size = self._places[place.buffer]
        return address + place.offset, size - place.offset


def _allocated(backend: Backend, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Address and size of each buffer."""
    return {name: (backend.allocate(-(-size // SPACING) * SPACING), size) for name, size in sizes.items()}
