//! Where lanes that part meet again: immediate post-dominators.
//!
//! A thread that ends meets nobody. So of the places where threads end only the last in the code that they may come to counts as the
//! end of the paths; a path to another one holds nobody back.

use super::code::{Inst, Kind, NOWHERE, Pc};

/// For each instruction that can part lanes, the first instruction that all of them come to, unless they end; or
/// [`NOWHERE`].
pub fn meets(insts: &[Inst]) -> Vec<Pc> {
    let mut graph = Graph::new(insts);
    let mut dominators = vec![None; graph.blocks.len() + 1];
    // What cannot come to the last end has one of its own: from there on it comes to nothing else.
    while let Some(last) = graph.last_end(insts, &dominators) {
        let end = graph.blocks.len();
        graph.successors[last].push(end);
        for (known, found) in dominators.iter_mut().zip(graph.post_dominators()) {
            *known = known.or(found);
        }
    }
    let mut meets = vec![NOWHERE; insts.len()];
    for (block, &(_, end)) in graph.blocks.iter().enumerate() {
        let last = end as usize - 1;
        if matches!(insts[last].kind, Kind::Branch(_) | Kind::BranchIndexed { .. }) {
            meets[last] = match dominators[block] {
                Some(meet) if meet < graph.blocks.len() => graph.blocks[meet].0,
                _ => NOWHERE,
            };
        }
    }
    meets
}

/// Runs of instructions without branches between, and which follow which. The block after the last is the end.
struct Graph {
    blocks: Vec<(Pc, Pc)>,
    successors: Vec<Vec<usize>>,
}

impl Graph {
    fn new(insts: &[Inst]) -> Graph {
        let count = insts.len();
        let mut starts = vec![false; count + 1];
        starts[0] = true;
        for (pc, inst) in insts.iter().enumerate() {
            let (targets, _) = leads(inst);
            for target in targets {
                starts[*target as usize] = true;
            }
            if matches!(inst.kind, Kind::Branch(_) | Kind::BranchIndexed { .. } | Kind::Exit | Kind::Trap(_)) {
                starts[pc + 1] = true;
            }
        }
        let leaders: Vec<usize> = (0..count).filter(|pc| starts[*pc]).collect();
        let blocks: Vec<(Pc, Pc)> = leaders
            .iter()
            .enumerate()
            .map(|(i, start)| (*start as Pc, leaders.get(i + 1).copied().unwrap_or(count) as Pc))
            .collect();
        let block_of = |pc: Pc| blocks.partition_point(|(start, _)| *start <= pc) - 1;
        let end = blocks.len();
        let mut successors = vec![Vec::new(); end];
        for (block, (_, after)) in blocks.iter().enumerate() {
            let (targets, falls) = leads(&insts[*after as usize - 1]);
            successors[block].extend(targets.iter().map(|t| if *t as usize == count { end } else { block_of(*t) }));
            if falls {
                successors[block].push(block + 1);
            }
        }
        Graph { blocks, successors }
    }

    /// The last block in which threads end, of those without a post-dominator yet.
    fn last_end(&self, insts: &[Inst], dominators: &[Option<usize>]) -> Option<usize> {
        let reached = reached(&self.successors);
        let last_of = |block: usize| &insts[self.blocks[block].1 as usize - 1];
        let ends = |block: &usize| {
            reached[*block]
                && dominators[*block].is_none()
                && matches!(last_of(*block).kind, Kind::Exit | Kind::Trap(_))
        };
        let last = (0..self.blocks.len()).rfind(|block| ends(block) && last_of(*block).guard.is_none());
        // A loop at the end may be left by a condition alone: there the paths end.
        last.or_else(|| (0..self.blocks.len()).rfind(ends))
    }

    /// For each block its immediate post-dominator; `None` where the end is out of reach.
    fn post_dominators(&self) -> Vec<Option<usize>> {
        let end = self.blocks.len();
        let mut predecessors = vec![Vec::new(); end + 1];
        for (block, successors) in self.successors.iter().enumerate() {
            successors.iter().for_each(|s| predecessors[*s].push(block));
        }
        // Reverse post-order of the reversed graph, from the end.
        let (mut order, mut number) = (Vec::new(), vec![usize::MAX; end + 1]);
        let mut seen = vec![false; end + 1];
        let mut stack = vec![(end, 0)];
        seen[end] = true;
        while let Some((block, next)) = stack.last_mut() {
            match predecessors[*block].get(*next) {
                Some(&p) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[p], true) {
                        stack.push((p, 0));
                    }
                }
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order.iter().enumerate().for_each(|(i, block)| number[*block] = i);
        // Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
        let mut dominator: Vec<Option<usize>> = vec![None; end + 1];
        dominator[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().skip(1) {
                let known = self.successors[block].iter().copied().filter(|s| dominator[*s].is_some());
                let new = known.reduce(|a, b| common(&dominator, &number, a, b));
                if new != dominator[block] {
                    dominator[block] = new;
                    changed = true;
                }
            }
        }
        dominator
    }
}

/// The blocks that threads come to.
fn reached(successors: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; successors.len() + 1];
    let mut next = vec![0];
    while let Some(block) = next.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            next.extend(successors.get(block).into_iter().flatten());
        }
    }
    reached
}

/// The nearest block that both are dominated by.
fn common(dominator: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if number[a] < number[b] {
            (a, b) = (b, a);
        }
        // The greater number is farther from the end; its dominator is known, and nearer.
        match dominator[a] {
            Some(up) => a = up,
            None => return b,
        }
    }
    a
}

/// Where an instruction leads, and whether to the next one too.
fn leads(inst: &Inst) -> (&[Pc], bool) {
    match &inst.kind {
        Kind::Branch(to) => (std::slice::from_ref(to), inst.guard.is_some()),
        Kind::BranchIndexed { targets, .. } => (targets, inst.guard.is_some()),
        Kind::Exit | Kind::Trap(_) => (&[], inst.guard.is_some()),
        _ => (&[], true),
    }
}
