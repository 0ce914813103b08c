//! The checks `global-race` and `shared-race`: small kernels with a race, and their twins that
//! order the same accesses. The expected findings follow from the memory consistency model of the
//! PTX manual.

use super::kit::POLICIES;
use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Check, CheckSet, Checks, Launch, Options, Outcome, ParameterValue, Program};

/// The words of the buffer. The last ones are flags.
const WORDS: usize = 256;

/// Runs a body on blocks of 64 threads. Registers hold addresses: `o` of the buffer, `ob` and `ot`
/// of the words of the block and the thread, `f` of the last 8 words. `st` is that of the thread's
/// word in shared memory. `b` is the block, `n` the number of blocks, and `t` the thread.
fn run(body: &str, grid: u32, options: Options) -> (Outcome, Vec<u32>) {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n
         .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
         .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
         .extern .func (.param .b64 r) malloc(.param .b64 n);
         .extern .func free(.param .b64 p);
         .visible .entry k(.param .u64 out) {{ .reg .b64 o, ob, ot, f, h; .reg .b32 b, t, st, n, v, w; .reg .pred p, q;
         .shared .align 4 .b8 s[1024];
         ld.param.u64 o, [out]; mov.u32 b, %ctaid.x; mov.u32 t, %tid.x; mov.u32 n, %nctaid.x;
         mad.wide.u32 ob, b, 4, o; mad.wide.u32 ot, t, 4, o; add.u64 f, o, 992; mov.u32 st, s; mad.lo.u32 st, t, 4, st;
         {body}\nret; }}"
    );
    let module = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = Program::decode(&module, "k").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut words = vec![0u32; WORDS];
    let bytes = ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut words));
    let outcome = program.run(Launch {
        grid: [grid, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
        buffers: vec![BufferArgument { name: "out".into(), bytes }],
        parameters: vec![ParameterValue::Address { buffer: 0, offset: 0 }],
        options,
    });
    (outcome.unwrap_or_else(|e| panic!("{e}\n{text}")), words)
}

/// Asserts that a body violates `expected` only, or nothing, under both policies.
fn expect(body: &str, grid: u32, cooperative: bool, expected: Option<Check>) {
    for policy in POLICIES {
        let options = Options { races: true, policy, cooperative, ..Options::default() };
        let (outcome, with) = run(body, grid, options);
        let findings = &outcome.report.findings;
        let is_expected = findings.iter().all(|finding| Some(finding.check) == expected);
        assert!(is_expected && findings.is_empty() == expected.is_none(), "{body}\n{}", outcome.report);
        // The check changes no result, and finds nothing unless it is requested.
        let (outcome, without) = run(body, grid, Options { races: false, ..options });
        assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
        assert_eq!(with, without, "{body}");
    }
}

/// Asserts that a body has a race of one kind.
fn races(body: &str, grid: u32, check: Check) {
    expect(body, grid, false, Some(check));
}

/// Asserts that a body has no race.
fn is_ordered(body: &str, grid: u32) {
    expect(body, grid, false, None);
}

#[test]
fn blocks_are_unordered() {
    races("st.global.u32 [o], b;", 4, Check::GlobalRace);
    is_ordered("st.global.u32 [ob], b;", 4);
    // A load of a word that another block stores, before or after.
    let loads = |word: &str| {
        format!(
            "st.global.u32 [ob], 5; {word} mad.wide.u32 h, v, 4, o; ld.global.u32 w, [h]; st.global.u32 [ob+512], w;"
        )
    };
    let next = "add.u32 v, b, 1; rem.u32 v, v, n;";
    races(&loads(next), 4, Check::GlobalRace);
    is_ordered(&format!("{} {}", "setp.ge.u32 p, t, 32; @p ret;", loads("mov.u32 v, b;")), 4);
    // One block, and a barrier does not order blocks.
    is_ordered("st.global.u32 [o], b;", 1);
    races("bar.sync 0; st.global.u32 [o], b; bar.sync 0;", 2, Check::GlobalRace);
    // Different bytes of a word.
    is_ordered("cvt.u64.u32 h, b; add.u64 h, o, h; st.global.u8 [h], 5;", 4);
    // Stores of the same value.
    is_ordered("st.global.u32 [o], 5;", 4);
}

