//! The table of operations: how each is walked, compared, printed and parsed.
//!
//! A row gives a variant of [`Op`], its class, and its text. From the rows come
//! [`Op::for_each_operand`], [`Op::map_operands`], [`Op::regions`], [`Op::class`], [`Op::key`], and
//! both directions of the text form. The fields of an operation contribute by their types
//! ([`OpField`]), in the order in which a row lists them. So a new operation is one variant and one
//! row, and a new type of field is one implementation of [`OpField`].
//!
//! The text of a row is a sequence of items:
//!
//! * `"word "` is that text;
//! * `field` is the text of the field;
//! * `(? " if " field "")` is an optional field between two texts, or nothing;
//! * `(* " " field)` is a list after that text, or nothing where the list is empty;
//! * `(name parameter field)` is the text that [`Printer::parameter`](super::print::Printer)
//!   writes;
//! * `(= field scalar_of(values))` is not printed: the parser derives the field from the types of
//!   other values.
//!
//! A construct has no text here: it spans several lines, which `print` and `parse` handle.

use super::parse::{IrParseError, Parser};
use super::part::{KeyWords, OpField};
use super::print::Printer;
use super::{Op, Region, Type, Value};
use crate::ptx::inline::Effect;
use smallvec::SmallVec;
use std::mem::{Discriminant, discriminant};

/// The class of an operation: its effect besides computing results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpClass {
    /// Computes results from operands, and nothing else.
    Pure,
    /// Reads memory or a local.
    Read,
    /// Has an effect, or is a collective operation of a warp or block.
    Effect,
    /// Holds regions.
    Construct,
    /// Ends a region.
    Terminator,
}

/// Identifies what a pure operation computes: two operations with equal keys give equal results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpKey {
    op: Discriminant<Op>,
    ty: Type,
    words: KeyWords,
}

impl std::hash::Hash for OpKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.op.hash(state);
        self.ty.hash(state);
        self.words.hash(state);
    }
}

macro_rules! fields {
    (($($field:ident),*), $method:ident, $argument:expr) => { $( $field.$method($argument); )* };
    ({$($field:ident),*}, $method:ident, $argument:expr) => { $( $field.$method($argument); )* };
}

macro_rules! print_items {
    ($p:ident, $out:ident,) => {};
    ($p:ident, $out:ident, $text:literal $($rest:tt)*) => {
        $out.push_str($text);
        print_items!($p, $out, $($rest)*);
    };
    ($p:ident, $out:ident, $field:ident $($rest:tt)*) => {
        $field.print($p, $out);
        print_items!($p, $out, $($rest)*);
    };
    ($p:ident, $out:ident, (? $before:literal $field:ident $after:literal) $($rest:tt)*) => {
        if let Some(inner) = $field {
            $out.push_str($before);
            inner.print($p, $out);
            $out.push_str($after);
        }
        print_items!($p, $out, $($rest)*);
    };
    ($p:ident, $out:ident, (* $before:literal $field:ident) $($rest:tt)*) => {
        if !$field.is_empty() {
            $out.push_str($before);
            $field.print($p, $out);
        }
        print_items!($p, $out, $($rest)*);
    };
    ($p:ident, $out:ident, (= $($inferred:tt)*) $($rest:tt)*) => {
        print_items!($p, $out, $($rest)*);
    };
    ($p:ident, $out:ident, (name $method:ident $field:ident) $($rest:tt)*) => {
        $p.$method(*$field, $out);
        print_items!($p, $out, $($rest)*);
    };
}

macro_rules! parse_items {
    ($p:ident,) => {};
    ($p:ident, $text:literal $($rest:tt)*) => {
        $p.expect($text)?;
        parse_items!($p, $($rest)*);
    };
    ($p:ident, $field:ident $($rest:tt)*) => {
        let $field = OpField::parse($p)?;
        parse_items!($p, $($rest)*);
    };
    ($p:ident, (? $before:literal $field:ident $after:literal) $($rest:tt)*) => {
        let $field = if $p.eat($before) {
            let inner = OpField::parse($p)?;
            $p.expect($after)?;
            Some(inner)
        } else {
            None
        };
        parse_items!($p, $($rest)*);
    };
    ($p:ident, (* $before:literal $field:ident) $($rest:tt)*) => {
        let $field = if $p.eat($before) { OpField::parse($p)? } else { Default::default() };
        parse_items!($p, $($rest)*);
    };
    ($p:ident, (= $field:ident $method:ident($($argument:ident)?)) $($rest:tt)*) => {
        let $field = $p.$method($(&$argument)?)?;
        parse_items!($p, $($rest)*);
    };
    ($p:ident, (name $method:ident $field:ident) $($rest:tt)*) => {
        let $field = $p.$method()?;
        parse_items!($p, $($rest)*);
    };
}

