//! The methods of the built-in types.

use super::SignatureType as Type;
use super::constants::constant;
use super::inexact::inexact;
use super::signature::{
    INDEX, INDEX_AND_ELEMENT, NO_PARAMETERS, ONE_U32, ONE_VALUE, TWO_VALUES, VALUE_AND_FN, VALUE_AND_LANE,
    VALUE_START_AND_FN,
};
use crate::Scalar;
use crate::hir::Method as NumberMethod;
use crate::hir::OnOverflow::{Checked, Overflowing, Saturating};
use crate::hir::collective::Reduction;
use crate::hir::{Collective, Intrinsic, MemoryOrder};
use crate::ir::{AtomicOperator, Binary, Shuffle, Unary, Vote};

/// The types that have a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// `f32` and `f64`.
    Float,
    /// Floats of at most 16 bits: `f16`, `bf16` and `Float16`.
    Half,
    /// All integers.
    Integer,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Slices.
    Slice,
    /// Views of any rank.
    View,
    /// Views and shared arrays of rank 1.
    View1,
    /// Views and shared arrays of rank 2.
    View2,
    /// Views of rank 2 or more.
    ViewDeep,
    /// Views whose last stride is 1.
    Contiguous,
    /// Views of rank 2 with arbitrary strides.
    Strided2,
    /// Shared arrays of any rank.
    Shared,
    /// Shared arrays of rank 2 or more.
    SharedDeep,
    /// Slices, views and shared arrays.
    Memory,
    /// Slices, views and shared arrays that the kernel may write.
    Writable,
    /// The receivers of `Writable`, and views with arbitrary strides.
    Atomic,
    /// Slices and views.
    Global,
    /// Slices and views that the kernel may write.
    GlobalMut,
    /// Tokens for copies in flight.
    Pending,
    /// A group of lanes; `SignatureType::This` is the value that the lanes exchange.
    Group,
}

/// A method.
pub struct LanguageMethod {
    /// The types that have the method.
    pub on: Receiver,
    /// The name.
    pub name: &'static str,
    /// The computed operation.
    pub intrinsic: Intrinsic,
    /// The types of the parameters after the receiver.
    pub parameters: &'static [Type],
    /// The type of the result.
    pub returns: Type,
}

const fn method(
    on: Receiver,
    name: &'static str,
    intrinsic: Intrinsic,
    parameters: &'static [Type],
    returns: Type,
) -> LanguageMethod {
    LanguageMethod { on, name, intrinsic, parameters, returns }
}

