dot(double const*, double const*, long):
.L3:
        vmovsd     xmm1, QWORD PTR [rdi+rax*8]
        vfmadd231sd     xmm0, xmm1, QWORD PTR [rsi+rax*8]
        add     rax, 1
        cmp     rdx, rax
        jne     .L3
        ret
