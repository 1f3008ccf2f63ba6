
dot.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	vmovsd xmm1,QWORD PTR [rdi+rax*8]
   5:	vfmadd231sd xmm0,xmm1,QWORD PTR [rsi+rax*8]
   b:	add    rax,0x1
   f:	cmp    rdx,rax
  12:	jne    0 <dot>
  14:	ret
