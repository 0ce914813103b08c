//! The path of a warp through machine code, from the counts of PTX instructions.
//!
//! The interpreter counts how often a warp executes each line of the PTX, and the disassembly names
//! the line of each machine instruction. ptxas moves, duplicates and removes instructions, so the
//! count of a basic block is the median over its *anchors*: instructions that ptxas neither moves
//! nor repeats (accesses, barriers, exchanges, jumps). An unrolled loop has several copies of an
//! anchor, among which its count is divided. The counts of edges follow from those of blocks,
//! because as many warps enter a block as leave it.

use crate::sass::{Class, Listing};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Number of rounds of [`balance`].
const ROUNDS: u32 = 20;

/// A basic block.
#[derive(Clone, Debug, PartialEq)]
pub struct BasicBlock {
    /// Instructions: indices into [`Listing::instructions`].
    pub range: Range<usize>,
    /// Executions by a warp, on average.
    pub count: f64,
    /// Following blocks, each with its share of the executions. `None` ends the warp. The first has
    /// the largest share.
    pub next: Vec<(Option<usize>, f64)>,
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
    let reached = |at: usize| at == 0 || starts[at] || next[at - 1].contains(&at);
    let firsts: Vec<usize> = (0..next.len()).filter(|at| starts[*at] && reached(*at)).collect();
    let ranges: Vec<Range<usize>> =
        firsts.iter().enumerate().map(|(i, first)| *first..firsts.get(i + 1).copied().unwrap_or(next.len())).collect();
    let number: HashMap<usize, usize> = firsts.iter().enumerate().map(|(i, first)| (*first, i)).collect();
    let mut counts = counts(listing, &ranges, executions);
    balance(&mut counts, listing, &ranges, executions);
    let follows = |range: &Range<usize>| {
        let last = range.end - 1;
        let mut next: Vec<Option<usize>> = next[last].iter().map(|to| number.get(to).copied()).collect();
        let ends = matches!(listing.instructions[last].opcode(), "EXIT" | "RET" | "KILL" | "BPT");
        if ends || next.is_empty() {
            next.push(None);
        }
        next.dedup();
        next
    };
    let follows: Vec<Vec<Option<usize>>> = ranges.iter().map(follows).collect();
    let edges = edges(&counts, &follows);
    let block = |(i, range): (usize, Range<usize>)| {
        let total: f64 = edges[i].iter().sum();
        let share = |count: f64| if total > 0.0 { count / total } else { 1.0 / edges[i].len() as f64 };
        let mut next: Vec<_> = follows[i].iter().copied().zip(edges[i].iter().map(|count| share(*count))).collect();
        next.sort_by(|a, b| b.1.total_cmp(&a.1));
        let count = if counts[i].is_nan() { total } else { counts[i] };
        BasicBlock { range, count, next }
    };
    ranges.into_iter().enumerate().map(block).collect()
}

/// Returns whether ptxas keeps one machine instruction for one PTX instruction.
fn is_anchor(class: Class) -> bool {
    matches!(
        class,
        Class::GlobalLoad
            | Class::GlobalStore
            | Class::SharedLoad
            | Class::SharedStore
            | Class::Atomic
            | Class::Warp
            | Class::Barrier
            | Class::Control
    )
}

/// Returns the executions of each block by a warp.
fn counts(listing: &Listing, ranges: &[Range<usize>], executions: &HashMap<u32, f64>) -> Vec<f64> {
    // For each line and opcode, the number of copies in each block.
    let mut copies: HashMap<(u32, &str), BTreeMap<usize, u32>> = HashMap::new();
    let line = |at: usize| listing.instructions[at].line.as_ref().map(|line| line.number);
    for (block, range) in ranges.iter().enumerate() {
        for at in range.clone() {
            if let Some(line) = line(at) {
                *copies.entry((line, listing.instructions[at].opcode())).or_default().entry(block).or_default() += 1;
            }
        }
    }
    let mut counts = Vec::with_capacity(ranges.len());
    for (block, range) in ranges.iter().enumerate() {
        let (mut anchors, mut others, mut guarded) = (Vec::new(), Vec::new(), Vec::new());
        for at in range.clone() {
            let inst = &listing.instructions[at];
            let class = Class::of(inst);
            let Some(executed) = line(at).and_then(|line| executions.get(&line)) else { continue };
            // ptxas adds these instructions: they belong to no instruction of the line.
            if matches!(inst.opcode(), "SSY" | "BSSY" | "PBK" | "PCNT" | "SYNC" | "BSYNC" | "WARPSYNC" | "DEPBAR") {
                continue;
            }
            if !is_anchor(class) {
                if matches!(class, Class::Fma | Class::Special | Class::Multiply) {
                    others.push(*executed);
                }
                continue;
            }
            let key = (line(at).unwrap_or_default(), inst.opcode());
            // ptxas may copy a jump without the code around it, so that copies do not determine a
            // block's count.
            if class == Class::Control && copies[&key].values().sum::<u32>() > 1 {
                continue;
            }
            // Copies in several blocks do not determine a block's count, unless a loop is unrolled.
            let Some(share) = share(&copies[&key], block) else { continue };
            let share = share * executed;
            if inst.guard.is_empty() || matches!(class, Class::Control) {
                anchors.push(share);
            } else {
                guarded.push(share);
            }
        }
        let known = [anchors, guarded, others].into_iter().find(|counts| !counts.is_empty());
        counts.push(known.map_or(f64::NAN, median));
    }
    // Execution starts in the first block.
    if counts.first().is_some_and(|count| count.is_nan()) {
        counts[0] = 1.0;
    }
    counts
}

