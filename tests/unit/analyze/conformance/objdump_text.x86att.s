
dot.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	vmovsd (%rdi,%rax,8),%xmm1
   5:	vfmadd231sd (%rsi,%rax,8),%xmm1,%xmm0
   b:	add    $0x1,%rax
   f:	cmp    %rax,%rdx
  12:	jne    0 <dot>
  14:	ret
