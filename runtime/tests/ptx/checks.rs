//! Each check on PTX that violates it, and the report.

use super::kit::{Run, found, module};
use runtime::ptx::{BranchPolicy, Check, Options};

/// Returns the message of the only finding of a body, which must be of that check.
fn only(globals: &str, body: &str, check: Check) -> String {
    let findings = found(globals, body);
    assert_eq!(findings.iter().map(|f| f.0).collect::<Vec<_>>(), [check], "{findings:?}");
    findings[0].1.clone()
}

#[test]
fn accesses_beyond_a_buffer_are_reported() {
    let message = only("", "st.global.u64 [%d2+8], 1;", Check::OutOfBounds);
    assert_eq!(message, "stores 8 bytes at 0 bytes past the end of `out` (256 bytes)");
    let message = only("", "ld.global.u32 %r1, [%d1+-4];", Check::OutOfBounds);
    assert_eq!(message, "loads 4 bytes at 4 bytes before `in` (256 bytes)");
    let message = only("", "mov.u64 %d3, 64;\nld.global.u32 %r1, [%d3];", Check::OutOfBounds);
    assert_eq!(message, "loads 4 bytes at 0x40, which is in no buffer");
    // No index of 32 bits leads from one buffer to another.
    let message =
        only("", "mov.u32 %r1, -1;\nmad.wide.u32 %d3, %r1, 8, %d0;\nld.global.u32 %r2, [%d3];", Check::OutOfBounds);
    assert!(message.contains("past the end of `out`"), "{message}");
}

#[test]
fn accesses_between_variables_are_reported() {
    let globals = ".shared .align 4 .u32 first[4];\n.shared .align 4 .u32 second[4];";
    let message = only(globals, "mov.u32 %r1, first;\nst.shared.u32 [%r1+16], 1;", Check::OutOfBounds);
    assert_eq!(message, "stores 4 bytes at 0 bytes past the end of `first` (16 bytes)");
    // The launch determines the size of the last variable.
    let text = module(".extern .shared .align 4 .b8 d[];", "mov.u32 %r1, d;\nst.shared.u32 [%r1+64], 1;");
    let (outcome, _) = Run { dynamic_shared: 64, ..Run::default() }.of(&text, 32, &[]);
    assert_eq!(outcome.report.findings[0].message, "stores 4 bytes at 0 bytes past the end of `d` (64 bytes)");
    let body = ".local .align 4 .b8 own[8];\nmov.u32 %r1, own;\nst.local.u32 [%r1+8], 1;";
    assert!(only("", body, Check::OutOfBounds).contains("`own`"));
}

#[test]
fn misaligned_addresses_are_reported() {
    let message = only("", "ld.global.v2.u32 {%r1, %r2}, [%d1+4];", Check::Misaligned);
    assert!(message.contains("loads 8 bytes at 0x") && message.ends_with("byte 4 of `in` (256 bytes)"), "{message}");
}

#[test]
fn addresses_of_another_space_are_reported() {
    let globals = ".shared .align 4 .u32 cell;\n.const .u32 fixed = 3;";
    let take = "mov.u64 %d3, cell;\ncvta.shared.u64 %d3, %d3;\n";
    let message = only(globals, &format!("{take}ld.global.u32 %r1, [%d3];"), Check::WrongSpace);
    assert!(message.contains("loads 4 bytes of global memory at 0x"), "{message}");
    only(globals, "mov.u64 %d3, fixed;\nld.global.u32 %r1, [%d3];", Check::WrongSpace);
    // The generic address of a buffer has no equivalent in shared memory.
    let message = only(globals, "cvta.to.shared.u64 %d3, %d0;\nld.shared.u32 %r1, [%d3];", Check::UndefinedValue);
    assert!(message.contains("has an address that is undefined") && message.contains("not of that space"), "{message}");
}

#[test]
fn stores_to_read_only_memory_are_reported() {
    assert!(only("", "st.global.u32 [%d1], 1;", Check::ReadOnlyWrite).contains("byte 0 of `in`"));
    only(".const .u32 fixed = 3;", "mov.u64 %d3, fixed;\nst.u32 [%d3], 1;", Check::ReadOnlyWrite);
}

