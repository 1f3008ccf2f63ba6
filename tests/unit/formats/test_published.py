"""Files as others publish them, in their layout: what is read, and what is refused."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from cyclescope.formats.exchange import FormatError, ImportRequest
from cyclescope.formats.registry import by_name, of_contents
from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.remarks.timing import Idiom
from tests.support.made.models import exchanged

XML = """<?xml version="1.0"?>
<root date="2022-12-01">
 <extension name="BASE">
  <instruction asm="IMUL" category="BINARY" cpl="3" extension="BASE" iclass="IMUL" iform="IMUL_GPRv_GPRv"
    isa-set="I386" string="IMUL (R64, R64)">
   <operand idx="1" name="REG0" r="1" type="reg" w="1" width="64" xtype="int">RAX,RCX</operand>
   <operand idx="2" name="REG1" r="1" type="reg" width="64" xtype="int">RAX,RCX</operand>
   <operand flag_CF="w" flag_OF="w" idx="3" name="REG2" suppressed="1" type="flags" w="1"/>
   <architecture name="SKL">
    <measurement TP_loop="1.00" TP_unrolled="1.02" ports="1*p1" uops="1" uops_retire_slots="1"/>
    <latency cycles="3" start_op="1" target_op="1"/>
    <latency max_cycles="4" min_cycles="3" start_op="2" target_op="1"/>
    <latency cycles="5" cycles_is_upper_bound="1" start_op="2" target_op="3"/>
   </architecture>
   <architecture name="ZEN3"><measurement TP_loop="9.2e18" TP_unrolled="-1" uops="-1"/></architecture>
  </instruction>
 </extension>
 <extension name="AVX">
  <instruction asm="VADDPD" extension="AVX" string="VADDPD (YMM, YMM, M256)">
   <operand idx="1" name="REG0" type="reg" w="1" width="256">YMM0</operand>
   <operand idx="2" name="REG1" r="1" type="reg" width="256">YMM0</operand>
   <operand idx="3" name="MEM0" r="1" type="mem" width="256"/>
   <architecture name="SKL">
    <measurement TP="0.50" ports="1*p01+1*p23" uops="2"/>
    <latency cycles="4" start_op="2" target_op="1"/>
    <latency cycles_addr="11" cycles_addr_index="12" cycles_mem="10" cycles_mem_is_upper_bound="1"
      start_op="3" target_op="1"/>
   </architecture>
   <architecture name="ZEN3">
    <measurement TP_unrolled="0.50" ports="1*FP23" uops="2"/><latency cycles="3" start_op="2" target_op="1"/>
   </architecture>
  </instruction>
  <instruction asm="VFOO" extension="AVX" string="VFOO (YMM)">
   <architecture name="SKL"><measurement TP="1"/></architecture></instruction>
 </extension>
