//! What the language itself names: the functions of the prelude, the methods of its types, associated constants.
//!
//! One table each, so that the reader of a kernel, the checker and the documentation agree on what there is.

use crate::Approximation as X;
use crate::Scalar;
use crate::float16::{Format, Policy};
use crate::hir::collective::Reduction;
use crate::hir::{Builtin, Collective as C, Fast, Intrinsic, Method as M, OnOverflow as O};
use crate::ir;
use crate::syntax::{Argument, Path, Segment, Type, TypeKind};

/// The type of a parameter or result in a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Unit,
    Bool,
    U32,
    Usize,
    F32,
    /// The receiver's type, or the function's one type parameter.
    Same,
    /// The unsigned integer of as many bits as the receiver.
    Bits,
    /// The unsigned integer like the receiver.
    Unsigned,
    /// As many `usize` as the receiver has dimensions.
    Indices,
    /// The receiver with one dimension less.
    Inner,
    /// A `View` of the receiver's element and rank.
    View,
    /// The receiver as a view of any strides.
    Strided,
    /// An `Option` of the receiver's element; of a reference to it, where the receiver is a slice.
    Found,
    /// An element of the receiver.
    Element,
    /// Copies that have begun.
    Pending,
    /// An array of elements of the receiver; its length is the method's generic argument.
    Elements,
    /// A closure or function of two `Same` that gives one.
    Combine,
    /// An `Option` of `Same`.
    MaybeSame,
    /// A pair of `Same`.
    TwoOfSame,
    /// `Same`, and whether it is wrong.
    Overflowing,
}

/// A function of the prelude.
pub(super) struct Function {
    pub path: &'static str,
    pub intrinsic: Intrinsic,
    pub parameters: &'static [Part],
    pub returns: Part,
}

const fn f(path: &'static str, intrinsic: Intrinsic, parameters: &'static [Part], returns: Part) -> Function {
    Function { path, intrinsic, parameters, returns }
}

