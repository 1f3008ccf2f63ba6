	.file	"kernels.c"
	.text
	.p2align 4
	.globl	triad
	.type	triad, @function
triad:
	testq	%rcx, %rcx
	je	.L23
	leaq	-1(%rcx), %rax
	cmpq	$2, %rax
	jbe	.L8
	movq	%rcx, %r8
	vbroadcastsd	%xmm0, %ymm2
	xorl	%eax, %eax
	shrq	$2, %r8
	salq	$5, %r8
	.p2align 4,,10
	.p2align 3
.L4:
	vmovupd	(%rdx,%rax), %ymm1
	vfmadd213pd	(%rsi,%rax), %ymm2, %ymm1
	vmovupd	%ymm1, (%rdi,%rax)
	addq	$32, %rax
	cmpq	%r8, %rax
	jne	.L4
	testb	$3, %cl
	je	.L22
	movq	%rcx, %rax
	andq	$-4, %rax
	vzeroupper
.L3:
	subq	%rax, %rcx
	cmpq	$1, %rcx
	je	.L6
	vmovupd	(%rsi,%rax,8), %xmm4
	vmovddup	%xmm0, %xmm1
	vfmadd132pd	(%rdx,%rax,8), %xmm4, %xmm1
	vmovupd	%xmm1, (%rdi,%rax,8)
	testb	$1, %cl
	je	.L23
	andq	$-2, %rcx
	addq	%rcx, %rax
.L6:
	vmovsd	(%rsi,%rax,8), %xmm3
	vfmadd132sd	(%rdx,%rax,8), %xmm3, %xmm0
	vmovsd	%xmm0, (%rdi,%rax,8)
	ret
	.p2align 4,,10
	.p2align 3
.L22:
	vzeroupper
.L23:
	ret
.L8:
	xorl	%eax, %eax
	jmp	.L3
	.size	triad, .-triad
	.p2align 4
	.globl	gemm
	.type	gemm, @function
gemm:
	testl	%edi, %edi
	jle	.L42
	pushq	%r15
	movl	%edi, %r11d
	movslq	%edi, %rdi
	pushq	%r14
	movq	%rdi, %r8
	leaq	0(,%rdi,4), %rax
	xorl	%r14d, %r14d
	pushq	%r13
	movq	%rdx, %r13
	movl	%r11d, %edx
	salq	$4, %r8
	pushq	%r12
	movq	%rsi, %r12
	shrl	$2, %edx
	pushq	%rbp
	salq	$4, %rdx
	pushq	%rbx
	movq	%rsi, -56(%rsp)
	leal	-1(%r11), %esi
	movl	%esi, -40(%rsp)
	movl	%r11d, %esi
	andl	$-4, %esi
	movq	%rdx, -16(%rsp)
	movl	%esi, -24(%rsp)
	movl	%r11d, %esi
	andl	$3, %esi
	movq	%rdi, -32(%rsp)
	leaq	(%rdi,%rdi,2), %rdi
	movl	%esi, -36(%rsp)
	salq	$2, %rdi
	movq	%rcx, -48(%rsp)
	xorl	%ecx, %ecx
	.p2align 4,,10
	.p2align 3
.L27:
	movq	-56(%rsp), %rsi
	movq	-16(%rsp), %rbx
	movq	%r13, %rbp
	xorl	%r10d, %r10d
	movl	%ecx, -20(%rsp)
	addq	%rbx, %rsi
	.p2align 4,,10
	.p2align 3
.L33:
	cmpl	$2, -40(%rsp)
	movl	%r10d, %ebx
	jbe	.L34
	movq	-56(%rsp), %rcx
	movq	%rbp, %rdx
	vxorps	%xmm1, %xmm1, %xmm1
	.p2align 4,,10
	.p2align 3
