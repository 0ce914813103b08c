//! State spaces, generic addresses, initializers, vectors, atomics.

use super::kit::{POLICIES, Run, lanes, module, module_for};

#[test]
fn variables_hold_their_initializers() {
    let globals = "
        .global .align 4 .u32 numbers[2][3] = {{1, 2, 3}, {4, 0x10}};
        .const .align 8 .f64 half = 0d3FE0000000000000;
        .const .align 4 .f32 floats[] = {1.5, -2.0, 0f40400000};
        .global .align 8 .u64 where = numbers+8;
        .global .align 1 .b8 text[4] = {72, 105, 33, 0};";
    let body = "
        ld.global.u64 %d3, [where];
        ld.global.u32 %r1, [%d3];
        ld.global.u32 %r2, [numbers+16];
        ld.global.u32 %r3, [numbers+20];
        ld.const.f64 %g1, [half];
        ld.const.f32 %f1, [floats+4];
        ld.const.f32 %f2, [floats+8];
        cvt.f32.f64 %f3, %g1;
        ld.global.v4.u8 {%r4, %r5, %r6, %r7}, [text];
        fma.rn.f32 %f4, %f1, %f2, %f3;
        cvt.rni.s32.f32 %r8, %f4;
        shl.b32 %r1, %r1, 8;
        shl.b32 %r2, %r2, 16;
        or.b32 %r1, %r1, %r2;
        or.b32 %r1, %r1, %r3;
        or.b32 %r1, %r1, %r5;
        mov.b64 %d4, {%r1, %r8};
        st.global.u64 [%d2], %d4;";
    let body = &body.replace("cvt.f32.f64", "cvt.rn.f32.f64");
    assert_eq!(lanes(globals, body)[0], u64::from((-6i32) as u32) << 32 | 0x0010_0300 | 105);
}

#[test]
fn generic_addresses_reach_every_space() {
    let globals = ".shared .align 8 .u64 box[4];\n.const .align 8 .u64 constant[2] = {5, 6};";
    let body = "
        .local .align 8 .b8 own[16];
        mov.u64 %d3, box;
        cvta.shared.u64 %d3, %d3;
        mov.u64 %d4, own;
        cvta.local.u64 %d4, %d4;
        mov.u64 %d5, constant;
        cvta.const.u64 %d5, %d5;
        setp.eq.u32 %p0, %r0, 0;
        @%p0 st.u64 [%d3+8], 40;
        cvt.u64.u32 %d6, %r0;
        st.u64 [%d4], %d6;
        bar.sync 0;
        ld.u64 %d7, [%d3+8];
        ld.local.u64 %d8, [own];
        ld.u64 %d9, [%d5+8];
        add.u64 %d7, %d7, %d8;
        add.u64 %d7, %d7, %d9;
        isspacep.shared %p1, %d3;
        isspacep.local %p2, %d4;
        isspacep.global %p3, %d2;
        isspacep.global %p4, %d3;
        isspacep.const %p5, %d5;
        and.pred %p1, %p1, %p2;
        and.pred %p1, %p1, %p3;
        and.pred %p1, %p1, %p5;
        selp.u64 %d10, 1000, 0, %p1;
        @%p4 mov.u64 %d10, 7;
        add.u64 %d7, %d7, %d10;
        cvta.to.shared.u64 %d11, %d3;
        ld.shared.u64 %d12, [%d11+8];
        add.u64 %d7, %d7, %d12;
        st.u64 [%d2], %d7;";
    assert_eq!(lanes(globals, body), (0..32).map(|i| 1086 + i).collect::<Vec<_>>());
}

