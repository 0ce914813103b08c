//! The control-flow structure of a kernel that determines reconvergence: immediate post-dominators,
//! and an order of the basic blocks.

use super::code::{Inst, InstructionKind, NOWHERE, Pc};
use std::cmp::Reverse;

/// Where diverged lanes may reconverge.
///
/// Post-dominance counts every `ret` and `exit`: one virtual exit follows them all, and no lanes
/// reconverge there. A `trap` ends the launch and an endless loop never ends, so a path to either
/// does not count: ptxas, too, reconverges lanes without regard to traps.
#[derive(Debug, Default)]
pub struct Structure {
    /// For the last instruction of each basic block, the immediate post-dominator: lanes that
    /// diverge at the instruction reconverge there. The entry is [`NOWHERE`] where that
    /// post-dominator is the virtual exit or does not exist.
    pub reconvergence: Vec<Pc>,
    /// By instruction, the end of its basic block.
    pub ends: Vec<Pc>,
    /// The rank of each instruction. Of diverged lanes, those of the lowest rank run first, and
    /// catch up with the lanes that wait.
    ///
    /// A block comes before all blocks that it leads to. The blocks of a loop are consecutive, with
    /// its head last. So lanes at the head wait for lanes in the same iteration, and lanes after
    /// the loop wait for lanes in the loop.
    pub ranks: Vec<u32>,
}

impl Structure {
    /// Analyzes a kernel's instructions.
    pub fn new(insts: &[Inst]) -> Structure {
        let graph = BasicBlockGraph::new(insts);
        let dominators = graph.post_dominators();
        let mut structure = Structure {
            reconvergence: vec![NOWHERE; insts.len()],
            ends: vec![0; insts.len()],
            ranks: vec![0; insts.len()],
        };
        for (block, &(start, end)) in graph.blocks.iter().enumerate() {
            structure.ends[start as usize..end as usize].fill(end);
            if let Some(&(start, _)) = dominators[block].and_then(|dominator| graph.blocks.get(dominator)) {
                structure.reconvergence[end as usize - 1] = start;
            }
        }
        let mut rank = 0;
        for block in graph.order() {
            let (start, end) = graph.blocks[block];
            for pc in start..end {
                structure.ranks[pc as usize] = rank;
                rank += 1;
            }
        }
        structure
    }
}

/// Basic blocks with their successors. The block after the last is the virtual exit.
struct BasicBlockGraph {
    blocks: Vec<(Pc, Pc)>,
    successors: Vec<Vec<usize>>,
}

