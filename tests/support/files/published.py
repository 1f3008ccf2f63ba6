"""Files of formats that are only read, in the layout that their tools have, in words of our own."""

from __future__ import annotations

from tests.support.files.llvm_records import target

INSTLATX64 = """------[ CPU #0 ]------

  23 AMD64               :{REX}  MOV r64, r64    L:   0.03ns=   0.12c  T:   0.03ns=   0.144c
  70 X86                 :{REX}  ADD r1_64, r2_64    L:   0.23ns=   1.00c  T:   0.04ns=   0.189c
1325 AVX                 :{VEX}  VPXOR xmm1, xmm1, xmm2    L:   0.24ns=   1.05c  T:   0.06ns=   0.253c
1043 AVX                 :{VEX}  VADDPD xmm, xmm, xmm    L:   0.46ns=   1.99c  T:   0.12ns=   0.497c
"""
UOPS_TABLE = """instruction,family,latency,throughput,uops,ports
"IMUL (R64, R64)",BASE,3,1.00 / 1.02,1,1*p1
"VADDPD (YMM, YMM, M256)",AVX,[3;≤11],0.50,2,1*FP23
"ADD (R64, I8)",BASE,[1;1],0.25 / 0.25,1,1*p0156
"""
IBENCH = """Using frequency 2.50GHz.
vaddpd-x_x_x-TP:   0.500 (clock cycles)  [DEBUG]
vaddpd-x_x_x-LT:   3.000 (clock cycles)  [DEBUG]
add-r64_i-TP:   0.250 (clock cycles)
"""
ASMBENCH = """add-i_r
Latency: 1.00 cycle
Throughput: 0.25 cycle

vaddpd-x_x_x
Latency: 4.00 cycle
Throughput: 0.50 cycle
"""
WINIC_TABLE = """llvm_name,pair,value_min,value_max,status,flags,combined,helpers
PHI,,,,SKIP_PSEUDO_INSTRUCTION,,,
ADD64rr,1:GR64->0:GR64,1,1,OK,,,
ADD64rr,2:GR64->EFLAGS,1,1.02,RANGE,,2.02,ADC64rr(impl(Reg<EFLAGS>) -> 0(Class<GR64>))
VADDPDZrrk,4:VR512->0:VR512,3.02,3.02,OK,,,
"""
ONLY_READ = {
    "winic-csv": WINIC_TABLE,
    "instlatx64": INSTLATX64, "uops-info-csv": UOPS_TABLE, "ibench": IBENCH, "asmbench": ASMBENCH,
    "llvm-json": target(small=False).text(),
}  # fmt: skip