#[test]
fn narrow_accesses_extend_and_cut() {
    let body = "
        mov.u64 %d3, 0x1122334455f6f788;
        st.global.u64 [%d2], %d3;
        ld.global.s8 %r1, [%d2];
        ld.global.u8 %r2, [%d2+1];
        ld.global.s16 %d4, [%d2+2];
        ld.global.s16 %h1, [%d2];
        cvt.s32.s16 %r3, %h1;
        cvt.s32.s64 %r4, %d4;
        add.s32 %r1, %r1, %r2;
        add.s32 %r1, %r1, %r4;
        sub.s32 %r1, %r1, %r3;
        st.global.u8 [%d2+7], %r1;
        st.global.u16 [%d2+4], %d4;
        ld.global.u64 %d5, [%d2];
        st.global.u64 [%d2], %d5;";
    let sum = i32::from(0x88u8 as i8) + 0xf7 + i32::from(0x55f6i16) - i32::from(0xf788u16 as i16);
    let expected = u64::from(sum as u8) << 56 | 0x0022_55f6_55f6_f788;
    assert_eq!(lanes("", body), [expected; 32]);
}

#[test]
fn vectors_move_whole() {
    let body = "
        shl.b32 %r1, %r0, 2;
        add.u32 %r2, %r1, 1;
        add.u32 %r3, %r1, 2;
        add.u32 %r4, %r1, 3;
        mad.wide.u32 %d3, %r0, 16, %d0;
        st.global.v4.u32 [%d3], {%r1, %r2, %r3, %r4};
        ld.global.v2.u64 {%d4, %d5}, [%d3];
        ld.global.v4.u32 {_, %r5, _, %r6}, [%d3];
        st.global.v2.b64 [%d3], {%d5, %d4};
        sub.u32 %r6, %r6, %r5;
        @%p1 trap;
        mov.b32 {%h1, %h2}, %r6;
        setp.eq.u16 %p0, %h1, 2;
        @!%p0 trap;";
    let body = body.replace("@%p1 trap;", "");
    let text = module("", &body);
    for policy in POLICIES {
        let out = Run::policy(policy).good(&text, 64, &[]);
        let expected: Vec<u64> = (0..32u64).flat_map(|i| [2, 0].map(|k| 4 * i + k + ((4 * i + k + 1) << 32))).collect();
        assert_eq!(out, expected);
    }
}

#[test]
fn dynamic_shared_memory_follows_declared_memory() {
    let globals = ".shared .align 4 .u32 first[8];\n.extern .shared .align 16 .b8 rest[];";
    let body = "
        mov.u32 %r1, rest;
        mad.lo.u32 %r2, %r0, 4, %r1;
        st.shared.u32 [%r2], %r0;
        bar.sync 0;
        xor.b32 %r3, %r0, 31;
        mad.lo.u32 %r4, %r3, 4, %r1;
        ld.shared.u32 %r5, [%r4];
        mov.u32 %r6, %dynamic_smem_size;
        add.u32 %r5, %r5, %r6;
        cvt.u64.u32 %d3, %r5;
        st.global.u64 [%d2], %d3;";
    let run = Run { dynamic_shared: 128, ..Run::default() };
    assert_eq!(run.good(&module(globals, body), 32, &[]), (0..32).map(|i| (31 - i) + 128).collect::<Vec<_>>());
}

#[test]
fn atomics_return_the_old_value() {
    let check = |operation: &str, first: u64, operands: &str, expected: &[u64]| {
        let globals = ".shared .align 8 .u64 cell;";
        let body = format!(
            "setp.eq.u32 %p0, %r0, 0;
             @%p0 st.shared.u64 [cell], {first};
             bar.sync 0;
             mov.u64 %d3, 0;
             cvt.u64.u32 %d5, %r0;
             add.u32 %r2, %r0, 1;
             {}
             cvt.u64.u32 %d4, %r1;
             {}
             bar.sync 0;
             st.global.u64 [%d2], %d3;",
            if operation.contains("64") {
                format!("atom.shared.{operation} %d3, [cell], {operands};\nmov.u32 %r1, 0;")
            } else {
                format!("atom.shared.{operation} %r1, [cell], {operands};")
            },
            if operation.contains("64") { "" } else { "mov.u64 %d3, %d4;" },
        );
        assert_eq!(&lanes(globals, &body)[..expected.len()], expected, "{operation}");
    };
    check("add.u32", 5, "%r0", &[5, 5, 6, 8, 11]);
    check("add.s32", 0xffff_ffff, "2", &[0xffff_ffff, 1, 3]);
    check("max.s32", 0xffff_fff0, "%r0", &[0xffff_fff0, 0, 1, 2]);
    check("max.u32", 0xffff_fff0, "%r0", &[0xffff_fff0; 4]);
    check("min.u32", 9, "%r0", &[9, 0, 0]);
    check("inc.u32", 1, "3", &[1, 2, 3, 0, 1]);
    check("dec.u32", 1, "3", &[1, 0, 3, 2, 1]);
    check("exch.b32", 9, "%r0", &[9, 0, 1, 2]);
    check("cas.b32", 0, "%r0, %r2", &[0, 1, 2, 3]);
    check("and.b32", 0xff, "0x0f", &[0xff, 0x0f]);
    check("or.b32", 1, "%r0", &[1, 1, 1, 3, 3]);
    check("xor.b32", 1, "%r0", &[1, 1, 0, 2]);
    check("add.u64", u64::MAX >> 1, "%d5", &[u64::MAX >> 1, u64::MAX >> 1, 1 << 63]);
    check("max.s64", 1 << 63, "%d5", &[1 << 63, 0, 1]);
}

