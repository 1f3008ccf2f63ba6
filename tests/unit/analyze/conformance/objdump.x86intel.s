
dot.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	c5 fb 10 0c c7       	vmovsd xmm1,QWORD PTR [rdi+rax*8]
   5:	c4 e2 f1 b9 04 c6    	vfmadd231sd xmm0,xmm1,QWORD PTR [rsi+rax*8]
   b:	48 83 c0 01          	add    rax,0x1
   f:	48 39 c2             	cmp    rdx,rax
  12:	75 ec                	jne    0 <dot>
  14:	c3                   	ret
