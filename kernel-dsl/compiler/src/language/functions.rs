//! The functions of the prelude.

use super::SignatureType as Type;
use super::signature::{
    ONE_F32, ONE_VALUE, THREE_U32, TWO_VALUES, TWO_VALUES_AND_FLAG, VALUE_AND_FN, VALUE_AND_LANE, VALUE_START_AND_FN,
};
use crate::hir::collective::Reduction;
use crate::hir::{Collective, Fast, Intrinsic, Wide};
use crate::{Approximation, Scalar, ir};
use std::fmt;

/// A function of the prelude.
pub struct PreludeFunction {
    /// The path below `kernel_dsl::prelude`.
    pub path: &'static str,
    /// The computed operation.
    pub intrinsic: Intrinsic,
    /// The types of the parameters.
    pub parameters: &'static [Type],
    /// The type of the result.
    pub returns: Type,
    /// The integers that the type parameter can be; `None` if the function does not require
    /// integers.
    pub integers: Option<Integers>,
}

/// The integers that an operation supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integers {
    /// `i32` and `u32`.
    Of32Bits,
    /// `i32`, `u32`, `i64` and `u64`.
    Of32And64Bits,
    /// `u32` and `u64`.
    Unsigned,
}

impl Integers {
    /// Returns whether a type is one of the integers.
    pub fn contains(self, scalar: Scalar) -> bool {
        match self {
            Integers::Of32Bits => matches!(scalar, Scalar::I32 | Scalar::U32),
            Integers::Of32And64Bits => matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64),
            Integers::Unsigned => matches!(scalar, Scalar::U32 | Scalar::U64),
        }
    }
}

impl fmt::Display for Integers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Integers::Of32Bits => "integers of 32 bits",
            Integers::Of32And64Bits => "integers of 32 and 64 bits",
            Integers::Unsigned => "`u32` and `u64`",
        })
    }
}

const fn function(
    path: &'static str,
    intrinsic: Intrinsic,
    parameters: &'static [Type],
    returns: Type,
) -> PreludeFunction {
    PreludeFunction { path, intrinsic, parameters, returns, integers: None }
}

const fn of(integers: Integers, function: PreludeFunction) -> PreludeFunction {
    PreludeFunction { integers: Some(integers), ..function }
}

