//! The walk through a kernel, and its state.
//!
//! Control flow is a tree, and so is the walk. The walk tracks what is known about each local at
//! the current point, and the open constructs. Threads diverge at an `If`, and at a `Break`,
//! `Continue` or `Return` that not all of them reach. Diverged threads reconverge at the end of the
//! `If`, or of the construct that was left. In between, control is tainted by the condition of the
//! `If`, or by the condition under which threads left.
//!
//! Where paths of control merge, a local that one of them wrote has either value. Where threads
//! took different paths, the local differs between threads, even if it is uniform on each path.
//! Threads that leave a loop in different iterations keep the value of their iteration.
//!
//! A loop is walked until nothing changes. Facts only get weaker, so the iteration terminates.

use super::fact::{UniformityFact, settle_only_warp};
use super::locals::{Locals, LocalsState};
use super::operation::UniformityFacts;
use super::verdict::{Cause, CauseStep, CausedVerdict, UniformScope, Verdicts};
use crate::hash::FastMap;
use crate::ir::{Inst, Kernel, Label, Op, Region, Value, Values};

/// Uniformity of the threads that have left each open construct, innermost last, and the kernel.
#[derive(Clone)]
struct ExitedThreads {
    constructs: Vec<LeftThreads>,
    returned: Verdicts,
}

/// Uniformity of the threads that have left a construct.
#[derive(Clone, Copy)]
struct LeftThreads {
    /// Threads that have left permanently.
    by_break: Verdicts,
    /// Threads that have left the current iteration.
    by_continue: Verdicts,
}

impl LeftThreads {
    const NO_THREADS: LeftThreads = LeftThreads { by_break: Verdicts::UNIFORM, by_continue: Verdicts::UNIFORM };

    fn join(self, other: LeftThreads) -> LeftThreads {
        LeftThreads {
            by_break: self.by_break.join(other.by_break),
            by_continue: self.by_continue.join(other.by_continue),
        }
    }
}

impl ExitedThreads {
    fn join(&mut self, other: &ExitedThreads) {
        self.returned = self.returned.join(other.returned);
        for (mine, theirs) in self.constructs.iter_mut().zip(&other.constructs) {
            *mine = mine.join(*theirs);
        }
    }

    fn agrees(&self, other: &ExitedThreads) -> bool {
        let same = |(a, b): (&LeftThreads, &LeftThreads)| {
            a.by_break.agrees(&b.by_break) && a.by_continue.agrees(&b.by_continue)
        };
        self.returned.agrees(&other.returned) && self.constructs.iter().zip(&other.constructs).all(same)
    }
}

/// Construct that the walk is in.
struct EnclosingConstruct {
    /// Label of `Break` and `Continue`; `None` for an `If`.
    label: Option<Label>,
    /// Uniformity of the threads that enter: the condition of an `If`, or the number of iterations
    /// of a loop.
    enters: Verdicts,
    /// The facts before a loop; `None` for an `If`.
    before: Option<LocalsState>,
    /// Paths out of the construct by `Break`.
    exits: Vec<ControlPath>,
    /// Paths to the next iteration by `Continue`.
    continues: Vec<ControlPath>,
}

/// Path to a point where paths merge.
struct ControlPath {
    state: LocalsState,
    values: Values,
    /// Uniformity of the threads that take the path, among the threads that entered the construct.
    uniformity: Verdicts,
    /// Whether the path leaves a loop in different iterations, so that values defined there differ.
    crosses: bool,
}

/// Facts at the head of a loop that differ from the facts before the loop.
#[derive(Default)]
struct Head {
    locals: FastMap<u32, UniformityFact>,
    parameters: Vec<UniformityFact>,
    left: Option<Verdicts>,
}

/// State of the analysis.
pub(super) struct UniformityState<'k> {
    kernel: &'k Kernel,
    pub facts: UniformityFacts<'k>,
    locals: Locals<'k>,
    open: Vec<EnclosingConstruct>,
    exited: ExitedThreads,
    heads: FastMap<Label, Head>,
    /// Uniformity of control at the instructions with effects, by their address.
    pub control: FastMap<usize, Verdicts>,
    /// Causes of early exits, which [`CauseStep::Left`] names by index.
    pub leaving: Vec<Cause>,
    /// Uniformity of the threads that leave a loop by its breaks, by the instruction's address.
    pub breaks: FastMap<usize, Verdicts>,
}

