//! Shuffles, votes and barriers.

use super::kit::{POLICIES, Run, found, lanes, module, module_for};
use runtime::ptx::Check;

/// Computes lane `i`'s result of a shuffle of the lane numbers + 100, and whether its source is in
/// range.
fn shuffled(mode: &str, i: u64, n: u64, width: u64) -> (u64, bool) {
    let (first, last) = (i / width * width, i / width * width + width - 1);
    let source = match mode {
        "up" => (i >= first + n).then(|| i - n),
        "down" => (i + n <= last).then_some(i + n),
        // Only sources in a higher segment are out of range.
        "bfly" => (i ^ n <= last).then_some(i ^ n),
        _ => Some(first + n % width),
    };
    (source.unwrap_or(i) + 100, source.is_some())
}

#[test]
fn shuffles_read_lanes_by_mode_distance_and_width() {
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
fn votes_count_predicates_of_lanes() {
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

/// Runs an instruction on `%r2`, or on `%d4`, and returns each lane's results. `%r2` is (7 · lane
/// mod 5) − 2, and the upper half of `%d4` is the lane mod 2.
fn gathered(instruction: &str) -> Vec<u64> {
    let body = format!(
        "mul.lo.u32 %r1, %r0, 7;
         rem.u32 %r1, %r1, 5;
         sub.u32 %r2, %r1, 2;
         and.b32 %r3, %r0, 1;
         mov.b64 %d4, {{%r2, %r3}};
         mov.u32 %r4, 0;
         setp.ne.u32 %p0, 0, 0;
         {instruction}
         selp.u32 %r5, 1, 0, %p0;
         mov.b64 %d3, {{%r4, %r5}};
         st.global.u64 [%d2], %d3;"
    );
    let run = Run { threads: 32, ..Run::policy(POLICIES[0]) };
    run.good(&module_for("7.0", "sm_80", "", &body), 32, &[])
}

#[test]
fn matches_and_reductions_agree_with_rust() {
    let value = |lane: u64| ((lane * 7 % 5) as u32).wrapping_sub(2);
    let all = || (0..32).map(value);
    let same = |f: &dyn Fn(u64, u64) -> bool| -> Vec<u64> {
        (0..32).map(|own| (0..32).filter(|l| f(*l, own)).fold(0, |mask, l| mask | 1 << l)).collect()
    };
    assert_eq!(gathered("match.any.sync.b32 %r4, %r2, 0xffffffff;"), same(&|a, b| value(a) == value(b)));
    let wide = same(&|a, b| value(a) == value(b) && a % 2 == b % 2);
    assert_eq!(gathered("match.any.sync.b64 %r4, %d4, 0xffffffff;"), wide);
    assert_eq!(gathered("match.all.sync.b32 %r4|%p0, %r2, 0xffffffff;"), [0; 32]);
    assert_eq!(gathered("match.all.sync.b32 %r4|%p0, 7, 0xffffffff;"), [0x1_ffff_ffff; 32]);
    let each = |instruction: &str, expected: u32| {
        assert_eq!(
            gathered(&format!("{instruction} %r4, %r2, 0xffffffff;")),
            [u64::from(expected); 32],
            "{instruction}"
        );
    };
    each("redux.sync.add.u32", all().fold(0, u32::wrapping_add));
    each("redux.sync.add.s32", all().fold(0, u32::wrapping_add));
    each("redux.sync.min.u32", all().min().unwrap());
    each("redux.sync.min.s32", all().map(|x| x as i32).min().unwrap() as u32);
    each("redux.sync.max.u32", all().max().unwrap());
    each("redux.sync.max.s32", all().map(|x| x as i32).max().unwrap() as u32);
    each("redux.sync.and.b32", all().fold(u32::MAX, |a, b| a & b));
    each("redux.sync.or.b32", all().fold(0, |a, b| a | b));
    each("redux.sync.xor.b32", all().fold(0, |a, b| a ^ b));
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
fn warps_synchronize_by_barriers_of_some_threads() {
    // Warp 0 produces and does not wait. Warps 1 and 2 wait for it at barriers of 64 threads; warp
    // 3 does not take part.
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

/// Checks shuffles against the manual's pseudocode, with a different distance and bounds in each
/// lane.
#[test]
fn shuffles_follow_the_operands_of_each_lane() {
    let (b, c) = (|i: u64| i * 29 % 64, |i: u64| (i * 0x537 + 11) & 0x1f1f);
    for (form, last) in [("shfl.sync", ", 0xffffffff"), ("shfl", "")] {
        for mode in ["up", "down", "bfly", "idx"] {
            let body = format!(
                "mul.lo.u32 %r1, %r0, 29;
                 and.b32 %r1, %r1, 63;
                 mad.lo.u32 %r2, %r0, 0x537, 11;
                 and.b32 %r2, %r2, 0x1f1f;
                 add.u32 %r3, %r0, 100;
                 {form}.{mode}.b32 %r4|%p0, %r3, %r1, %r2{last};
                 selp.u32 %r5, 1000, 0, %p0;
                 add.u32 %r4, %r4, %r5;
                 cvt.u64.u32 %d3, %r4;
                 st.global.u64 [%d2], %d3;"
            );
            let expected = (0..32u64).map(|lane| {
                let (distance, clamp, mask) = (b(lane) & 31, c(lane) & 31, c(lane) >> 8 & 31);
                let most = lane & mask | clamp & !mask & 31;
                let (source, inside) = match mode {
                    "up" => (lane.wrapping_sub(distance), lane as i64 - distance as i64 >= most as i64),
                    "down" => (lane + distance, lane + distance <= most),
                    "bfly" => (lane ^ distance, lane ^ distance <= most),
                    _ => (lane & mask | distance & !mask & 31, lane & mask | distance & !mask & 31 <= most),
                };
                let source = if inside { source } else { lane };
                source + 100 + if inside { 1000 } else { 0 }
            });
            assert_eq!(lanes("", &body), expected.collect::<Vec<_>>(), "{form}.{mode}");
        }
    }
}

/// Checks that votes without `.sync` count the active lanes.
#[test]
fn votes_without_sync_count_the_active_lanes() {
    let body = "
        setp.lt.u32 %p0, %r0, 12;
        setp.ge.u32 %p1, %r0, 8;
        mov.u32 %r3, 0;
        @!%p1 bra $end;
        vote.ballot.b32 %r1, %p0;
        vote.all.pred %p2, %p1;
        vote.any.pred %p3, !%p1;
        vote.uni.pred %p4, %p0;
        selp.u32 %r3, 1, 0, %p2;
        selp.u32 %r4, 2, 0, %p3;
        selp.u32 %r5, 4, 0, %p4;
        or.b32 %r3, %r3, %r4;
        or.b32 %r3, %r3, %r5;
        mad.lo.u32 %r3, %r1, 8, %r3;
    $end:
        cvt.u64.u32 %d3, %r3;
        st.global.u64 [%d2], %d3;";
    let expected = (0..32).map(|lane| if lane < 8 { 0 } else { 0xf00 * 8 + 1 });
    assert_eq!(lanes("", body), expected.collect::<Vec<_>>());
}

/// Checks that `barrier` and the forms with `.cta` are equivalent to `bar`.
#[test]
fn names_of_barriers_are_equivalent() {
    for (name, aligned) in
        [("bar", ""), ("bar.cta", ""), ("barrier", ""), ("barrier", ".aligned"), ("barrier.cta", ".aligned")]
    {
        // The second warp takes the values that the first one stored; then both warps count.
        let body = format!(
            "mov.u32 %r3, box;
             shl.b32 %r4, %r0, 2;
             add.u32 %r5, %r3, %r4;
             st.shared.u32 [%r5], %r0;
             {name}.sync{aligned} 3;
             xor.b32 %r4, %r4, 128;
             add.u32 %r5, %r3, %r4;
             ld.shared.u32 %r6, [%r5];
             setp.lt.u32 %p0, %r0, 40;
             {name}.red.popc{aligned}.u32 %r7, 4, 64, %p0;
             {name}.red.and{aligned}.pred %p1, 5, %p0;
             {name}.red.or{aligned}.pred %p2, 6, 64, !%p0;
             selp.u32 %r8, 100, 0, %p1;
             selp.u32 %r9, 200, 0, %p2;
             add.u32 %r7, %r7, %r8;
             add.u32 %r7, %r7, %r9;
             mad.lo.u32 %r7, %r6, 1000, %r7;
             cvt.u64.u32 %d3, %r7;
             st.global.u64 [%d2], %d3;"
        );
        let text = module_for("7.8", "sm_61", ".shared .align 4 .b8 box[256];", &body);
        for policy in POLICIES {
            let run = Run { threads: 64, ..Run::policy(policy) };
            let expected: Vec<u64> = (0..64).map(|i| (i ^ 32) * 1000 + 40 + 200).collect();
            assert_eq!(run.good(&text, 64, &[]), expected, "{name}{aligned}");
        }
    }
}

/// Member masks that differ between lanes, where each lane's mask contains the lane: halves,
/// residue classes, and single lanes among others.
const MEMBERS: [fn(u64) -> u64; 4] = [
    |lane| 0xffff << (lane & 16),
    |lane| 0x1111_1111 << (lane & 3),
    |lane| if lane % 5 == 0 { 1 << lane } else { (0..32).filter(|l| l % 5 != 0).fold(0, |mask, l| mask | 1 << l) },
    |lane| if lane < 12 { 0xfff } else { 0xffff_f000 },
];

/// Runs `body` for each of [`MEMBERS`], with the mask in `%r8`. Compares each lane's result with
/// `expected` of the lane and its members.
///
/// Before `body`, the lanes stay together, or diverge in one of two ways.
fn by_members(version: &str, target: &str, instruction: &str, expected: impl Fn(u64, &[u64]) -> u64) {
    for (sort, members) in MEMBERS.iter().enumerate() {
        let input: Vec<u64> = (0..32).map(members).collect();
        for delay in ["", "setp.lt.u32 %p5, %r0, 16;", "and.b32 %r4, %r0, 3;\nsetp.gt.u32 %p5, %r4, 1;"] {
            let delay = match delay {
                "" => String::new(),
                condition => format!("{condition}\n@%p5 bra $late;\nxor.b32 %r1, %r1, 0;\n$late:\n"),
            };
            let body = format!(
                "mad.wide.u32 %d3, %r0, 8, %d1;
                 ld.global.u32 %r8, [%d3];
                 mul.lo.u32 %r1, %r0, 7;
                 rem.u32 %r1, %r1, 3;
                 sub.u32 %r1, %r1, 1;
                 setp.eq.u32 %p0, %r1, 0;
                 {delay}{instruction}
                 cvt.u64.u32 %d4, %r2;
                 st.global.u64 [%d2], %d4;"
            );
            let text = module_for(version, target, "", &body);
            for policy in POLICIES {
                let words = Run::policy(policy).good(&text, 32, &input);
                let right = (0..32u64).map(|lane| {
                    let members: Vec<u64> = (0..32).filter(|l| input[lane as usize] >> l & 1 == 1).collect();
                    expected(lane, &members)
                });
                assert_eq!(words, right.collect::<Vec<_>>(), "{sort} {policy:?}\n{text}");
            }
        }
    }
}

/// Returns the value that [`by_members`] gives a lane in `%r1`.
fn value(lane: u64) -> u32 {
    ((lane * 7 % 3) as u32).wrapping_sub(1)
}

#[test]
pub fn votes_cover_the_lanes_own_members() {
    let holds = |lane: &u64| value(*lane) == 0;
    let vote = |mode: &str, expected: fn(usize, usize) -> bool| {
        let instruction = format!("vote.sync.{mode}.pred %p1, %p0, %r8;\nselp.u32 %r2, 1, 0, %p1;");
        by_members("6.4", "sm_61", &instruction, move |_, members| {
            expected(members.iter().filter(|lane| holds(lane)).count(), members.len()).into()
        });
    };
    vote("all", |ayes, all| ayes == all);
    vote("any", |ayes, _| ayes > 0);
    vote("uni", |ayes, all| ayes == 0 || ayes == all);
    by_members("6.4", "sm_61", "vote.sync.ballot.b32 %r2, %p0, %r8;", |_, members| {
        members.iter().filter(|lane| holds(lane)).fold(0, |mask, lane| mask | 1 << lane)
    });
}

#[test]
fn shuffles_and_barriers_follow_the_masks_of_lanes() {
    // Reads from the next member, cyclically.
    let next = "mov.u32 %r4, %lanemask_gt;
        and.b32 %r4, %r4, %r8;
        setp.eq.u32 %p3, %r4, 0;
        selp.b32 %r4, %r8, %r4, %p3;
        brev.b32 %r4, %r4;
        clz.b32 %r4, %r4;
        bar.warp.sync %r8;
        shfl.sync.idx.b32 %r2, %r0, %r4, 31, %r8;";
    by_members("6.4", "sm_61", next, |lane, members| {
        let at = members.iter().position(|member| *member == lane).unwrap();
        members[(at + 1) % members.len()]
    });
}

#[test]
pub fn matches_and_reductions_follow_the_masks_of_lanes() {
    let bits = |members: &[u64], of: &dyn Fn(u64) -> bool| {
        members.iter().filter(|lane| of(**lane)).fold(0u64, |mask, lane| mask | 1 << lane)
    };
    by_members("7.0", "sm_80", "match.any.sync.b32 %r2, %r1, %r8;", |lane, members| {
        bits(members, &|other| value(other) == value(lane))
    });
    by_members("7.0", "sm_80", "match.all.sync.b32 %r2|%p1, %r1, %r8;", |_, members| {
        if members.iter().all(|lane| value(*lane) == value(members[0])) { bits(members, &|_| true) } else { 0 }
    });
    let redux = |mode: &str, expected: fn(u32, u32) -> u32| {
        by_members("7.0", "sm_80", &format!("redux.sync.{mode} %r2, %r1, %r8;"), move |_, members| {
            members.iter().map(|lane| value(*lane)).reduce(expected).unwrap().into()
        });
    };
    redux("add.s32", u32::wrapping_add);
    redux("min.u32", u32::min);
    redux("max.s32", |a, b| (a as i32).max(b as i32) as u32);
    redux("and.b32", |a, b| a & b);
    redux("or.b32", |a, b| a | b);
    redux("xor.b32", |a, b| a ^ b);
}

/// Checks that one set of lanes continues while another waits for its missing lanes, which must
/// first interact with the first set. Independent thread scheduling, as from Volta on, makes this
/// possible.
#[test]
fn sets_of_lanes_do_not_wait_for_each_other() {
    let body = "
        setp.lt.u32 %p0, %r0, 16;
        setp.lt.u32 %p1, %r0, 24;
        selp.b32 %r8, 0x0000ffff, 0xffff0000, %p0;
        mov.u32 %r3, 0;
        bra $first;
    $second:
        vote.sync.ballot.b32 %r2, %p1, 0xff00ffff;
        add.u32 %r3, %r3, %r2;
        @%p0 bra $end;
    $first:
        // Lanes 24 to 31 wait for lanes 0 to 15 before they reach this instruction again.
        setp.ge.u32 %p2, %r0, 24;
        setp.eq.and.u32 %p2, %r3, 0, %p2;
        @%p2 bra $second;
        vote.sync.ballot.b32 %r2, %p1, %r8;
        add.u32 %r3, %r3, %r2;
        @%p0 bra $second;
    $end:
        cvt.u64.u32 %d3, %r3;
        st.global.u64 [%d2], %d3;";
    let run = Run::policy(POLICIES[1]);
    let words = run.good(&module("", body), 32, &[]);
    let expected = |lane: u64| match lane {
        0..16 => 0xffff + 0xffff,
        16..24 => 0x00ff_0000,
        _ => 0xffff + 0x00ff_0000,
    };
    assert_eq!(words, (0..32).map(expected).collect::<Vec<_>>());
}

/// Checks votes with contradictory member masks. Each lane's result counts only the members in its
/// own mask, as in sm_61 machine code, and the contradiction is reported.
#[test]
fn contradictory_members_are_reported() {
    let body = "
        setp.lt.u32 %p0, %r0, 16;
        setp.eq.u32 %p1, %r0, 3;
        selp.b32 %r8, 0x0000000f, 0x0000ffff, %p1;
        @!%p0 bra $end;
        vote.sync.ballot.b32 %r2, %p0, %r8;
        cvt.u64.u32 %d3, %r2;
        st.global.u64 [%d2], %d3;
    $end:
        ret;";
    let findings = found("", body);
    assert_eq!(findings.iter().map(|f| f.0).collect::<Vec<_>>(), [Check::DivergentWarp]);
    assert_eq!(
        findings[0].1,
        "is executed by lanes 0x0000ffff together; its members are 0x0000ffff in lane 0, and of these 0x0000ffff have \
         not ended; lanes 0x00000008 of them name others"
    );
    let (_, words) = Run::default().of(&module("", body), 32, &[]);
    let expected = |lane: u64| match lane {
        3 => 0xf,
        0..16 => 0xffff,
        _ => u64::MAX,
    };
    assert_eq!(words, (0..32).map(expected).collect::<Vec<_>>());
    // A lane that is not among its members.
    let body = "setp.lt.u32 %p0, %r0, 16;\nvote.sync.all.pred %p1, %p0, 0x000000ff;";
    assert_eq!(found("", body).iter().map(|f| f.0).collect::<Vec<_>>(), [Check::DivergentWarp]);
}
