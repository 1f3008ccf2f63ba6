.L3:
	ldr	d1, [x0], #8
	ldr	d2, [x1], #8
	fmadd	d0, d1, d2, d0
	cmp	x0, x2
	bne	.L3
	ret
