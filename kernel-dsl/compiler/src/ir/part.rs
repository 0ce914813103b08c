//! The fields of operations: what each type of field contributes to walking, to keys and to the
//! text form.

use super::parse::{IrParseError, Parser};
use super::print::Printer;
use super::*;
use crate::approximation::Approximation;
use crate::assertion::FailureEffect;
use crate::ptx::InlineBlock;
use crate::ptx::inline::{self, Direction};
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::sync::Arc;

/// The words of a key: the operator and the operands of a pure operation, as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KeyWords {
    words: [u32; KeyWords::MAX_WORDS],
    len: usize,
}

impl KeyWords {
    /// Maximum number of words of a key. Most operations have an operator and at most three
    /// operands.
    const MAX_WORDS: usize = 4;

    /// Appends a word.
    pub fn push(&mut self, word: u32) {
        if let Some(slot) = self.words.get_mut(self.len) {
            *slot = word;
        }
        self.len += 1;
    }

    /// Records that the operation has no key.
    fn refuse(&mut self) {
        self.len = usize::MAX / 2;
    }

    /// Returns whether the key holds all words.
    pub fn fits(&self) -> bool {
        self.len <= Self::MAX_WORDS
    }

    /// Returns the key with two adjacent operands in ascending order, if `first` is the position of
    /// one that commutes.
    pub fn commuted(mut self, first: Option<usize>) -> KeyWords {
        if let Some([a, b]) = first.and_then(|at| self.words.get_mut(at..at + 2))
            && a > b
        {
            std::mem::swap(a, b);
        }
        self
    }
}

impl std::hash::Hash for KeyWords {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Hashes word by word, because the hasher would take a slice byte by byte.
        self.words.iter().for_each(|word| state.write_u32(*word));
    }
}

/// A field of an operation.
pub trait OpField: Sized {
    /// Calls `f` on each value in the field.
    fn values(&self, _f: &mut impl FnMut(Value)) {}

    /// Calls `f` on each value in the field.
    fn values_mut(&mut self, _f: &mut impl FnMut(&mut Value)) {}

    /// Appends the regions in the field.
    fn regions<'a>(&'a self, _to: &mut SmallVec<[&'a Region; 2]>) {}

    /// Appends the regions in the field.
    fn regions_mut<'a>(&'a mut self, _to: &mut SmallVec<[&'a mut Region; 2]>) {}

    /// Appends the words of the field to a key. A field that no pure operation has makes the key
    /// invalid.
    fn key(&self, words: &mut KeyWords) {
        words.refuse();
    }

    /// Appends the text of the field.
    fn print(&self, _p: &Printer<'_>, _out: &mut String) {}

    /// Parses the field.
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        Err(p.fault("a field with a text form"))
    }
}

impl OpField for Value {
    fn values(&self, f: &mut impl FnMut(Value)) {
        f(*self);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        f(self);
    }
    fn key(&self, words: &mut KeyWords) {
        words.push(self.0);
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        p.value(*self, out);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Value, IrParseError> {
        p.value()
    }
}

/// An optional value. The row of the operation gives the text around it.
impl OpField for Option<Value> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        self.iter().for_each(|v| f(*v));
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.iter_mut().for_each(f);
    }
    fn key(&self, words: &mut KeyWords) {
        words.push(self.map_or(u32::MAX, |v| v.0));
    }
}

/// A term of an address: an index, and the stride that scales it.
impl OpField for (Value, Option<Value>) {
    fn values(&self, f: &mut impl FnMut(Value)) {
        f(self.0);
        self.1.values(f);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        f(&mut self.0);
        self.1.values_mut(f);
    }
    fn key(&self, words: &mut KeyWords) {
        self.0.key(words);
        self.1.key(words);
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        self.0.print(p, out);
        if let Some(stride) = self.1 {
            out.push_str(" * ");
            stride.print(p, out);
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        let index = p.value()?;
        Ok((index, if p.eat(" * ") { Some(p.value()?) } else { None }))
    }
}

/// Separates the items of a list.
pub trait ListItem: OpField {
    /// The text between two items.
    const SEPARATOR: &str;
}

impl ListItem for Value {
    const SEPARATOR: &str = ", ";
}

impl ListItem for (Value, Option<Value>) {
    const SEPARATOR: &str = " + ";
}

impl<T: ListItem, const N: usize> OpField for SmallVec<[T; N]> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        self.iter().for_each(|item| item.values(f));
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.iter_mut().for_each(|item| item.values_mut(f));
    }
    fn key(&self, words: &mut KeyWords) {
        self.iter().for_each(|item| item.key(words));
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        for (i, item) in self.iter().enumerate() {
            if i > 0 {
                out.push_str(T::SEPARATOR);
            }
            item.print(p, out);
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        let mut items = SmallVec::new();
        if p.at_value() {
            items.push(T::parse(p)?);
            while p.eat(T::SEPARATOR) {
                items.push(T::parse(p)?);
            }
        }
        Ok(items)
    }
}

impl OpField for Region {
    fn regions<'a>(&'a self, to: &mut SmallVec<[&'a Region; 2]>) {
        to.push(self);
    }
    fn regions_mut<'a>(&'a mut self, to: &mut SmallVec<[&'a mut Region; 2]>) {
        to.push(self);
    }
}

impl OpField for Box<For> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        [self.start, self.end, self.step].into_iter().for_each(&mut *f);
        self.inits.values(f);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        [&mut self.start, &mut self.end, &mut self.step].into_iter().for_each(&mut *f);
        self.inits.values_mut(f);
    }
    fn regions<'a>(&'a self, to: &mut SmallVec<[&'a Region; 2]>) {
        to.push(&self.body);
    }
    fn regions_mut<'a>(&'a mut self, to: &mut SmallVec<[&'a mut Region; 2]>) {
        to.push(&mut self.body);
    }
}

