//! Kernels that compute y ← f(…) over arrays of one form: planes of rows of pieces.
//!
//! The `tolerance` of each kernel is for functions with approximations. The results of other
//! functions are bit-identical on every device.

use crate::activation::{fast_silu, fast_swiglu, silu, swiglu};
use crate::permute::rows::{fetch, plane, row_and_piece};
use kernel_dsl::prelude::*;

/// Returns a·b + c, rounded once.
#[device(value)]
pub fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// Computes y ← f(a), `V` elements at once, `VA` of a.
///
/// y is [outer plane, inner plane, row, piece, `V`]. The last two axes of a are accesses and their
/// `VA` elements.
#[kernel(
    block = 256,
    grid = ((y.dim(2) * y.dim(3)).div_ceil(256), (y.dim(0) * y.dim(1)).min(4096)),
    instances(
        silu_f32_v4: A = f32, Y = f32, F = silu, V = 4, VA = 4 | 1;
        silu_f32_v1: A = f32, Y = f32, F = silu, V = 1, VA = 1;
        silu_f16_v8: A = f16, Y = f16, F = silu, V = 8, VA = 8;
        fast_silu_f32_v4: A = f32, Y = f32, F = fast_silu, V = 4, VA = 4;
        fast_silu_f16_v8: A = f16, Y = f16, F = fast_silu, V = 8, VA = 8
    ),
    derived(PA = V / VA),
    tolerance(y(relative = 1e-6)),
    writes(y = once),
)]
#[requires(
    a.dim(0) == y.dim(0), a.dim(1) == y.dim(1), a.dim(2) == y.dim(2), a.dim(3) == y.dim(3) * PA, a.dim(4) == VA, a.aligned(VA),
    y.dim(4) == V, y.aligned(V),
)]
pub fn map_1<
    A: Float,
    Y: Float,
    F: DeviceFn<(f32,), Output = f32>,
    const V: usize,
    const VA: usize,
    const PA: usize,
>(
    a: View<A, 5>,
    y: ViewMut<Y, 5>,
) {
    let (planes, rows, pieces) = (y.dim(1), y.dim(2), y.dim(3));
    for at in (block::y()..y.dim(0) * planes).step_by(grid::dim_y()) {
        let (outer, inner) = plane(at, planes);
        let (a, y) = (a.at(outer).at(inner), y.at(outer).at(inner));
        let at = grid::index();
        if at < rows * pieces {
            let (row, piece) = row_and_piece(at, rows, pieces);
            let a = fetch::<A, V, VA, PA>(a, row, piece);
            y.store((row, piece, 0), a.map(|a| Y::from_f32(F::call((a.to_f32(),)))));
        }
    }
}

/// Computes y ← f(a, b), `V` elements at once, `VA` of a and `VB` of b.
///
/// The arrays have the axes of [`map_1`].
#[kernel(
    block = 256,
    grid = ((y.dim(2) * y.dim(3)).div_ceil(256), (y.dim(0) * y.dim(1)).min(4096)),
    instances(
        swiglu_f32_v4: A = f32, B = f32, Y = f32, F = swiglu, V = 4, VA = 4, VB = 4 | 1;
        swiglu_f32_v1: A = f32, B = f32, Y = f32, F = swiglu, V = 1, VA = 1, VB = 1;
        swiglu_f16_v8: A = f16, B = f16, Y = f16, F = swiglu, V = 8, VA = 8, VB = 8;
        fast_swiglu_f16_v8: A = f16, B = f16, Y = f16, F = fast_swiglu, V = 8, VA = 8, VB = 8
    ),
    derived(PA = V / VA, PB = V / VB),
    tolerance(y(relative = 1e-6)),
    writes(y = once),
)]
#[requires(
    a.dim(0) == y.dim(0), a.dim(1) == y.dim(1), a.dim(2) == y.dim(2), a.dim(3) == y.dim(3) * PA, a.dim(4) == VA, a.aligned(VA),
    b.dim(0) == y.dim(0), b.dim(1) == y.dim(1), b.dim(2) == y.dim(2), b.dim(3) == y.dim(3) * PB, b.dim(4) == VB, b.aligned(VB),
    y.dim(4) == V, y.aligned(V),
)]
pub fn map_2<
    A: Float,
    B: Float,
    Y: Float,
    F: DeviceFn<(f32, f32), Output = f32>,
    const V: usize,
    const VA: usize,
    const VB: usize,
    const PA: usize,
    const PB: usize,
