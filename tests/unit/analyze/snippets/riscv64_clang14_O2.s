	.text
	.attribute	4, 16
	.attribute	5, "rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0"
	.file	"loops.c"
	.globl	interpret                       # -- Begin function interpret
	.p2align	1
	.type	interpret,@function
interpret:                              # @interpret
# %bb.0:
	li	a3, 0
	li	t0, 5
.LBB0_13:                               # Label of block must be emitted
	auipc	a7, %pcrel_hi(.LJTI0_0)
	addi	a7, a7, %pcrel_lo(.LBB0_13)
.LBB0_1:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_2 Depth 2
                                        #       Child Loop BB0_3 Depth 3
                                        #       Child Loop BB0_7 Depth 3
	addi	t1, a3, 1
	slli	a2, a3, 3
	add	a6, a1, a2
.LBB0_2:                                #   Parent Loop BB0_1 Depth=1
                                        # =>  This Loop Header: Depth=2
                                        #       Child Loop BB0_3 Depth 3
                                        #       Child Loop BB0_7 Depth 3
	addi	a0, a0, 1
	lbu	a2, -1(a0)
	bgeu	t0, a2, .LBB0_4
.LBB0_3:                                #   Parent Loop BB0_1 Depth=1
                                        #     Parent Loop BB0_2 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	add	a0, a0, t1
	lbu	a2, -1(a0)
	bltu	t0, a2, .LBB0_3
.LBB0_4:                                #   in Loop: Header=BB0_2 Depth=2
	slli	a2, a2, 2
	add	a2, a2, a7
	lw	a2, 0(a2)
	add	a2, a2, a7
	jr	a2
.LBB0_5:                                #   in Loop: Header=BB0_2 Depth=2
	sd	a3, 0(a1)
	addi	a1, a1, 8
	addi	a6, a6, 8
	j	.LBB0_2
.LBB0_6:                                #   in Loop: Header=BB0_2 Depth=2
	mv	a4, a6
	mv	a2, a3
	beqz	a3, .LBB0_11
.LBB0_7:                                #   Parent Loop BB0_1 Depth=1
                                        #     Parent Loop BB0_2 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	ld	a5, 0(a4)
	add	a5, a5, a3
	sd	a5, 0(a4)
	addi	a2, a2, -1
	addi	a4, a4, -8
	bnez	a2, .LBB0_7
	j	.LBB0_2
.LBB0_8:                                #   in Loop: Header=BB0_1 Depth=1
	ld	a2, -8(a1)
	addi	a1, a1, -8
	add	a3, a3, a2
	j	.LBB0_1
.LBB0_9:                                #   in Loop: Header=BB0_1 Depth=1
	ld	a2, -8(a1)
	addi	a1, a1, -8
	mul	a3, a2, a3
	j	.LBB0_1
.LBB0_10:                               #   in Loop: Header=BB0_1 Depth=1
	neg	a3, a3
	j	.LBB0_1
.LBB0_11:                               #   in Loop: Header=BB0_1 Depth=1
	li	a3, 0
	j	.LBB0_1
.LBB0_12:
	mv	a0, a3
	ret
.Lfunc_end0:
	.size	interpret, .Lfunc_end0-interpret
	.section	.rodata,"a",@progbits
	.p2align	2
.LJTI0_0:
	.word	.LBB0_12-.LJTI0_0
	.word	.LBB0_5-.LJTI0_0
	.word	.LBB0_8-.LJTI0_0
	.word	.LBB0_9-.LJTI0_0
	.word	.LBB0_10-.LJTI0_0
	.word	.LBB0_6-.LJTI0_0
                                        # -- End function
	.text
	.globl	nested                          # -- Begin function nested
	.p2align	1
	.type	nested,@function
nested:                                 # @nested
# %bb.0:
	blez	a0, .LBB1_13
# %bb.1:
	li	a7, 0
	li	t4, 0
	slli	a4, a0, 32
	srli	t1, a4, 32
	addi	a6, a2, 4
	lui	a4, 349525
	addiw	t0, a4, 1366
	j	.LBB1_3
.LBB1_2:                                #   in Loop: Header=BB1_3 Depth=1
	addi	a7, a7, 1
	beq	a7, t1, .LBB1_12
.LBB1_3:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB1_6 Depth 2
                                        #       Child Loop BB1_9 Depth 3
                                        #     Child Loop BB1_11 Depth 2
	slli	a4, a7, 2
	add	a4, a4, a1
	lw	a4, 0(a4)
	bltz	a4, .LBB1_2
# %bb.4:                                #   in Loop: Header=BB1_3 Depth=1
	mv	t2, a7
	j	.LBB1_6
.LBB1_5:                                #   in Loop: Header=BB1_6 Depth=2
	addi	t2, t2, 1
	beq	t2, t1, .LBB1_10
