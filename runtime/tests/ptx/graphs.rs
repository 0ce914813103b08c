//! Random control-flow graphs with several exits, under both policies, against a reference in plain
//! Rust that runs each thread alone.
//!
//! *Wild* graphs have arbitrary edges: irreducible loops, loops without an exit, and `ret`, `exit`
//! and `trap` anywhere, predicated or not. *Structured* graphs also shuffle, vote and wait, at
//! points where the structure makes all live lanes of the warp reconverge.
//!
//! `FUZZ_GRAPHS=100000 cargo test -p runtime --test ptx graphs` runs more.

use super::kit::{POLICIES, Run, module, program};
use runtime::ptx::Check;
use runtime::testing::Random;
use std::fmt::Write;

/// The number of graphs of each sort, unless `FUZZ_GRAPHS` gives another number.
const GRAPHS: u64 = 1500;
const LANES: usize = 32;
/// Counters of uniform loops.
const COUNTERS: usize = 4;

/// A predicate of one thread.
#[derive(Clone, Copy, Debug)]
enum Condition {
    /// A bit of `x`.
    Bit(u32),
    /// A bit of `x`, and some iterations are left.
    BitAndLeft(u32),
    /// No iterations are left.
    Spent,
    /// A counter that is the same in all threads is below a limit.
    Below(usize, u32),
    /// A condition that never holds, in a form that does not reveal this to the decoder.
    Never,
}

/// An instruction that ends a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leave {
    Return,
    Exit,
    Trap,
}

/// The terminator of a block.
#[derive(Clone, Debug)]
enum End {
    Go(usize),
    Branch(Condition, [usize; 2]),
    /// A branch table, indexed by `x` modulo its length.
    Switch(Vec<usize>),
    Leave(Leave),
}

/// An operation of all live lanes at the start of a block.
#[derive(Clone, Copy, Debug)]
enum Together {
    /// Each lane adds the next live lane's `x`.
    Shuffle,
    Ballot(u32),
    Any(u32),
    All(u32),
    Uniform(u32),
    /// Waits for the warp, and reads the mask of active lanes.
    Warp,
    /// Reads the mask of active lanes. Only the post-dominator policy guarantees its value, and
    /// only where no lane is about to end.
    Active,
    Block,
}

#[derive(Clone, Debug)]
struct Block {
    number: u32,
    together: Option<Together>,
    factor: u32,
    summand: u32,
    /// A counter that is set to 0 or incremented.
    counter: Option<(usize, bool)>,
    /// The condition and instruction by which some threads end here.
    leaves: Option<(Condition, Leave)>,
    end: End,
}

/// Blocks, of which the first is the entry, and the order of their text.
#[derive(Debug)]
struct Graph {
    blocks: Vec<Block>,
    layout: Vec<usize>,
}

/// A thread of the reference.
#[derive(Clone, Copy)]
struct Thread {
    at: usize,
    x: u32,
    sum: u32,
    left: u32,
    counters: [u32; COUNTERS],
    ended: Option<Leave>,
}

impl Thread {
    fn new(i: u32) -> Thread {
        let x = i.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
        Thread { at: 0, x, sum: 0, left: (i & 7) + 9, counters: [0; COUNTERS], ended: None }
    }

    /// Runs the computation of a block.
    fn compute(&mut self, block: &Block) {
        self.x = self.x.wrapping_mul(block.factor).wrapping_add(block.summand);
        self.left = self.left.saturating_sub(1);
        self.sum = self.sum.wrapping_mul(31).wrapping_add(self.x).wrapping_add(block.number);
        if let Some((counter, counts)) = block.counter {
            self.counters[counter] = if counts { self.counters[counter] + 1 } else { 0 };
        }
    }
}

impl Condition {
    fn holds(self, thread: &Thread) -> bool {
        match self {
            Condition::Bit(bit) => thread.x >> bit & 1 == 1,
            Condition::BitAndLeft(bit) => thread.x >> bit & 1 == 1 && thread.left > 0,
            Condition::Spent => thread.left == 0,
            Condition::Below(counter, limit) => thread.counters[counter] < limit,
            Condition::Never => false,
        }
    }

