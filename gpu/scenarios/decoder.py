"""The decoder as data: its sizes, its weights from a seed, and the launches of one window of tokens.

Two layers of attention and gated MLP over 64 channels, 4 query heads, 64 tokens of vocabulary, sampled by argmax. A
token attends to the whole chunks of 16 positions before its own: the captured attention assumes that the number of keys
is a multiple of 16. Sixteen learned rows (sinks) stand before the first token, so that there is always a key.

Beside the attention a recurrent state runs along: the logits of every token taken, summed with decay. It is brought
forward once a window, over the R tokens that were taken of it: R = w where w drafts held, R = 1 token by token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from foldproof.gpu.corpus import BY_NAME
from foldproof.gpu.replay.inputs import Bytes

LAYERS = 2
CHANNELS = 64
HEADS = 4
HEAD = 64
WIDE = HEADS * HEAD
HIDDEN = 128
VOCABULARY = 64
CHUNK = 16
POSITIONS = 128
LOGIT_ROWS = 16
"""Rows of the logits product: its captured row count is a multiple of 16, so a window is padded to it."""
WINDOW = 4
"""Most tokens of one window."""
LONG = 40
"""Keys from which the attention is split in three."""
SPLITS = 3
SCALE_BITS = int(np.float32(np.log2(np.e) / np.sqrt(HEAD)).view(np.uint32))


@dataclass(frozen=True, slots=True)
class Place:
    """A device address: a named buffer of the session or the model, and an offset in bytes. `size` is what is left."""

    buffer: str
    type: str
    offset: int = 0


Value: TypeAlias = Place | int | None


@dataclass(frozen=True, slots=True)
class Call:
    """One launch of a window: a name within the window, the function, its arguments in order, and its grid.

    An int stands for itself, or for the bits of a float. `outputs` are the places it writes, each with the bytes that
    one token has there.
    """

    name: str
    fn: str
    args: tuple[tuple[str, Value], ...]
    grid: tuple[int, int, int]
    outputs: tuple[tuple[str, Place, int], ...]


def weights(seed: int) -> dict[str, Bytes]:
    """The model's constant buffers by name, as bytes: the same on every machine."""
    shapes: dict[str, tuple[int, int]] = {"w.vocabulary": (CHANNELS, VOCABULARY)}
    for layer in range(LAYERS):
        for name in ("q", "k", "v"):
            shapes[f"w.{layer}.{name}"] = (CHANNELS, WIDE)
        shapes |= {f"w.{layer}.o": (WIDE, CHANNELS), f"w.{layer}.down": (HIDDEN, CHANNELS)}
        shapes |= {f"w.{layer}.{name}": (CHANNELS, HIDDEN) for name in ("gate", "up")}
    made = {name: bf16(_draw(seed, name, shape) / np.sqrt(shape[0])) for name, shape in shapes.items()}
    made["w.table"] = bf16(_draw(seed, "table", (VOCABULARY, CHANNELS)))
    for name in ("w.final", *(f"w.{layer}.{norm}" for layer in range(LAYERS) for norm in ("norm1", "norm2"))):
        made[name] = bf16(1 + 0.1 * _draw(seed, name, (1, CHANNELS)))
    angle = np.arange(POSITIONS)[:, None] / 100.0 ** (np.arange(HEAD // 2) / (HEAD // 2))
    made["w.cos"] = np.cos(angle).astype(np.float32).view(np.uint8).reshape(-1)
    made["w.sin"] = np.sin(angle).astype(np.float32).view(np.uint8).reshape(-1)
    return made


def sinks(seed: int) -> dict[str, Bytes]:
    """The first 16 rows of each cache, by cache name, as bytes."""
    return {name: bf16(_draw(seed, name, (CHUNK, WIDE))) for name in caches()}


def bf16(values: Any) -> Bytes:
    """The bytes of values as bf16, truncated."""
    words: Bytes = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(np.uint8)
    return words.reshape(-1)


def _draw(seed: int, name: str, shape: tuple[int, int]) -> Any:
    key = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:16], "little")
    return np.random.Generator(np.random.Philox(key=key)).standard_normal(shape)