#[test]
fn uses_of_unwritten_values_are_reported() {
    let message =
        only("", "add.u32 %r2, %r1, 1;\ncvt.u64.u32 %d3, %r2;\nst.global.u64 [%d2], %d3;", Check::UndefinedValue);
    assert_eq!(message, "stores a value that is undefined because of a register that was never written");
    only("", "@%p1 bra $end;\n$end:\nret;", Check::UndefinedValue);
    assert!(only("", "ld.global.u32 %r1, [%d9];", Check::UndefinedValue).contains("has an address that is undefined"));
    // Half of the lanes write the register, and all lanes use it.
    let body = "setp.lt.u32 %p0, %r0, 16;\n@%p0 mov.u64 %d3, 1;\nst.global.u64 [%d2], %d3;";
    let (outcome, _) = Run::default().of(&module("", body), 32, &[]);
    assert_eq!((outcome.report.findings.len(), outcome.report.findings[0].count), (1, 16));
    assert_eq!(outcome.report.findings[0].thread.thread, [16, 0, 0]);
}

#[test]
fn undefined_values_without_effect_are_not_reported() {
    let body = "
        setp.ne.u32 %p0, %r0, 0;
        div.u32 %r1, 100, %r0;
        selp.u32 %r2, %r1, 7, %p0;
        xor.b32 %r3, %r9, %r9;
        setp.gt.u32 %p1, %r1, 3;
        and.pred %p2, %p0, %p1;
        selp.u32 %r4, 1, 0, %p2;
        add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %r4;
        cvt.u64.u32 %d3, %r2;
        st.global.u64 [%d2], %d3;";
    assert_eq!(found("", body), []);
}

#[test]
fn stored_quotients_by_zero_are_reported() {
    let body = "div.u32 %r1, 100, %r0;\nadd.u32 %r2, %r1, 1;\ncvt.u64.u32 %d3, %r2;\nst.global.u64 [%d2], %d3;";
    let message = only("", body, Check::UndefinedValue);
    assert!(message.contains("because of `div.u32 %r1, 100, %r0` in line 19: it divides by zero"), "{message}");
}

#[test]
fn loads_of_uninitialized_memory_are_reported() {
    let globals = ".shared .align 4 .u32 cells[32];";
    let message = only(globals, "mov.u32 %r1, cells;\nld.shared.u32 %r2, [%r1+4];", Check::UninitializedShared);
    assert_eq!(message, "loads 4 bytes at byte 4 of `cells` (128 bytes), which has not been stored to");
    only("", ".local .align 8 .b8 own[8];\nld.local.v2.u32 {%r2, %r3}, [own];", Check::UninitializedLocal);
    // The copy of a structure with padding after a byte.
    let body = ".local .align 4 .b8 own[8];\nst.local.u8 [own], 1;\nld.local.u32 %r2, [own];";
    let message = only("", body, Check::PartlyUninitialized);
    assert_eq!(
        message,
        "loads 4 bytes at byte 0 of `own` (8 bytes), of which only some bytes have been stored to: a structure's padding, \
         or a mistake"
    );
}

/// Checks vectors whose last element is padding.
#[test]
fn unwritten_elements_of_a_vector_are_reported_at_their_use() {
    let stores = ".local .align 8 .b8 own[8];\nst.local.u32 [own], 21;\nld.local.v2.u32 {%r2, %r3}, [own];\n";
    for (load, value, expected) in [
        ("", "%r2", None),
        (
            "",
            "%r3",
            Some("`ld.local.v2.u32 {%r2, %r3}, [own]` in line 21: nothing has written this element of the vector"),
        ),
        // An element that goes to no register is not loaded.
        ("ld.local.v2.u32 {%r2, _}, [own];\n", "%r2", None),
        ("mov.u32 %r3, 1;\n", "%r3", None),
    ] {
        let text = module("", &format!("{stores}{load}cvt.u64.u32 %d3, {value};\nst.global.u64 [%d2], %d3;"));
        let (outcome, words) = Run::default().of(&text, 32, &[]);
        let findings = &outcome.report.findings;
        match expected {
            None => {
                assert!(findings.is_empty() && words[0] == if value == "%r2" { 21 } else { 1 }, "{}", outcome.report)
            }
            Some(why) => {
                assert_eq!(findings.iter().map(|f| f.check).collect::<Vec<_>>(), [Check::UndefinedValue]);
                assert!(findings[0].message.contains(why), "{}", findings[0].message);
            }
        }
    }
    let shared = ".shared .align 16 .u32 cells[128];";
    let body = "mov.u32 %r1, cells;\nmad.lo.u32 %r1, %r0, 16, %r1;\nst.shared.v2.u32 [%r1], {%r0, %r0};\n\
                st.shared.u32 [%r1+8], 7;\nld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];\n\
                add.u32 %r2, %r2, %r4;\ncvt.u64.u32 %d3, %r2;\nst.global.u64 [%d2], %d3;";
    let (outcome, words) = Run::default().of(&module(shared, body), 32, &[]);
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert_eq!(words[3], 10);
}