    /// Returns instructions that set `%p0`.
    fn text(self) -> String {
        let bit = |bit: u32| format!("and.b32 %r4, %r1, {:#x};\n", 1u32 << bit);
        match self {
            Condition::Bit(b) => bit(b) + "setp.ne.u32 %p0, %r4, 0;\n",
            Condition::BitAndLeft(b) => bit(b) + "setp.ne.u32 %p1, %r2, 0;\nsetp.ne.and.u32 %p0, %r4, 0, %p1;\n",
            Condition::Spent => "setp.eq.u32 %p0, %r2, 0;\n".to_string(),
            Condition::Below(counter, limit) => format!("setp.lt.u32 %p0, %r{}, {limit};\n", 10 + counter),
            Condition::Never => "setp.gt.u32 %p0, %r2, 1000;\n".to_string(),
        }
    }
}

impl Leave {
    fn text(self) -> &'static str {
        match self {
            Leave::Return => "ret",
            Leave::Exit => "exit",
            Leave::Trap => "trap",
        }
    }
}

impl Graph {
    fn text(&self) -> String {
        let mut text = String::from(
            "mad.lo.u32 %r1, %r0, 0x9e3779b9, 0x7f4a7c15;\nand.b32 %r2, %r0, 7;\nadd.u32 %r2, %r2, 9;\nmov.u32 %r3, 0;\n",
        );
        (0..COUNTERS).for_each(|i| _ = writeln!(text, "mov.u32 %r{}, 0;", 10 + i));
        if self.layout[0] != 0 {
            text += "bra $b0;\n";
        }
        for (i, &at) in self.layout.iter().enumerate() {
            let block = &self.blocks[at];
            let next = self.layout.get(i + 1).copied();
            let go = |to: usize| if next == Some(to) { String::new() } else { format!("bra $b{to};\n") };
            _ = writeln!(text, "$b{at}:");
            text += &block.together.map_or(String::new(), Together::text);
            _ = writeln!(
                text,
                "mad.lo.u32 %r1, %r1, {}, {};\nmin.u32 %r5, %r2, 1;\nsub.u32 %r2, %r2, %r5;\n\
                 mad.lo.u32 %r3, %r3, 31, %r1;\nadd.u32 %r3, %r3, {at};\n\
                 cvt.u64.u32 %d3, %r3;\nst.global.u64 [%d2], %d3;",
                block.factor, block.summand
            );
            match block.counter {
                Some((counter, true)) => _ = writeln!(text, "add.u32 %r{0}, %r{0}, 1;", 10 + counter),
                Some((counter, false)) => _ = writeln!(text, "mov.u32 %r{}, 0;", 10 + counter),
                None => {}
            }
            if let Some((condition, leave)) = block.leaves {
                _ = writeln!(text, "{}@%p0 {};", condition.text(), leave.text());
            }
            match &block.end {
                End::Go(to) => text += &go(*to),
                End::Branch(condition, [yes, no]) if next == Some(*yes) => {
                    _ = writeln!(text, "{}@!%p0 bra $b{no};", condition.text());
                }
                End::Branch(condition, [yes, no]) => {
                    _ = write!(text, "{}@%p0 bra $b{yes};\n{}", condition.text(), go(*no));
                }
                End::Switch(targets) => {
                    let labels: Vec<String> = targets.iter().map(|to| format!("$b{to}")).collect();
                    _ = writeln!(
                        text,
                        "rem.u32 %r4, %r1, {};\n$t{at}: .branchtargets {};\nbrx.idx %r4, $t{at};",
                        targets.len(),
                        labels.join(", ")
                    );
                }
                End::Leave(leave) => _ = writeln!(text, "{};", leave.text()),
            }
        }
        module("", &text)
    }

    /// Returns whether results depend on where lanes reconverge.
    fn needs_stack(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.together, Some(Together::Active)))
    }

    /// Runs a thread to the next block with an operation of all live lanes, or to the thread's end.
    fn run_alone(&self, thread: &mut Thread) {
        loop {
            let block = &self.blocks[thread.at];
            thread.compute(block);
            if let Some((_, leave)) = block.leaves.filter(|(condition, _)| condition.holds(thread)) {
                thread.ended = Some(leave);
                return;
            }
            thread.at = match &block.end {
                End::Go(to) => *to,
                End::Branch(condition, [yes, no]) => {
                    if condition.holds(thread) {
                        *yes
                    } else {
                        *no
                    }
                }
                End::Switch(targets) => targets[thread.x as usize % targets.len()],
                End::Leave(leave) => {
                    thread.ended = Some(*leave);
                    return;
                }
            };
            if self.blocks[thread.at].together.is_some() {
                return;
            }
        }
    }

    /// Returns each thread's final value, or `None` if a thread traps.
    fn expected(&self) -> Option<Vec<u64>> {
        let mut threads: Vec<Thread> = (0..LANES as u32).map(Thread::new).collect();
        loop {
            threads.iter_mut().filter(|t| t.ended.is_none()).for_each(|thread| self.run_alone(thread));
            if threads.iter().any(|t| t.ended == Some(Leave::Trap)) {
                return None;
            }
            let live: Vec<usize> = (0..LANES).filter(|lane| threads[*lane].ended.is_none()).collect();
            let Some(&first) = live.first() else { break };
            let at = threads[first].at;
            assert!(live.iter().all(|lane| threads[*lane].at == at), "the graph does not bring its lanes together");
            self.blocks[at].together.into_iter().for_each(|together| together.apply(&mut threads, &live));
        }
        Some(threads.iter().map(|t| t.sum.into()).collect())
    }
}

