	.file	"kernels.c"
	.intel_syntax noprefix
	.text
	.p2align 4
	.globl	triad
	.type	triad, @function
triad:
	test	rcx, rcx
	je	.L8
	xor	eax, eax
	.p2align 4,,10
	.p2align 3
.L3:
	vmovsd	xmm1, QWORD PTR [rdx+rax*8]
	vfmadd213sd	xmm1, xmm0, QWORD PTR [rsi+rax*8]
	vmovsd	QWORD PTR [rdi+rax*8], xmm1
	inc	rax
	cmp	rcx, rax
	jne	.L3
.L8:
	ret
	.size	triad, .-triad
	.p2align 4
	.globl	gemm
	.type	gemm, @function
gemm:
	test	edi, edi
	jle	.L19
	push	r12
	mov	r10, rcx
	mov	r9, rsi
	mov	r11d, edi
	push	rbp
	movsx	rbp, edi
	xor	r12d, r12d
	lea	rcx, 0[0+rbp*4]
	push	rbx
	mov	rbx, rdx
	lea	rsi, [rsi+rcx]
	.p2align 4,,10
	.p2align 3
.L12:
	mov	r8, rbx
	xor	edi, edi
	.p2align 4,,10
	.p2align 3
.L15:
	mov	rdx, r8
	mov	rax, r9
	vxorps	xmm0, xmm0, xmm0
	.p2align 4,,10
	.p2align 3
.L13:
	vmovss	xmm1, DWORD PTR [rax]
	add	rax, 4
	vfmadd231ss	xmm0, xmm1, DWORD PTR [rdx]
	add	rdx, rcx
	cmp	rax, rsi
	jne	.L13
	vmovss	DWORD PTR [r10+rdi*4], xmm0
	inc	rdi
	add	r8, 4
	cmp	rbp, rdi
	jne	.L15
	inc	r12d
	add	r10, rcx
	add	r9, rcx
	add	rsi, rcx
	cmp	r11d, r12d
	jne	.L12
	pop	rbx
	pop	rbp
	pop	r12
	ret
.L19:
	ret
	.size	gemm, .-gemm
	.p2align 4
	.globl	count
	.type	count, @function
count:
	movzx	eax, BYTE PTR [rdi]
	xor	ecx, ecx
	test	al, al
	je	.L22
	.p2align 4,,10
	.p2align 3
.L27:
	movzx	edx, al
	movzx	eax, BYTE PTR 1[rdi]
	cmp	edx, esi
	je	.L32
	inc	rdi
	test	al, al
	jne	.L27
.L22:
	mov	rax, rcx
	ret
	.p2align 4,,10
	.p2align 3
.L32:
	test	al, al
	je	.L25
	add	rcx, 3
	inc	rdi
	jmp	.L27
	.p2align 4,,10
	.p2align 3
.L25:
	movzx	eax, BYTE PTR 2[rdi]
	add	rcx, rax
	mov	rax, rcx
	ret
	.size	count, .-count
	.p2align 4
	.globl	table
	.type	table, @function
table:
	mov	eax, 1
	cmp	edi, 4
	ja	.L33
	mov	edi, edi
	lea	rax, CSWTCH.5[rip]
	mov	eax, DWORD PTR [rax+rdi*4]
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