</root>"""


def read(tmp_path, text, name, **more):
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    return by_name(name).read(path, ImportRequest("m", "a file", **more))


def test_uops_info_as_published(tmp_path):
    model = read(tmp_path, XML, "uops-info", column="SKL").model
    imul, add = model.forms["IMUL (R64, R64)"], model.forms["VADDPD (YMM, YMM, M256)"]
    assert imul.throughput == 1.0
    assert imul.slots == 1.0
    assert imul.latencies == {"op1->op1": 3.0}
    assert imul.ranges == {"op2->op1": (3.0, 4.0), "op2->flags.CF": (0.0, 5.0), "op2->flags.OF": (0.0, 5.0)}
    assert [model.ports[p] for p in imul.operations[0].ports] == ["1"]
    assert add.latencies == {"op2->op1": 4.0, "op3.address->op1": 11.0, "op3.index->op1": 12.0}
    assert add.ranges == {"op3.data->op1": (0.0, 10.0)}
    assert add.throughput == 0.5


def test_uops_info_refuses_what_no_instruction_has(tmp_path):
    found = read(tmp_path, XML, "uops-info", column="ZEN3")
    assert "IMUL (R64, R64)" not in found.model.forms
    assert found.model.forms["VADDPD (YMM, YMM, M256)"].operations is None  # one of two has no ports there
    reasons = " ".join(item.reason for item in found.refused)
    assert "9.2e+18 cycles" in reasons
    assert "-1 cycles" in reasons


def test_uops_info_with_several_machines_wants_one_named(tmp_path):
    with pytest.raises(FormatError, match=r"several machines.*SKL, ZEN3"):
        read(tmp_path, XML, "uops-info")
    with pytest.raises(FormatError, match="no machine 'HSW'"):
        read(tmp_path, XML, "uops-info", column="HSW")


def with_results(model):
    """Results of a store that would make a model: sequences of all kinds, one register among them."""
    found = {}
    for name, cost in model.forms.items():
        value = cost.throughput
        times = {"plain x8": value, "unrolled x8": value, "indexed x8": 2 * value, "same register": 0.25}
        pairs = [Latency(*pair.split("->"), v, v, "exact", 0.0) for pair, v in cost.latencies.items()]
        throughput = Throughput(value, 0.0, "exact", times, confidence="high")
        idiom = Idiom.ZERO if cost.idiom else ""
        found[name] = FormTiming(name, {}, "ok", throughput, tuple(pairs), idiom)
    return found


COUNTS = "uops|uops_retire_slots|uops_MITE|uops_MS|complex_decoder|available_simple_decoders|ports|div_cycles"
TIMES = "TP_unrolled|TP_loop|TP_ports"
KNOWN = re.compile(rf"((TP|macro_fusible)|({COUNTS}|{TIMES})(_same_reg)?(_indexed)?|x_\w+)")
CYCLES = r"(min_|max_)?cycles(_addr|_addr_index|_mem)?(_same_reg)?"
LATENCY = re.compile(rf"(start_op|target_op|{CYCLES}(_is_upper_bound)?|x_pairs(_addr|_addr_index|_mem)?)")


@pytest.mark.parametrize("results", [False, True], ids=["of a model", "of a store"])
def test_our_xml_is_read_by_a_reader_that_knows_the_published_layout_alone(results):
    """Written from the description of the layout alone: elements, attributes, operand numbers, ports."""
    model = exchanged(1)
    text = by_name("uops-info").write(model, with_results(model) if results else {}).text
    root = ElementTree.fromstring(text)
    seen, same = 0, 0
    for node in root.iter("instruction"):
        operands = {op.get("idx"): op for op in node.findall("operand")}
        assert list(operands) == [str(n + 1) for n in range(len(operands))]
        assert {op.get("type") for op in operands.values()} <= {"reg", "mem", "imm", "agen", "relbr", "flags"}
        assert node.get("string")
        measurement = node.find("architecture/measurement")
        assert [name for name in measurement.attrib if not KNOWN.fullmatch(name)] == []
        assert float(measurement.get("TP_unrolled")) > 0
        assert ("TP_loop" in measurement.attrib) == results
        same += check_same_register(measurement, results)
        for part in filter(None, (measurement.get("ports") or "").split("+")):
            number, star, ports = part.partition("*")
            assert star
            assert int(number) > 0
            assert ports[0] == "p"
        for latency in node.iter("latency"):
            assert [name for name in latency.attrib if not LATENCY.fullmatch(name)] == []
            start, target = operands[latency.get("start_op")], operands[latency.get("target_op")]
            assert start.get("r") == "1" or start.get("type") in ("mem", "agen")
            assert target.get("w") == "1"
            known = [k for k in latency.attrib if k.split("_")[0] in ("cycles", "min", "max")]
            assert known
            if "cycles_same_reg" in latency.attrib:
                assert {start.get("type"), target.get("type")} == {"reg"}
                assert latency.get("cycles_same_reg") != latency.get("cycles")
            seen += 1
    assert seen > 50
    assert bool(same) == results


def check_same_register(measurement, results):
    """Whether a throughput of one register is there, as it is where different ones take another time."""
    given = [name for name in measurement.attrib if name.endswith("_same_reg")]
    assert given in ([], ["TP_loop_same_reg"] if results else [])
    assert all(float(measurement.get(name)) > 0 for name in given)
    return len(given)


def test_what_only_a_store_tells_changes_nothing_that_is_read(tmp_path):
    model = exchanged(1)
    plain, more = (by_name("uops-info").write(model, some).text for some in ({}, with_results(model)))
    assert plain != more
    alone, both = (read(tmp_path, text, "uops-info") for text in (plain, more))
    assert both.model == alone.model
    assert both.refused == alone.refused == ()


INSTLAT = """------[ CPU #0 ]------

  23 AMD64               :{REX}  MOV r64, r64    L:   0.03ns=   0.12c  T:   0.03ns=   0.144c
Inst   70 X86            : {REX}  ADD r1_64,  r2_64    L:   0.23ns=   1.00c  T:   0.04ns=   0.189c
  86 X86                 :{REX}  LOCK ADD [m32], r32    L:   4.57ns=  19.66c  T:   4.58ns=  19.672c
1324 AVX                 :{VEX}  VPXOR xmm, xmm, xmm    L:   0.04ns=   0.17c  T:   0.04ns=   0.170c
1325 AVX                 :{VEX}  VPXOR xmm1, xmm1, xmm2    L:   0.24ns=   1.05c  T:   0.06ns=   0.253c
1043 AVX                 :{VEX}  VADDPD xmm, xmm, xmm    L:   0.46ns=   1.99c  T:   0.12ns=   0.497c
2412 AVX512VL            :{EVEX} VADDPD ymm, ymm, ymm    L:   0.46ns=   2.50c  T:   0.12ns=   0.498c
1211 AVX                 :{VEX}  VMOVDQU xmm, xmm    L:   0.04ns=   0.17c  T:   0.04ns=   0.171c
2698 AVX512VLDQ          :{EVEX} VANDNPD xmm1, xmm1, xmm1    L:   0.04ns=   0.16c  T:   0.04ns=   0.174c
 296 AMD64               :{REX}  RCL r64, imm8    L:   0.93ns=   3.98c  T:   0.93ns=   3.982c
 297 AMD64               :{REX}  RCR r64, imm8    L:   0.93ns=   3.98c  T:   0.79ns=   3.782c
1856 AVX                 :{VEX}  VMULPD+VADDPD ymm, ymm, ymm    L:   1.39ns=   5.97c  T:   0.17ns=   0.748c
"""


def test_instlatx64(tmp_path):
    found = read(tmp_path, INSTLAT, "instlatx64")
    forms = found.model.forms
    assert forms["ADD_01 (R64, R64)"].latencies == {"op1->op1": 1.0, "op2->op1": 1.0} or forms[
        "ADD_01 (R64, R64)"
    ].latencies == {"op1->op1": 1.0}
    assert forms["VPXOR (XMM, XMM, XMM)"].throughput == 0.253
    assert forms["VPXOR (XMM, XMM, XMM)"].latencies == {"op2->op1": 1.05}
    assert forms["VADDPD (XMM, XMM, XMM)"].ranges == {"op2->op1": (0.0, 1.99), "op3->op1": (0.0, 1.99)}
    assert forms["VMOVDQU_6F (XMM, XMM)"].ranges == {"op2->op1": (0.0, 0.17)}  # renamed so many in a cycle
    assert forms["RCL (R64, I8)"].ranges == {"op1->op1": (0.0, 3.98)}  # no longer than without a chain
    assert forms["RCR (R64, I8)"].latencies == {"op1->op1": 3.98}
    assert "VANDNPD_EVEX (XMM, XMM, XMM)" not in forms or not forms["VANDNPD_EVEX (XMM, XMM, XMM)"].ranges
    assert "VADDPD (YMM, YMM, YMM)" not in forms  # the line has the EVEX encoding
    assert not any("LOCK" in name for name in forms)
    assert {item.place.split()[0] for item in found.refused} >= {"86", "1856"}


def test_uops_info_table(tmp_path):
    rows = 'instruction,family,latency,throughput,uops,ports\n"IMUL (R64, R64)",BASE,3,1.00 / 1.02,1,1*p1\n'
    rows += '"VADDPD (YMM, YMM, M256)",AVX,[3;≤11],0.50,2,1*FP23\n"NIX (R8)",AVX,1,1,1,\n'
    found = read(tmp_path, rows, "uops-info-csv")
    imul, add = (found.model.forms[name] for name in ("IMUL (R64, R64)", "VADDPD (YMM, YMM, M256)"))
    assert imul.throughput == 1.02, "measured, not what the ports allow"
    assert imul.latencies["op2->op1"] == 3.0
    assert add.ranges["op2->op1"] == (0.0, 11.0)
    assert imul.operations is not None
    assert add.operations is None
    assert [item.place for item in found.refused] == ["line 4: NIX (R8)"]


def test_ibench_and_asmbench(tmp_path):
    text = "Using frequency 2.50GHz.\nvaddpd-x_x_x-TP:   0.500 (clock cycles)  [DEBUG]\n"
    text += "vaddpd-x_x_x-LT:  3.0 (cy)\n"
    ibench = read(tmp_path, text, "ibench").model.forms["VADDPD (XMM, XMM, XMM)"]
    assert ibench.throughput == 0.5
    assert ibench.ranges["op2->op1"] == (0.0, 3.0)  # which source it was is not said
    text = "add-i_r\nLatency: 1.00 cycle\nThroughput: 0.00 cycle\n"
    found = read(tmp_path, text, "asmbench")
    assert found.model.forms["ADD (R64, I8)"].latencies == {"op1->op1": 1.0}
    assert found.model.forms["ADD (R64, I8)"].throughput is None
    assert len(found.refused) == 1


def test_asmbench_as_osaca_has_it(tmp_path):
    text = "imul-r_r\nLatency: 3.013 cy\nThroughput: 1.001 cy\n"
    (tmp_path / "asm.dat").write_text(text)
    assert of_contents(tmp_path / "asm.dat").name == "asmbench"
    found = read(tmp_path, text, "asmbench").model.forms["IMUL (R64, R64)"]
    assert (found.throughput, found.ranges["op2->op1"]) == (1.001, (0.0, 3.013))


def test_winic_as_published_refuses_what_its_tables_are_known_to_hold(tmp_path):
    text = """---
- llvmName: FMADDDrrr
  operandLatencies:
    - {sourceOperand: '1', targetOperand: '0', latencyMin: 4, latencyMax: 4}
    - {sourceOperand: '2', targetOperand: '0', latencyMin: -2, latencyMax: -2}
    - {sourceOperand: '3', targetOperand: '0', latencyMin: 4, latencyMax: 3}
  throughput: 0
- {llvmName: NIXrr, throughput: 1}
"""
    found = read(tmp_path, text, "winic", isa="aarch64")
    assert found.model.forms["FMADDDrrr"].latencies == {"op2->op1": 4.0}
    assert found.model.forms["FMADDDrrr"].throughput is None
    assert len(found.refused) == 4


def test_winic_of_the_first_versions_has_latencies_by_source_and_target(tmp_path):
    text = "- llvmName: FMADDDrrr\n  operandLatencies:\n    1: {0: 4}\n    '3': {'0': 2}\n    2: {0: null}\n"
    found = read(tmp_path, text, "winic", isa="aarch64")
    assert found.model.forms["FMADDDrrr"].latencies == {"op2->op1": 4.0, "op4->op1": 2.0}
    assert found.refused == ()


LATENCIES = "llvm_name,pair,value_min,value_max,status,flags,combined,helpers\n"
THROUGHPUTS = "llvm_name,value_min,value_max,status,flags,helper,anomaly\n"


def test_winic_tables_count_what_is_read_and_written_twice(tmp_path):
    rows = "ADD64rr,1:GR64->0:GR64,1,1,OK,,,\nADD64rr,2:GR64->0:GR64,2,2,OK,,,\n"
    rows += "ADC64rr,EFLAGS->0:GR64,3,4,RANGE,,,\nVADDPDZrrk,3:VR512->0:VR512,5,5,OK,,,\n"
    model = read(tmp_path, LATENCIES + rows, "winic-csv").model
    assert model.forms["ADD_01 (R64, R64)"].latencies == {"op1->op1": 1.0, "op2->op1": 2.0}
    assert model.forms["ADC_11 (R64, R64)"].ranges == {"flags.CF->op1": (3.0, 4.0)}
    masked = model.forms["VADDPD (ZMM, K, ZMM, ZMM)"]
    assert masked.latencies == {"op3->op1": 5.0}, "the mask is the second"


def test_winic_tables_of_aarch64(tmp_path):
    rows = "FMLAv4f32,1:FPR128->0:FPR128,2,2,OK,,,\nFMLAv4f32,3:FPR128->0:FPR128,4,4,OK,,,\n"
    rows += "SUBSXrr,2:GPR64->NZCV,1,1,OK,,,\n"
    model = read(tmp_path, LATENCIES + rows, "winic-csv", isa="aarch64").model
    assert model.forms["FMLAv4f32"].latencies == {"op1->op1": 2.0, "op4->op1": 4.0}, "op2 is the first again"


def test_winic_tables_refuse_their_own_doubts(tmp_path):
    rows = "ADD64rr,0.25,0.25,OK,,,\nSUB64rr,0,0,OK,zero pseudo,,\nXOR64rr,0.2,0.9,RANGE,,,\nPHI,,,SKIP,,,\n"
    rows += "AND64rr,9.2e18,9.2e18,OK,,,\nOR64rr,-1,-1,OK,,,\nNIX,1,1,OK,,,\n"
    found = read(tmp_path, THROUGHPUTS + rows, "winic-csv")
    assert found.model.forms["ADD_01 (R64, R64)"].throughput == 0.25
    assert set(found.model.forms) == {"ADD_01 (R64, R64)"}
    assert [item.reason.partition(":")[0] for item in found.refused] == [
        "the table has doubts", "a range", "9.2e+18 cycles", "-1 cycles", "no form has this name"
    ]  # fmt: skip
    rows = "ADD64rr,nix,1,1,OK,,,\nADD64rr,2:GR64->9:GR64,1,1,OK,,,\nADD64rr,2:GR64->0:GR64,1,1,OK,,,\n"
    found = read(tmp_path, LATENCIES + rows, "winic-csv")
    assert [item.place for item in found.refused] == ["line 2: ADD64rr", "line 3: ADD64rr"]
    with pytest.raises(FormatError, match=r"no column value_max, value_min"):
        read(tmp_path, "llvm_name,pair\n", "winic-csv")
