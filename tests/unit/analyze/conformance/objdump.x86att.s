
dot.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	c5 fb 10 0c c7       	vmovsd (%rdi,%rax,8),%xmm1
   5:	c4 e2 f1 b9 04 c6    	vfmadd231sd (%rsi,%rax,8),%xmm1,%xmm0
   b:	48 83 c0 01          	add    $0x1,%rax
   f:	48 39 c2             	cmp    %rax,%rdx
  12:	75 ec                	jne    0 <dot>
  14:	c3                   	ret
