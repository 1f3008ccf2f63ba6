	.arch armv8-a
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
	.p2align 3,,7
.L3:
	ldr	d2, [x2, x4, lsl 3]
	ldr	d1, [x1, x4, lsl 3]
	fmadd	d1, d2, d0, d1
	str	d1, [x0, x4, lsl 3]
	add	x4, x4, 1
	cmp	x3, x4
	bne	.L3
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
	mov	w10, w0
	mov	x11, x2
	cmp	w0, 0
	ble	.L9
	sbfiz	x2, x0, 2, 32
	mov	x7, x3
	mov	x6, x1
	add	x3, x1, x2
	sxtw	x8, w0
	mov	w9, 0
	.p2align 3,,7
.L11:
	mov	x5, x11
	mov	x4, 0
	.p2align 3,,7
.L14:
	movi	v0.2s, #0
	mov	x1, x5
	mov	x0, x6
	.p2align 3,,7
.L12:
	ldr	s1, [x1]
	add	x1, x1, x2
	ldr	s2, [x0], 4
	fmadd	s0, s2, s1, s0
	cmp	x0, x3
	bne	.L12
	str	s0, [x7, x4, lsl 2]
	add	x4, x4, 1
	add	x5, x5, 4
	cmp	x8, x4
	bne	.L14
	add	w9, w9, 1
	add	x7, x7, x2
	add	x6, x6, x2
	add	x3, x3, x2
	cmp	w10, w9
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
	cmp	w4, w1
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