impl Together {
    fn apply(self, threads: &mut [Thread], live: &[usize]) {
        let bit = |bit: u32| live.iter().filter(|l| threads[**l].x >> bit & 1 == 1).fold(0u32, |m, l| m | 1 << l);
        let all = live.iter().fold(0u32, |mask, lane| mask | 1 << lane);
        let given: Vec<u32> = match self {
            Together::Shuffle => live.iter().enumerate().map(|(i, _)| threads[live[(i + 1) % live.len()]].x).collect(),
            Together::Ballot(b) => vec![bit(b); live.len()],
            Together::Any(b) => vec![u32::from(bit(b) != 0); live.len()],
            Together::All(b) => vec![u32::from(bit(b) == all); live.len()],
            Together::Uniform(b) => vec![u32::from(bit(b) == all || bit(b) == 0); live.len()],
            Together::Warp | Together::Active => vec![all; live.len()],
            Together::Block => vec![0; live.len()],
        };
        live.iter().zip(given).for_each(|(lane, x)| threads[*lane].x = threads[*lane].x.wrapping_add(x));
    }

    fn text(self) -> String {
        let vote = |mode: &str, b: u32| {
            format!(
                "and.b32 %r4, %r1, {:#x};\nsetp.ne.u32 %p2, %r4, 0;\nvote.sync.{mode}.pred %p3, %p2, 0xffffffff;\n\
                 selp.u32 %r4, 1, 0, %p3;\nadd.u32 %r1, %r1, %r4;\n",
                1u32 << b
            )
        };
        match self {
            // The next live lane, cyclically, is found by the lowest bit of the live lanes above,
            // or of all.
            Together::Shuffle => "setp.eq.u32 %p2, 0, 0;\nvote.sync.ballot.b32 %r4, %p2, 0xffffffff;\n\
                mov.u32 %r5, %lanemask_gt;\nand.b32 %r5, %r5, %r4;\nsetp.eq.u32 %p3, %r5, 0;\nselp.b32 %r5, %r4, %r5, %p3;\n\
                brev.b32 %r5, %r5;\nclz.b32 %r5, %r5;\nshfl.sync.idx.b32 %r4, %r1, %r5, 31, 0xffffffff;\n\
                add.u32 %r1, %r1, %r4;\n"
                .to_string(),
            Together::Ballot(b) => format!(
                "and.b32 %r4, %r1, {:#x};\nsetp.ne.u32 %p2, %r4, 0;\nvote.sync.ballot.b32 %r4, %p2, 0xffffffff;\n\
                 add.u32 %r1, %r1, %r4;\n",
                1u32 << b
            ),
            Together::Any(b) => vote("any", b),
            Together::All(b) => vote("all", b),
            Together::Uniform(b) => vote("uni", b),
            Together::Warp => "bar.warp.sync 0xffffffff;\nactivemask.b32 %r4;\nadd.u32 %r1, %r1, %r4;\n".to_string(),
            Together::Active => "activemask.b32 %r4;\nadd.u32 %r1, %r1, %r4;\n".to_string(),
            Together::Block => "bar.sync 0;\n".to_string(),
        }
    }
}

/// Draws graphs.
struct Generator {
    random: Random,
    blocks: Vec<Block>,
    counters: usize,
    /// Whether no thread takes an early exit, although the text has some.
    calm: bool,
    /// The targets of `break` and `continue` in the enclosing loops.
    loops: Vec<[usize; 2]>,
}

