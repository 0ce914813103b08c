//! Stack allocation in kernels: `alloca`, `stacksave`, `stackrestore`.

use super::kit::{POLICIES, Run, module_for};
use runtime::ptx::Check;

/// Runs `body` under both policies, and returns `out` and the violated checks.
fn run(globals: &str, body: &str) -> (Vec<u64>, Vec<(Check, String)>) {
    let text = module_for("7.3", "sm_61", globals, body);
    let [a, b] = POLICIES.map(|policy| {
        let (outcome, words) = Run::policy(policy).of(&text, 32, &[]);
        (words, outcome.report.findings.into_iter().map(|f| (f.check, f.message)).collect::<Vec<_>>())
    });
    assert_eq!(a, b, "the policies differ\n{text}");
    a
}

#[test]
fn allocations_are_disjoint_and_aligned() {
    // Allocates lane + 1 words, then one byte, then 8 bytes aligned to 256; the first word keeps
    // its value.
    let body = "
        mad.wide.u32 %d3, %r0, 4, 4;
        alloca.u64 %d4, %d3;
        cvt.u64.u32 %d5, %r0;
        st.local.u32 [%d4], %r0;
        alloca.u64 %d6, 1;
        st.local.u8 [%d6], 255;
        alloca.u64 %d7, 8, 256;
        st.local.u64 [%d7], -1;
        ld.local.u32 %r1, [%d4];
        sub.u64 %d8, %d6, %d4;
        setp.ge.u64 %p1, %d8, %d3;
        and.b64 %d9, %d7, 255;
        and.b64 %d10, %d6, 7;
        or.b64 %d9, %d9, %d10;
        setp.eq.and.u64 %p1, %d9, 0, %p1;
        selp.u32 %r2, %r1, -1, %p1;
        cvt.u64.u32 %d11, %r2;
        st.global.u64 [%d2], %d11;";
    assert_eq!(run("", body), ((0..32).collect(), vec![]));
}

#[test]
fn saved_stack_is_restored() {
    let body = "
        stacksave.u64 %d3;
        alloca.u64 %d4, 64;
        stackrestore.u64 %d3;
        alloca.u64 %d5, 64;
        sub.u64 %d6, %d4, %d5;
        st.global.u64 [%d2], %d6;";
    assert_eq!(run("", body), (vec![0; 32], vec![]));
}

/// Checks a function that allocates 4 KiB, called 100 times on a stack of 16 KiB.
#[test]
fn functions_release_their_allocations() {
    let function = "
        .func (.param .b64 r) apart(.param .b64 n)
        {
            .reg .b64 %a<4>;
            ld.param.b64 %a0, [n];
            alloca.u64 %a1, 4096;
            st.local.u64 [%a1+4088], %a0;
            ld.local.u64 %a2, [%a1+4088];
            add.u64 %a2, %a2, 3;
            st.param.b64 [r], %a2;
            ret;
        }";
    let body = "
        mov.u64 %d3, 0;
        mov.u32 %r1, 0;
    $again:
        {
            .param .b64 n;
            .param .b64 r;
            st.param.b64 [n], %d3;
            call (r), apart, (n);
            ld.param.b64 %d3, [r];
        }
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 100;
        @%p1 bra $again;
        st.global.u64 [%d2], %d3;";
    assert_eq!(run(function, body), (vec![300; 32], vec![]));
}

#[test]
fn stack_overflow_is_reported() {
    let body = "
        mul.wide.u32 %d3, %r0, 1024;
        alloca.u64 %d4, %d3;
        st.local.u64 [%d4], 1;";
    let (_, found) = run("", body);
    let [(check, message)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(*check, Check::UndefinedValue);
    assert_eq!(
        message,
        "has an address that is undefined because of `alloca.u64 %d4, %d3` in line 21: the stack, by default of 16 KiB \
         for each thread, has no room for it"
    );
    // New stack memory is uninitialized, whatever was stored there before.
    let (_, found) = run("", "alloca.u64 %d4, 8;\nld.local.u64 %d5, [%d4];");
    assert_eq!(found[0].0, Check::UninitializedLocal);
    assert!(found[0].1.contains("of `the stack`"), "{}", found[0].1);
}