/// The functions of the prelude, except `unroll`, `unroll_by` and `rolled`, which belong to `for`,
/// and except `warp::group` and `pipeline::wait`, whose argument is a constant.
pub const FUNCTIONS: &[PreludeFunction] = &[
    function("Pending::none", Intrinsic::PendingNone, &[], Type::Pending),
    function("thread::x", Intrinsic::Thread(0), &[], Type::Usize),
    function("thread::y", Intrinsic::Thread(1), &[], Type::Usize),
    function("thread::z", Intrinsic::Thread(2), &[], Type::Usize),
    function("thread::index", Intrinsic::ThreadIndex, &[], Type::Usize),
    function("thread::local", Intrinsic::ThreadLocal, &[], Type::StatedArray),
    function("block::x", Intrinsic::Block(0), &[], Type::Usize),
    function("block::y", Intrinsic::Block(1), &[], Type::Usize),
    function("block::z", Intrinsic::Block(2), &[], Type::Usize),
    function("block::dim_x", Intrinsic::BlockDim(0), &[], Type::Usize),
    function("block::dim_y", Intrinsic::BlockDim(1), &[], Type::Usize),
    function("block::dim_z", Intrinsic::BlockDim(2), &[], Type::Usize),
    function("block::threads", Intrinsic::BlockThreads, &[], Type::Usize),
    function("block::sync", Intrinsic::BlockSync, &[], Type::Unit),
    function("block::sum", Intrinsic::OfBlock(Collective::Number(Reduction::Sum)), ONE_VALUE, Type::This),
    function("block::max", Intrinsic::OfBlock(Collective::Number(Reduction::Max)), ONE_VALUE, Type::This),
    function("block::min", Intrinsic::OfBlock(Collective::Number(Reduction::Min)), ONE_VALUE, Type::This),
    function("block::reduce", Intrinsic::OfBlock(Collective::Reduce), VALUE_AND_FN, Type::This),
    function("block::scan", Intrinsic::OfBlock(Collective::Scan), VALUE_START_AND_FN, Type::PairOfThis),
    function("block::broadcast", Intrinsic::OfBlock(Collective::Broadcast), VALUE_AND_LANE, Type::This),
    function("block::all", Intrinsic::OfBlock(Collective::Vote(ir::Vote::All)), &[Type::Bool], Type::Bool),
    function("block::any", Intrinsic::OfBlock(Collective::Vote(ir::Vote::Any)), &[Type::Bool], Type::Bool),
    function("block::count", Intrinsic::OfBlock(Collective::Count), &[Type::Bool], Type::Usize),
    function("warp::count", Intrinsic::WarpCount, &[], Type::Usize),
    function("grid::dim_x", Intrinsic::GridDim(0), &[], Type::Usize),
    function("grid::dim_y", Intrinsic::GridDim(1), &[], Type::Usize),
    function("grid::dim_z", Intrinsic::GridDim(2), &[], Type::Usize),
    function("grid::index", Intrinsic::GridIndex, &[], Type::Usize),
    function("device::multiprocessors", Intrinsic::Multiprocessors, &[], Type::Usize),
    function("device::waves", Intrinsic::Waves, &[Type::Usize, Type::Usize], Type::Usize),
    function("grid::sync", Intrinsic::GridSync, &[], Type::Unit),
    function("grid::threads", Intrinsic::GridThreads, &[], Type::Usize),
    function("warp::lane", Intrinsic::WarpLane, &[], Type::Usize),
    function("warp::index", Intrinsic::WarpIndex, &[], Type::Usize),
    function("warp::sync", Intrinsic::WarpSync, &[], Type::Unit),
    function("warp::sum", Intrinsic::OfWarp(Collective::Number(Reduction::Sum)), ONE_VALUE, Type::This),
    function("warp::max", Intrinsic::OfWarp(Collective::Number(Reduction::Max)), ONE_VALUE, Type::This),
    function("warp::min", Intrinsic::OfWarp(Collective::Number(Reduction::Min)), ONE_VALUE, Type::This),
    function("warp::reduce", Intrinsic::OfWarp(Collective::Reduce), VALUE_AND_FN, Type::This),
    function("warp::scan", Intrinsic::OfWarp(Collective::Scan), VALUE_AND_FN, Type::This),
    function("warp::exclusive_scan", Intrinsic::OfWarp(Collective::ExclusiveScan), VALUE_START_AND_FN, Type::This),
    function("warp::shuffle", Intrinsic::OfWarp(Collective::Shuffle(ir::Shuffle::Index)), VALUE_AND_LANE, Type::This),
    function("warp::shuffle_xor", Intrinsic::OfWarp(Collective::Shuffle(ir::Shuffle::Xor)), VALUE_AND_LANE, Type::This),
    function(
        "warp::shuffle_up",
        Intrinsic::OfWarp(Collective::Shuffle(ir::Shuffle::Up)),
        VALUE_AND_LANE,
        Type::OptionThis,
    ),
    function(
        "warp::shuffle_down",
        Intrinsic::OfWarp(Collective::Shuffle(ir::Shuffle::Down)),
        VALUE_AND_LANE,
        Type::OptionThis,
    ),
    function("warp::broadcast", Intrinsic::OfWarp(Collective::Broadcast), VALUE_AND_LANE, Type::This),
    function("warp::match_any", Intrinsic::OfWarp(Collective::Match), ONE_VALUE, Type::U32),
    function("warp::ballot", Intrinsic::OfWarp(Collective::Vote(ir::Vote::Ballot)), &[Type::Bool], Type::U32),
    function("warp::all", Intrinsic::OfWarp(Collective::Vote(ir::Vote::All)), &[Type::Bool], Type::Bool),
    function("warp::any", Intrinsic::OfWarp(Collective::Vote(ir::Vote::Any)), &[Type::Bool], Type::Bool),
    function("pipeline::commit", Intrinsic::PipelineCommit, &[], Type::Unit),
    function("fast::exp2", Intrinsic::Fast(Fast::One(Approximation::Exponential)), ONE_F32, Type::F32),
    function("fast::exp", Intrinsic::Fast(Fast::Exp), ONE_F32, Type::F32),
    function("fast::log2", Intrinsic::Fast(Fast::One(Approximation::Logarithm)), ONE_F32, Type::F32),
    function("fast::ln", Intrinsic::Fast(Fast::Ln), ONE_F32, Type::F32),
    function("fast::rcp", Intrinsic::Fast(Fast::One(Approximation::Reciprocal)), ONE_F32, Type::F32),
    function("fast::sqrt", Intrinsic::Fast(Fast::One(Approximation::SquareRoot)), ONE_F32, Type::F32),
    function("fast::rsqrt", Intrinsic::Fast(Fast::One(Approximation::ReciprocalSquareRoot)), ONE_F32, Type::F32),
    function("fast::sin", Intrinsic::Fast(Fast::One(Approximation::Sine)), ONE_F32, Type::F32),
    function("fast::cos", Intrinsic::Fast(Fast::One(Approximation::Cosine)), ONE_F32, Type::F32),
    function("fast::tanh", Intrinsic::Fast(Fast::Tanh), ONE_F32, Type::F32),
    function("fast::div", Intrinsic::Fast(Fast::Div), &[Type::F32, Type::F32], Type::F32),
    of(
        Integers::Of32And64Bits,
        function("int::mul_hi", Intrinsic::Bits(ir::Bits::MultiplyHigh), TWO_VALUES, Type::This),
    ),
    of(Integers::Unsigned, function("int::widening_mul", Intrinsic::Wide(Wide::Product), TWO_VALUES, Type::PairOfThis)),
    of(
        Integers::Unsigned,
        function("int::carrying_add", Intrinsic::Wide(Wide::Sum), TWO_VALUES_AND_FLAG, Type::ThisAndOverflow),
    ),
    of(
        Integers::Unsigned,
        function("int::borrowing_sub", Intrinsic::Wide(Wide::Difference), TWO_VALUES_AND_FLAG, Type::ThisAndOverflow),
    ),
    of(Integers::Of32Bits, function("int::mul24", Intrinsic::Bits(ir::Bits::Multiply24), TWO_VALUES, Type::This)),
    function("int::byte_perm", Intrinsic::Bits(ir::Bits::Permute), THREE_U32, Type::U32),
    function("int::funnel_shl", Intrinsic::Bits(ir::Bits::FunnelLeft), THREE_U32, Type::U32),
    function("int::funnel_shr", Intrinsic::Bits(ir::Bits::FunnelRight), THREE_U32, Type::U32),
    of(
        Integers::Of32And64Bits,
        function("int::extract", Intrinsic::Bits(ir::Bits::Extract), &[Type::This, Type::U32, Type::U32], Type::This),
    ),
    of(
        Integers::Of32And64Bits,
        function(
            "int::insert",
            Intrinsic::Bits(ir::Bits::Insert),
            &[Type::This, Type::This, Type::U32, Type::U32],
            Type::This,
        ),
    ),
    function("fence::block", Intrinsic::Fence(ir::FenceScope::Block), &[], Type::Unit),
    function("fence::grid", Intrinsic::Fence(ir::FenceScope::Grid), &[], Type::Unit),
    function("fence::system", Intrinsic::Fence(ir::FenceScope::System), &[], Type::Unit),
];

