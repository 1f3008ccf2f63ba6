"""What llvm-tblgen -dump-json prints of a small target with two models, in words of our own."""

from __future__ import annotations

import json


def ref(name):
    return {"def": name, "kind": "def", "printable": name}


def refs(text):
    return [ref(name) for name in text.split()]


def dag(operator, *args):
    return {"kind": "dag", "operator": ref(operator), "args": [[arg, None] for arg in args], "printable": ""}


class Target:
    """Records by name, each with its classes."""

    def __init__(self):
        self.records = {}
        self.instances = {}

    def put(self, name, classes, **fields):
        self.records[name] = {"!name": name, "!superclasses": classes.split(), **fields}
        for one in classes.split():
            self.instances.setdefault(one, []).append(name)

    def text(self):
        return json.dumps({"!instanceof": self.instances, "!tablegen_json_version": 1, **self.records})


def model(target, name, cpu, width=4):
    target.put(name, "SchedMachineModel", IssueWidth=width, MicroOpBufferSize=100, LoadLatency=5,
               MispredictPenalty=12)  # fmt: skip
    target.put(f"cpu_{cpu}", "Processor ProcessorModel", Name=cpu, SchedModel=ref(name))


def unit(target, name, count=1, parent=None, of="Big"):
    whole = ref(parent) if parent else None
    kinds = "ProcResourceKind ProcResourceUnits ProcResource"
    target.put(f"{of}{name}", kinds, NumUnits=count, Super=whole, BufferSize=-1, SchedModel=ref(f"{of}Model"))


def group(target, name, members, of="Big"):
    target.put(f"{of}{name}", "ProcResourceKind ProcResGroup", Resources=refs(members), BufferSize=60,
               SchedModel=ref(f"{of}Model"))  # fmt: skip


def takes(target, kind, resources, latency, slots=1, cycles=(), of="Big", **more):
    """A `WriteRes` of a kind, or a `SchedWriteRes` where the kind is its own name."""
    own = kind.startswith(of)
    fields = {"Unsupported": 0} | ({} if own else {"WriteType": ref(kind)})
    fields |= {"ProcResources": refs(resources), "ReleaseAtCycles": list(cycles), "NumMicroOps": slots}
    name, kinds = (kind, "SchedWrite SchedWriteRes") if own else (f"{of}_{kind}", "WriteRes")
    target.put(name, kinds, Latency=latency, SchedModel=ref(f"{of}Model"), **fields | more)


def opcode(target, name, costs, written=""):
    target.put(name, "Instruction", SchedRW=refs(costs) if costs else None, Defs=refs(written))


def chosen(target, name, costs, instructions, of="Big"):
    target.put(
        name, "InstRW", OperandReadWrites=refs(costs), Instrs=instructions, SchedModel=ref(f"{of}Model")
    )


def _references(t):
    """What is late, an alias, a sequence and a choice."""
    t.put(
        "late",
        "ReadAdvance",
        Cycles=5,
        ReadType=ref("ReadAfterLd"),
        ValidWrites=[],
        SchedModel=ref("BigModel"),
    )
    t.put("later", "ReadAdvance", Cycles=1, ReadType=ref("ReadLate"), ValidWrites=refs("BigMul"),
          SchedModel=ref("BigModel"))  # fmt: skip
    t.put("alias", "SchedAlias", MatchRW=ref("WriteMUL"), AliasRW=ref("BigMul"), SchedModel=ref("BigModel"))
    t.put(
        "BigTwice", "SchedWrite WriteSequence", Writes=refs("WriteALULd WriteRMW"), Repeat=2, SchedModel=None
    )
    t.put("zero", "SchedVar", Selected=refs("BigSlow"), Predicate=ref("IfZero"))
    t.put("others", "SchedVar", Selected=refs("BigShift"), Predicate=ref("NoSchedPred"))
    t.put("BigVariant", "SchedWrite SchedVariant SchedWriteVariant", Variants=refs("zero others"), Variadic=0,
          SchedModel=ref("BigModel"))  # fmt: skip


def _opcodes(t):
    """The opcodes with their costs, and those that the core chooses itself."""
    opcode(t, "ADD64rr", "WriteALU", "EFLAGS")
    opcode(t, "ADD64rm", "WriteALULd ReadAfterLd", "EFLAGS")
    opcode(t, "IMUL64rr", "WriteMUL", "EFLAGS")
    opcode(t, "CMOV64rr", "WriteCMOV")
    opcode(t, "DIV64r", "WriteDIV", "RAX RDX EFLAGS")
    opcode(t, "SHL64ri", "WriteALU", "EFLAGS")
    opcode(t, "ADD64mr", "WriteALU", "EFLAGS")
    opcode(t, "SUB64rr", "", "EFLAGS")
    opcode(t, "ROL64ri", "WriteGone", "EFLAGS")
    chosen(
        t, "mul", "WriteMUL BigFlags ReadDefault ReadLate", dag("instrs", ref("IMUL64rr"), ref("IMUL32rr"))
    )
    chosen(t, "shift", "BigVariant", dag("instregex", "S(H|A)L(8|16|32|64)ri$"))
    chosen(t, "store", "BigTwice", dag("instregex", "^ADD64mr"))


def target(small=True):
    """`big` has two ports for sums, a group of both with one for products, and loads on a part of a port."""
    t = Target()
    model(t, "BigModel", "big")
    for name in ("P0", "P1", "P2"):
        unit(t, name)
    unit(t, "AGU", 2)
    unit(t, "Load", 1, "BigAGU")
    group(t, "P01", "BigP0 BigP1")
    group(t, "P012", "BigP0 BigP1 BigP2")
    for name in ("WriteALU", "WriteALULd", "WriteMUL", "WriteCMOV", "WriteDIV", "WriteRMW", "WriteGone"):
        t.put(name, "SchedWrite")
    for name in ("ReadDefault", "ReadAfterLd", "ReadLate"):
        t.put(name, "SchedRead")
    takes(t, "WriteALU", "BigP01", 1)
    takes(t, "WriteALULd", "BigLoad BigP01", 6, 2)
    takes(t, "WriteCMOV", "BigP0", 2)
    takes(t, "WriteDIV", "BigP0 BigP012", 20, 3, (10, 2))
    takes(t, "WriteRMW", "BigP2", 1)
    takes(t, "WriteGone", "", 1, Unsupported=1)
    takes(t, "BigMul", "BigP1", 3)
    takes(t, "BigFlags", "", 4, 0)
    takes(t, "BigShift", "BigP2", 1)
    takes(t, "BigSlow", "BigP2", 9)
    _references(t)
    _opcodes(t)
    if small:
        model(t, "SmallModel", "small", 1)
        unit(t, "P0", of="Small")
        takes(t, "WriteALU", "SmallP0", 2, of="Small")
        chosen(t, "small", "WriteGone", dag("instregex", "ADD"), of="Small")
    return t
