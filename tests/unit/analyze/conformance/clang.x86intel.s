	.intel_syntax noprefix
	.text
	.file	"dot.c"
	.globl	dot                              # -- Begin function dot
	.p2align	4, 0x90
	.type	dot,@function
dot:                                    # @dot
	.cfi_startproc
# %bb.0:
.L3:                                 # =>This Inner Loop Header: Depth=1
	vmovsd	xmm1, QWORD PTR [rdi+rax*8]
	vfmadd231sd	xmm0, xmm1, QWORD PTR [rsi+rax*8]
	add	rax, 1
	cmp	rdx, rax
	jne	.L3
# %bb.1:
	ret
.Lfunc_end0:
	.size	dot, .Lfunc_end0-dot
	.cfi_endproc
                                        # -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
