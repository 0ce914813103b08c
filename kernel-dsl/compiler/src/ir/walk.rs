//! What an operation is made of: its operands, its regions, and whether it has effects.

use super::{Landing, Op, Place, Region, Value};
use crate::ptx::inline::Effect;
use smallvec::SmallVec;

impl Op {
    /// Whether it ends a region.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Op::Yield(_) | Op::Break(..) | Op::Continue(..) | Op::Return)
    }

    /// Whether it only computes its results from its operands: it may be dropped when they are unused, and moved or merged.
    /// Integer division is here: what it gives for a zero divisor is unspecified, but it does not trap.
    pub fn is_pure(&self) -> bool {
        match self {
            // What has several results is left where it is.
            Op::Inline { code, .. } => code.effect() < Effect::Machine && code.source().outputs().count() == 1,
            Op::Constant(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::Table(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::MulAdd(..)
            | Op::Approximate(..)
            | Op::Bits(..)
            | Op::Compare(..)
            | Op::Select { .. }
            | Op::Cast(_)
            | Op::Bitcast(_)
            | Op::Offset { .. } => true,
            _ => false,
        }
    }

    /// Whether it may be dropped when its results are unused.
    pub fn is_droppable(&self) -> bool {
        match self {
            Op::Inline { code, .. } => code.effect() < Effect::Machine,
            Op::Load { .. } | Op::ReadLocal { .. } => true,
            _ => self.is_pure(),
        }
    }

    /// Calls `f` on each value that the operation itself uses, not on those in its regions.
    pub fn for_each_operand(&self, mut f: impl FnMut(Value)) {
        // A clone of the operation would be needed to share the traversal with `map_operands`; walking twice is cheaper.
        let place = |place: &Place, f: &mut dyn FnMut(Value)| {
            match place {
                Place::Global { base, dims, .. } | Place::Dynamic { base, dims, .. } => {
                    f(*base);
                    for d in dims {
                        f(d.index);
                        f(d.extent);
                        if let Some(s) = d.stride {
                            f(s);
                        }
                    }
                }
                Place::Shared { indices, .. } => indices.iter().for_each(|v| f(*v)),
                Place::Address { base, .. } => f(*base),
            }
            place.within().into_iter().flat_map(|w| &w.indices).for_each(|step| f(step.index));
        };
        match self {
            Op::Constant(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::Table(_)
            | Op::Begin(_)
            | Op::BlockSync
            | Op::WarpSync
            | Op::Fence(_)
            | Op::CopyCommit
            | Op::CopyWait(Landing::But(_))
            | Op::Return => {}
            Op::Named { value, .. } => f(*value),
            Op::Dynamic { extents, .. } => extents.iter().for_each(|v| f(*v)),
            Op::CopyAsync(copy) => {
                place(&copy.to, &mut f);
                place(&copy.from, &mut f);
                [copy.guard, copy.inside, copy.bytes].into_iter().flatten().for_each(f);
            }
            Op::CopyWait(Landing::Through(group)) => f(*group),
            Op::Poison { place: p, guard, .. } => {
                place(p, &mut f);
                if let Some(g) = guard {
                    f(*g);
                }
            }
            Op::Unary(_, a) | Op::Approximate(_, a) | Op::Cast(a) | Op::Bitcast(a) => f(*a),
            Op::Bits(_, operands) => operands.iter().for_each(|v| f(*v)),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) => {
                f(*a);
                f(*b);
            }
            Op::MulAdd(a, b, c) => {
                f(*a);
                f(*b);
                f(*c);
            }
            Op::Select { condition, yes, no } => {
                f(*condition);
                f(*yes);
                f(*no);
            }
            Op::Offset { base, terms, .. } => {
                f(*base);
                for (i, s) in terms {
                    f(*i);
                    if let Some(s) = s {
                        f(*s);
                    }
                }
            }
            Op::Load { place: p, guard, .. } => {
                place(p, &mut f);
                if let Some(g) = guard {
                    f(g.condition);
                    g.otherwise.iter().for_each(|v| f(*v));
                }
            }
            Op::Store { place: p, values, guard, .. } => {
                place(p, &mut f);
                values.iter().for_each(|v| f(*v));
                if let Some(g) = guard {
                    f(*g);
                }
            }
            Op::Atomic { place: p, values, .. } => {
                place(p, &mut f);
                values.iter().for_each(|v| f(*v));
            }
            Op::Inline { inputs, .. } => inputs.iter().for_each(|v| f(*v)),
            Op::ReadLocal { index, .. } => {
                if let Some(i) = index {
                    f(*i);
                }
            }
            Op::WriteLocal { index, value, .. } => {
                if let Some(i) = index {
                    f(*i);
                }
                f(*value);
            }
            Op::Shuffle { value, selector, .. } => {
                f(*value);
                f(*selector);
            }
            Op::Vote { value, .. } | Op::Match(value) | Op::Reduce(_, value) => f(*value),
            Op::Report { record, values, .. } => {
                f(*record);
                values.iter().for_each(|v| f(*v));
            }
            Op::If { condition, .. } => f(*condition),
            Op::For(l) => {
                f(l.start);
                f(l.end);
                f(l.step);
                l.inits.iter().for_each(|v| f(*v));
            }
            Op::Loop { inits, .. } => inits.iter().for_each(|v| f(*v)),
            Op::Block { .. } => {}
            Op::Yield(v) | Op::Break(_, v) | Op::Continue(_, v) => v.iter().for_each(|v| f(*v)),
        }
    }

    /// Replaces each value that the operation itself uses by what `f` gives for it; not those in its regions.
    pub fn map_operands(&mut self, mut f: impl FnMut(Value) -> Value) {
        let mut m = |v: &mut Value| *v = f(*v);
        fn place(place: &mut Place, m: &mut dyn FnMut(&mut Value)) {
            let within = match place {
                Place::Global { base, dims, within } | Place::Dynamic { base, dims, within } => {
                    m(base);
                    for d in dims {
                        m(&mut d.index);
                        m(&mut d.extent);
                        if let Some(s) = &mut d.stride {
                            m(s);
                        }
                    }
                    within
                }
                Place::Shared { indices, within, .. } => {
                    indices.iter_mut().for_each(&mut *m);
                    within
                }
                Place::Address { base, .. } => return m(base),
            };
            within.iter_mut().flat_map(|w| &mut w.indices).for_each(|step| m(&mut step.index));
        }
        match self {
            Op::Constant(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::Table(_)
            | Op::Begin(_)
            | Op::BlockSync
            | Op::WarpSync
            | Op::Fence(_)
            | Op::CopyCommit
            | Op::CopyWait(Landing::But(_))
            | Op::Return => {}
            Op::Named { value, .. } => m(value),
            Op::Dynamic { extents, .. } => extents.iter_mut().for_each(&mut m),
            Op::CopyAsync(copy) => {
                place(&mut copy.to, &mut m);
                place(&mut copy.from, &mut m);
                [&mut copy.guard, &mut copy.inside, &mut copy.bytes].into_iter().flatten().for_each(m);
            }
            Op::CopyWait(Landing::Through(group)) => m(group),
            Op::Poison { place: p, guard, .. } => {
                place(p, &mut m);
                if let Some(g) = guard {
                    m(g);
                }
            }
            Op::Unary(_, a) | Op::Approximate(_, a) | Op::Cast(a) | Op::Bitcast(a) => m(a),
            Op::Bits(_, operands) => operands.iter_mut().for_each(m),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) => {
                m(a);
                m(b);
            }
            Op::MulAdd(a, b, c) => {
                m(a);
                m(b);
                m(c);
            }
            Op::Select { condition, yes, no } => {
                m(condition);
                m(yes);
                m(no);
            }
            Op::Offset { base, terms, .. } => {
                m(base);
                for (i, s) in terms {
                    m(i);
                    if let Some(s) = s {
                        m(s);
                    }
                }
            }
            Op::Load { place: p, guard, .. } => {
                place(p, &mut m);
                if let Some(g) = guard {
                    m(&mut g.condition);
                    g.otherwise.iter_mut().for_each(m);
                }
            }
            Op::Store { place: p, values, guard, .. } => {
                place(p, &mut m);
                values.iter_mut().for_each(&mut m);
                if let Some(g) = guard {
                    m(g);
                }
            }
            Op::Atomic { place: p, values, .. } => {
                place(p, &mut m);
                values.iter_mut().for_each(&mut m);
            }
            Op::Inline { inputs, .. } => inputs.iter_mut().for_each(m),
            Op::ReadLocal { index, .. } => {
                if let Some(i) = index {
                    m(i);
                }
            }
            Op::WriteLocal { index, value, .. } => {
                if let Some(i) = index {
                    m(i);
                }
                m(value);
            }
            Op::Shuffle { value, selector, .. } => {
                m(value);
                m(selector);
            }
            Op::Vote { value, .. } | Op::Match(value) | Op::Reduce(_, value) => m(value),
            Op::Report { record, values, .. } => {
                m(record);
                values.iter_mut().for_each(m);
            }
            Op::If { condition, .. } => m(condition),
            Op::For(l) => {
                m(&mut l.start);
                m(&mut l.end);
                m(&mut l.step);
                l.inits.iter_mut().for_each(m);
            }
            Op::Loop { inits, .. } => inits.iter_mut().for_each(m),
            Op::Block { .. } => {}
            Op::Yield(v) | Op::Break(_, v) | Op::Continue(_, v) => v.iter_mut().for_each(m),
        }
    }

    /// The regions that it holds, in order.
    pub fn regions(&self) -> SmallVec<[&Region; 2]> {
        match self {
            Op::If { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
            Op::For(l) => [&l.body].into_iter().collect(),
            Op::Loop { body, .. } | Op::Block { body, .. } => [body].into_iter().collect(),
            _ => SmallVec::new(),
        }
    }

    /// The regions that it holds, in order.
    pub fn regions_mut(&mut self) -> SmallVec<[&mut Region; 2]> {
        match self {
            Op::If { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
            Op::For(l) => [&mut l.body].into_iter().collect(),
            Op::Loop { body, .. } | Op::Block { body, .. } => [body].into_iter().collect(),
            _ => SmallVec::new(),
        }
    }
}
