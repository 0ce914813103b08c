//! Dead-code elimination: an instruction without an effect or a use is dropped. The remaining
//! values are numbered in order.
//!
//! Effects are stores, atomic operations, writes to locals, reports, barriers, shuffles and votes,
//! the end of the thread, and a `Loop`, which may not end. A `For` ends, so a `For` without effects
//! is dropped with its last used result. An unused load is dropped too. In bounds it has no effect,
//! and loads out of bounds are reported on IR as lowered. Constructs lose their unused results, and
//! carried values that only compute themselves. An atomic operation with an unused result stays
//! without the result.

use crate::error::Errors;
use crate::ir::*;

/// Drops unused instructions and values.
pub fn dce(kernel: &mut Kernel) -> Result<(), Errors> {
    let values = kernel.values.len();
    let mut graph = DependenceGraph::new(values);
    graph.region(&kernel.body);
    graph.spread();
    let mut sweep = Sweep {
        live: graph.live,
        next: values,
        number: vec![Value(u32::MAX); values],
        types: Vec::with_capacity(values),
        old: &kernel.values,
        open: Vec::new(),
    };
    sweep.region(&mut kernel.body);
    kernel.values = sweep.types;
    Ok(())
}

const NO_EDGE: u32 = u32::MAX;

/// The graph of dependences, with a node for each value, followed by one for each construct in
/// order. The node of a construct is live if the construct must run.
struct DependenceGraph {
    /// First edge of each node; then each edge's target and the node's next edge.
    heads: Vec<u32>,
    edges: Vec<(u32, u32)>,
    live: Vec<bool>,
    work: Vec<u32>,
    /// Constructs around the current instruction.
    open: Vec<NeededConstruct>,
}

struct NeededConstruct {
    node: u32,
    label: Option<Label>,
    /// The results or parameters that receive the values of `Yield`.
    yields: Values,
    leave: Values,
    next: Values,
}

impl DependenceGraph {
    fn new(values: usize) -> DependenceGraph {
        DependenceGraph {
            heads: vec![NO_EDGE; values],
            edges: Vec::with_capacity(2 * values),
            live: vec![false; values],
            work: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Records that `from` needs `to`.
    fn edge(&mut self, from: u32, to: u32) {
        let head = &mut self.heads[from as usize];
        self.edges.push((to, *head));
        *head = self.edges.len() as u32 - 1;
    }

    fn edges(&mut self, from: &[Value], to: &[Value]) {
        for (f, t) in from.iter().zip(to) {
            self.edge(f.0, t.0);
        }
    }

    fn mark(&mut self, node: u32) {
        if !std::mem::replace(&mut self.live[node as usize], true) {
            self.work.push(node);
        }
    }

    fn spread(&mut self) {
        while let Some(node) = self.work.pop() {
            let mut edge = self.heads[node as usize];
            while edge != NO_EDGE {
                let (to, next) = self.edges[edge as usize];
                self.mark(to);
                edge = next;
            }
        }
    }

    /// Marks all enclosing constructs as live, because an effect happens here.
    fn effect(&mut self) {
        for k in (0..self.open.len()).rev() {
            self.mark(self.open[k].node);
        }
    }

    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.op {
            Op::Yield(values) => {
                if let Some(open) = self.open.last() {
                    let targets = open.yields.clone();
                    self.edges(&targets, values);
                }
            }
            Op::Break(label, values) | Op::Continue(label, values) => {
                let Some(at) = self.open.iter().rposition(|o| o.label == Some(*label)) else { return };
                let target = &self.open[at];
                let to = if matches!(inst.op, Op::Break(..)) { target.leave.clone() } else { target.next.clone() };
                let node = target.node;
                self.edges(&to, values);
                // If the target must run, so must the constructs between it and this jump.
                for k in at + 1..self.open.len() {
                    let between = self.open[k].node;
                    self.edge(node, between);
                }
            }
            op if !op.regions().is_empty() => self.construct(inst),
            op => {
                let results = &inst.results;
                if op.is_droppable() {
                    // If one result of a vector load or of inline PTX is live, all are.
                    if let [first, rest @ ..] = &results[..] {
                        op.for_each_operand(|v| self.edge(first.0, v.0));
                        for r in rest {
                            self.edge(r.0, first.0);
                            self.edge(first.0, r.0);
                        }
                    }
                } else {
                    op.for_each_operand(|v| self.mark(v.0));
                    // An atomic operation runs even if its result is unused.
                    if !matches!(op, Op::Atomic { .. }) {
                        results.iter().for_each(|r| self.mark(r.0));
                    }
                    self.effect();
                }
            }
        }
    }

    fn construct(&mut self, inst: &Inst) {
        let node = self.heads.len() as u32;
        self.heads.push(NO_EDGE);
        self.live.push(false);
        for r in &inst.results {
            self.edge(r.0, node);
        }
        let none = Values::new;
        let results = inst.results.clone();
        let open = match &inst.op {
            Op::If { condition, .. } => {
                self.edge(node, condition.0);
                NeededConstruct { node, label: None, yields: results, leave: none(), next: none() }
            }
            Op::For(l) => {
                [l.start, l.end, l.step].into_iter().for_each(|v| self.edge(node, v.0));
                l.body.parameters.first().into_iter().for_each(|i| self.edge(node, i.0));
                let carried: Values = l.body.parameters.iter().skip(1).copied().collect();
                self.edges(&carried, &l.inits);
                // A carried value and its result are live or dead together.
                self.edges(&carried, &results);
                self.edges(&results, &carried);
                NeededConstruct { node, label: Some(l.label), yields: carried.clone(), leave: results, next: carried }
            }
            Op::Loop { label, inits, body } => {
                self.edges(&body.parameters, inits);
                self.mark(node);
                let carried = body.parameters.clone();
                NeededConstruct { node, label: Some(*label), yields: carried.clone(), leave: results, next: carried }
            }
            Op::Block { label, .. } => {
                NeededConstruct { node, label: Some(*label), yields: results.clone(), leave: results, next: none() }
            }
            _ => return,
        };
        let lasting = matches!(inst.op, Op::Loop { .. });
        self.open.push(open);
        if lasting {
            self.effect();
        }
        inst.op.regions().into_iter().for_each(|r| self.region(r));
        self.open.pop();
    }
}

/// Drops instructions and values that are not live, and numbers the others.
struct Sweep<'k> {
    live: Vec<bool>,
    /// The node of the construct that begins next.
    next: usize,
    /// The new number of each live value that the sweep has reached.
    number: Vec<Value>,
    types: Vec<Type>,
    /// The types of the old values.
    old: &'k [Type],
    open: Vec<KeptValues>,
}

