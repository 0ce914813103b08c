//! The path of a warp through machine code, from the counts of PTX instructions.
//!
//! The interpreter counts how often a warp executes each line of the PTX, and the disassembly names
//! the line of each machine instruction. ptxas moves, duplicates and removes instructions. An
//! unrolled loop has several copies of an instruction, and its remainder has one more. So only the
//! sum over all copies of a PTX instruction has a known count.
//!
//! The unknown is how often a warp takes each edge of the control flow graph. As many warps enter a
//! block as leave it, which holds exactly. A linear program (`linear_program`) finds the
//! edges whose sums deviate least from the counts. Accesses, barriers and exchanges weigh most:
//! ptxas neither splits nor repeats these. Among equal solutions, the program takes the one with
//! the fewest jumps back, and then the one with the fewest instructions. So as many warps enter a
//! loop as the counts permit, and no iterations circle in a loop that no warp enters.
//!
//! [`unmatched_accesses`] compares the accesses on the simulated path with those of the
//! interpreter.

use crate::linear_program::LinearProgram;
use crate::sass::{Class, Listing, NaturalLoop, SassInstruction};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Warps, and blocks of the path, that [`unmatched_accesses`] follows.
const FOLLOWED_WARPS: u64 = 256;
const FOLLOWED_BLOCKS: u64 = 2_000_000;

/// A basic block.
#[derive(Clone, Debug, PartialEq)]
pub struct BasicBlock {
    /// Instructions: indices into [`Listing::instructions`].
    pub range: Range<usize>,
    /// Executions by a warp, on average.
    pub count: f64,
    /// Edges to the following blocks: those that stay in the innermost loop first, then by share.
    pub next: Vec<BlockEdge>,
}

/// An edge of the control flow graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockEdge {
    /// The following block; `None` ends the warp.
    pub to: Option<usize>,
    /// Share of the executions of the block before the edge.
    pub share: f64,
    /// Number of the innermost loop of the block before the edge, if the edge leaves it.
    pub leaves: Option<usize>,
}

/// Returns the basic blocks of the kernel, without called functions. `executions` holds the
/// executions of each PTX line by a warp, on average.
pub fn blocks(listing: &Listing, executions: &HashMap<u32, f64>) -> Vec<BasicBlock> {
    let next = listing.successors();
    let mut starts = vec![false; next.len() + 1];
    starts[0] = true;
    for (at, next) in next.iter().enumerate() {
        if next[..] != [at + 1] {
            starts[at + 1] = true;
            next.iter().for_each(|to| starts[*to] = true);
        }
    }
    let firsts: Vec<usize> = (0..next.len()).filter(|at| starts[*at]).collect();
    let ranges: Vec<Range<usize>> =
        firsts.iter().enumerate().map(|(i, first)| *first..firsts.get(i + 1).copied().unwrap_or(next.len())).collect();
    let number: HashMap<usize, usize> = firsts.iter().enumerate().map(|(i, first)| (*first, i)).collect();
    let follows = |range: &Range<usize>| {
        let last = range.end - 1;
        let mut next: Vec<Option<usize>> = next[last].iter().map(|to| number.get(to).copied()).collect();
        let ends = matches!(listing.instructions[last].opcode(), "EXIT" | "RET" | "KILL" | "BPT");
        if ends || next.is_empty() {
            next.push(None);
        }
        next.sort_unstable();
        next.dedup();
        next
    };
    let follows: Vec<Vec<Option<usize>>> = ranges.iter().map(follows).collect();
    let loops = listing.loops();
    let jumps_back = |from: usize, to: usize| {
        let of_loop = |l: &NaturalLoop| l.head == ranges[to].start && l.body.binary_search(&ranges[from].start).is_ok();
        loops.iter().any(of_loop)
    };
    let edges = edges(&follows, &ranges, jumps_back, &observations(listing, &ranges, executions));
    let block = |(i, range): (usize, &Range<usize>)| {
        let count: f64 = edges[i].iter().sum();
        let share = |edge: f64| if count > 0.0 { edge / count } else { 1.0 / edges[i].len() as f64 };
        let around = loops.iter().map(|natural| &natural.body).enumerate();
        let around = around.filter(|(_, body)| body.binary_search(&range.start).is_ok());
        let inner = around.min_by_key(|(_, body)| body.len());
        let leaves = |to: Option<usize>| {
            let outside = |body: &[usize]| to.is_none_or(|to| body.binary_search(&ranges[to].start).is_err());
            inner.filter(|(_, body)| outside(body)).map(|(number, _)| number)
        };
        let edge = |(to, edge): (&Option<usize>, &f64)| BlockEdge { to: *to, share: share(*edge), leaves: leaves(*to) };
        let mut next: Vec<BlockEdge> = follows[i].iter().zip(&edges[i]).map(edge).collect();
        next.sort_by(|a, b| a.leaves.is_some().cmp(&b.leaves.is_some()).then(b.share.total_cmp(&a.share)));
        BasicBlock { range: range.clone(), count, next }
    };
    ranges.iter().enumerate().map(block).collect()
}

