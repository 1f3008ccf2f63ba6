dot(double const*, double const*, long):
.L3:
        fld     fa5,0(a0)
        fld     fa4,0(a1)
        addi     a0,a0,8
        addi     a1,a1,8
        fmadd.d     fa0,fa5,fa4,fa0
        bne     a0,a2,.L3
        ret
