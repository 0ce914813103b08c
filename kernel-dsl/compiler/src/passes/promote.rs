//! Locals to values: variables, and arrays element by element where every index is constant.
//!
//! A slot is an element of a local. Each construct that writes a slot gets a result for it, and a
//! loop also gets a carried parameter. Each terminator passes on the value of the slot at that
//! point. `dce` removes unused results and parameters. Reading a slot that was never written gives
//! zero: the language leaves it undefined.
//!
//! A local with an access by a non-constant or too large index stays a local. If the kernel has
//! requested local memory for it, emission puts it there. Some indices are constant only after the
//! values of other locals are folded: [`promote_folded`] promotes their arrays. [`unpromoted`]
//! reports the remaining locals as errors in the kernel's source.

use super::constants::Constants;
use super::correlated_value_propagation::correlated_value_propagation;
use super::fold::fold;
use super::loop_carried::loop_carried;
use crate::error::{Error, Errors};
use crate::ir::*;
use crate::source::KernelSource;
use std::collections::BTreeMap;

/// Promotes variables and arrays.
pub fn promote(kernel: &mut Kernel) -> Result<(), Errors> {
    let constants = Constants::of(kernel);
    let mut fits = vec![true; kernel.locals.len()];
    find(&kernel.body, &kernel.locals, &constants, &mut fits);
    replace(kernel, constants, &fits, false);
    if fits.iter().all(|f| *f) {
        kernel.locals.clear();
    }
    Ok(())
}

/// Replaces the reads of slots with known values. A local without `fits` keeps its writes. Such a
/// local also keeps its reads, unless `partial` is set.
fn replace(kernel: &mut Kernel, constants: Constants, fits: &[bool], partial: bool) {
    let mut first = Vec::with_capacity(kernel.locals.len());
    let mut slots = Vec::new();
    for (local, fits) in kernel.locals.iter().zip(fits) {
        let slot = PromotedElement { ty: local.element, now: None, stays: !fits, unknown: false };
        // An array in local memory stays in memory: the kernel requested that.
        let replaced = *fits || partial && !local.memory;
        first.push(replaced.then_some(slots.len() as u32));
        slots.extend((0..local.len).filter(|_| replaced).map(|_| slot));
    }
    if slots.is_empty() {
        return;
    }
    let values = std::mem::take(&mut kernel.values);
    let mut body = std::mem::take(&mut kernel.body);
    let mut promoter = Promoter {
        replacements: (0..values.len() as u32).map(Value).collect(),
        values,
        constants,
        lens: kernel.locals.iter().map(|l| l.len).collect(),
        first,
        seen: vec![0; slots.len()],
        stamp: 0,
        slots,
        written: Vec::new(),
        next: 0,
        open: Vec::new(),
    };
    promoter.writes(&body);
    promoter.region(&mut body, &[]);
    kernel.values = promoter.values;
    promoter.constants.place(&mut body);
    kernel.body = body;
}

/// Promotes the arrays whose indices are constant only after folding. An index may come from
/// another local, whose value was not known before that local was promoted, or from an element of
/// the array itself. For the latter, reads of known elements are replaced while other accesses
/// stay. Returns whether an access was replaced.
pub fn promote_folded(kernel: &mut Kernel) -> Result<bool, Errors> {
    let first = accesses(&kernel.body);
    let mut left = first;
    while left > 0 {
        correlated_value_propagation(kernel)?;
        fold(kernel)?;
        loop_carried(kernel)?;
        fold(kernel)?;
        promote(kernel)?;
        let fits = vec![false; kernel.locals.len()];
        replace(kernel, Constants::of(kernel), &fits, true);
        let before = std::mem::replace(&mut left, accesses(&kernel.body));
        if left == before {
            break;
        }
    }
    Ok(left < first)
}