/// Returns whether an instruction accesses memory or exchanges values. ptxas keeps one machine
/// instruction for each such PTX instruction.
fn is_access(class: Class) -> bool {
    matches!(
        class,
        Class::GlobalLoad | Class::GlobalStore | Class::SharedLoad | Class::SharedStore | Class::Atomic | Class::Warp
    )
}

/// Returns how much the count of a machine instruction weighs; `None` if its number does not follow
/// from the PTX.
fn weight(inst: &SassInstruction) -> Option<f64> {
    match Class::of(inst) {
        class if is_access(class) => Some(1.0),
        Class::Barrier if inst.opcode() == "BAR" => Some(1.0),
        Class::Fma | Class::Special => Some(0.2),
        // ptxas splits, merges and moves these.
        Class::Float | Class::Integer | Class::Compare => Some(0.01),
        _ => None,
    }
}

/// Machine instructions of a PTX line with one name.
#[derive(Default)]
struct CopyCounts {
    /// Number of instructions in each basic block.
    of_block: BTreeMap<usize, u32>,
    /// Whether a guard precedes one of them. ptxas replaces jumps by guards, so that the
    /// instructions issue more often than those of the PTX.
    guarded: bool,
    weight: f64,
    access: bool,
}

/// Returns the instructions of each line and name whose number follows from the PTX.
fn copies<'a>(listing: &'a Listing, ranges: &[Range<usize>]) -> BTreeMap<(u32, &'a str), CopyCounts> {
    let line = |inst: &SassInstruction| inst.line.as_ref().map(|line| line.number);
    // A division or a root is a sequence of instructions of one line.
    let is_sequence = |inst: &&SassInstruction| {
        Class::of(inst) == Class::Special || matches!(inst.opcode(), "FCHK" | "CALL" | "CAL" | "JCAL")
    };
    let sequences: HashSet<u32> = listing.instructions.iter().filter(is_sequence).filter_map(line).collect();
    let mut copies: BTreeMap<(u32, &str), CopyCounts> = BTreeMap::new();
    for (block, range) in ranges.iter().enumerate() {
        for inst in &listing.instructions[range.clone()] {
            let (Some(line), Some(weight)) = (line(inst), weight(inst)) else { continue };
            let class = Class::of(inst);
            if !is_access(class) && class != Class::Special && class != Class::Barrier && sequences.contains(&line) {
                continue;
            }
            let entry = copies.entry((line, &inst.name)).or_default();
            *entry.of_block.entry(block).or_default() += 1;
            entry.guarded |= !inst.guard.is_empty() && inst.guard != "@PT";
            (entry.weight, entry.access) = (weight, is_access(class));
        }
    }
    copies
}

/// Known sum of the executions of blocks.
struct Observation {
    /// Blocks with the factors of their executions.
    of_block: Vec<(usize, f64)>,
    sum: f64,
    /// Whether the sum may be larger.
    at_least: bool,
    weight: f64,
}

/// Basic blocks with the factors of their executions in a sum, and whether the sum may be larger.
type SumOfBlocks = (Vec<(usize, u32)>, bool);

