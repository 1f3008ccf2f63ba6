	.text
	.file	"loops.c"
	.globl	interpret                       # -- Begin function interpret
	.p2align	4, 0x90
	.type	interpret,@function
interpret:                              # @interpret
# %bb.0:
	xorl	%eax, %eax
	leaq	.LJTI0_0(%rip), %r8
.LBB0_1:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_2 Depth 2
                                        #       Child Loop BB0_3 Depth 3
                                        #       Child Loop BB0_11 Depth 3
	leaq	1(%rax), %rdx
.LBB0_2:                                #   Parent Loop BB0_1 Depth=1
                                        # =>  This Loop Header: Depth=2
                                        #       Child Loop BB0_3 Depth 3
                                        #       Child Loop BB0_11 Depth 3
	addq	$1, %rdi
	.p2align	4, 0x90
.LBB0_3:                                #   Parent Loop BB0_1 Depth=1
                                        #     Parent Loop BB0_2 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	movzbl	-1(%rdi), %ecx
	cmpq	$5, %rcx
	jbe	.LBB0_4
# %bb.12:                               #   in Loop: Header=BB0_3 Depth=3
	addq	%rdx, %rdi
	jmp	.LBB0_3
	.p2align	4, 0x90
.LBB0_4:                                #   in Loop: Header=BB0_2 Depth=2
	movslq	(%r8,%rcx,4), %rcx
	addq	%r8, %rcx
	jmpq	*%rcx
.LBB0_6:                                #   in Loop: Header=BB0_2 Depth=2
	movq	%rax, (%rsi)
	addq	$8, %rsi
	jmp	.LBB0_2
.LBB0_10:                               #   in Loop: Header=BB0_2 Depth=2
	movq	%rax, %rcx
	testq	%rax, %rax
	je	.LBB0_2
	.p2align	4, 0x90
.LBB0_11:                               #   Parent Loop BB0_1 Depth=1
                                        #     Parent Loop BB0_2 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	addq	%rax, (%rsi,%rcx,8)
	addq	$-1, %rcx
	jne	.LBB0_11
	jmp	.LBB0_2
	.p2align	4, 0x90
.LBB0_7:                                #   in Loop: Header=BB0_1 Depth=1
	addq	-8(%rsi), %rax
	addq	$-8, %rsi
	jmp	.LBB0_1
	.p2align	4, 0x90
.LBB0_8:                                #   in Loop: Header=BB0_1 Depth=1
	imulq	-8(%rsi), %rax
	addq	$-8, %rsi
	jmp	.LBB0_1
	.p2align	4, 0x90
.LBB0_9:                                #   in Loop: Header=BB0_1 Depth=1
	negq	%rax
	jmp	.LBB0_1
.LBB0_5:
	retq
.Lfunc_end0:
	.size	interpret, .Lfunc_end0-interpret
	.section	.rodata,"a",@progbits
	.p2align	2
.LJTI0_0:
	.long	.LBB0_5-.LJTI0_0
	.long	.LBB0_6-.LJTI0_0
	.long	.LBB0_7-.LJTI0_0
	.long	.LBB0_8-.LJTI0_0
	.long	.LBB0_9-.LJTI0_0
	.long	.LBB0_10-.LJTI0_0
                                        # -- End function
	.text
	.globl	nested                          # -- Begin function nested
	.p2align	4, 0x90
	.type	nested,@function
nested:                                 # @nested
# %bb.0:
	pushq	%rbp
	pushq	%rbx
	testl	%edi, %edi
	jle	.LBB1_1
# %bb.2:
	movl	%edi, %r10d
	leaq	4(%rdx), %r8
	xorl	%r9d, %r9d
	xorl	%eax, %eax
	jmp	.LBB1_3
	.p2align	4, 0x90
.LBB1_16:                               #   in Loop: Header=BB1_3 Depth=1
	addq	$1, %r9
	cmpq	%r10, %r9
	je	.LBB1_17
.LBB1_3:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB1_5 Depth 2
                                        #       Child Loop BB1_9 Depth 3
                                        #     Child Loop BB1_15 Depth 2
	cmpl	$0, (%rsi,%r9,4)
	js	.LBB1_16
# %bb.4:                                #   in Loop: Header=BB1_3 Depth=1
	movq	%r9, %r11
	jmp	.LBB1_5
	.p2align	4, 0x90
.LBB1_10:                               #   in Loop: Header=BB1_5 Depth=2
	addq	$1, %r11
	cmpq	%r10, %r11
	je	.LBB1_11
.LBB1_5:                                #   Parent Loop BB1_3 Depth=1
                                        # =>  This Loop Header: Depth=2
                                        #       Child Loop BB1_9 Depth 3
	cmpl	%eax, (%rdx,%r11,4)
	je	.LBB1_6
# %bb.7:                                #   in Loop: Header=BB1_5 Depth=2
	movl	(%rdx), %ecx
	testl	%ecx, %ecx
	je	.LBB1_10
