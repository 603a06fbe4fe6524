from __future__ import annotations

import time

import pytest
from foldproof.gpu.symbolic.program import Imm, PtxError, Reg, Sym, Vec
from foldproof.gpu.symbolic.reader import read_ptx
from helpers_symbolic import HEAD, probe


def test_an_error_names_file_line_and_text() -> None:
    with pytest.raises(PtxError, match=r"k\.ptx: line 22: cannot read 'add\.s32 %r2, , %r1;'") as caught:
        read_ptx(HEAD + "mov.u32 %r2, 1;\nadd.s32 %r2, , %r1;\nret;\n}\n", where="k.ptx")
    assert "\n" not in str(caught.value)


def test_a_branch_to_nowhere_is_refused_at_its_line() -> None:
    with pytest.raises(PtxError, match=r"line 21: branches to a label"):
        probe("bra $L__nowhere;")


@pytest.mark.parametrize("cut", [0, 40, 300, 700])
def test_a_truncated_file_is_an_error_and_no_traceback(cut: int) -> None:
    text = HEAD + "ret;\n}\n"
    with pytest.raises(PtxError):
        read_ptx(text[: len(text) - 1 - cut] if cut else "")


def test_a_missing_block_size_is_refused() -> None:
    with pytest.raises(PtxError, match="reqntid"):
        read_ptx((HEAD + "ret;\n}\n").replace(".reqntid 32\n", ""))


def test_literals_of_all_kinds() -> None:
    kernel = probe("mov.b32 %r2, 0f3F800000;\nmov.b32 %r3, -5;\nmov.b32 %r4, 0x10;\nmov.b64 %rd9, {%r2, %r3};")
    found = [i.operands[1] for i in kernel.code[-5:-1]]
    assert found == [Imm(0x3F800000, 32), Imm(-5), Imm(16), Vec((Reg("%r2"), Reg("%r3")))]


def test_registers_and_labels_of_nested_blocks_do_not_clash() -> None:
    part = "{ .reg .b32 t; mov.b32 t, 1; bra L; L: mov.b32 %r2, t; }\n"
    kernel = probe(part + part)
    moved = [i.operands[1] for i in kernel.code if i.operands and i.operands[0] == Reg("%r2")]
    assert len({m.name for m in moved if isinstance(m, Sym)}) == 2
    targets = [i.operands[0] for i in kernel.code if i.parts[0] == "bra"]
    assert targets[0] != targets[1]
    assert all(isinstance(t, Sym) and t.name in kernel.labels for t in targets)


def test_source_lines_are_those_of_the_kernel_not_of_what_it_inlines() -> None:
    body = (
        ".loc 1 10 3\nmov.u32 %r2, 1;\n"
        ".loc 2 200 5, function_name $L__info_string0, inlined_at 1 12 4\nmov.u32 %r3, 2;\n"
        ".loc 2 300 5, function_name $L__info_string0, inlined_at 2 200 5\nmov.u32 %r4, 2;\n"
    )
    text = HEAD + body + 'ret;\n}\n.file 1 "kernel.py"\n.file 2 "library.py"\n'
    kernel = read_ptx(text)
    sources = {i.operands[0].name: kernel.source(i) for i in kernel.code if i.parts[0] == "mov" and i.loc >= 0}
    assert sources == {"%r2": "kernel.py:10", "%r3": "kernel.py:12", "%r4": "kernel.py:12"}


def test_a_thousand_lines_in_a_fifth_of_a_second() -> None:
    body = "".join(f"add.s32 %r{2 + n % 70}, %r1, {n};\n" for n in range(1000))
    started = time.perf_counter()
    probe(body)
    first = time.perf_counter() - started
    started = time.perf_counter()
    probe(body)
    assert time.perf_counter() - started < first / 5
    assert first < 1.0  # 0.1 s on an idle core
