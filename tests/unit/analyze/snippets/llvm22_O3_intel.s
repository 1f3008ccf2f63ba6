	.intel_syntax noprefix
	.file	"cs_k.ll"
	.text
	.globl	triad                           # -- Begin function triad
	.p2align	4
	.type	triad,@function
triad:                                  # @triad
# %bb.0:                                # %entry
	test	rcx, rcx
	je	.LBB0_13
# %bb.1:                                # %iter.check
	cmp	rcx, 4
	jae	.LBB0_4
# %bb.2:
	xor	eax, eax
	jmp	.LBB0_3
.LBB0_4:                                # %vector.main.loop.iter.check
	cmp	rcx, 16
	jae	.LBB0_6
# %bb.5:
	xor	eax, eax
	jmp	.LBB0_10
.LBB0_6:                                # %vector.ph
	mov	rax, rcx
	and	rax, -16
	vbroadcastsd	ymm1, xmm0
	xor	r8d, r8d
	.p2align	4
.LBB0_7:                                # %vector.body
                                        # =>This Inner Loop Header: Depth=1
	vmovupd	ymm2, ymmword ptr [rdx + 8*r8]
	vmovupd	ymm3, ymmword ptr [rdx + 8*r8 + 32]
	vmovupd	ymm4, ymmword ptr [rdx + 8*r8 + 64]
	vmovupd	ymm5, ymmword ptr [rdx + 8*r8 + 96]
	vfmadd213pd	ymm2, ymm1, ymmword ptr [rsi + 8*r8] # ymm2 = (ymm1 * ymm2) + mem
	vfmadd213pd	ymm3, ymm1, ymmword ptr [rsi + 8*r8 + 32] # ymm3 = (ymm1 * ymm3) + mem
	vfmadd213pd	ymm4, ymm1, ymmword ptr [rsi + 8*r8 + 64] # ymm4 = (ymm1 * ymm4) + mem
	vfmadd213pd	ymm5, ymm1, ymmword ptr [rsi + 8*r8 + 96] # ymm5 = (ymm1 * ymm5) + mem
	vmovupd	ymmword ptr [rdi + 8*r8], ymm2
	vmovupd	ymmword ptr [rdi + 8*r8 + 32], ymm3
	vmovupd	ymmword ptr [rdi + 8*r8 + 64], ymm4
	vmovupd	ymmword ptr [rdi + 8*r8 + 96], ymm5
	add	r8, 16
	cmp	rax, r8
	jne	.LBB0_7
# %bb.8:                                # %middle.block
	cmp	rcx, rax
	je	.LBB0_13
# %bb.9:                                # %vec.epilog.iter.check
	test	cl, 12
	je	.LBB0_3
.LBB0_10:                               # %vec.epilog.ph
	mov	r8, rax
	mov	rax, rcx
	and	rax, -4
	vbroadcastsd	ymm1, xmm0
	.p2align	4
.LBB0_11:                               # %vec.epilog.vector.body
                                        # =>This Inner Loop Header: Depth=1
	vmovupd	ymm2, ymmword ptr [rdx + 8*r8]
	vfmadd213pd	ymm2, ymm1, ymmword ptr [rsi + 8*r8] # ymm2 = (ymm1 * ymm2) + mem
	vmovupd	ymmword ptr [rdi + 8*r8], ymm2
	add	r8, 4
	cmp	rax, r8
	jne	.LBB0_11
	jmp	.LBB0_12
.LBB0_3:                                # %loop
	vmovsd	xmm1, qword ptr [rdx + 8*rax]   # xmm1 = mem[0],zero
	vfmadd213sd	xmm1, xmm0, qword ptr [rsi + 8*rax] # xmm1 = (xmm0 * xmm1) + mem
	vmovsd	qword ptr [rdi + 8*rax], xmm1
	inc	rax
.LBB0_12:                               # %loop
	cmp	rcx, rax
	jne	.LBB0_3
.LBB0_13:                               # %exit
	vzeroupper
	ret
.Lfunc_end0:
	.size	triad, .Lfunc_end0-triad
                                        # -- End function
	.globl	sum                             # -- Begin function sum
	.p2align	4
	.type	sum,@function
sum:                                    # @sum
# %bb.0:                                # %entry
	test	rsi, rsi
	je	.LBB1_1
# %bb.2:                                # %loop.preheader
	mov	eax, esi
	and	eax, 7
	cmp	rsi, 8
	jae	.LBB1_4
# %bb.3:
	vxorpd	xmm0, xmm0, xmm0
	xor	ecx, ecx
	jmp	.LBB1_7
.LBB1_1:
	vxorps	xmm0, xmm0, xmm0
	ret
.LBB1_4:                                # %loop.preheader.new
	and	rsi, -8
	vxorpd	xmm0, xmm0, xmm0
	xor	ecx, ecx
	.p2align	4
.LBB1_5:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 8]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 16]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 24]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 32]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 40]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 48]
	vaddsd	xmm0, xmm0, qword ptr [rdi + 8*rcx + 56]
	add	rcx, 8
	cmp	rsi, rcx
	jne	.LBB1_5
# %bb.6:                                # %exit.loopexit.unr-lcssa
	test	rax, rax
	je	.LBB1_9
.LBB1_7:                                # %loop.epil.preheader
	lea	rcx, [rdi + 8*rcx]
	xor	edx, edx
	.p2align	4
.LBB1_8:                                # %loop.epil
                                        # =>This Inner Loop Header: Depth=1
	vaddsd	xmm0, xmm0, qword ptr [rcx + 8*rdx]
	inc	rdx
	cmp	rax, rdx
	jne	.LBB1_8
.LBB1_9:                                # %exit
	ret
.Lfunc_end1:
	.size	sum, .Lfunc_end1-sum
                                        # -- End function
	.section	".note.GNU-stack","",@progbits
