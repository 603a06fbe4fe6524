"""The capture format: what was compiled, one `Variant` a cubin, read strictly from `aot.json`.

Everything that a variant may assume about a launch is in here, so an attribute of a param that this module
does not know is refused: it may be an assumption. Unknown fields of an entry describe the cubin and are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.files import ErrorType, is_below
from foldproof.impl.strictjson import located, read_document, reject_repeats
from msgspec import UNSET, Meta, UnsetType

FILE_NAME = "aot.json"
INT_TYPES: Mapping[str, tuple[int, int]] = {
    f"{sign}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "i" else (0, (1 << bits) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}
"""Integer types that an explicit annotation may name, each with the smallest and largest value it holds."""

_PLAIN_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}")
T = TypeVar("T")
Natural = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(min_length=1)]


class Param(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One runtime parameter of a variant (GLOSSARY.md for the five switches)."""

    name: Text
    type: Text
    div16: bool
    nospec: bool
    noalign: bool = False
    annotated: bool = False
    range32: bool = False

    def __post_init__(self) -> None:
        if self.annotated and self.type not in INT_TYPES:
            raise ValueError(f"annotated is for an integer type, not {self.type!r}")


class Const(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"int_": "int", "str_": "str", "bool_": "bool"}
):
    """One compile-time constant, of exactly one kind: int, f32 (by its bits), bool, str or none."""

    int_: int | UnsetType = UNSET
    f32: Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)] | UnsetType = UNSET
    bool_: bool | UnsetType = UNSET
    str_: str | UnsetType = UNSET
    none: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if sum(value is not UNSET for value in (self.int_, self.f32, self.bool_, self.str_, self.none)) != 1:
            raise ValueError('a constant is exactly one of {"int"}, {"f32"}, {"bool"}, {"str"}, {"none": true}')
        if self.none is False:
            raise ValueError('{"none": false} says nothing')
        if self.int_ is not UNSET and not -(2**63) <= self.int_ < 2**64:
            raise ValueError("an int constant lies in [-2^63, 2^64)")

    @property
    def kind(self) -> str:
        """One of int, f32, bool, str, none. Two constants are equal only if their kinds are (1, True, 1.0 differ)."""
        # Decisions over large captures ask this a million times: no tuple and no generator.
        if self.int_ is not UNSET:
            return "int"
        if self.str_ is not UNSET:
            return "str"
        if self.bool_ is not UNSET:
            return "bool"
        return "f32" if self.f32 is not UNSET else "none"

    @property
    def value(self) -> int | bool | str:
        """The value, True for none; f32 as its 32 bits."""
        if self.int_ is not UNSET:
            return self.int_
        if self.str_ is not UNSET:
            return self.str_
        if self.bool_ is not UNSET:
            return self.bool_
        return True if self.f32 is UNSET else self.f32

    def __str__(self) -> str:
        return f"{self.kind} {self.value}" if self.kind != "none" else "none"


Consts = dict[str, Const]


