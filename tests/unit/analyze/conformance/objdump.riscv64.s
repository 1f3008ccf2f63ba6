
dot.o:     file format elf64-littleriscv


Disassembly of section .text:

0000000000000000 <dot>:
   0:	211c                	fld	fa5,0(a0)
   2:	2198                	fld	fa4,0(a1)
   4:	0521                	add	a0,a0,8
   6:	05a1                	add	a1,a1,8
   8:	52e7f543          	fmadd.d	fa0,fa5,fa4,fa0
   c:	fec51ae3          	bne	a0,a2,0 <dot>
  10:	8082                	ret