/// The functions of the prelude but `unroll`, `unroll_by` and `rolled`, which belong to `for`, and those with a constant for argument,
/// `warp::group` and `pipeline::wait`.
pub(super) const FUNCTIONS: &[Function] = &[
    f("Pending::none", Intrinsic::PendingNone, &[], Part::Pending),
    f("thread::x", Intrinsic::Thread(0), &[], Part::Usize),
    f("thread::y", Intrinsic::Thread(1), &[], Part::Usize),
    f("thread::z", Intrinsic::Thread(2), &[], Part::Usize),
    f("thread::index", Intrinsic::ThreadIndex, &[], Part::Usize),
    f("block::x", Intrinsic::Block(0), &[], Part::Usize),
    f("block::y", Intrinsic::Block(1), &[], Part::Usize),
    f("block::z", Intrinsic::Block(2), &[], Part::Usize),
    f("block::dim_x", Intrinsic::BlockDim(0), &[], Part::Usize),
    f("block::dim_y", Intrinsic::BlockDim(1), &[], Part::Usize),
    f("block::dim_z", Intrinsic::BlockDim(2), &[], Part::Usize),
    f("block::threads", Intrinsic::BlockThreads, &[], Part::Usize),
    f("block::sync", Intrinsic::BlockSync, &[], Part::Unit),
    f("block::sum", Intrinsic::OfBlock(C::Number(Reduction::Sum)), ONE, Part::Same),
    f("block::max", Intrinsic::OfBlock(C::Number(Reduction::Max)), ONE, Part::Same),
    f("block::min", Intrinsic::OfBlock(C::Number(Reduction::Min)), ONE, Part::Same),
    f("block::reduce", Intrinsic::OfBlock(C::Reduce), REDUCE, Part::Same),
    f("block::scan", Intrinsic::OfBlock(C::Scan), SCAN, Part::TwoOfSame),
    f("block::broadcast", Intrinsic::OfBlock(C::Broadcast), FROM, Part::Same),
    f("block::all", Intrinsic::OfBlock(C::Vote(ir::Vote::All)), &[Part::Bool], Part::Bool),
    f("block::any", Intrinsic::OfBlock(C::Vote(ir::Vote::Any)), &[Part::Bool], Part::Bool),
    f("block::count", Intrinsic::OfBlock(C::Count), &[Part::Bool], Part::Usize),
    f("warp::count", Intrinsic::WarpCount, &[], Part::Usize),
    f("grid::dim_x", Intrinsic::GridDim(0), &[], Part::Usize),
    f("grid::dim_y", Intrinsic::GridDim(1), &[], Part::Usize),
    f("grid::dim_z", Intrinsic::GridDim(2), &[], Part::Usize),
    f("grid::index", Intrinsic::GridIndex, &[], Part::Usize),
    f("device::multiprocessors", Intrinsic::Multiprocessors, &[], Part::Usize),
    f("device::waves", Intrinsic::Waves, &[Part::Usize, Part::Usize], Part::Usize),
    f("grid::threads", Intrinsic::GridThreads, &[], Part::Usize),
    f("warp::lane", Intrinsic::WarpLane, &[], Part::Usize),
    f("warp::index", Intrinsic::WarpIndex, &[], Part::Usize),
    f("warp::sync", Intrinsic::WarpSync, &[], Part::Unit),
    f("warp::sum", Intrinsic::OfWarp(C::Number(Reduction::Sum)), ONE, Part::Same),
    f("warp::max", Intrinsic::OfWarp(C::Number(Reduction::Max)), ONE, Part::Same),
    f("warp::min", Intrinsic::OfWarp(C::Number(Reduction::Min)), ONE, Part::Same),
    f("warp::reduce", Intrinsic::OfWarp(C::Reduce), REDUCE, Part::Same),
    f("warp::scan", Intrinsic::OfWarp(C::Scan), REDUCE, Part::Same),
    f("warp::exclusive_scan", Intrinsic::OfWarp(C::ExclusiveScan), SCAN, Part::Same),
    f("warp::shuffle", Intrinsic::OfWarp(C::Shuffle(ir::Shuffle::Index)), FROM, Part::Same),
    f("warp::shuffle_xor", Intrinsic::OfWarp(C::Shuffle(ir::Shuffle::Xor)), FROM, Part::Same),
    f("warp::shuffle_up", Intrinsic::OfWarp(C::Shuffle(ir::Shuffle::Up)), FROM, Part::MaybeSame),
    f("warp::shuffle_down", Intrinsic::OfWarp(C::Shuffle(ir::Shuffle::Down)), FROM, Part::MaybeSame),
    f("warp::broadcast", Intrinsic::OfWarp(C::Broadcast), FROM, Part::Same),
    f("warp::match_any", Intrinsic::OfWarp(C::Match), ONE, Part::U32),
    f("warp::ballot", Intrinsic::OfWarp(C::Vote(ir::Vote::Ballot)), &[Part::Bool], Part::U32),
    f("warp::all", Intrinsic::OfWarp(C::Vote(ir::Vote::All)), &[Part::Bool], Part::Bool),
    f("warp::any", Intrinsic::OfWarp(C::Vote(ir::Vote::Any)), &[Part::Bool], Part::Bool),
    f("pipeline::commit", Intrinsic::PipelineCommit, &[], Part::Unit),
    f("fast::exp2", Intrinsic::Fast(Fast::One(X::Exponential)), FLOAT, Part::F32),
    f("fast::exp", Intrinsic::Fast(Fast::Exp), FLOAT, Part::F32),
    f("fast::log2", Intrinsic::Fast(Fast::One(X::Logarithm)), FLOAT, Part::F32),
    f("fast::ln", Intrinsic::Fast(Fast::Ln), FLOAT, Part::F32),
    f("fast::rcp", Intrinsic::Fast(Fast::One(X::Reciprocal)), FLOAT, Part::F32),
    f("fast::sqrt", Intrinsic::Fast(Fast::One(X::SquareRoot)), FLOAT, Part::F32),
    f("fast::rsqrt", Intrinsic::Fast(Fast::One(X::ReciprocalSquareRoot)), FLOAT, Part::F32),
    f("fast::sin", Intrinsic::Fast(Fast::One(X::Sine)), FLOAT, Part::F32),
    f("fast::cos", Intrinsic::Fast(Fast::One(X::Cosine)), FLOAT, Part::F32),
    f("fast::tanh", Intrinsic::Fast(Fast::Tanh), FLOAT, Part::F32),
    f("fast::div", Intrinsic::Fast(Fast::Div), &[Part::F32, Part::F32], Part::F32),
    f("int::mul_hi", Intrinsic::Bits(I::MultiplyHigh), TWO, Part::Same),
    f("int::mul24", Intrinsic::Bits(I::Multiply24), TWO, Part::Same),
    f("int::byte_perm", Intrinsic::Bits(I::Permute), WORDS, Part::U32),
    f("int::funnel_shl", Intrinsic::Bits(I::FunnelLeft), WORDS, Part::U32),
    f("int::funnel_shr", Intrinsic::Bits(I::FunnelRight), WORDS, Part::U32),
    f("int::extract", Intrinsic::Bits(I::Extract), &[Part::Same, Part::U32, Part::U32], Part::Same),
    f("int::insert", Intrinsic::Bits(I::Insert), &[Part::Same, Part::Same, Part::U32, Part::U32], Part::Same),
    f("fence::block", Intrinsic::Fence(ir::Scope::Block), &[], Part::Unit),
    f("fence::grid", Intrinsic::Fence(ir::Scope::Grid), &[], Part::Unit),
    f("fence::system", Intrinsic::Fence(ir::Scope::System), &[], Part::Unit),
];

/// Receivers that a method exists on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum On {
    Float,
    /// `f16`, `bf16`.
    Half,
    Integer,
    Signed,
    Unsigned,
    Slice,
    View,
    /// A view or shared array of rank 1.
    View1,
    /// A view of rank 2.
    View2,
    /// A view of rank 2 or more.
    ViewDeep,
    /// A view whose last stride is 1.
    Contiguous,
    /// A view of any strides and of rank 2.
    Strided2,
    Shared,
    /// A shared array of rank 2 or more.
    SharedDeep,
    /// Slices, views and shared arrays.
    Memory,
    /// Of these, what the kernel may write.
    Writable,
    /// The same, and views of any strides too.
    Atomic,
    /// Slices and views.
    Global,
    /// Of these, what the kernel may write.
    GlobalMut,
    /// Copies that have begun.
    Pending,
    /// A group of lanes; `Part::Same` is the value that they trade.
    Group,
}

