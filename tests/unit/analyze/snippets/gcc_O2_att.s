	.file	"kernels.c"
	.text
	.p2align 4
	.globl	triad
	.type	triad, @function
triad:
	testq	%rcx, %rcx
	je	.L8
	xorl	%eax, %eax
	.p2align 4,,10
	.p2align 3
.L3:
	vmovsd	(%rdx,%rax,8), %xmm1
	vfmadd213sd	(%rsi,%rax,8), %xmm0, %xmm1
	vmovsd	%xmm1, (%rdi,%rax,8)
	incq	%rax
	cmpq	%rax, %rcx
	jne	.L3
.L8:
	ret
	.size	triad, .-triad
	.p2align 4
	.globl	gemm
	.type	gemm, @function
gemm:
	testl	%edi, %edi
	jle	.L19
	pushq	%r12
	movq	%rcx, %r10
	movq	%rsi, %r9
	movl	%edi, %r11d
	pushq	%rbp
	movslq	%edi, %rbp
	xorl	%r12d, %r12d
	leaq	0(,%rbp,4), %rcx
	pushq	%rbx
	movq	%rdx, %rbx
	leaq	(%rsi,%rcx), %rsi
	.p2align 4,,10
	.p2align 3
.L12:
	movq	%rbx, %r8
	xorl	%edi, %edi
	.p2align 4,,10
	.p2align 3
.L15:
	movq	%r8, %rdx
	movq	%r9, %rax
	vxorps	%xmm0, %xmm0, %xmm0
	.p2align 4,,10
	.p2align 3
.L13:
	vmovss	(%rax), %xmm1
	addq	$4, %rax
	vfmadd231ss	(%rdx), %xmm1, %xmm0
	addq	%rcx, %rdx
	cmpq	%rsi, %rax
	jne	.L13
	vmovss	%xmm0, (%r10,%rdi,4)
	incq	%rdi
	addq	$4, %r8
	cmpq	%rdi, %rbp
	jne	.L15
	incl	%r12d
	addq	%rcx, %r10
	addq	%rcx, %r9
	addq	%rcx, %rsi
	cmpl	%r12d, %r11d
	jne	.L12
	popq	%rbx
	popq	%rbp
	popq	%r12
	ret
.L19:
	ret
	.size	gemm, .-gemm
	.p2align 4
	.globl	count
	.type	count, @function
count:
	movzbl	(%rdi), %eax
	xorl	%ecx, %ecx
	testb	%al, %al
	je	.L22
	.p2align 4,,10
	.p2align 3
.L27:
	movzbl	%al, %edx
	movzbl	1(%rdi), %eax
	cmpl	%esi, %edx
	je	.L32
	incq	%rdi
	testb	%al, %al
	jne	.L27
.L22:
	movq	%rcx, %rax
	ret
	.p2align 4,,10
	.p2align 3
.L32:
	testb	%al, %al
	je	.L25
	addq	$3, %rcx
	incq	%rdi
	jmp	.L27
	.p2align 4,,10
	.p2align 3
.L25:
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
	ja	.L33
	movl	%edi, %edi
	leaq	CSWTCH.5(%rip), %rax
	movl	(%rax,%rdi,4), %eax
.L33:
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
