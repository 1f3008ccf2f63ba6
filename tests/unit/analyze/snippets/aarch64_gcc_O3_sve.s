	.arch armv8.2-a+crc+sve
	.file	"kernels.c"
	.text
	.align	2
	.p2align 4,,11
	.global	triad
	.type	triad, %function
triad:
.LFB0:
	.cfi_startproc
	cbz	x3, .L1
	mov	x4, 0
	cntd	x5
	mov	z0.d, d0
	whilelo	p0.d, xzr, x3
	ptrue	p1.b, all
	.p2align 3,,7
.L3:
	ld1d	z2.d, p0/z, [x1, x4, lsl 3]
	ld1d	z1.d, p0/z, [x2, x4, lsl 3]
	fmad	z1.d, p1/m, z0.d, z2.d
	st1d	z1.d, p0, [x0, x4, lsl 3]
	add	x4, x4, x5
	whilelo	p0.d, x4, x3
	b.any	.L3
.L1:
	ret
	.cfi_endproc
.LFE0:
	.size	triad, .-triad
	.align	2
	.p2align 4,,11
	.global	gemm
	.type	gemm, %function
gemm:
.LFB1:
	.cfi_startproc
	mov	w4, w0
	mov	x9, x2
	mov	x7, x3
	cmp	w0, 0
	ble	.L9
	sxtw	x3, w0
	cntb	x0
	mov	x2, x1
	sbfiz	x8, x4, 2, 32
	mov	w10, 0
	cntw	x5
	mul	x3, x3, x0
	index	z3.s, #0, w4
	whilelo	p2.s, wzr, w4
	.p2align 3,,7
.L11:
	mov	x6, 0
	.p2align 3,,7
.L14:
	movi	v1.2s, #0
	add	x1, x9, x6
	mov	x0, 0
	mov	p0.b, p2.b
	.p2align 3,,7
.L12:
	ld1w	z2.s, p0/z, [x2, x0, lsl 2]
	ld1w	z0.s, p0/z, [x1, z3.s, sxtw 2]
	add	x0, x0, x5
	fmul	z0.s, z0.s, z2.s
	add	x1, x1, x3
	fadda	s1, p0, s1, z0.s
	whilelo	p0.s, w0, w4
	b.any	.L12
	str	s1, [x7, x6]
	add	x6, x6, 4
	cmp	x6, x8
	bne	.L14
	add	w10, w10, 1
	add	x7, x7, x8
	add	x2, x2, x8
	cmp	w4, w10
	bne	.L11
.L9:
	ret
	.cfi_endproc
.LFE1:
	.size	gemm, .-gemm
	.align	2
	.p2align 4,,11
	.global	count
	.type	count, %function
count:
.LFB2:
	.cfi_startproc
	ldrb	w3, [x0]
	mov	x2, x0
	mov	x0, 0
	cbz	w3, .L16
	.p2align 3,,7
.L21:
	mov	w4, w3
	ldrb	w3, [x2, 1]
	cmp	w1, w4
	beq	.L26
	add	x2, x2, 1
	cbnz	w3, .L21
.L16:
	ret
	.p2align 2,,3
.L26:
	cbz	w3, .L19
	add	x0, x0, 3
	add	x2, x2, 1
	b	.L21
	.p2align 2,,3
.L19:
	ldrb	w1, [x2, 2]
	add	x0, x0, x1
	ret
	.cfi_endproc
.LFE2:
	.size	count, .-count
	.align	2
	.p2align 4,,11
	.global	table
	.type	table, %function
table:
.LFB3:
	.cfi_startproc
	cmp	w0, 4
	bhi	.L29
	adrp	x1, .LANCHOR0
	add	x1, x1, :lo12:.LANCHOR0
	ldr	w0, [x1, w0, uxtw 2]
	ret
	.p2align 2,,3
.L29:
	mov	w0, 1
	ret
	.cfi_endproc
.LFE3:
	.size	table, .-table
	.section	.rodata
	.align	3
	.set	.LANCHOR0,. + 0
	.type	CSWTCH.5, %object
	.size	CSWTCH.5, 20
CSWTCH.5:
	.word	5
	.word	9
	.word	16
	.word	9
	.word	73
	.ident	"GCC: (Debian 12.2.0-14) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