/// The methods of numbers, memory, tokens and groups.
pub const METHODS: &[LanguageMethod] = &[
    method(Receiver::Float, "mul_add", Intrinsic::MulAdd, &[Type::This, Type::This], Type::This),
    method(Receiver::Float, "abs", Intrinsic::Unary(Unary::Abs), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "sqrt", Intrinsic::Unary(Unary::Sqrt), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "floor", Intrinsic::Unary(Unary::Floor), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "ceil", Intrinsic::Unary(Unary::Ceil), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "trunc", Intrinsic::Unary(Unary::Trunc), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "round_ties_even", Intrinsic::Unary(Unary::RoundEven), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "min", Intrinsic::Binary(Binary::Min), ONE_VALUE, Type::This),
    method(Receiver::Float, "max", Intrinsic::Binary(Binary::Max), ONE_VALUE, Type::This),
    method(Receiver::Float, "to_bits", Intrinsic::Bitcast, NO_PARAMETERS, Type::UnsignedBits),
    method(Receiver::Half, "to_f32", Intrinsic::Convert, NO_PARAMETERS, Type::F32),
    method(Receiver::Half, "to_bits", Intrinsic::Bitcast, NO_PARAMETERS, Type::UnsignedBits),
    method(Receiver::Half, "mul_add", Intrinsic::MulAdd, &[Type::This, Type::This], Type::This),
    method(Receiver::Half, "abs", Intrinsic::Unary(Unary::Abs), NO_PARAMETERS, Type::This),
    method(Receiver::Half, "min", Intrinsic::Binary(Binary::Min), ONE_VALUE, Type::This),
    method(Receiver::Half, "max", Intrinsic::Binary(Binary::Max), ONE_VALUE, Type::This),
    method(Receiver::Integer, "min", Intrinsic::Binary(Binary::Min), ONE_VALUE, Type::This),
    method(Receiver::Integer, "max", Intrinsic::Binary(Binary::Max), ONE_VALUE, Type::This),
    method(Receiver::Integer, "wrapping_add", Intrinsic::Binary(Binary::WrappingAdd), ONE_VALUE, Type::This),
    method(Receiver::Integer, "wrapping_sub", Intrinsic::Binary(Binary::WrappingSub), ONE_VALUE, Type::This),
    method(Receiver::Integer, "wrapping_mul", Intrinsic::Binary(Binary::WrappingMul), ONE_VALUE, Type::This),
    method(Receiver::Signed, "abs", Intrinsic::Unary(Unary::Abs), NO_PARAMETERS, Type::This),
    method(Receiver::Unsigned, "div_ceil", Intrinsic::DivCeil, ONE_VALUE, Type::This),
    method(Receiver::Unsigned, "next_multiple_of", Intrinsic::NextMultipleOf, ONE_VALUE, Type::This),
    method(Receiver::Unsigned, "saturating_sub", Intrinsic::SaturatingSub, ONE_VALUE, Type::This),
    method(Receiver::Float, "is_nan", Intrinsic::Method(NumberMethod::IsNan), NO_PARAMETERS, Type::Bool),
    method(Receiver::Float, "is_finite", Intrinsic::Method(NumberMethod::IsFinite), NO_PARAMETERS, Type::Bool),
    method(Receiver::Float, "is_infinite", Intrinsic::Method(NumberMethod::IsInfinite), NO_PARAMETERS, Type::Bool),
    method(
        Receiver::Float,
        "is_sign_negative",
        Intrinsic::Method(NumberMethod::IsSignNegative),
        NO_PARAMETERS,
        Type::Bool,
    ),
    method(
        Receiver::Float,
        "is_sign_positive",
        Intrinsic::Method(NumberMethod::IsSignPositive),
        NO_PARAMETERS,
        Type::Bool,
    ),
    method(Receiver::Float, "recip", Intrinsic::Method(NumberMethod::Recip), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "fract", Intrinsic::Method(NumberMethod::Fract), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "round", Intrinsic::Method(NumberMethod::Round), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "signum", Intrinsic::Method(NumberMethod::Signum), NO_PARAMETERS, Type::This),
    method(Receiver::Float, "copysign", Intrinsic::Method(NumberMethod::Copysign), ONE_VALUE, Type::This),
    method(Receiver::Float, "clamp", Intrinsic::Method(NumberMethod::Clamp), TWO_VALUES, Type::This),
    method(Receiver::Integer, "clamp", Intrinsic::Method(NumberMethod::Clamp), TWO_VALUES, Type::This),
    method(Receiver::Integer, "count_ones", Intrinsic::Method(NumberMethod::CountOnes), NO_PARAMETERS, Type::U32),
    method(Receiver::Integer, "count_zeros", Intrinsic::Method(NumberMethod::CountZeros), NO_PARAMETERS, Type::U32),
    method(Receiver::Integer, "leading_zeros", Intrinsic::Method(NumberMethod::LeadingZeros), NO_PARAMETERS, Type::U32),
    method(Receiver::Integer, "leading_ones", Intrinsic::Method(NumberMethod::LeadingOnes), NO_PARAMETERS, Type::U32),
    method(
        Receiver::Integer,
        "trailing_zeros",
        Intrinsic::Method(NumberMethod::TrailingZeros),
        NO_PARAMETERS,
        Type::U32,
    ),
    method(Receiver::Integer, "trailing_ones", Intrinsic::Method(NumberMethod::TrailingOnes), NO_PARAMETERS, Type::U32),
    method(Receiver::Integer, "reverse_bits", Intrinsic::Method(NumberMethod::ReverseBits), NO_PARAMETERS, Type::This),
    method(Receiver::Integer, "swap_bytes", Intrinsic::Method(NumberMethod::SwapBytes), NO_PARAMETERS, Type::This),
    method(Receiver::Integer, "rotate_left", Intrinsic::Method(NumberMethod::RotateLeft), ONE_U32, Type::This),
    method(Receiver::Integer, "rotate_right", Intrinsic::Method(NumberMethod::RotateRight), ONE_U32, Type::This),
    method(Receiver::Integer, "abs_diff", Intrinsic::Method(NumberMethod::AbsDiff), ONE_VALUE, Type::Unsigned),
    method(Receiver::Integer, "pow", Intrinsic::Method(NumberMethod::Pow), ONE_U32, Type::This),
    method(Receiver::Integer, "wrapping_neg", Intrinsic::Method(NumberMethod::WrappingNeg), NO_PARAMETERS, Type::This),
    method(Receiver::Integer, "wrapping_div", Intrinsic::Method(NumberMethod::WrappingDiv), ONE_VALUE, Type::This),
    method(Receiver::Integer, "wrapping_rem", Intrinsic::Method(NumberMethod::WrappingRem), ONE_VALUE, Type::This),
    method(Receiver::Integer, "wrapping_pow", Intrinsic::Method(NumberMethod::WrappingPow), ONE_U32, Type::This),
    method(Receiver::Integer, "div_euclid", Intrinsic::Method(NumberMethod::DivEuclid), ONE_VALUE, Type::This),
    method(Receiver::Integer, "rem_euclid", Intrinsic::Method(NumberMethod::RemEuclid), ONE_VALUE, Type::This),
    method(Receiver::Signed, "signum", Intrinsic::Method(NumberMethod::Signum), NO_PARAMETERS, Type::This),
    method(Receiver::Signed, "is_negative", Intrinsic::Method(NumberMethod::IsNegative), NO_PARAMETERS, Type::Bool),
    method(Receiver::Signed, "is_positive", Intrinsic::Method(NumberMethod::IsPositive), NO_PARAMETERS, Type::Bool),
    method(Receiver::Signed, "wrapping_abs", Intrinsic::Method(NumberMethod::WrappingAbs), NO_PARAMETERS, Type::This),
    method(
        Receiver::Signed,
        "unsigned_abs",
        Intrinsic::Method(NumberMethod::UnsignedAbs),
        NO_PARAMETERS,
        Type::Unsigned,
    ),
    method(Receiver::Unsigned, "saturating_add", Intrinsic::Method(NumberMethod::SaturatingAdd), ONE_VALUE, Type::This),
    method(
        Receiver::Unsigned,
        "is_power_of_two",
        Intrinsic::Method(NumberMethod::IsPowerOfTwo),
        NO_PARAMETERS,
        Type::Bool,
    ),
    method(
        Receiver::Unsigned,
        "next_power_of_two",
        Intrinsic::Method(NumberMethod::NextPowerOfTwo),
        NO_PARAMETERS,
        Type::This,
    ),
    method(Receiver::Integer, "checked_add", Intrinsic::Overflow(Checked, Binary::Add), ONE_VALUE, Type::OptionThis),
    method(Receiver::Integer, "checked_sub", Intrinsic::Overflow(Checked, Binary::Sub), ONE_VALUE, Type::OptionThis),
    method(Receiver::Integer, "checked_mul", Intrinsic::Overflow(Checked, Binary::Mul), ONE_VALUE, Type::OptionThis),
    method(Receiver::Integer, "checked_div", Intrinsic::Overflow(Checked, Binary::Div), ONE_VALUE, Type::OptionThis),
    method(Receiver::Integer, "checked_rem", Intrinsic::Overflow(Checked, Binary::Rem), ONE_VALUE, Type::OptionThis),
    method(
        Receiver::Integer,
        "overflowing_add",
        Intrinsic::Overflow(Overflowing, Binary::Add),
        ONE_VALUE,
        Type::ThisAndOverflow,
    ),
    method(
        Receiver::Integer,
        "overflowing_sub",
        Intrinsic::Overflow(Overflowing, Binary::Sub),
        ONE_VALUE,
        Type::ThisAndOverflow,
    ),
    method(
        Receiver::Integer,
        "overflowing_mul",
        Intrinsic::Overflow(Overflowing, Binary::Mul),
        ONE_VALUE,
        Type::ThisAndOverflow,
    ),
    method(Receiver::Integer, "saturating_mul", Intrinsic::Overflow(Saturating, Binary::Mul), ONE_VALUE, Type::This),
    method(Receiver::Signed, "saturating_add", Intrinsic::Overflow(Saturating, Binary::Add), ONE_VALUE, Type::This),
    method(Receiver::Signed, "saturating_sub", Intrinsic::Overflow(Saturating, Binary::Sub), ONE_VALUE, Type::This),
    method(Receiver::Integer, "ilog2", Intrinsic::Method(NumberMethod::Ilog2), NO_PARAMETERS, Type::U32),
    method(Receiver::Unsigned, "is_multiple_of", Intrinsic::Method(NumberMethod::IsMultipleOf), ONE_VALUE, Type::Bool),
    method(Receiver::Integer, "wrapping_shl", Intrinsic::Binary(Binary::WrappingShl), ONE_U32, Type::This),
    method(Receiver::Integer, "wrapping_shr", Intrinsic::Binary(Binary::WrappingShr), ONE_U32, Type::This),
    method(Receiver::Group, "lane", Intrinsic::GroupLane, NO_PARAMETERS, Type::Usize),
    method(Receiver::Group, "index", Intrinsic::GroupIndex, NO_PARAMETERS, Type::Usize),
    method(Receiver::Group, "sum", Intrinsic::OfGroup(Collective::Number(Reduction::Sum)), ONE_VALUE, Type::This),
    method(Receiver::Group, "max", Intrinsic::OfGroup(Collective::Number(Reduction::Max)), ONE_VALUE, Type::This),
    method(Receiver::Group, "min", Intrinsic::OfGroup(Collective::Number(Reduction::Min)), ONE_VALUE, Type::This),
    method(Receiver::Group, "reduce", Intrinsic::OfGroup(Collective::Reduce), VALUE_AND_FN, Type::This),
    method(Receiver::Group, "scan", Intrinsic::OfGroup(Collective::Scan), VALUE_AND_FN, Type::This),
    method(
        Receiver::Group,
        "exclusive_scan",
        Intrinsic::OfGroup(Collective::ExclusiveScan),
        VALUE_START_AND_FN,
        Type::This,
    ),
    method(
        Receiver::Group,
        "shuffle",
        Intrinsic::OfGroup(Collective::Shuffle(Shuffle::Index)),
        VALUE_AND_LANE,
        Type::This,
    ),
    method(
        Receiver::Group,
        "shuffle_xor",
        Intrinsic::OfGroup(Collective::Shuffle(Shuffle::Xor)),
        VALUE_AND_LANE,
        Type::This,
    ),
    method(
        Receiver::Group,
        "shuffle_up",
        Intrinsic::OfGroup(Collective::Shuffle(Shuffle::Up)),
        VALUE_AND_LANE,
        Type::OptionThis,
    ),
    method(
        Receiver::Group,
        "shuffle_down",
        Intrinsic::OfGroup(Collective::Shuffle(Shuffle::Down)),
        VALUE_AND_LANE,
        Type::OptionThis,
    ),
    method(Receiver::Group, "broadcast", Intrinsic::OfGroup(Collective::Broadcast), VALUE_AND_LANE, Type::This),
    method(Receiver::Group, "ballot", Intrinsic::OfGroup(Collective::Vote(Vote::Ballot)), &[Type::Bool], Type::U32),
    method(Receiver::Group, "all", Intrinsic::OfGroup(Collective::Vote(Vote::All)), &[Type::Bool], Type::Bool),
    method(Receiver::Group, "any", Intrinsic::OfGroup(Collective::Vote(Vote::Any)), &[Type::Bool], Type::Bool),
    method(Receiver::Slice, "len", Intrinsic::Extent(Some(0)), NO_PARAMETERS, Type::Usize),
    method(Receiver::Slice, "is_empty", Intrinsic::IsEmpty, NO_PARAMETERS, Type::Bool),
    method(Receiver::Slice, "aligned", Intrinsic::Aligned, &[Type::Usize], Type::Bool),
    method(Receiver::Slice, "get", Intrinsic::Get, &[Type::Usize], Type::OptionElement),
    method(Receiver::View, "get", Intrinsic::Get, &[Type::Indices], Type::OptionElement),
    method(Receiver::View1, "len", Intrinsic::Extent(Some(0)), NO_PARAMETERS, Type::Usize),
    method(Receiver::View2, "rows", Intrinsic::Extent(Some(0)), NO_PARAMETERS, Type::Usize),
    method(Receiver::View2, "cols", Intrinsic::Extent(Some(1)), NO_PARAMETERS, Type::Usize),
    method(Receiver::View, "dim", Intrinsic::Extent(None), &[Type::Usize], Type::Usize),
    method(Receiver::View, "is_empty", Intrinsic::IsEmpty, NO_PARAMETERS, Type::Bool),
    method(Receiver::View, "stride", Intrinsic::Stride, &[Type::Usize], Type::Usize),
    method(Receiver::Contiguous, "strided", Intrinsic::ViewStrided, NO_PARAMETERS, Type::Strided),
    method(Receiver::Strided2, "transposed", Intrinsic::ViewTransposed, NO_PARAMETERS, Type::This),
    method(Receiver::Contiguous, "aligned", Intrinsic::Aligned, &[Type::Usize], Type::Bool),
    method(Receiver::View, "offset", Intrinsic::ViewOffset, &[Type::Indices], Type::This),
    method(Receiver::View, "streaming", Intrinsic::ViewStreaming, NO_PARAMETERS, Type::This),
    method(Receiver::View, "bypass_l1", Intrinsic::ViewBypassL1, NO_PARAMETERS, Type::This),
    method(Receiver::ViewDeep, "at", Intrinsic::ViewAt, &[Type::Usize], Type::InnerView),
    method(Receiver::Shared, "dim", Intrinsic::Extent(None), &[Type::Usize], Type::Usize),
    method(Receiver::SharedDeep, "at", Intrinsic::SharedAt, &[Type::Usize], Type::InnerView),
    method(Receiver::Shared, "copy_from", Intrinsic::SharedCopyFrom, &[Type::View], Type::Unit),
    method(Receiver::Shared, "copy_async", Intrinsic::CopyAsync, &[Type::View], Type::Pending),
    method(Receiver::Shared, "cp_async", Intrinsic::CpAsync, &[Type::View], Type::Unit),
    method(Receiver::Pending, "and", Intrinsic::PendingAnd, &[Type::This], Type::Pending),
    method(Receiver::Pending, "wait", Intrinsic::PendingWait, NO_PARAMETERS, Type::Unit),
    method(Receiver::Shared, "fill", Intrinsic::SharedFill, &[Type::Element], Type::Unit),
    method(Receiver::Shared, "get", Intrinsic::Get, &[Type::Indices], Type::OptionElement),
    method(Receiver::Shared, "load_or", Intrinsic::LoadOr, &[Type::Indices, Type::Element], Type::ElementArray),
    method(Receiver::Shared, "store_in", Intrinsic::StoreIn, &[Type::Indices, Type::ElementArray], Type::Unit),
    // The following methods access several adjacent elements, which views with arbitrary strides do
    // not have.
    method(Receiver::Memory, "load", Intrinsic::Load, &[Type::Indices], Type::ElementArray),
    method(Receiver::Global, "load_or", Intrinsic::LoadOr, &[Type::Indices, Type::Element], Type::ElementArray),
    method(Receiver::Writable, "store", Intrinsic::Store, &[Type::Indices, Type::ElementArray], Type::Unit),
    method(Receiver::GlobalMut, "store_in", Intrinsic::StoreIn, &[Type::Indices, Type::ElementArray], Type::Unit),
    method(
        Receiver::Atomic,
        "load_relaxed",
        Intrinsic::Atomic(AtomicOperator::Load, MemoryOrder::Relaxed),
        INDEX,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "load_acquire",
        Intrinsic::Atomic(AtomicOperator::Load, MemoryOrder::Acquire),
        INDEX,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "store_relaxed",
        Intrinsic::Atomic(AtomicOperator::Store, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Unit,
    ),
    method(
        Receiver::Atomic,
        "store_release",
        Intrinsic::Atomic(AtomicOperator::Store, MemoryOrder::Release),
        INDEX_AND_ELEMENT,
        Type::Unit,
    ),
    // Relaxed accesses are volatile: none is dropped, repeated or merged.
    method(
        Receiver::Atomic,
        "read_volatile",
        Intrinsic::Atomic(AtomicOperator::Load, MemoryOrder::Relaxed),
        INDEX,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "write_volatile",
        Intrinsic::Atomic(AtomicOperator::Store, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Unit,
    ),
    method(
        Receiver::Atomic,
        "fetch_add",
        Intrinsic::Atomic(AtomicOperator::Add, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(Receiver::Atomic, "fetch_sub", Intrinsic::AtomicSubtract, INDEX_AND_ELEMENT, Type::Element),
    method(
        Receiver::Atomic,
        "fetch_min",
        Intrinsic::Atomic(AtomicOperator::Min, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "fetch_max",
        Intrinsic::Atomic(AtomicOperator::Max, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "fetch_and",
        Intrinsic::Atomic(AtomicOperator::And, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "fetch_or",
        Intrinsic::Atomic(AtomicOperator::Or, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "fetch_xor",
        Intrinsic::Atomic(AtomicOperator::Xor, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "exchange",
        Intrinsic::Atomic(AtomicOperator::Exchange, MemoryOrder::Relaxed),
        INDEX_AND_ELEMENT,
        Type::Element,
    ),
    method(
        Receiver::Atomic,
        "compare_exchange",
        Intrinsic::Atomic(AtomicOperator::CompareExchange, MemoryOrder::Relaxed),
        &[Type::Indices, Type::Element, Type::Element],
        Type::Element,
    ),
];

/// The methods of arrays in registers.
pub const ARRAY_METHODS: &[&str] = &["len", "map"];

/// The methods of `Option`.
pub const OPTION_METHODS: &[&str] =
    &["is_some", "is_none", "is_some_and", "unwrap_or", "map", "map_or", "and_then", "ok_or", "copied"];

/// The methods of `Result`.
pub const RESULT_METHODS: &[&str] =
    &["is_ok", "is_err", "is_ok_and", "ok", "err", "unwrap_or", "map", "map_err", "map_or", "and_then"];

/// Returns whether a method of this name takes a closure, so that its argument may be the path of a
/// function.
pub fn method_takes_closure(name: &str) -> bool {
    matches!(name, "map" | "copy_async_map" | "map_or" | "map_err" | "and_then" | "is_some_and" | "is_ok_and")
        || METHODS.iter().any(|m| m.name == name && m.parameters.contains(&Type::CombineFn))
}

impl Receiver {
    /// Returns whether a scalar of type `s` has the methods of this receiver.
    pub fn scalar(self, s: Scalar) -> bool {
        match self {
            Receiver::Float => s.is_float(),
            Receiver::Half => s.is_half(),
            Receiver::Integer => s.is_integer(),
            Receiver::Signed => s.is_signed(),
            Receiver::Unsigned => s.is_integer() && !s.is_signed(),
            _ => false,
        }
    }

    /// Returns whether a slice has the methods of this receiver.
    pub fn slice(self, mutable: bool) -> bool {
        match self {
            Receiver::Slice | Receiver::Memory | Receiver::Global => true,
            Receiver::Writable | Receiver::GlobalMut | Receiver::Atomic => mutable,
            _ => false,
        }
    }

    /// Returns whether a view has the methods of this receiver; `strided` views have an arbitrary
    /// last stride.
    pub fn view(self, rank: u32, mutable: bool, strided: bool) -> bool {
        match self {
            Receiver::Memory | Receiver::Global | Receiver::Contiguous => !strided,
            Receiver::Writable | Receiver::GlobalMut => mutable && !strided,
            Receiver::Atomic => mutable,
            Receiver::Strided2 => strided && rank == 2,
            Receiver::View => true,
            Receiver::View1 => rank == 1,
            Receiver::View2 => rank == 2,
            Receiver::ViewDeep => rank >= 2,
            _ => false,
        }
    }

    /// Returns whether a shared array of this rank has the methods of this receiver.
    pub fn shared(self, rank: u32) -> bool {
        match self {
            Receiver::Shared | Receiver::Memory | Receiver::Writable | Receiver::Atomic => true,
            Receiver::SharedDeep => rank >= 2,
            Receiver::View1 => rank == 1,
            Receiver::View2 => rank == 2,
            _ => false,
        }
    }
}

/// Returns whether kernels can name `f32::NAME` of a number type, or have a message about it.
pub fn has_associated(scalar: Scalar, name: &str) -> bool {
    let is_built_in = Scalar::from_name(scalar.name()) == Some(scalar);
    let is_function = METHODS.iter().any(|method| method.name == name && method.on.scalar(scalar))
        || matches!(name, "from" | "from_bits" | "from_f32" | "from_le_bytes" | "from_be_bytes" | "default");
    let is_constant = constant(&format!("{}::{name}", scalar.name())).is_some()
        || scalar == Scalar::Usize && matches!(name, "MAX" | "MIN" | "BITS");
    is_built_in && (is_function || is_constant || inexact(scalar, name).is_some())
}