/// A method.
pub(super) struct Method {
    pub on: On,
    pub name: &'static str,
    pub intrinsic: Intrinsic,
    pub parameters: &'static [Part],
    pub returns: Part,
}

const fn m(on: On, name: &'static str, intrinsic: Intrinsic, parameters: &'static [Part], returns: Part) -> Method {
    Method { on, name, intrinsic, parameters, returns }
}

use ir::{Atomic as A, Binary as B, Bits as I, Unary as U};
const ATOMIC: &[Part] = &[Part::Indices, Part::Element];
const ONE: &[Part] = &[Part::Same];
const TWO: &[Part] = &[Part::Same, Part::Same];
const U32: &[Part] = &[Part::U32];
const FLOAT: &[Part] = &[Part::F32];
const WORDS: &[Part] = &[Part::U32, Part::U32, Part::U32];
const NONE: &[Part] = &[];
/// A value and a closure.
const REDUCE: &[Part] = &[Part::Same, Part::Combine];
/// A value, what stands before the first, and a closure.
const SCAN: &[Part] = &[Part::Same, Part::Same, Part::Combine];
/// A value, and which other lane's or thread's.
const FROM: &[Part] = &[Part::Same, Part::Usize];

/// The methods of the language's types.
pub(super) const METHODS: &[Method] = &[
    m(On::Float, "mul_add", Intrinsic::MulAdd, &[Part::Same, Part::Same], Part::Same),
    m(On::Float, "abs", Intrinsic::Unary(U::Abs), NONE, Part::Same),
    m(On::Float, "sqrt", Intrinsic::Unary(U::Sqrt), NONE, Part::Same),
    m(On::Float, "floor", Intrinsic::Unary(U::Floor), NONE, Part::Same),
    m(On::Float, "ceil", Intrinsic::Unary(U::Ceil), NONE, Part::Same),
    m(On::Float, "trunc", Intrinsic::Unary(U::Trunc), NONE, Part::Same),
    m(On::Float, "round_ties_even", Intrinsic::Unary(U::RoundEven), NONE, Part::Same),
    m(On::Float, "min", Intrinsic::Binary(B::Min), ONE, Part::Same),
    m(On::Float, "max", Intrinsic::Binary(B::Max), ONE, Part::Same),
    m(On::Float, "to_bits", Intrinsic::Bitcast, NONE, Part::Bits),
    m(On::Half, "to_f32", Intrinsic::Convert, NONE, Part::F32),
    m(On::Half, "to_bits", Intrinsic::Bitcast, NONE, Part::Bits),
    m(On::Half, "mul_add", Intrinsic::MulAdd, &[Part::Same, Part::Same], Part::Same),
    m(On::Half, "abs", Intrinsic::Unary(U::Abs), NONE, Part::Same),
    m(On::Half, "min", Intrinsic::Binary(B::Min), ONE, Part::Same),
    m(On::Half, "max", Intrinsic::Binary(B::Max), ONE, Part::Same),
    m(On::Integer, "min", Intrinsic::Binary(B::Min), ONE, Part::Same),
    m(On::Integer, "max", Intrinsic::Binary(B::Max), ONE, Part::Same),
    m(On::Integer, "wrapping_add", Intrinsic::Binary(B::WrappingAdd), ONE, Part::Same),
    m(On::Integer, "wrapping_sub", Intrinsic::Binary(B::WrappingSub), ONE, Part::Same),
    m(On::Integer, "wrapping_mul", Intrinsic::Binary(B::WrappingMul), ONE, Part::Same),
    m(On::Signed, "abs", Intrinsic::Unary(U::Abs), NONE, Part::Same),
    m(On::Unsigned, "div_ceil", Intrinsic::DivCeil, ONE, Part::Same),
    m(On::Unsigned, "next_multiple_of", Intrinsic::NextMultipleOf, ONE, Part::Same),
    m(On::Unsigned, "saturating_sub", Intrinsic::SaturatingSub, ONE, Part::Same),
    m(On::Float, "is_nan", Intrinsic::Method(M::IsNan), NONE, Part::Bool),
    m(On::Float, "is_finite", Intrinsic::Method(M::IsFinite), NONE, Part::Bool),
    m(On::Float, "is_infinite", Intrinsic::Method(M::IsInfinite), NONE, Part::Bool),
    m(On::Float, "is_sign_negative", Intrinsic::Method(M::IsSignNegative), NONE, Part::Bool),
    m(On::Float, "is_sign_positive", Intrinsic::Method(M::IsSignPositive), NONE, Part::Bool),
    m(On::Float, "recip", Intrinsic::Method(M::Recip), NONE, Part::Same),
    m(On::Float, "fract", Intrinsic::Method(M::Fract), NONE, Part::Same),
    m(On::Float, "round", Intrinsic::Method(M::Round), NONE, Part::Same),
    m(On::Float, "signum", Intrinsic::Method(M::Signum), NONE, Part::Same),
    m(On::Float, "copysign", Intrinsic::Method(M::Copysign), ONE, Part::Same),
    m(On::Float, "clamp", Intrinsic::Method(M::Clamp), TWO, Part::Same),
    m(On::Integer, "clamp", Intrinsic::Method(M::Clamp), TWO, Part::Same),
    m(On::Integer, "count_ones", Intrinsic::Method(M::CountOnes), NONE, Part::U32),
    m(On::Integer, "count_zeros", Intrinsic::Method(M::CountZeros), NONE, Part::U32),
    m(On::Integer, "leading_zeros", Intrinsic::Method(M::LeadingZeros), NONE, Part::U32),
    m(On::Integer, "leading_ones", Intrinsic::Method(M::LeadingOnes), NONE, Part::U32),
    m(On::Integer, "trailing_zeros", Intrinsic::Method(M::TrailingZeros), NONE, Part::U32),
    m(On::Integer, "trailing_ones", Intrinsic::Method(M::TrailingOnes), NONE, Part::U32),
    m(On::Integer, "reverse_bits", Intrinsic::Method(M::ReverseBits), NONE, Part::Same),
    m(On::Integer, "swap_bytes", Intrinsic::Method(M::SwapBytes), NONE, Part::Same),
    m(On::Integer, "rotate_left", Intrinsic::Method(M::RotateLeft), U32, Part::Same),
    m(On::Integer, "rotate_right", Intrinsic::Method(M::RotateRight), U32, Part::Same),
    m(On::Integer, "abs_diff", Intrinsic::Method(M::AbsDiff), ONE, Part::Unsigned),
    m(On::Integer, "pow", Intrinsic::Method(M::Pow), U32, Part::Same),
    m(On::Integer, "wrapping_neg", Intrinsic::Method(M::WrappingNeg), NONE, Part::Same),
    m(On::Integer, "div_euclid", Intrinsic::Method(M::DivEuclid), ONE, Part::Same),
    m(On::Integer, "rem_euclid", Intrinsic::Method(M::RemEuclid), ONE, Part::Same),
    m(On::Signed, "signum", Intrinsic::Method(M::Signum), NONE, Part::Same),
    m(On::Signed, "is_negative", Intrinsic::Method(M::IsNegative), NONE, Part::Bool),
    m(On::Signed, "is_positive", Intrinsic::Method(M::IsPositive), NONE, Part::Bool),
    m(On::Signed, "wrapping_abs", Intrinsic::Method(M::WrappingAbs), NONE, Part::Same),
    m(On::Signed, "unsigned_abs", Intrinsic::Method(M::UnsignedAbs), NONE, Part::Unsigned),
    m(On::Unsigned, "saturating_add", Intrinsic::Method(M::SaturatingAdd), ONE, Part::Same),
    m(On::Unsigned, "is_power_of_two", Intrinsic::Method(M::IsPowerOfTwo), NONE, Part::Bool),
    m(On::Unsigned, "next_power_of_two", Intrinsic::Method(M::NextPowerOfTwo), NONE, Part::Same),
    m(On::Integer, "checked_add", Intrinsic::Overflow(O::Checked, B::Add), ONE, Part::MaybeSame),
    m(On::Integer, "checked_sub", Intrinsic::Overflow(O::Checked, B::Sub), ONE, Part::MaybeSame),
    m(On::Integer, "checked_mul", Intrinsic::Overflow(O::Checked, B::Mul), ONE, Part::MaybeSame),
    m(On::Integer, "checked_div", Intrinsic::Overflow(O::Checked, B::Div), ONE, Part::MaybeSame),
    m(On::Integer, "checked_rem", Intrinsic::Overflow(O::Checked, B::Rem), ONE, Part::MaybeSame),
    m(On::Integer, "overflowing_add", Intrinsic::Overflow(O::Overflowing, B::Add), ONE, Part::Overflowing),
    m(On::Integer, "overflowing_sub", Intrinsic::Overflow(O::Overflowing, B::Sub), ONE, Part::Overflowing),
    m(On::Integer, "overflowing_mul", Intrinsic::Overflow(O::Overflowing, B::Mul), ONE, Part::Overflowing),
    m(On::Integer, "saturating_mul", Intrinsic::Overflow(O::Saturating, B::Mul), ONE, Part::Same),
    m(On::Signed, "saturating_add", Intrinsic::Overflow(O::Saturating, B::Add), ONE, Part::Same),
    m(On::Signed, "saturating_sub", Intrinsic::Overflow(O::Saturating, B::Sub), ONE, Part::Same),
    m(On::Integer, "ilog2", Intrinsic::Method(M::Ilog2), NONE, Part::U32),
    m(On::Unsigned, "is_multiple_of", Intrinsic::Method(M::IsMultipleOf), ONE, Part::Bool),
    m(On::Integer, "wrapping_shl", Intrinsic::Binary(B::WrappingShl), U32, Part::Same),
    m(On::Integer, "wrapping_shr", Intrinsic::Binary(B::WrappingShr), U32, Part::Same),
    m(On::Group, "lane", Intrinsic::GroupLane, NONE, Part::Usize),
    m(On::Group, "index", Intrinsic::GroupIndex, NONE, Part::Usize),
    m(On::Group, "sum", Intrinsic::OfGroup(C::Number(Reduction::Sum)), ONE, Part::Same),
    m(On::Group, "max", Intrinsic::OfGroup(C::Number(Reduction::Max)), ONE, Part::Same),
    m(On::Group, "min", Intrinsic::OfGroup(C::Number(Reduction::Min)), ONE, Part::Same),
    m(On::Group, "reduce", Intrinsic::OfGroup(C::Reduce), REDUCE, Part::Same),
    m(On::Group, "scan", Intrinsic::OfGroup(C::Scan), REDUCE, Part::Same),
    m(On::Group, "exclusive_scan", Intrinsic::OfGroup(C::ExclusiveScan), SCAN, Part::Same),
    m(On::Group, "shuffle", Intrinsic::OfGroup(C::Shuffle(ir::Shuffle::Index)), FROM, Part::Same),
    m(On::Group, "shuffle_xor", Intrinsic::OfGroup(C::Shuffle(ir::Shuffle::Xor)), FROM, Part::Same),
    m(On::Group, "shuffle_up", Intrinsic::OfGroup(C::Shuffle(ir::Shuffle::Up)), FROM, Part::MaybeSame),
    m(On::Group, "shuffle_down", Intrinsic::OfGroup(C::Shuffle(ir::Shuffle::Down)), FROM, Part::MaybeSame),
    m(On::Group, "broadcast", Intrinsic::OfGroup(C::Broadcast), FROM, Part::Same),
    m(On::Group, "ballot", Intrinsic::OfGroup(C::Vote(ir::Vote::Ballot)), &[Part::Bool], Part::U32),
    m(On::Group, "all", Intrinsic::OfGroup(C::Vote(ir::Vote::All)), &[Part::Bool], Part::Bool),
    m(On::Group, "any", Intrinsic::OfGroup(C::Vote(ir::Vote::Any)), &[Part::Bool], Part::Bool),
    m(On::Slice, "len", Intrinsic::Extent(Some(0)), NONE, Part::Usize),
    m(On::Slice, "is_empty", Intrinsic::IsEmpty, NONE, Part::Bool),
    m(On::Slice, "aligned", Intrinsic::Aligned, &[Part::Usize], Part::Bool),
    m(On::Slice, "get", Intrinsic::Get, &[Part::Usize], Part::Found),
    m(On::View, "get", Intrinsic::Get, &[Part::Indices], Part::Found),
    m(On::View1, "len", Intrinsic::Extent(Some(0)), NONE, Part::Usize),
    m(On::View2, "rows", Intrinsic::Extent(Some(0)), NONE, Part::Usize),
    m(On::View2, "cols", Intrinsic::Extent(Some(1)), NONE, Part::Usize),
    m(On::View, "dim", Intrinsic::Extent(None), &[Part::Usize], Part::Usize),
    m(On::View, "is_empty", Intrinsic::IsEmpty, NONE, Part::Bool),
    m(On::View, "stride", Intrinsic::Stride, &[Part::Usize], Part::Usize),
    m(On::Contiguous, "strided", Intrinsic::ViewStrided, NONE, Part::Strided),
    m(On::Strided2, "transposed", Intrinsic::ViewTransposed, NONE, Part::Same),
    m(On::Contiguous, "aligned", Intrinsic::Aligned, &[Part::Usize], Part::Bool),
    m(On::View, "offset", Intrinsic::ViewOffset, &[Part::Indices], Part::Same),
    m(On::View, "streaming", Intrinsic::ViewStreaming, NONE, Part::Same),
    m(On::View, "coherent", Intrinsic::ViewCoherent, NONE, Part::Same),
    m(On::ViewDeep, "at", Intrinsic::ViewAt, &[Part::Usize], Part::Inner),
    m(On::Shared, "dim", Intrinsic::Extent(None), &[Part::Usize], Part::Usize),
    m(On::SharedDeep, "at", Intrinsic::SharedAt, &[Part::Usize], Part::Inner),
    m(On::Shared, "copy_from", Intrinsic::SharedCopyFrom, &[Part::View], Part::Unit),
    m(On::Shared, "copy_async", Intrinsic::CopyAsync, &[Part::View], Part::Pending),
    m(On::Shared, "cp_async", Intrinsic::CpAsync, &[Part::View], Part::Unit),
    m(On::Pending, "and", Intrinsic::PendingAnd, &[Part::Same], Part::Pending),
    m(On::Pending, "wait", Intrinsic::PendingWait, NONE, Part::Unit),
    m(On::Shared, "fill", Intrinsic::SharedFill, &[Part::Element], Part::Unit),
    m(On::Shared, "get", Intrinsic::Get, &[Part::Indices], Part::Found),
    m(On::Shared, "load_or", Intrinsic::LoadOr, &[Part::Indices, Part::Element], Part::Elements),
    m(On::Shared, "store_in", Intrinsic::StoreIn, &[Part::Indices, Part::Elements], Part::Unit),
    // What follows moves several elements at once, which views of any strides do not have side by side.
    m(On::Memory, "load", Intrinsic::Load, &[Part::Indices], Part::Elements),
    m(On::Global, "load_or", Intrinsic::LoadOr, &[Part::Indices, Part::Element], Part::Elements),
    m(On::Writable, "store", Intrinsic::Store, &[Part::Indices, Part::Elements], Part::Unit),
    m(On::GlobalMut, "store_in", Intrinsic::StoreIn, &[Part::Indices, Part::Elements], Part::Unit),
    m(On::Atomic, "fetch_add", Intrinsic::Atomic(A::Add), ATOMIC, Part::Element),
    m(On::Atomic, "fetch_min", Intrinsic::Atomic(A::Min), ATOMIC, Part::Element),
    m(On::Atomic, "fetch_max", Intrinsic::Atomic(A::Max), ATOMIC, Part::Element),
    m(On::Atomic, "fetch_and", Intrinsic::Atomic(A::And), ATOMIC, Part::Element),
    m(On::Atomic, "fetch_or", Intrinsic::Atomic(A::Or), ATOMIC, Part::Element),
    m(On::Atomic, "fetch_xor", Intrinsic::Atomic(A::Xor), ATOMIC, Part::Element),
    m(On::Atomic, "exchange", Intrinsic::Atomic(A::Exchange), ATOMIC, Part::Element),
    m(
        On::Atomic,
        "compare_exchange",
        Intrinsic::Atomic(A::CompareExchange),
        &[Part::Indices, Part::Element, Part::Element],
        Part::Element,
    ),
];

