//! Unrolling: a copy of a loop's body for each iteration, with the index constant in each copy.
//!
//! Each copy is folded as it is made. So a range that depends on the index of an unrolled loop is
//! constant too. The same holds for an element of a table at that index. `Continue` in an unrolled
//! body leaves a block around its copy, and `Break` leaves a block around all copies. During
//! copying, the values of locals in straight-line code are tracked, so that updates of accumulators
//! emit no reads and writes. `promote` handles the rest.
//!
//! Loops that the kernel leaves to the compiler are unrolled if no loop is inside. The limits are
//! [`MAX_AUTO_UNROLL_TRIPS`] copies and [`MAX_AUTO_UNROLL_INSTRUCTIONS`] instructions in total.

use super::promote::promote_folded;
use super::simplify::Simplifier;
use super::table_reads::TableReads;
use crate::error::{Error, Errors};
use crate::ir::*;

/// The largest number of iterations of a loop that is unrolled without a request.
pub const MAX_AUTO_UNROLL_TRIPS: u64 = 4;
/// The largest number of instructions to which a loop is unrolled without a request.
pub const MAX_AUTO_UNROLL_INSTRUCTIONS: u64 = 96;

/// Unrolls small loops, and loops that the kernel marks.
pub fn unroll(kernel: &mut Kernel) -> Result<(), Errors> {
    match copy(kernel) {
        // The range of a loop may depend on elements of register arrays, which become values after
        // unrolling where the other loops permit it.
        Err(_) if promote_folded(kernel)? => copy(kernel),
        done => done,
    }
}

fn copy(kernel: &mut Kernel) -> Result<(), Errors> {
    let body = std::mem::take(&mut kernel.body);
    let types = std::mem::take(&mut kernel.values);
    let mut unroller = Unroller {
        map: (0..types.len() as u32).map(Value).collect(),
        simplifier: Simplifier::new(types),
        targets: Vec::new(),
        labels: 0,
        made: 0,
        registers: LocalContents::new(&kernel.locals),
        tables: TableReads::new(&kernel.tables),
        errors: Vec::new(),
        is_too_large: false,
        kernel,
    };
    let mut out = Vec::with_capacity(body.insts.len());
    let location = body.insts.last().map_or(Location(0), |i| i.location);
    if let CopiedEnd::Yields(values) = unroller.insts(&body.insts, &mut out) {
        unroller.registers.flush(&mut out);
        out.push(Inst { op: Op::Yield(values), results: Values::new(), location });
    }
    let Unroller { simplifier, errors, .. } = unroller;
    if !errors.is_empty() {
        // Error messages may print the kernel, so its original body is restored.
        kernel.values = simplifier.types;
        kernel.body = body;
        return Err(Errors(errors));
    }
    kernel.body.insts = out;
    simplifier.finish(kernel);
    Ok(())
}

/// How a copied region ends.
enum CopiedEnd {
    /// With a `Yield` of these values, which the caller writes.
    Yields(Values),
    /// With another terminator, which the copy already contains.
    Leaves,
}

/// The targets of a `Break` and a `Continue` of an original label.
#[derive(Clone, Copy)]
enum JumpTarget {
    /// To a loop or block that the copies keep.
    Same(Label),
    /// Out of the block around all copies, or that around the current copy.
    Unrolled { all: Label, one: Label },
}

/// A range of constants.
struct ConstantRange {
    start: i128,
    step: i128,
    trips: u64,
}

struct Unroller<'k> {
    kernel: &'k Kernel,
    simplifier: Simplifier,
    /// The value in the current copy that replaces each original value.
    map: Vec<Value>,
    targets: Vec<(Label, JumpTarget)>,
    /// The number of labels in use.
    labels: u32,
    made: usize,
    registers: LocalContents,
    tables: TableReads<'k>,
    errors: Vec<Error>,
    /// Whether an error was reported that the kernel is too large.
    is_too_large: bool,
}

