//! Control flow: which facts hold in the regions of an instruction, and after it.

use super::super::linear::{Polynomial, inequalities};
use super::super::variables::VariableOrigin;
use super::SymbolicAnalysis;
use crate::ir::{Comparison, For, Inst, Location, Op, Region, Value};

impl SymbolicAnalysis<'_> {
    /// Visits the instructions of a region, whose facts end with it.
    pub fn visit_region(&mut self, region: &mut Region) {
        let scope = self.open_scope();
        let unreported = self.unreported_facts();
        for inst in &mut region.insts {
            self.visit(inst);
        }
        self.close_scope(scope);
        self.truncate_unreported_facts(unreported);
    }

    fn visit(&mut self, inst: &mut Inst) {
        // More facts may hold where a comparison is used than where it is computed.
        inst.op.map_operands(|v| self.decided_at_use(v).unwrap_or(v));
        if let [result] = inst.results[..] {
            self.translate(&mut inst.op, result);
        }
        if self.collector.is_some() {
            self.collect_accesses(inst);
        }
        if self.exact.is_some() && self.rewrite(inst) {
            return;
        }
        match &mut inst.op {
            Op::If { condition, then, otherwise } => {
                self.visit_branch(inst.location, *condition, then, otherwise);
                if self.exact.is_some() {
                    self.translate_branch_results(*condition, then, otherwise, &inst.results);
                }
            }
            Op::For(counted) => self.visit_counted_loop(inst.location, counted),
            Op::Loop { body, .. } => {
                let unexpressed = self.has_unexpressed_conditions();
                self.set_unexpressed_conditions(true);
                self.visit_region(body);
                self.set_unexpressed_conditions(unexpressed || may_return(body));
            }
            Op::Block { body, .. } => {
                let unexpressed = self.has_unexpressed_conditions();
                self.visit_region(body);
                self.set_unexpressed_conditions(unexpressed || may_return(body));
            }
            op => op.regions_mut().into_iter().for_each(|region| self.visit_region(region)),
        }
    }

    /// Visits the sides of the branch at `location`, each with the facts of its condition.
    fn visit_branch(&mut self, location: Location, condition: Value, then: &mut Region, otherwise: &mut Region) {
        for (side, holds) in [(&mut *then, true), (&mut *otherwise, false)] {
            let (scope, unexpressed) = (self.open_scope(), self.has_unexpressed_conditions());
            self.enter(location, condition, holds);
            self.visit_region(side);
            self.close_scope(scope);
            self.set_unexpressed_conditions(unexpressed);
        }
        // Threads that left from inside a side do not arrive here. The conditions under which they
        // left are no longer known.
        let within = |side: &Region| side.insts.iter().any(|i| i.op.regions().into_iter().any(may_leave));
        if within(then) || within(otherwise) {
            self.set_unexpressed_conditions(true);
        }
        // If exactly one side leaves, the code after the branch runs only where the other side was
        // taken.
        if always_leaves(then) != always_leaves(otherwise) {
            self.enter(location, condition, always_leaves(otherwise));
        }
    }

    /// Visits the body of a counted loop. The index is the start plus a number of steps, and below
    /// the end.
    fn visit_counted_loop(&mut self, location: Location, counted: &mut For) {
        let scope = self.open_scope();
        let unexpressed = self.has_unexpressed_conditions();
        let index = counted.body.parameters.first().copied().filter(|index| self.is_usize(*index));
        self.set_unexpressed_conditions(unexpressed || index.is_none() || may_leave(&counted.body));
        self.begin_facts_of(location);
        if let Some(index) = index {
            self.translate_index(index, counted);
        }
        self.visit_region(&mut counted.body);
        self.close_scope(scope);
        self.set_unexpressed_conditions(unexpressed || may_return(&counted.body));
    }

    fn translate_index(&mut self, index: Value, counted: &For) {
        let [start, end, step] = [counted.start, counted.end, counted.step].map(|value| self.number(value));
        let iteration = self.table.variable(VariableOrigin::Value(index));
        let distance = step.times(&iteration);
        if let (Some(distance), Some(collector)) = (&distance, &mut self.collector) {
            let continues = inequalities(Comparison::Lt, &start.plus(distance), &end).into_iter().next();
            collector.iterations.extend(iteration.variables().into_iter().zip(continues));
        }
        let number = distance.map_or(iteration, |distance| start.plus(&distance));
        self.facts.push(number.minus(&start));
        self.facts.extend(inequalities(Comparison::Lt, &number, &end));
        self.facts.extend(inequalities(Comparison::Ge, &step, &Polynomial::constant(1)));
        self.numbers.insert(index, number);
    }
}

/// Returns whether control never reaches the end of a side of a branch.
fn always_leaves(region: &Region) -> bool {
    region.yielded().is_none()
}

/// Returns whether control may leave the region before its end.
fn may_leave(region: &Region) -> bool {
    let leaves = |inst: &Inst| {
        matches!(inst.op, Op::Return | Op::Break(..) | Op::Continue(..)) || inst.op.regions().into_iter().any(may_leave)
    };
    region.insts.iter().any(leaves)
}

/// Returns whether threads may return within the region.
fn may_return(region: &Region) -> bool {
    region.insts.iter().any(|inst| matches!(inst.op, Op::Return) || inst.op.regions().into_iter().any(may_return))
}