/// A method of Rust's floats that Rust does not round correctly.
struct Inexact {
    method: &'static str,
    /// The function of exact operations to write for it, where there is one.
    math: Option<Exact>,
    /// The hardware's approximation.
    fast: Option<&'static str>,
}

/// A function of `math`.
#[derive(Clone, Copy)]
struct Exact {
    name: &'static str,
    /// Whether `math::f64` has it too.
    double: bool,
}

/// A method with functions of the same name: of `math` for `f32`, of `math::f64`, and of `fast`.
const fn named(method: &'static str, double: bool, fast: bool) -> Inexact {
    let math = Some(Exact { name: method, double });
    Inexact { method, math, fast: if fast { Some(method) } else { None } }
}

const fn power(method: &'static str) -> Inexact {
    Inexact { method, math: Some(Exact { name: "pow", double: true }), fast: None }
}

const fn without(method: &'static str) -> Inexact {
    Inexact { method, math: None, fast: None }
}

/// The methods whose bits Rust leaves to the host's library. They are refused, with the function to write: were they
/// compiled as `math::` functions, the same Rust on the host (a device function that is called there, or a kernel as rustc
/// compiled it) would give other bits than on the device, and an inherent method cannot be replaced.
const INEXACT: &[Inexact] = &[
    named("exp", true, true),
    named("exp2", true, true),
    named("exp_m1", true, false),
    named("ln", true, true),
    named("ln_1p", false, false),
    named("log2", true, true),
    named("log10", false, false),
    without("log"),
    power("powf"),
    power("powi"),
    named("cbrt", false, false),
    named("hypot", false, false),
    named("sin", true, true),
    named("cos", true, true),
    named("sin_cos", true, false),
    named("tan", false, false),
    named("asin", false, false),
    named("acos", false, false),
    named("atan", false, false),
    named("atan2", false, false),
    named("sinh", false, false),
    named("cosh", false, false),
    named("tanh", true, true),
    named("asinh", false, false),
    named("acosh", false, false),
    named("atanh", false, false),
];