impl Unroller<'_> {
    fn mapped(&self, values: &[Value]) -> Values {
        values.iter().map(|v| self.map[v.0 as usize]).collect()
    }

    fn replacement(&mut self, old: &[Value], new: &[Value]) {
        for (o, n) in old.iter().zip(new) {
            self.map[o.0 as usize] = *n;
        }
    }

    /// Creates new values that replace the `old` ones.
    fn fresh_values(&mut self, old: &[Value]) -> Values {
        let new: Values = old.iter().map(|v| self.simplifier.value(self.simplifier.ty(*v))).collect();
        self.replacement(old, &new);
        new
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    fn insts(&mut self, insts: &[Inst], out: &mut Vec<Inst>) -> CopiedEnd {
        for inst in insts {
            self.made += 1;
            if self.made > self.kernel.unrolled {
                self.too_large(inst.location);
            }
            if !self.errors.is_empty() && self.made > self.kernel.unrolled {
                return CopiedEnd::Leaves;
            }
            if inst.op.is_pure() {
                let mut op = inst.op.clone();
                op.map_operands(|v| self.map[v.0 as usize]);
                let ty = self.simplifier.ty(inst.results[0]);
                match self.simplifier.simplify(&mut op, ty) {
                    Some(v) => self.map[inst.results[0].0 as usize] = v,
                    None => {
                        let results = self.fresh_values(&inst.results);
                        self.simplifier.note(&op, results[0]);
                        self.tables.note(&op, results[0]);
                        out.push(Inst { op, results, location: inst.location });
                    }
                }
                continue;
            }
            let end = match &inst.op {
                Op::ReadLocal { local, index } => self.read(*local, *index, inst, out),
                Op::WriteLocal { local, index, value } => self.write(*local, *index, *value, inst, out),
                Op::Yield(values) => return CopiedEnd::Yields(self.mapped(values)),
                Op::Break(..) | Op::Continue(..) | Op::Return => {
                    self.registers.flush(out);
                    out.push(Inst { op: self.jump(&inst.op), results: Values::new(), location: inst.location });
                    CopiedEnd::Leaves
                }
                Op::If { condition, then, otherwise } => {
                    let condition = self.map[condition.0 as usize];
                    match self.simplifier.constants.bits(condition) {
                        Some(c) => self.dissolve(if c != 0 { then } else { otherwise }, inst, out),
                        None => {
                            self.registers.flush(out);
                            let then = self.region(then);
                            let otherwise = self.region(otherwise);
                            self.push(Op::If { condition, then, otherwise }, inst, out)
                        }
                    }
                }
                Op::For(l) => self.counted(l, inst, out),
                Op::Loop { label, inits, body } => {
                    self.registers.flush(out);
                    let inits = self.mapped(inits);
                    let new = self.label();
                    let body = self.within(*label, JumpTarget::Same(new), body);
                    self.push(Op::Loop { label: new, inits, body }, inst, out)
                }
                Op::Block { label, body } => {
                    self.registers.flush(out);
                    let new = self.label();
                    let body = self.within(*label, JumpTarget::Same(new), body);
                    self.push(Op::Block { label: new, body }, inst, out)
                }
                op => {
                    let mut op = op.clone();
                    op.map_operands(|v| self.map[v.0 as usize]);
                    match self.tables.known(&mut self.simplifier, &mut op, inst.results.len()) {
                        Some(values) => {
                            self.replacement(&inst.results, &values);
                            CopiedEnd::Yields(Values::new())
                        }
                        None => self.push(op, inst, out),
                    }
                }
            };
            if matches!(end, CopiedEnd::Leaves) {
                return end;
            }
        }
        CopiedEnd::Leaves
    }

    /// Appends `op` in place of `inst`, with new results.
    fn push(&mut self, op: Op, inst: &Inst, out: &mut Vec<Inst>) -> CopiedEnd {
        let results = self.fresh_values(&inst.results);
        out.push(Inst { op, results, location: inst.location });
        CopiedEnd::Yields(Values::new())
    }

    /// Appends a region's instructions in place of the construct `inst` that contains the region.
    fn dissolve(&mut self, region: &Region, inst: &Inst, out: &mut Vec<Inst>) -> CopiedEnd {
        let end = self.insts(&region.insts, out);
        if let CopiedEnd::Yields(values) = &end {
            self.replacement(&inst.results, values);
        }
        end
    }

    fn region(&mut self, region: &Region) -> Region {
        let parameters = self.fresh_values(&region.parameters);
        self.region_of(parameters, region)
    }

    /// Copies `region`, with these parameters.
    fn region_of(&mut self, parameters: Values, region: &Region) -> Region {
        let mut insts = Vec::with_capacity(region.insts.len());
        if let CopiedEnd::Yields(values) = self.insts(&region.insts, &mut insts) {
            self.registers.flush(&mut insts);
            let location = region.insts.last().map_or(Location(0), |i| i.location);
            insts.push(Inst { op: Op::Yield(values), results: Values::new(), location });
        }
        Region { parameters, insts }
    }

    fn within(&mut self, label: Label, target: JumpTarget, body: &Region) -> Region {
        self.targets.push((label, target));
        let region = self.region(body);
        self.targets.pop();
        region
    }

    fn jump(&self, op: &Op) -> Op {
        let target = |l: &Label| self.targets.iter().rev().find(|(of, _)| of == l).map(|(_, t)| *t);
        match op {
            Op::Break(l, values) => match target(l) {
                Some(JumpTarget::Same(new) | JumpTarget::Unrolled { all: new, .. }) => {
                    Op::Break(new, self.mapped(values))
                }
                None => Op::Return,
            },
            Op::Continue(l, values) => match target(l) {
                Some(JumpTarget::Same(new)) => Op::Continue(new, self.mapped(values)),
                Some(JumpTarget::Unrolled { one, .. }) => Op::Break(one, self.mapped(values)),
                None => Op::Return,
            },
            _ => Op::Return,
        }
    }

    fn counted(&mut self, l: &For, inst: &Inst, out: &mut Vec<Inst>) -> CopiedEnd {
        let [start, end, step] = [l.start, l.end, l.step].map(|v| self.map[v.0 as usize]);
        let range = self.range(start, end, step);
        let wanted = match l.unroll {
            Unroll::Never => false,
            Unroll::Full => true,
            Unroll::Auto => range.as_ref().is_some_and(|r| {
                r.trips <= MAX_AUTO_UNROLL_TRIPS && r.trips * size(&l.body) <= MAX_AUTO_UNROLL_INSTRUCTIONS
            }),
        };
        match range {
            Some(range) if wanted => self.copies(l, &range, inst, out),
            None if wanted => {
                self.not_constant(start, end, step, inst);
                // The body is still visited, to report its errors too.
                self.within(l.label, JumpTarget::Same(l.label), &l.body);
                self.fresh_values(&inst.results);
                CopiedEnd::Yields(Values::new())
            }
            _ => {
                self.registers.flush(out);
                let inits = self.mapped(&l.inits);
                let label = self.label();
                let parameters = self.fresh_values(&l.body.parameters);
                if let Some(index) = parameters.first() {
                    self.simplifier.note_index(*index, start, step);
                }
                self.targets.push((l.label, JumpTarget::Same(label)));
                let body = self.region_of(parameters, &l.body);
                self.targets.pop();
                let copy = For { label, start, end, step, unroll: l.unroll, inits, body };
                self.push(Op::For(Box::new(copy)), inst, out)
            }
        }
    }

    fn range(&self, start: Value, end: Value, step: Value) -> Option<ConstantRange> {
        let ty = self.simplifier.ty(start).scalar()?;
        let constant = |v| self.simplifier.constants.bits(v).map(|b| eval::integer(ty, b));
        let (start, end, step) = (constant(start)?, constant(end)?, constant(step)?);
        let trips = if step > 0 { ((end - start + step - 1) / step).max(0) } else { return None };
        Some(ConstantRange { start, step, trips: u64::try_from(trips).unwrap_or(u64::MAX) })
    }

    fn not_constant(&mut self, start: Value, end: Value, step: Value, inst: &Inst) {
        let constant = |v| self.simplifier.constants.bits(v).is_some();
        let which = match () {
            () if !constant(start) => "start",
            () if !constant(end) => "end",
            () if !constant(step) => "step",
            // If start, end and step are constant, only the step can be at fault.
            () => {
                let error = self.kernel.error(inst.location, "the step of this range is not positive");
                return self.errors.push(error);
            }
        };
        let message = format!("the {which} of this range is not a constant: the loop cannot be unrolled");
        let error = self.kernel.error(inst.location, message);
        self.errors.push(error.help("unroll over a range of literals and generic constants, or remove `unroll`"));
    }

    fn too_large(&mut self, location: Location) {
        if std::mem::replace(&mut self.is_too_large, true) {
            return;
        }
        let error = self.kernel.error(
            location,
            format!("after unrolling, the kernel has more than {} instructions", self.kernel.unrolled),
        );
        self.errors.push(error.help("unroll fewer loops"));
    }

    /// Copies the loop's body for each iteration.
    fn copies(&mut self, l: &For, range: &ConstantRange, inst: &Inst, out: &mut Vec<Inst>) -> CopiedEnd {
        let Some((index, parameters)) = l.body.parameters.split_first() else { return CopiedEnd::Leaves };
        let jumps = jumps(&l.body, l.label);
        let all = self.label();
        if jumps.breaks {
            self.registers.flush(out);
        }
        let mut carried = self.mapped(&l.inits);
        let mut inner = Vec::new();
        let into: &mut Vec<Inst> = if jumps.breaks { &mut inner } else { &mut *out };
        let mut ended = false;
        for trip in 0..range.trips {
            self.made += 1;
            if self.made > self.kernel.unrolled {
                self.too_large(inst.location);
                break;
            }
            let ty = self.simplifier.ty(*index);
            let mask = ty.scalar().map_or(0, |s| s.mask());
            let at = (range.start + range.step * i128::from(trip)) as u64 & mask;
            self.map[index.0 as usize] = self.simplifier.constant(ty, at);
            self.replacement(parameters, &carried);
            let one = if jumps.continues { self.label() } else { all };
            self.targets.push((l.label, JumpTarget::Unrolled { all, one }));
            let end = if jumps.continues {
                self.registers.flush(into);
                let mut copy = Vec::with_capacity(l.body.insts.len());
                if let CopiedEnd::Yields(values) = self.insts(&l.body.insts, &mut copy) {
                    self.registers.flush(&mut copy);
                    copy.push(Inst { op: Op::Yield(values), results: Values::new(), location: inst.location });
                }
                let results: Values =
                    parameters.iter().map(|p| self.simplifier.value(self.simplifier.ty(*p))).collect();
                let body = Region { parameters: Values::new(), insts: copy };
                into.push(Inst {
                    op: Op::Block { label: one, body },
                    results: results.clone(),
                    location: inst.location,
                });
                CopiedEnd::Yields(results)
            } else {
                self.insts(&l.body.insts, into)
            };
            self.targets.pop();
            match end {
                CopiedEnd::Yields(values) => carried = values,
                CopiedEnd::Leaves => {
                    ended = true;
                    break;
                }
            }
        }
        if !jumps.breaks {
            if ended {
                return CopiedEnd::Leaves;
            }
            self.replacement(&inst.results, &carried);
            return CopiedEnd::Yields(Values::new());
        }
        if !ended {
            self.registers.flush(&mut inner);
            inner.push(Inst { op: Op::Yield(carried), results: Values::new(), location: inst.location });
        }
        let body = Region { parameters: Values::new(), insts: inner };
        self.push(Op::Block { label: all, body }, inst, out)
    }
}

