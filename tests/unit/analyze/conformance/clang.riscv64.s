	.text
	.file	"dot.c"
	.globl	dot                              # -- Begin function dot
	.p2align	2
	.type	dot,@function
dot:                                    # @dot
	.cfi_startproc
# %bb.0:
.L3:                                 # =>This Inner Loop Header: Depth=1
	fld	fa5,0(a0)
	fld	fa4,0(a1)
	addi	a0,a0,8
	addi	a1,a1,8
	fmadd.d	fa0,fa5,fa4,fa0
	bne	a0,a2,.L3
# %bb.1:
	ret
.Lfunc_end0:
	.size	dot, .Lfunc_end0-dot
	.cfi_endproc
                                        # -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
