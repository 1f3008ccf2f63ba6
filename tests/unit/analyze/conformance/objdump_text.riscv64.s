
dot.o:     file format elf64-littleriscv


Disassembly of section .text:

0000000000000000 <dot>:
   0:	fld	fa5,0(a0)
   2:	fld	fa4,0(a1)
   4:	add	a0,a0,8
   6:	add	a1,a1,8
   8:	fmadd.d	fa0,fa5,fa4,fa0
   c:	bne	a0,a2,0 <dot>
  10:	ret