# %bb.8:                                #   in Loop: Header=BB1_5 Depth=2
	movl	(%rsi,%r11,4), %ebp
	movq	%r8, %rbx
	.p2align	4, 0x90
.LBB1_9:                                #   Parent Loop BB1_3 Depth=1
                                        #     Parent Loop BB1_5 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	imull	%ebp, %ecx
	xorl	%ecx, %eax
	movl	(%rbx), %ecx
	addq	$4, %rbx
	testl	%ecx, %ecx
	jne	.LBB1_9
	jmp	.LBB1_10
	.p2align	4, 0x90
.LBB1_6:                                #   in Loop: Header=BB1_3 Depth=1
	movl	$8, %ecx
	cmpl	$8, %ecx
	jne	.LBB1_13
	jmp	.LBB1_15
	.p2align	4, 0x90
.LBB1_11:                               #   in Loop: Header=BB1_3 Depth=1
	movl	$5, %ecx
	cmpl	$8, %ecx
	je	.LBB1_15
.LBB1_13:                               #   in Loop: Header=BB1_3 Depth=1
	cmpl	$5, %ecx
	je	.LBB1_15
	jmp	.LBB1_17
	.p2align	4, 0x90
.LBB1_14:                               #   in Loop: Header=BB1_15 Depth=2
	cltq
	imulq	$1431655766, %rax, %rax         # imm = 0x55555556
	movq	%rax, %rcx
	shrq	$63, %rcx
	shrq	$32, %rax
	addl	%ecx, %eax
.LBB1_15:                               #   Parent Loop BB1_3 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	cmpl	%edi, %eax
	jg	.LBB1_14
	jmp	.LBB1_16
.LBB1_1:
	xorl	%eax, %eax
.LBB1_17:
                                        # kill: def $eax killed $eax killed $rax
	popq	%rbx
	popq	%rbp
	retq
.Lfunc_end1:
	.size	nested, .Lfunc_end1-nested
                                        # -- End function
	.globl	calls                           # -- Begin function calls
	.p2align	4, 0x90
	.type	calls,@function
calls:                                  # @calls
# %bb.0:
	pushq	%r15
	pushq	%r14
	pushq	%rbx
	movq	%rsi, %r14
	movl	%edi, %ebx
	leaq	.LJTI2_0(%rip), %r15
	jmp	.LBB2_1
.LBB2_8:                                #   in Loop: Header=BB2_1 Depth=1
	movl	%ebx, %edi
	negl	%edi
.LBB2_9:                                #   in Loop: Header=BB2_1 Depth=1
	callq	sink@PLT
.LBB2_10:                               #   in Loop: Header=BB2_1 Depth=1
	movq	%r14, %rax
.LBB2_11:                               #   in Loop: Header=BB2_1 Depth=1
	leaq	4(%rax), %r14
	cmpl	$0, (%rax)
	je	.LBB2_12
.LBB2_1:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB2_5 Depth 2
	movl	%ebx, %eax
	andl	$7, %eax
	cmpl	$4, %eax
	ja	.LBB2_10
# %bb.2:                                #   in Loop: Header=BB2_1 Depth=1
	movslq	(%r15,%rax,4), %rax
	addq	%r15, %rax
	jmpq	*%rax
.LBB2_3:                                #   in Loop: Header=BB2_1 Depth=1
	movl	$3, %edi
	jmp	.LBB2_9
.LBB2_4:                                #   in Loop: Header=BB2_1 Depth=1
	addl	$-1, %ebx
	.p2align	4, 0x90
.LBB2_5:                                #   Parent Loop BB2_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	leaq	4(%r14), %rax
	addl	$1, %ebx
	cmpl	%ebx, (%r14)
	movq	%rax, %r14
	jg	.LBB2_5
	jmp	.LBB2_11
.LBB2_6:                                #   in Loop: Header=BB2_1 Depth=1
	leal	1(%rbx), %edi
	callq	sink@PLT
	movl	$7, %edi
	jmp	.LBB2_9
.LBB2_7:                                #   in Loop: Header=BB2_1 Depth=1
	movl	(%r14), %ebx
	jmp	.LBB2_10
.LBB2_12:
	movl	%ebx, %edi
	callq	sink@PLT
	popq	%rbx
	popq	%r14
	popq	%r15
	retq
.Lfunc_end2:
	.size	calls, .Lfunc_end2-calls
	.section	.rodata,"a",@progbits
	.p2align	2
.LJTI2_0:
	.long	.LBB2_3-.LJTI2_0
	.long	.LBB2_4-.LJTI2_0
	.long	.LBB2_6-.LJTI2_0
	.long	.LBB2_7-.LJTI2_0
	.long	.LBB2_8-.LJTI2_0
                                        # -- End function
	.ident	"Debian clang version 14.0.6"
	.section	".note.GNU-stack","",@progbits
	.addrsig