/// Returns the number of accesses to locals.
fn accesses(region: &Region) -> usize {
    let of = |inst: &Inst| match &inst.op {
        Op::ReadLocal { .. } | Op::WriteLocal { .. } => 1,
        op => op.regions().into_iter().map(accesses).sum(),
    };
    region.insts.iter().map(of).sum()
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

/// Reports the locals that are still accessed: each access whose index is not constant, or too
/// large.
pub fn unpromoted(kernel: &Kernel) -> Vec<Error> {
    let mut search =
        Unpromoted { kernel, constants: Constants::of(kernel), found: BTreeMap::new(), errors: BTreeMap::new() };
    search.region(&kernel.body);
    let Unpromoted { found, errors, .. } = search;
    // A local whose remaining indices are all constant was left because an index became constant
    // too late, after promotion. The error is reported at the local's first access.
    let late = found.iter().filter(|(local, _)| !errors.values().any(|(of, _)| of == *local));
    let late = late.map(|(local, at)| not_constant(kernel, *at, &kernel.locals[local.0 as usize])).collect::<Vec<_>>();
    errors.into_values().map(|(_, error)| error).chain(late).collect()
}

/// The search of [`unpromoted`].
struct Unpromoted<'k> {
    kernel: &'k Kernel,
    constants: Constants,
    /// The locals that are accessed, each with its first access.
    found: BTreeMap<LocalId, Location>,
    /// An error at each place, and its local.
    errors: BTreeMap<Location, (LocalId, Error)>,
}

impl Unpromoted<'_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            if let Op::ReadLocal { local: id, index } | Op::WriteLocal { local: id, index, .. } = &inst.op {
                let local = &self.kernel.locals[id.0 as usize];
                if !local.memory {
                    self.found.entry(*id).or_insert(inst.location);
                }
                let error = match element(*index, &self.constants) {
                    Some(i) if i < u64::from(local.len) => continue,
                    None if local.memory => continue,
                    Some(i) => self.kernel.error(
                        inst.location,
                        format!("index {i} is beyond `{}`, which has {} elements", local.name, local.len),
                    ),
                    None => not_constant(self.kernel, inst.location, local),
                };
                self.errors.entry(inst.location).or_insert((*id, error));
            }
            inst.op.regions().into_iter().for_each(|r| self.region(r));
        }
    }
}

fn not_constant(kernel: &Kernel, location: Location, local: &Local) -> Error {
    let index = kernel.locations.get(location.0 as usize).and_then(|l| {
        let source = kernel.sources.get(l.source as usize)?;
        let text: Vec<char> = source.line_text(u32::from(l.span.line))?.chars().collect();
        let end = if l.span.end_line == l.span.line { l.span.end_column.into() } else { text.len() + 1 };
        let text: String = text.get(usize::from(l.span.column).checked_sub(1)?..end.checked_sub(1)?)?.iter().collect();
        let inside = text.split_once('[')?.1;
        // The index ends at the matching bracket: the location may cover a complete assignment.
        let mut depth = 1;
        let end = inside.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        })?;
        Some(inside[..end].trim().to_string())
    });
    match index.filter(|i| !i.is_empty()) {
        Some(i) if source_of(kernel, location).is_some_and(|source| has_loop_over(source, &i)) => kernel
            .error(location, format!("registers cannot be indexed by `{i}`: unroll the loop over `{i}`"))
            .help(format!("write `for {i} in unroll(…)`; an array in registers needs an index that is constant there")),
        Some(i) => kernel
            .error(location, format!("registers cannot be indexed by `{i}`, which is not a constant"))
            .help("unroll the loops that it depends on, or use `thread::local::<[T; N]>()` or shared memory"),
        None => kernel
            .error(location, format!("`{}` is in registers, and its index is not a constant", local.name))
            .help("unroll the loops that the index depends on, or use `thread::local::<[T; N]>()` or shared memory"),
    }
}

fn source_of(kernel: &Kernel, location: Location) -> Option<&KernelSource> {
    kernel.sources.get(kernel.locations.get(location.0 as usize)?.source as usize)
}

/// Returns whether the source has a `for` that binds `name`: only such a name can become constant
/// by unrolling.
fn has_loop_over(source: &KernelSource, name: &str) -> bool {
    let binds = |line: &String| {
        let patterns = line.split("for ").skip(1).filter_map(|rest| Some(rest.split_once(" in ")?.0));
        patterns.flat_map(|pattern| pattern.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == name)
    };
    source.text.iter().any(binds)
}

