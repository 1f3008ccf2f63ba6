	.file	"kernels.c"
	.intel_syntax noprefix
	.text
	.p2align 4
	.globl	triad
	.type	triad, @function
triad:
	test	rcx, rcx
	je	.L23
	lea	rax, -1[rcx]
	cmp	rax, 2
	jbe	.L8
	mov	r8, rcx
	vbroadcastsd	ymm2, xmm0
	xor	eax, eax
	shr	r8, 2
	sal	r8, 5
	.p2align 4,,10
	.p2align 3
.L4:
	vmovupd	ymm1, YMMWORD PTR [rdx+rax]
	vfmadd213pd	ymm1, ymm2, YMMWORD PTR [rsi+rax]
	vmovupd	YMMWORD PTR [rdi+rax], ymm1
	add	rax, 32
	cmp	rax, r8
	jne	.L4
	test	cl, 3
	je	.L22
	mov	rax, rcx
	and	rax, -4
	vzeroupper
.L3:
	sub	rcx, rax
	cmp	rcx, 1
	je	.L6
	vmovupd	xmm4, XMMWORD PTR [rsi+rax*8]
	vmovddup	xmm1, xmm0
	vfmadd132pd	xmm1, xmm4, XMMWORD PTR [rdx+rax*8]
	vmovupd	XMMWORD PTR [rdi+rax*8], xmm1
	test	cl, 1
	je	.L23
	and	rcx, -2
	add	rax, rcx
.L6:
	vmovsd	xmm3, QWORD PTR [rsi+rax*8]
	vfmadd132sd	xmm0, xmm3, QWORD PTR [rdx+rax*8]
	vmovsd	QWORD PTR [rdi+rax*8], xmm0
	ret
	.p2align 4,,10
	.p2align 3
.L22:
	vzeroupper
.L23:
	ret
.L8:
	xor	eax, eax
	jmp	.L3
	.size	triad, .-triad
	.p2align 4
	.globl	gemm
	.type	gemm, @function
gemm:
	test	edi, edi
	jle	.L42
	push	r15
	mov	r11d, edi
	movsx	rdi, edi
	push	r14
	mov	r8, rdi
	lea	rax, 0[0+rdi*4]
	xor	r14d, r14d
	push	r13
	mov	r13, rdx
	mov	edx, r11d
	sal	r8, 4
	push	r12
	mov	r12, rsi
	shr	edx, 2
	push	rbp
	sal	rdx, 4
	push	rbx
	mov	QWORD PTR -56[rsp], rsi
	lea	esi, -1[r11]
	mov	DWORD PTR -40[rsp], esi
	mov	esi, r11d
	and	esi, -4
	mov	QWORD PTR -16[rsp], rdx
	mov	DWORD PTR -24[rsp], esi
	mov	esi, r11d
	and	esi, 3
	mov	QWORD PTR -32[rsp], rdi
	lea	rdi, [rdi+rdi*2]
	mov	DWORD PTR -36[rsp], esi
	sal	rdi, 2
	mov	QWORD PTR -48[rsp], rcx
	xor	ecx, ecx
	.p2align 4,,10
	.p2align 3
.L27:
	mov	rsi, QWORD PTR -56[rsp]
	mov	rbx, QWORD PTR -16[rsp]
	mov	rbp, r13
	xor	r10d, r10d
	mov	DWORD PTR -20[rsp], ecx
	add	rsi, rbx
	.p2align 4,,10
	.p2align 3
.L33:
	cmp	DWORD PTR -40[rsp], 2
	mov	ebx, r10d
	jbe	.L34
	mov	rcx, QWORD PTR -56[rsp]
	mov	rdx, rbp
	vxorps	xmm1, xmm1, xmm1
	.p2align 4,,10
	.p2align 3
