//! Divergence and reconvergence of lanes, under both policies.

use super::kit::{POLICIES, Run, found, lanes, module, program};
use runtime::ptx::Check;

#[test]
fn sides_of_nested_branches_reconverge() {
    let body = "
        and.b32 %r1, %r0, 1;
        setp.eq.u32 %p0, %r1, 0;
        and.b32 %r2, %r0, 2;
        setp.eq.u32 %p1, %r2, 0;
        mov.u32 %r3, 0;
        @%p0 bra $even;
        @%p1 bra $inner;
        add.u32 %r3, %r3, 100;
        bra $joined;
    $inner:
        add.u32 %r3, %r3, 10;
    $joined:
        activemask.b32 %r4;
        bra $end;
    $even:
        add.u32 %r3, %r3, 1;
        mov.u32 %r4, 0;
    $end:
        activemask.b32 %r5;
        setp.eq.u32 %p2, %r5, 0xffffffff;
        selp.u32 %r6, 1000, 0, %p2;
        popc.b32 %r4, %r4;
        add.u32 %r3, %r3, %r6;
        mad.lo.u32 %r3, %r4, 10000, %r3;
        cvt.u64.u32 %d3, %r3;
        st.global.u64 [%d2], %d3;
        ret;";
    let expected = |i: u64| match i {
        i if i % 2 == 0 => 1001,
        i if i & 2 == 0 => 161_010,
        _ => 161_100,
    };
    assert_eq!(lanes("", body), (0..32).map(expected).collect::<Vec<_>>());
}

#[test]
fn lanes_leave_a_loop_one_by_one_and_reconverge_after_it() {
    let body = "
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
    $loop:
        add.u32 %r2, %r2, %r1;
        add.u32 %r1, %r1, 1;
        and.b32 %r3, %r1, 3;
        setp.eq.u32 %p1, %r3, 0;
        @%p1 bra $skip;
        add.u32 %r2, %r2, 1000;
    $skip:
        setp.le.u32 %p0, %r1, %r0;
        @%p0 bra $loop;
        activemask.b32 %r4;
        popc.b32 %r4, %r4;
        mad.lo.u32 %r2, %r4, 1000000, %r2;
        cvt.u64.u32 %d3, %r2;
        st.global.u64 [%d2], %d3;
        ret;";
    let expected = |i: u64| (0..=i).map(|k| k + if (k + 1) % 4 == 0 { 0 } else { 1000 }).sum::<u64>() + 32_000_000;
    assert_eq!(lanes("", body), (0..32).map(expected).collect::<Vec<_>>());
}

#[test]
fn sides_reconverge_on_a_path_that_ends_early_in_the_code() {
    let body = "
        mov.u32 %r1, 0;
        setp.lt.u32 %p0, %r0, 40;
        @!%p0 bra $otherwise;
        setp.eq.u32 %p1, %r0, 3;
        @!%p1 bra $met;
        mov.u32 %r1, 7;
    $met:
        bar.warp.sync 0xffffffff;
        activemask.b32 %r2;
        popc.b32 %r2, %r2;
        mad.lo.u32 %r1, %r2, 100, %r1;
        cvt.u64.u32 %d3, %r1;
        st.global.u64 [%d2], %d3;
        bra $end;
    $otherwise:
        setp.eq.u32 %p2, %r0, 50;
        @%p2 bra $end;
        st.global.u64 [%d2], %d0;
    $end:
        ret;";
    let expected = |i: u64| if i == 3 { 3207 } else { 3200 };
    assert_eq!(lanes("", body), (0..32).map(expected).collect::<Vec<_>>());
}

