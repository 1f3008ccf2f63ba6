.L9:
	vmovupd	ymm2, YMMWORD PTR [rdi]
	vmulpd	ymm2, ymm2, ymm2
	vmovupd	YMMWORD PTR [rdi], ymm2
	add	rdi, 32
	cmp	rcx, rdi
	jne	.L9
	mov	ebx, 111	#IACA/OSACA START MARKER
	.byte	100,103,144	#IACA/OSACA START MARKER
.L3:
	vmovsd	xmm1, QWORD PTR [rdi+rax*8]
	vfmadd231sd	xmm0, xmm1, QWORD PTR [rsi+rax*8]
	add	rax, 1
	cmp	rdx, rax
	jne	.L3
	mov	ebx, 222	#IACA/OSACA END MARKER
	.byte	100,103,144	#IACA/OSACA END MARKER
	ret
