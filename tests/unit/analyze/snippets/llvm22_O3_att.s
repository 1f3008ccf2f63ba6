	.file	"cs_k.ll"
	.text
	.globl	triad                           # -- Begin function triad
	.p2align	4
	.type	triad,@function
triad:                                  # @triad
# %bb.0:                                # %entry
	testq	%rcx, %rcx
	je	.LBB0_13
# %bb.1:                                # %iter.check
	cmpq	$4, %rcx
	jae	.LBB0_4
# %bb.2:
	xorl	%eax, %eax
	jmp	.LBB0_3
.LBB0_4:                                # %vector.main.loop.iter.check
	cmpq	$16, %rcx
	jae	.LBB0_6
# %bb.5:
	xorl	%eax, %eax
	jmp	.LBB0_10
.LBB0_6:                                # %vector.ph
	movq	%rcx, %rax
	andq	$-16, %rax
	vbroadcastsd	%xmm0, %ymm1
	xorl	%r8d, %r8d
	.p2align	4
.LBB0_7:                                # %vector.body
                                        # =>This Inner Loop Header: Depth=1
	vmovupd	(%rdx,%r8,8), %ymm2
	vmovupd	32(%rdx,%r8,8), %ymm3
	vmovupd	64(%rdx,%r8,8), %ymm4
	vmovupd	96(%rdx,%r8,8), %ymm5
	vfmadd213pd	(%rsi,%r8,8), %ymm1, %ymm2 # ymm2 = (ymm1 * ymm2) + mem
	vfmadd213pd	32(%rsi,%r8,8), %ymm1, %ymm3 # ymm3 = (ymm1 * ymm3) + mem
	vfmadd213pd	64(%rsi,%r8,8), %ymm1, %ymm4 # ymm4 = (ymm1 * ymm4) + mem
	vfmadd213pd	96(%rsi,%r8,8), %ymm1, %ymm5 # ymm5 = (ymm1 * ymm5) + mem
	vmovupd	%ymm2, (%rdi,%r8,8)
	vmovupd	%ymm3, 32(%rdi,%r8,8)
	vmovupd	%ymm4, 64(%rdi,%r8,8)
	vmovupd	%ymm5, 96(%rdi,%r8,8)
	addq	$16, %r8
	cmpq	%r8, %rax
	jne	.LBB0_7
# %bb.8:                                # %middle.block
	cmpq	%rax, %rcx
	je	.LBB0_13
# %bb.9:                                # %vec.epilog.iter.check
	testb	$12, %cl
	je	.LBB0_3
.LBB0_10:                               # %vec.epilog.ph
	movq	%rax, %r8
	movq	%rcx, %rax
	andq	$-4, %rax
	vbroadcastsd	%xmm0, %ymm1
	.p2align	4
.LBB0_11:                               # %vec.epilog.vector.body
                                        # =>This Inner Loop Header: Depth=1
	vmovupd	(%rdx,%r8,8), %ymm2
	vfmadd213pd	(%rsi,%r8,8), %ymm1, %ymm2 # ymm2 = (ymm1 * ymm2) + mem
	vmovupd	%ymm2, (%rdi,%r8,8)
	addq	$4, %r8
	cmpq	%r8, %rax
	jne	.LBB0_11
	jmp	.LBB0_12
.LBB0_3:                                # %loop
	vmovsd	(%rdx,%rax,8), %xmm1            # xmm1 = mem[0],zero
	vfmadd213sd	(%rsi,%rax,8), %xmm0, %xmm1 # xmm1 = (xmm0 * xmm1) + mem
	vmovsd	%xmm1, (%rdi,%rax,8)
	incq	%rax
.LBB0_12:                               # %loop
	cmpq	%rax, %rcx
	jne	.LBB0_3
.LBB0_13:                               # %exit
	vzeroupper
	retq
.Lfunc_end0:
	.size	triad, .Lfunc_end0-triad
                                        # -- End function
	.globl	sum                             # -- Begin function sum
	.p2align	4
	.type	sum,@function
sum:                                    # @sum
# %bb.0:                                # %entry
	testq	%rsi, %rsi
	je	.LBB1_1
# %bb.2:                                # %loop.preheader
	movl	%esi, %eax
	andl	$7, %eax
	cmpq	$8, %rsi
	jae	.LBB1_4
# %bb.3:
	vxorpd	%xmm0, %xmm0, %xmm0
	xorl	%ecx, %ecx
	jmp	.LBB1_7
.LBB1_1:
	vxorps	%xmm0, %xmm0, %xmm0
	retq
.LBB1_4:                                # %loop.preheader.new
	andq	$-8, %rsi
	vxorpd	%xmm0, %xmm0, %xmm0
	xorl	%ecx, %ecx
	.p2align	4
.LBB1_5:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vaddsd	(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	8(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	16(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	24(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	32(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	40(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	48(%rdi,%rcx,8), %xmm0, %xmm0
	vaddsd	56(%rdi,%rcx,8), %xmm0, %xmm0
	addq	$8, %rcx
	cmpq	%rcx, %rsi
	jne	.LBB1_5
# %bb.6:                                # %exit.loopexit.unr-lcssa
	testq	%rax, %rax
	je	.LBB1_9
.LBB1_7:                                # %loop.epil.preheader
	leaq	(%rdi,%rcx,8), %rcx
	xorl	%edx, %edx
	.p2align	4
.LBB1_8:                                # %loop.epil
                                        # =>This Inner Loop Header: Depth=1
	vaddsd	(%rcx,%rdx,8), %xmm0, %xmm0
	incq	%rdx
	cmpq	%rdx, %rax
	jne	.LBB1_8
.LBB1_9:                                # %exit
	retq
.Lfunc_end1:
	.size	sum, .Lfunc_end1-sum
                                        # -- End function
	.section	".note.GNU-stack","",@progbits
