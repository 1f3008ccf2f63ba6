// Scheduling models of LLVM 22, as lines of JSON for generate.py.
//
//     g++ -O1 -std=c++17 $(llvm-config-22 --cxxflags) extract.cpp -o extract $(llvm-config-22 --ldflags) -lLLVM-22
//     extract TRIPLE             every real opcode, with operands made up here
//     extract TRIPLE < samples   lines "name hexbytes", on x86-64
//
// First line: the models. Then one line per instruction: operands, and per model the scheduling class
// that its variants resolve to. Last line: what the classes cost.
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCFixup.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSchedule.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <csetjmp>
#include <csignal>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace llvm;

namespace {

struct Model {
  std::string name;                  // of the first CPU that has it
  std::vector<std::string> aliases;  // every CPU that has it
  std::unique_ptr<MCSubtargetInfo> sti;
  std::set<unsigned> used;           // scheduling classes
  const MCSchedModel &sched() const { return sti->getSchedModel(); }
};

struct Session {
  Triple triple;
  const Target *target = nullptr;
  MCTargetOptions options;
  std::unique_ptr<MCRegisterInfo> regs;
  std::unique_ptr<MCAsmInfo> assembly;
  std::unique_ptr<MCInstrInfo> instrs;
  std::unique_ptr<MCInstrAnalysis> analysis;
  std::vector<Model> models;

