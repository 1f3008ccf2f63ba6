
dot.o:     file format elf64-littleaarch64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	ldr	d1, [x0], #8
   4:	ldr	d2, [x1], #8
   8:	fmadd	d0, d1, d2, d0
   c:	cmp	x0, x2
  10:	b.ne	0 <dot>  // b.any
  14:	ret
