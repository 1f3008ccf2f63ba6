
dot.o:     file format elf64-littleaarch64


Disassembly of section .text:

0000000000000000 <dot>:
   0:	fc408401 	ldr	d1, [x0], #8
   4:	fc408422 	ldr	d2, [x1], #8
   8:	1f420020 	fmadd	d0, d1, d2, d0
   c:	eb02001f 	cmp	x0, x2
  10:	54ffff81 	b.ne	0 <dot>  // b.any
  14:	d65f03c0 	ret
