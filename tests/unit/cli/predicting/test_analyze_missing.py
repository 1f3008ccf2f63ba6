"""`cyclescope analyze` of this host, which measures what its model lacks."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from cyclescope.analyze.choose.source import read_block
from cyclescope.analyze.decode.block import Block
from cyclescope.errors import UsageError
from cyclescope.infer import host_model, missing
from cyclescope.infer.campaign import Request
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS
from tests.support.code.blocks import SUM_LOOP as LOOP
from tests.support.code.blocks import toy
from tests.support.made.machine import IDENTITY, Machine

pytestmark = pytest.mark.skipif(shutil.which("as") is None, reason="needs as of binutils")
FAILURE, USAGE, UNKNOWN = 1, 2, 3


@pytest.fixture
def simulated(store, monkeypatch, tmp_path):
    """This host is a simulated core, with a store that knows few forms; the backends opened to measure."""
    opened = []

    def open_backend():
        opened.append(Machine())
        return opened[-1], IDENTITY

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(host_model, "this_machine", lambda: IDENTITY)
    monkeypatch.setattr(missing, "open_backend", open_backend)
    path = default_store(IDENTITY.machine)
    path.parent.mkdir(parents=True)
    store.rename(path)
    return opened


def test_what_the_model_of_this_host_lacks_is_measured(cyclescope, kernel, simulated):
    kernel.write_text(LOOP.replace("addq", "imulq %rsi, %rax\n    addq"))  # one that the store knows

    def unknown(*options):
        done = cyclescope("analyze", kernel, "--ignore-unknown", "--json", *options)
        assert done.code == 0
        return [one["line"] for one in json.loads(done.out)["unknown"]], done.out

    assert unknown("--arch", "native")[0] == [4, 6, 7, 8]
    lines, out = unknown("--measure-missing")
    assert (lines, len(simulated)) == ([], 1)  # the branch has no cost, but fuses with the comparison
    assert json.loads(out)["machine"] == IDENTITY.machine
    assert {"IMUL (R64, M64)", "ADD (R64, I8)"} <= set(host_model.native_model().forms)
    assert unknown("--measure-missing", "--arch", "NATIVE") == ([], out)
    assert len(simulated) == 1  # nothing to measure


def test_a_throughput_that_a_stopped_run_left_alone_gets_its_latency(cyclescope, kernel, simulated):
    name = "ADD (R64, I8)"
    request = Request((load_table("x86-64")[name],), frozenset({THROUGHPUT}))
    missing._measure(default_store(IDENTITY.machine), request, lambda progress: None)
    assert host_model.native_model().forms[name].latencies == {}
    assert cyclescope("analyze", kernel, "--ignore-unknown", "--measure-missing").code == 0
    assert host_model.native_model().forms[name].latencies["op1->op1"] > 0


def test_what_does_not_run_here_stays_without_a_cost(cyclescope, tmp_path, simulated):
    path = tmp_path / "half.s"
    path.write_text("vaddph %xmm1, %xmm2, %xmm3\nimulq %rax, %rax\n")  # tried when the store was made
    done = cyclescope("analyze", path, "--measure-missing")
    assert (done.code, "1 of 2 instructions have no known cost" in done.error) == (UNKNOWN, True)
    assert simulated == []


@pytest.mark.parametrize("ports", [False, True])
def test_ports_are_measured_where_the_store_has_ports(kernel, simulated, monkeypatch, ports):
    requests, empty = [], msgspec.structs.replace(toy(), name=IDENTITY.machine, forms={})
    monkeypatch.setattr(missing.Store, "has", lambda store, quantity: ports and quantity == PORTS)
    monkeypatch.setattr(missing, "native_model", lambda: empty)
    monkeypatch.setattr(missing, "_measure", lambda path, request, report: requests.append(request))
    missing.measure_missing(read_block(kernel))
    (request,) = requests
    assert request.quantities == {THROUGHPUT, LATENCY, *([PORTS] if ports else ())}


@pytest.mark.parametrize("name", ["skylake", "neoverse-v2"])
def test_other_machines_cannot_be_measured(cyclescope, kernel, simulated, name):
    done = cyclescope("analyze", kernel, "--measure-missing", "--arch", name)
    wanted = f"--measure-missing with --arch {name}: only this host can be measured: native"
    assert (done.code, done.error) == (USAGE, wanted)


def test_code_of_another_isa_cannot_be_measured(simulated):
    with pytest.raises(UsageError, match="code of aarch64 cannot be measured here"):
        missing.measure_missing(Block((), "aarch64"))


def test_measuring_what_is_missing_needs_a_store(cyclescope, kernel, simulated):
    default_store(IDENTITY.machine).unlink()
    done = cyclescope("analyze", kernel, "--measure-missing")
    assert (done.code, "nothing was measured on this machine" in done.error) == (FAILURE, True)