/// The modules whose functions are all built in.
pub(super) const MODULES: [&str; 9] = ["thread", "block", "grid", "warp", "device", "fence", "pipeline", "fast", "int"];

/// Returns whether a called path is built in, so that it names no device item.
pub fn owns(path: &str) -> bool {
    let segments: Vec<&str> = path.split("::").collect();
    match segments[..] {
        [name] => {
            matches!(name, "unroll" | "unroll_by" | "rolled" | "Some" | "None" | "size_of")
                || dot_product(name).is_some()
        }
        [first, _] => {
            MODULES.contains(&first)
                || matches!(first, "target" | "Float16" | "Shared" | "Option" | "Pending")
                || crate::Scalar::from_name(first).is_some()
        }
        _ => is_from_fn(path) || is_size_of(path),
    }
}

/// Returns the dot product that the function `name` computes.
pub fn dot_product(name: &str) -> Option<ir::Bits> {
    Some(match name {
        "dp4a" => ir::Bits::Dot4,
        "dp2a_lo" => ir::Bits::Dot2 { high: false },
        "dp2a_hi" => ir::Bits::Dot2 { high: true },
        _ => return None,
    })
}

/// Returns whether a path is `std::array::from_fn`.
pub fn is_from_fn(path: &str) -> bool {
    matches!(path, "std::array::from_fn" | "core::array::from_fn")
}

/// Returns whether a path is `size_of` of Rust's own prelude.
pub fn is_size_of(path: &str) -> bool {
    matches!(path, "size_of" | "std::mem::size_of" | "core::mem::size_of")
}

/// Returns whether the function takes a closure, so that its argument may be the path of a
/// function.
pub fn takes_closure(path: &str) -> bool {
    is_from_fn(path) || FUNCTIONS.iter().any(|f| f.path == path && f.parameters.contains(&Type::CombineFn))
}