impl Generator {
    fn new(seed: u64) -> Generator {
        let mut random = Random::new(seed);
        let calm = random.below(3) == 0;
        Generator { random, blocks: Vec::new(), counters: 0, calm, loops: Vec::new() }
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn bit(&mut self) -> u32 {
        self.random.below(32) as u32
    }

    /// Adds a block that leads to the next.
    fn block(&mut self) -> usize {
        let (factor, summand) = (self.random.bits() as u32 | 1, self.random.bits() as u32);
        let number = self.blocks.len() as u32;
        let end = End::Go(self.blocks.len() + 1);
        self.blocks.push(Block { number, together: None, factor, summand, counter: None, leaves: None, end });
        self.blocks.len() - 1
    }

    /// Draws the condition and the instruction by which some threads end. Few traps are reached.
    fn leave(&mut self) -> (Condition, Leave) {
        let bit = self.bit();
        let sort = self.random.below(8);
        match if self.calm { 4 + sort % 4 } else { sort } {
            0 | 1 => (Condition::Bit(bit), Leave::Return),
            2 | 3 => (Condition::Bit(bit), Leave::Exit),
            4 => (Condition::Never, Leave::Return),
            5 | 6 => (Condition::Never, Leave::Trap),
            _ if !self.calm && self.one_in(6) => (Condition::Bit(bit), Leave::Trap),
            _ => (Condition::Never, Leave::Exit),
        }
    }

    fn finish(mut self) -> Graph {
        let mut layout: Vec<usize> = (0..self.blocks.len()).collect();
        // Compilers move a few blocks; a shuffled text is the hardest case.
        match self.random.below(3) {
            0 => {}
            1 => {
                for _ in 0..2 {
                    let from = self.random.below(layout.len());
                    let block = layout.remove(from);
                    let to = self.random.below(layout.len() + 1);
                    layout.insert(to, block);
                }
            }
            _ => (1..layout.len()).for_each(|i| layout.swap(i, self.random.below(i + 1))),
        }
        Graph { blocks: self.blocks, layout }
    }

    /// Draws arbitrary edges. A back edge is taken only while iterations are left.
    fn wild(mut self) -> Graph {
        let count = 2 + self.random.below(11);
        for at in 0..count {
            self.block();
            if self.one_in(4) {
                self.blocks[at].leaves = Some(self.leave());
            }
            let ahead = |random: &mut Random| at + 1 + random.below(count - at - 1);
            let bit = self.bit();
            self.blocks[at].end = match self.random.below(12) {
                _ if at + 1 == count => End::Leave(if self.one_in(2) { Leave::Return } else { Leave::Exit }),
                0 => End::Leave(if self.one_in(2) { Leave::Return } else { Leave::Exit }),
                // Threads reach this trap in few graphs: often, no branch to it is taken.
                1 if at > 0 && self.one_in(4) => End::Leave(Leave::Trap),
                2 => End::Switch((0..2 + self.random.below(3)).map(|_| ahead(&mut self.random)).collect()),
                3 | 4 => {
                    let back = self.random.below(at + 1);
                    End::Branch(Condition::BitAndLeft(bit), [back, ahead(&mut self.random)])
                }
                // A loop that only a predicated exit leaves.
                5 => {
                    let leave = if self.one_in(2) { Leave::Return } else { Leave::Exit };
                    self.blocks[at].leaves = Some((Condition::Spent, leave));
                    End::Go(self.random.below(at + 1))
                }
                6 => End::Branch(Condition::Never, [ahead(&mut self.random), ahead(&mut self.random)]),
                7 | 8 => End::Go(ahead(&mut self.random)),
                _ => End::Branch(Condition::Bit(bit), [ahead(&mut self.random), ahead(&mut self.random)]),
            };
        }
        self.finish()
    }

    /// Draws statements, with exits anywhere. Where control flow is uniform, the statements include
    /// operations of all live lanes.
    fn structured(mut self) -> Graph {
        self.block();
        self.statements(3, true);
        let last = self.block();
        self.blocks[last].together = Some(Together::Shuffle);
        self.blocks[last].end = End::Leave(Leave::Return);
        self.finish()
    }

    fn statements(&mut self, depth: usize, uniform: bool) {
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth, uniform);
        }
    }

    fn statement(&mut self, depth: usize, uniform: bool) {
        let bit = self.bit();
        match self.random.below(if depth == 0 { 4 } else { 8 }) {
            0 if uniform => {
                let at = self.block();
                let all = [
                    Together::Shuffle,
                    Together::Ballot(bit),
                    Together::Any(bit),
                    Together::All(bit),
                    Together::Uniform(bit),
                    Together::Warp,
                    Together::Block,
                    Together::Active,
                ];
                let all = if self.calm { &all[..] } else { &all[..7] };
                self.blocks[at].together = self.random.choose(all).copied();
            }
            0 => _ = self.block(),
            1 => {
                let at = self.block();
                self.blocks[at].leaves = Some(self.leave());
            }
            // A side that ends in a separate block, as a bounds check does.
            2 => {
                let at = self.block();
                let (condition, leave) = self.leave();
                let end = self.block();
                self.blocks[end].end = End::Leave(leave);
                self.blocks[at].end = End::Branch(condition, [end, end + 1]);
            }
            3 => match self.loops.last().copied() {
                Some(loops) if !uniform => {
                    let at = self.block();
                    let to = loops[self.random.below(2)];
                    self.blocks[at].end = End::Branch(Condition::Bit(bit), [to, at + 1]);
                }
                _ => _ = self.block(),
            },
            4 | 5 => {
                let at = self.block();
                self.statements(depth - 1, false);
                let then = self.blocks.len() - 1;
                if self.one_in(2) {
                    self.blocks[at].end = End::Branch(Condition::Bit(bit), [at + 1, then + 1]);
                    return;
                }
                // The first side has a separate last block, which branches past the second side.
                let then = self.block();
                self.blocks[at].end = End::Branch(Condition::Bit(bit), [at + 1, then + 1]);
                self.statements(depth - 1, false);
                self.blocks[then].end = End::Go(self.blocks.len());
            }
            6 if uniform && self.counters < COUNTERS => {
                let counter = self.counters;
                self.counters += 1;
                let start = self.block();
                self.blocks[start].counter = Some((counter, false));
                self.statements(depth - 1, true);
                let latch = self.block();
                let limit = 1 + self.random.below(3) as u32;
                self.blocks[latch].counter = Some((counter, true));
                self.blocks[latch].end = End::Branch(Condition::Below(counter, limit), [start + 1, latch + 1]);
            }
            _ => {
                // `break` leads to the block `leave`, which is made before the loop so that its
                // number is known. `leave` leads to the first block after the loop.
                let before = self.block();
                let leave = self.block();
                let head = self.block();
                self.blocks[before].end = End::Go(head);
                self.loops.push([leave, head]);
                self.statements(depth - 1, false);
                self.loops.pop();
                let latch = self.block();
                self.blocks[latch].end = End::Branch(Condition::BitAndLeft(bit), [head, latch + 1]);
                self.blocks[leave].end = End::Go(latch + 1);
                // The head ends the loop, so that `continue` does not repeat forever.
                self.blocks[head].end = End::Branch(Condition::Spent, [leave, head + 1]);
            }
        }
    }
}

