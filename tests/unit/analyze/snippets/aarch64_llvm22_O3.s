	.file	"<stdin>"
	.text
	.globl	triad                           // -- Begin function triad
	.p2align	4
	.type	triad,@function
triad:                                  // @triad
// %bb.0:                               // %entry
                                        // kill: def $d0 killed $d0 def $q0
	cbz	x3, .LBB0_14
// %bb.1:                               // %entry
	cmp	x3, #1
	b.ne	.LBB0_3
// %bb.2:
	mov	x8, xzr
	b	.LBB0_12
.LBB0_3:                                // %vector.main.loop.iter.check
	cmp	x3, #8
	b.hs	.LBB0_5
// %bb.4:
	mov	x8, xzr
	b	.LBB0_9
.LBB0_5:                                // %vector.ph
	and	x9, x3, #0x6
	and	x8, x3, #0xfffffffffffffff8
	add	x10, x1, #32
	add	x11, x2, #32
	add	x12, x0, #32
	and	x13, x3, #0xfffffffffffffff8
	.p2align	5, , 16
.LBB0_6:                                // %vector.body
                                        // =>This Inner Loop Header: Depth=1
	ldp	q1, q2, [x10, #-32]
	ldp	q5, q6, [x11, #-32]
	ldp	q3, q4, [x10], #64
	ldp	q7, q16, [x11], #64
	subs	x13, x13, #8
	fmla	v2.2d, v6.2d, v0.d[0]
	fmla	v4.2d, v16.2d, v0.d[0]
	fmla	v1.2d, v5.2d, v0.d[0]
	fmla	v3.2d, v7.2d, v0.d[0]
	stp	q1, q2, [x12, #-32]
	stp	q3, q4, [x12], #64
	b.ne	.LBB0_6
// %bb.7:                               // %middle.block
	cmp	x3, x8
	b.eq	.LBB0_14
// %bb.8:                               // %vec.epilog.iter.check
	cbz	x9, .LBB0_12
.LBB0_9:                                // %vec.epilog.ph
	mov	x12, x8
	and	x8, x3, #0xfffffffffffffffe
	add	x10, x0, x12, lsl #3
	add	x11, x2, x12, lsl #3
	sub	x9, x12, x8
	add	x12, x1, x12, lsl #3
	.p2align	5, , 16
.LBB0_10:                               // %vec.epilog.vector.body
                                        // =>This Inner Loop Header: Depth=1
	ldr	q1, [x12], #16
	ldr	q2, [x11], #16
	adds	x9, x9, #2
	fmla	v1.2d, v2.2d, v0.d[0]
	str	q1, [x10], #16
	b.ne	.LBB0_10
// %bb.11:                              // %vec.epilog.middle.block
	cmp	x3, x8
	b.eq	.LBB0_14
.LBB0_12:                               // %loop.preheader
	sub	x9, x3, x8
	add	x10, x0, x8, lsl #3
	add	x11, x2, x8, lsl #3
	add	x8, x1, x8, lsl #3
	.p2align	5, , 16
.LBB0_13:                               // %loop
                                        // =>This Inner Loop Header: Depth=1
	ldr	d1, [x8], #8
	ldr	d2, [x11], #8
	subs	x9, x9, #1
	fmadd	d1, d0, d2, d1
	str	d1, [x10], #8
	b.ne	.LBB0_13
.LBB0_14:                               // %exit
	ret
.Lfunc_end0:
	.size	triad, .Lfunc_end0-triad
                                        // -- End function
	.globl	sum                             // -- Begin function sum
	.p2align	4
	.type	sum,@function
sum:                                    // @sum
// %bb.0:                               // %entry
	cbz	x1, .LBB1_3
// %bb.1:                               // %loop.preheader
	cnth	x8
	cmp	x1, x8
	b.hs	.LBB1_4
// %bb.2:
	mov	x8, xzr
	movi	d0, #0000000000000000
	b	.LBB1_7
.LBB1_3:
	movi	d0, #0000000000000000
                                        // kill: def $d0 killed $d0 killed $z0
	ret
.LBB1_4:                                // %vector.ph
	mov	x8, #-1                         // =0xffffffffffffffff
	movi	d0, #0000000000000000
	ptrue	p0.d
	mov	x10, x0
	inch	x8
	and	x9, x1, x8
	sub	x8, x1, x9
	sub	x11, x1, x9
	.p2align	5, , 16
.LBB1_5:                                // %vector.body
                                        // =>This Inner Loop Header: Depth=1
	ldr	z1, [x10]
	ldr	z2, [x10, #1, mul vl]
	ldr	z3, [x10, #2, mul vl]
	dech	x11
	fadda	d0, p0, d0, z1.d
	ldr	z4, [x10, #3, mul vl]
	incb	x10, all, mul #4
	fadda	d0, p0, d0, z2.d
	fadda	d0, p0, d0, z3.d
	fadda	d0, p0, d0, z4.d
	cbnz	x11, .LBB1_5
// %bb.6:                               // %middle.block
	cbz	x9, .LBB1_9
.LBB1_7:                                // %loop.preheader1
	sub	x9, x1, x8
	add	x8, x0, x8, lsl #3
	.p2align	5, , 16
.LBB1_8:                                // %loop
                                        // =>This Inner Loop Header: Depth=1
	ldr	d1, [x8], #8
	subs	x9, x9, #1
	fadd	d0, d0, d1
	b.ne	.LBB1_8
.LBB1_9:                                // %exit
                                        // kill: def $d0 killed $d0 killed $z0
	ret
.Lfunc_end1:
	.size	sum, .Lfunc_end1-sum
                                        // -- End function
	.section	".note.GNU-stack","",@progbits