/// Returns one observation for each set of blocks: the median of the counts of the instructions
/// that have all their copies in these blocks.
fn observations(listing: &Listing, ranges: &[Range<usize>], executions: &HashMap<u32, f64>) -> Vec<Observation> {
    let mut known: BTreeMap<SumOfBlocks, Vec<(f64, f64)>> = BTreeMap::new();
    for ((line, _), copies) in copies(listing, ranges) {
        let divisor = copies.of_block.values().copied().fold(0, greatest_common_divisor).max(1);
        let factors = copies.of_block.iter().map(|(block, n)| (*block, n / divisor)).collect();
        let executed = executions.get(&line).copied().unwrap_or(0.0);
        known.entry((factors, copies.guarded)).or_default().push((executed / f64::from(divisor), copies.weight));
    }
    let all = known.into_iter().map(|((factors, at_least), counts)| Observation {
        of_block: factors.into_iter().map(|(block, factor)| (block, f64::from(factor))).collect(),
        weight: counts.iter().map(|(_, weight)| weight).sum(),
        sum: weighted_median(counts),
        at_least,
    });
    all.collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Returns the value that half of the weight does not exceed. There is at least one pair of a value
/// and its weight.
fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest: f64 = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let reaches = |(_, weight): &&(f64, f64)| {
        rest -= weight;
        rest <= 0.0
    };
    values.iter().find(reaches).or(values.last()).map_or(0.0, |(value, _)| *value)
}

/// Returns the executions of each edge by a warp. `follows` has the blocks after each block.
fn edges(
    follows: &[Vec<Option<usize>>],
    ranges: &[Range<usize>],
    jumps_back: impl Fn(usize, usize) -> bool,
    observations: &[Observation],
) -> Vec<Vec<f64>> {
    let mut reached = vec![false; follows.len()];
    let mut todo = vec![0];
    while let Some(block) = todo.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            todo.extend(follows[block].iter().flatten());
        }
    }
    let mut program = LinearProgram::new();
    let mut variables: Vec<Vec<usize>> = Vec::with_capacity(follows.len());
    // For each block, the edges that leave it less those that enter.
    let mut balance: Vec<Vec<(usize, f64)>> = vec![Vec::new(); follows.len()];
    for (block, next) in follows.iter().enumerate() {
        let size = ranges[block].len() as f64;
        let edge = |to: &Option<usize>| {
            let back = to.is_some_and(|to| jumps_back(block, to));
            let edge = program.variable([0.0, f64::from(u8::from(back)), size]);
            balance[block].push((edge, 1.0));
            to.iter().for_each(|to| balance[*to].push((edge, -1.0)));
            edge
        };
        variables.push(if reached[block] { next.iter().map(edge).collect() } else { Vec::new() });
    }
    for (block, balance) in balance.into_iter().enumerate().filter(|(block, _)| reached[*block]) {
        program.equation(balance, if block == 0 { 1.0 } else { 0.0 });
    }
    for Observation { of_block, sum, at_least, weight } in observations {
        let factors = of_block.iter().flat_map(|(block, n)| variables[*block].iter().map(|edge| (*edge, *n))).collect();
        let cost = weight / sum.max(1.0);
        program.soft_equation(factors, *sum, [cost, if *at_least { 0.0 } else { cost }]);
    }
    let values = program.solve();
    let of_block = |(block, edges): (usize, Vec<usize>)| match reached[block] {
        true => edges.into_iter().map(|edge| values[edge]).collect(),
        false => vec![0.0; follows[block].len()],
    };
    variables.into_iter().enumerate().map(of_block).collect()
}

/// Returns the executions that each access of the listing has in the interpreter for each execution
/// on the path; 1 for other instructions. A guard that ptxas put instead of a jump excludes all
/// lanes of the other executions.
pub fn active_shares(listing: &Listing, blocks: &[BasicBlock], executions: &HashMap<u32, f64>) -> Vec<f64> {
    let ranges: Vec<_> = blocks.iter().map(|block| block.range.clone()).collect();
    let copies = copies(listing, &ranges);
    let of_inst = |inst: &SassInstruction| {
        let line = inst.line.as_ref().map_or(0, |line| line.number);
        let access = copies.get(&(line, inst.name.as_str())).filter(|copies| copies.access);
        let issued = access.map_or(0.0, |copies| copies.issued(|block| blocks[block].count));
        if issued > 0.0 { executions.get(&line).copied().unwrap_or(0.0) / issued } else { 1.0 }
    };
    listing.instructions.iter().map(of_inst).collect()
}

