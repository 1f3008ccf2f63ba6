	.file	"kernels.c"
	.option pic
	.attribute arch, "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zifencei2p0"
	.attribute unaligned_access, 0
	.attribute stack_align, 16
	.text
	.align	1
	.globl	triad
	.type	triad, @function
triad:
	beq	a3,zero,.L1
	slli	a3,a3,3
	add	a5,a1,a3
.L3:
	fld	fa5,0(a2)
	fld	fa4,0(a1)
	addi	a0,a0,8
	addi	a1,a1,8
	fmadd.d	fa5,fa5,fa0,fa4
	addi	a2,a2,8
	fsd	fa5,-8(a0)
	bne	a1,a5,.L3
.L1:
	ret
	.size	triad, .-triad
	.align	1
	.globl	gemm
	.type	gemm, @function
gemm:
	mv	t1,a0
	mv	t5,a2
	mv	t3,a3
	ble	a0,zero,.L9
	slli	a3,a0,2
	mv	a7,a1
	add	a2,a1,a3
	li	t4,0
.L11:
	mv	a1,t5
	mv	a0,t3
	li	a6,0
.L14:
	fmv.w.x	fa5,zero
	mv	a4,a1
	mv	a5,a7
.L12:
	flw	fa3,0(a5)
	flw	fa4,0(a4)
	addi	a5,a5,4
	add	a4,a4,a3
	fmadd.s	fa5,fa3,fa4,fa5
	bne	a5,a2,.L12
	fsw	fa5,0(a0)
	addiw	a5,a6,1
	addi	a0,a0,4
	addi	a1,a1,4
	beq	t1,a5,.L13
	mv	a6,a5
	j	.L14
.L13:
	addiw	a5,t4,1
	add	a7,a7,a3
	add	a2,a2,a3
	add	t3,t3,a3
	beq	a6,t4,.L9
	mv	t4,a5
	j	.L11
.L9:
	ret
	.size	gemm, .-gemm
	.align	1
	.globl	count
	.type	count, @function
count:
	lbu	a4,0(a0)
	mv	a5,a0
	li	a0,0
	beq	a4,zero,.L22
.L21:
	sext.w	a3,a4
	lbu	a4,1(a5)
	beq	a3,a1,.L26
	addi	a5,a5,1
	bne	a4,zero,.L21
	ret
.L26:
	beq	a4,zero,.L19
	addi	a0,a0,3
	addi	a5,a5,1
	j	.L21
.L19:
	lbu	a5,2(a5)
	add	a0,a0,a5
	ret
.L22:
	ret
	.size	count, .-count
	.align	1
	.globl	table
	.type	table, @function
table:
	li	a5,4
	bgtu	a0,a5,.L29
	slli	a5,a0,32
	srli	a0,a5,30
	lla	a5,.LANCHOR0
	add	a5,a5,a0
	lw	a0,0(a5)
	ret
.L29:
	li	a0,1
	ret
	.size	table, .-table
	.section	.rodata
	.align	3
	.set	.LANCHOR0,. + 0
	.type	CSWTCH.5, @object
	.size	CSWTCH.5, 20
CSWTCH.5:
	.word	5
	.word	9
	.word	16
	.word	9
	.word	73
	.ident	"GCC: (Debian 12.2.0-13) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