macro_rules! operations {
    ($($name:ident $fields:tt $class:ident $([$($text:tt)*])?;)*) => {
        #[allow(unused_variables)]
        impl Op {
            /// Returns the class of the operation. The class of inline PTX depends on its
            /// instructions: see [`Op::is_pure`].
            pub fn class(&self) -> OpClass {
                match self {
                    $(Op::$name $fields => OpClass::$class,)*
                }
            }

            /// Calls `f` on each value that the operation itself uses. Values that only its regions
            /// use are left out.
            pub fn for_each_operand(&self, mut f: impl FnMut(Value)) {
                match self {
                    $(Op::$name $fields => { fields!($fields, values, &mut f); })*
                }
            }

            /// Replaces each value that the operation itself uses by what `f` returns for it. The
            /// operation's regions stay as they are.
            pub fn map_operands(&mut self, mut f: impl FnMut(Value) -> Value) {
                let mut f = |value: &mut Value| *value = f(*value);
                match self {
                    $(Op::$name $fields => { fields!($fields, values_mut, &mut f); })*
                }
            }

            /// Returns the regions that the operation holds, in order.
            pub fn regions(&self) -> SmallVec<[&Region; 2]> {
                let mut regions = SmallVec::new();
                match self {
                    $(Op::$name $fields => { fields!($fields, regions, &mut regions); })*
                }
                regions
            }

            /// Returns the regions that the operation holds, in order.
            pub fn regions_mut(&mut self) -> SmallVec<[&mut Region; 2]> {
                let mut regions = SmallVec::new();
                match self {
                    $(Op::$name $fields => { fields!($fields, regions_mut, &mut regions); })*
                }
                regions
            }

            fn key_words(&self, words: &mut KeyWords) {
                match self {
                    $(Op::$name $fields => { fields!($fields, key, words); })*
                }
            }

            /// Appends the text of an operation that holds no region.
            pub(super) fn print(&self, p: &Printer<'_>, out: &mut String) {
                match self {
                    $(Op::$name $fields => { $(print_items!(p, out, $($text)*);)? })*
                }
            }

            /// Parses an operation that holds no region, up to the end of the line.
            pub(super) fn parse(p: &mut Parser<'_>) -> Result<Op, IrParseError> {
                let start = p.position();
                let mut furthest: Option<IrParseError> = None;
                $($(
                    let attempt = |p: &mut Parser<'_>| -> Result<Op, IrParseError> {
                        parse_items!(p, $($text)*);
                        p.end_of_line()?;
                        Ok(Op::$name $fields)
                    };
                    match attempt(p) {
                        Ok(op) => return Ok(op),
                        Err(fault) if furthest.as_ref().is_none_or(|f| fault.at > f.at) => furthest = Some(fault),
                        Err(_) => {}
                    }
                    p.rewind(start);
                )?)*
                Err(furthest.unwrap_or_else(|| p.fault("an operation")))
            }
        }
    };
}