/// Why a number of type `scalar` has no method `name` in a kernel, and what to write for it; `None` where it is no float, or Rust has
/// no such method either.
pub(super) fn inexact(scalar: Scalar, name: &str) -> Option<String> {
    let Inexact { method, math, fast } = INEXACT.iter().find(|x| scalar.is_float() && x.method == name)?;
    let module = match (scalar, math) {
        (Scalar::F64, Some(Exact { double, .. })) => double.then_some("math::f64"),
        _ => Some("math"),
    };
    let math = module.zip(*math).map(|(m, f)| format!("`{m}::{}` (bit-exact)", f.name));
    let fast = fast.filter(|_| scalar != Scalar::F64).map(|f| format!("`fast::{f}` (hardware approximation)"));
    let ways: Vec<String> = math.into_iter().chain(fast).collect();
    let way = match ways.is_empty() {
        true => "write your own device function".to_string(),
        false => format!("use {}", ways.join(" or ")),
    };
    Some(format!("`{scalar}::{method}` is not available in kernels (host-dependent result); {way}"))
}

/// Dimensions of an array in shared memory at most.
pub(super) const MOST_SHARED: u32 = 5;

/// What a constructor of `Shared` takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    /// As many `usize` as the array has dimensions.
    Shape,
    /// Elements from one row to the next.
    Pitch,
    /// Another array.
    Under,
}

