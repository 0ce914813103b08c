//! Descriptions of accesses for findings, with the kernel's names.

use crate::check::Check;
use crate::code::frame::LaneWord;
use crate::code::{AccessLocation, AccessOp, Inst, Origin, Panic, Pc};
use crate::machine::memory::argument_at;
use crate::machine::{Machine, Warp};
use crate::report::{Description, Object, Space};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::assertion::message;
use kernel_dsl_compiler::ir::{Binary, Table};
use runtime_simt::number::short;

/// The target of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DescribedTarget {
    /// A buffer, by its index in the machine.
    Buffer(usize),
    /// The block's shared memory.
    Shared,
}

/// The name of an indexed array inside an element.
pub const ARRAY_IN_ELEMENT: &str = "the array in the element";

/// Describes an access to `n` elements from `index` that exceeds the `extents` of the object `of`.
pub fn beyond(of: &str, index: &[u64], extents: &[u64], n: u64) -> String {
    match (index, extents) {
        ([i], [len]) if n == 1 => format!("index {i} is out of bounds of {of}, which has {len} elements"),
        ([i], [len]) => {
            let end = i + n;
            format!("elements {i}..{end} are out of bounds of {of}, which has {len} elements")
        }
        _ => {
            let list = |v: &[u64], sep| v.iter().map(u64::to_string).collect::<Vec<_>>().join(sep);
            let (i, len) = (list(index, ", "), list(extents, " × "));
            let what = if n == 1 { String::new() } else { format!("{n} elements from ") };
            format!("{what}index ({i}) is out of bounds of {of}, which is {len}")
        }
    }
}

/// Describes a failed assertion or a panic. `value` returns the type and bits of a value.
pub fn failure(text: &str, value: impl Fn(usize) -> Option<(Scalar, u64)>) -> String {
    message(text, |i, style| {
        let (ty, bits) = value(i)?;
        let plain = if ty == Scalar::Bool { (bits != 0).to_string() } else { short(ty, bits) };
        Some(style.show(plain, bits & ty.mask()))
    })
}

impl Machine<'_, '_> {
    /// Reports lanes that fail an assertion or panic.
    #[cold]
    pub fn record_panic(&mut self, site: Pc, warp: &Warp, mask: u32, panic: &Panic) {
        self.report(Check::Assertion, site, warp.index, mask, |_, lane| {
            let value = |i: usize| panic.values.get(i).map(|(from, ty)| (*ty, from.get(&warp.rows, lane)));
            Description::new(failure(&panic.message, value))
        });
    }

    /// Reports indices that are out of bounds.
    #[cold]
    pub fn out_of_extent(&mut self, site: Pc, warp: &Warp, bad: u32, access: &AccessOp) {
        self.report(Check::OutOfBounds, site, warp.index, bad, |machine, lane| {
            let at = |row: u32| u64::from(u32::lanes(&warp.rows, row as usize)[lane]);
            let (name, space, index, extents, element) = match &access.place {
                AccessLocation::Shared { array, dims, .. } => {
                    let index: Vec<_> = dims.iter().map(|d| at(d.index)).collect();
                    let extents = dims.iter().map(|d| d.extent.into()).collect::<Vec<u64>>();
                    let element = dims.iter().zip(&index).map(|(d, i)| i.saturating_mul(d.stride.into())).sum::<u64>();
                    (machine.program.shared[*array as usize].name.clone(), Space::Shared, index, extents, element)
                }
                AccessLocation::Dynamic { array, dims, .. } => {
                    let index: Vec<_> = dims.iter().map(|d| at(d.index)).collect();
                    let extents = dims.iter().map(|d| at(d.extent)).collect();
                    let terms = dims.iter().map(|d| at(d.index).wrapping_mul(d.stride.map_or(1, at)));
                    let element = terms.fold(0, u64::wrapping_add);
                    let array = array.and_then(|a| machine.program.memory.dynamic.get(a as usize));
                    let name = array.map_or_else(|| "shared memory".into(), |a| a.name.clone());
                    (name, Space::Shared, index, extents, element)
                }
                AccessLocation::Global { base, dims, origin } => {
                    let index: Vec<_> = dims.iter().map(|d| at(d.index)).collect();
                    let extents = dims.iter().map(|d| at(d.extent)).collect();
                    let terms = dims.iter().map(|d| at(d.index).wrapping_mul(d.stride.map_or(1, at)));
                    let base = u64::lanes(&warp.rows, *base as usize)[lane];
                    let argument = match origin {
                        Origin::Argument(a) => Some(*a),
                        _ => argument_at(base),
                    };
                    let buffer = argument.and_then(|a| machine.buffers.iter().find(|b| b.argument == a));
                    // A view may start inside its buffer; elements count from the buffer's
                    // beginning.
                    let before = buffer.map_or(0, |b| base.wrapping_sub(b.base) / u64::from(access.within.unit.max(1)));
                    let name = buffer.map_or_else(|| "a buffer".into(), |b| b.name.clone());
                    let element = terms.fold(before, u64::wrapping_add);
                    (name, Space::Buffer, index, extents, element)
                }
                AccessLocation::Address { .. } | AccessLocation::SharedAddress { .. } => {
                    return Description::new("out of bounds");
                }
            };
            let mut message = beyond(&format!("`{name}`"), &index, &extents, access.within.reach.into());
            message += machine.which_access(site);
            Description::new(message).about(Object { name, space, index, extents, element: Some(element as i64) })
        });
    }

