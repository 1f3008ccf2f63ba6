	.attribute	4, 16
	.attribute	5, "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_b1p0_v1p0_zic64b1p0_zicbom1p0_zicbop1p0_zicboz1p0_ziccamoa1p0_ziccif1p0_zicclsm1p0_ziccrse1p0_zicntr2p0_zicond1p0_zicsr2p0_zifencei2p0_zihintpause2p0_zihpm2p0_zmmul1p0_za64rs1p0_zaamo1p0_zalrsc1p0_zfh1p0_zfhmin1p0_zca1p0_zcd1p0_zba1p0_zbb1p0_zbc1p0_zbkc1p0_zbs1p0_zkt1p0_zve32f1p0_zve32x1p0_zve64d1p0_zve64f1p0_zve64x1p0_zvfh1p0_zvfhmin1p0_zvkt1p0_zvl128b1p0_zvl256b1p0_zvl32b1p0_zvl64b1p0_ssccptr1p0_sscofpmf1p0_sscounterenw1p0_sstc1p0_sstvala1p0_sstvecd1p0_svade1p0_svbare1p0_svinval1p0_svnapot1p0_svpbmt1p0_xsmtvdot1p0"
	.file	"<stdin>"
	.text
	.globl	triad                           # -- Begin function triad
	.p2align	1
	.type	triad,@function
triad:                                  # @triad
# %bb.0:                                # %entry
	beqz	a3, .LBB0_3
# %bb.1:                                # %vector.ph
	li	a4, 0
.LBB0_2:                                # %vector.body
                                        # =>This Inner Loop Header: Depth=1
	sh3add	a6, a4, a1
	vsetvli	a7, a3, e64, m2, ta, ma
	vle64.v	v8, (a6)
	sh3add	a5, a4, a2
	vle64.v	v10, (a5)
	vfmadd.vf	v10, fa0, v8
	sh3add	a5, a4, a0
	sub	a3, a3, a7
	vse64.v	v10, (a5)
	add	a4, a4, a7
	bnez	a3, .LBB0_2
.LBB0_3:                                # %exit
	ret
.Lfunc_end0:
	.size	triad, .Lfunc_end0-triad
                                        # -- End function
	.globl	sum                             # -- Begin function sum
	.p2align	1
	.type	sum,@function
sum:                                    # @sum
# %bb.0:                                # %entry
	beqz	a1, .LBB1_4
# %bb.1:                                # %vector.body.preheader
	vsetvli	a2, zero, e64, m1, ta, ma
	vmv.s.x	v8, zero
	li	a2, 0
.LBB1_2:                                # %vector.body
                                        # =>This Inner Loop Header: Depth=1
	sh3add	a3, a2, a0
	vsetvli	a4, a1, e64, m2, ta, ma
	vle64.v	v10, (a3)
	vfredosum.vs	v8, v10, v8
	sub	a1, a1, a4
	add	a2, a2, a4
	bnez	a1, .LBB1_2
# %bb.3:
	vfmv.f.s	fa0, v8
	ret
.LBB1_4:
	fmv.d.x	fa0, zero
	ret
.Lfunc_end1:
	.size	sum, .Lfunc_end1-sum
                                        # -- End function
	.section	".note.GNU-stack","",@progbits
