.L9:
	vmovupd	ymm2, YMMWORD PTR [rdi]
	vmulpd	ymm2, ymm2, ymm2
	vmovupd	YMMWORD PTR [rdi], ymm2
	add	rdi, 32
	cmp	rcx, rdi
	jne	.L9
mov	ebx, 111 # OSACA START MARKER
.byte	100 # OSACA START MARKER
.byte	103 # OSACA START MARKER
.byte	144 # OSACA START MARKER
# pointer_increment=8 0123456789abcdef
# LLVM-MCA-BEGIN
.L3:
	vmovsd	xmm1, QWORD PTR [rdi+rax*8]
	vfmadd231sd	xmm0, xmm1, QWORD PTR [rsi+rax*8]
	add	rax, 1
	cmp	rdx, rax
	jne	.L3
# LLVM-MCA-END
mov	ebx, 222 # OSACA END MARKER
.byte	100 # OSACA END MARKER
.byte	103 # OSACA END MARKER
.byte	144 # OSACA END MARKER
	ret
