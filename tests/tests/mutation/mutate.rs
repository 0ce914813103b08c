//! Single changes of a kernel's IR, of the kinds that programmers make by mistake.
//!
//! Values that only the bounds of checks depend on are not changed, because they do not affect the
//! kernel.

use super::observed::Observed;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, Comparison, Inst, Kernel, Location, Op, Region, Role, Type, Unary, Value, Values,
};
use std::fmt;

/// The change of an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// A barrier, a fence or a wait is removed.
    Without(&'static str),
    /// The operand with this number is one more or less, with its description.
    Shifted(usize, &'static str, Step),
    /// A comparison has another operator.
    Compared(Comparison, Comparison),
    /// A condition is negated.
    Negated,
    /// A condition is constant.
    Decided(bool),
    /// A masked access has no mask.
    Unmasked,
    /// The mask of an access is negated.
    MaskNegated,
    /// The operands of a subtraction are swapped.
    Swapped,
    /// A constant has other bits.
    Constant(Scalar, u64, u64),
}

/// A step of one, up or down.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    Up,
    Down,
}

/// The categories of changes that the page counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MutationCategory {
    Barrier,
    Index,
    Condition,
    Mask,
    Subtraction,
    Constant,
    Value,
}

impl MutationCategory {
    /// All categories, with their names.
    pub const ALL: [(MutationCategory, &'static str); 7] = [
        (MutationCategory::Barrier, "barrier, fence or wait deleted"),
        (MutationCategory::Index, "index, extent, stride or bound of a loop ± 1"),
        (MutationCategory::Condition, "comparison or condition changed"),
        (MutationCategory::Mask, "mask removed or negated"),
        (MutationCategory::Subtraction, "operands of a subtraction swapped"),
        (MutationCategory::Constant, "constant ± 1: integers, Booleans, floats in comparisons"),
        (MutationCategory::Value, "float ± 1 in arithmetic only"),
    ];

    /// Returns whether the change affects control flow or accesses: a barrier, an index, a bound, a
    /// mask, a comparison.
    pub fn steers(self) -> bool {
        self != MutationCategory::Value
    }

    /// Returns whether the change is one of the four most harmful mistakes: a missing barrier, a
    /// wrong index, a wrong mask or a wrong comparison.
    pub fn is_classic(self) -> bool {
        matches!(
            self,
            MutationCategory::Barrier | MutationCategory::Index | MutationCategory::Condition | MutationCategory::Mask
        )
    }
}

/// A change of the instruction with this number, counted in the order of the text.
#[derive(Clone, Debug)]
pub struct Mutation {
    inst: usize,
    pub change: Change,
    pub kind: MutationCategory,
}

impl Change {
    /// Returns the category of the change of `inst`.
    fn kind(self, observed: &Observed, inst: &Inst) -> MutationCategory {
        match self {
            Change::Without(_) => MutationCategory::Barrier,
            Change::Shifted(..) => MutationCategory::Index,
            Change::Compared(..) | Change::Negated | Change::Decided(_) => MutationCategory::Condition,
            Change::Unmasked | Change::MaskNegated => MutationCategory::Mask,
            Change::Swapped => MutationCategory::Subtraction,
            Change::Constant(ty, ..) if ty.is_float() && !inst.results.iter().any(|v| observed.is_compared(*v)) => {
                MutationCategory::Value
            }
            Change::Constant(..) => MutationCategory::Constant,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Without(what) => write!(f, "without {what}"),
            Change::Shifted(_, what, Step::Up) => write!(f, "{what} + 1"),
            Change::Shifted(_, what, Step::Down) => write!(f, "{what} - 1"),
            Change::Compared(from, to) => write!(f, "{} for {}", sign(*to), sign(*from)),
            Change::Negated => f.write_str("condition negated"),
            Change::Decided(true) => f.write_str("condition always holds"),
            Change::Decided(false) => f.write_str("condition never holds"),
            Change::Unmasked => f.write_str("without its mask"),
            Change::MaskNegated => f.write_str("mask negated"),
            Change::Swapped => f.write_str("operands of - swapped"),
            Change::Constant(ty, from, to) => write!(f, "{} for {}", number(*ty, *to), number(*ty, *from)),
        }
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
    }
}

fn number(ty: Scalar, bits: u64) -> String {
    let unused = 64 - ty.bits();
    match ty {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        _ if ty.is_signed() => ((bits << unused) as i64 >> unused).to_string(),
        _ => bits.to_string(),
    }
}

/// Returns every change of `kernel`, in the order of its text.
pub fn mutations(kernel: &Kernel) -> Vec<Mutation> {
    let observed = Observed::of(kernel);
    let mut all = Vec::new();
    let mut inst = 0;
    each(&kernel.body, &mut |at: &Inst| {
        if observed.matters(at) && !is_of_math(kernel, at) {
            let of = |change: Change| Mutation { inst, change, kind: change.kind(&observed, at) };
            all.extend(changes(kernel, &observed, at).into_iter().map(of));
        }
        inst += 1;
    });
    all
}

/// Returns whether an instruction belongs to a function of `math`, whose own tests cover every
/// float or millions of pairs.
fn is_of_math(kernel: &Kernel, inst: &Inst) -> bool {
    let place = kernel.locations.get(inst.location.0 as usize);
    let source = place.and_then(|place| kernel.sources.get(place.source as usize));
    source.is_some_and(|source| source.file.starts_with("kernel-dsl/src/math"))
}

/// Calls `f` on each instruction, outer ones before nested ones.
fn each<'k>(region: &'k Region, f: &mut dyn FnMut(&'k Inst)) {
    for inst in &region.insts {
        f(inst);
        inst.op.regions().into_iter().for_each(|region| each(region, f));
    }
}

fn changes(kernel: &Kernel, observed: &Observed, inst: &Inst) -> Vec<Change> {
    let mut list = Vec::new();
    let mut op = inst.op.clone();
    for (operand, (value, what, down)) in shifted(&mut op).into_iter().enumerate() {
        // A constant with a single use is changed at its definition.
        if observed.is_own_constant(*value) {
            continue;
        }
        list.push(Change::Shifted(operand, what, Step::Up));
        if down {
            list.push(Change::Shifted(operand, what, Step::Down));
        }
    }
    let shifted = list.len();
    match &inst.op {
        Op::GridSync => list.push(Change::Without("grid::sync()")),
        Op::BlockSync => list.push(Change::Without("block::sync()")),
        Op::WarpSync => list.push(Change::Without("warp::sync()")),
        Op::Fence(_) => list.push(Change::Without("its fence")),
        Op::CopyWait(_) => list.push(Change::Without("its wait")),
        Op::Compare(from, ..) => {
            let to = match from {
                Comparison::Lt => Comparison::Le,
                Comparison::Le => Comparison::Lt,
                Comparison::Gt => Comparison::Ge,
                Comparison::Ge => Comparison::Gt,
                Comparison::Eq => Comparison::Ne,
                Comparison::Ne => Comparison::Eq,
            };
            list.push(Change::Compared(*from, to));
        }
        Op::If { then, otherwise, .. } => {
            list.push(Change::Negated);
            let leaves = |region: &Region| {
                matches!(region.insts.last().map(|i| &i.op), Some(Op::Return | Op::Break(..) | Op::Continue(..)))
            };
            if leaves(then) {
                list.push(Change::Decided(false));
            } else if leaves(otherwise) || otherwise.insts.len() == 1 {
                list.push(Change::Decided(true));
            }
        }
        Op::Select { .. } => list.push(Change::Negated),
        Op::Load { guard: Some(_), .. } | Op::Store { guard: Some(_), .. } | Op::MarkUndef { guard: Some(_), .. } => {
            list.extend([Change::Unmasked, Change::MaskNegated]);
        }
        Op::CopyAsync(copy) if copy.inside.is_some() => list.extend([Change::Unmasked, Change::MaskNegated]),
        Op::Binary(Binary::Sub | Binary::WrappingSub, a, b) if a != b => list.push(Change::Swapped),
        Op::Constant(bits) => {
            if let [result] = inst.results[..]
                && let Type::Scalar(ty) = kernel.ty(result)
            {
                let mut others = neighbors(ty, *bits);
                // The masks 16, 8, 4, 2 and 1 reach all lanes, and so do 17, 8, 4, 2 and 1.
                others.retain(|to| !observed.is_mask(result) || *to < *bits);
                list.extend(others.into_iter().map(|to| Change::Constant(ty, *bits, to)));
            }
        }
        // An extent or a stride that the kernel computes with.
        Op::Parameter(p) => {
            let role = kernel.parameters.get(*p as usize).map(|p| p.role);
            let what = match role {
                Some(Role::Extent(_)) => "extent",
                Some(Role::Stride(_)) => "stride",
                _ => "",
            };
            if !what.is_empty() {
                list.push(Change::Shifted(0, what, Step::Up));
                if what == "stride" {
                    list.push(Change::Shifted(0, what, Step::Down));
                }
            }
        }
        _ => debug_assert_eq!(list.len(), shifted),
    }
    list
}

/// Returns the numbers one above and below; for a Boolean, the other value.
fn neighbors(ty: Scalar, bits: u64) -> Vec<u64> {
    let mask = ty.mask();
    let floats = |x: f64, of: &dyn Fn(f64) -> u64| -> Vec<u64> {
        [x + 1.0, x - 1.0].into_iter().map(of).filter(|to| *to != bits).collect()
    };
    match ty {
        Scalar::Bool => vec![1 - bits.min(1)],
        Scalar::F32 => floats(f32::from_bits(bits as u32).into(), &|x| u64::from((x as f32).to_bits())),
        Scalar::F64 => floats(f64::from_bits(bits), &f64::to_bits),
        _ if ty.is_half() => Vec::new(),
        _ => vec![bits.wrapping_add(1) & mask, bits.wrapping_sub(1) & mask],
    }
}

/// Returns the operands to change by one, with their descriptions, and whether to decrease them
/// too.
fn shifted(op: &mut Op) -> Vec<(&mut Value, &'static str, bool)> {
    fn place<'o>(place: &'o mut AccessPlace, list: &mut Vec<(&'o mut Value, &'static str, bool)>) {
        let within = match place {
            AccessPlace::Global { dims, within, .. } | AccessPlace::Dynamic { dims, within, .. } => {
                for dim in dims {
                    list.push((&mut dim.index, "index", false));
                    list.extend(dim.stride.as_mut().map(|stride| (stride, "stride", true)));
                }
                within
            }
            AccessPlace::Shared { indices, within, .. } => {
                list.extend(indices.iter_mut().map(|index| (index, "index", false)));
                within
            }
            AccessPlace::Address { .. } => return,
        };
        let steps = within.iter_mut().flat_map(|within| &mut within.indices);
        list.extend(steps.map(|step| (&mut step.index, "index", false)));
    }
    let mut list = Vec::new();
    match op {
        Op::Load { place: p, .. } | Op::Store { place: p, .. } | Op::MarkUndef { place: p, .. } => place(p, &mut list),
        Op::Atomic { place: p, .. } => place(p, &mut list),
        Op::CopyAsync(copy) => {
            let copy = &mut **copy;
            place(&mut copy.to, &mut list);
            place(&mut copy.from, &mut list);
        }
        Op::ReadLocal { index, .. } | Op::WriteLocal { index, .. } => {
            list.extend(index.as_mut().map(|index| (index, "index", false)));
        }
        Op::Offset { terms, .. } => {
            for (index, stride) in terms {
                list.push((index, "index", false));
                list.extend(stride.as_mut().map(|stride| (stride, "stride", true)));
            }
        }
        Op::For(l) => list.extend([
            (&mut l.start, "start of the loop", false),
            (&mut l.end, "end of the loop", false),
            (&mut l.step, "step of the loop", false),
        ]),
        _ => {}
    }
    list
}

