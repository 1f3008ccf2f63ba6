// a[i] = a[i-1] + b[i]*c[i], clang 20.1 -mcpu=grace -O3 -fno-unroll-loops: listing 9 of the thesis on WINIC
// OSACA-BEGIN
.LBB0_3:
	ldr	d1, [x20, x8]
	ldr	d2, [x0, x8]
	fmadd	d0, d1, d2, d0
	str	d0, [x19, x8]
	add	x8, x8, #8
	cmp	x8, #1, lsl #12
	b.ne	.LBB0_3
// OSACA-END