impl<'k> UniformityState<'k> {
    pub fn new(kernel: &'k Kernel) -> UniformityState<'k> {
        UniformityState {
            kernel,
            facts: UniformityFacts::new(kernel),
            locals: Locals::new(kernel),
            open: Vec::new(),
            exited: ExitedThreads { constructs: Vec::new(), returned: Verdicts::UNIFORM },
            heads: FastMap::default(),
            control: FastMap::default(),
            leaving: Vec::new(),
            breaks: FastMap::default(),
        }
    }

    /// Walks the whole kernel.
    pub fn run(&mut self) {
        self.region(&self.kernel.body);
    }

    /// Returns the values of the region's `Yield`, if control reaches its end.
    fn region(&mut self, region: &'k Region) -> Option<Values> {
        for inst in &region.insts {
            if !inst.op.is_pure() && !matches!(inst.op, Op::ReadLocal { .. } | Op::WriteLocal { .. } | Op::Yield(_)) {
                let control = self.current_convergence();
                self.control.insert(std::ptr::from_ref(inst).addr(), control);
            }
            let goes_on = match &inst.op {
                Op::Yield(values) => return Some(values.clone()),
                Op::Break(label, values) => {
                    self.leave(*label, values, false, inst);
                    false
                }
                Op::Continue(label, values) => {
                    self.leave(*label, values, true, inst);
                    false
                }
                // A failing assertion ends its thread. Convergence is analyzed for runs without a
                // failure.
                Op::Return if region.panics().is_some() => false,
                Op::Return => {
                    let uniformity = self.current_convergence();
                    self.exited.returned = self.left(self.exited.returned, uniformity, inst);
                    false
                }
                Op::If { condition, then, otherwise } => self.branch(*condition, then, otherwise, inst),
                Op::Block { label, body } => self.block(*label, body, inst),
                Op::Loop { label, inits, body } => self.repeat(*label, inits, body, None, inst),
                Op::For(l) => self.repeat(l.label, &l.inits, &l.body, Some([l.start, l.end, l.step]), inst),
                Op::ReadLocal { local, index } => {
                    let fact = self.locals.read(*local, *index, &self.facts);
                    self.facts.set(inst.results[0], fact);
                    true
                }
                Op::WriteLocal { local, index, value } => {
                    self.locals.write(*local, *index, *value, inst.location, &self.facts);
                    true
                }
                _ => {
                    self.facts.inst(inst);
                    true
                }
            };
            if !goes_on {
                return None;
            }
        }
        None
    }

    /// Returns whether threads are converged at this point.
    fn current_convergence(&self) -> Verdicts {
        let mut all = self.convergence_since(0).join(self.exited.returned);
        if self.kernel.block.most_threads() <= 32 {
            settle_only_warp(&mut all);
        }
        all
    }

    /// Returns whether the threads that entered the open construct `depth` are converged at this
    /// point.
    fn convergence_since(&self, depth: usize) -> Verdicts {
        let entered = self.open[depth..].iter().fold(Verdicts::UNIFORM, |all, open| all.join(open.enters));
        let left = &self.exited.constructs[depth..];
        left.iter().fold(entered, |all, left| all.join(left.by_break).join(left.by_continue))
    }

    fn push(&mut self, label: Option<Label>, enters: Verdicts, before: Option<LocalsState>, left: LeftThreads) {
        self.open.push(EnclosingConstruct { label, enters, before, exits: Vec::new(), continues: Vec::new() });
        self.exited.constructs.push(left);
    }

    fn pop(&mut self) -> (EnclosingConstruct, LeftThreads) {
        let open = self.open.pop().expect("a construct is open");
        (open, self.exited.constructs.pop().expect("a construct is open"))
    }

    /// Returns `left` joined with the threads that leave at `inst`.
    fn left(&mut self, mut left: Verdicts, uniformity: Verdicts, inst: &Inst) -> Verdicts {
        for scope in [UniformScope::Grid, UniformScope::Block, UniformScope::Warp] {
            let new = uniformity.at(scope);
            if let Some(why) = new.cause().filter(|_| new.verdict > left.at(scope).verdict) {
                let cause = Cause { hop: CauseStep::Left(self.leaving.len() as u32), location: inst.location };
                self.leaving.push(why);
                left.set(scope, CausedVerdict::because(new.verdict, cause));
            }
        }
        left
    }

    /// Records a `Break` or, if `continues`, a `Continue`.
    fn leave(&mut self, label: Label, values: &Values, continues: bool, inst: &Inst) {
        let Some(depth) = self.open.iter().rposition(|o| o.label == Some(label)) else { return };
        let uniformity = self.convergence_since(depth);
        // A thread that leaves a loop keeps the values of its last iteration.
        let crossed = if continues { depth + 1 } else { depth };
        let mut crosses = false;
        for i in crossed..self.open.len() {
            if let Some(before) = self.open[i].before.take() {
                crosses |= i > depth;
                let uniformity = self.convergence_since(i);
                self.locals.weaken(&before, uniformity);
                self.open[i].before = Some(before);
            }
        }
        let left = self.exited.constructs[depth];
        let mut updated = left;
        if continues {
            updated.by_continue = self.left(left.by_continue, uniformity, inst);
        } else {
            updated.by_break = self.left(left.by_break, uniformity, inst);
        }
        self.exited.constructs[depth] = updated;
        let path = ControlPath { state: self.locals.now.clone(), values: values.clone(), uniformity, crosses };
        let open = &mut self.open[depth];
        if continues { open.continues.push(path) } else { open.exits.push(path) }
    }

    fn branch(&mut self, condition: Value, then: &'k Region, otherwise: &'k Region, inst: &Inst) -> bool {
        if let Some(taken) = self.facts.of(condition).common_number() {
            let Some(values) = self.region(if taken != 0 { then } else { otherwise }) else { return false };
            self.pass_on(&inst.results, &values, inst);
            return true;
        }
        let parts = self.facts.of(condition).verdicts().with_cause(CauseStep::Branch(condition), inst.location);
        let (before, exited) = (self.locals.now.clone(), self.exited.clone());
        // If the other arm fails, all threads that continue take this arm.
        let enters = |other: &Region| if other.panics().is_some() { Verdicts::UNIFORM } else { parts };
        self.push(None, enters(otherwise), None, LeftThreads::NO_THREADS);
        let first = self.region(then);
        self.pop();
        let first =
            (first, std::mem::replace(&mut self.locals.now, before), std::mem::replace(&mut self.exited, exited));
        self.push(None, enters(then), None, LeftThreads::NO_THREADS);
        let second = self.region(otherwise);
        self.pop();
        self.exited.join(&first.2);
        match (first.0, second) {
            (Some(yes), Some(no)) => {
                let second = std::mem::take(&mut self.locals.now);
                self.locals.now = self.locals.merge(vec![first.1, second], parts);
                for ((result, yes), no) in inst.results.iter().zip(&yes).zip(&no) {
                    let fact = self.facts.select(condition, *yes, *no, inst.location);
                    self.facts.set(*result, fact);
                }
                true
            }
            (Some(values), None) => {
                self.locals.now = first.1;
                self.pass_on(&inst.results, &values, inst);
                true
            }
            (None, Some(values)) => {
                self.pass_on(&inst.results, &values, inst);
                true
            }
            (None, None) => false,
        }
    }

    /// Sets the facts of results to those of these values.
    fn pass_on(&mut self, results: &[Value], values: &[Value], inst: &Inst) {
        for (result, value) in results.iter().zip(values) {
            let fact = self.facts.of(*value).with_cause(CauseStep::From(*value), inst.location);
            self.facts.set(*result, fact);
        }
    }

    fn block(&mut self, label: Label, body: &'k Region, inst: &Inst) -> bool {
        self.push(Some(label), Verdicts::UNIFORM, None, LeftThreads::NO_THREADS);
        let end = self.region(body);
        let (mut open, _) = self.pop();
        if let Some(values) = end {
            open.exits.push(ControlPath {
                state: self.locals.now.clone(),
                values,
                uniformity: Verdicts::UNIFORM,
                crosses: false,
            });
        }
        self.merge_exits(open.exits, Verdicts::UNIFORM, inst)
    }

    /// Ends a construct and merges its exits. Returns whether the construct has an exit.
    fn merge_exits(&mut self, paths: Vec<ControlPath>, also: Verdicts, inst: &Inst) -> bool {
        let uniformity = paths.iter().fold(also, |all, path| all.join(path.uniformity));
        let crosses = paths.iter().any(|path| path.crosses);
        let Some((first, others)) = paths.split_first() else { return false };
        for (i, result) in inst.results.iter().enumerate() {
            let value = first.values[i];
            let mut fact = self.facts.of(value).with_cause(CauseStep::From(value), inst.location);
            let one = others.iter().all(|path| path.values[i] == value);
            for other in others.iter().filter(|_| !one).map(|path| path.values[i]) {
                let small = self.facts.is_small(other);
                fact = fact.or(&self.facts.of(other).with_cause(CauseStep::From(other), inst.location), small);
            }
            // A thread keeps the value of the iteration in which it left the loop.
            let left = crosses || matches!(inst.op, Op::Loop { .. } | Op::For(_));
            self.facts.set(*result, if one && !left { fact } else { fact.tainted(uniformity) });
        }
        self.locals.now = self.locals.merge(paths.into_iter().map(|path| path.state).collect(), uniformity);
        true
    }

    /// Walks a loop until nothing changes. A counted loop has a `range`.
    fn repeat(
        &mut self,
        label: Label,
        inits: &Values,
        body: &'k Region,
        range: Option<[Value; 3]>,
        inst: &Inst,
    ) -> bool {
        let at = inst.location;
        let before = self.locals.now.clone();
        let mut head = self.heads.remove(&label).unwrap_or_default();
        let trips = range.map_or(Verdicts::UNIFORM, |range| self.facts.trip_count_uniformity(range, at));
        let carried = usize::from(range.is_some());
        loop {
            // Facts at the head.
            for (slot, fact) in &head.locals {
                let slot = *slot as usize;
                let fact = self.locals.known[before[slot] as usize].or(fact, self.locals.small[slot]);
                self.locals.now[slot] = self.locals.remember(fact);
            }
            if let Some([start, _, step]) = range {
                let index = self.facts.index(start, step, at);
                self.facts.set(body.parameters[0], index);
            }
            for (i, (parameter, init)) in body.parameters[carried..].iter().zip(inits).enumerate() {
                let mut fact = self.facts.of(*init).with_cause(CauseStep::From(*init), at);
                if let Some(at_back_edges) = head.parameters.get(i) {
                    fact = fact.or(at_back_edges, self.facts.is_small(*parameter));
                }
                self.facts.set(*parameter, fact);
            }
            let at_head = self.locals.now.clone();
            let by_break = head.left.unwrap_or(Verdicts::UNIFORM);
            let exited = self.exited.clone();
            self.push(
                Some(label),
                trips,
                Some(before.clone()),
                LeftThreads { by_break, by_continue: Verdicts::UNIFORM },
            );

            // The body, and the paths back to the head.
            let end = self.region(body);
            let (mut open, left) = self.pop();
            if let Some(values) = end {
                let state = std::mem::take(&mut self.locals.now);
                open.continues.push(ControlPath { state, values, uniformity: Verdicts::UNIFORM, crosses: false });
            }
            let mut changed = !left.by_break.agrees(&by_break) || !self.exited.agrees(&exited);
            head.left = Some(left.by_break);
            changed |= self.merge_back_edges(&mut head, &at_head, open.continues, &body.parameters[carried..]);
            self.locals.now = at_head;
            if changed {
                self.locals.now.clone_from(&before);
                continue;
            }

            // The exits. A counted loop can end at its head, with the facts there. Any loop can end
            // by its breaks.
            let mut paths = open.exits;
            if range.is_some() {
                let values = body.parameters[carried..].into();
                paths.push(ControlPath { state: self.locals.now.clone(), values, uniformity: trips, crosses: false });
            }
            let uniformity = paths.iter().fold(trips, |all, path| all.join(path.uniformity));
            self.heads.insert(label, head);
            self.breaks.insert(std::ptr::from_ref(inst).addr(), left.by_break);
            let leaves = self.merge_exits(paths, trips, inst);
            self.locals.weaken(&before, uniformity);
            return leaves;
        }
    }

    /// Merges the paths back to the head of a loop into its facts. Returns whether the facts became
    /// weaker.
    fn merge_back_edges(
        &mut self,
        head: &mut Head,
        at_head: &LocalsState,
        paths: Vec<ControlPath>,
        parameters: &[Value],
    ) -> bool {
        let uniformity = paths.iter().fold(Verdicts::UNIFORM, |all, path| all.join(path.uniformity));
        let mut changed = false;
        for (i, parameter) in parameters.iter().enumerate() {
            let small = self.facts.is_small(*parameter);
            let mut fact = self.facts.of(*parameter).clone();
            for value in paths.iter().filter_map(|path| path.values.get(i)) {
                fact = fact.or(self.facts.of(*value), small);
            }
            let one = paths.windows(2).all(|two| two[0].values.get(i) == two[1].values.get(i));
            let left = paths.iter().any(|path| path.crosses);
            let fact = if one && !left { fact } else { fact.tainted(uniformity) };
            changed |= !fact.agrees(self.facts.of(*parameter));
            match head.parameters.get_mut(i) {
                Some(known) => *known = fact,
                None => head.parameters.push(fact),
            }
        }
        if paths.is_empty() {
            return changed;
        }
        let end = self.locals.merge(paths.into_iter().map(|path| path.state).collect(), uniformity);
        for slot in 0..end.len() {
            if end[slot] == at_head[slot] {
                continue;
            }
            let old = &self.locals.known[at_head[slot] as usize];
            let fact = old.or(&self.locals.known[end[slot] as usize], self.locals.small[slot]);
            let first = !head.locals.contains_key(&(slot as u32));
            // Until it has a fact at the head, a local is analyzed with its fact from before the
            // loop.
            if first || !fact.agrees(old) {
                changed = true;
                head.locals.insert(slot as u32, fact);
            }
        }
        changed
    }
}
