# STREAM triad a[i] = b[i] + c[i]*d, gcc 12 -O2
.L3:
	fld	fa5,0(a2)
	fld	fa4,0(a1)
	addi	a0,a0,8
	addi	a1,a1,8
	fmadd.d	fa5,fa5,fa0,fa4
	addi	a2,a2,8
	fsd	fa5,-8(a0)
	bne	a1,a5,.L3