def prompt(seed: int, session: int, length: int) -> list[int]:
    """The prompt of a session."""
    key = int.from_bytes(hashlib.sha256(f"{seed}/prompt/{session}".encode()).digest()[:16], "little")
    return [int(t) for t in np.random.Generator(np.random.Philox(key=key)).integers(0, VOCABULARY, length)]


def workspace() -> dict[str, int]:
    """The session's buffers by name, in bytes, for the largest window."""
    rows = WINDOW
    sizes = {"tokens": 4 * rows, "pos": 4 * rows, "x": 2 * CHANNELS * rows, "final": 2 * CHANNELS * LOGIT_ROWS}
    sizes |= {"logits": 4 * VOCABULARY * LOGIT_ROWS, "next": 4 * rows}
    for layer in range(LAYERS):
        wide, hidden, narrow = 2 * WIDE * rows, 2 * HIDDEN * rows, 2 * CHANNELS * rows
        partial = HEADS * SPLITS * rows * 4
        own = {"q": wide, "k": wide, "qr": wide, "acc": partial * HEAD, "max": partial, "sum": partial, "att": wide}
        own |= {"h1": narrow, "o": narrow, "x1": narrow, "h2": narrow, "gate": hidden, "up": hidden, "act": hidden}
        own |= {"down": narrow, "x2": narrow}
        sizes |= {f"{layer}.{name}": size for name, size in own.items()}
    return sizes


def caches() -> dict[str, int]:
    """The key and value rows of a session, in bytes."""
    return {f"{layer}.{kind}cache": POSITIONS * WIDE * 2 for layer in range(LAYERS) for kind in "kv"}


def kept() -> dict[str, int]:
    """What a session keeps from window to window, in bytes: the caches and the recurrent state."""
    return {**caches(), "state": 4 * VOCABULARY}


def splits_for(keys: int) -> int:
    """How many splits the attention over so many keys has.

    It follows the keys alone. Were it to follow the window, the sums of the attention would be split differently in the
    two runs, and their bytes would differ whatever variant serves them.
    """
    return SPLITS if keys >= LONG else 1


