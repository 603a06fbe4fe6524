"""Inputs of many MB, put to the reader of one target: `python -m abuse.big NAME`, from tests/.

A line of JSON for each: its CPU seconds and how it ended. The last line is the most memory that one took, in KiB.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from abuse.limits import within
from abuse.targets import TARGETS, Target
from foldproof.impl.errors import FoldproofError

MB = 1 << 20
LAUNCH = (
    b'{"fn":"k","args":[{"name":"P","kind":"ptr","type":"*bf16","addr":"0x1000"},{"name":"R","kind":"i32","value":1}]}'
)


def bomb() -> bytes:
    """A GB of zeros in a MB of gzip."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(bytes(16 * MB))
    return packed.getvalue()


def _log() -> bytes:
    name = b"f" * 2000
    lines = (b"aot: %d%b runs variant h, its 1 read at runtime\n" % (i, name) for i in range(40_000))
    return b"".join(lines)


def _dump() -> bytes:
    head = b"no captured Triton variant of k for this launch:\n"
    dumps = (head + b"".join(b"  arg %d: i32 %d\n" % (j, i) for j in range(900)) for i in range(150))
    return b"".join(dumps)


CASES: dict[str, Callable[[], bytes]] = {
    "100 MB of blanks": lambda: b" " * (100 * MB),
    "10 MB of lines": lambda: b"\n" * (10 * MB),
    "60 MB of zeros": lambda: bytes(60 * MB),
    "60 MB of one text": lambda: b'["' + b"x" * (60 * MB) + b'"]',
    "60 MB of one text of other planes": lambda: b'["' + "\U0001f600".encode() * (15 * MB) + b'"]',
    "60 MB of empty lists": lambda: b"[" + b"[]," * (20 * MB) + b"[]]",
    "60 MB of objects": lambda: b"[" + b'{"a":0},' * (7 * MB) + b"{}]",
    "60 MB of objects that say a thing twice": lambda: b"[" + b'{"a":0,"a":0},' * (4 * MB) + b"{}]",
    "60 MB of numbers": lambda: b"[" + b"1e9," * (15 * MB) + b"0]",
    "10 MB of objects, one a line": lambda: b"{}\n" * (3 * MB),
    "10 MB of launches, one a line": lambda: (LAUNCH + b"\n") * (10 * MB // len(LAUNCH)),
    "a list as long as is read": lambda: b"[" + b"[]," * 999_990 + b"[]]",
    "objects as many as are read": lambda: b"[" + b'{"a":0,"a":1},' * 660_000 + b"{}]",
    "a gzip bomb": bomb,
    "a gzip bomb in gzip": lambda: gzip.compress(bomb()),
    "1 MB of a dotted key": lambda: b"a." * (MB // 2 - 8) + b"a=1",
    "1 MB of dotted keys": lambda: b"".join(b"k%d" % i + b".a" * 255 + b" = 1\n" for i in range(1900)),
    "1 MB of tables": lambda: b"".join(b"[t%d]\n" % i for i in range(100_000)),
    "1 MB of one table's entries": lambda: b"[[capture]]\n" * 80_000,
    "0.9 MB of PTX": lambda: (
        b".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n.reqntid 32\n{\n"
        + b"add.s32 %r1, %r2, %r3;\n" * 40_000
        + b"ret;\n}\n"
    ),
    "PTX of scopes": lambda: (
        b".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n.reqntid 32\n{\n"
        + b"".join(b"{.reg .b32 a%d;}\n" % i for i in range(35_000))
        + b"ret;\n}\n"
    ),
    "80 MB of fallbacks": _log,
    "3 MB of misses": _dump,
    "30 MB of half a line": lambda: b"arg " + b"a" * (30 * MB),
}


def main() -> int:
    """Put every case to the target, each in a process of its own: what one input costs is not to count for the next."""
    most = 0
    for what in CASES:
        child = os.fork()
        if not child:
            _put(what, TARGETS[sys.argv[1]])
            os._exit(0)
        _, status, used = os.wait4(child, 0)
        if status:
            return 1
        most = max(most, used.ru_maxrss)
    sys.stdout.write(json.dumps(most) + "\n")
    return 0


def _put(what: str, target: Target) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / target.file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(CASES[what]())
        began, ended = time.process_time(), "read"
        try:
            with within(120):
                target.read(Path(folder))
        except FoldproofError as problem:
            ended = problem.why
        sys.stdout.write(json.dumps([what, round(time.process_time() - began, 2), ended[:100]]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
