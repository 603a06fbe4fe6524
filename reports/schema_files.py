"""The JSON Schemas that the package ships: `python -m foldproof.reports.schema_files` writes them again."""

from __future__ import annotations

import json
from pathlib import Path

from foldproof.reports import events, obligations

FOLDER = Path(__file__).parent / "schemas"
COMMAND = "python -m foldproof.reports.schema_files"


def schema_files() -> dict[str, bytes]:
    """Each schema by the name of its file: of a record of the evidence folder, and of `foldproof.toml`."""
    made = {"record.schema.json": events.schema(), "foldproof-toml.schema.json": obligations.schema()}
    return {name: json.dumps(schema, indent=1, sort_keys=True).encode() + b"\n" for name, schema in made.items()}


if __name__ == "__main__":
    for name, content in schema_files().items():
        (FOLDER / name).write_bytes(content)
