	.text
	.file	"loops.c"
	.globl	interpret                       // -- Begin function interpret
	.p2align	2
	.type	interpret,@function
interpret:                              // @interpret
// %bb.0:
	adrp	x9, .LJTI0_0
	mov	x8, xzr
	add	x9, x9, :lo12:.LJTI0_0
	b	.LBB0_2
.LBB0_1:                                //   in Loop: Header=BB0_2 Depth=1
	add	x0, x0, x8
.LBB0_2:                                // =>This Loop Header: Depth=1
                                        //     Child Loop BB0_5 Depth 2
	ldrb	w10, [x0], #1
	cmp	w10, #5
	b.hi	.LBB0_1
// %bb.3:                               //   in Loop: Header=BB0_2 Depth=1
	adr	x11, .LBB0_4
	ldrb	w12, [x9, x10]
	add	x11, x11, x12, lsl #2
	br	x11
.LBB0_4:                                //   in Loop: Header=BB0_2 Depth=1
	mov	x10, x8
	cbz	x8, .LBB0_2
.LBB0_5:                                //   Parent Loop BB0_2 Depth=1
                                        // =>  This Inner Loop Header: Depth=2
	lsl	x11, x10, #3
	subs	x10, x10, #1
	ldr	x12, [x1, x11]
	add	x12, x12, x8
	str	x12, [x1, x11]
	b.ne	.LBB0_5
	b	.LBB0_2
.LBB0_6:                                //   in Loop: Header=BB0_2 Depth=1
	str	x8, [x1], #8
	b	.LBB0_2
