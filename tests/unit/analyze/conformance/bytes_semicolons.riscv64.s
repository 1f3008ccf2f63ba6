.L9:
	ld	a5,0(a3)
	ld	a6,8(a3)
	slli	a5,a5,1
	sd	a5,0(a3)
	sd	a6,8(a3)
	ld	a7,16(a3)
	addi	a3,a3,32
	bne	a3,a4,.L9
	li	a1, 111 ; OSACA START MARKER
	.byte	19,0,0,0 ; OSACA START MARKER
.L3:
	fld	fa5,0(a0)
	fld	fa4,0(a1)
	addi	a0,a0,8
	addi	a1,a1,8
	fmadd.d	fa0,fa5,fa4,fa0
	bne	a0,a2,.L3
	li	a1, 222 ; OSACA END MARKER
	.byte	19,0,0,0 ; OSACA END MARKER
	ret