/// The contents of locals in the current straight-line code.
struct LocalContents {
    /// First slot of each local, followed by the total number of slots. A slot is an element.
    first: Vec<u32>,
    slots: Vec<RegisterSlot>,
    /// Slots whose value is not written to the local yet.
    unwritten: Vec<u32>,
    /// The number of the current piece of straight-line code. Values of slots from other pieces do
    /// not apply.
    segment: u32,
}

#[derive(Clone, Copy)]
struct RegisterSlot {
    segment: u32,
    value: Value,
    /// The write that was not emitted yet.
    write: Option<Write>,
}

#[derive(Clone, Copy)]
struct Write {
    local: LocalId,
    index: Option<Value>,
    location: Location,
}

impl LocalContents {
    fn new(locals: &[Local]) -> LocalContents {
        let mut slots = 0;
        let mut first = vec![0];
        first.extend(locals.iter().map(|l| {
            slots += l.len;
            slots
        }));
        let slot = RegisterSlot { segment: 0, value: Value(0), write: None };
        LocalContents { first, slots: vec![slot; slots as usize], unwritten: Vec::new(), segment: 1 }
    }

    fn slot(&self, local: LocalId, index: u64) -> Option<usize> {
        let [first, end] = [local.0, local.0 + 1].map(|l| u64::from(self.first[l as usize]));
        Some(first + index).filter(|s| *s < end).map(|s| s as usize)
    }

