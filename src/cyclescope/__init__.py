"""cyclescope: what the instructions of a CPU cost, measured on the machine at hand."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

# Loaded on first use, so that `import cyclescope` and `cyclescope --help` stay fast.
_LAZY = {
    "InstructionForm": "cyclescope.isa.form",
    "load_table": "cyclescope.isa.table",
    "select": "cyclescope.isa.find.pattern",
    "FormTiming": "cyclescope.infer.timing.results",
    "Store": "cyclescope.measure.store",
    "measure_forms": "cyclescope.infer.api",
    "timings": "cyclescope.infer.kept",
    "load": "cyclescope.report.notebook",
    "load_model": "cyclescope.session.machines",
    "MachineModel": "cyclescope.model.machine",
    "predict": "cyclescope.session.predict",
    "Prediction": "cyclescope.analyze.predict.prediction",
    "Predictor": "cyclescope.analyze.predict.predictor",
    "UnknownInstructions": "cyclescope.analyze.predict.predictor",
    "NativeBackend": "cyclescope.backend.native",
    "region": "cyclescope.backend.region",
    "Region": "cyclescope.backend.region",
    "RegionResult": "cyclescope.backend.region",
    "CyclescopeError": "cyclescope.errors",
}

__all__ = [  # noqa: PLE0604
    "__version__",
    *_LAZY,
]


def __dir__() -> list[str]:
    """With the names that were not used yet, for those who press the tab key."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'cyclescope' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
