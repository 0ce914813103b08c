//! How the tables write the types of parameters and results.

/// A type in a signature, relative to the receiver of a method or to the type parameter of a
/// function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureType {
    /// `()`
    Unit,
    /// `bool`
    Bool,
    /// `u32`
    U32,
    /// `usize`
    Usize,
    /// `f32`
    F32,
    /// The receiver's type, or the function's one type parameter `T`.
    This,
    /// The function's type parameter `T`, which each call states, and which is an array.
    StatedArray,
    /// The unsigned integer with the width of `This`.
    UnsignedBits,
    /// The unsigned counterpart of an integer `This`.
    Unsigned,
    /// One `usize` for each dimension of the receiver.
    Indices,
    /// The receiver with one dimension less.
    InnerView,
    /// A `View` with the receiver's element and rank.
    View,
    /// The receiver as a view with arbitrary strides.
    Strided,
    /// An `Option` of the receiver's element; of a reference to the element if the receiver is a
    /// slice.
    OptionElement,
    /// An element of the receiver.
    Element,
    /// A token for copies in flight.
    Pending,
    /// An array of the receiver's elements; its length is the method's generic argument.
    ElementArray,
    /// A closure or function `(T, T) -> T`.
    CombineFn,
    /// `Option<T>`
    OptionThis,
    /// `(T, T)`
    PairOfThis,
    /// `(T, bool)`; the flag says whether the operation overflowed.
    ThisAndOverflow,
}

use SignatureType as Type;

/// No parameters.
pub(super) const NO_PARAMETERS: &[Type] = &[];
/// `(T)`
pub(super) const ONE_VALUE: &[Type] = &[Type::This];
/// `(T, T)`
pub(super) const TWO_VALUES: &[Type] = &[Type::This, Type::This];
/// `(T, T, bool)`
pub(super) const TWO_VALUES_AND_FLAG: &[Type] = &[Type::This, Type::This, Type::Bool];
/// `(u32)`
pub(super) const ONE_U32: &[Type] = &[Type::U32];
/// `(u32, u32, u32)`
pub(super) const THREE_U32: &[Type] = &[Type::U32, Type::U32, Type::U32];
/// `(f32)`
pub(super) const ONE_F32: &[Type] = &[Type::F32];
/// An index.
pub(super) const INDEX: &[Type] = &[Type::Indices];
/// An index and an element, as atomic operations take them.
pub(super) const INDEX_AND_ELEMENT: &[Type] = &[Type::Indices, Type::Element];
/// A value and the function that combines two.
pub(super) const VALUE_AND_FN: &[Type] = &[Type::This, Type::CombineFn];
/// A value, the start value of the scan, and the function that combines two.
pub(super) const VALUE_START_AND_FN: &[Type] = &[Type::This, Type::This, Type::CombineFn];
/// A value, and the lane or thread to read it from.
pub(super) const VALUE_AND_LANE: &[Type] = &[Type::This, Type::Usize];