/// Returns `kernel` with one change.
pub fn mutant(kernel: &Kernel, mutation: &Mutation) -> Kernel {
    let mut changed = kernel.clone();
    let mut body = std::mem::take(&mut changed.body);
    let mut left = mutation.inst;
    change_in(&mut body, &mut left, &mut |region, at| apply(&mut changed, region, at, mutation.change));
    changed.body = body;
    changed
}

/// Calls `f` on the instruction preceded by `left` others, and returns whether it exists.
fn change_in(region: &mut Region, left: &mut usize, f: &mut dyn FnMut(&mut Region, usize)) -> bool {
    for at in 0..region.insts.len() {
        if *left == 0 {
            f(region, at);
            return true;
        }
        *left -= 1;
        if region.insts[at].op.regions_mut().into_iter().any(|inner| change_in(inner, left, f)) {
            return true;
        }
    }
    false
}

fn apply(kernel: &mut Kernel, region: &mut Region, at: usize, change: Change) {
    let location = region.insts[at].location;
    let mut before: Vec<Inst> = Vec::new();
    let mut computed = |kernel: &mut Kernel, op: Op, ty: Type| {
        let value = kernel.value(ty);
        before.push(Inst { op, results: Values::from_slice(&[value]), location });
        value
    };
    let mut step = |kernel: &mut Kernel, value: Value, step: Step| {
        let ty = kernel.ty(value);
        let one = computed(kernel, Op::Constant(1), ty);
        let by = if step == Step::Up { Binary::WrappingAdd } else { Binary::WrappingSub };
        computed(kernel, Op::Binary(by, value, one), ty)
    };
    match (change, &mut region.insts[at].op) {
        (Change::Without(_), _) => {
            region.insts.remove(at);
            return;
        }
        // The bounds of accesses remain those of the launch.
        (Change::Shifted(_, _, by), Op::Parameter(_)) => {
            let known = region.insts[at].results[0];
            let changed = step(kernel, known, by);
            replace(region, known, changed);
            region.insts.splice(at + 1..at + 1, before);
            return;
        }
        (Change::Shifted(operand, _, by), op) => {
            let old = shifted(op).get(operand).map(|(value, ..)| **value);
            if let Some(old) = old {
                let new = step(kernel, old, by);
                if let Some((value, ..)) = shifted(op).into_iter().nth(operand) {
                    *value = new;
                }
            }
        }
        (Change::Compared(_, to), Op::Compare(comparison, ..)) => *comparison = to,
        (Change::Negated, Op::If { condition, .. } | Op::Select { condition, .. }) => {
            *condition = computed(kernel, Op::Unary(Unary::Not, *condition), Type::Scalar(Scalar::Bool));
        }
        (Change::Decided(holds), Op::If { condition, .. }) => {
            *condition = computed(kernel, Op::Constant(holds.into()), Type::Scalar(Scalar::Bool));
        }
        (Change::Unmasked, Op::Load { guard, .. }) => *guard = None,
        (Change::Unmasked, Op::Store { guard, .. } | Op::MarkUndef { guard, .. }) => *guard = None,
        (Change::Unmasked, Op::CopyAsync(copy)) => copy.inside = None,
        (Change::MaskNegated, op) => {
            let mask = match op {
                Op::Load { guard, .. } => guard.as_mut().map(|guard| &mut guard.condition),
                Op::Store { guard, .. } | Op::MarkUndef { guard, .. } => guard.as_mut(),
                Op::CopyAsync(copy) => copy.inside.as_mut(),
                _ => None,
            };
            if let Some(mask) = mask {
                *mask = computed(kernel, Op::Unary(Unary::Not, *mask), Type::Scalar(Scalar::Bool));
            }
        }
        (Change::Swapped, Op::Binary(_, a, b)) => std::mem::swap(a, b),
        (Change::Constant(_, _, to), Op::Constant(bits)) => *bits = to,
        (change, op) => unreachable!("{change} of {op:?}"),
    }
    region.insts.splice(at..at, before);
}