#[test]
fn warps_are_ordered_by_barriers() {
    let exchange = |space: &str, store: &str, barrier: &str, load: &str| {
        format!(
            "st.shared.u32 [st], 1; bar.sync 0; add.u32 v, t, 7; st.{space}.u32 [{store}], v; {barrier}
             ld.{space}.u32 w, [{load}]; st.global.u32 [ot+512], w;"
        )
    };
    let other = "xor.b32 v, t, 32; mad.wide.u32 h, v, 4, o;";
    let barrier = format!("bar.sync 0; {other}");
    races(&exchange("global", "ot", other, "h"), 1, Check::GlobalRace);
    is_ordered(&exchange("global", "ot", &barrier, "h"), 1);
    let other = "xor.b32 v, t, 32; mov.u32 w, s; mad.lo.u32 v, v, 4, w;";
    races(&exchange("shared", "st", other, "v"), 1, Check::SharedRace);
    for barrier in ["bar.sync 0;", "barrier.sync 3, 64;", "setp.eq.u32 p, t, t; bar.red.popc.u32 w, 0, p;"] {
        is_ordered(&exchange("shared", "st", &format!("{barrier} {other}"), "v"), 1);
    }
    // The lanes of one warp take part in no race of this check.
    let lane = "xor.b32 v, t, 16; mov.u32 w, s; mad.lo.u32 v, v, 4, w;";
    is_ordered(&exchange("shared", "st", lane, "v"), 1);
    // Each block has its own shared memory.
    is_ordered("st.shared.u32 [st], b; bar.sync 0; ld.shared.u32 v, [st]; st.global.u32 [ot+512], 1;", 3);
    // A store after a load of another warp.
    let after = "st.shared.u32 [st], 0; bar.sync 0; xor.b32 v, t, 32; mov.u32 w, s; mad.lo.u32 v, v, 4, w; ld.shared.u32 w, [v];";
    races(&format!("{after} st.shared.u32 [st], 9;"), 1, Check::SharedRace);
    is_ordered(&format!("{after} bar.sync 0; st.shared.u32 [st], 9;"), 1);
}

#[test]
fn atomic_operations_do_not_race_with_each_other() {
    is_ordered("red.global.add.u32 [o], 1; atom.global.max.u32 v, [o], b;", 4);
    is_ordered("st.volatile.global.u32 [o], b; ld.relaxed.gpu.global.u32 v, [o];", 4);
    races("setp.eq.u32 p, b, 0; @p st.global.u32 [o], 9; @!p red.global.add.u32 [o], 1;", 4, Check::GlobalRace);
    let count = "setp.eq.u32 p, t, 0; @p st.shared.u32 [s], 3;";
    races(&format!("{count} red.shared.add.u32 [s], 1;"), 1, Check::SharedRace);
    is_ordered(&format!("{count} bar.sync 0; red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.u32 v, [s];"), 1);
}

