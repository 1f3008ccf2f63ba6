a$ = 8
b$ = 16
dot PROC
$LL4@dot:
        vmovsd xmm1, QWORD PTR [rdi+rax*8]
        vfmadd231sd xmm0, xmm1, QWORD PTR [rsi+rax*8]
        add rax, 1
        cmp rdx, rax
        jne SHORT $LL4@dot
        ret     0
dot ENDP