#[test]
fn sums_of_subnormals_flush_in_global_memory_alone() {
    let globals = ".shared .align 4 .f32 cell;";
    let body = "
        setp.eq.u32 %p0, %r0, 0;
        @!%p0 bra $end;
        st.shared.u32 [cell], 1;
        mov.b32 %f1, 2;
        atom.shared.add.f32 %f2, [cell], %f1;
        ld.shared.u32 %r1, [cell];
        st.global.u32 [%d2], 1;
        red.global.add.f32 [%d2], %f1;
        st.global.u32 [%d2+4], %r1;
    $end:
        ret;";
    assert_eq!(lanes(globals, body)[0], 3 << 32);
}

#[test]
fn blocks_begin_with_uninitialized_shared_memory() {
    let body = "
        mov.u32 %r1, %ctaid.x;
        mad.lo.u32 %r2, %r1, 32, %r0;
        mad.wide.u32 %d2, %r2, 8, %d0;
        mov.u32 %r3, %nctaid.x;
        mov.u32 %r4, %laneid;
        mov.u32 %r5, %lanemask_lt;
        popc.b32 %r5, %r5;
        add.u32 %r4, %r4, %r5;
        mad.lo.u32 %r4, %r3, 1000, %r4;
        cvt.u64.u32 %d3, %r4;
        st.global.u64 [%d2], %d3;";
    let run = Run { blocks: 3, ..Run::default() };
    let expected: Vec<u64> = (0..96).map(|i| 3000 + 2 * (i % 32)).collect();
    assert_eq!(run.good(&module("", body), 96, &[]), expected);
    let racy = module(
        ".shared .align 4 .u32 cell;",
        "mov.u32 %r1, %ctaid.x;
         setp.eq.u32 %p0, %r1, 0;
         @%p0 st.shared.u32 [cell], 1;
         ld.shared.u32 %r2, [cell];",
    );
    let (outcome, _) = Run { blocks: 2, ..Run::default() }.of(&racy, 32, &[]);
    assert_eq!(outcome.report.findings.len(), 1);
    assert_eq!(outcome.report.findings[0].thread.block, [1, 0, 0]);
}

/// Runs 64 threads that each copy asynchronously to shared memory, followed by `body`. `%r1` is the
/// address of the thread's copy, and `%r2` that of its neighbor in the other warp.
fn copied(body: &str) -> (runtime::ptx::Outcome, Vec<u64>) {
    let body = format!(
        ".shared .align 16 .b8 s[1024];
        mov.u32 %r3, s;
        mad.lo.u32 %r1, %r0, 16, %r3;
        xor.b32 %r4, %r0, 32;
        mad.lo.u32 %r2, %r4, 16, %r3;
        mad.wide.u32 %d3, %r0, 16, %d1;
        {body}"
    );
    let text = module_for("7.0", "sm_80", "", &body);
    let input: Vec<u64> = (0..128).collect();
    Run { threads: 64, ..Run::default() }.of(&text, 64, &input)
}