impl OpField for AccessPlace {
    fn values(&self, f: &mut impl FnMut(Value)) {
        match self {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                f(*base);
                for dim in dims {
                    f(dim.index);
                    f(dim.extent);
                    dim.stride.values(f);
                }
            }
            AccessPlace::Shared { indices, .. } => indices.values(f),
            AccessPlace::Address { base, .. } => f(*base),
        }
        self.element_offset().into_iter().flat_map(|w| &w.indices).for_each(|step| f(step.index));
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        let within = match self {
            AccessPlace::Global { base, dims, within } | AccessPlace::Dynamic { base, dims, within } => {
                f(base);
                for dim in dims {
                    f(&mut dim.index);
                    f(&mut dim.extent);
                    dim.stride.values_mut(f);
                }
                within
            }
            AccessPlace::Shared { indices, within, .. } => {
                indices.values_mut(f);
                within
            }
            AccessPlace::Address { base, .. } => return f(base),
        };
        within.iter_mut().flat_map(|w| &mut w.indices).for_each(|step| f(&mut step.index));
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        match self {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                base.print(p, out);
                out.push('[');
                for (i, Dim { index, extent, stride }) in dims.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    index.print(p, out);
                    out.push_str(" of ");
                    extent.print(p, out);
                    if let Some(stride) = stride {
                        out.push_str(" by ");
                        stride.print(p, out);
                    }
                }
                out.push(']');
            }
            AccessPlace::Shared { array, indices, .. } => {
                array.print(p, out);
                out.push('[');
                indices.print(p, out);
                out.push(']');
            }
            AccessPlace::Address { base, offset } => {
                out.push('[');
                base.print(p, out);
                match offset {
                    0 => {}
                    n if *n < 0 => out.push_str(&format!(" - {}", n.unsigned_abs())),
                    n => out.push_str(&format!(" + {n}")),
                }
                out.push(']');
            }
        }
        if let Some(within) = self.element_offset() {
            out.push_str(&format!(".{}/{}", within.offset, within.bytes));
            for ElementIndex { index, extent, bytes } in &within.indices {
                out.push('[');
                index.print(p, out);
                out.push_str(&format!(" of {extent} by {bytes}]"));
            }
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<AccessPlace, IrParseError> {
        if p.eat("[") {
            let base = p.value()?;
            let sign = if p.eat(" + ") {
                1
            } else if p.eat(" - ") {
                -1
            } else {
                0
            };
            let offset = if sign == 0 { 0 } else { sign * i64::from(u32::parse(p)?) };
            p.expect("]")?;
            let offset = i32::try_from(offset).map_err(|_| p.fault("an offset of 32 bits"))?;
            return Ok(AccessPlace::Address { base, offset });
        }
        if !p.at_value() {
            let array = OpField::parse(p)?;
            p.expect("[")?;
            let indices = OpField::parse(p)?;
            p.expect("]")?;
            return Ok(AccessPlace::Shared { array, indices, within: parse_element_offset(p)? });
        }
        let base = p.value()?;
        p.expect("[")?;
        let mut dims = SmallVec::new();
        while !p.eat("]") {
            if !dims.is_empty() {
                p.expect(", ")?;
            }
            let index = p.value()?;
            p.expect(" of ")?;
            let extent = p.value()?;
            let stride = if p.eat(" by ") { Some(p.value()?) } else { None };
            dims.push(Dim { index, extent, stride });
        }
        let within = parse_element_offset(p)?;
        Ok(match p.ty(base) {
            Type::Shared => AccessPlace::Dynamic { base, dims, within },
            _ => AccessPlace::Global { base, dims, within },
        })
    }
}

