"""Values are frozen and slotted: what was decided about a launch cannot be changed afterwards."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import foldproof.impl
import foldproof.model
import msgspec
import pytest

GROWS = {
    "Abstract": "its axioms grow as a theorem is stated",
    "Bench": "it keeps the terms that it has built",
    "Paths": "it keeps the choices of the run under way",
    "WireLaunch": "a message on its way out, encoded where it is made",
}
"""The classes that change, and why."""


def modules() -> Iterator[str]:
    for room in (foldproof.impl, foldproof.model):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            yield found.name


def classes(module: str) -> Iterator[type]:
    for value in vars(importlib.import_module(module)).values():
        is_ours = isinstance(value, type) and value.__module__ == module
        if is_ours and (issubclass(value, msgspec.Struct) or dataclasses.is_dataclass(value)):
            yield value


@pytest.mark.parametrize("module", list(modules()))
def test_structs_and_dataclasses_are_frozen_and_slotted(module: str) -> None:
    for kind in classes(module):
        if issubclass(kind, msgspec.Struct):
            # A private struct of the protocol is the form of a message for the length of one call.
            is_message = module.startswith("foldproof.impl.external.") and kind.__name__.startswith("_")
            assert kind.__struct_config__.frozen or is_message or kind.__name__ in GROWS, kind
            continue
        assert "__slots__" in vars(kind), kind
        assert kind.__dataclass_params__.frozen is (kind.__name__ not in GROWS), kind  # type: ignore[attr-defined]


def test_every_exception_is_one_that_exists() -> None:
    found = {kind.__name__ for module in modules() for kind in classes(module)}
    assert set(GROWS) <= found
