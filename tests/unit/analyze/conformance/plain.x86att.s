.L3:
	vmovsd	(%rdi,%rax,8), %xmm1
	vfmadd231sd	(%rsi,%rax,8), %xmm1, %xmm0
	addq	$1, %rax
	cmpq	%rax, %rdx
	jne	.L3
	ret
