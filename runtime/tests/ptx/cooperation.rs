//! Shuffles, votes and barriers.

use super::kit::{POLICIES, Run, lanes, module};

/// What lane `i` gets of a shuffle of the lanes' numbers + 100, and whether its source was in range; in Rust's terms.
fn shuffled(mode: &str, i: u64, n: u64, width: u64) -> (u64, bool) {
    let (first, last) = (i / width * width, i / width * width + width - 1);
    let source = match mode {
        "up" => (i >= first + n).then(|| i - n),
        "down" => (i + n <= last).then_some(i + n),
        // Only a segment above is out of reach.
        "bfly" => (i ^ n <= last).then_some(i ^ n),
        _ => Some(first + n % width),
    };
    (source.unwrap_or(i) + 100, source.is_some())
}

#[test]
fn shuffles_of_every_mode_distance_and_width() {
    for mode in ["up", "down", "bfly", "idx"] {
        for width in [1u64, 2, 4, 8, 16, 32] {
            for n in [0u64, 1, 2, 3, 5, 8, 16, 31] {
                let clamp = (32 - width) << 8 | if mode == "up" { 0 } else { 31 };
                let body = format!(
                    "add.u32 %r1, %r0, 100;
                     shfl.sync.{mode}.b32 %r2|%p0, %r1, {n}, {clamp}, 0xffffffff;
                     selp.u32 %r3, 1000, 0, %p0;
                     add.u32 %r2, %r2, %r3;
                     cvt.u64.u32 %d3, %r2;
                     st.global.u64 [%d2], %d3;"
                );
                let expected = (0..32).map(|i| {
                    let (value, inside) = shuffled(mode, i, n, width);
                    value + if inside { 1000 } else { 0 }
                });
                assert_eq!(lanes("", &body), expected.collect::<Vec<_>>(), "{mode} {n} of {width}");
            }
        }
    }
}

#[test]
fn votes() {
    let body = "
        setp.lt.u32 %p0, %r0, 5;
        setp.lt.u32 %p1, %r0, 32;
        vote.sync.ballot.b32 %r1, %p0, 0xffffffff;
        vote.sync.ballot.b32 %r2, !%p0, 0xffffffff;
        vote.sync.all.pred %p2, %p0, 0xffffffff;
        vote.sync.any.pred %p3, %p0, 0xffffffff;
        vote.sync.uni.pred %p4, %p0, 0xffffffff;
        vote.sync.all.pred %p5, %p1, 0xffffffff;
        vote.sync.uni.pred %p6, !%p1, 0xffffffff;
        xor.b32 %r2, %r1, %r2;
        setp.eq.u32 %p7, %r2, 0xffffffff;
        selp.u32 %r3, 1, 0, %p2;
        selp.u32 %r4, 2, 0, %p3;
        selp.u32 %r5, 4, 0, %p4;
        selp.u32 %r6, 8, 0, %p5;
        selp.u32 %r7, 16, 0, %p6;
        selp.u32 %r8, 32, 0, %p7;
        or.b32 %r3, %r3, %r4;
        or.b32 %r3, %r3, %r5;
        or.b32 %r3, %r3, %r6;
        or.b32 %r3, %r3, %r7;
        or.b32 %r3, %r3, %r8;
        mad.lo.u32 %r3, %r1, 1000, %r3;
        cvt.u64.u32 %d3, %r3;
        st.global.u64 [%d2], %d3;";
    assert_eq!(lanes("", body), [31_000 + 2 + 8 + 16 + 32; 32]);
}

#[test]
fn lanes_of_a_side_shuffle_among_themselves() {
    let body = "
        and.b32 %r1, %r0, 1;
        setp.eq.u32 %p0, %r1, 0;
        @%p0 bra $even;
        shfl.sync.bfly.b32 %r2, %r0, 2, 31, 0xaaaaaaaa;
        bra $end;
    $even:
        shfl.sync.bfly.b32 %r2, %r0, 4, 31, 0x55555555;
    $end:
        cvt.u64.u32 %d3, %r2;
        st.global.u64 [%d2], %d3;";
    assert_eq!(lanes("", body), (0..32).map(|i: u64| i ^ if i & 1 == 0 { 4 } else { 2 }).collect::<Vec<_>>());
}

#[test]
fn barriers_reduce_over_the_block() {
    let body = "
        setp.lt.u32 %p0, %r0, 70;
        bar.red.popc.u32 %r1, 0, %p0;
        bar.red.and.pred %p1, 1, %p0;
        bar.red.or.pred %p2, 1, !%p0;
        selp.u32 %r2, 1000, 0, %p1;
        selp.u32 %r3, 2000, 0, %p2;
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        cvt.u64.u32 %d3, %r1;
        st.global.u64 [%d2], %d3;";
    for policy in POLICIES {
        let run = Run { threads: 100, ..Run::policy(policy) };
        assert_eq!(run.good(&module("", body), 100, &[]), [2070; 100]);
    }
}

#[test]
fn warps_hand_over_by_barriers_of_some() {
    // Warp 0 produces and does not wait; warps 1 and 2 wait for it at barriers of 64 threads; warp 3 takes no part.
    let shared = ".shared .align 8 .b8 box[512];";
    let body = "
        shr.u32 %r1, %r0, 5;
        and.b32 %r2, %r0, 31;
        mov.u32 %r3, box;
        shl.b32 %r4, %r2, 2;
        add.u32 %r3, %r3, %r4;
        mov.u32 %r6, 5;
        setp.eq.u32 %p3, %r1, 3;
        @%p3 bra $end;
        setp.ne.u32 %p0, %r1, 0;
        @%p0 bra $consumer;
        mul.lo.u32 %r5, %r2, 3;
        st.shared.u32 [%r3], %r5;
        bar.arrive 1, 64;
        bar.arrive 2, 64;
        bra $end;
    $consumer:
        bar.sync %r1, 64;
        ld.shared.u32 %r6, [%r3];
    $end:
        cvt.u64.u32 %d3, %r6;
        st.global.u64 [%d2], %d3;";
    for policy in POLICIES {
        let run = Run { threads: 128, ..Run::policy(policy) };
        let expected: Vec<u64> = (0..128).map(|i| if matches!(i / 32, 1 | 2) { i % 32 * 3 } else { 5 }).collect();
        assert_eq!(run.good(&module(shared, body), 128, &[]), expected);
    }
}
