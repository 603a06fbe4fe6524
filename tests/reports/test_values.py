"""Values of reports are frozen and slotted: what evidence says cannot be changed on its way into a report."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import foldproof.reports
import msgspec
import pytest

MODULES = sorted(found.name for found in pkgutil.walk_packages(foldproof.reports.__path__, "foldproof.reports."))

GROWS = {"Budget": "it counts down what a page has left for tables"}
"""The classes that change, and why."""


@pytest.mark.parametrize("module", MODULES)
def test_structs_and_dataclasses_are_frozen_and_slotted(module: str) -> None:
    for kind in vars(importlib.import_module(module)).values():
        if not isinstance(kind, type) or kind.__module__ != module:
            continue
        if issubclass(kind, msgspec.Struct):
            assert kind.__struct_config__.frozen, kind
        elif dataclasses.is_dataclass(kind):
            assert kind.__dataclass_params__.frozen is (kind.__name__ not in GROWS), kind  # type: ignore[attr-defined]
            assert "__slots__" in vars(kind), kind


def test_the_modules_are_found() -> None:
    assert {"foldproof.reports.evidence", "foldproof.reports.duty", "foldproof.reports.view"} <= set(MODULES)
