//! Locals to values: variables, and arrays element by element where every index is constant.
//!
//! A slot is an element of a local. Each construct that writes a slot gets a result for it, and a
//! loop a carried parameter. Each terminator passes on what the slot holds there. `dce` removes
//! unused results and parameters. Reading a slot that was never written gives zero: the language
//! leaves it undefined.
//!
//! A local with an access by a non-constant or too large index stays a local. [`unpromoted`]
//! reports it in the user's terms.

use super::constants::Constants;
use crate::error::{Error, Errors};
use crate::ir::*;
use std::collections::BTreeSet;

/// Promotes variables and arrays.
pub fn promote(kernel: &mut Kernel) -> Result<(), Errors> {
    let constants = Constants::of(kernel);
    let mut fits = vec![true; kernel.locals.len()];
    find(&kernel.body, &kernel.locals, &constants, &mut fits);
    let mut first = Vec::with_capacity(kernel.locals.len());
    let mut types = Vec::new();
    let all = fits.iter().all(|f| *f);
    for (local, fits) in kernel.locals.iter().zip(fits) {
        first.push(fits.then_some(types.len() as u32));
        if fits {
            types.extend((0..local.len).map(|_| local.element));
        }
    }
    if types.is_empty() {
        return Ok(());
    }
    let values = std::mem::take(&mut kernel.values);
    let mut body = std::mem::take(&mut kernel.body);
    let mut promoter = Promoter {
        replacements: (0..values.len() as u32).map(Value).collect(),
        values,
        constants,
        first,
        seen: vec![0; types.len()],
        stamp: 0,
        now: vec![None; types.len()],
        types,
        written: Vec::new(),
        next: 0,
        open: Vec::new(),
    };
    promoter.writes(&body);
    promoter.region(&mut body, &[]);
    kernel.values = promoter.values;
    promoter.constants.place(&mut body);
    kernel.body = body;
    if all {
        kernel.locals.clear();
    }
    Ok(())
}

/// Clears `fits` for locals that an access with a non-constant or too large index names.
fn find(region: &Region, locals: &[Local], constants: &Constants, fits: &mut [bool]) {
    for inst in &region.insts {
        match &inst.op {
            Op::ReadLocal { local, index } | Op::WriteLocal { local, index, .. } => {
                if element(*index, constants).is_none_or(|i| i >= u64::from(locals[local.0 as usize].len)) {
                    fits[local.0 as usize] = false;
                }
            }
            op => op.regions().into_iter().for_each(|r| find(r, locals, constants, fits)),
        }
    }
}

fn element(index: Option<Value>, constants: &Constants) -> Option<u64> {
    index.map_or(Some(0), |i| constants.bits(i))
}

/// Reports each access that keeps a local out of registers: its index is not constant, or too
/// large.
pub fn unpromoted(kernel: &Kernel) -> Vec<Error> {
    fn search(
        region: &Region,
        kernel: &Kernel,
        constants: &Constants,
        said: &mut BTreeSet<Location>,
        errors: &mut Vec<Error>,
    ) {
        for inst in &region.insts {
            if let Op::ReadLocal { local, index } | Op::WriteLocal { local, index, .. } = &inst.op {
                let local = &kernel.locals[local.0 as usize];
                let error = match element(*index, constants) {
                    Some(i) if i < u64::from(local.len) => continue,
                    Some(i) => kernel.error(
                        inst.location,
                        format!("index {i} is beyond `{}`, which has {} elements", local.name, local.len),
                    ),
                    None => not_constant(kernel, inst.location, local),
                };
                if said.insert(inst.location) {
                    errors.push(error);
                }
            }
            inst.op.regions().into_iter().for_each(|r| search(r, kernel, constants, said, errors));
        }
    }
    let mut errors = Vec::new();
    search(&kernel.body, kernel, &Constants::of(kernel), &mut BTreeSet::new(), &mut errors);
    errors
}

fn not_constant(kernel: &Kernel, location: Location, local: &Local) -> Error {
    let index = kernel.locations.get(location.0 as usize).and_then(|l| {
        let source = kernel.sources.get(l.source as usize)?;
        let text: Vec<char> = source.line_text(u32::from(l.span.line))?.chars().collect();
        let end = if l.span.end_line == l.span.line { l.span.end_column.into() } else { text.len() + 1 };
        let text: String = text.get(usize::from(l.span.column).checked_sub(1)?..end.checked_sub(1)?)?.iter().collect();
        let inside = text.split_once('[')?.1;
        // Up to the bracket that closes it: the place may be that of a whole assignment.
        let mut depth = 1;
        let end = inside.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        })?;
        Some(inside[..end].trim().to_string())
    });
    match index.filter(|i| !i.is_empty()) {
        Some(i) if i.chars().all(|c| c.is_alphanumeric() || c == '_') => kernel
            .error(location, format!("registers cannot be indexed by `{i}`: unroll the loop over `{i}`"))
            .help(format!("write `for {i} in unroll(…)`; an array in registers needs an index that is constant there")),
        Some(i) => kernel
            .error(location, format!("registers cannot be indexed by `{i}`, which is not a constant"))
            .help("unroll the loops that it depends on, or keep the array in shared memory"),
        None => kernel
            .error(location, format!("`{}` is in registers and is indexed by what is not a constant", local.name))
            .help("unroll the loops that the index depends on, or keep the array in shared memory"),
    }
}

/// A construct around the current instruction.
struct OpenConstruct {
    label: Label,
    /// Slots that its `Break` and `Continue` carry.
    slots: Vec<u32>,
}