/// Checks strong accesses whose scope is a block: other blocks are not in the scope.
#[test]
fn a_scope_of_a_block_does_not_include_other_blocks() {
    for body in [
        "red.cta.global.add.u32 [o], 1;",
        "atom.cta.global.exch.b32 v, [o], b;",
        "setp.eq.u32 p, b, 0; @p atom.relaxed.cta.global.add.u32 v, [o], 1; @!p red.gpu.global.add.u32 [o], 1;",
        "setp.eq.u32 p, b, 0; @p st.relaxed.cta.global.u32 [o], 5; @!p ld.relaxed.gpu.global.u32 v, [o];",
        "setp.eq.u32 p, b, 0; @p st.volatile.global.u32 [o], 5; @!p ld.relaxed.cta.global.u32 v, [o];",
    ] {
        races(body, 3, Check::GlobalRace);
        // The warps of one block are in the scope.
        is_ordered(&body.replace("p, b, 0;", "p, t, 0;"), 1);
    }
    is_ordered("red.cta.global.add.u32 [ob], 1;", 3);
    is_ordered("red.gpu.global.add.u32 [o], 1; red.sys.global.add.u32 [o], 1; red.global.add.u32 [o], 1;", 3);
    is_ordered("ld.relaxed.cta.global.u32 v, [o];", 3);
    is_ordered("st.shared.u32 [st], 0; bar.sync 0; red.cta.shared.add.u32 [s], 1;", 3);
    // A volatile access has the scope of the system.
    is_ordered("st.volatile.global.u32 [o], b; ld.volatile.global.u32 v, [o]; st.relaxed.sys.global.u32 [o], t;", 3);
    let options = Options { races: true, ..Options::default() };
    let (outcome, _) = run("setp.ne.u32 p, t, 0; @p ret;\nred.cta.global.add.u32 [o], 1;", 2, options);
    assert_eq!(
        outcome.report.findings[0].message,
        "updates 4 bytes at byte 0 of `out` (1024 bytes), which thread [0, 0, 0] of block [0, 0, 0] (warp 0, lane 0) \
         updates, and the scope .cta includes no thread of another block: `red.global.cta.add.u32 [o], 1` in line 14"
    );
}

/// Checks read-only loads of memory that the launch writes, in any order.
#[test]
fn memory_of_read_only_loads_is_not_written() {
    for load in ["ld.global.nc.u32 v, [ot];", "ldu.global.u32 v, [ot];"] {
        is_ordered(load, 2);
        is_ordered(&format!("{load} st.global.u32 [ot+512], v;"), 1);
        for write in ["st.global.u32 [ot], b;", "st.volatile.global.u32 [ot], b;", "red.global.add.u32 [ot], 1;"] {
            let write = format!("add.u32 b, b, 7; {write}");
            // One warp, and a barrier between two.
            for body in [
                format!("{load} {write}"),
                format!("{write} {load}"),
                format!("{write} bar.sync 0; xor.b32 t, t, 32; mad.wide.u32 ot, t, 4, o; {load}"),
            ] {
                races(&body, 1, Check::GlobalRace);
                is_ordered(&body.replace("ld.global.nc", "ld.global").replace("ldu", "ld"), 1);
            }
        }
    }
    // Another byte of the word, and the value that memory already holds.
    is_ordered("ld.global.nc.u8 v, [ot]; st.global.u8 [ot+1], 9;", 1);
    is_ordered("ld.global.nc.u32 v, [ot]; st.global.u32 [ot], 0;", 1);
    let options = Options { races: true, ..Options::default() };
    let ends = |body: &str, end: &str| {
        let (outcome, _) = run(&format!("setp.ne.u32 p, t, 0; @p ret;\n{body}"), 1, options);
        let message = &outcome.report.findings[0].message;
        let by = "thread [0, 0, 0] of block [0, 0, 0] (warp 0, lane 0)";
        assert_eq!(message, &end.replace("BY", by));
    };
    ends(
        "ld.global.nc.u32 v, [o];\nst.global.u32 [o], 9;",
        "stores 4 bytes at byte 0 of `out` (1024 bytes), which BY loads as read-only memory in the same launch: \
         `ld.global.nc.u32 v, [o]` in line 14",
    );
    ends(
        "st.global.u32 [o], 9;\nld.global.nc.u32 v, [o];",
        "loads 4 bytes at byte 0 of `out` (1024 bytes), as read-only memory, which BY stores in the same launch: \
         `st.global.u32 [o], 9` in line 14",
    );
}