.L29:
	vmovss	xmm0, DWORD PTR [rdx+rax*2]
	vinsertps	xmm2, xmm0, DWORD PTR [rdx+rdi], 0x10
	add	rcx, 16
	vmovss	xmm0, DWORD PTR [rdx]
	vinsertps	xmm0, xmm0, DWORD PTR [rdx+rax], 0x10
	add	rdx, r8
	vmovlhps	xmm0, xmm0, xmm2
	vmulps	xmm0, xmm0, XMMWORD PTR -16[rcx]
	vaddss	xmm1, xmm1, xmm0
	vshufps	xmm2, xmm0, xmm0, 85
	vaddss	xmm1, xmm1, xmm2
	vunpckhps	xmm2, xmm0, xmm0
	vshufps	xmm0, xmm0, xmm0, 255
	vaddss	xmm1, xmm1, xmm2
	vaddss	xmm1, xmm1, xmm0
	cmp	rsi, rcx
	jne	.L29
	mov	edx, DWORD PTR -36[rsp]
	test	edx, edx
	je	.L28
	mov	edx, DWORD PTR -24[rsp]
.L32:
	mov	ecx, r11d
	lea	r15d, [r14+rdx]
	imul	ecx, edx
	movsx	r15, r15d
	vmovss	xmm3, DWORD PTR [r12+r15*4]
	lea	r9d, [rcx+rbx]
	movsx	r9, r9d
	vfmadd231ss	xmm1, xmm3, DWORD PTR 0[r13+r9*4]
	lea	r9d, 1[rdx]
	cmp	r11d, r9d
	jle	.L28
	add	ecx, r11d
	add	r9d, r14d
	add	edx, 2
	lea	r15d, [rbx+rcx]
	movsx	r9, r9d
	movsx	r15, r15d
	vmovss	xmm4, DWORD PTR [r12+r9*4]
	vfmadd231ss	xmm1, xmm4, DWORD PTR 0[r13+r15*4]
	cmp	r11d, edx
	jle	.L28
	add	ecx, r11d
	add	edx, r14d
	add	ecx, ebx
	movsx	rdx, edx
	movsx	rcx, ecx
	vmovss	xmm5, DWORD PTR 0[r13+rcx*4]
	vfmadd231ss	xmm1, xmm5, DWORD PTR [r12+rdx*4]
.L28:
	mov	rbx, QWORD PTR -48[rsp]
	add	rbp, 4
	vmovss	DWORD PTR [rbx+r10*4], xmm1
	inc	r10
	cmp	QWORD PTR -32[rsp], r10
	jne	.L33
	mov	ecx, DWORD PTR -20[rsp]
	add	QWORD PTR -48[rsp], rax
	add	r14d, r11d
	add	QWORD PTR -56[rsp], rax
	inc	ecx
	cmp	r11d, ecx
	jne	.L27
	pop	rbx
	pop	rbp
	pop	r12
	pop	r13
	pop	r14
	pop	r15
	ret
	.p2align 4,,10
	.p2align 3
.L34:
	xor	edx, edx
	vxorps	xmm1, xmm1, xmm1
	jmp	.L32
.L42:
	ret
	.size	gemm, .-gemm
	.p2align 4
	.globl	count
	.type	count, @function
count:
	movzx	eax, BYTE PTR [rdi]
	xor	ecx, ecx
	test	al, al
	je	.L45
	.p2align 4,,10
	.p2align 3
.L50:
	movzx	edx, al
	movzx	eax, BYTE PTR 1[rdi]
	cmp	edx, esi
	je	.L55
	inc	rdi
	test	al, al
	jne	.L50
.L45:
	mov	rax, rcx
	ret
	.p2align 4,,10
	.p2align 3
.L55:
	test	al, al
	je	.L48
	add	rcx, 3
	inc	rdi
	jmp	.L50
	.p2align 4,,10
	.p2align 3
.L48:
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
	ja	.L56
	mov	edi, edi
	lea	rax, CSWTCH.5[rip]
	mov	eax, DWORD PTR [rax+rdi*4]
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