    /// Reports indices into arrays inside an element that are out of bounds.
    #[cold]
    pub fn out_of_element(&mut self, site: Pc, warp: &Warp, bad: u32, access: &AccessOp) {
        self.report(Check::OutOfBounds, site, warp.index, bad, |machine, lane| {
            let at = |row: u32| u64::from(u32::lanes(&warp.rows, row as usize)[lane]);
            let steps = &access.within.steps;
            let index: Vec<_> = steps.iter().map(|s| at(s.index)).collect();
            let extents: Vec<u64> = steps.iter().map(|s| s.extent.into()).collect();
            let whole = steps.last().is_some_and(|s| s.stride == access.element.bytes());
            let n = if whole { access.count } else { 1 };
            let table = match &access.place {
                AccessLocation::Global { origin: Origin::Argument(a), .. } => machine.table(*a),
                _ => None,
            };
            let of = table.map_or_else(|| ARRAY_IN_ELEMENT.to_string(), |t| format!("`{}`", t.name));
            Description::new(beyond(&of, &index, &extents, n.into()) + machine.which_access(site))
        });
    }

    /// Returns the words for the store of a compound assignment such as `y[i] += 1.0`. The load is
    /// at the same place of the source, and has the same message without these words.
    pub fn which_access(&self, site: Pc) -> &'static str {
        let code = &self.program.code;
        let stores = matches!(code.insts[site as usize], Inst::Store(_) | Inst::WriteElement { .. });
        let is_load = |inst: &Inst| matches!(inst, Inst::Load(_) | Inst::ReadElement { .. });
        let mut loads = code.insts.iter().zip(&code.locations).filter(|(inst, _)| is_load(inst));
        match stores && loads.any(|(_, location)| *location == code.locations[site as usize]) {
            true => ", when the assignment stores the result",
            false => "",
        }
    }

    /// Returns the table that is passed as argument `argument`.
    fn table(&self, argument: u32) -> Option<&Table> {
        let first = self.setting.by_argument.len() - self.program.tables.len();
        Some(&self.program.tables.get((argument as usize).checked_sub(first)?)?.0)
    }

    /// Returns the object at byte `offset` of a target.
    pub fn object(&self, target: DescribedTarget, offset: u64, access: &AccessOp) -> Object {
        match target {
            DescribedTarget::Buffer(b) => {
                let (buffer, offset) = (&self.buffers[b], offset as i64);
                let size = i64::from(buffer.element.bytes());
                let len = buffer.bytes.get().len() as u64 / u64::from(buffer.element.bytes());
                Object {
                    name: buffer.name.clone(),
                    space: Space::Buffer,
                    index: vec![],
                    extents: vec![len],
                    element: Some(offset.div_euclid(size)),
                }
            }
            DescribedTarget::Shared => {
                let named = match &access.place {
                    AccessLocation::Shared { array, .. } => Some(&self.program.shared[*array as usize]),
                    AccessLocation::Dynamic { .. } => None,
                    _ => self.program.shared.iter().find(|s| {
                        let first = u64::from(s.offset);
                        (first..first + u64::from(s.bytes())).contains(&offset)
                    }),
                };
                let dynamic = match &access.place {
                    AccessLocation::Dynamic { array: Some(array), .. } => Some(*array as usize),
                    _ => self.setting.dynamic.iter().rposition(|start| u64::from(*start) <= offset),
                };
                if let (None, Some(i)) = (named, dynamic) {
                    let array = &self.program.memory.dynamic[i];
                    let byte = offset as i64 - i64::from(self.setting.dynamic[i]);
                    let element = Some(byte.div_euclid(array.element.bytes().into()));
                    let name = array.name.clone();
                    return Object { name, space: Space::Shared, index: vec![], extents: vec![], element };
                }
                let start = named.map_or(0, |s| i64::from(s.offset));
                let byte = offset as i64 - start;
                let element = match named {
                    Some(array) if byte >= 0 => array.element_at(byte as u32).into(),
                    _ => byte,
                };
                Object {
                    name: named.map_or_else(|| "shared memory".into(), |s| s.name.clone()),
                    space: Space::Shared,
                    index: vec![],
                    extents: named.map_or_else(Vec::new, |s| s.shape.iter().map(|n| u64::from(*n)).collect()),
                    element: Some(element),
                }
            }
        }
    }
}

/// Returns the operator in Rust syntax.
pub fn symbol(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        _ => return None,
    })
}