#[test]
fn barriers_not_reached_by_all_are_reported() {
    // Each side of the branch waits at a separate barrier.
    let body = "setp.lt.u32 %p0, %r0, 16;\n@%p0 bra $low;\nbar.sync 0;\nbra $end;\n$low:\nbar.sync 1;\n$end:\nret;";
    for policy in super::kit::POLICIES {
        let (outcome, _) = Run::policy(policy).of(&module("", body), 32, &[]);
        let finding = &outcome.report.findings[0];
        assert_eq!(finding.check, Check::DivergentBarrier);
        assert_eq!(finding.message, "is reached by lanes 0xffff0000 of a warp of which 0xffffffff have not ended");
    }
    let waits = module("", "setp.lt.u32 %p0, %r0, 32;\n@%p0 bra $end;\nbar.sync 0, 64;\n$end:\nret;");
    let (outcome, _) = Run { threads: 64, ..Run::default() }.of(&waits, 64, &[]);
    let finding = &outcome.report.findings[0];
    assert_eq!(finding.check, Check::DivergentBarrier);
    assert!(finding.message.contains("warp 0 has ended, warp 1 waits at barrier 0"), "{}", finding.message);
    only("", "add.u32 %r1, %r0, 33;\nbar.sync %r1;", Check::DivergentBarrier);
}

#[test]
fn masks_that_differ_from_the_active_lanes_are_reported() {
    let body = "shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffff;\ncvt.u64.u32 %d3, %r1;\nst.global.u64 [%d2], %d3;";
    let findings = found("", body);
    assert_eq!(findings[0].0, Check::DivergentWarp);
    assert!(findings[0].1.contains("by lanes 0xffffffff together; its members are 0x0000ffff"), "{}", findings[0].1);
    // A source lane outside of the members gives an undefined value, reported at its use.
    let body = "
        setp.lt.u32 %p0, %r0, 16;
        @!%p0 bra $end;
        shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffff;
        add.u32 %r1, %r1, 1;
        cvt.u64.u32 %d3, %r1;
        st.global.u64 [%d2], %d3;
    $end:
        ret;";
    let message = only("", body, Check::UndefinedValue);
    assert!(message.contains("it reads from a lane that takes no part"), "{message}");
}

#[test]
fn loops_without_end_and_traps_are_reported() {
    let text = module("", "$loop:\nadd.u32 %r1, %r0, 1;\nbra $loop;");
    for policy in [BranchPolicy::PostDominator, BranchPolicy::LowestFirst] {
        let run = Run { options: Options { fuel: 1000, policy, ..Options::default() }, ..Run::default() };
        let (outcome, _) = run.of(&text, 32, &[]);
        assert_eq!(outcome.report.findings[0].check, Check::FuelExhausted);
        assert_eq!(outcome.statistics.warp_instructions, 1001);
    }
    // A block that repeats its state is found long before the limit: without and with a load.
    let endless = "an endless loop: registers and memory are again as they were before, so the block never ends";
    for body in [
        "$loop:\nbra $loop;",
        "$loop:\nld.volatile.global.u64 %d4, [%d0];\nsetp.ne.u64 %p0, %d4, 0;\n@%p0 bra $loop;",
        "$loop:\nxor.b32 %r1, %r0, 1;\nbar.sync 0;\nbra $loop;",
    ] {
        let (outcome, _) = Run { threads: 64, ..Run::default() }.of(&module("", body), 64, &[]);
        let finding = &outcome.report.findings[0];
        assert_eq!((finding.check, &finding.message[..]), (Check::FuelExhausted, endless), "{body}");
    }
    // A loop of 2^19 iterations changes a register, and ends.
    let counts = "mov.u32 %r1, 0;\n$loop:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, 524288;\n@%p0 bra $loop;\n\
                  st.global.u64 [%d2], 5;";
    assert_eq!(Run::default().good(&module("", counts), 32, &[])[0], 5);
    assert_eq!(only("", "trap;", Check::Trap), "the kernel traps");
    let message = only("", "brkpt;", Check::Trap);
    assert_eq!(message, "the kernel stops for a debugger, and there is none");
}

