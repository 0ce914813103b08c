//! Built-in operations: functions of the prelude and methods of the built-in types.

use super::{Collective, Fast, Method, OnOverflow, Wide};
use crate::ir;
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// The order of an atomic operation with other accesses of its thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum MemoryOrder {
    /// No fence.
    Relaxed,
    /// A fence follows.
    Acquire,
    /// A fence precedes.
    Release,
}

/// A resolved built-in function or method. The first argument of a method is its receiver.
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
    /// `thread::local::<[T; N]>()`.
    ThreadLocal,
    /// `grid::sync()`.
    GridSync,
    /// `block::sync()`.
    BlockSync,
    /// `warp::sync()`.
    WarpSync,
    /// `warp::sum(x)` and the other collective operations of a warp, a group of 32 lanes.
    OfWarp(Collective),
    /// `fence::{block, grid, system}()`.
    Fence(ir::FenceScope),
    /// `target::SM`: the number in the name of the target.
    TargetSm,
    /// `warp::count()`: block::threads() / 32.
    WarpCount,
    /// `warp::group::<W>()`.
    GroupNew,
    /// `group.lane()`: thread::index() mod W.
    GroupLane,
    /// `group.index()`: thread::index() / W.
    GroupIndex,
    /// `group.sum(x)` and the other collective operations of a group.
    OfGroup(Collective),
    /// `block::sum(x)` and the other collective operations of a block.
    OfBlock(Collective),
    /// The largest number of elements of `block::share(shape)` for a thread; the argument is the
    /// shape.
    ShareCount,
    /// Whether the thread has an element with this number; the arguments are the shape and the
    /// number.
    ShareHas,
    /// The indices of the thread's element with this number; the arguments are the shape and the
    /// number.
    ShareAt,
    /// `x.len()` for a slice or view of rank 1, `x.dim(d)`, `x.rows()`, `x.cols()`. `Extent(None)`
    /// takes `d` as an argument.
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
    /// `view.bypass_l1()`.
    ViewBypassL1,
    /// `x.aligned(n)`: base and strides are multiples of n elements. Only in launch conditions.
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
    /// `x.fetch_add(at, value)` and the other atomic operations.
    Atomic(ir::AtomicOperator, MemoryOrder),
    /// `x.fetch_sub(at, value)`: an atomic addition of the negated value.
    AtomicSubtract,
    /// A method that is one unary operation of the IR: `abs`, `sqrt`, `floor`, `ceil`, `trunc`,
    /// `round_ties_even`.
    Unary(ir::Unary),
    /// A method that is one binary operation of the IR: `min`, `max`, `wrapping_add`,
    /// `wrapping_sub`, `wrapping_mul`, `wrapping_shl`, `wrapping_shr`.
    Binary(ir::Binary),
    /// A method of numbers that takes several operations of the IR.
    Method(Method),
    /// `a.checked_add(b)`, `a.overflowing_add(b)`, `a.saturating_add(b)` and the same for `Sub` and
    /// `Mul`; the checked form also for `Div` and `Rem`.
    Overflow(OnOverflow, ir::Binary),
    /// `int::carrying_add(a, b, carry)` and the other operations with a wider result.
    Wide(Wide),
    /// `a.mul_add(b, c)`.
    MulAdd,
    /// `fast::exp2(x)` and the other functions of `fast::`.
    Fast(Fast),
    /// `int::mul_hi(a, b)` and the other integer instructions. [`Bits::Dot4`](ir::Bits::Dot4) and
    /// `Dot2` are `dp4a` and `dp2a`, whose operands may be arrays.
    Bits(ir::Bits),
    /// `x.to_bits()` and `f32::from_bits(b)`.
    Bitcast,
    /// `x.to_f32()`, `f16::from_f32(x)` and `bf16::from_f32(x)`: conversions between 16-bit floats
    /// and `f32`.
    Convert,
    /// `Float16::<…>::truncate(x)`: from `f32`, towards zero.
    Truncate,
    /// `a.div_ceil(b)` for unsigned integers.
    DivCeil,
    /// `a.next_multiple_of(b)` for unsigned integers.
    NextMultipleOf,
    /// `a.saturating_sub(b)` for unsigned integers.
    SaturatingSub,
    /// `Some(x)`.
    Some,
    /// `None`.
    None,
    /// `option.is_some()`.
    IsSome,
    /// `view.get(at)`, an element or `None`; `slice.get(i)`, a reference to one or `None`.
    Get,
    /// `option.copied()`: the value that the reference names.
    Copied,
    /// `array.map(f)`.
    ArrayMap,
    /// `std::array::from_fn(f)`.
    ArrayFrom,
    /// `array.len()`.
    ArrayLen,
}

impl Intrinsic {
    /// Returns the first target that supports the operation, and its Rust name, if older targets do
    /// not.
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