/// A constructor of `Shared`.
pub(super) struct Constructor {
    pub name: &'static str,
    pub written: &'static str,
    pub intrinsic: Intrinsic,
    pub parameters: &'static [Making],
}

const fn s(
    name: &'static str,
    written: &'static str,
    intrinsic: Intrinsic,
    parameters: &'static [Making],
) -> Constructor {
    Constructor { name, written, intrinsic, parameters }
}

/// The constructors of `Shared`.
pub(super) const SHARED: &[Constructor] = &[
    s("new", "new(shape)", Intrinsic::SharedNew, &[Making::Shape]),
    s("padded", "padded(shape)", Intrinsic::SharedPadded, &[Making::Shape]),
    s("swizzled", "swizzled(shape)", Intrinsic::SharedSwizzled, &[Making::Shape]),
    s("dynamic", "dynamic(shape)", Intrinsic::SharedDynamic, &[Making::Shape]),
    s("with_pitch", "with_pitch(shape, pitch)", Intrinsic::SharedWithPitch, &[Making::Shape, Making::Pitch]),
    s("over", "over(shared, shape)", Intrinsic::SharedOver, &[Making::Under, Making::Shape]),
];

/// Whether the language owns a called path: it is not a device function, and nothing is handed over for it.
pub(crate) fn owns(path: &Path) -> bool {
    if path.global {
        return false;
    }
    let first = path.segments[0].name.to_string();
    match path.segments.len() {
        1 => {
            matches!(first.as_str(), "unroll" | "unroll_by" | "rolled" | "Some" | "None" | "size_of")
                || dot(&first).is_some()
        }
        2 => {
            matches!(
                first.as_str(),
                "thread"
                    | "block"
                    | "grid"
                    | "warp"
                    | "device"
                    | "fence"
                    | "pipeline"
                    | "fast"
                    | "int"
                    | "target"
                    | "Float16"
                    | "Shared"
                    | "Option"
                    | "Pending"
            ) || Scalar::from_name(&first).is_some()
        }
        _ => is_from_fn(path) || is_size_of(path),
    }
}