>(
    a: View<A, 5>,
    b: View<B, 5>,
    y: ViewMut<Y, 5>,
) {
    let (planes, rows, pieces) = (y.dim(1), y.dim(2), y.dim(3));
    for at in (block::y()..y.dim(0) * planes).step_by(grid::dim_y()) {
        let (outer, inner) = plane(at, planes);
        let (a, b, y) = (a.at(outer).at(inner), b.at(outer).at(inner), y.at(outer).at(inner));
        let at = grid::index();
        if at < rows * pieces {
            let (row, piece) = row_and_piece(at, rows, pieces);
            let (a, b) = (fetch::<A, V, VA, PA>(a, row, piece), fetch::<B, V, VB, PB>(b, row, piece));
            let y_of = |e: usize| Y::from_f32(F::call((a[e].to_f32(), b[e].to_f32())));
            y.store((row, piece, 0), std::array::from_fn::<Y, V, _>(y_of));
        }
    }
}

/// Computes y ← f(a, b, c), `V` elements at once, `VA` of a, `VB` of b and `VC` of c.
///
/// The arrays have the axes of [`map_1`].
#[kernel(
    block = 256,
    grid = ((y.dim(2) * y.dim(3)).div_ceil(256), (y.dim(0) * y.dim(1)).min(4096)),
    instances(
        multiply_add_f32_v4: A = f32, B = f32, C = f32, Y = f32, F = multiply_add, V = 4, VA = 4, VB = 4 | 1, VC = 4;
        multiply_add_f32_v1: A = f32, B = f32, C = f32, Y = f32, F = multiply_add, V = 1, VA = 1, VB = 1, VC = 1
    ),
    derived(PA = V / VA, PB = V / VB, PC = V / VC),
    writes(y = once),
)]
#[requires(
    a.dim(0) == y.dim(0), a.dim(1) == y.dim(1), a.dim(2) == y.dim(2), a.dim(3) == y.dim(3) * PA, a.dim(4) == VA, a.aligned(VA),
    b.dim(0) == y.dim(0), b.dim(1) == y.dim(1), b.dim(2) == y.dim(2), b.dim(3) == y.dim(3) * PB, b.dim(4) == VB, b.aligned(VB),
    c.dim(0) == y.dim(0), c.dim(1) == y.dim(1), c.dim(2) == y.dim(2), c.dim(3) == y.dim(3) * PC, c.dim(4) == VC, c.aligned(VC),
    y.dim(4) == V, y.aligned(V),
)]
pub fn map_3<
    A: Float,
    B: Float,
    C: Float,
    Y: Float,
    F: DeviceFn<(f32, f32, f32), Output = f32>,
    const V: usize,
    const VA: usize,
    const VB: usize,
    const VC: usize,
    const PA: usize,
    const PB: usize,
    const PC: usize,
>(
    a: View<A, 5>,
    b: View<B, 5>,
    c: View<C, 5>,
    y: ViewMut<Y, 5>,
) {
    let (planes, rows, pieces) = (y.dim(1), y.dim(2), y.dim(3));
    for at in (block::y()..y.dim(0) * planes).step_by(grid::dim_y()) {
        let (outer, inner) = plane(at, planes);
        let (a, b, c, y) = (a.at(outer).at(inner), b.at(outer).at(inner), c.at(outer).at(inner), y.at(outer).at(inner));
        let at = grid::index();
        if at < rows * pieces {
            let (row, piece) = row_and_piece(at, rows, pieces);
            let (a, b) = (fetch::<A, V, VA, PA>(a, row, piece), fetch::<B, V, VB, PB>(b, row, piece));
            let c = fetch::<C, V, VC, PC>(c, row, piece);
            let y_of = |e: usize| Y::from_f32(F::call((a[e].to_f32(), b[e].to_f32(), c[e].to_f32())));
            y.store((row, piece, 0), std::array::from_fn::<Y, V, _>(y_of));
        }
    }
}
