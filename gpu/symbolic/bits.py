"""`foldproof bits`: byte verdicts for every interchangeable pair of a capture that has PTX, without a device.

replay = Replay.open(Path("capture"))
for pair in replay.pairs(load_cases(Path("launches.json"))):
    print(replay.verdict(pair))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import msgspec
from foldproof.gpu.symbolic.cases import LaunchCase, allocations, blocks_of, load_cases, parameters
from foldproof.gpu.symbolic.compare import Comparer, Level
from foldproof.gpu.symbolic.execute import Block, Run, execute, launched
from foldproof.gpu.symbolic.explain import explain, specialisations
from foldproof.gpu.symbolic.graph import Graph, GraphFull
from foldproof.gpu.symbolic.lanes import Stop, Unstable
from foldproof.gpu.symbolic.normal import Domain
from foldproof.gpu.symbolic.program import Kernel
from foldproof.gpu.symbolic.reader import read_ptx
from foldproof.gpu.symbolic.sass import contract_nothing
from foldproof.gpu.symbolic.verdict import BitsError, BitsVerdict, Pair, cannot_load, witness_case
from foldproof.gpu.symbolic.witness import Searcher
from foldproof.impl.capture import Capture, Variant, capture_file, load_capture
from foldproof.impl.files import digest_of
from foldproof.impl.rules import Rules, Strictness, refusal
from foldproof.impl.strictjson import read_bytes

__all__ = ["BitsError", "BitsVerdict", "Level", "Pair", "Replay", "load_cases", "pairs", "verdict", "witness_case"]

MOST_PTX = 1 << 20
"""Bytes of PTX that are read, at 5 to 7 seconds a MiB; the longest kernel of the bundled corpus has 0.1 MB."""
ADMITS = Rules(Strictness.RUNTIME_ONE)


@dataclass(slots=True)
class _Session:
    """All runs of one launch, in one graph."""

    case: LaunchCase
    comparer: Comparer
    searcher: Searcher
    grid: Block
    blocks: Sequence[Block]
    scope: str
    runs: dict[str, tuple[Run, bool] | Stop] = field(default_factory=dict)


@dataclass(slots=True)
class Replay:
    """A capture with PTX, opened for symbolic replay; keeps the runs of the last launch, so ask its pairs in turn."""

    folder: Path
    capture: Capture
    ptx_dir: str = "ptx"
    _variants: dict[str, Variant] = field(default_factory=dict)
    _session: _Session | None = None

    @classmethod
    def open(cls, path: Path) -> Replay:
        """Open a capture folder. Raises `InvalidCapture`, or `BitsError` where it has no PTX at all."""
        capture = load_capture(path)
        replay = cls(capture_file(path).parent, capture)
        replay._variants = {v.hash: v for v in capture.kernels}
        if not any(replay.ptx_path(v.hash).is_file() for v in capture.kernels):
            raise BitsError(
                "holds no PTX", where=str(replay.folder / replay.ptx_dir), fix="build the capture with its PTX"
            )
        return replay

    def ptx_path(self, name: str) -> Path:
        """Where the PTX of a variant is looked for."""
        return self.folder / self.ptx_dir / f"{name}.ptx"

    def cubin_path(self, name: str) -> Path:
        """Where the cubin of a variant is looked for."""
        return self.folder / self.capture.bin_dir / f"{name}{self.capture.bin_ext}"

    def pairs(self, cases: Iterable[LaunchCase], *, every_launch: bool = False) -> Iterator[Pair]:
        """Every interchangeable pair, at the first launch that admits both, or at each with `every_launch`."""
        seen: set[tuple[str, str]] = set()
        for case in cases:
            fits = [
                v
                for v in self.capture.kernels
                if v.fn == case.launch.fn
                and self.ptx_path(v.hash).is_file()
                and refusal(v, case.launch, ADMITS) is None
            ]
            for one, other in combinations(sorted(fits, key=lambda v: v.hash), 2):
                key = (one.hash, other.hash)
                if every_launch or key not in seen:
                    seen.add(key)
                    yield Pair(one.fn, one.hash, other.hash, case)

    def pair(self, first: str, second: str, cases: Iterable[LaunchCase]) -> Pair:
        """The pair of two hashes at the first launch that admits both. Raises `BitsError` where there is none."""
        for name in (first, second):
            if name not in self._variants:
                raise BitsError(f"no variant has the hash {name!r}", where=str(self.folder), fix="see foldproof lint")
        wanted = {first, second}
        for found in self.pairs(cases):
            if {found.first, found.second} == wanted:
                return found
        raise BitsError(f"no launch admits both {first} and {second}", where="launches", fix="give one with --launch")

    def kernel(self, name: str) -> Kernel:
        """The parsed PTX of a variant. Raises `PtxError`, or `BitsError` where the file cannot be read."""
        path = self.ptx_path(name)
        try:
            text = read_bytes(path, BitsError, MOST_PTX).decode("utf-8")
        except UnicodeDecodeError as problem:
            raise BitsError(f"cannot be read: {problem}", where=str(path), fix="build the capture again") from None
        return read_ptx(text, where=str(path))

    def verdict(self, pair: Pair) -> BitsVerdict:
        """The verdict of a pair. Raises only for files that cannot be read; what cannot be decided is `unknown`."""
        first, second = (self._variants[h] for h in (pair.first, pair.second))
        base = BitsVerdict(
            pair.fn, pair.first, pair.second, pair.case.name, Level.UNKNOWN, change=specialisations(first, second)
        )
        for variant in (first, second):
            if reason := cannot_load(variant):
                return msgspec.structs.replace(base, reason=f"no reference: {variant.hash} {reason}")
        if self._identical(pair):
            return msgspec.structs.replace(
                base, level=Level.IDENTICAL, domain=Domain.EVERY.value, reason="the machine code is the same"
            )
        try:
            return self._compare(pair, base)
        except Unstable as stop:
            return msgspec.structs.replace(base, level=Level.UNSTABLE, reason=_said(stop))
        except Stop as stop:
            return msgspec.structs.replace(base, reason=_said(stop))
        except GraphFull:
            return msgspec.structs.replace(base, reason="the graph of values outgrew its budget")

    def _identical(self, pair: Pair) -> bool:
        paths = [self.cubin_path(h) for h in (pair.first, pair.second)]
        if not all(path.is_file() for path in paths):
            return False
        one, other = map(digest_of, paths)
        if one != other:
            return False
        a, b = (self._variants[h] for h in (pair.first, pair.second))
        return [p.name for p in a.params] == [p.name for p in b.params]

    def _opened(self, case: LaunchCase) -> _Session:
        if self._session is None or self._session.case != case:
            if case.grid is None:
                raise Stop("the launch does not say its grid")
            blocks, scope = blocks_of(case.grid)
            comparer = Comparer(Graph(), allocations(case))
            self._session = _Session(case, comparer, Searcher(comparer, case), case.grid, blocks, scope)
        return self._session

    def _run(self, session: _Session, variant: Variant) -> tuple[Run, bool]:
        """The run of a variant, and whether it is one only for inputs without NaN. Raises `Stop`."""
        found = session.runs.get(variant.hash)
        if found is None:
            try:
                found = self._execute(session, variant)
            except Stop as stop:
                found = stop
            session.runs[variant.hash] = found
        if isinstance(found, Stop):
            raise found
        return found

    def _execute(self, session: _Session, variant: Variant) -> tuple[Run, bool]:
        kernel, comparer = self.kernel(variant.hash), session.comparer
        if variant.num_ctas != 1:
            raise Stop("clusters of blocks are not modelled")
        if kernel.reqntid != (32 * variant.num_warps, 1, 1):
            raise Stop("the PTX is for another number of warps than the capture says")
        values = parameters(kernel, variant, session.case.launch)
        comparer.narrowed = False
        start = launched(kernel, values, session.grid, variant.shared)
        return execute(comparer.g, start, comparer.regions, session.blocks), comparer.narrowed

    def _compare(self, pair: Pair, base: BitsVerdict) -> BitsVerdict:
        session = self._opened(pair.case)
        variants = [self._variants[h] for h in (pair.first, pair.second)]
        (first, narrow_a), (second, narrow_b) = (self._run(session, v) for v in variants)
        comparer = session.comparer
        result = comparer.compare(first, second, narrowed=narrow_a or narrow_b)
        if all(v.enable_fp_fusion is False for v in variants):
            result = replace(result, contractible=False)  # compiled with --fmad=false
        modulo = ["ptxas keeps what PTX says"]
        modulo += [
            f"{name} holds indices below {n}, drawn from a fixed seed" for name, n in sorted(pair.case.below.items())
        ]
        if not session.scope.startswith("all"):
            modulo.append("blocks that did not run behave like those that did")
        said = msgspec.structs.replace(base, scope=session.scope, modulo=tuple(modulo), rules=result.rules)
        if result.domain is not None:
            level = Level.PROVED if result.domain is Domain.EVERY else Level.PROVED_NO_NAN
            cubins = [self.cubin_path(v.hash) for v in variants]
            if result.contractible and not contract_nothing((first.kernel, second.kernel), cubins):
                level, modulo = Level.PROVED_MODULO, [*modulo, "ptxas contracts alike in both"]
            return msgspec.structs.replace(said, level=level, domain=result.domain.value, modulo=tuple(modulo))
        if not len(result.address):
            return msgspec.structs.replace(said, level=Level.DIFFERS_STRUCTURE, reason=result.why)
        witness = session.searcher.find(result, first, second)
        return msgspec.structs.replace(
            said,
            level=Level.DIFFERS if witness is not None else Level.DIFFERS_STRUCTURE,
            differing=len(result.address),
            explanation=explain(comparer, result, self._cause(session, pair, base.change)),
            witness=witness,
            reason="" if witness is not None else "the computations differ; no input was found on which the bytes do",
        )

    def _cause(self, session: _Session, pair: Pair, change: tuple[str, ...]) -> tuple[str, ...]:
        """Of several changes those that matter: a third variant that makes one of them alone and is equal clears it."""
        if len(change) < 2:
            return change
        cleared = set()
        for name, found in session.runs.items():
            if name in (pair.first, pair.second) or isinstance(found, Stop):
                continue
            for end in (pair.first, pair.second):
                alone = specialisations(self._variants[end], self._variants[name])
                other = session.runs[end]
                if len(alone) == 1 and alone[0] in change and not isinstance(other, Stop):
                    same = session.comparer.compare(other[0], found[0], narrowed=other[1] or found[1])
                    cleared |= set(alone) if same.domain is not None else set()
        return tuple(c for c in change if c not in cleared) or change


def _said(stop: Stop) -> str:
    return f"{stop.reason} (PTX line {stop.line})" if stop.line else stop.reason


def pairs(path: Path, cases: Iterable[LaunchCase]) -> list[Pair]:
    """Every interchangeable pair of the capture at `path`, at the first launch that admits both."""
    return list(Replay.open(path).pairs(cases))


def verdict(path: Path, pair: Pair) -> BitsVerdict:
    """The verdict of one pair; for many pairs open a `Replay` once."""
    return Replay.open(path).verdict(pair)