/// Passes a message: the first block stores data and sets a flag. The second block reads the data
/// if the flag is set.
#[test]
fn messages_are_ordered_by_a_release_and_an_acquire() {
    let message = |fence: &str, set: &str, get: &str| {
        format!(
            "setp.ne.u32 p, t, 0; @p ret; setp.ne.u32 p, b, 0; @p bra R;
             st.global.u32 [o], 42; {fence} {set} ret;
             R: {get} setp.eq.u32 p, v, 0; @p ret; ld.global.u32 w, [o]; st.global.u32 [o+512], w;"
        )
    };
    let (volatile_set, volatile_get) = ("st.volatile.global.u32 [f], 1;", "ld.volatile.global.u32 v, [f];");
    is_ordered(&message("membar.gl;", volatile_set, volatile_get), 2);
    is_ordered(
        &message("fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [f], 1;", "ld.relaxed.gpu.global.u32 v, [f];"),
        2,
    );
    is_ordered(&message("", "st.release.gpu.global.u32 [f], 1;", "ld.acquire.gpu.global.u32 v, [f];"), 2);
    is_ordered(&message("membar.gl;", "red.global.add.u32 [f], 1;", "atom.global.add.u32 v, [f], 0;"), 2);
    is_ordered(
        &message("", "atom.release.gpu.global.exch.b32 v, [f], 1;", "atom.acquire.gpu.global.or.b32 v, [f], 0;"),
        2,
    );
    // A fence, a release or an acquire with the scope of a block orders no other block.
    for (fence, set, get) in [
        ("membar.cta;", volatile_set, volatile_get),
        ("fence.acq_rel.cta;", "st.relaxed.gpu.global.u32 [f], 1;", "ld.relaxed.gpu.global.u32 v, [f];"),
        ("", "st.release.cta.global.u32 [f], 1;", "ld.acquire.gpu.global.u32 v, [f];"),
        ("", "st.release.gpu.global.u32 [f], 1;", "ld.acquire.cta.global.u32 v, [f];"),
        ("membar.gl;", "red.cta.global.add.u32 [f], 1;", "atom.global.add.u32 v, [f], 0;"),
    ] {
        races(&message(fence, set, get), 2, Check::GlobalRace);
        // The same message between two warps of a block.
        let warps = message(fence, set, get).replace("setp.ne.u32 p, t, 0;", "and.b32 v, t, 31; setp.ne.u32 p, v, 0;");
        let warps = warps.replace("setp.ne.u32 p, b, 0;", "setp.ne.u32 p, t, 0;");
        is_ordered(&warps, 1);
    }
    // Without a fence, the flag does not carry the data.
    races(&message("", volatile_set, volatile_get), 2, Check::GlobalRace);
    races(&message("", "red.global.add.u32 [f], 1;", "atom.global.add.u32 v, [f], 0;"), 2, Check::GlobalRace);
    // The fence follows the flag.
    races(&message("", &format!("{volatile_set} membar.gl;"), volatile_get), 2, Check::GlobalRace);
    // A store after the release is not part of it.
    let late = message("membar.gl;", &format!("{volatile_set} st.global.u32 [o], 43;"), volatile_get);
    races(&late, 2, Check::GlobalRace);
    // Another location carries nothing.
    races(&message("membar.gl;", volatile_set, "ld.volatile.global.u32 v, [f+4]; mov.u32 v, 1;"), 2, Check::GlobalRace);
}

/// Adds partial sums: each block stores one, and the last block to finish adds them.
#[test]
fn the_last_block_may_read_the_others() {
    let sum = |fence: &str| {
        format!(
            "setp.ne.u32 p, t, 0; @p bra W; add.u32 v, b, 1; st.global.u32 [ob], v; {fence}
             atom.global.add.u32 v, [f], 1; add.u32 v, v, 1; setp.ne.u32 p, v, n; st.shared.u32 [s], v;
             W: bar.sync 0; ld.shared.u32 v, [s]; setp.ne.u32 p, v, n; @p ret; setp.ge.u32 p, t, n; @p ret;
             ld.global.u32 w, [ot]; red.global.add.u32 [f+4], w;"
        )
    };
    is_ordered(&sum("membar.gl;"), 5);
    races(&sum(""), 5, Check::GlobalRace);
    let options = Options { races: true, ..Options::default() };
    assert_eq!(run(&sum("membar.gl;"), 5, options).1[249], 15);
}