#[test]
fn ended_lanes_do_not_delay_others() {
    // Some lanes return at once, some by a branch to the end, some from inside a loop. The others
    // meet at the barrier.
    let body = "
        cvt.u64.u32 %d3, %r0;
        setp.lt.u32 %p0, %r0, 4;
        @%p0 ret;
        setp.gt.u32 %p1, %r0, 27;
        @%p1 bra $end;
        mov.u32 %r1, 0;
    $loop:
        setp.eq.u32 %p2, %r0, 10;
        @!%p2 bra $on;
        st.global.u64 [%d2], 77;
        exit;
    $on:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p3, %r1, %r0;
        @%p3 bra $loop;
        bar.sync 0;
        bar.warp.sync 0xffffffff;
        activemask.b32 %r2;
        cvt.u64.u32 %d3, %r2;
        st.global.u64 [%d2], %d3;
    $end:
        ret;";
    let active = (4..28).filter(|i| *i != 10).fold(0u64, |m, i| m | 1 << i);
    let expected: Vec<u64> = (0..32)
        .map(|i| match i {
            10 => 77,
            4..28 => active,
            _ => u64::MAX,
        })
        .collect();
    assert_eq!(lanes("", body), expected);
}

#[test]
fn branches_follow_an_index() {
    let body = "
        rem.u32 %r1, %r0, 3;
        $list: .branchtargets $a, $b, $c;
        brx.idx %r1, $list;
    $a:
        mov.u64 %d3, 10;
        bra $end;
    $b:
        mov.u64 %d3, 20;
        bra $end;
    $c:
        mov.u64 %d3, 30;
    $end:
        activemask.b32 %r2;
        popc.b32 %r2, %r2;
        cvt.u64.u32 %d4, %r2;
        add.u64 %d3, %d3, %d4;
        st.global.u64 [%d2], %d3;
        ret;";
    assert_eq!(lanes("", body), (0..32).map(|i| 42 + 10 * (i % 3)).collect::<Vec<_>>());
}

#[test]
fn calls_pass_bytes_and_registers() {
    let functions = "
        .func (.param .b64 result) twice(.param .b64 x)
        {
            .reg .b64 %a<3>;
            ld.param.u64 %a0, [x];
            shl.b64 %a1, %a0, 1;
            st.param.b64 [result], %a1;
            ret;
        }
        .func (.reg .b32 %result) larger(.reg .b32 %x, .reg .b32 %y)
        {
            .reg .pred %q;
            setp.gt.u32 %q, %x, %y;
            @%q bra $first;
            mov.u32 %result, %y;
            ret;
        $first:
            mov.u32 %result, %x;
            ret;
        }
        .func (.param .align 8 .b8 pair[16]) both(.param .align 8 .b8 of[16])
        {
            .reg .b64 %a<4>;
            ld.param.v2.u64 {%a0, %a1}, [of];
            add.u64 %a2, %a0, %a1;
            {
                .param .b64 handed;
                .param .b64 back;
                st.param.b64 [handed], %a2;
                call (back), twice, (handed);
                ld.param.b64 %a3, [back];
            }
            st.param.b64 [pair], %a3;
            st.param.b64 [pair+8], %a0;
            ret;
        }";
    let body = "
        call (%r1), larger, (%r0, 20);
        cvt.u64.u32 %d3, %r1;
        cvt.u64.u32 %d4, %r0;
        .param .align 8 .b8 handed[16];
        .param .align 8 .b8 back[16];
        st.param.b64 [handed], %d3;
        st.param.b64 [handed+8], %d4;
        setp.lt.u32 %p0, %r0, 30;
        mov.u64 %d5, 5;
        mov.u64 %d6, 6;
        @%p0 bra $call;
        bra $end;
    $call:
        call.uni (back), both, (handed);
        ld.param.b64 %d5, [back];
        ld.param.b64 %d6, [back+8];
    $end:
        mad.lo.u64 %d7, %d6, 1000, %d5;
        st.global.u64 [%d2], %d7;
        ret;";
    let expected = |i: u64| {
        let larger = i.max(20);
        if i < 30 { larger * 1000 + 2 * (larger + i) } else { 6005 }
    };
    assert_eq!(lanes(functions, body), (0..32).map(expected).collect::<Vec<_>>());
}

