"""From what the scenarios' job answered to a receipt: the pair verdicts are filled in, the rest is as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from foldproof.gpu.replay.receipts import Receipt, verdict_index
from foldproof.gpu.scenarios.jobs import Scenario


def scenario_receipt(replay: Receipt, answer: Mapping[str, Any]) -> Receipt:
    """The receipt of the scenarios of a run whose replay has `replay` for a receipt."""
    scenarios = [msgspec.convert(row, Scenario) for row in answer["scenarios"]]
    shown = [explained(scenario, replay) for scenario in scenarios]
    results = {"scenarios": msgspec.to_builtins(shown), "kernels": dict(answer["kernels"])}
    empty: dict[str, Any] = {"pairs": (), "ablation": (), "owed": (), "counts": {}, "sets": {}}
    return msgspec.structs.replace(replay, kind="scenarios", complete=True, results=results, **empty)


def explained(scenario: Scenario, replay: Receipt) -> Scenario:
    """The scenario with the verdict of the pair at which it diverges first, in words."""
    where = scenario.comparison.divergence
    if where is None:
        return scenario
    if where.first == where.second:
        text = "both were served by the same variant, so its inputs or its timing differ"
    else:
        pair = verdict_index(replay).get(frozenset((where.first, where.second)))
        text = "the pair was not replayed"
        if pair is not None:
            words = {domain: verdict.word for domain, verdict in pair.verdicts.items()}
            text = f"{', '.join(pair.change)}: " + ", ".join(f"{word} on {domain}" for domain, word in words.items())
    divergence = msgspec.structs.replace(where, verdict=text)
    comparison = msgspec.structs.replace(scenario.comparison, divergence=divergence)
    return msgspec.structs.replace(scenario, comparison=comparison)