  bool open(const std::string &name) {
    std::string error;
    triple = Triple(name);
    target = TargetRegistry::lookupTarget(triple, error);
    if (!target) {
      errs() << error << "\n";
      return false;
    }
    regs.reset(target->createMCRegInfo(triple));
    assembly.reset(target->createMCAsmInfo(*regs, triple, options));
    instrs.reset(target->createMCInstrInfo());
    analysis.reset(target->createMCInstrAnalysis(instrs.get()));
    return true;
  }
  std::unique_ptr<MCSubtargetInfo> subtarget(StringRef cpu) const {
    return std::unique_ptr<MCSubtargetInfo>(target->createMCSubtargetInfo(triple, cpu, ""));
  }
  // The widest register around one on x86: RAX for AL, ZMM1 for XMM1, but not K0_K1 for K0; elsewhere
  // those are tuples.
  std::string nameOf(MCRegister reg) const {
    MCRegister top = reg;
    if (triple.isX86())
      for (MCPhysReg super : regs->superregs(reg))
        if (regs->superregs(super).empty() && !StringRef(regs->getName(super)).contains('_')) top = super;
    return regs->getName(top);
  }
  // CPUs that share a model differ in their features only.
  void findModels() {
    std::map<const MCSchedModel *, size_t> known;
    auto any = subtarget("");
    for (const SubtargetSubTypeKV &cpu : any->getAllProcessorDescriptions()) {
      if (!cpu.SchedModel->hasInstrSchedModel()) continue;
      auto [at, fresh] = known.try_emplace(cpu.SchedModel, models.size());
      if (fresh) {
        models.emplace_back();
        models.back().name = cpu.Key;
        models.back().sti = subtarget(cpu.Key);
      }
      models[at->second].aliases.push_back(cpu.Key);
    }
  }
};

void printModel(json::OStream &out, const Model &model) {
  const MCSchedModel &m = model.sched();
  out.object([&] {
    out.attribute("name", model.name);
    out.attributeArray("aliases", [&] { for (auto &a : model.aliases) out.value(a); });
    out.attribute("width", (int)m.IssueWidth);
    out.attribute("buffer", (int)m.MicroOpBufferSize);
    out.attribute("load_latency", (int)m.LoadLatency);
    out.attribute("mispredict", (int)m.MispredictPenalty);
    if (m.hasExtraProcessorInfo()) {
      const MCExtraProcessorInfo &extra = m.getExtraProcessorInfo();
      out.attribute("rob", (int)extra.ReorderBufferSize);
      out.attribute("load_queue", (int)extra.LoadQueueID);
      out.attribute("store_queue", (int)extra.StoreQueueID);
    }
    out.attributeArray("resources", [&] {
      for (unsigned k = 0; k < m.getNumProcResourceKinds(); k++) {
        const MCProcResourceDesc &r = *m.getProcResource(k);
        out.object([&] {
          out.attribute("name", r.Name);
          out.attribute("units", (int)r.NumUnits);
          out.attribute("super", (int)r.SuperIdx);
          out.attribute("buffer", (int)r.BufferSize);
          if (r.SubUnitsIdxBegin)
            out.attributeArray("sub", [&] {
              for (unsigned u = 0; u < r.NumUnits; u++) out.value((int)r.SubUnitsIdxBegin[u]);
            });
        });
      }
    });
  });
}

void printModels(const Session &s) {
  json::OStream out(outs());
  out.object([&] {
    out.attribute("llvm", LLVM_VERSION_STRING);
    out.attributeArray("models", [&] { for (auto &m : s.models) printModel(out, m); });
  });
  outs() << "\n";
}

void printClass(json::OStream &out, const MCSubtargetInfo &sti, const MCSchedClassDesc &c) {
  out.object([&] {
    out.attribute("slots", (int)c.NumMicroOps);
    out.attribute("throughput", MCSchedModel::getReciprocalThroughput(sti, c));
    out.attributeArray("writes", [&] {
      for (unsigned k = 0; k < c.NumWriteLatencyEntries; k++) {
        const MCWriteLatencyEntry *w = sti.getWriteLatencyEntry(&c, k);
        out.array([&] { out.value((int)w->Cycles); out.value((int)w->WriteResourceID); });
      }
    });
    out.attributeArray("uses", [&] {
      for (auto *w = sti.getWriteProcResBegin(&c); w != sti.getWriteProcResEnd(&c); ++w)
        out.array([&] {
          out.value((int)w->ProcResourceIdx);
          out.value((int)w->ReleaseAtCycle);
          out.value((int)w->AcquireAtCycle);
        });
    });
    out.attributeArray("advances", [&] {
      for (const MCReadAdvanceEntry &a : sti.getReadAdvanceEntries(c))
        out.array([&] {
          out.value((int)a.UseIdx);
          out.value((int)a.WriteResourceID);
          out.value(a.Cycles);
        });
    });
  });
}

// Class 0 where the model does not know the instruction.
unsigned resolve(const Session &s, const Model &model, const MCInst &inst, unsigned opcode) {
  const MCSchedModel &m = model.sched();
  unsigned id = s.instrs->get(opcode).getSchedClass();
  while (id && m.getSchedClassDesc(id)->isVariant())
    id = model.sti->resolveVariantSchedClass(id, &inst, s.instrs.get(), m.getProcessorID());
  return id && m.getSchedClassDesc(id)->isValid() ? id : 0;
}

bool isSource(const MCInstrDesc &d, const MCInst &inst, unsigned k) {
  return k >= d.getNumDefs() && k < d.getNumOperands() && inst.getOperand(k).isReg() &&
         inst.getOperand(k).getReg() && d.operands()[k].OperandType == MCOI::OPERAND_REGISTER;
}

// The instruction with one register for all its sources of one class; none where there is one source.
std::optional<MCInst> oneSource(const Session &s, const MCInst &inst) {
  const MCInstrDesc &d = s.instrs->get(inst.getOpcode());
  MCInst same = inst;
  int first = -1, count = 0;
  for (unsigned k = 0; k < inst.getNumOperands(); k++) {
    if (!isSource(d, inst, k)) continue;
    if (first < 0) first = k;
    if (d.operands()[k].RegClass != d.operands()[first].RegClass) continue;
    same.getOperand(k).setReg(inst.getOperand(first).getReg());
    count++;
  }
  return count > 1 ? std::optional<MCInst>(same) : std::nullopt;
}

// Bits: 1 eliminated move; of one register for all sources: 2 breaks dependencies, 4 is a zero idiom.
unsigned traits(const Session &s, const Model &model, const MCInst &inst, const std::optional<MCInst> &same) {
  if (!s.analysis) return 0;
  unsigned cpu = model.sched().getProcessorID();
  unsigned found = s.analysis->isOptimizableRegisterMove(inst, cpu) ? 1 : 0;
  APInt mask;
  if (same && s.analysis->isDependencyBreaking(*same, mask, cpu)) found |= 2;
  if (same && s.analysis->isZeroIdiom(*same, mask, cpu)) found |= 4;
  return found;
}

void printOperands(json::OStream &out, const Session &s, const MCInst &inst) {
  const MCInstrDesc &d = s.instrs->get(inst.getOpcode());
  out.attribute("opcode", s.instrs->getName(inst.getOpcode()));
  out.attribute("defs", (int)d.getNumDefs());
  out.attribute("explicit", (int)(d.getNumOperands() - d.getNumDefs() - d.hasOptionalDef()));
  out.attribute("call", d.isCall());
  out.attributeArray("operands", [&] {
    for (const MCOperand &op : inst)
      op.isReg() && op.getReg() ? out.value(s.nameOf(op.getReg())) : out.value(nullptr);
  });
  out.attributeArray("tied", [&] {
    for (unsigned k = 0; k < d.getNumOperands(); k++) out.value(d.getOperandConstraint(k, MCOI::TIED_TO));
  });
  out.attributeArray("reads", [&] {
    for (MCPhysReg r : d.implicit_uses()) out.value(s.nameOf(r));
  });
  out.attributeArray("writes", [&] {
    for (MCPhysReg r : d.implicit_defs()) out.value(s.nameOf(r));
  });
}

// `opcode` has the scheduling class, where it is not the instruction's own.
void printInstruction(Session &s, StringRef name, const MCInst &inst, unsigned opcode = 0) {
  json::OStream out(outs());
  auto same = opcode ? std::nullopt : oneSource(s, inst);
  opcode = opcode ? opcode : inst.getOpcode();
  out.object([&] {
    out.attribute("name", name);
    printOperands(out, s, inst);
    out.attributeArray("classes", [&] {
      for (Model &model : s.models) {
        unsigned id = resolve(s, model, inst, opcode), other = same ? resolve(s, model, *same, opcode) : 0;
        for (unsigned used : {id, other})
          if (used) model.used.insert(used);
        out.array([&] {
          out.value((int)id);
          out.value((int)other);
          out.value((int)traits(s, model, inst, same));
        });
      }
    });
  });
  outs() << "\n";
}

void printClasses(const Session &s) {
  json::OStream out(outs());
  out.array([&] {
    for (const Model &model : s.models)
      out.object([&] {
        for (unsigned id : model.used) {
          out.attributeBegin(std::to_string(id));
          printClass(out, *model.sti, *model.sched().getSchedClassDesc(id));
          out.attributeEnd();
        }
      });
  });
  outs() << "\n";
}

// --- instructions from machine code ---------------------------------------------------------------

class Decoder {
public:
  Decoder(const Session &s, std::unique_ptr<MCSubtargetInfo> features)
      : sti(std::move(features)),
        context(s.triple, s.assembly.get(), s.regs.get(), sti.get()),
        disassembler(s.target->createMCDisassembler(*sti, context)),
        emitter(s.target->createMCCodeEmitter(*s.instrs, context)) {}
  bool decode(ArrayRef<uint8_t> code, MCInst &inst) const {
    uint64_t size = 0;
    inst = MCInst();
    return disassembler->getInstruction(inst, size, code, 0x1000, nulls()) != MCDisassembler::Fail &&
           size == code.size();
  }
  bool roundTrip(const MCInst &made, MCInst &inst) const {
    SmallVector<char, 16> bytes;
    SmallVector<MCFixup, 4> fixups;
    emitter->encodeInstruction(made, bytes, fixups, *sti);
    ArrayRef<uint8_t> code((const uint8_t *)bytes.data(), bytes.size());
    return decode(code, inst) && inst.getOpcode() == made.getOpcode();
  }

private:
  std::unique_ptr<MCSubtargetInfo> sti;
  MCContext context;
  std::unique_ptr<MCDisassembler> disassembler;
  std::unique_ptr<MCCodeEmitter> emitter;
};

void fromSamples(Session &s) {
  Decoder decoder(s, s.subtarget(""));
  std::string line;
  while (std::getline(std::cin, line)) {
    size_t tab = line.find('\t');
    std::string code;
    for (size_t k = tab + 1; k + 1 < line.size(); k += 2)
      code.push_back((char)std::stoi(line.substr(k, 2), nullptr, 16));
    MCInst inst;
    if (decoder.decode(arrayRefFromStringRef(code), inst))
      printInstruction(s, line.substr(0, tab), inst);
  }
}

// --- instructions made up: registers all different, one immediate that the encoding takes --------

bool isOptional(StringRef feature) {
  return feature.starts_with("x") || feature.starts_with("experimental-") || feature.contains("inx") ||
         feature.starts_with("zcm") || feature.ends_with("lsd") || feature == "32bit" || feature == "e";
}

// Everything at once on AArch64; on RISC-V the standard, then each extension that reuses encodings.
std::vector<std::unique_ptr<Decoder>> decoders(const Session &s) {
  std::vector<std::unique_ptr<Decoder>> found;
  auto base = s.subtarget("");
  bool riscv = s.triple.isRISCV();
  FeatureBitset bits;
  for (const SubtargetFeatureKV &f : base->getAllProcessorFeatures())
    if (!riscv || !isOptional(f.Key)) bits.set(f.Value);
  auto add = [&](FeatureBitset set) {
    auto sti = s.subtarget("");
    sti->setFeatureBits(set);
    found.push_back(std::make_unique<Decoder>(s, std::move(sti)));
  };
  add(bits);
  for (const SubtargetFeatureKV &f : base->getAllProcessorFeatures()) {
    if (!riscv || !isOptional(f.Key) || StringRef(f.Key) == "32bit" || StringRef(f.Key) == "e") continue;
    add(FeatureBitset(bits) | f.Implies.getAsBitset() | FeatureBitset({f.Value}));
  }
  return found;
}

MCRegister freshRegister(const Session &s, const MCRegisterClass &cls, const MCInst &inst) {
  for (unsigned k = cls.getNumRegs() > 12 ? 8 : 0; k < cls.getNumRegs(); k++) {
    MCRegister reg = cls.getRegister(k);
    bool taken = s.regs->isConstant(reg);
    for (const MCOperand &op : inst)
      taken |= op.isReg() && op.getReg() && s.regs->regsOverlap(op.getReg(), reg);
    if (!taken) return reg;
  }
  return cls.getRegister(0);
}

// All immediates alike, but the first where one is given: a move of 0 is an idiom on some cores.
MCInst make(const Session &s, unsigned opcode, int64_t immediate, std::optional<int64_t> first = std::nullopt) {
  const MCInstrDesc &d = s.instrs->get(opcode);
  MCInst inst;
  inst.setOpcode(opcode);
  for (unsigned k = 0; k < d.getNumOperands(); k++) {
    const MCOperandInfo &info = d.operands()[k];
    int tied = d.getOperandConstraint(k, MCOI::TIED_TO);
    int cls = s.instrs->getOpRegClassID(info, 0);
    if (tied >= 0)
      inst.addOperand(inst.getOperand(tied));
    else if (cls >= 0)
      inst.addOperand(MCOperand::createReg(freshRegister(s, s.regs->getRegClass(cls), inst)));
    else {
      inst.addOperand(MCOperand::createImm(first.value_or(immediate)));
      first.reset();
    }
  }
  return inst;
}

// Encoders end the program where operands are impossible.
sigjmp_buf impossible;

void onTrap(int) { siglongjmp(impossible, 1); }

bool tryOperands(const Decoder &decoder, const MCInst &made, MCInst &inst) {
  if (sigsetjmp(impossible, 1)) return false;
  return decoder.roundTrip(made, inst);
}

bool realise(const Session &s, const std::vector<std::unique_ptr<Decoder>> &all, unsigned opcode, MCInst &inst) {
  static const int64_t immediates[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 24, 31, 32, 48, 63, 64, 128, 256,
                                       512, 1024, 4096, -1, -2, -16};
  StringRef name = s.instrs->getName(opcode);
  if (name.starts_with("MOVZ") || name.starts_with("MOVN"))
    for (auto &decoder : all)
      if (tryOperands(*decoder, make(s, opcode, 0, 1), inst)) return true;
  for (auto &decoder : all)
    for (int64_t value : immediates)
      if (tryOperands(*decoder, make(s, opcode, value), inst)) return true;
  return false;
}

// The part of a name behind the last underscore, if it is one of these; it is taken off.
StringRef taken(StringRef &name, std::initializer_list<StringRef> endings) {
  auto [rest, last] = name.rsplit('_');
  for (StringRef ending : endings)
    if (last == ending) {
      name = rest;
      return last;
    }
  return "";
}

// RISC-V: the costs of a vector instruction by VTYPE are those of pseudo-instructions, whose names end with
// the multiplier of the registers, the width of elements, or the ratio of both for masks. Indexed accesses have
// the multiplier of the index in front of that of the data.
void fromVectorPseudos(Session &s, const StringMap<MCInst> &real) {
  static const std::initializer_list<StringRef> multipliers = {"MF8", "MF4", "MF2", "M1", "M2", "M4", "M8"};
  for (unsigned opcode = 0; opcode < s.instrs->getNumOpcodes(); opcode++) {
    StringRef name = s.instrs->getName(opcode);
    if (!name.consume_front("PseudoV")) continue;
    std::string width = taken(name, {"E8", "E16", "E32", "E64"}).lower();
    std::string multiplier = taken(name, multipliers).lower(), index = taken(name, multipliers).lower();
    if (width.empty() && index.empty()) {  // PseudoVRGATHEREI16_VV_M1_E32_MF2: the index comes last
      width = taken(name, {"E8", "E16", "E32", "E64"}).lower();
      if (!width.empty()) index = std::exchange(multiplier, taken(name, multipliers).lower());
    }
    std::string ratio = taken(name, {"B1", "B2", "B4", "B8", "B16", "B32", "B64"}).lower();
    std::string base = ("V" + name).str();
    for (StringRef scalar : {"FPR16", "FPR32", "FPR64"})
      if (size_t at = base.find(scalar.str()); at != std::string::npos) {
        base.replace(at, scalar.size(), "F");
        if (width.empty()) width = ("e" + scalar.drop_front(3)).str();
      }
    auto found = real.find(base);
    if (found == real.end() || (multiplier.empty() && ratio.empty())) continue;
    std::string key = multiplier.empty() ? ratio : multiplier;
    if (!index.empty()) key += "/" + index;
    if (!width.empty()) key = width + "," + key;
    printInstruction(s, base + "@" + key, found->second, opcode);
  }
}

void fromOpcodes(Session &s) {
  StringMap<MCInst> real;
  for (int number : {SIGTRAP, SIGILL, SIGABRT, SIGSEGV}) std::signal(number, onTrap);
  auto all = decoders(s);
  for (unsigned opcode = 0; opcode < s.instrs->getNumOpcodes(); opcode++) {
    const MCInstrDesc &d = s.instrs->get(opcode);
    MCInst inst;
    if (d.isPseudo() || !d.getSize()) continue;
    if (realise(s, all, opcode, inst)) {
      printInstruction(s, s.instrs->getName(opcode), inst);
      real[s.instrs->getName(opcode)] = inst;
    } else errs() << "not realised: " << s.instrs->getName(opcode) << "\n";
  }
  if (s.triple.isRISCV()) fromVectorPseudos(s, real);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    errs() << "usage: extract TRIPLE [< samples]\n";
    return 2;
  }
  InitializeAllTargetInfos();
  InitializeAllTargets();
  InitializeAllTargetMCs();
  InitializeAllDisassemblers();
  Session s;
  if (!s.open(argv[1])) return 1;
  s.findModels();
  printModels(s);
  if (s.triple.isX86()) fromSamples(s);
  else fromOpcodes(s);
  printClasses(s);
}