    /// Emits pending writes and forgets known values. The caller needs this before control flow,
    /// and before an access to an unknown element.
    fn flush(&mut self, out: &mut Vec<Inst>) {
        for slot in self.unwritten.drain(..) {
            let slot = &mut self.slots[slot as usize];
            if let Some(Write { local, index, location }) = slot.write.take() {
                let op = Op::WriteLocal { local, index, value: slot.value };
                out.push(Inst { op, results: Values::new(), location });
            }
        }
        self.segment += 1;
    }
}

impl Unroller<'_> {
    /// Returns the slot of an element with a constant index.
    fn slot(&self, local: LocalId, index: Option<Value>) -> Option<usize> {
        let index = match index {
            Some(i) => self.simplifier.constants.bits(self.map[i.0 as usize])?,
            None => 0,
        };
        self.registers.slot(local, index)
    }

    fn read(&mut self, local: LocalId, index: Option<Value>, inst: &Inst, out: &mut Vec<Inst>) -> CopiedEnd {
        let Some(slot) = self.slot(local, index) else {
            self.registers.flush(out);
            let index = index.map(|i| self.map[i.0 as usize]);
            return self.push(Op::ReadLocal { local, index }, inst, out);
        };
        if self.registers.slots[slot].segment != self.registers.segment {
            let index = index.map(|i| self.map[i.0 as usize]);
            self.push(Op::ReadLocal { local, index }, inst, out);
            let value = self.map[inst.results[0].0 as usize];
            self.registers.slots[slot] = RegisterSlot { segment: self.registers.segment, value, write: None };
        }
        self.map[inst.results[0].0 as usize] = self.registers.slots[slot].value;
        CopiedEnd::Yields(Values::new())
    }

    fn write(
        &mut self,
        local: LocalId,
        index: Option<Value>,
        value: Value,
        inst: &Inst,
        out: &mut Vec<Inst>,
    ) -> CopiedEnd {
        let value = self.map[value.0 as usize];
        let at = index.map(|i| self.map[i.0 as usize]);
        let Some(slot) = self.slot(local, index) else {
            self.registers.flush(out);
            return self.push(Op::WriteLocal { local, index: at, value }, inst, out);
        };
        let write = Some(Write { local, index: at, location: inst.location });
        let segment = self.registers.segment;
        if std::mem::replace(&mut self.registers.slots[slot], RegisterSlot { segment, value, write }).write.is_none() {
            self.registers.unwritten.push(slot as u32);
        }
        CopiedEnd::Yields(Values::new())
    }
}

/// A search for jumps to a loop in its body.
#[derive(Default)]
struct Jumps {
    breaks: bool,
    continues: bool,
}

fn jumps(region: &Region, label: Label) -> Jumps {
    let mut found = Jumps::default();
    for inst in &region.insts {
        match &inst.op {
            Op::Break(l, _) if *l == label => found.breaks = true,
            Op::Continue(l, _) if *l == label => found.continues = true,
            op => {
                for r in op.regions() {
                    let inner = jumps(r, label);
                    found.breaks |= inner.breaks;
                    found.continues |= inner.continues;
                }
            }
        }
    }
    found
}

/// Returns the number of instructions of a region, without constants. A region that contains a loop
/// counts as too large.
fn size(region: &Region) -> u64 {
    let of = |inst: &Inst| match &inst.op {
        Op::Constant(_) => 0,
        Op::For(_) | Op::Loop { .. } => MAX_AUTO_UNROLL_INSTRUCTIONS + 1,
        op => 1 + op.regions().into_iter().map(size).sum::<u64>(),
    };
    region.insts.iter().map(of).sum()
}