#[test]
fn indirect_calls_reach_their_function() {
    let functions = "
        .func (.reg .b32 %y) inc(.reg .b32 %x) { add.u32 %y, %x, 1; ret; }
        .func (.reg .b32 %y) dbl(.reg .b32 %x) { add.u32 %y, %x, %x; ret; }
        .func (.reg .b64 %y) other(.reg .b64 %x) { mov.u64 %y, %x; ret; }
        .global .align 8 .u64 table[3] = {inc, dbl, other};";
    let body = "
        $proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);
        and.b32 %r1, %r0, 1;
        mov.u64 %d3, table;
        mad.wide.u32 %d3, %r1, 8, %d3;
        ld.global.u64 %d4, [%d3];
        call (%r2), %d4, (%r0), $proto;
        activemask.b32 %r3;
        popc.b32 %r3, %r3;
        mad.lo.u32 %r2, %r3, 1000, %r2;
        cvt.u64.u32 %d5, %r2;
        st.global.u64 [%d2], %d5;
        ret;";
    let expected = |i: u64| 32_000 + if i & 1 == 0 { i + 1 } else { 2 * i };
    assert_eq!(lanes(functions, body), (0..32).map(expected).collect::<Vec<_>>());
    // The third function has another signature.
    let wrong = body.replace("and.b32 %r1, %r0, 1;", "mov.u32 %r1, 2;");
    let findings = super::kit::found(functions, &wrong);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].1.contains("not among its possible callees"), "{findings:?}");
}

#[test]
fn calls_of_undefined_functions_are_rejected() {
    let refused = |body: &str| super::kit::decode(&module(".func other();", body)).unwrap_err().to_string();
    let missing = refused("call other;\nret;");
    assert!(missing.contains("the interpreter does not provide `other`"), "{missing}");
    assert!(missing.contains("line"), "{missing}");
}

#[test]
fn missing_entry_is_rejected_with_a_list() {
    let module = kernel_dsl::compiler::ptx::parse(&module("", "ret;")).unwrap();
    let refused = runtime::ptx::Program::decode(&module, "main").unwrap_err();
    assert!(refused.to_string().contains("the module does not define it; it has kernel"), "{refused}");
    assert_eq!(program(&super::kit::module("", "ret;")).parameters().len(), 2);
}

#[test]
fn end_of_a_body_is_a_return() {
    assert_eq!(lanes("", "st.global.u64 [%d2], 3;"), [3; 32]);
}

/// Checks that lanes reconverge at a barrier although traps follow the last `ret`. Only one side
/// reaches a trap, so lanes do not reconverge there.
#[test]
pub fn lanes_reconverge_before_a_barrier_although_a_trap_follows() {
    let body = |flag: u32| {
        format!(
            ".shared .align 8 .u64 s[1];
             setp.ne.u32 %p0, %r0, 0;
             @%p0 bra $join;
             mov.u32 %r1, {flag};
             setp.eq.u32 %p1, %r1, 0;
             @%p1 bra $die1;
             st.shared.u64 [s], 77;
             bra.uni $join;
         $join:
             bar.sync 0;
             setp.eq.u32 %p2, {flag}, 0;
             @%p2 bra $die2;
             ld.shared.u64 %d3, [s];
             st.global.u64 [%d2], %d3;
             ret;
         $die2:
             trap;
             exit;
         $die1:
             trap;
             exit;"
        )
    };
    for threads in [32, 64] {
        for policy in POLICIES {
            let run = Run { threads, ..Run::policy(policy) };
            let words = run.good(&module("", &body(1)), threads as usize, &[]);
            assert_eq!(words, vec![77; threads as usize], "{policy:?}");
        }
    }
    assert_eq!(found("", &body(0)).iter().map(|f| f.0).collect::<Vec<_>>(), [Check::Trap]);
}