/// Compares graphs with the reference; `draw` makes a graph from a seed.
fn compare(draw: impl Fn(u64) -> Graph) {
    let graphs = std::env::var("FUZZ_GRAPHS").ok().and_then(|n| n.parse().ok()).unwrap_or(GRAPHS);
    let mut trapped = 0;
    for seed in 0..graphs {
        let graph = draw(seed);
        let (text, expected) = (graph.text(), graph.expected());
        let program = program(&text);
        let policies = if graph.needs_stack() { &POLICIES[..1] } else { &POLICIES };
        for &policy in policies {
            let (outcome, words) = Run::policy(policy).launch(&program, LANES, &[]);
            let found: Vec<Check> = outcome.report.findings.iter().map(|f| f.check).collect();
            match &expected {
                Some(expected) => {
                    assert!(found.is_empty(), "graph {seed} by {policy:?}: {}\n{text}", outcome.report);
                    assert_eq!(&words, expected, "graph {seed} by {policy:?}\n{text}");
                }
                None => assert_eq!(found, [Check::Trap], "graph {seed} by {policy:?}: {}\n{text}", outcome.report),
            }
        }
        trapped += u64::from(expected.is_none());
    }
    assert!(trapped < graphs / 2, "{trapped} of {graphs} graphs trap");
}

#[test]
fn unstructured_graphs_agree_with_single_threads() {
    compare(|seed| Generator::new(seed).wild());
}

#[test]
fn structured_graphs_reconverge() {
    compare(|seed| Generator::new(seed).structured());
}