/// Parses the part of a place that lies in an element.
fn parse_element_offset(p: &mut Parser<'_>) -> Result<Option<Box<ElementOffset>>, IrParseError> {
    if !p.eat(".") {
        return Ok(None);
    }
    let offset = OpField::parse(p)?;
    p.expect("/")?;
    let bytes = OpField::parse(p)?;
    let mut indices = SmallVec::new();
    while p.eat("[") {
        let index = p.value()?;
        p.expect(" of ")?;
        let extent = OpField::parse(p)?;
        p.expect(" by ")?;
        indices.push(ElementIndex { index, extent, bytes: OpField::parse(p)? });
        p.expect("]")?;
    }
    Ok(Some(Box::new(ElementOffset { bytes, offset, indices })))
}

impl OpField for Option<Guard> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        if let Some(guard) = self {
            f(guard.condition);
            guard.otherwise.values(f);
        }
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        if let Some(guard) = self {
            f(&mut guard.condition);
            guard.otherwise.values_mut(f);
        }
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        if let Some(guard) = self {
            out.push_str(" if ");
            guard.condition.print(p, out);
            out.push_str(" else ");
            guard.otherwise.print(p, out);
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        if !p.eat(" if ") {
            return Ok(None);
        }
        let condition = p.value()?;
        p.expect(" else ")?;
        Ok(Some(Guard { condition, otherwise: OpField::parse(p)? }))
    }
}

impl OpField for Box<AsyncCopy> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        self.to.values(f);
        self.from.values(f);
        [self.guard, self.inside, self.bytes].into_iter().flatten().for_each(f);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.to.values_mut(f);
        self.from.values_mut(f);
        [&mut self.guard, &mut self.inside, &mut self.bytes].into_iter().flatten().for_each(f);
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        let AsyncCopy { to, from, element, count, guard, inside, bytes } = &**self;
        out.push_str(&format!("{count} {element} to "));
        to.print(p, out);
        out.push_str(" from ");
        from.print(p, out);
        for (word, value) in [(" if ", guard), (" inside ", inside), (" bytes ", bytes)] {
            if let Some(value) = value {
                out.push_str(word);
                value.print(p, out);
            }
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        let count = OpField::parse(p)?;
        p.expect(" ")?;
        let element = OpField::parse(p)?;
        p.expect(" to ")?;
        let to = OpField::parse(p)?;
        p.expect(" from ")?;
        let from = OpField::parse(p)?;
        let mut optional = |word: &str| p.eat(word).then(|| p.value()).transpose();
        let (guard, inside, bytes) = (optional(" if ")?, optional(" inside ")?, optional(" bytes ")?);
        Ok(Box::new(AsyncCopy { to, from, element, count, guard, inside, bytes }))
    }
}