#[test]
fn a_report_names_line_comment_and_thread() {
    // Another comment than those of this project's compiler is no source.
    let text = module("", "// +7 y[i] = 1\n// no bar.sync\nst.global.u64 [%d2+8], 1;");
    let (outcome, words) = Run::default().of(&text, 32, &[]);
    assert_eq!(
        outcome.report.to_string(),
        "error[out-of-bounds]: stores 8 bytes at 0 bytes past the end of `out` (256 bytes)\n\
         \u{20} --> PTX of `kernel`:21:1\n\
         \u{20}  |\n\
         21 | st.global.u64 [%d2+8], 1\n\
         \u{20}  | ^^^^^^^^^^^^^^^^^^^^^^^^ thread [31, 0, 0] of block [0, 0, 0] (warp 0, lane 31)\n\
         \u{20}  |\n\
         \u{20}  = note: compiled from: +7 y[i] = 1"
    );
    // The faulty access is suppressed, and the other lanes' accesses are done.
    assert_eq!((words[0], &words[1..]), (u64::MAX, &[1; 31][..]));
}

#[test]
fn launches_that_do_not_fit_are_rejected() {
    use runtime::ptx::{Launch, ParameterValue};
    let program = super::kit::program(&module("", "ret;"));
    let run = |block, parameters| {
        let launch = Launch {
            grid: [1; 3],
            block,
            dynamic_shared: 0,
            buffers: Vec::new(),
            parameters,
            options: Options::default(),
        };
        program.run(launch).unwrap_err().to_string()
    };
    assert_eq!(run([1, 1, 1], vec![]), "`kernel` takes 2 parameters, and 0 are given");
    let wrong =
        run([1025, 1, 1], vec![ParameterValue::Address { buffer: 0, offset: 0 }, ParameterValue::Bytes(vec![0; 4])]);
    assert_eq!(
        wrong,
        "invalid block size [1025, 1, 1]: a block has 1 to 1024 threads\n\
         parameter `out` is the address of a buffer that is not given\n\
         parameter `in` has 8 bytes, and 4 are given"
    );
}

#[test]
fn approximations_are_followed() {
    let body = "
        cvt.rn.f32.u32 %f1, %r0;
        ex2.approx.f32 %f2, %f1;
        mul.rn.f32 %f3, %f2, %f1;
        shfl.sync.idx.b32 %r3, %f3, 4, 31, 0xffffffff;
        .local .align 4 .b8 own[4];
        st.local.u32 [own], %r3;
        ld.local.u32 %r4, [own];
        mov.b64 %d3, {%r4, %r0};
        setp.gt.f32 %p0, %f2, 0f40000000;
        @%p0 st.global.u64 [%d2], %d3;";
    let (outcome, words) = Run::default().of(&module("", body), 32, &[]);
    assert_eq!(words[3], 3 << 32 | u64::from(64f32.to_bits()));
    assert_eq!(outcome.approximate, [0]);
    assert!(outcome.report.verdict() == runtime::ptx::Verdict::Pass);
    assert_eq!(
        outcome.report.findings.iter().map(|f| (f.check, f.message.as_str())).collect::<Vec<_>>(),
        [(
            Check::Approximate,
            "is guarded by a condition that depends on an approximation, `ex2.approx.f32 %f2, %f1` in line 21 (within 2 ulp)"
        )]
    );
    // A value that does not come from an approximation is not marked.
    let exact = module("", "sqrt.rn.f32 %f2, 0f40800000;\nst.global.f32 [%d2], %f2;\nrsqrt.approx.f32 %f3, %f2;");
    assert!(Run::default().of(&exact, 32, &[]).0.approximate.is_empty());
}