operations! {
    Constant(bits)                                 Pure       ["constant " bits];
    Parameter(index)                               Pure       ["parameter " (name parameter index)];
    Special(special)                               Pure       [special];
    Unary(op, a)                                   Pure       [op " " a];
    Binary(op, a, b)                               Pure       [op " " a ", " b];
    MulAdd(a, b, c)                                Pure       ["mul_add " a ", " b ", " c];
    Approximate(what, a)                           Pure       ["approximate " what " " a];
    Bits(what, operands)                           Pure       [what " " operands];
    Compare(comparison, a, b)                      Pure       [comparison " " a ", " b];
    Select { condition, yes, no }                  Pure       ["select " condition ", " yes ", " no];
    Cast(a)                                        Pure       ["cast " a];
    Bitcast(a)                                     Pure       ["bitcast " a];
    Offset { base, terms, bytes }                  Pure       ["offset " base " + " bytes " * (" terms ")"];
    Table(table)                                   Pure       ["table " table];
    Dynamic { array, extents }                     Effect     ["dynamic " array " [" extents "]"];
    Load { place, element, policy, guard }         Read       ["load" policy " " place guard (= element scalar_of_results())];
    Store { place, element, values, guard }        Effect     ["store " place " = " values (? " if " guard "") (= element scalar_of(values))];
    MarkUndef { place, element, count, guard }     Effect     ["mark_undef " count " " element " at " place (? " if " guard "")];
    CopyAsync(copy)                                Effect     ["copy_async " copy];
    CopyCommit {}                                  Effect     ["copy_commit"];
    CopyWait(group)                                Effect     ["copy_wait " group];
    LifetimeStart(array)                           Effect     ["lifetime_start " array];
    DbgValue { name, value }                       Effect     ["dbg_value " name " = " value];
    Atomic { operation, place, element, values }   Effect     ["atomic " operation " " element " " place (* ", " values)];
    ReadLocal { local, index }                     Read       ["read " local (? "[" index "]")];
    WriteLocal { local, index, value }             Effect     ["write " local (? "[" index "]") " = " value];
    GridSync {}                                    Effect     ["grid_sync"];
    BlockSync {}                                   Effect     ["block_sync"];
    WarpSync {}                                    Effect     ["warp_sync"];
    Fence(scope)                                   Effect     ["fence " scope];
    Inline { code, inputs }                        Effect     ["ptx " code (* " with " inputs)];
    Shuffle { mode, value, selector, width }       Effect     ["shuffle " mode " " value ", " selector " width " width];
    Vote { mode, value }                           Effect     ["vote " mode " " value];
    Match(value)                                   Effect     ["match " value];
    Reduce(op, value)                              Effect     ["reduce " op " " value];
    Panic { outcome, message, values }             Effect     ["panic " outcome " " message (* " " values)];
    Log { format, values }                         Effect     ["log " format (* " " values)];
    RecordViolation { record, state, values }      Effect     ["record_violation " state " to " record ":" (* " " values)];
    If { condition, then, otherwise }              Construct;
    For(counted)                                   Construct;
    Loop { label, inits, body }                    Construct;
    Block { label, body }                          Construct;
    Yield(values)                                  Terminator ["yield" (* " " values)];
    Break(label, values)                           Terminator ["break " label (* " " values)];
    Continue(label, values)                        Terminator ["continue " label (* " " values)];
    Return {}                                      Terminator ["return"];
}

impl Op {
    /// Returns whether the operation ends a region.
    pub fn is_terminator(&self) -> bool {
        self.class() == OpClass::Terminator
    }

    /// Returns whether the operation only computes its results from its operands. Such an operation
    /// may be dropped when its results are unused, moved, and merged. Integer division is pure: a
    /// zero divisor gives an unspecified value and does not trap. Inline PTX is pure where it has
    /// one result and its instructions have no effect.
    pub fn is_pure(&self) -> bool {
        match self {
            Op::Inline { code, .. } => code.effect() < Effect::Machine && code.source().outputs().count() == 1,
            op => op.class() == OpClass::Pure,
        }
    }

    /// Returns whether the operation may be dropped when its results are unused.
    pub fn is_droppable(&self) -> bool {
        match self {
            Op::Inline { code, .. } => code.effect() < Effect::Machine,
            op => matches!(op.class(), OpClass::Pure | OpClass::Read),
        }
    }

    /// Returns the key of a pure operation whose result has type `ty`, for the elimination of
    /// common subexpressions. Returns `None` for an operation with more operands than a key holds,
    /// and for inline PTX, which has no number.
    pub fn key(&self, ty: Type) -> Option<OpKey> {
        let mut words = KeyWords::default();
        self.key_words(&mut words);
        let op = discriminant(self);
        words.fits().then(|| OpKey { op, ty, words: words.commuted(self.commuting()) })
    }

    /// Returns the key of inline PTX that a pass has numbered.
    pub fn inline_key(&self, number: u32, ty: Type) -> Option<OpKey> {
        let Op::Inline { inputs, .. } = self else { return None };
        let mut words = KeyWords::default();
        words.push(number);
        inputs.key(&mut words);
        words.fits().then_some(OpKey { op: discriminant(self), ty, words })
    }

    /// Returns the position, in the key, of the first of two adjacent operands that commute.
    fn commuting(&self) -> Option<usize> {
        match self {
            Op::Binary(op, ..) if op.commutes() => Some(1),
            Op::MulAdd(..) => Some(0),
            _ => None,
        }
    }
}