#[test]
fn copies_land_at_the_wait_for_their_group() {
    // Two groups: waiting for all except one completes the first.
    let (outcome, out) = copied(
        "cp.async.ca.shared.global [%r1], [%d3], 8;
        cp.async.commit_group;
        cp.async.ca.shared.global [%r1+8], [%d3+8], 8, 4;
        cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u64 %d4, [%r1];
        cp.async.wait_group 0;
        bar.sync 0;
        ld.shared.u64 %d5, [%r2+8];
        mad.lo.u64 %d4, %d4, 1000, %d5;
        st.global.u64 [%d2], %d4;
        ret;",
    );
    assert!(outcome.report.findings.is_empty(), "{:?}", outcome.report.findings);
    assert_eq!(out, (0..64).map(|i| 2 * i * 1000 + 2 * (i ^ 32) + 1).collect::<Vec<_>>());
    // A copy of 0 bytes reads nothing, and fills with zeros.
    let (outcome, out) = copied(
        "setp.lt.u32 %p1, %r0, 40;
        selp.u32 %r5, 16, 0, %p1;
        mov.u64 %d6, 0;
        selp.u64 %d3, %d3, %d6, %p1;
        cp.async.cg.shared.global [%r1], [%d3], 16, %r5;
        cp.async.wait_all;
        ld.shared.u64 %d4, [%r1+8];
        st.global.u64 [%d2], %d4;
        ret;",
    );
    assert!(outcome.report.findings.is_empty(), "{:?}", outcome.report.findings);
    assert_eq!(out, (0..64).map(|i| if i < 40 { 2 * i + 1 } else { 0 }).collect::<Vec<_>>());
}

#[test]
fn copies_without_a_wait_are_not_visible() {
    use runtime::ptx::Check;
    let told = |body: &str, check: Check| {
        let (outcome, _) = copied(body);
        let found: Vec<_> = outcome.report.findings.iter().map(|f| f.check).collect();
        assert_eq!(found, [check], "{:?}", outcome.report.findings);
    };
    let begin = "cp.async.cg.shared.global [%r1], [%d3], 16;\n";
    let load = "ld.shared.u64 %d4, [%r1];\nst.global.u64 [%d2], %d4;\nret;";
    told(&format!("{begin}{load}"), Check::UnfinishedCopy);
    // The wait does not cover an uncommitted group.
    told(&format!("{begin}cp.async.wait_group 0;\n{load}"), Check::UnfinishedCopy);
    told(&format!("{begin}cp.async.commit_group;\ncp.async.wait_group 1;\n{load}"), Check::UnfinishedCopy);
    let apart =
        "setp.lt.u32 %p1, %r0, 63;\n@%p1 cp.async.cg.shared.global [%r1], [%d3+8], 16;\ncp.async.wait_all;\nret;";
    told(apart, Check::Misaligned);
    told(&format!("cp.async.cg.shared.global [%r1], [%d3+512], 16;\ncp.async.wait_all;\n{load}"), Check::OutOfBounds);
}

#[test]
fn words_are_packed_and_unpacked() {
    // Two words of a lane; halves and words in another order form the second one.
    let body = "
        mul.lo.u32 %r1, %r0, 0x01020304;
        not.b32 %r2, %r1;
        mov.b64 %d3, {%r1, %r2};
        mov.b64 {%h0, %h1, %h2, %h3}, %d3;
        mov.b32 %r3, {%h3, %h0};
        mov.b32 {%h4, %h5}, %r3;
        mov.b64 %d4, {%h5, %h4, %h1, %h2};
        mov.b64 {_, %r4}, %d4;
        mov.b64 {%r5, _}, %d4;
        mov.b64 %d5, {%r4, %r5};
        st.global.u64 [%d2], %d5;";
    let expected = (0..32u32).map(|lane| {
        let low = lane.wrapping_mul(0x0102_0304);
        let words = [low, !low];
        let [h0, h1, h2, h3] = [0, 1, 2, 3].map(|i| u64::from(words[i / 2] >> (16 * (i % 2)) & 0xffff));
        // %h4 is %h3, %h5 is %h0.
        let (lower, upper) = (h0 | h3 << 16, h1 | h2 << 16);
        upper | lower << 32
    });
    assert_eq!(lanes("", body), expected.collect::<Vec<_>>());
}
