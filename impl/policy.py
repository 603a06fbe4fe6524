"""Policies as data: the policy language (a TOML file) and the zoo written in it."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from foldproof.impl.choose import KEYS, REFUSALS
from foldproof.impl.errors import InvalidPolicy, one_line
from foldproof.impl.rules import STRICTEST_FIRST, Rules, Strictness
from foldproof.impl.tomlfile import toml_text

ZOO = (
    "exact-first",
    "exact-pinned",
    "two-pass",
    "single-guard",
    "three-pass",
    "most-held",
    "least-held",
    "linker-order",
    "recommended",
)
"""The names of the zoo, oldest rule first."""

THEOREM_IDS = (*(f"T{n:02}" for n in range(1, 16)), "T06v", "T09c")


class Pass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sweep over the candidates: what is admissible, what is preferred, what is refused as ambiguous."""

    rules: Strictness
    choose: tuple[str, ...] = ("first",)
    refuse: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _known(self.choose, KEYS, "choose")
        _known(self.refuse, REFUSALS, "refuse")
        if not self.choose:
            raise ValueError('choose is empty: name a key, such as "first"')


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"passes": "pass"}):
    """The ordered passes and everything else that decides a selection.

    `log`: a line for each fallback ("launch"), for the first of each variant ("variant"), or none.
    `dump`: whether a miss lists every arg and const. `dialect` "public" is the narrower matching of
    docs/reference/rules.md. A promise is a theorem id, with the older policy after a colon for T09 and T09c.
    """

    name: str
    summary: str = ""
    passes: tuple[Pass, ...] = ()
    promises: tuple[str, ...] = ()
    options: Literal["pinned", "ignored"] = "pinned"
    source: bool = False
    log: Literal["launch", "variant", "none"] = "none"
    dump: bool = True
    dialect: Literal["section-3", "public"] = "section-3"

    def __post_init__(self) -> None:
        if not self.passes:
            raise ValueError("a policy has at least one [[pass]]")
        for promise in self.promises:
            theorem, colon, old = promise.partition(":")
            if theorem not in THEOREM_IDS:
                raise ValueError(f"the promise {promise!r} is no theorem")
            if theorem.startswith("T09") != bool(colon and old):
                raise ValueError(f"the promise {promise!r}: T09 and T09c, and only they, name an older policy")

    def rules(self, strictness: Strictness) -> Rules:
        """The rules of one strictness as this policy reads them (its dialect, options and source)."""
        return Rules(strictness, self.dialect == "public", self.options == "pinned", self.source)

    @property
    def strictest_first(self) -> tuple[Rules, ...]:
        """The rules by which a selection's pass is named, the strictest first."""
        return tuple(self.rules(strictness) for strictness in STRICTEST_FIRST)

    def promised(self, theorem: str, old: str = "") -> bool:
        """Whether the policy promises the theorem (against `old`, for T09 and T09c)."""
        return (f"{theorem}:{old}" if old else theorem) in self.promises


def _known(names: tuple[str, ...], known: object, field: str) -> None:
    for name in names:
        if name not in known:  # type: ignore[operator]
            options = ", ".join(sorted(known))  # type: ignore[call-overload]
            raise ValueError(f"{field} has {name!r}, which is none of {options}")


def policy_from(text: str, where: str) -> Policy:
    """A policy from TOML. Raises `InvalidPolicy` with the place for anything outside the language."""
    try:
        return msgspec.toml.decode(text, type=Policy)
    except msgspec.ValidationError as problem:
        said = str(problem)
        why, mark, place = said.rpartition(" - at `")
        # A fault of the whole policy has no place in msgspec's words.
        why, place = (why, place.rstrip("`")) if mark else (said, "$")
        raise InvalidPolicy(why, where=f"{where}: {place}", fix="see docs/reference/policies.md") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise InvalidPolicy(
            f"is not TOML: {one_line(str(problem))}", where=where, fix="see docs/reference/policies.md"
        ) from None


@cache
def zoo_policy(name: str) -> Policy:
    """A policy of the zoo by name."""
    file = resources.files("foldproof.impl") / "zoo" / f"{name}.toml"
    return policy_from(file.read_text("utf-8"), f"{name}.toml")


def load_policy(name: str) -> Policy:
    """A policy of the zoo by name, or the policy in the TOML file of that path. Raises `InvalidPolicy`."""
    if name in ZOO:
        return zoo_policy(name)
    path = Path(name)
    if not name.endswith(".toml") and not path.is_file():
        known = ", ".join(ZOO)
        raise InvalidPolicy(f"no policy is named {name!r}", fix=f"use a TOML file or one of {known}")
    return policy_from(toml_text(path, InvalidPolicy), name)