/// The dot product that a function is.
pub(super) fn dot(name: &str) -> Option<ir::Bits> {
    Some(match name {
        "dp4a" => I::Dot4,
        "dp2a_lo" => I::Dot2 { high: false },
        "dp2a_hi" => I::Dot2 { high: true },
        _ => return None,
    })
}

/// The layout that `Float16<4, 7>` or `Float16<4, 7, Finite>` is, or what is wrong with it; `None` of another name.
pub(crate) fn float16(segment: &Segment) -> Option<Result<Format, String>> {
    if segment.name != "Float16" {
        return None;
    }
    let policy = |path: &Path| match path.segments.last()?.name.to_string().as_str() {
        "Ieee" => Some(Policy::Ieee),
        "Finite" => Some(Policy::Finite),
        "Saturating" => Some(Policy::Saturating),
        _ => None,
    };
    let format = match segment.arguments.as_slice() {
        [Argument::Number(exponent, _), Argument::Number(bias, _), rest @ ..] => {
            let policy = match rest {
                [] => Some(Policy::Ieee),
                [Argument::Type(Type { kind: TypeKind::Path(path), .. })] => policy(path),
                _ => None,
            };
            let bias = i32::try_from(*bias).ok();
            policy.zip(bias).and_then(|(policy, bias)| Format::new(*exponent, bias, policy))
        }
        _ => None,
    };
    Some(format.ok_or_else(|| {
        "`Float16` takes the number of exponent bits (2 to 10), the bias (up to 32767), and optionally `Ieee`, `Finite` or `Saturating`: `Float16<4, 7, Finite>`".to_string()
    }))
}

/// Whether a path is `std::array::from_fn`.
pub(super) fn is_from_fn(path: &Path) -> bool {
    matches!(path.name().as_str(), "std::array::from_fn" | "core::array::from_fn")
}

/// Whether a path is `size_of`, of Rust's own prelude.
pub(super) fn is_size_of(path: &Path) -> bool {
    matches!(path.name().as_str(), "size_of" | "std::mem::size_of" | "core::mem::size_of")
}

/// Whether a function of the language takes a closure, so that a function's path may be its argument.
pub(crate) fn combines(path: &Path) -> bool {
    let name = path.name();
    is_from_fn(path) || FUNCTIONS.iter().any(|f| f.path == name && f.parameters.contains(&Part::Combine))
}

/// Whether the language owns a path in the place of a type.
pub(crate) fn owns_type(path: &Path) -> bool {
    let last = path.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
    matches!(
        last.as_str(),
        "Float16" | "View" | "ViewMut" | "Strided" | "StridedMut" | "Shared" | "Option" | "Group" | "Pending" | "Self"
    )
}

/// Whether the language owns a path in the place of a bound. Of Rust's own traits those that every value has, and operators,
/// say nothing to the checker.
pub(crate) fn owns_bound(path: &Path) -> bool {
    const RUST: &[&str] =
        &["Add", "Debug", "DeviceFn", "Div", "Fn", "Mul", "Neg", "PartialEq", "PartialOrd", "Rem", "Sub"];
    let last = path.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
    Builtin::from_name(&last).is_some() || RUST.contains(&last.as_str())
}

/// Whether a method of that name takes a closure, so that a function's path may be its argument.
pub(crate) fn takes_function(method: &str) -> bool {
    matches!(method, "map" | "copy_async_map" | "map_or" | "and_then" | "is_some_and")
        || METHODS.iter().any(|m| m.name == method && m.parameters.contains(&Part::Combine))
}