#[test]
fn barriers_of_all_blocks_order_them() {
    let exchange = |barrier: &str| {
        format!(
            "setp.ne.u32 q, t, 0; add.u32 v, b, 1; @!q st.global.u32 [ob], v; {barrier}
             add.u32 v, b, 1; rem.u32 v, v, n; mad.wide.u32 h, v, 4, o; ld.global.u32 w, [h]; @!q st.global.u32 [ob+512], w;"
        )
    };
    let by_function = "
        { .param .b32 x; .param .b64 r; st.param.b32 [x], 1; call (r), cudaCGGetIntrinsicHandle, (x); ld.param.b64 h, [r]; }
        { .param .b64 x; .param .b32 z; .param .b32 r; st.param.b64 [x], h; st.param.b32 [z], 0;
          call (r), cudaCGSynchronize, (x, z); ld.param.b32 v, [r]; }";
    let by_counter = "
        bar.sync 0; @q bra met; membar.gl; atom.global.add.u32 w, [f], 1;
        poll: ld.volatile.global.u32 w, [f]; setp.lt.u32 p, w, n; @p bra poll;
        met: bar.sync 0;";
    expect(&exchange(by_function), 4, true, None);
    expect(&exchange(by_counter), 4, true, None);
    expect(&exchange("bar.sync 0;"), 4, true, Some(Check::GlobalRace));
    expect(&exchange(&by_counter.replace("membar.gl;", "")), 4, true, Some(Check::GlobalRace));
}

#[test]
fn a_report_has_both_sides() {
    let options = Options { races: true, ..Options::default() };
    let (outcome, _) = run("setp.lt.u32 p, t, 32; @p ret;\nst.global.u32 [o+8], b;", 2, options);
    let finding = &outcome.report.findings[0];
    assert_eq!(
        finding.message,
        "stores 4 bytes at byte 8 of `out` (1024 bytes), which thread [63, 0, 0] of block [0, 0, 0] (warp 1, lane 31) \
         stores without an order: `st.global.u32 [o+8], b` in line 14"
    );
    // Counted once for each word and instruction.
    assert_eq!((finding.thread.block, finding.count), ([1, 0, 0], 1));
    assert_eq!(finding.other.as_ref().unwrap().thread.block, [0; 3]);
    // Each check can be requested by its name.
    for (check, count) in [(Check::GlobalRace, 1), (Check::SharedRace, 0), (Check::Approximate, 0)] {
        let checks = Checks::Named(CheckSet::from_iter([check]));
        let (outcome, _) = run("st.global.u32 [o], b;", 2, Options { checks, ..options });
        assert_eq!(outcome.report.findings.len(), count, "{check}");
    }
}

#[test]
fn freed_memory_is_other_memory_when_allocated_again() {
    let allocate =
        "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 h, [r]; }";
    let free = "{ .param .b64 p; st.param.b64 [p], h; call free, (p); }";
    // The second warp, and later blocks, get the addresses that the first warp has freed.
    for grid in [1, 3] {
        is_ordered(&format!("{allocate} st.u32 [h], t; {free}"), grid);
    }
    // Only one thread allocates, and all threads of the block store there.
    let one = format!("setp.eq.u32 p, t, 0; @!p bra L; {allocate} st.shared.u64 [s], h; L: bar.sync 0;");
    races(&format!("{one} ld.shared.u64 h, [s]; st.u32 [h], t;"), 1, Check::GlobalRace);
}
