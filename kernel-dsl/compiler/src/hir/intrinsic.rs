//! What the language provides beside operators: functions of the prelude and methods of its types.

use super::{Collective, Fast, Method, OnOverflow};
use crate::ir;
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// A function or method of the language, resolved. Arguments of a method start with its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Intrinsic {
    /// `thread::{x, y, z}()`.
    Thread(u8),
    /// `block::{x, y, z}()`.
    Block(u8),
    /// `block::{dim_x, dim_y, dim_z}()`: threads of a block by axis.
    BlockDim(u8),
    /// `grid::{dim_x, dim_y, dim_z}()`: blocks of the grid by axis.
    GridDim(u8),
    /// `thread::index()`: x + dim_x · (y + dim_y · z).
    ThreadIndex,
    /// `block::threads()`.
    BlockThreads,
    /// `device::multiprocessors()`; in launch expressions.
    Multiprocessors,
    /// `device::waves(resident, blocks)`; in launch expressions.
    Waves,
    /// `grid::index()`: block::x() · block::threads() + thread::index().
    GridIndex,
    /// `grid::threads()`: grid::dim_x() · block::threads().
    GridThreads,
    /// `warp::lane()`: thread::index() mod 32.
    WarpLane,
    /// `warp::index()`: thread::index() / 32.
    WarpIndex,
    /// `block::sync()`.
    BlockSync,
    /// `warp::sync()`.
    WarpSync,
    /// `warp::sum(x)` and its kin: the warp is the group of 32 lanes.
    OfWarp(Collective),
    /// `fence::{block, grid, system}()`.
    Fence(ir::Scope),
    /// `target::SM`: the number in the name of what the instance is compiled for.
    TargetSm,
    /// `warp::count()`: block::threads() / 32.
    WarpCount,
    /// `warp::group::<W>()`.
    GroupNew,
    /// `group.lane()`: thread::index() mod W.
    GroupLane,
    /// `group.index()`: thread::index() / W.
    GroupIndex,
    /// `group.sum(x)` and its kin.
    OfGroup(Collective),
    /// `block::sum(x)` and its kin.
    OfBlock(Collective),
    /// How many elements of `block::share(shape)` a thread has at most; the argument is the shape.
    ShareCount,
    /// Whether the thread has an element of that number; the arguments are the shape and the number.
    ShareHas,
    /// The indices of the thread's element of that number; the arguments are the shape and the number.
    ShareAt,
    /// `x.len()` of a slice or view of rank 1, `x.dim(d)`, `x.rows()`, `x.cols()`. `Extent(None)` has `d` as an argument.
    Extent(Option<u8>),
    /// `x.is_empty()`.
    IsEmpty,
    /// `view.offset(at)`.
    ViewOffset,
    /// `view.at(i)`: fixes the first index.
    ViewAt,
    /// `view.stride(d)`.
    Stride,
    /// `view.strided()`.
    ViewStrided,
    /// `view.transposed()`.
    ViewTransposed,
    /// `view.streaming()`.
    ViewStreaming,
    /// `view.coherent()`.
    ViewCoherent,
    /// `x.aligned(n)`: base and strides are multiples of n elements. In launch conditions only.
    Aligned,
    /// `Shared::new(shape)`.
    SharedNew,
    /// `Shared::padded(shape)`.
    SharedPadded,
    /// `Shared::with_pitch(shape, pitch)`.
    SharedWithPitch,
    /// `Shared::swizzled(shape)`.
    SharedSwizzled,
    /// `Shared::dynamic(shape)`.
    SharedDynamic,
    /// `Shared::over(shared, shape)`.
    SharedOver,
    /// `shared.cast::<U>()`.
    SharedCast,
    /// `shared.copy_async(view)`.
    CopyAsync,
    /// `shared.copy_async_map(view, f)`.
    CopyAsyncMap,
    /// `shared.cp_async(view)`.
    CpAsync,
    /// `pipeline::commit()`.
    PipelineCommit,
    /// `pipeline::wait::<N>()`; N is the argument.
    PipelineWait,
    /// `Pending::none()`.
    PendingNone,
    /// `a.and(b)`.
    PendingAnd,
    /// `a.wait()`.
    PendingWait,
    /// `shared.at(i)`: fixes the first index.
    SharedAt,
    /// `shared.copy_from(view)`.
    SharedCopyFrom,
    /// `shared.fill(v)`.
    SharedFill,
    /// `x.load::<N>(at)`.
    Load,
    /// `x.load_or::<N>(at, other)`.
    LoadOr,
    /// `x.store(at, values)`.
    Store,
    /// `x.store_in(at, values)`.
    StoreIn,
    /// `x.fetch_add(at, value)` and its kin.
    Atomic(ir::Atomic),
    /// A method of one operand that the IR has: `abs`, `sqrt`, `floor`, `ceil`, `trunc`, `round_ties_even`, `count_ones`, `leading_zeros`.
    Unary(ir::Unary),
    /// A method of two operands that the IR has: `min`, `max`, `wrapping_add`, `wrapping_sub`, `wrapping_mul`.
    Binary(ir::Binary),
    /// A method of numbers that takes several operators of the IR.
    Method(Method),
    /// `a.checked_add(b)`, `a.overflowing_add(b)`, `a.saturating_add(b)` and their kin: `Add`, `Sub`, `Mul`, and `Div` and
    /// `Rem` of the checked ones.
    Overflow(OnOverflow, ir::Binary),
    /// `a.mul_add(b, c)`.
    MulAdd,
    /// `fast::exp2(x)` and its kin.
    Fast(Fast),
    /// `int::mul_hi(a, b)` and its kin: an instruction on integers; and, of [`Bits::Dot4`](ir::Bits::Dot4) and `Dot2`, `dp4a` and
    /// `dp2a`, whose operands may be arrays.
    Bits(ir::Bits),
    /// `x.to_bits()` and `f32::from_bits(b)`.
    Bitcast,
    /// `x.to_f32()`, `f16::from_f32(x)` and `bf16::from_f32(x)`: floats of 16 bits to and from `f32`.
    Convert,
    /// `a.div_ceil(b)` of unsigned integers.
    DivCeil,
    /// `a.next_multiple_of(b)` of unsigned integers.
    NextMultipleOf,
    /// `a.saturating_sub(b)` of unsigned integers.
    SaturatingSub,
    /// `Some(x)`.
    Some,
    /// `None`.
    None,
    /// `option.is_some()`.
    IsSome,
    /// `view.get(at)`, an element or `None`; `slice.get(i)`, a reference to one or `None`.
    Get,
    /// `option.copied()`: what the reference names.
    Copied,
    /// `array.map(f)`.
    ArrayMap,
    /// `std::array::from_fn(f)`.
    ArrayFrom,
    /// `array.len()`.
    ArrayLen,
}

impl Intrinsic {
    /// The first target that has it, and its name in Rust, where that is not the first of all.
    pub fn first_target(self) -> Option<(Target, &'static str)> {
        match self {
            Intrinsic::CpAsync => Some((Target::SM_80, "cp_async")),
            Intrinsic::PipelineCommit => Some((Target::SM_80, "pipeline::commit")),
            Intrinsic::PipelineWait => Some((Target::SM_80, "pipeline::wait")),
            Intrinsic::OfWarp(Collective::Match) => Some((Target::SM_70, "warp::match_any")),
            _ => None,
        }
    }
}