/// Replaces `old` by `new` in a region, except in the extents of checks.
fn replace(region: &mut Region, old: Value, new: Value) {
    for inst in &mut region.insts {
        let extents: Vec<Value> = extents(&mut inst.op).into_iter().map(|extent| *extent).collect();
        inst.op.map_operands(|value| if value == old { new } else { value });
        self::extents(&mut inst.op).into_iter().zip(extents).for_each(|(extent, was)| *extent = was);
        inst.op.regions_mut().into_iter().for_each(|inner| replace(inner, old, new));
    }
}

/// Returns the extents with which an access is checked.
fn extents(op: &mut Op) -> Vec<&mut Value> {
    fn of(place: &mut AccessPlace) -> Vec<&mut Value> {
        match place {
            AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. } => {
                dims.iter_mut().map(|dim| &mut dim.extent).collect()
            }
            AccessPlace::Shared { .. } | AccessPlace::Address { .. } => Vec::new(),
        }
    }
    match op {
        Op::Load { place, .. } | Op::Store { place, .. } | Op::MarkUndef { place, .. } => of(place),
        Op::Atomic { place, .. } => of(place),
        Op::CopyAsync(copy) => {
            let copy = &mut **copy;
            of(&mut copy.to).into_iter().chain(of(&mut copy.from)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the location of the changed instruction.
pub fn location(kernel: &Kernel, mutation: &Mutation) -> Location {
    let (mut left, mut found) = (mutation.inst, Location(0));
    each(&kernel.body, &mut |inst| {
        if left == 0 {
            found = inst.location;
        }
        left = left.wrapping_sub(1);
    });
    found
}
