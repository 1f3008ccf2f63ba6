	.text
	.file	"dot.c"
	.globl	dot                              # -- Begin function dot
	.p2align	4, 0x90
	.type	dot,@function
dot:                                    # @dot
	.cfi_startproc
# %bb.0:
.L3:                                 # =>This Inner Loop Header: Depth=1
	vmovsd	(%rdi,%rax,8), %xmm1
	vfmadd231sd	(%rsi,%rax,8), %xmm1, %xmm0
	addq	$1, %rax
	cmpq	%rax, %rdx
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
