// What LLVM 22 knows of instructions at run time, for probe.py.
//
//     g++ -O1 -std=c++17 $(llvm-config-22 --cxxflags) probe.cpp -o probe $(llvm-config-22 --ldflags) -lLLVM-22
//     probe describe TRIPLE          a line of JSON per real opcode
//     probe decode TRIPLE < lines    lines "FEATURES HEX"; answers "OPCODE<tab>OPERAND OPERAND ...<tab>TEXT" or "-"
//
// FEATURES is as for -mattr, without blanks. An operand is a register's name, a number, or ? for none.
#include "llvm/Config/llvm-config.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace llvm;

namespace {

struct Session {
  Triple triple;
  const Target *target = nullptr;
  MCTargetOptions options;
  std::unique_ptr<MCRegisterInfo> regs;
  std::unique_ptr<MCAsmInfo> assembly;
  std::unique_ptr<MCInstrInfo> instrs;
  std::unique_ptr<MCInstPrinter> printer;

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
    printer.reset(target->createMCInstPrinter(triple, 0, *assembly, *instrs, *regs));
    printer->applyTargetSpecificCLOption("no-aliases");
    return true;
  }
};

struct Decoder {
  std::unique_ptr<MCSubtargetInfo> sti;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCDisassembler> disassembler;

  Decoder(const Session &s, StringRef features)
      : sti(s.target->createMCSubtargetInfo(s.triple, "", features)),
        context(new MCContext(s.triple, s.assembly.get(), s.regs.get(), sti.get())),
        disassembler(s.target->createMCDisassembler(*sti, *context)) {}
};

void flag(std::vector<const char *> &found, bool is, const char *name) {
  if (is) found.push_back(name);
}

std::vector<const char *> flags(const MCInstrDesc &d) {
  std::vector<const char *> found;
  flag(found, d.mayLoad(), "load");
  flag(found, d.mayStore(), "store");
  flag(found, d.isBranch(), "branch");
  flag(found, d.isConditionalBranch(), "conditional_branch");
  flag(found, d.isIndirectBranch(), "indirect");
  flag(found, d.isCall(), "call");
  flag(found, d.isReturn(), "return");
  flag(found, d.isTrap(), "trap");
  flag(found, d.hasUnmodeledSideEffects(), "side_effects");
  return found;
}

void describe(const Session &s) {
  for (unsigned opcode = 0; opcode < s.instrs->getNumOpcodes(); opcode++) {
    const MCInstrDesc &d = s.instrs->get(opcode);
    if (d.isPseudo() || !d.getSize()) continue;
    json::OStream out(outs());
    out.object([&] {
      out.attribute("name", s.instrs->getName(opcode));
      out.attribute("defs", (int)d.getNumDefs());
      out.attributeArray("flags", [&] { for (auto *name : flags(d)) out.value(name); });
      out.attributeArray("tied", [&] {
        for (unsigned k = 0; k < d.getNumOperands(); k++) out.value(d.getOperandConstraint(k, MCOI::TIED_TO));
      });
      out.attributeArray("early", [&] {
        for (unsigned k = 0; k < d.getNumOperands(); k++)
          if (d.getOperandConstraint(k, MCOI::EARLY_CLOBBER) != -1) out.value((int)k);
      });
      out.attributeArray("classes", [&] {
        for (const MCOperandInfo &info : d.operands()) {
          int cls = s.instrs->getOpRegClassID(info, 0);
          cls >= 0 ? out.value(s.regs->getRegClassName(&s.regs->getRegClass(cls))) : out.value("");
        }
      });
      out.attributeArray("reads", [&] { for (MCPhysReg r : d.implicit_uses()) out.value(s.regs->getName(r)); });
      out.attributeArray("writes", [&] { for (MCPhysReg r : d.implicit_defs()) out.value(s.regs->getName(r)); });
    });
    outs() << "\n";
  }
}

std::string bytesOf(const std::string &hex) {
  std::string code;
  for (size_t k = 0; k + 1 < hex.size(); k += 2) code.push_back((char)std::stoi(hex.substr(k, 2), nullptr, 16));
  return code;
}

void printOperand(const Session &s, const MCOperand &op) {
  if (op.isReg() && op.getReg()) outs() << s.regs->getName(op.getReg());
  else if (op.isImm()) outs() << op.getImm();
  else outs() << '?';
}

void decodeLine(Session &s, const Decoder &decoder, const std::string &code) {
  MCInst inst;
  uint64_t size = 0;
  ArrayRef<uint8_t> bytes((const uint8_t *)code.data(), code.size());
  auto status = decoder.disassembler->getInstruction(inst, size, bytes, 0, nulls());
  if (status != MCDisassembler::Success || size != code.size()) {
    outs() << "-\n";
    return;
  }
  outs() << s.instrs->getName(inst.getOpcode()) << '\t';
  for (unsigned k = 0; k < inst.getNumOperands(); k++) {
    if (k) outs() << ' ';
    printOperand(s, inst.getOperand(k));
  }
  std::string text;
  raw_string_ostream stream(text);
  s.printer->printInst(&inst, 0, "", *decoder.sti, stream);
  for (char &c : text)
    if (c == '\t' || c == '\n') c = ' ';
  outs() << '\t' << StringRef(text).trim() << '\n';
}

void decode(Session &s) {
  std::map<std::string, std::unique_ptr<Decoder>> decoders;
  std::string features, hex;
  while (std::cin >> features >> hex) {
    auto &decoder = decoders[features];
    if (!decoder) decoder = std::make_unique<Decoder>(s, features);
    decodeLine(s, *decoder, bytesOf(hex));
  }
}

}  // namespace

int main(int argc, char **argv) {
  std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "describe" && mode != "decode") {
    errs() << "usage: probe describe|decode TRIPLE\n";
    return 2;
  }
  InitializeAllTargetInfos();
  InitializeAllTargets();
  InitializeAllTargetMCs();
  InitializeAllDisassemblers();
  Session s;
  if (!s.open(argv[2])) return 1;
  if (mode == "describe") describe(s);
  else decode(s);
}