/// Returns the accesses that simulated warps lack or have in excess, as a share of the accesses of
/// the interpreter.
pub fn unmatched_accesses(listing: &Listing, blocks: &[BasicBlock], executions: &HashMap<u32, f64>) -> f64 {
    let ranges: Vec<_> = blocks.iter().map(|block| block.range.clone()).collect();
    let visits = visits(blocks);
    let (mut unmatched, mut all) = (0.0, 0.0);
    for ((line, _), copies) in copies(listing, &ranges).iter().filter(|(_, copies)| copies.access) {
        let executed = executions.get(line).copied().unwrap_or(0.0);
        let excess = copies.issued(|block| visits[block]) - executed;
        unmatched += if copies.guarded { (-excess).max(0.0) } else { excess.abs() };
        all += executed;
    }
    if all > 0.0 { unmatched / all } else { 0.0 }
}

impl CopyCounts {
    /// Returns the executions of all instructions, from those of blocks.
    fn issued(&self, count: impl Fn(usize) -> f64) -> f64 {
        self.of_block.iter().map(|(block, n)| f64::from(*n) * count(*block)).sum()
    }
}

/// Follows warps, and returns how often each visits each block on average.
fn visits(blocks: &[BasicBlock]) -> Vec<f64> {
    let mut visits = vec![0.0; blocks.len()];
    let (mut warps, mut steps) = (0, 0);
    while warps < FOLLOWED_WARPS && steps < FOLLOWED_BLOCKS {
        let mut choices = Choices::new(blocks, warps, (warps / 4) as f64);
        let mut at = Some(0);
        // The limit concerns paths without an end.
        while let Some(block) = at.filter(|_| steps < 2 * FOLLOWED_BLOCKS) {
            visits[block] += 1.0;
            steps += 1;
            at = choices.next(blocks, block);
        }
        warps += 1;
    }
    visits.into_iter().map(|n| n / warps as f64).collect()
}

/// Fractional part of the golden ratio, whose multiples are spread evenly.
const GOLDEN_RATIO: f64 = 0.618_033_988_75;

/// Choices of a warp at the ends of blocks: each edge is taken with the frequency of its share, at
/// even distances.
#[derive(Clone)]
pub struct Choices {
    /// For each edge, the executions that are due. Edges of a block are adjacent.
    due: Vec<f64>,
    /// The first edge of each block.
    first: Vec<usize>,
    /// For each loop, the exits that are due, by whichever of its edges.
    exits: Vec<f64>,
}

impl Choices {
    /// Starts warp `warp` of a launch's block. An edge that a warp takes 0.25 times on average is
    /// taken by each fourth warp. A loop of 2.5 iterations has two in one block, and three in
    /// another: all warps of a block reach the same barriers.
    pub fn new(blocks: &[BasicBlock], warp: u64, of_block: f64) -> Choices {
        let (mut due, mut first) = (Vec::new(), Vec::with_capacity(blocks.len()));
        let part = |executions: f64| executions - (executions + 1e-6).floor();
        let early = 0.999 * (0.5 + of_block * GOLDEN_RATIO).fract();
        // Executions of the edges that leave each loop, and of the blocks before them.
        let mut of_loops: Vec<[f64; 2]> = Vec::new();
        for block in blocks {
            first.push(due.len());
            for BlockEdge { share, leaves, .. } in &block.next {
                // A phase that is even over the warps that come here, whichever these are.
                due.push((warp as f64 * part(share * block.count).max(0.0) + early).fract());
                if let Some(number) = *leaves {
                    of_loops.resize(of_loops.len().max(number + 1), [0.0; 2]);
                    of_loops[number][0] += share * block.count;
                    of_loops[number][1] += block.count;
                }
            }
        }
        // A warp that enters a loop leaves it, however few warps enter. The phase rounds the
        // iterations of a block up or down.
        let exits = of_loops.iter().map(|[exits, tests]| if *tests > 0.0 { early * exits / tests } else { 0.0 });
        Choices { due, first, exits: exits.collect() }
    }