/// The executions of a line's instructions with one opcode, and the number of copies in each block.
type OpcodeCopies = (f64, BTreeMap<usize, f64>);

/// Changes the counts of blocks, so that the copies of a PTX line together execute as often as the
/// line. A block changes by the median over its lines.
fn balance(counts: &mut [f64], listing: &Listing, ranges: &[Range<usize>], executions: &HashMap<u32, f64>) {
    let mut lines: HashMap<(u32, &str), OpcodeCopies> = HashMap::new();
    for (block, range) in ranges.iter().enumerate() {
        for inst in &listing.instructions[range.clone()] {
            let class = Class::of(inst);
            let is_kept = is_anchor(class) && !matches!(class, Class::Control | Class::Barrier) || class == Class::Fma;
            let Some(line) = inst.line.as_ref().filter(|_| is_kept && inst.guard.is_empty()) else { continue };
            if let Some(executed) = executions.get(&line.number) {
                let entry = lines.entry((line.number, inst.opcode())).or_insert((*executed, BTreeMap::new()));
                *entry.1.entry(block).or_default() += 1.0;
            }
        }
    }
    for (executed, copies) in lines.values() {
        for block in copies.keys() {
            if counts[*block].is_nan() {
                counts[*block] = executed / copies.values().sum::<f64>();
            }
        }
    }
    for _ in 0..ROUNDS {
        let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
        for (executed, copies) in lines.values() {
            let sum: f64 = copies.iter().map(|(block, n)| counts[*block] * n).sum();
            if sum > 0.0 {
                copies.keys().for_each(|block| ratios[*block].push(executed / sum));
            }
        }
        for (count, ratios) in counts.iter_mut().zip(ratios).filter(|(_, ratios)| !ratios.is_empty()) {
            *count *= median(ratios);
        }
    }
}

