.L9:
	vmovupd	(%rdi), %ymm2
	vmulpd	%ymm2, %ymm2, %ymm2
	vmovupd	%ymm2, (%rdi)
	addq	$32, %rdi
	cmpq	%rdi, %rcx
	jne	.L9
	// LLVM-MCA-BEGIN dot
.L3:
	vmovsd	(%rdi,%rax,8), %xmm1
	vfmadd231sd	(%rsi,%rax,8), %xmm1, %xmm0
	addq	$1, %rax
	cmpq	%rax, %rdx
	jne	.L3
	// LLVM-MCA-END dot
	ret
