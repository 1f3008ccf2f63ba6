	.text
	.file	"dot.c"
	.globl	dot                              // -- Begin function dot
	.p2align	2
	.type	dot,@function
dot:                                    // @dot
	.cfi_startproc
// %bb.0:
.L3:                                 // =>This Inner Loop Header: Depth=1
	ldr	d1, [x0], #8
	ldr	d2, [x1], #8
	fmadd	d0, d1, d2, d0
	cmp	x0, x2
	bne	.L3
// %bb.1:
	ret
.Lfunc_end0:
	.size	dot, .Lfunc_end0-dot
	.cfi_endproc
                                        // -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