    /// Returns the block after `block`; `None` at the end of the warp.
    pub fn next(&mut self, blocks: &[BasicBlock], block: usize) -> Option<usize> {
        let next = &blocks[block].next;
        let edges = &mut self.due[self.first[block]..][..next.len()];
        let mut chosen = None;
        // The first edge is taken unless another one is due.
        for (number, (edge, due)) in next.iter().zip(edges).enumerate().skip(1) {
            let due = match edge.leaves {
                Some(of_loop) => &mut self.exits[of_loop],
                None => due,
            };
            *due += edge.share;
            if chosen.is_none() && *due >= 1.0 - 1e-6 {
                *due -= 1.0;
                chosen = Some(number);
            }
        }
        next[chosen.unwrap_or(0)].to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of 10 iterations whose body has a branch that is taken each second time.
    const LOOP: &str = r#"
	.headerflags	@"EF_CUDA_SM61"
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File "p", line 1
        /*0008*/                   MOV R1, c[0x0][0x20] ;
.L_x_1:
	//## File "p", line 2
        /*0010*/                   LDS.U.128 R8, [R1+0x8] ;
	//## File "p", line 3
        /*0018*/              @P1 BRA `(.L_x_2) ;
	//## File "p", line 4
        /*0028*/                   LDG.E R3, [R4] ;
.L_x_2:
	//## File "p", line 5
        /*0030*/              @P0 BRA `(.L_x_1) ;
	//## File "p", line 6
        /*0038*/                   STG.E [R4], R3 ;
	//## File "p", line 7
        /*0048*/                   EXIT ;
"#;

    fn path(executions: &[(u32, f64)]) -> Vec<usize> {
        let listing = Listing::read(LOOP).unwrap();
        let blocks = blocks(&listing, &executions.iter().copied().collect());
        let mut choices = Choices::new(&blocks, 0, 0.0);
        let (mut path, mut at) = (Vec::new(), Some(0));
        while let Some(block) = at {
            path.push(block);
            at = choices.next(&blocks, block);
        }
        path
    }

    #[test]
    fn a_path_has_the_counts_of_the_interpreter() {
        let path = path(&[(1, 1.0), (2, 10.0), (3, 10.0), (4, 5.0), (5, 10.0), (6, 1.0), (7, 1.0)]);
        let count = |block| path.iter().filter(|b| **b == block).count();
        assert_eq!([0, 1, 2, 3, 4].map(count), [1, 10, 5, 10, 1], "{path:?}");
        assert_eq!(path.last(), Some(&4));
    }

    /// 0.1 · 10 is less than 1 by a rounding.
    #[test]
    fn every_warp_has_all_iterations() {
        let edge = |to: Option<usize>, share: f64| BlockEdge { to, share, leaves: to.is_none().then_some(0) };
        let next = vec![edge(Some(0), 1.0 - 0.1), edge(None, 1.0 - (1.0 - 0.1))];
        let blocks = [BasicBlock { range: 0..1, count: 10.0, next }];
        for warp in 0..100 {
            let mut choices = Choices::new(&blocks, warp, warp as f64);
            let iterations = std::iter::from_fn(|| choices.next(&blocks, 0)).count() + 1;
            assert_eq!(iterations, 10, "warp {warp}");
        }
    }

    #[test]
    fn a_loop_that_is_not_entered_again_is_left() {
        let path = path(&[(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 1.0), (6, 1.0), (7, 1.0)]);
        assert_eq!(path, [0, 1, 2, 3, 4]);
    }

    /// A loop with two exits. A half of the warps takes each of them, after 8 iterations.
    #[test]
    fn the_exits_of_a_loop_count_together() {
        let edge = |to: usize, share: f64, leaves: bool| BlockEdge {
            to: Some(to).filter(|to| *to < 2),
            share,
            leaves: leaves.then_some(0),
        };
        let exit = 0.5 / 8.0;
        let head = vec![edge(1, 1.0 - exit, false), edge(2, exit, true)];
        let back = exit * 8.0 / 7.5;
        let end = vec![edge(0, 1.0 - back, false), edge(2, back, true)];
        let blocks =
            [BasicBlock { range: 0..1, count: 8.0, next: head }, BasicBlock { range: 1..2, count: 7.5, next: end }];
        let visits = visits(&blocks);
        assert!((visits[0] - 8.0).abs() < 0.1 && (visits[1] - 7.5).abs() < 0.5, "{visits:?}");
    }

    /// A branch that 0.3 of the warps take, and a branch within it that a half of these take.
    #[test]
    fn branches_within_branches_have_their_frequency() {
        let edge = |to: usize, share: f64| BlockEdge { to: Some(to).filter(|to| *to < 4), share, leaves: None };
        let block =
            |number: usize, count: f64, next: Vec<BlockEdge>| BasicBlock { range: number..number + 1, count, next };
        let blocks = [
            block(0, 1.0, vec![edge(3, 0.7), edge(1, 0.3)]),
            block(1, 0.3, vec![edge(3, 0.5), edge(2, 0.5)]),
            block(2, 0.15, vec![edge(3, 1.0)]),
            block(3, 1.0, vec![edge(4, 1.0)]),
        ];
        let visits = visits(&blocks);
        for (visits, block) in visits.iter().zip(&blocks) {
            assert!((visits / block.count - 1.0).abs() < 0.1, "{visits} of {}", block.count);
        }
    }

    /// A loop that ptxas unrolled by 4, its remainder, and an access whose jump ptxas replaced by a
    /// guard.
    const UNROLLED: &str = r#"
	.headerflags	@"EF_CUDA_SM61"
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File "p", line 1
        /*0008*/                   MOV R1, c[0x0][0x20] ;
        /*0010*/               @P0 BRA `(.L_x_2) ;
.L_x_1:
	//## File "p", line 2
        /*0018*/                   LDG.E R3, [R4] ;
        /*0028*/                   LDG.E R3, [R4] ;
        /*0030*/                   LDG.E R3, [R4] ;
        /*0038*/                   LDG.E R3, [R4] ;
	//## File "p", line 3
        /*0048*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0050*/               @P2 BRA `(.L_x_4) ;
.L_x_3:
	//## File "p", line 2
        /*0058*/                   LDG.E R3, [R4] ;
	//## File "p", line 3
        /*0068*/               @P3 BRA `(.L_x_3) ;
.L_x_4:
	//## File "p", line 4
        /*0070*/              @!P4 STS [R4], R3 ;
	//## File "p", line 5
        /*0078*/                   EXIT ;
"#;

    #[test]
    fn copies_of_an_unrolled_loop_share_its_executions() {
        let listing = Listing::read(UNROLLED).unwrap();
        for (iterations, stores) in [(400.0, 0.25), (3.0, 1.0), (0.0, 0.0), (37.5, 0.5)] {
            let executions = HashMap::from([(1, 1.0), (2, iterations), (3, iterations), (4, stores), (5, 1.0)]);
            let blocks = blocks(&listing, &executions);
            let issued: f64 = blocks
                .iter()
                .map(|block| {
                    let loads = listing.instructions[block.range.clone()].iter().filter(|inst| inst.opcode() == "LDG");
                    loads.count() as f64 * block.count
                })
                .sum();
            assert!((issued - iterations).abs() < 1e-9, "{iterations}: {issued}");
            let unmatched = unmatched_accesses(&listing, &blocks, &executions);
            assert!(unmatched < 0.05, "{iterations}: {unmatched}");
            let active = active_shares(&listing, &blocks, &executions);
            let store = listing.instructions.iter().position(|inst| inst.opcode() == "STS").unwrap();
            assert_eq!(active[store], stores, "the guard excludes the other executions");
            assert_eq!(active[0], 1.0);
        }
    }

    /// Checks counts of a guarded store that no path reaches.
    #[test]
    fn accesses_that_no_path_explains_are_reported() {
        let listing = Listing::read(UNROLLED).unwrap();
        let executions = HashMap::from([(2, 4.0), (4, 1.0)]);
        let blocks = blocks(&listing, &executions);
        assert_eq!(unmatched_accesses(&listing, &blocks, &executions), 0.0);
        let more = HashMap::from([(2, 4.0), (4, 6.0)]);
        // One store of six is on the path.
        assert_eq!(unmatched_accesses(&listing, &blocks, &more), 0.5);
    }
}