def window_calls(position: int, tokens: int) -> Iterator[Call]:
    """The launches for `tokens` tokens from `position` on, all within one chunk of 16 positions."""
    keys = position // CHUNK * CHUNK
    if not 0 < tokens <= WINDOW or position < CHUNK or (position + tokens - 1) // CHUNK * CHUNK != keys:
        raise ValueError(f"{tokens} tokens from {position} are no window")
    yield _call(
        "embed", "_embed", [_p("tokens", "*i32"), _p("w.table"), _p("x"), 1], (tokens, 1, 1), {"OUT": 2 * CHANNELS}
    )
    x = "x"
    for layer in range(LAYERS):
        yield from _attention(layer, x, position, tokens, keys)
        yield from _mlp(layer, tokens)
        x = f"{layer}.x2"
    yield _norm("final", x, "final", tokens)
    sizes = [LOGIT_ROWS, VOCABULARY, CHANNELS, CHANNELS, 1, VOCABULARY]
    args: list[Value] = [_p("final"), _p("w.vocabulary"), _p("logits", "*fp32"), *sizes]
    yield _call("logits", "_dot_small", args, (1, VOCABULARY // 32, 1), {"OUT": 4 * VOCABULARY})
    args = [_p("logits", "*fp32"), _p("next", "*i32"), VOCABULARY, 1, VOCABULARY]
    yield _call("argmax", "_row_argmax", args, (tokens, 1, 1), {"OUT": 4})


def commit_call(taken: int) -> Call:
    """The launch that brings the recurrent state forward over the first `taken` tokens of the last window."""
    if not 0 < taken <= WINDOW:
        raise ValueError(f"{taken} tokens cannot be taken of a window")
    args: list[Value] = [_p("logits", "*fp32"), _p("state", "*fp32"), taken, VOCABULARY]
    return _call("commit", "_trip_decay", args, (1, 1, 1), {"OUT": 4 * VOCABULARY})


def _attention(layer: int, x: str, position: int, tokens: int, keys: int) -> Iterator[Call]:
    def own(name: str, type_: str = "*bf16") -> Place:
        return _p(f"{layer}.{name}", type_)

    row = 2 * WIDE * position
    splits = splits_for(keys)
    yield _norm(f"{layer}.norm1", x, f"{layer}.h1", tokens)
    for name, out in (("q", own("q")), ("k", own("k")), ("v", _p(f"{layer}.vcache", offset=row))):
        yield _linear(f"{layer}.{name}", own("h1"), out, tokens, CHANNELS, WIDE)
    for name, source, out in (
        ("q_rotary", own("q"), own("qr")),
        ("k_rotary", own("k"), _p(f"{layer}.kcache", offset=row)),
    ):
        args: list[Value] = [source, _p("pos", "*i32"), _p("w.cos", "*fp32"), _p("w.sin", "*fp32"), out, 1]
        yield _call(f"{layer}.{name}", "_rotary", args, (tokens * HEADS, 1, 1), {"OUT": 2 * WIDE})
    parts = [own("acc", "*fp32"), own("max", "*fp32"), own("sum", "*fp32")]
    args = [own("qr"), own("kcache"), own("vcache"), *parts, keys, splits, 2, WIDE, SCALE_BITS]
    bytes_ = {"ACC": HEADS * splits * HEAD * 4, "MAX": HEADS * splits * 4, "SUM": HEADS * splits * 4}
    yield _call(f"{layer}.attend", "_attend", args, (tokens * HEADS, splits, 1), bytes_)
    yield _call(f"{layer}.merge", "_merge", [*parts, own("att"), splits], (tokens * HEADS, 1, 1), {"OUT": 2 * WIDE})
    yield _linear(f"{layer}.o", own("att"), own("o"), tokens, WIDE, CHANNELS)
    yield _add(f"{layer}.add1", _p(x), own("o"), own("x1"), tokens)


def _mlp(layer: int, tokens: int) -> Iterator[Call]:
    def own(name: str) -> Place:
        return _p(f"{layer}.{name}")

    yield _norm(f"{layer}.norm2", f"{layer}.x1", f"{layer}.h2", tokens)
    yield _linear(f"{layer}.gate", own("h2"), own("gate"), tokens, CHANNELS, HIDDEN)
    yield _linear(f"{layer}.up", own("h2"), own("up"), tokens, CHANNELS, HIDDEN)
    args: list[Value] = [own("gate"), own("up"), own("act"), 1, tokens * HIDDEN]
    yield _call(f"{layer}.silu", "_silu_mul", args, (-(-tokens * HIDDEN // 512), 1, 1), {"OUT": 2 * HIDDEN})
    yield _linear(f"{layer}.down", own("act"), own("down"), tokens, HIDDEN, CHANNELS)
    yield _add(f"{layer}.add2", own("x1"), own("down"), own("x2"), tokens)


def _p(buffer: str, type_: str = "*bf16", offset: int = 0) -> Place:
    return Place(buffer, type_, offset)


def _call(name: str, fn: str, values: Sequence[Value], grid: tuple[int, int, int], outputs: Mapping[str, int]) -> Call:
    """A launch whose values stand in the order of the kernel's params; a float's place in it holds its bits."""
    args = tuple((param.name, value) for param, value in zip(BY_NAME[fn].params, values, strict=True))
    places = {param: value for param, value in args if isinstance(value, Place)}
    written = tuple((out, places[out], size) for out, size in outputs.items())
    return Call(name, fn, args, grid, written)


def _norm(name: str, source: str, out: str, tokens: int) -> Call:
    args: list[Value] = [_p(source), _p(f"w.{name}"), _p(out), CHANNELS, 1, CHANNELS]
    return _call(name, "_rms_norm", args, (tokens, 1, 1), {"OUT": 2 * CHANNELS})


def _linear(name: str, source: Place, out: Place, tokens: int, *sizes: int) -> Call:
    inner, outer = sizes
    args: list[Value] = [source, _p(f"w.{name}"), None, out, tokens, outer, inner, outer]
    return _call(name, "_linear", args, (-(-tokens // 16), outer // 32, 1), {"OUT": 2 * outer})


def _add(name: str, left: Place, right: Place, out: Place, tokens: int) -> Call:
    args: list[Value] = [left, right, out, 1, tokens * CHANNELS]
    return _call(name, "_residual_add", args, (-(-tokens * CHANNELS // 512), 1, 1), {"OUT": 2 * CHANNELS})
