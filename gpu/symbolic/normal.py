"""Normal forms: rewrites that leave every bit as it is, each with its reason, applied from the inputs upwards.

Two domains. EVERY holds for all bit patterns. NO_NAN also uses what holds when no floating-point input is a NaN: that
`x * 1` is `x`. The rules that proofs rest on are listed in RULES; tests hold each to arithmetic and to Z3.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from foldproof.gpu.symbolic import bitview
from foldproof.gpu.symbolic.algebra import build
from foldproof.gpu.symbolic.forms import Forms
from foldproof.gpu.symbolic.graph import Graph, Ids, Mask
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.orders import Orders
from foldproof.gpu.symbolic.primitives import CANONICAL, primitive
from foldproof.gpu.symbolic.softfloat import FORMATS, is_nan

RULES: dict[str, str] = {
    "commute": "add, mul, and the product in fma commute: IEEE 754 is symmetric, NaN results canonical (not f64)",
    "times-one": "x * 1 and x / 1 are x where x is a number or a canonical NaN: the product is exact",
    "full-one": "div.full by 1 is exact: its reciprocal of 1 is 1 (measured on the H200; PTX promises two units)",
    "fma-one": "fma(x, 1, c) is x + c: the product is exact, so both round once",
    "fma-zero": "fma(a, b, -0) is a * b: adding -0 changes no number, not even the sign of a zero",
    "plus-zero": "x + -0 and x - 0 are x where x is a number or a canonical NaN",
    "widen-narrow": "a bf16 or fp16 widened to fp32 and narrowed is itself unless it is a NaN: the widening is exact",
    "widen-bits": "a bf16 that is no NaN widened to fp32 is its bits above sixteen zeros",
    "extremum": "max and min are associative, commutative and idempotent: PTX orders -0 below +0, a NaN loses to a "
    "number (or wins, with .NaN), and what survives of NaNs alone is the canonical one",
    "argmax": "the index of the largest value, ties to the smaller index, does not depend on the order of comparisons "
    "when no value is a NaN: the pairs are totally ordered",
    "ring": "integer sums and multiples wrap in a commutative ring",
    "bitwise": "and, or and xor are associative and commutative; and, or idempotent, xor cancels",
    "rn-suffix": ".rn is the default rounding; it only forbids contraction, which the verdict states apart",
}
"""Each rewrite and why no bit changes."""


class Domain(Enum):
    """For which inputs a rewrite holds."""

    EVERY = "every bit pattern"
    NO_NAN = "no NaN"


ONES = {"f32": 0x3F800000, "bf16": 0x3F80, "f16": 0x3C00}


class Normaliser:
    """Normal forms of the nodes of one graph under one domain; results are kept. `used` names the rules applied."""

    def __init__(self, g: Graph, regions: tuple[Region, ...], domain: Domain, forms: Forms) -> None:
        self.g, self.regions, self.domain, self.forms = g, regions, domain, forms
        self.to = np.zeros(0, np.int32)
        self.used: set[str] = set()
        self.answers: dict[str, dict[int, bool]] = {}
        self.orders = Orders(self)

    def __call__(self, roots: Ids) -> Ids:
        """The normal form of each root."""
        self._room()
        cone = self.g.cone(roots, self.to > 0)
        if len(cone):
            if self.domain is Domain.NO_NAN:
                self.orders.learn(cone)
            order = np.lexsort((self.g.op[cone], self.g.level[cone]))
            cone = cone[order]
            key = self.g.level[cone].astype(np.int64) << 16 | self.g.op[cone]
            for group in np.split(cone, np.flatnonzero(np.diff(key)) + 1):
                result = self._group(group)
                self._room()
                self.to[group] = result
        return self.to[roots]

    def _room(self) -> None:
        if len(self.to) < self.g.count:
            larger = np.zeros(max(self.g.count, 2 * len(self.to)), np.int32)
            larger[: len(self.to)] = self.to
            self.to = larger

    def _group(self, nodes: Ids) -> Ids:
        g = self.g
        op = g.ops[int(g.op[nodes[0]])]
        if op.arity == 0 or op.name.startswith(("set:", "sum", "arg")):
            return nodes
        a, b, c = (self.to[column[nodes]] for column in (g.a, g.b, g.c))
        if op.name.startswith("extract"):
            return bitview.extract(g, a, g.imm[nodes], op.width)
        if op.name.startswith("cat"):
            return bitview.cat(g, a, b, op.width)
        if op.name.startswith("sel"):
            plain = bitview.select(g, a, b, c, op.width)
            return self.orders.select(nodes, plain) if self.domain is Domain.NO_NAN else plain
        name = op.name
        words = name.split(".")
        if "rn" in words and words[0] in ("add", "sub", "mul") and words[-1] in FORMATS:
            name = ".".join(w for w in words if w != "rn")
        prim = primitive(name)
        if prim is None:
            return g.apply(int(g.op[nodes[0]]), a, b, c, g.imm[nodes])
        if self.forms.takes(prim.name):
            return self.forms.normal(g, prim, a, b, self.used)
        out = np.zeros(len(nodes), np.int32)
        if words[-1] in FORMATS and words[-1] != "f64":
            self._floating(prim.name, words, (a, b, c), out)
        rest = out == 0
        if rest.any():
            out[rest] = build(g, prim, [n[rest] for n in (a, b, c)[: prim.arity]])
        return out

    def _floating(self, name: str, words: list[str], operands: tuple[Ids, Ids, Ids], out: Ids) -> None:  # noqa: C901  # a table of rules
        a, b, c = operands
        kind = words[-1]
        one, minus_zero = ONES[kind], 1 << (FORMATS[kind].width - 1)
        plain = not {"ftz", "sat", "relu", "rz", "rm", "rp"} & set(words)
        if not plain:
            return
        if words[0] in ("mul", "div"):
            for x, y in ((a, b), (b, a)) if words[0] == "mul" else ((a, b),):
                self._same(out, self._is(y, one), x, kind, "full-one" if "full" in words else "times-one")
        elif words[0] == "fma":
            for x, y in ((a, b), (b, a)):
                hit = self._is(y, one) & (out == 0)
                if hit.any():
                    self.used.add("fma-one")
                    out[hit] = self._build(f"add.{kind}", [x[hit], c[hit]])
            hit = self._is(c, minus_zero) & (out == 0)
            if hit.any():
                self.used.add("fma-zero")
                out[hit] = self._build(f"mul.{kind}", [a[hit], b[hit]])
        elif words[0] == "add":
            for x, y in ((a, b), (b, a)):
                self._same(out, self._is(y, minus_zero), x, kind, "plus-zero")
        elif words[0] == "sub":
            self._same(out, self._is(b, 0), a, kind, "plus-zero")
        elif words[0] == "cvt" and self.domain is Domain.NO_NAN:
            self._convert(name, words, a, out)

    def _build(self, name: str, nodes: list[Ids]) -> Ids:
        prim = primitive(name)
        assert prim is not None
        return build(self.g, prim, nodes)

    def _is(self, nodes: Ids, bits: int) -> Mask:
        same: Mask = bitview.const_mask(self.g, nodes) & (self.g.imm[nodes] == np.uint64(bits))
        return same

    def _same(self, out: Ids, where: Mask, x: Ids, kind: str, rule: str) -> None:
        """The result is `x` itself where `x` is a number or a canonical NaN."""
        rows = np.flatnonzero(where & (out == 0))
        if len(rows):
            fits = self.numbers(x[rows], kind)
            out[rows[fits]] = x[rows[fits]]
            if fits.any():
                self.used.add(rule)

    def _convert(self, name: str, words: list[str], a: Ids, out: Ids) -> None:
        g, (to, source) = self.g, words[-2:]
        if name == "cvt.f32.bf16":
            fits = self.numbers(a, "bf16")
            if fits.any():
                self.used.add("widen-bits")
                zeros = np.broadcast_to(g.constant(16, 0), int(fits.sum()))
                out[fits] = bitview.cat(g, a[fits], zeros, 32)
        elif name == "cvt.rn.bf16.f32":
            zero = g.constant(16, 0)[0]
            wide = (g.op[a] == g.cats[32]) & (g.b[a] == zero)
            rows = np.flatnonzero(wide)
            if len(rows):
                fits = self.numbers(g.a[a[rows]], "bf16")
                self.used |= {"widen-narrow"} if fits.any() else set()
                out[rows[fits]] = g.a[a[rows[fits]]]
        elif (to, source) == ("f16", "f32") and "rn" in words:
            widening = g._ids.get("cvt.f32.f16", -1)  # noqa: SLF001  # a name that is perhaps not in this graph
            rows = np.flatnonzero(g.op[a] == widening)
            if len(rows):
                fits = self.numbers(g.a[a[rows]], "f16")
                self.used |= {"widen-narrow"} if fits.any() else set()
                out[rows[fits]] = g.a[a[rows[fits]]]

    def numbers(self, nodes: Ids, kind: str) -> Mask:
        """Which values are surely a number or a canonical NaN, read as the format `kind`.

        Results of arithmetic are, in every domain; inputs declared in that format are in the domain without NaN.
        """
        answers = self.answers.setdefault(kind, {})
        return np.array([self._number(n, kind, answers) for n in nodes.tolist()], np.bool_)

    def is_number(self, node: int, kind: str) -> bool:
        """`numbers` of one node."""
        return self._number(node, kind, self.answers.setdefault(kind, {}))

    def _number(self, node: int, kind: str, answers: dict[int, bool]) -> bool:
        found = answers.get(node)
        if found is None:
            found = answers[node] = self._decide(node, kind, answers)
        return found

    def _decide(self, node: int, kind: str, answers: dict[int, bool]) -> bool:
        g = self.g
        op = g.ops[int(g.op[node])]
        words = op.name.split(".")
        if op.name.startswith("const"):
            return not bool(is_nan(FORMATS[kind], g.imm[node : node + 1])[0]) and op.width == FORMATS[kind].width
        if op.name.startswith("input"):
            return self.domain is Domain.NO_NAN and self.format_at(int(g.imm[node])) == kind
        if op.name.startswith("sel"):
            return self._number(int(g.b[node]), kind, answers) and self._number(int(g.c[node]), kind, answers)
        if op.name == "cat32" and kind == "f32" and int(g.b[node]) == int(g.constant(16, 0)[0]):
            return self.domain is Domain.NO_NAN and self.is_number(int(g.a[node]), "bf16")
        if op.name in ("cvt.f32.bf16", "cvt.f32.f16") and kind == "f32":
            return self.domain is Domain.NO_NAN and self.is_number(int(g.a[node]), words[-1])
        return words[-1] == kind and words[0] in CANONICAL

    def format_at(self, address: int) -> str:
        """The floating-point format of the elements at an address."""
        return next((r.floats for r in self.regions if r.start <= address < r.stop), "")