/// Returns the share of an instruction's executions that each copy in `block` has; `None` if it
/// does not follow from the copies.
fn share(copies: &BTreeMap<usize, u32>, block: usize) -> Option<f64> {
    let most = copies.values().copied().max()?;
    let here = copies.get(&block).copied()?;
    let of_most = copies.values().filter(|n| **n == most).count();
    match (copies.len(), here == most, of_most) {
        (1, ..) => Some(1.0 / f64::from(here)),
        // An unrolled loop, and its remainder.
        (_, true, 1) if most > 1 => Some(1.0 / f64::from(most)),
        (_, false, 1) if most > 1 => Some(0.0),
        _ => None,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// Returns the executions of each edge. An unknown count (NaN) of a block is the sum of the edges
/// that leave the block, or of those that enter.
fn edges(counts: &[f64], follows: &[Vec<Option<usize>>]) -> Vec<Vec<f64>> {
    let mut counts = counts.to_vec();
    let mut edges: Vec<Vec<Option<f64>>> = follows.iter().map(|next| vec![None; next.len()]).collect();
    let mut before: Vec<Vec<(usize, usize)>> = vec![Vec::new(); counts.len()];
    for (from, next) in follows.iter().enumerate() {
        for (i, to) in next.iter().enumerate() {
            if let Some(to) = to {
                before[*to].push((from, i));
            }
        }
    }
    loop {
        let mut changed = false;
        for block in 0..counts.len() {
            let enters = if block == 0 { 1.0 } else { 0.0 };
            let entered: Vec<Option<f64>> = before[block].iter().map(|(from, i)| edges[*from][*i]).collect();
            let sum = |edges: &[Option<f64>]| edges.iter().flatten().sum::<f64>();
            let left = edges[block].clone();
            if counts[block].is_nan() {
                if !left.is_empty() && left.iter().all(Option::is_some) {
                    counts[block] = sum(&left);
                } else if entered.iter().all(Option::is_some) {
                    counts[block] = enters + sum(&entered);
                } else {
                    continue;
                }
                changed = true;
            }
            if let [unknown] = missing(&left)[..] {
                edges[block][unknown] = Some((counts[block] - sum(&left)).max(0.0));
                changed = true;
            }
            if let [unknown] = missing(&entered)[..] {
                let (from, i) = before[block][unknown];
                if edges[from][i].is_none() {
                    edges[from][i] = Some((counts[block] - enters - sum(&entered)).max(0.0));
                    changed = true;
                }
            }
        }
        if changed {
            continue;
        }
        // The equations leave open how many warps skip a loop. The model assumes as few as the
        // counts permit. So the rarest way out of the most frequent open block is taken as often as
        // possible.
        let weight = |to: Option<usize>| to.map_or(1.0, |to| counts[to]).max(0.0);
        let open = (0..counts.len()).filter(|block| !missing(&edges[*block]).is_empty());
        let Some(block) = open.reduce(|a, b| if weight(Some(b)) > weight(Some(a)) { b } else { a }) else { break };
        let ways = missing(&edges[block]).into_iter().map(|i| (i, weight(follows[block][i])));
        let rarest = ways.clone().filter(|(_, weight)| *weight > 0.0).min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((i, most)) = rarest.or_else(|| ways.clone().next()) else { break };
        let known: f64 = edges[block].iter().flatten().sum();
        let left = if counts[block].is_nan() { 0.0 } else { (counts[block] - known).max(0.0) };
        edges[block][i] = Some(left.min(most));
    }
    edges.into_iter().map(|edges| edges.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

fn missing(edges: &[Option<f64>]) -> Vec<usize> {
    (0..edges.len()).filter(|i| edges[*i].is_none()).collect()
}

/// Choices of a warp at the ends of blocks: each edge is taken with the frequency of its share, at
/// even distances.
#[derive(Clone)]
pub struct Choices {
    /// For each edge, the executions that are due. Edges of a block are adjacent.
    due: Vec<f64>,
    /// The first edge of each block.
    first: Vec<usize>,
}

impl Choices {
    /// Starts warp `warp`. An edge that a warp takes 0.25 times on average is taken by each fourth
    /// warp.
    pub fn new(blocks: &[BasicBlock], warp: u64) -> Choices {
        let (mut due, mut first) = (Vec::new(), Vec::with_capacity(blocks.len()));
        for block in blocks {
            first.push(due.len());
            let count = if block.count.is_finite() { block.count } else { 0.0 };
            let part = |executions: f64| executions - (executions + 1e-6).floor();
            due.extend(block.next.iter().map(|(_, share)| (warp as f64 * part(share * count).max(0.0)).fract()));
        }
        Choices { due, first }
    }

    /// Returns the block after `block`; `None` at the end of the warp.
    pub fn next(&mut self, blocks: &[BasicBlock], block: usize) -> Option<usize> {
        let next = &blocks[block].next;
        let due = &mut self.due[self.first[block]..][..next.len()];
        for ((_, share), due) in next.iter().zip(due.iter_mut()).skip(1) {
            *due += share;
        }
        // The most frequent edge is taken unless another one is due.
        let chosen = (1..next.len()).find(|i| due[*i] >= 1.0 - 1e-6);
        if let Some(i) = chosen {
            due[i] -= 1.0;
        }
        next[chosen.unwrap_or(0)].0
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
        let mut choices = Choices::new(&blocks, 0);
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
        let next = vec![(Some(0), 1.0 - 0.1), (None, 1.0 - (1.0 - 0.1))];
        let blocks = [BasicBlock { range: 0..1, count: 10.0, next }];
        for warp in 0..100 {
            let mut choices = Choices::new(&blocks, warp);
            let iterations = std::iter::from_fn(|| choices.next(&blocks, 0)).count() + 1;
            assert_eq!(iterations, 10, "warp {warp}");
        }
    }

    #[test]
    fn a_loop_that_is_not_entered_again_is_left() {
        let path = path(&[(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 1.0), (6, 1.0), (7, 1.0)]);
        assert_eq!(path, [0, 1, 2, 3, 4]);
    }
}