/// A construct around the current instruction.
struct PromotedConstruct {
    label: Label,
    /// Slots that its `Break` and `Continue` carry.
    slots: Vec<u32>,
}

/// An element of a local.
#[derive(Clone, Copy)]
struct PromotedElement {
    ty: Type,
    /// The value at the current point; `None` before the first write.
    now: Option<Value>,
    /// Whether writes stay.
    stays: bool,
    /// Whether a write with an unknown index may have changed the slot.
    unknown: bool,
}

struct Promoter {
    values: Vec<Type>,
    constants: Constants,
    /// The replacement of each value.
    replacements: Vec<Value>,
    /// First slot of each local whose reads are replaced.
    first: Vec<Option<u32>>,
    /// Elements of each local.
    lens: Vec<u32>,
    slots: Vec<PromotedElement>,
    /// The locals that each construct writes, in the order in which constructs begin.
    written: Vec<WrittenSlots>,
    next: usize,
    /// The stamp of the list that each slot was last added to, so that no list contains a slot
    /// twice.
    seen: Vec<u32>,
    stamp: u32,
    open: Vec<PromotedConstruct>,
}

impl Promoter {
    fn slot(&self, local: LocalId, index: Option<Value>) -> Option<usize> {
        let first = self.first[local.0 as usize]?;
        let index = element(index, &self.constants).filter(|i| *i < u64::from(self.lens[local.0 as usize]))?;
        Some((u64::from(first) + index) as usize)
    }

    /// Returns the slots that a write may change: one, or all of a local whose reads are replaced.
    fn changed(&self, local: LocalId, index: Option<Value>) -> std::ops::Range<u32> {
        match (self.slot(local, index), self.first[local.0 as usize]) {
            (Some(slot), _) => slot as u32..slot as u32 + 1,
            (None, Some(first)) => first..first + self.lens[local.0 as usize],
            (None, None) => 0..0,
        }
    }

    /// Returns the slots that `region` writes. Appends to `written` the slots that each construct
    /// in the region writes.
    fn writes(&mut self, region: &Region) -> WrittenSlots {
        let mut all = WrittenSlots::default();
        for inst in &region.insts {
            if let Op::WriteLocal { local, index, .. } = &inst.op {
                let changed = self.changed(*local, *index);
                all.slots.extend(changed.clone());
                if self.slot(*local, *index).is_none() {
                    all.lost.extend(changed);
                }
            }
            let regions = inst.op.regions();
            if !regions.is_empty() {
                let at = self.written.len();
                self.written.push(WrittenSlots::default());
                let mut inner = WrittenSlots::default();
                for WrittenSlots { slots, lost } in regions.into_iter().map(|r| self.writes(r)) {
                    inner.slots.extend(slots);
                    inner.lost.extend(lost);
                }
                for list in [&mut inner.slots, &mut inner.lost] {
                    self.stamp += 1;
                    list.retain(|s| std::mem::replace(&mut self.seen[*s as usize], self.stamp) != self.stamp);
                    list.sort_unstable();
                }
                all.slots.extend(&inner.slots);
                all.lost.extend(&inner.lost);
                self.written[at] = inner;
            }
        }
        all
    }

    /// Returns the value that `slot` holds.
    fn read(&mut self, slot: usize) -> Value {
        match self.slots[slot].now {
            Some(v) => v,
            None => {
                let zero = self.constants.get(&mut self.values, self.slots[slot].ty, 0);
                self.slots[slot].now = Some(zero);
                zero
            }
        }
    }

    fn reads(&mut self, slots: &[u32]) -> Vec<Value> {
        slots.iter().map(|s| self.read(*s as usize)).collect()
    }

    /// Returns the new values for `slots`, which hold them from now on.
    fn fresh_values(&mut self, slots: &[u32]) -> Vec<Value> {
        let fresh = slots.iter().map(|s| {
            self.values.push(self.slots[*s as usize].ty);
            let v = Value(self.values.len() as u32 - 1);
            self.slots[*s as usize].now = Some(v);
            v
        });
        fresh.collect()
    }