impl BasicBlockGraph {
    fn new(insts: &[Inst]) -> BasicBlockGraph {
        let count = insts.len();
        let mut starts = vec![false; count + 1];
        starts[0] = true;
        for (pc, inst) in insts.iter().enumerate() {
            let (targets, _) = successors_of(inst);
            for target in targets {
                starts[*target as usize] = true;
            }
            if matches!(
                inst.kind,
                InstructionKind::Branch(_)
                    | InstructionKind::BranchIndexed { .. }
                    | InstructionKind::Exit
                    | InstructionKind::Return
                    | InstructionKind::Trap(_)
            ) {
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
        let exit = blocks.len();
        let mut successors = vec![Vec::new(); exit];
        for (block, (_, after)) in blocks.iter().enumerate() {
            let last = &insts[*after as usize - 1];
            let (targets, falls) = successors_of(last);
            successors[block].extend(targets.iter().map(|t| if *t as usize == count { exit } else { block_of(*t) }));
            if matches!(last.kind, InstructionKind::Exit | InstructionKind::Return) {
                successors[block].push(exit);
            }
            if falls {
                successors[block].push(block + 1);
            }
        }
        BasicBlockGraph { blocks, successors }
    }

    /// Returns the immediate post-dominator of each block; `None` if no path leads to the virtual
    /// exit.
    fn post_dominators(&self) -> Vec<Option<usize>> {
        let exit = self.blocks.len();
        let mut predecessors = vec![Vec::new(); exit + 1];
        for (block, successors) in self.successors.iter().enumerate() {
            successors.iter().for_each(|s| predecessors[*s].push(block));
        }
        let order = reverse_postorder(&predecessors, exit);
        let mut number = vec![usize::MAX; exit + 1];
        order.iter().enumerate().for_each(|(i, block)| number[*block] = i);
        // Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
        let mut dominator: Vec<Option<usize>> = vec![None; exit + 1];
        dominator[exit] = Some(exit);
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

    /// Returns the blocks in the order of [`Structure::ranks`]: a weak topological order
    /// (Bourdoncle, *Efficient Chaotic Iteration Strategies with Widenings*, 1993), each head after
    /// its loop.
    fn order(&self) -> Vec<usize> {
        enum Task {
            Append(usize),
            /// Orders these blocks, as though there were no others.
            Region(Vec<usize>),
        }
        let count = self.blocks.len();
        let mut first = vec![usize::MAX; count + 1];
        reverse_postorder(&self.successors, 0).into_iter().enumerate().for_each(|(i, block)| first[block] = i);
        let mut components = Components::new(&self.successors);
        let mut order = Vec::with_capacity(count);
        let mut tasks = vec![Task::Region((0..count).collect())];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Append(block) => order.push(block),
                Task::Region(mut blocks) => {
                    blocks.sort_unstable_by_key(|block| first[*block]);
                    // Components come in reverse order. Tasks are popped from the end, so the order
                    // is restored.
                    for mut component in components.of(&blocks) {
                        component.sort_unstable_by_key(|block| Reverse(first[*block]));
                        tasks.extend(component.pop().map(Task::Append));
                        if !component.is_empty() {
                            tasks.push(Task::Region(component));
                        }
                    }
                }
            }
        }
        order
    }
}

/// Returns the nodes that are reachable from `root`, in reverse postorder: except in loops, each
/// node comes before those that it leads to.
fn reverse_postorder(successors: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut seen = vec![false; successors.len() + 1];
    seen[root] = true;
    let mut order = Vec::new();
    let mut path = vec![(root, 0)];
    while let Some((node, next)) = path.last_mut() {
        match successors.get(*node).and_then(|s| s.get(*next)) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Strongly connected components of parts of a graph (Tarjan, *Depth-First Search and Linear Graph
/// Algorithms*, 1972).
struct Components<'g> {
    successors: &'g [Vec<usize>],
    nodes: Vec<NodeState>,
    /// The number of the last part.
    part: u32,
}

/// The state of a node in Tarjan's algorithm.
#[derive(Clone, Copy, Default)]
struct NodeState {
    /// The last part that contained the node.
    part: u32,
    /// The order of discovery, from 1; 0 before.
    index: usize,
    /// The least index that the node leads back to.
    low: usize,
    /// Whether its component is not complete yet.
    open: bool,
}

impl<'g> Components<'g> {
    fn new(successors: &'g [Vec<usize>]) -> Components<'g> {
        Components { successors, nodes: vec![NodeState::default(); successors.len() + 1], part: 0 }
    }

    /// Returns the components among `part`, each after those that it leads to.
    fn of(&mut self, part: &[usize]) -> Vec<Vec<usize>> {
        self.part += 1;
        for node in part {
            self.nodes[*node] = NodeState { part: self.part, ..NodeState::default() };
        }
        let (mut components, mut open, mut count) = (Vec::new(), Vec::new(), 0);
        for root in part {
            let mut path = if self.nodes[*root].index == 0 { vec![(*root, 0)] } else { Vec::new() };
            while let Some((node, next)) = path.last_mut() {
                let node = *node;
                if *next == 0 {
                    count += 1;
                    self.nodes[node] = NodeState { part: self.part, index: count, low: count, open: true };
                    open.push(node);
                }
                if let Some(&to) = self.successors[node].get(*next) {
                    *next += 1;
                    let there = self.nodes[to];
                    if there.part == self.part && there.index == 0 {
                        path.push((to, 0));
                    } else if there.part == self.part && there.open {
                        self.nodes[node].low = self.nodes[node].low.min(there.index);
                    }
                    continue;
                }
                path.pop();
                let NodeState { index, low, .. } = self.nodes[node];
                if let Some((from, _)) = path.last() {
                    let back = &mut self.nodes[*from].low;
                    *back = low.min(*back);
                }
                if low == index {
                    let start = open.iter().rposition(|n| *n == node).unwrap_or(0);
                    let component = open.split_off(start);
                    component.iter().for_each(|n| self.nodes[*n].open = false);
                    components.push(component);
                }
            }
        }
        components
    }
}

/// Returns the nearest block that dominates both.
fn common(dominator: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if number[a] < number[b] {
            (a, b) = (b, a);
        }
        // The block with the greater number is farther from the exit, and its dominator is nearer.
        match dominator[a] {
            Some(up) => a = up,
            None => return b,
        }
    }
    a
}

/// Returns the targets of an instruction, and whether control may also continue at the next
/// instruction.
fn successors_of(inst: &Inst) -> (&[Pc], bool) {
    match &inst.kind {
        InstructionKind::Branch(to) => (std::slice::from_ref(to), inst.guard.is_some()),
        InstructionKind::BranchIndexed { targets, .. } => (targets, inst.guard.is_some()),
        InstructionKind::Exit | InstructionKind::Return | InstructionKind::Trap(_) => (&[], inst.guard.is_some()),
        _ => (&[], true),
    }
}