.LBB0_7:                                //   in Loop: Header=BB0_2 Depth=1
	ldr	x10, [x1, #-8]!
	add	x8, x10, x8
	b	.LBB0_2
.LBB0_8:                                //   in Loop: Header=BB0_2 Depth=1
	ldr	x10, [x1, #-8]!
	mul	x8, x10, x8
	b	.LBB0_2
.LBB0_9:                                //   in Loop: Header=BB0_2 Depth=1
	neg	x8, x8
	b	.LBB0_2
.LBB0_10:
	mov	x0, x8
	ret
.Lfunc_end0:
	.size	interpret, .Lfunc_end0-interpret
	.section	.rodata,"a",@progbits
.LJTI0_0:
	.byte	(.LBB0_10-.LBB0_4)>>2
	.byte	(.LBB0_6-.LBB0_4)>>2
	.byte	(.LBB0_7-.LBB0_4)>>2
	.byte	(.LBB0_8-.LBB0_4)>>2
	.byte	(.LBB0_9-.LBB0_4)>>2
	.byte	(.LBB0_4-.LBB0_4)>>2
                                        // -- End function
	.text
	.globl	nested                          // -- Begin function nested
	.p2align	2
	.type	nested,@function
nested:                                 // @nested
// %bb.0:
	cmp	w0, #1
	b.lt	.LBB1_13
// %bb.1:
	mov	w12, #21846
	mov	x9, xzr
	mov	w8, wzr
	mov	w10, w0
	add	x11, x2, #4
	movk	w12, #21845, lsl #16
	b	.LBB1_3
.LBB1_2:                                //   in Loop: Header=BB1_3 Depth=1
	add	x9, x9, #1
	cmp	x9, x10
	b.eq	.LBB1_12
.LBB1_3:                                // =>This Loop Header: Depth=1
                                        //     Child Loop BB1_6 Depth 2
                                        //       Child Loop BB1_9 Depth 3
                                        //     Child Loop BB1_11 Depth 2
	ldr	w13, [x1, x9, lsl #2]
	tbnz	w13, #31, .LBB1_2
// %bb.4:                               //   in Loop: Header=BB1_3 Depth=1
	mov	x13, x9
	b	.LBB1_6
.LBB1_5:                                //   in Loop: Header=BB1_6 Depth=2
	add	x13, x13, #1
	cmp	x13, x10
	b.eq	.LBB1_11
.LBB1_6:                                //   Parent Loop BB1_3 Depth=1
                                        // =>  This Loop Header: Depth=2
                                        //       Child Loop BB1_9 Depth 3
	ldr	w14, [x2, x13, lsl #2]
	cmp	w14, w8
	b.eq	.LBB1_11
// %bb.7:                               //   in Loop: Header=BB1_6 Depth=2
	ldr	w15, [x2]
	cbz	w15, .LBB1_5
// %bb.8:                               //   in Loop: Header=BB1_6 Depth=2
	ldr	w14, [x1, x13, lsl #2]
	mov	x16, x11
.LBB1_9:                                //   Parent Loop BB1_3 Depth=1
                                        //     Parent Loop BB1_6 Depth=2
                                        // =>    This Inner Loop Header: Depth=3
	mul	w17, w14, w15
	ldr	w15, [x16], #4
	eor	w8, w17, w8
	cbnz	w15, .LBB1_9
	b	.LBB1_5
.LBB1_10:                               //   in Loop: Header=BB1_11 Depth=2
	smull	x8, w8, w12
	lsr	x13, x8, #63
	lsr	x8, x8, #32
	add	w8, w8, w13
.LBB1_11:                               //   Parent Loop BB1_3 Depth=1
                                        // =>  This Inner Loop Header: Depth=2
	cmp	w8, w0
	b.gt	.LBB1_10
	b	.LBB1_2
.LBB1_12:
	mov	w0, w8
	ret
.LBB1_13:
	mov	w0, wzr
	ret
.Lfunc_end1:
	.size	nested, .Lfunc_end1-nested
                                        // -- End function
	.globl	calls                           // -- Begin function calls
	.p2align	2
	.type	calls,@function
calls:                                  // @calls
// %bb.0:
	stp	x29, x30, [sp, #-48]!           // 16-byte Folded Spill
	str	x21, [sp, #16]                  // 8-byte Folded Spill
	adrp	x21, .LJTI2_0
	stp	x20, x19, [sp, #32]             // 16-byte Folded Spill
	mov	x19, x1
	mov	w20, w0
	add	x21, x21, :lo12:.LJTI2_0
	mov	x29, sp
	b	.LBB2_4
.LBB2_1:                                //   in Loop: Header=BB2_4 Depth=1
	neg	w0, w20
.LBB2_2:                                //   in Loop: Header=BB2_4 Depth=1
	bl	sink
.LBB2_3:                                //   in Loop: Header=BB2_4 Depth=1
	ldr	w8, [x19]
	add	x19, x19, #4
	cbz	w8, .LBB2_10
.LBB2_4:                                // =>This Loop Header: Depth=1
                                        //     Child Loop BB2_7 Depth 2
	and	w8, w20, #0x7
	cmp	w8, #4
	b.hi	.LBB2_3
// %bb.5:                               //   in Loop: Header=BB2_4 Depth=1
	adr	x9, .LBB2_1
	ldrb	w10, [x21, x8]
	add	x9, x9, x10, lsl #2
	mov	w0, #3
	br	x9
.LBB2_6:                                //   in Loop: Header=BB2_4 Depth=1
	sub	w20, w20, #1
.LBB2_7:                                //   Parent Loop BB2_4 Depth=1
                                        // =>  This Inner Loop Header: Depth=2
	ldr	w8, [x19], #4
	add	w20, w20, #1
	cmp	w8, w20
	b.gt	.LBB2_7
	b	.LBB2_3
.LBB2_8:                                //   in Loop: Header=BB2_4 Depth=1
	add	w0, w20, #1
	bl	sink
	mov	w0, #7
	b	.LBB2_2
.LBB2_9:                                //   in Loop: Header=BB2_4 Depth=1
	ldr	w8, [x19]
	mov	w20, w8
	add	x19, x19, #4
	cbnz	w8, .LBB2_4
.LBB2_10:
	mov	w0, w20
	ldr	x21, [sp, #16]                  // 8-byte Folded Reload
	ldp	x20, x19, [sp, #32]             // 16-byte Folded Reload
	ldp	x29, x30, [sp], #48             // 16-byte Folded Reload
	b	sink
.Lfunc_end2:
	.size	calls, .Lfunc_end2-calls
	.section	.rodata,"a",@progbits
.LJTI2_0:
	.byte	(.LBB2_2-.LBB2_1)>>2
	.byte	(.LBB2_6-.LBB2_1)>>2
	.byte	(.LBB2_8-.LBB2_1)>>2
	.byte	(.LBB2_9-.LBB2_1)>>2
	.byte	(.LBB2_1-.LBB2_1)>>2
                                        // -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