impl OpField for WaitGroup {
    fn values(&self, f: &mut impl FnMut(Value)) {
        if let WaitGroup::UpTo(group) = self {
            f(*group);
        }
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        if let WaitGroup::UpTo(group) = self {
            f(group);
        }
    }
    fn print(&self, p: &Printer<'_>, out: &mut String) {
        match self {
            WaitGroup::UpTo(group) => {
                out.push_str("up_to ");
                group.print(p, out);
            }
            WaitGroup::AllBut(groups) => out.push_str(&format!("all_but {groups}")),
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, IrParseError> {
        if p.eat("up_to ") {
            return Ok(WaitGroup::UpTo(p.value()?));
        }
        p.expect("all_but ")?;
        Ok(WaitGroup::AllBut(OpField::parse(p)?))
    }
}

impl OpField for Special {
    fn key(&self, words: &mut KeyWords) {
        let which = match self {
            Special::Thread(_) => 0,
            Special::Block(_) => 1,
            Special::Grid(_) => 2,
            Special::BlockDim(_) => 3,
        };
        words.push(which << 8 | u32::from(self.axis()));
    }
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&self.to_string());
    }
    fn parse(p: &mut Parser<'_>) -> Result<Special, IrParseError> {
        let kinds = [Special::Thread, Special::Block, Special::Grid, Special::BlockDim];
        let all = kinds.into_iter().flat_map(|kind| [0, 1, 2].map(kind));
        all.into_iter().find(|special| p.eat_word(&special.to_string())).ok_or_else(|| p.fault("a special register"))
    }
}

impl OpField for CachePolicy {
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(match self {
            CachePolicy::ReadOnly => " readonly",
            CachePolicy::ReadOnce => " readonly once",
            CachePolicy::Coherent => "",
            CachePolicy::CoherentOnce => " once",
            CachePolicy::BypassL1 => " bypass_l1",
        });
    }
    fn parse(p: &mut Parser<'_>) -> Result<CachePolicy, IrParseError> {
        Ok(match (p.eat(" readonly"), p.eat(" once")) {
            (true, false) => CachePolicy::ReadOnly,
            (true, true) => CachePolicy::ReadOnce,
            (false, true) => CachePolicy::CoherentOnce,
            (false, false) if p.eat(" bypass_l1") => CachePolicy::BypassL1,
            (false, false) => CachePolicy::Coherent,
        })
    }
}

/// Bits of a constant.
impl OpField for u64 {
    fn key(&self, words: &mut KeyWords) {
        words.push(*self as u32);
        words.push((*self >> 32) as u32);
    }
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&format!("{self:#x}"));
    }
    fn parse(p: &mut Parser<'_>) -> Result<u64, IrParseError> {
        p.bits()
    }
}

impl OpField for u32 {
    fn key(&self, words: &mut KeyWords) {
        words.push(*self);
    }
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&self.to_string());
    }
    fn parse(p: &mut Parser<'_>) -> Result<u32, IrParseError> {
        p.number()
    }
}

impl OpField for Scalar {
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&self.to_string());
    }
    fn parse(p: &mut Parser<'_>) -> Result<Scalar, IrParseError> {
        p.scalar()
    }
}

impl OpField for Label {
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&format!("'l{}", self.0));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Label, IrParseError> {
        p.expect("'l")?;
        Ok(Label(p.number()?))
    }
}

/// The name of a variable.
impl OpField for Box<str> {
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(&super::print::name(self));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Box<str>, IrParseError> {
        p.name().map(String::into_boxed_str)
    }
}

macro_rules! ids {
    ($($id:ident $names:ident;)*) => {$(
        impl OpField for $id {
            fn key(&self, words: &mut KeyWords) {
                words.push(self.0);
            }
            fn print(&self, p: &Printer<'_>, out: &mut String) {
                out.push_str(p.$names.get(self.0 as usize).map_or("?", String::as_str));
            }
            fn parse(p: &mut Parser<'_>) -> Result<$id, IrParseError> {
                let name = p.distinct_name()?;
                let found = p.$names.iter().position(|n| *n == name);
                found.map(|at| $id(at as u32)).ok_or_else(|| p.fault(concat!("a declared ", stringify!($names))))
            }
        }
    )*};
}

ids! {
    LocalId locals;
    SharedId shared;
    DynamicId dynamic;
    TableId tables;
}

