	.file	"dot.c"
	.text
.Ltext0:
	.file 1 "dot.c"
	.align	2
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
	fld	fa5,0(a0)	# , tmp90
	.loc 1 5 24 is_stmt 0 discriminator 1
	fld	fa4,0(a1)	# , tmp91
	.loc 1 6 24 is_stmt 0 discriminator 1
	addi	a0,a0,8	# , tmp92
	.loc 1 5 24 is_stmt 0 discriminator 1
	addi	a1,a1,8	# , tmp93
	.loc 1 6 24 is_stmt 0 discriminator 1
	fmadd.d	fa0,fa5,fa4,fa0	# , tmp94
	.loc 1 5 24 is_stmt 0 discriminator 1
	bne	a0,a2,.L3	# , tmp95
	.loc 1 6 24 is_stmt 0 discriminator 1
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
