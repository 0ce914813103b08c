//! Observed launches: the observer sees all instructions, lanes and addresses of the whole kernel,
//! although results that decide none of these are not computed.

use super::kit::{Run, module, program};
use runtime::ptx::observe::{Executed, InstructionObserver};

/// Counts what an observer sees.
#[derive(Default)]
struct Seen {
    instructions: u64,
    lanes: u64,
    /// Addresses of accesses, in the order of the accesses and of the lanes.
    addresses: Vec<u64>,
}

impl InstructionObserver for Seen {
    fn begin_block(&mut self) {}

    fn execute(&mut self, executed: &Executed) {
        self.instructions += 1;
        self.lanes += u64::from(executed.mask.count_ones());
        let addresses = executed.access.iter().flat_map(|access| access.addresses.iter().enumerate());
        self.addresses
            .extend(addresses.filter(|(lane, _)| executed.mask >> lane & 1 == 1).map(|(_, address)| *address));
    }
}

/// Observes a body, and compares the numbers of instructions and lanes with those of a run. Returns
/// the addresses, and `out` after the observation.
fn observed(globals: &str, body: &str) -> (Vec<u64>, Vec<u64>) {
    let (run, input): (_, Vec<u64>) = (Run { threads: 64, ..Run::default() }, (0..64).map(|i| i * 7 % 64).collect());
    let program = program(&module(globals, body));
    let (whole, _) = run.launch(&program, 64, &input);
    assert!(whole.report.findings.is_empty(), "{}\n{body}", whole.report);
    let (mut out, mut seen) = (vec![u64::MAX; 64], Seen::default());
    program.observe(run.arguments(&mut out, &input), [0].into_iter(), &mut seen).unwrap();
    let statistics = whole.statistics;
    assert_eq!(
        (seen.instructions, seen.lanes),
        (statistics.warp_instructions, statistics.thread_instructions),
        "{body}"
    );
    (seen.addresses, out)
}

/// The element of `in` at the thread's place.
const LOAD: &str = "mad.wide.u32 %d3, %r0, 8, %d1; ld.global.u32 %r1, [%d3];";
/// A loop of %r2 rounds.
const LOOP: &str = "mov.u32 %r3, 0;\n$loop: add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, %r2; @%p0 bra $loop;";

#[test]
fn results_that_decide_nothing_are_not_computed() {
    let (_, out) = observed("", &format!("{LOAD} mul.lo.u32 %r1, %r1, 3; st.global.u32 [%d2], %r1; ret;"));
    assert_eq!(out, [u64::MAX; 64], "the products decide nothing");
}

/// Checks loops whose number of rounds comes through another thread, a state space or an exchange.
#[test]
fn values_that_decide_jumps_are_computed() {
    let shared = ".shared .align 8 .b8 s[512];";
    let through = [
        ("", "mov.u32 %r2, %r1;".to_string()),
        (
            shared,
            "mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 8, %r4; st.shared.u32 [%r5], %r1; bar.sync 0; \
            xor.b32 %r6, %r0, 63; mad.lo.u32 %r5, %r6, 8, %r4; ld.shared.u32 %r2, [%r5];"
                .to_string(),
        ),
        ("", "st.global.u32 [%d2], %r1; ld.global.u32 %r2, [%d2];".to_string()),
        ("", "cvta.global.u64 %d4, %d2; st.u32 [%d4], %r1; ld.global.u32 %r2, [%d2];".to_string()),
        ("", ".local .align 8 .b8 kept[8];\nst.local.u32 [kept], %r1; ld.local.u32 %r2, [kept];".to_string()),
        ("", "shfl.sync.bfly.b32 %r2, %r1, 5, 31, -1;".to_string()),
        ("", "setp.gt.u32 %p1, %r1, 9; vote.sync.ballot.b32 %r2, %p1, -1; and.b32 %r2, %r2, 63;".to_string()),
        ("", "add.cc.u32 %r4, %r1, 0xffffffff; addc.u32 %r2, %r1, 0;".to_string()),
        (
            shared,
            "st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r2, [s], %r1; and.b32 %r2, %r2, 63;".to_string(),
        ),
        ("", "setp.gt.u32 %p1, %r1, 9; selp.u32 %r2, %r1, 3, %p1;".to_string()),
        ("", "mov.u32 %r2, 1; setp.gt.u32 %p1, %r1, 9; @%p1 mov.u32 %r2, %r1;".to_string()),
    ];
    for (globals, through) in through {
        observed(globals, &format!("{LOAD}\n{through}\n{LOOP}\nst.global.u32 [%d2], %r3; ret;"));
    }
}

/// Checks an access whose place comes through memory.
#[test]
fn values_that_decide_addresses_are_computed() {
    let body = "mad.wide.u32 %d3, %r0, 8, %d1; ld.global.nc.u32 %r1, [%d3]; st.global.u32 [%d2], %r1; \
        ld.global.u32 %r2, [%d2]; mad.wide.u32 %d4, %r2, 8, %d0; ld.global.u32 %r3, [%d4+4]; ret;";
    let (addresses, _) = observed("", body);
    let (stores, gathered) = (&addresses[32..64], &addresses[96..128]);
    for (thread, address) in gathered.iter().enumerate() {
        assert_eq!(*address, stores[0] + 8 * (thread as u64 * 7 % 64) + 4, "thread {thread}");
    }
}