    /// Rewrites a region. `yields` are the slots that the region's `Yield` carries.
    fn region(&mut self, region: &mut Region, yields: &[u32]) {
        let mut insts = std::mem::take(&mut region.insts);
        insts.retain_mut(|inst| self.inst(inst, yields));
        region.insts = insts;
    }

    /// Rewrites an instruction, and returns whether it stays.
    fn inst(&mut self, inst: &mut Inst, yields: &[u32]) -> bool {
        inst.op.map_operands(|v| self.replacements[v.0 as usize]);
        match &mut inst.op {
            Op::ReadLocal { local, index } => {
                let Some(slot) = self.slot(*local, *index).filter(|s| !self.slots[*s].unknown) else { return true };
                self.replacements[inst.results[0].0 as usize] = self.read(slot);
                return false;
            }
            Op::WriteLocal { local, index, value } => match self.slot(*local, *index) {
                Some(slot) => {
                    let slot = &mut self.slots[slot];
                    (slot.now, slot.unknown) = (Some(*value), false);
                    return slot.stays;
                }
                None => {
                    let changed: Vec<u32> = self.changed(*local, *index).collect();
                    self.forget(&changed);
                }
            },
            Op::Yield(values) => values.extend(self.reads(yields)),
            Op::Break(label, values) | Op::Continue(label, values) => {
                if let Some(at) = self.open.iter().rposition(|o| o.label == *label) {
                    let slots = std::mem::take(&mut self.open[at].slots);
                    values.extend(self.reads(&slots));
                    self.open[at].slots = slots;
                }
            }
            Op::If { then, otherwise, .. } => {
                let (slots, lost) = self.enter();
                let before = self.reads(&slots);
                self.region(then, &slots);
                self.restore(&slots, &before);
                self.forget(&lost);
                self.region(otherwise, &slots);
                self.forget(&lost);
                inst.results.extend(self.fresh_values(&slots));
            }
            Op::For(l) => {
                let (slots, lost) = self.enter();
                l.inits.extend(self.reads(&slots));
                l.body.parameters.extend(self.fresh_values(&slots));
                self.within(l.label, &slots, &lost, &mut l.body);
                inst.results.extend(self.fresh_values(&slots));
            }
            Op::Loop { label, inits, body } => {
                let (slots, lost) = self.enter();
                inits.extend(self.reads(&slots));
                body.parameters.extend(self.fresh_values(&slots));
                self.within(*label, &slots, &lost, body);
                inst.results.extend(self.fresh_values(&slots));
            }
            Op::Block { label, body } => {
                let (slots, lost) = self.enter();
                self.reads(&slots);
                self.within(*label, &slots, &lost, body);
                inst.results.extend(self.fresh_values(&slots));
            }
            _ => {}
        }
        true
    }

    /// Returns the slots that the construct beginning here writes. The first list has the slots
    /// whose values stay known, the second those that are unknown in the construct and after it.
    fn enter(&mut self) -> (Vec<u32>, Vec<u32>) {
        self.next += 1;
        let WrittenSlots { slots, lost } = std::mem::take(&mut self.written[self.next - 1]);
        if lost.is_empty() && slots.iter().all(|s| !self.slots[*s as usize].unknown) {
            return (slots, lost);
        }
        let (lost, known): (Vec<u32>, Vec<u32>) =
            slots.into_iter().partition(|s| self.slots[*s as usize].unknown || lost.contains(s));
        self.forget(&lost);
        (known, lost)
    }

    fn forget(&mut self, slots: &[u32]) {
        slots.iter().for_each(|s| self.slots[*s as usize].unknown = true);
    }

    fn restore(&mut self, slots: &[u32], values: &[Value]) {
        for (s, v) in slots.iter().zip(values) {
            self.slots[*s as usize].now = Some(*v);
        }
    }

    fn within(&mut self, label: Label, slots: &[u32], lost: &[u32], body: &mut Region) {
        self.open.push(PromotedConstruct { label, slots: slots.to_vec() });
        self.region(body, slots);
        self.open.pop();
        self.forget(lost);
    }
}

/// The slots written in a construct.
#[derive(Default)]
struct WrittenSlots {
    /// The slots in ascending order.
    slots: Vec<u32>,
    /// Slots that a write by an unknown index may change.
    lost: Vec<u32>,
}