.L29:
	vmovss	(%rdx,%rax,2), %xmm0
	vinsertps	$0x10, (%rdx,%rdi), %xmm0, %xmm2
	addq	$16, %rcx
	vmovss	(%rdx), %xmm0
	vinsertps	$0x10, (%rdx,%rax), %xmm0, %xmm0
	addq	%r8, %rdx
	vmovlhps	%xmm2, %xmm0, %xmm0
	vmulps	-16(%rcx), %xmm0, %xmm0
	vaddss	%xmm0, %xmm1, %xmm1
	vshufps	$85, %xmm0, %xmm0, %xmm2
	vaddss	%xmm2, %xmm1, %xmm1
	vunpckhps	%xmm0, %xmm0, %xmm2
	vshufps	$255, %xmm0, %xmm0, %xmm0
	vaddss	%xmm2, %xmm1, %xmm1
	vaddss	%xmm0, %xmm1, %xmm1
	cmpq	%rcx, %rsi
	jne	.L29
	movl	-36(%rsp), %edx
	testl	%edx, %edx
	je	.L28
	movl	-24(%rsp), %edx
.L32:
	movl	%r11d, %ecx
	leal	(%r14,%rdx), %r15d
	imull	%edx, %ecx
	movslq	%r15d, %r15
	vmovss	(%r12,%r15,4), %xmm3
	leal	(%rcx,%rbx), %r9d
	movslq	%r9d, %r9
	vfmadd231ss	0(%r13,%r9,4), %xmm3, %xmm1
	leal	1(%rdx), %r9d
	cmpl	%r9d, %r11d
	jle	.L28
	addl	%r11d, %ecx
	addl	%r14d, %r9d
	addl	$2, %edx
	leal	(%rbx,%rcx), %r15d
	movslq	%r9d, %r9
	movslq	%r15d, %r15
	vmovss	(%r12,%r9,4), %xmm4
	vfmadd231ss	0(%r13,%r15,4), %xmm4, %xmm1
	cmpl	%edx, %r11d
	jle	.L28
	addl	%r11d, %ecx
	addl	%r14d, %edx
	addl	%ebx, %ecx
	movslq	%edx, %rdx
	movslq	%ecx, %rcx
	vmovss	0(%r13,%rcx,4), %xmm5
	vfmadd231ss	(%r12,%rdx,4), %xmm5, %xmm1
.L28:
	movq	-48(%rsp), %rbx
	addq	$4, %rbp
	vmovss	%xmm1, (%rbx,%r10,4)
	incq	%r10
	cmpq	%r10, -32(%rsp)
	jne	.L33
	movl	-20(%rsp), %ecx
	addq	%rax, -48(%rsp)
	addl	%r11d, %r14d
	addq	%rax, -56(%rsp)
	incl	%ecx
	cmpl	%ecx, %r11d
	jne	.L27
	popq	%rbx
	popq	%rbp
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	ret
	.p2align 4,,10
	.p2align 3
.L34:
	xorl	%edx, %edx
	vxorps	%xmm1, %xmm1, %xmm1
	jmp	.L32
.L42:
	ret
	.size	gemm, .-gemm
	.p2align 4
	.globl	count
	.type	count, @function
count:
	movzbl	(%rdi), %eax
	xorl	%ecx, %ecx
	testb	%al, %al
	je	.L45
	.p2align 4,,10
	.p2align 3
.L50:
	movzbl	%al, %edx
	movzbl	1(%rdi), %eax
	cmpl	%esi, %edx
	je	.L55
	incq	%rdi
	testb	%al, %al
	jne	.L50
.L45:
	movq	%rcx, %rax
	ret
	.p2align 4,,10
	.p2align 3
.L55:
	testb	%al, %al
	je	.L48
	addq	$3, %rcx
	incq	%rdi
	jmp	.L50
	.p2align 4,,10
	.p2align 3
.L48:
	movzbl	2(%rdi), %eax
	addq	%rax, %rcx
	movq	%rcx, %rax
	ret
	.size	count, .-count
	.p2align 4
	.globl	table
	.type	table, @function
table:
	movl	$1, %eax
	cmpl	$4, %edi
	ja	.L56
	movl	%edi, %edi
	leaq	CSWTCH.5(%rip), %rax
	movl	(%rax,%rdi,4), %eax
.L56:
	ret
	.size	table, .-table
	.section	.rodata
	.align 16
	.type	CSWTCH.5, @object
	.size	CSWTCH.5, 20
CSWTCH.5:
	.long	5
	.long	9
	.long	16
	.long	9
	.long	73
	.ident	"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