struct Promoter {
    values: Vec<Type>,
    constants: Constants,
    /// The replacement of each value.
    replacements: Vec<Value>,
    /// First slot of each promoted local.
    first: Vec<Option<u32>>,
    /// Type of each slot.
    types: Vec<Type>,
    /// The value of each slot at the current point; `None` before the first write.
    now: Vec<Option<Value>>,
    /// The slots written in each construct, by the order in which constructs begin.
    written: Vec<Vec<u32>>,
    next: usize,
    /// The stamp that each slot was last given, so that a list holds it once.
    seen: Vec<u32>,
    stamp: u32,
    open: Vec<OpenConstruct>,
}

impl Promoter {
    fn slot(&self, local: LocalId, index: Option<Value>) -> Option<usize> {
        let first = self.first[local.0 as usize]?;
        Some((u64::from(first) + element(index, &self.constants)?) as usize)
    }

    /// Returns the slots written in `region`, with those of each construct in it added to
    /// `written`.
    fn writes(&mut self, region: &Region) -> Vec<u32> {
        let mut slots = Vec::new();
        for inst in &region.insts {
            if let Op::WriteLocal { local, index, .. } = &inst.op {
                slots.extend(self.slot(*local, *index).map(|s| s as u32));
            }
            let regions = inst.op.regions();
            if !regions.is_empty() {
                let at = self.written.len();
                self.written.push(Vec::new());
                let mut inner: Vec<u32> = regions.into_iter().flat_map(|r| self.writes(r)).collect();
                self.stamp += 1;
                inner.retain(|s| std::mem::replace(&mut self.seen[*s as usize], self.stamp) != self.stamp);
                inner.sort_unstable();
                slots.extend(&inner);
                self.written[at] = inner;
            }
        }
        slots
    }

    /// Returns the value that `slot` holds.
    fn read(&mut self, slot: usize) -> Value {
        match self.now[slot] {
            Some(v) => v,
            None => {
                let zero = self.constants.get(&mut self.values, self.types[slot], 0);
                self.now[slot] = Some(zero);
                zero
            }
        }
    }

    fn reads(&mut self, slots: &[u32]) -> Vec<Value> {
        slots.iter().map(|s| self.read(*s as usize)).collect()
    }

    /// Returns the new values for `slots`, which hold them from now on.
    fn renew(&mut self, slots: &[u32]) -> Vec<Value> {
        let fresh = slots.iter().map(|s| {
            self.values.push(self.types[*s as usize]);
            let v = Value(self.values.len() as u32 - 1);
            self.now[*s as usize] = Some(v);
            v
        });
        fresh.collect()
    }

    /// `yields` are the slots that the region's `Yield` carries.
    fn region(&mut self, region: &mut Region, yields: &[u32]) {
        let mut insts = std::mem::take(&mut region.insts);
        insts.retain_mut(|inst| self.inst(inst, yields));
        region.insts = insts;
    }

    /// Rewrites an instruction; tells whether it stays.
    fn inst(&mut self, inst: &mut Inst, yields: &[u32]) -> bool {
        inst.op.map_operands(|v| self.replacements[v.0 as usize]);
        match &mut inst.op {
            Op::ReadLocal { local, index } => {
                let Some(slot) = self.slot(*local, *index) else { return true };
                self.replacements[inst.results[0].0 as usize] = self.read(slot);
                return false;
            }
            Op::WriteLocal { local, index, value } => {
                let Some(slot) = self.slot(*local, *index) else { return true };
                self.now[slot] = Some(*value);
                return false;
            }
            Op::Yield(values) => values.extend(self.reads(yields)),
            Op::Break(label, values) | Op::Continue(label, values) => {
                if let Some(at) = self.open.iter().rposition(|o| o.label == *label) {
                    let slots = std::mem::take(&mut self.open[at].slots);
                    values.extend(self.reads(&slots));
                    self.open[at].slots = slots;
                }
            }
            Op::If { then, otherwise, .. } => {
                let slots = self.enter();
                let before = self.reads(&slots);
                self.region(then, &slots);
                self.restore(&slots, &before);
                self.region(otherwise, &slots);
                inst.results.extend(self.renew(&slots));
            }
            Op::For(l) => {
                let slots = self.enter();
                l.inits.extend(self.reads(&slots));
                l.body.parameters.extend(self.renew(&slots));
                self.within(l.label, &slots, &mut l.body);
                inst.results.extend(self.renew(&slots));
            }
            Op::Loop { label, inits, body } => {
                let slots = self.enter();
                inits.extend(self.reads(&slots));
                body.parameters.extend(self.renew(&slots));
                self.within(*label, &slots, body);
                inst.results.extend(self.renew(&slots));
            }
            Op::Block { label, body } => {
                let slots = self.enter();
                self.reads(&slots);
                self.within(*label, &slots, body);
                inst.results.extend(self.renew(&slots));
            }
            _ => {}
        }
        true
    }

    /// Returns the slots that the construct which begins here writes.
    fn enter(&mut self) -> Vec<u32> {
        self.next += 1;
        std::mem::take(&mut self.written[self.next - 1])
    }

    fn restore(&mut self, slots: &[u32], values: &[Value]) {
        for (s, v) in slots.iter().zip(values) {
            self.now[*s as usize] = Some(*v);
        }
    }

    fn within(&mut self, label: Label, slots: &[u32], body: &mut Region) {
        self.open.push(OpenConstruct { label, slots: slots.to_vec() });
        self.region(body, slots);
        self.open.pop();
    }
}