class Variant(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of `kernels[]`: a precompiled kernel and what it was compiled under.

    `shared`, `global_scratch`, `global_align` and `profile_scratch` are bytes; `num_stages` 0 means not recorded.
    """

    fn: Text
    hash: Text
    num_warps: Annotated[int, Meta(ge=1)]
    params: tuple[Param, ...]
    consts: Consts
    name: str = ""
    num_stages: Natural = 0
    num_ctas: Annotated[int, Meta(ge=1)] = 1
    shared: Natural = 0
    global_scratch: Natural = 0
    global_align: Natural = 1
    profile_scratch: Natural = 0
    pdl: bool = False
    arch: Text | None = None
    enable_fp_fusion: bool | None = None
    source: Text | None = None

    def __post_init__(self) -> None:
        if not is_file_name(self.hash):
            raise ValueError(f"the hash {self.hash!r} is no plain file name")
        names = [param.name for param in self.params]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two params are named {twice!r}")
        for name in names:
            if name in self.consts:
                raise ValueError(f"{name!r} is both a param and a const")

    def param(self, name: str) -> Param | None:
        """The param of that name, if this variant reads it at run time."""
        return next((param for param in self.params if param.name == name), None)

    @property
    def options(self) -> tuple[object, ...]:
        """The launch options it was compiled with: num_warps, num_stages, arch, enable_fp_fusion."""
        return self.num_warps, self.num_stages, self.arch, self.enable_fp_fusion


class Capture(msgspec.Struct, frozen=True):
    """A capture: its variants in candidate order, and where their cubins lie."""

    kernels: tuple[Variant, ...]
    bin_dir: str = "cubins"
    bin_ext: str = ".cubin"
    generator: Any = None
    target: Any = None

    def __post_init__(self) -> None:
        if not self.kernels:
            raise ValueError("kernels is empty: there is nothing to select from")
        first: dict[str, int] = {}
        for position, variant in enumerate(self.kernels):
            if first.setdefault(variant.hash, position) != position:
                other = first[variant.hash]
                raise ValueError(f"kernels[{other}] and kernels[{position}] share the hash {variant.hash!r}")
        if not is_below(self.bin_dir):
            raise ValueError(f"bin_dir {self.bin_dir!r} is no path below the capture")
        if not is_ending(self.bin_ext):
            raise ValueError(f"bin_ext {self.bin_ext!r} is no file name ending")

    def candidates(self, fn: str) -> tuple[int, ...]:
        """Indices into `kernels` of the variants of one function, in candidate order."""
        return tuple(i for i, variant in enumerate(self.kernels) if variant.fn == fn)

    @property
    def functions(self) -> tuple[str, ...]:
        """The function names, each once, in candidate order."""
        return tuple(dict.fromkeys(variant.fn for variant in self.kernels))


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file in a folder, and of nothing hidden or elsewhere."""
    return _PLAIN_NAME.fullmatch(name) is not None and not name.startswith(".")


def is_ending(text: str) -> bool:
    """Whether a text can end the name of a file."""
    return not text or _PLAIN_NAME.fullmatch(text) is not None


def capture_from(value: Any) -> Capture:
    """A capture from a decoded JSON value. Raises `InvalidCapture` with the JSON path of the first fault."""
    reject_repeats(value, InvalidCapture)
    return converted(value, Capture, InvalidCapture)


def load_capture(path: Path | str) -> Capture:
    """Read a capture folder (or its `aot.json`). Raises `InvalidCapture` with file, JSON path and reason."""
    file = capture_file(Path(path))
    value = read_document(file, InvalidCapture)
    return located(file, lambda: converted(value, Capture, InvalidCapture))


def capture_file(path: Path) -> Path:
    """The `aot.json` that a capture argument means: the file itself, or the one inside the folder."""
    if path.is_dir():
        path = path / FILE_NAME
        if not path.exists():
            raise InvalidCapture(
                f"holds no {FILE_NAME}", where=str(path.parent), fix="name a capture folder or its aot.json"
            )
    return path


def missing_cubins(path: Path, capture: Capture) -> tuple[str, ...]:
    """Hashes whose cubin is not beside `aot.json`. Selection needs none; replay does."""
    folder = capture_file(path).parent / capture.bin_dir
    return tuple(v.hash for v in capture.kernels if not (folder / f"{v.hash}{capture.bin_ext}").is_file())


def converted(value: Any, kind: type[T], error: ErrorType) -> T:
    """`value` as a msgspec struct; a mismatch is `error` at its JSON path, in one line."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        why, _, place = str(problem).rpartition(" - at `")
        if not why:
            why, place = str(problem), "$`"
        raise error(why, where=_exact(place.rstrip("`"), value), fix="see docs/reference/formats.md") from None


def _exact(path: str, value: Any) -> str:
    """`path` with the `[...]` that msgspec writes for a key of `consts` replaced by the key that is at fault."""
    head, mark, tail = path.partition(".consts[...]")
    if not mark:
        return path
    owner = value
    for step in re.findall(r"\.(\w+)|\[(\d+)\]", head):
        owner = owner[step[0]] if step[0] else owner[int(step[1])]
    for name, const in owner["consts"].items():
        try:
            msgspec.convert(const, Const)
        except msgspec.ValidationError:
            return f"{head}.consts.{name}{tail}"
    return path  # pragma: no cover (msgspec has found a fault in one of them)
