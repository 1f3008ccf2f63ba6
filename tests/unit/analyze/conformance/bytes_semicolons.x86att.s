.L9:
	vmovupd	(%rdi), %ymm2
	vmulpd	%ymm2, %ymm2, %ymm2
	vmovupd	%ymm2, (%rdi)
	addq	$32, %rdi
	cmpq	%rdi, %rcx
	jne	.L9
	movl	$111, %ebx ; OSACA START MARKER
	.byte	100,103,144 ; OSACA START MARKER
.L3:
	vmovsd	(%rdi,%rax,8), %xmm1
	vfmadd231sd	(%rsi,%rax,8), %xmm1, %xmm0
	addq	$1, %rax
	cmpq	%rax, %rdx
	jne	.L3
	movl	$222, %ebx ; OSACA END MARKER
	.byte	100,103,144 ; OSACA END MARKER
	ret
