"""The reference selector in plain Python: formats, rules, policies as data, selection.

This room imports nothing of ours. Data walks one way: file -> `Capture` -> `Launch` -> `decide` -> `Outcome`.
"""

from foldproof.impl.capture import Capture, Const, Param, Variant, capture_from, load_capture
from foldproof.impl.errors import (
    AmbiguousTritonVariant,
    FoldproofError,
    InvalidCapture,
    InvalidLaunch,
    InvalidPolicy,
    MissingTritonVariant,
)
from foldproof.impl.launch import Arg, Kind, Launch, launch_from, load_launches
from foldproof.impl.policy import ZOO, Policy, load_policy
from foldproof.impl.select import Outcome, Refused, Selection, decide, select

__all__ = [
    "ZOO",
    "AmbiguousTritonVariant",
    "Arg",
    "Capture",
    "Const",
    "FoldproofError",
    "InvalidCapture",
    "InvalidLaunch",
    "InvalidPolicy",
    "Kind",
    "Launch",
    "MissingTritonVariant",
    "Outcome",
    "Param",
    "Policy",
    "Refused",
    "Selection",
    "Variant",
    "capture_from",
    "decide",
    "launch_from",
    "load_capture",
    "load_launches",
    "load_policy",
    "select",
]
