"""What is invalid for the reference is invalid for the Zig selector, and nothing that is sent breaks it."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from foldproof.impl import Capture, Launch, load_policy
from foldproof.impl.external.answers import Reply
from foldproof.impl.external.compare import difference
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.external.serve import Session
from foldproof.impl.external.wire import kernels_text
from foldproof.impl.launch import launch_to

Case = Callable[..., tuple[Capture, list[Launch]]]
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63 - 1,
    1.0,
    1.5,
    "",
    "x",
    "0x10",
    "i32",
    "*bf16",
    ".h",
    "a/b",
    [],
    {},
    {"int": 1},
    {"none": False},
)
KEYS = (
    "value",
    "bits",
    "type",
    "addr",
    "bytes",
    "consts",
    "num_stages",
    "source",
    "annotated",
    "extra",
    "hash",
    "none",
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside the value with each of its keys or indices."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def mutated(rng: random.Random, value: Any) -> Any:
    value = copy.deepcopy(value)
    owner, key = rng.choice(list(places(value)))
    how = rng.randrange(4)
    if how == 0:
        del owner[key]
    elif how == 1 and isinstance(owner, dict):
        owner[rng.choice(KEYS)] = rng.choice(VALUES)
    elif how == 2 and isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    else:
        owner[key] = rng.choice(VALUES)
    return value


def expected(session: Session, capture: int, launch: bytes) -> Reply:
    (answer,) = session.message(b'{"type":"launch","id":1,"capture":%d,"launch":%b}' % (capture, launch), "")
    return msgspec.convert(answer, Reply)


def test_mutated_captures_and_launches(case: Case, zig_command: tuple[str, ...]) -> None:
    session, seen = Session(load_policy("three-pass")), Counter[str]()
    rng = random.Random(3)  # noqa: S311  # a seed that replays is the point
    with ProcessSelector(zig_command) as selector:
        for seed in range(250):
            capture, launches = case(seed, 6)
            kernels = json.loads(kernels_text(capture))
            for number, kept in enumerate((kernels, mutated(rng, kernels))):
                key = 2 * seed + number
                text = json.dumps(kept).encode()
                session.message(b'{"type":"capture","id":%d,"kernels":%b}' % (key, text), "")
                values = [launch_to(launch) for launch in launches]
                values = values if number else [mutated(rng, value) for value in values]
                texts = [json.dumps(value).encode() for value in values]
                answers = selector.ask_texts(key, text, len(kept) if isinstance(kept, list) else 0, texts)
                for launch, answer in zip(texts, answers, strict=True):
                    want = expected(session, key, launch)
                    assert isinstance(answer, Reply), answer
                    assert difference(want, answer) == "", (text, launch)
                    seen[str(want.error)] += 1
    assert selector.faults == []
    assert min(seen[word] for word in ("InvalidLaunch", "InvalidCapture", "None")) > 100


def test_repeated_keys(case: Case, zig_command: tuple[str, ...]) -> None:
    """A key is repeated in turn in each object of a capture and of a launch."""
    session = Session(load_policy("three-pass"))
    capture, launches = next((c, ls) for c, ls in map(case, range(99)) if len(c.kernels[0].params) == 3)
    kernels = kernels_text(capture).decode()
    launch = json.dumps(launch_to(next(one for one in launches if len(one.args) == 3)))
    with ProcessSelector(zig_command) as selector:
        pairs = [*((text, launch) for text in _repeated(kernels)), *((kernels, text) for text in _repeated(launch))]
        assert len(pairs) > 8
        for key, (one, other) in enumerate(pairs):
            session.message(b'{"type":"capture","id":%d,"kernels":%b}' % (key, one.encode()), "")
            want = expected(session, key, other.encode())
            assert want.error in ("InvalidLaunch", "InvalidCapture")
            (answer,) = selector.ask_texts(key, one.encode(), len(capture.kernels), [other.encode()])
            assert isinstance(answer, Reply)
            assert answer.error == want.error


def _repeated(text: str) -> Iterator[str]:
    """The text with the first member of each of its objects written twice; scalars only, found by their comma."""
    for at, character in enumerate(text):
        end = text.find(",", at)
        member = text[at + 1 : end]
        if character == "{" and end > 0 and not set("{}[]") & set(member):
            yield f"{text[: at + 1]}{member}, {text[at + 1 :]}"