.LBB1_6:                                #   Parent Loop BB1_3 Depth=1
                                        # =>  This Loop Header: Depth=2
                                        #       Child Loop BB1_9 Depth 3
	slli	a4, t2, 2
	add	a5, a2, a4
	lw	a5, 0(a5)
	beq	a5, t4, .LBB1_10
# %bb.7:                                #   in Loop: Header=BB1_6 Depth=2
	lw	a5, 0(a2)
	beqz	a5, .LBB1_5
# %bb.8:                                #   in Loop: Header=BB1_6 Depth=2
	add	a4, a4, a1
	lw	t3, 0(a4)
	mv	a4, a6
.LBB1_9:                                #   Parent Loop BB1_3 Depth=1
                                        #     Parent Loop BB1_6 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	mulw	a3, t3, a5
	lw	a5, 0(a4)
	xor	t4, a3, t4
	addi	a4, a4, 4
	bnez	a5, .LBB1_9
	j	.LBB1_5
.LBB1_10:                               #   in Loop: Header=BB1_3 Depth=1
	bge	a0, t4, .LBB1_2
.LBB1_11:                               #   Parent Loop BB1_3 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	mul	a3, t4, t0
	srli	a4, a3, 63
	srli	a3, a3, 32
	addw	t4, a3, a4
	blt	a0, t4, .LBB1_11
	j	.LBB1_2
.LBB1_12:
	mv	a0, t4
	ret
.LBB1_13:
	li	a0, 0
	ret
.Lfunc_end1:
	.size	nested, .Lfunc_end1-nested
                                        # -- End function
	.globl	calls                           # -- Begin function calls
	.p2align	1
	.type	calls,@function
calls:                                  # @calls
# %bb.0:
	addi	sp, sp, -48
	sd	ra, 40(sp)                      # 8-byte Folded Spill
	sd	s0, 32(sp)                      # 8-byte Folded Spill
	sd	s1, 24(sp)                      # 8-byte Folded Spill
	sd	s2, 16(sp)                      # 8-byte Folded Spill
	sd	s3, 8(sp)                       # 8-byte Folded Spill
	mv	s0, a1
	mv	s1, a0
	li	s2, 4
.LBB2_11:                               # Label of block must be emitted
	auipc	s3, %pcrel_hi(.LJTI2_0)
	addi	s3, s3, %pcrel_lo(.LBB2_11)
	j	.LBB2_4
.LBB2_1:                                #   in Loop: Header=BB2_4 Depth=1
	negw	a0, s1
.LBB2_2:                                #   in Loop: Header=BB2_4 Depth=1
	call	sink@plt
.LBB2_3:                                #   in Loop: Header=BB2_4 Depth=1
	lw	a0, 0(s0)
	addi	s0, s0, 4
	beqz	a0, .LBB2_10
.LBB2_4:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB2_7 Depth 2
	andi	a0, s1, 7
	bltu	s2, a0, .LBB2_3
# %bb.5:                                #   in Loop: Header=BB2_4 Depth=1
	slli	a0, a0, 2
	add	a0, a0, s3
	lw	a0, 0(a0)
	add	a1, a0, s3
	li	a0, 3
	jr	a1
.LBB2_6:                                #   in Loop: Header=BB2_4 Depth=1
	mv	a0, s1
	mv	a1, s0
.LBB2_7:                                #   Parent Loop BB2_4 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	lw	a2, 0(a1)
	mv	s1, a0
	addi	s0, a1, 4
	sext.w	a3, a0
	addiw	a0, a0, 1
	mv	a1, s0
	blt	a3, a2, .LBB2_7
	j	.LBB2_3
.LBB2_8:                                #   in Loop: Header=BB2_4 Depth=1
	addiw	a0, s1, 1
	call	sink@plt
	li	a0, 7
	j	.LBB2_2
.LBB2_9:                                #   in Loop: Header=BB2_4 Depth=1
	lw	a0, 0(s0)
	mv	s1, a0
	addi	s0, s0, 4
	bnez	a0, .LBB2_4
.LBB2_10:
	sext.w	a0, s1
	ld	ra, 40(sp)                      # 8-byte Folded Reload
	ld	s0, 32(sp)                      # 8-byte Folded Reload
	ld	s1, 24(sp)                      # 8-byte Folded Reload
	ld	s2, 16(sp)                      # 8-byte Folded Reload
	ld	s3, 8(sp)                       # 8-byte Folded Reload
	addi	sp, sp, 48
	tail	sink@plt
.Lfunc_end2:
	.size	calls, .Lfunc_end2-calls
	.section	.rodata,"a",@progbits
	.p2align	2
.LJTI2_0:
	.word	.LBB2_2-.LJTI2_0
	.word	.LBB2_6-.LJTI2_0
	.word	.LBB2_8-.LJTI2_0
	.word	.LBB2_9-.LJTI2_0
	.word	.LBB2_1-.LJTI2_0
                                        # -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
