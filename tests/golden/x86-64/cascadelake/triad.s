# STREAM triad a = b + s*c, four elements in a body
# OSACA-BEGIN
.L10:
	vmovapd	(%r15,%rax), %ymm0
	vfmadd213pd	(%r12,%rax), %ymm3, %ymm0
	vmovapd	%ymm0, 0(%r13,%rax)
	addq	$32, %rax
	cmpq	%rax, %r14
	jne	.L10
# OSACA-END
