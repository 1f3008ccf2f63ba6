"""The JSON Schema of predictions: the file of the documentation, and what the types say.

`python -m tests.support.files.schemas` writes the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.report.predictions.text import SCHEMA_VERSION

FILE = Path(__file__).parents[3] / "docs/reference/analysis.schema.json"
_DERIVED = {
    "type": "object",
    "properties": {
        "throughput": {"type": "number"},
        "alone": {"type": "object", "additionalProperties": {"type": "number"}},
        "next": {"type": ["object", "null"]},
        "per_unit": {"type": ["number", "null"]},
        "unmatched": {"type": "number"},
    },
    "required": ["throughput", "alone", "next", "per_unit", "unmatched"],
}


def analysis_schema() -> dict[str, Any]:
    """The schema of `cyclescope analyze --json`."""
    schema = msgspec.json.schema(Prediction)
    name = schema["$ref"].rpartition("/")[2]
    definition = schema["$defs"].pop(name)
    properties = {"schema_version": {"const": SCHEMA_VERSION}} | definition["properties"]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cyclescope analyze --json",
        "description": definition["description"],
        "type": "object",
        "properties": properties | {"derived": _DERIVED},
        "required": ["schema_version", *definition["required"], "derived"],
        "$defs": schema["$defs"],
    }
    found: dict[str, Any] = json.loads(json.dumps(whole))
    return found


ANALYSIS = json.loads(FILE.read_text()) if FILE.is_file() else {}

if __name__ == "__main__":
    FILE.write_text(json.dumps(analysis_schema(), indent=1) + "\n")