/// For each kind of terminator of a construct, flags of the passed values that stay.
struct KeptValues {
    label: Option<Label>,
    yields: Vec<bool>,
    leave: Vec<bool>,
    next: Vec<bool>,
}

/// Removes the values that are not kept.
fn keep(values: &mut Values, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next().copied().unwrap_or(true));
}

impl Sweep<'_> {
    fn alive(&self, values: &[Value]) -> Vec<bool> {
        values.iter().map(|v| self.live[v.0 as usize]).collect()
    }

    fn number(&mut self, values: &mut Values) {
        for v in values {
            let new = Value(self.types.len() as u32);
            self.types.push(self.old[v.0 as usize]);
            self.number[v.0 as usize] = new;
            *v = new;
        }
    }

    fn region(&mut self, region: &mut Region) {
        region.insts.retain_mut(|inst| self.inst(inst));
    }

    fn inst(&mut self, inst: &mut Inst) -> bool {
        let is_construct = matches!(inst.op, Op::If { .. } | Op::For(_) | Op::Loop { .. } | Op::Block { .. });
        if is_construct {
            self.next += 1;
            if !self.live[self.next - 1] {
                self.next += inst.op.regions().into_iter().map(constructs).sum::<usize>();
                return false;
            }
            self.construct(inst);
            return true;
        }
        match &mut inst.op {
            Op::Yield(values) => {
                if let Some(open) = self.open.last() {
                    keep(values, &open.yields);
                }
            }
            Op::Break(label, values) => {
                if let Some(open) = self.open.iter().rfind(|o| o.label == Some(*label)) {
                    keep(values, &open.leave);
                }
            }
            Op::Continue(label, values) => {
                if let Some(open) = self.open.iter().rfind(|o| o.label == Some(*label)) {
                    keep(values, &open.next);
                }
            }
            Op::Atomic { .. } => inst.results.retain(|r| self.live[r.0 as usize]),
            _ => {
                if let Some(r) = inst.results.first()
                    && !self.live[r.0 as usize]
                {
                    return false;
                }
            }
        }
        let number = &self.number;
        inst.op.map_operands(|v| number[v.0 as usize]);
        self.number(&mut inst.results);
        true
    }

    fn construct(&mut self, inst: &mut Inst) {
        let results = self.alive(&inst.results);
        let mut kept = KeptValues { label: None, yields: results.clone(), leave: results.clone(), next: Vec::new() };
        match &mut inst.op {
            Op::For(l) => {
                let carried = self.alive(&l.body.parameters[1..]);
                keep(&mut l.inits, &carried);
                (kept.label, kept.yields, kept.next) = (Some(l.label), carried.clone(), carried);
            }
            Op::Loop { label, inits, body } => {
                let carried = self.alive(&body.parameters);
                keep(inits, &carried);
                (kept.label, kept.yields, kept.next) = (Some(*label), carried.clone(), carried);
            }
            Op::Block { label, .. } => kept.label = Some(*label),
            _ => {}
        }
        let number = &self.number;
        inst.op.map_operands(|v| number[v.0 as usize]);
        keep(&mut inst.results, &results);
        self.number(&mut inst.results);
        self.open.push(kept);
        for region in inst.op.regions_mut() {
            let live = &self.live;
            region.parameters.retain(|v| live[v.0 as usize]);
            self.number(&mut region.parameters);
            self.region(region);
        }
        self.open.pop();
    }
}

/// Returns the number of constructs in a region and in all regions inside it.
fn constructs(region: &Region) -> usize {
    let inside = region.insts.iter().map(|i| {
        let regions = i.op.regions();
        usize::from(!regions.is_empty()) + regions.into_iter().map(constructs).sum::<usize>()
    });
    inside.sum()
}