/// The value of an associated constant such as `f32::INFINITY` or `core::f32::consts::PI`: its type and bits.
pub(crate) fn constant(path: &str) -> Option<(Scalar, u64)> {
    let path = path.strip_prefix("core::").or_else(|| path.strip_prefix("std::")).unwrap_or(path);
    let (ty, name) = path.split_once("::")?;
    let ty = Scalar::from_name(ty)?;
    let bits = match ty {
        Scalar::F32 => u64::from(float32(name)?.to_bits()),
        Scalar::F64 => float64(name)?.to_bits(),
        Scalar::F16 => half(name, [0x3C00, 0x7C00, 0x7BFF, 0x0400, 0x1400, 0x7E00])?,
        Scalar::Bf16 => half(name, [0x3F80, 0x7F80, 0x7F7F, 0x0080, 0x3C00, 0x7FC0])?,
        Scalar::Bool | Scalar::Usize => return None,
        integer => {
            let max = if integer.is_signed() { integer.mask() >> 1 } else { integer.mask() };
            match name {
                "MAX" => max,
                "MIN" => integer.mask() & !max,
                "BITS" => return Some((Scalar::U32, u64::from(integer.bits()))),
                _ => return None,
            }
        }
    };
    Some((ty, bits))
}

/// A constant of a float of 16 bits, of which these are the codes that the format decides.
fn half(name: &str, [one, infinity, max, min_positive, epsilon, nan]: [u16; 6]) -> Option<u64> {
    const NEGATIVE: u16 = 0x8000;
    Some(u64::from(match name {
        "ZERO" => 0,
        "NEG_ZERO" => NEGATIVE,
        "ONE" => one,
        "NEG_ONE" => NEGATIVE | one,
        "INFINITY" => infinity,
        "NEG_INFINITY" => NEGATIVE | infinity,
        "MAX" => max,
        "MIN" => NEGATIVE | max,
        "MIN_POSITIVE" => min_positive,
        "EPSILON" => epsilon,
        "NAN" => nan,
        _ => return None,
    }))
}

macro_rules! float_constants {
    ($name:ident, $t:ident) => {
        fn $name(name: &str) -> Option<$t> {
            use core::$t::consts::*;
            Some(match name {
                "INFINITY" => $t::INFINITY,
                "NEG_INFINITY" => $t::NEG_INFINITY,
                "NAN" => $t::NAN,
                "MAX" => $t::MAX,
                "MIN" => $t::MIN,
                "MIN_POSITIVE" => $t::MIN_POSITIVE,
                "EPSILON" => $t::EPSILON,
                "consts::PI" => PI,
                "consts::TAU" => TAU,
                "consts::E" => E,
                "consts::LN_2" => LN_2,
                "consts::LN_10" => LN_10,
                "consts::LOG2_E" => LOG2_E,
                "consts::LOG2_10" => LOG2_10,
                "consts::LOG10_E" => LOG10_E,
                "consts::LOG10_2" => LOG10_2,
                "consts::SQRT_2" => SQRT_2,
                "consts::FRAC_1_SQRT_2" => FRAC_1_SQRT_2,
                "consts::FRAC_1_PI" => FRAC_1_PI,
                "consts::FRAC_2_PI" => FRAC_2_PI,
                "consts::FRAC_2_SQRT_PI" => FRAC_2_SQRT_PI,
                "consts::FRAC_PI_2" => FRAC_PI_2,
                "consts::FRAC_PI_4" => FRAC_PI_4,
                _ => return None,
            })
        }
    };
}
float_constants!(float32, f32);
float_constants!(float64, f64);

impl On {
    /// Whether a receiver of scalar type `s` is meant.
    pub(super) fn scalar(self, s: Scalar) -> bool {
        match self {
            On::Float => s.is_float(),
            On::Half => s.is_half(),
            On::Integer => s.is_integer(),
            On::Signed => s.is_signed(),
            On::Unsigned => s.is_integer() && !s.is_signed(),
            _ => false,
        }
    }

    /// Whether a slice is meant that the kernel may write, or may not.
    pub(super) fn slice(self, mutable: bool) -> bool {
        match self {
            On::Slice | On::Memory | On::Global => true,
            On::Writable | On::GlobalMut | On::Atomic => mutable,
            _ => false,
        }
    }

    /// Whether a view of that rank is meant, which the kernel may write, or may not, and whose last stride may be any.
    pub(super) fn view(self, rank: u32, mutable: bool, strided: bool) -> bool {
        match self {
            On::Memory | On::Global | On::Contiguous => !strided,
            On::Writable | On::GlobalMut => mutable && !strided,
            On::Atomic => mutable,
            On::Strided2 => strided && rank == 2,
            On::View => true,
            On::View1 => rank == 1,
            On::View2 => rank == 2,
            On::ViewDeep => rank >= 2,
            _ => false,
        }
    }

    /// Whether a shared array of that rank is meant.
    pub(super) fn shared(self, rank: u32) -> bool {
        match self {
            On::Shared | On::Memory | On::Writable | On::Atomic => true,
            On::SharedDeep => rank >= 2,
            On::View1 => rank == 1,
            On::View2 => rank == 2,
            _ => false,
        }
    }
}
