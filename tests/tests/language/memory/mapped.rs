//! Asynchronous copies that map each element. The results of copies of whole pieces equal those of
//! copies by element.

use super::values::{check, wide};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Input, Random};

/// Declares kernels that copy tiles of 6 × 64 through two buffers, a tile ahead, and store the
/// results to `y`.
macro_rules! mapped {
    ($x:ident, $y:ident, $v:ident, $scale:ident;
     $($name:ident, $from:ident to $to:ident, $layout:ident, [$($condition:tt)*], ($($map:tt)*), ($($back:tt)*);)*) => {$(
        #[kernel(block = 32, grid = 1)]
        #[requires($y.rows() == $x.rows(), $y.cols() == $x.cols(), $x.cols() <= 64, $($condition)*)]
        pub fn $name($x: View<$from, 2>, mut $y: ViewMut<f32, 2>, $scale: f32) {
            let tile = Shared::<$to, 3>::$layout([2, 6, 64]);
            let mut coming = tile.at(0).copy_async_map($x, |$v| $($map)*);
            for first in (0..$x.rows()).step_by(6) {
                let now = first / 6 % 2;
                coming.wait();
                block::sync();
                let more = first + 6 < $x.rows();
                let next = $x.offset((first + 6, 0));
                coming = if more { tile.at(1 - now).copy_async_map(next, |$v| $($map)*) } else { Pending::none() };
                for i in 0..12 {
                    let (row, col) = ((i * 32 + thread::x()) / 64, (i * 32 + thread::x()) % 64);
                    if first + row < $y.rows() && col < $y.cols() {
                        let $v = tile[(now, row, col)];
                        $y[(first + row, col)] = $($back)*;
                    }
                }
                block::sync();
            }
            coming.wait();
        }
    )*};
}

mapped! {
    x, y, v, scale;
    anywhere, f16 to f32, new, [scale > 0.0], (v.to_f32() + v.to_f32()), (v);
    widened, f16 to f32, new, [x.aligned(8), scale > 0.0], (v.to_f32() + v.to_f32()), (v);
    widened_in_rows, f16 to f32, swizzled, [x.aligned(8), x.cols() % 8 == 0, scale > 0.0], (v.to_f32() + v.to_f32()), (v);
    widened_whole, f16 to f32, swizzled, [x.aligned(8), x.cols() == 64, scale > 0.0], (v.to_f32() + v.to_f32()), (v);
    widened_bf16, bf16 to f32, swizzled, [x.aligned(8), scale > 0.0], (v.to_f32() + v.to_f32()), (v);
    kept, f16 to f16, swizzled, [x.aligned(8), scale > 0.0], (f16::from_f32(v.to_f32() * 2.0)), (v.to_f32());
    narrowed, f32 to f16, new, [x.aligned(4), scale > 0.0], (f16::from_f32(v * 2.0)), (v.to_f32());
    from_bytes, u8 to f32, new, [x.aligned(16), scale > 0.0], (v as f32 * 2.0), (v);
    to_shorts, i8 to i16, swizzled, [x.aligned(16), scale > 0.0], (v as i16 * 2), (v as f32);
    to_bytes, i16 to u8, new, [x.aligned(8), x.cols() % 8 == 0, scale > 0.0], ((v * 2) as u8), (v as f32);
    scaled, f16 to f32, new, [x.aligned(8)], (v.to_f32() * scale), (v);
    scaled_bytes, i8 to f16, swizzled, [x.aligned(16)], (f16::from_f32(v as f32 * scale)), (v.to_f32());
}

/// Runs kernels on small numbers, converted by `element`, and expects the doubled numbers.
macro_rules! doubled {
    ($gpu:ident; $($name:ident($element:expr, $cols:expr);)*) => {$(
        for (rows, cols) in [(1usize, 8usize), (6, 64), (7, 40), (20, 33), (13, 64), (5, 3), (12, 60)] {
            // Rows have gaps, so that they satisfy the alignment in the conditions.
            let pitch = cols.next_multiple_of(16) + 16;
            let mut random = Random::new((rows * cols) as u64);
            let values: Vec<f32> = (0..rows * pitch).map(|_| random.below(64) as f32).collect();
            let x: Vec<_> = values.iter().map($element).collect();
            let expected: Vec<f32> = (0..rows * cols).map(|i| 2.0 * values[i / cols * pitch + i % cols]).collect();
            let zeros = vec![0f32; rows * cols];
            let columns: fn(usize) -> bool = $cols;
            if columns(cols) {
                let x = Input::strided(&x, [rows, cols], [pitch, 1]);
                let inputs = vec![x, Input::view(&zeros, [rows, cols]), Input::scalar(2.0f32)];
                check($name::ARTIFACT, &[], $gpu, inputs, vec![(1, wide(&expected))]);
            }
        }
    )*};
}

fn pieces_agree(gpu: Option<&Device>) {
    let half = |v: &f32| f16::from_f32(*v);
    doubled! {
        gpu;
        anywhere(half, |_| true);
        widened(half, |_| true);
        widened_in_rows(half, |cols| cols % 8 == 0);
        widened_whole(half, |cols| cols == 64);
        widened_bf16(|v| bf16::from_f32(*v), |_| true);
        kept(half, |_| true);
        narrowed(|v| *v, |_| true);
        from_bytes(|v| *v as u8, |_| true);
        to_shorts(|v| *v as i8, |_| true);
        to_bytes(|v| *v as i16, |cols| cols % 8 == 0);
        scaled(half, |_| true);
        scaled_bytes(|v| *v as i8, |_| true);
    }
}

agreements! {
    mapped_pieces gpu_mapped_pieces pieces_agree
}

#[test]
fn ptx_of_mapped_copies_is_as_accepted() {
    insta::assert_snapshot!("mapped_halves", widened_whole::PTX);
    // A copy of 8 bytes from global memory becomes 16 bytes of shared memory. The words in flight
    // are kept unconverted.
    let accesses = |ptx: &str, access: &str| ptx.lines().filter(|line| line.contains(access)).count();
    for (ptx, load, store) in [
        (widened_whole::PTX, "ld.global.nc.v2.u32", "st.shared.v4.f32"),
        (kept::PTX, "ld.global.nc.v4.u32", "st.shared.v4.u32"),
        (narrowed::PTX, "ld.global.nc.v4.f32", "st.shared.v2.u32"),
        (from_bytes::PTX, "ld.global.nc.u32", "st.shared.v4.f32"),
    ] {
        assert!(accesses(ptx, load) >= 3 && accesses(ptx, store) >= 3, "{load} {store}: {ptx}");
    }
    [
        anywhere::ARTIFACT,
        widened::ARTIFACT,
        widened_bf16::ARTIFACT,
        kept::ARTIFACT,
        to_shorts::ARTIFACT,
        to_bytes::ARTIFACT,
    ]
    .into_iter()
    .for_each(super::every_target::assemble);
}
