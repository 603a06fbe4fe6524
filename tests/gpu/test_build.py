# ruff: noqa: PLC0415, SLF001
# Triton is optional, so it is imported where it is used; what its JIT makes of a launch has no public name.

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu import compiler
from foldproof.gpu.build import BuildError, build_capture
from foldproof.gpu.bundle import bundled_capture, verify_bundle
from foldproof.gpu.corpus import CORPUS, Absent, Buffer, Int, Kernel
from foldproof.gpu.plan import TARGET, TRITON_SERIES, plans
from foldproof.gpu.specialise import CONSTEXPR, MISALIGNED_BY, specialise
from foldproof.impl import load_capture

ONLY = ["_merge", "_row_sum", "_fold_breaks"]


def installed() -> bool:
    try:
        return compiler.triton_version().startswith(TRITON_SERIES)
    except BuildError:
        return False


needs_triton = pytest.mark.skipif(
    not installed(), reason=f"Triton {TRITON_SERIES} is not installed: pip install foldproof[triton]"
)


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@needs_triton
def test_two_builds_give_the_same_bytes_and_those_of_the_bundle(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    first = build_capture(tmp_path / "a" / "capture", only=ONLY, progress=lambda *step: seen.append(step))
    build_capture(tmp_path / "b", only=ONLY)
    built = files(tmp_path / "a" / "capture")
    assert built == files(tmp_path / "b")
    assert not [name for name, data in built.items() if b"site-packages" in data]
    assert verify_bundle(first.out) == []
    assert first.size == sum(map(len, built.values()))
    assert [done for done, _, _ in seen] == list(range(1, seen[0][1] + 1))
    bundled = files(bundled_capture())
    code = {name: data for name, data in built.items() if name.startswith(("cubins/", "ptx/"))}
    assert code
    assert all(bundled[name] == data for name, data in code.items())
    assert not list(tmp_path.glob(".*building*"))


@needs_triton
def test_a_capture_is_replaced_whole_and_other_files_are_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "capture"
    build_capture(out, only=["_scale"])
    build_capture(out, only=["_merge"])
    assert load_capture(out).functions == ("_merge",)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(BuildError, match=r"holds files but no manifest\.json"):
        build_capture(other, only=["_scale"])
    assert files(other) == {"thesis.txt": b"mine"}


@needs_triton
def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> compiler.Refusal:
        return compiler.Refusal("no such luck")

    monkeypatch.setattr("foldproof.gpu.build.compile_variant", refuse)
    with pytest.raises(BuildError, match="the corpus predicts that it compiles and loads, but: no such luck"):
        build_capture(tmp_path / "out", only=["_scale"])
    assert list(tmp_path.iterdir()) == []


@needs_triton
def test_an_environment_that_changes_the_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    with pytest.raises(BuildError, match="TRITON_DISABLE_LINE_INFO changes what Triton compiles"):
        build_capture(tmp_path / "out", only=["_scale"])
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kernel_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"no kernel is named _merg .*_merge"):
        build_capture(tmp_path / "out", only=["_merg"])


def test_without_triton_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(BuildError, match=r"install foldproof\[triton\]"):
        build_capture(tmp_path / "out")


def test_another_series_of_triton_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", type(sys)("triton"))
    monkeypatch.setattr(sys.modules["triton"], "__version__", "3.10.1", raising=False)
    with pytest.raises(BuildError, match=r"this is Triton 3\.10\.1"):
        build_capture(tmp_path / "out")


class Pointer:
    """What the JIT looks at in a tensor."""

    def __init__(self, dtype: str, address: int) -> None:
        self.dtype, self.address = dtype, address

    def data_ptr(self) -> int:
        return self.address


def jit_specialisation(kernel: Kernel, plan: Any) -> tuple[dict[str, str], dict[str, Any], set[str]]:
    """Signature, constants and div16 claims that Triton's own binder gives for the launch of a twin."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    fn = compiler.load_kernel(plan)
    backend = make_backend(GPUTarget(*TARGET))
    args: list[Any] = []
    for param in kernel.params:
        if isinstance(param, Buffer):
            args.append(Pointer(param.type[1:], 0x1000 + MISALIGNED_BY * (param.name in plan.twin.misaligned)))
        elif isinstance(param, Absent):
            args.append(None)
        else:
            args.append(plan.twin.values.get(param.name, param.value) if isinstance(param, Int) else param.value)
    bound, specialised, _ = create_function_from_signature(fn.signature, fn.params, backend)(*args, **kernel.consts)
    _, signature, constants, attrs = fn._pack_args(backend, dict(plan.options), bound, specialised, None)
    names = list(fn.arg_names)
    div16 = {names[place] for (place,), claims in attrs.items() if ["tt.divisibility", 16] in claims}
    return signature, {names[place]: value for (place,), value in constants.items()}, div16


@needs_triton
@pytest.mark.parametrize("kernel", CORPUS, ids=lambda kernel: kernel.name)
def test_a_twin_is_what_the_jit_would_compile_for_its_values(kernel: Kernel) -> None:
    for plan in plans([kernel]):
        spec = specialise(kernel, plan.twin)
        signature, constants, div16 = jit_specialisation(kernel, plan)
        assert dict(spec.signature) == signature
        assert dict(spec.constants) == constants
        assert spec.div16 == div16
        assert {name for name, kind in signature.items() if kind == CONSTEXPR} == set(constants)


@needs_triton
@pytest.mark.parametrize("kernel", CORPUS, ids=lambda kernel: kernel.name)
def test_the_switches_of_the_corpus_are_those_of_the_kernel(kernel: Kernel) -> None:
    fn = compiler.load_kernel(next(plans([kernel])))
    for own, param in zip(fn.params, kernel.params, strict=False):
        assert own.name == param.name
        assert own.do_not_specialize == (isinstance(param, Int) and param.nospec)
        assert own.do_not_specialize_on_alignment == (isinstance(param, Int) and param.noalign)
        assert bool(own.annotation) == (isinstance(param, Int) and param.annotated)
