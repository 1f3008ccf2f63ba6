# STREAM triad a[i] = b[i] + c[i]*d, clang 20.1 -O3 -fno-unroll-loops: figure 2 of the thesis on WINIC
# OSACA-BEGIN
.LBB0_8:
	movsd	(%rsi,%rcx,8), %xmm1
	mulsd	(%rdx,%rcx,8), %xmm1
	addsd	%xmm0, %xmm1
	movsd	%xmm1, (%rax,%rcx,8)
	incq	%rcx
	cmpq	%rcx, %rdi
	jne	.LBB0_8
# OSACA-END
