"""The llvm-mca that is installed, for CPUs that it knows."""

from __future__ import annotations

import pytest

from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend
from cyclescope.errors import UsageError


def backend_for(cpu, isa):
    """A backend; older releases know fewer CPUs: the test is skipped."""
    try:
        return LlvmMcaBackend(cpu, isa=isa)
    except UsageError as error:
        pytest.skip(str(error))
