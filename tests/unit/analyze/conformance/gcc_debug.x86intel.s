	.intel_syntax noprefix
	.file	"dot.c"
	.text
.Ltext0:
	.file 1 "dot.c"
	.p2align 4
	.globl	dot
	.type	dot, @function
dot:
.LVL0:
.LFB0:
	.loc 1 3 40 view -0
	.cfi_startproc
.L3:
# dot.c:6:     s += a[i] * b[i];
	.loc 1 6 7 is_stmt 1 discriminator 3 view .LVU5
	vmovsd	xmm1, QWORD PTR [rdi+rax*8]	# , tmp90
	.loc 1 5 24 is_stmt 0 discriminator 1
	vfmadd231sd	xmm0, xmm1, QWORD PTR [rsi+rax*8]	# , tmp91
	.loc 1 6 24 is_stmt 0 discriminator 1
	add	rax, 1	# , tmp92
	.loc 1 5 24 is_stmt 0 discriminator 1
	cmp	rdx, rax	# , tmp93
	.loc 1 6 24 is_stmt 0 discriminator 1
	jne	.L3	# , tmp94
	.loc 1 5 24 is_stmt 0 discriminator 1
	ret	
	.cfi_endproc
.LFE0:
	.size	dot, .-dot
.Letext0:
	.section	.debug_info,"",@progbits
.Ldebug_info0:
	.4byte	0x4e
	.2byte	0x5
	.byte	0x1
	.section	.debug_str,"MS",@progbits,1
.LASF0:
	.string	"GNU C17 12.2.0 -g -O2 # OSACA-BEGIN"
	.ident	"GCC: (GNU) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