/// Checks bounds checks as Rust writes them: with `trap`, with `exit` or `ret`, and with a store
/// before the trap.
#[test]
pub fn lanes_reconverge_past_bounds_checks() {
    for leave in ["trap;", "exit;", "ret;", "st.global.u64 [%d2], 1;\nret;", "st.global.u64 [%d2], 1;\nexit;"] {
        for shared in [false, true] {
            // The second check branches to the end block of the first one, or to a separate one.
            let second = if shared { "$die" } else { "$die2" };
            let ladder = format!(
                "mov.u32 %r1, %r0;
                 mov.u32 %r2, 63;
                 setp.lt.u32 %p0, %r0, 4;
                 @!%p0 bra $join;
                 setp.gt.u32 %p1, %r0, %r2;
                 @%p1 bra $die;
                 add.u32 %r1, %r1, 100;
             $join:
                 setp.gt.u32 %p1, %r2, 1000;
                 @%p1 bra {second};
                 shfl.sync.down.b32 %r3, %r1, 1, 31, -1;
                 vote.sync.ballot.b32 %r4, %p0, -1;
                 mov.b64 %d3, {{%r3, %r4}};
                 st.global.u64 [%d2], %d3;
                 ret;
             $die2:
                 {leave}
             $die:
                 {leave}"
            );
            let value = |i: u64| if i < 4 { i + 100 } else { i };
            let expected: Vec<u64> = (0..32).map(|i| value((i + 1).min(31)) | 0xf << 32).collect();
            assert_eq!(lanes("", &ladder), expected, "{leave} {shared}");
        }
        let in_a_loop = format!(
            "mov.u32 %r1, 0;
             mov.u32 %r2, 0;
             mov.u32 %r5, 63;
         $loop:
             setp.ge.u32 %p0, %r2, %r0;
             @%p0 bra $end;
             setp.gt.u32 %p1, %r2, %r5;
             @%p1 bra $die;
             add.u32 %r1, %r1, %r2;
             add.u32 %r2, %r2, 1;
             bra $loop;
         $end:
             shfl.sync.down.b32 %r3, %r1, 1, 31, -1;
             cvt.u64.u32 %d3, %r3;
             st.global.u64 [%d2], %d3;
             ret;
         $die:
             {leave}"
        );
        let sum = |i: u64| i * i.saturating_sub(1) / 2;
        assert_eq!(lanes("", &in_a_loop), (0..32).map(|i| sum((i + 1).min(31))).collect::<Vec<_>>(), "{leave}");
    }
}

/// Checks lanes that vote among themselves and end, inside a loop that the other lanes run
/// together.
#[test]
fn lanes_that_end_in_a_loop_leave_the_others_converged() {
    let body = "
        mov.u32 %r1, 0;
        mov.u32 %r5, %r0;
    $loop:
        and.b32 %r2, %r0, 1;
        setp.eq.u32 %p0, %r2, 0;
        @%p0 bra $join;
        add.u32 %r3, %r1, 28;
        setp.ge.u32 %p1, %r0, %r3;
        @!%p1 bra $join;
        activemask.b32 %r4;
        cvt.u64.u32 %d3, %r4;
        st.global.u64 [%d2], %d3;
        ret;
    $join:
        setp.eq.u32 %p2, %r0, %r0;
        vote.sync.ballot.b32 %r4, %p2, -1;
        add.u32 %r5, %r5, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p3, %r1, 3;
        @%p3 bra $loop;
        cvt.u64.u32 %d3, %r5;
        st.global.u64 [%d2], %d3;
        ret;";
    // Lanes 29 and 31 end in the first iteration.
    let left = 0x5fff_ffffu32;
    let expected = |i: u32| match i {
        29 | 31 => 0xa000_0000,
        i => i.wrapping_add(left.wrapping_mul(3)).into(),
    };
    assert_eq!(lanes("", body), (0..32).map(expected).collect::<Vec<u64>>());
}