/// Inline PTX: the operands with their directions and types, and the text that the kernel contains.
impl OpField for Arc<InlineBlock> {
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        let source = self.source();
        let operand = |o: &inline::InlineOperand| format!("{} {}: {}", o.direction.name(), o.name, o.ty);
        let operands: Vec<String> = source.operands.iter().map(operand).collect();
        out.push_str(&format!("({}) {:?}", operands.join(", "), source.text));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Arc<InlineBlock>, IrParseError> {
        p.expect("(")?;
        let mut operands = Vec::new();
        while !p.eat(")") {
            if !operands.is_empty() {
                p.expect(", ")?;
            }
            let directions = [Direction::InOut, Direction::In, Direction::Out];
            let direction = directions.into_iter().find(|d| p.eat_word(d.name()));
            let direction = direction.ok_or_else(|| p.fault("`in`, `out` or `inout`"))?;
            p.expect(" ")?;
            let name = p.name()?;
            p.expect(": ")?;
            operands.push(inline::InlineOperand { name, direction, ty: p.scalar()? });
        }
        p.expect(" ")?;
        let source = inline::InlineSource { text: p.quoted()?, operands };
        let checked = source.check(Some(p.target()));
        checked.map(Arc::new).map_err(|e| p.fault(e.first().map_or("inline PTX".into(), |e| e.message.clone())))
    }
}

macro_rules! words {
    ($($ty:ident { $($variant:ident $word:literal),* })*) => {$(
        impl OpField for $ty {
            fn key(&self, words: &mut KeyWords) {
                words.push(*self as u32);
            }
            fn print(&self, _: &Printer<'_>, out: &mut String) {
                out.push_str(match self { $($ty::$variant => $word,)* });
            }
            fn parse(p: &mut Parser<'_>) -> Result<$ty, IrParseError> {
                $(if p.eat_word($word) {
                    return Ok($ty::$variant);
                })*
                Err(p.fault(concat!("a word of `", stringify!($ty), "`")))
            }
        }
    )*};
}

words! {
    Unary {
        Neg "neg", Not "not", Abs "abs", Sqrt "sqrt", Floor "floor", Ceil "ceil", Trunc "trunc", RoundEven "round_even",
        CountOnes "count_ones", LeadingZeros "leading_zeros", ReverseBits "reverse_bits", SwapBytes "swap_bytes"
    }
    Binary {
        Add "add", Sub "sub", Mul "mul", Div "div", Rem "rem", WrappingAdd "wrapping_add", WrappingSub "wrapping_sub",
        WrappingMul "wrapping_mul", Min "min", Max "max", And "and", Or "or", Xor "xor", Shl "shl", Shr "shr",
        WrappingShl "wrapping_shl", WrappingShr "wrapping_shr", RotateLeft "rotate_left"
    }
    Comparison { Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge" }
    AtomicOperator {
        Add "add", Min "min", Max "max", And "and", Or "or", Xor "xor", Exchange "exchange",
        CompareExchange "compare_exchange", Load "load", Store "store"
    }
    FailureEffect { Continue "continue", Exit "exit", Trap "trap" }
    Shuffle { Index "index", Xor "xor", Up "up", Down "down", Broadcast "broadcast" }
    Vote { Ballot "ballot", All "all", Any "any" }
    FenceScope { Block "block", Grid "grid", System "system" }
    Approximation {
        Reciprocal "reciprocal", SquareRoot "square_root", ReciprocalSquareRoot "reciprocal_square_root", Sine "sine",
        Cosine "cosine", Exponential "exponential", Logarithm "logarithm", Tangent "tangent"
    }
}

impl OpField for Bits {
    fn key(&self, words: &mut KeyWords) {
        words.push(Bits::ALL.iter().position(|bits| bits == self).unwrap_or(Bits::ALL.len()) as u32);
    }
    fn print(&self, _: &Printer<'_>, out: &mut String) {
        out.push_str(self.name());
    }
    fn parse(p: &mut Parser<'_>) -> Result<Bits, IrParseError> {
        Bits::ALL.into_iter().find(|bits| p.eat_word(bits.name())).ok_or_else(|| p.fault("an operation on bits"))
    }
}
