.L9:
	ldr	q1, [x3]
	fmul	v1.2d, v1.2d, v1.2d
	str	q1, [x3], #16
	cmp	x3, x4
	bne	.L9
	mov	x1, #111 ; OSACA START MARKER
	.byte	213,3,32,31 ; OSACA START MARKER
.L3:
	ldr	d1, [x0], #8
	ldr	d2, [x1], #8
	fmadd	d0, d1, d2, d0
	cmp	x0, x2
	bne	.L3
	mov	x1, #222 ; OSACA END MARKER
	.byte	213,3,32,31 ; OSACA END MARKER
	ret
