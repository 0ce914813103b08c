//! Atomic operations on every type, in global and shared memory, against plain Rust.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Expected, Input, Random};

/// Defines kernels with all operations on the integers of a type, and a test of each.
macro_rules! integers {
    ($($module:ident $ty:ty),*) => {$(
        mod $module {
            use super::*;

            /// Applies each operation to its element, in global memory and in a copy of each block.
            #[kernel(block = 64, grid = 2)]
            #[requires(x.len() == 128, y.len() == 8, blocks.len() == 16)]
            fn all(x: &[$ty], y: &mut [$ty], blocks: &mut [$ty]) {
                let mut s = Shared::<$ty, 1>::new([8]);
                let (t, v) = (thread::x(), x[grid::index()]);
                if t < 8 {
                    s[t] = 3;
                }
                block::sync();
                s.fetch_add(0, v);
                s.fetch_min(1, v);
                s.fetch_max(2, v);
                s.fetch_and(3, v);
                s.fetch_or(4, v);
                s.fetch_xor(5, v);
                s.compare_exchange(6, 3, 9);
                s.exchange(7, 5);
                y.fetch_add(0, v);
                y.fetch_min(1, v);
                y.fetch_max(2, v);
                y.fetch_and(3, v);
                y.fetch_or(4, v);
                y.fetch_xor(5, v);
                y.compare_exchange(6, 3, 9);
                y.exchange(7, 5);
                block::sync();
                if t < 8 {
                    blocks[8 * block::x() + t] = s[t];
                }
            }

            /// Uses the old values: each thread takes its own place.
            #[kernel(block = 64, grid = 1)]
            #[requires(next.len() == 4, taken.len() == 64)]
            fn places(next: &mut [$ty], taken: &mut [u32]) {
                let place = next.fetch_add(1, 1);
                let old = next.compare_exchange(2, 0, 1);
                taken[(place & 127) as usize] = 1 + old as u32;
            }

            fn applied(x: &[$ty]) -> [$ty; 8] {
                x.iter().fold([3, 3, 3, 3, 3, 3, 9, 5], |y, v| {
                    [y[0].wrapping_add(*v), y[1].min(*v), y[2].max(*v), y[3] & v, y[4] | v, y[5] ^ v, y[6], y[7]]
                })
            }

            #[test]
            fn operations_agree_with_plain_rust() {
                let mut random = Random::new(5);
                let x: Vec<$ty> = (0..128).map(|_| random.bits() as $ty).collect();
                let own: Vec<$ty> = x.chunks(64).flat_map(applied).collect();
                let inputs = vec![Input::slice(&x), Input::slice(&[3 as $ty; 8]), Input::slice(&[0 as $ty; 16])];
                let expected = [Expected::exact(1, applied(&x)), Expected::exact(2, own)];
                agree::<all>(&checker(false), stringify!($ty), inputs, &expected);
                assemble::<all>();
                let inputs = vec![Input::slice(&[7 as $ty, 0, 0, 9]), Input::slice(&[0u32; 64])];
                let ones = Expected::exact(0, [7 as $ty, 64, 1, 9]);
                let case = runtime::testing::Case::new("places", inputs).with_order_dependent(1);
                let multiset = Expected::multiset(1, (0..64).map(|i| 1 + u32::from(i > 0)));
                super::super::support::agree_case::<places>(&checker(false), &case, &[ones, multiset]);
            }
        }
    )*};
}

/// Returns the difference, which wraps for integers.
macro_rules! difference {
    (f32, $a:expr, $b:expr) => {
        $a - $b
    };
    (f64, $a:expr, $b:expr) => {
        $a - $b
    };
    ($ty:ident, $a:expr, $b:expr) => {
        <$ty>::wrapping_sub($a, $b)
    };
}

/// Defines kernels that subtract, in global and shared memory, with and without the old values.
macro_rules! differences {
    ($($module:ident $ty:ident, $value:expr;)*) => {$(
        mod $module {
            use super::*;

            #[kernel(block = 64, grid = 2)]
            #[requires(x.len() == 128, y.len() == 128, z.len() == 128, old.len() == 256, sums.len() == 4)]
            fn subtracted(x: &[$ty], y: &mut [$ty], z: &mut [$ty], old: &mut [$ty], sums: &mut [$ty]) {
                let mut s = Shared::<$ty, 1>::new([64]);
                let (i, t, v) = (grid::index(), thread::x(), x[grid::index()]);
                s[t] = z[i];
                block::sync();
                old[i] = y.fetch_sub(i, v);
                old[128 + i] = s.fetch_sub(t, v);
                sums.fetch_sub(i % 4, (i % 7) as $ty);
                block::sync();
                z[i] = s[t];
            }

            #[test]
            fn operations_agree_with_plain_rust() {
                let value = $value;
                let x: Vec<$ty> = (0..128).map(value).collect();
                let before: Vec<$ty> = (0..256).map(|i| value(255 - i)).collect();
                let (y, z) = before.split_at(128);
                let after = |before: &[$ty]| -> Vec<$ty> {
                    before.iter().zip(&x).map(|(before, x)| difference!($ty, *before, *x)).collect()
                };
                let sums = (0..4).map(|k| {
                    (0..128).filter(|i| i % 4 == k).fold(100 as $ty, |y, i| difference!($ty, y, (i % 7) as $ty))
                });
                let inputs = vec![
                    Input::slice(&x),
                    Input::slice(y),
                    Input::slice(z),
                    Input::slice(&[0 as $ty; 256]),
                    Input::slice(&[100 as $ty; 4]),
                ];
                let expected = [
                    Expected::exact(1, after(y)),
                    Expected::exact(2, after(z)),
                    Expected::exact(3, before.clone()),
                    Expected::exact(4, sums),
                ];
                agree::<subtracted>(&checker(false), stringify!($ty), inputs, &expected);
                assemble::<subtracted>();
            }
        }
    )*};
}

differences! {
    less_i8 i8, |i: usize| (i * 37) as i8;
    less_u8 u8, |i: usize| (i * 37) as u8;
    less_i16 i16, |i: usize| (i * 9_001) as i16;
    less_u16 u16, |i: usize| (i * 9_001) as u16;
    less_i32 i32, |i: usize| if i == 5 { i32::MIN } else { (i as i32).wrapping_mul(90_000_001) };
    less_u32 u32, |i: usize| (i as u32).wrapping_mul(90_000_001);
    less_i64 i64, |i: usize| if i == 5 { i64::MIN } else { (i as i64) << 55 };
    less_u64 u64, |i: usize| (i as u64) << 57;
    less_f32 f32, |i: usize| [i as f32 / 3.0, -0.0, f32::INFINITY, f32::NAN, -1.5e38][i % 5];
    less_f64 f64, |i: usize| [i as f64 / 3.0, -0.0, f64::INFINITY, f64::NAN, -1.5e300][i % 5];
}

integers! { of_i8 i8, of_u8 u8, of_i16 i16, of_u16 u16, of_i32 i32, of_u32 u32, of_i64 i64, of_u64 u64 }

/// Defines kernels with the minimum and maximum of floats.
macro_rules! floats {
    ($($module:ident $ty:ident),*) => {$(
        mod $module {
            use super::*;

            #[kernel(block = 64, grid = 2)]
            #[requires(x.len() == 128, y.len() == 4, blocks.len() == 4)]
            fn extremes(x: &[$ty], y: &mut [$ty], blocks: &mut [$ty]) {
                let mut s = Shared::<$ty, 1>::new([2]);
                let (t, v) = (thread::x(), x[grid::index()]);
                if t < 2 {
                    s[t] = 0.0;
                }
                block::sync();
                s.fetch_min(0, v);
                s.fetch_max(1, v);
                y.fetch_min(0, v);
                y.fetch_max(1, v);
                // Zeros of both signs, and a NaN in memory.
                y.fetch_min(2, if t % 2 == 0 { 0.0 } else { -0.0 });
                y.fetch_max(3, v);
                block::sync();
                if t < 2 {
                    blocks[2 * block::x() + t] = s[t];
                }
            }

            #[test]
            fn operations_agree_with_plain_rust() {
                let mut x: Vec<$ty> = Random::new(8).values::<$ty>(128);
                (x[3], x[70], x[90]) = ($ty::NAN, $ty::INFINITY, -1.0e9);
                let least = |x: &[$ty]| x.iter().fold(0.0, |y: $ty, v| y.min(*v));
                let most = |x: &[$ty]| x.iter().fold(0.0, |y: $ty, v| y.max(*v));
                let own: Vec<$ty> = x.chunks(64).flat_map(|x| [least(x), most(x)]).collect();
                let inputs = vec![
                    Input::slice(&x),
                    Input::slice(&[0.0, 0.0, 0.0, $ty::NAN]),
                    Input::slice(&[0.0 as $ty; 4]),
                ];
                let whole = [least(&x), most(&x), -0.0, most(&x)];
                let expected = [Expected::exact(1, whole), Expected::exact(2, own)];
                agree::<extremes>(&checker(false), stringify!($ty), inputs, &expected);
                assemble::<extremes>();
            }
        }
    )*};
}

floats! { of_f32 f32, of_f64 f64 }

/// Defines kernels that copy each element by atomic loads and stores.
macro_rules! copies {
    ($($module:ident $ty:ty, $value:expr;)*) => {$(
        mod $module {
            use super::*;

            #[kernel(block = 32, grid = 1)]
            #[requires(x.len() == 32, y.len() == 32)]
            fn copies(x: &mut [$ty], y: &mut [$ty]) {
                let s = Shared::<$ty, 1>::new([32]);
                let t = thread::x();
                s.store_relaxed(t, x.load_relaxed(t));
                block::sync();
                let other = s.load_acquire(31 - t);
                s.write_volatile(31 - t, other);
                y.store_release(31 - t, s.read_volatile(31 - t));
            }

            #[test]
            fn copies_have_the_stored_values() {
                let x: Vec<$ty> = (0..32).map($value).collect();
                let inputs = vec![Input::slice(&x), Input::slice(&[x[0]; 32])];
                agree::<copies>(&checker(false), stringify!($ty), inputs, &[0, 1].map(|i| Expected::exact(i, x.clone())));
                assemble::<copies>();
            }
        }
    )*};
}

copies! {
    copies_of_i8 i8, |i| i as i8 - 16;
    copies_of_u8 u8, |i| i as u8 * 8;
    copies_of_i16 i16, |i| i as i16 * -999;
    copies_of_u16 u16, |i| i as u16 * 2001;
    copies_of_u32 u32, |i| (i as u32) << 27;
    copies_of_i64 i64, |i| (i as i64 - 9) << 40;
    copies_of_f16 f16, |i| f16::from_f32(i as f32 / 3.0);
    copies_of_bf16 bf16, |i| bf16::from_f32(i as f32 / 3.0);
    copies_of_f32 f32, |i| i as f32 / 3.0;
    copies_of_f64 f64, |i| i as f64 / 3.0;
}

/// Passes data from the first block to the second.
#[kernel(block = 32, grid = 2)]
#[requires(data.len() == 32, ready.len() == 1, y.len() == 32)]
fn passed(data: &mut [f32], ready: &mut [u32], y: &mut [f32]) {
    let t = thread::x();
    if block::x() == 0 {
        data[t] = t as f32;
        warp::sync();
        if t == 0 {
            ready.store_release(0, 1);
        }
    } else {
        if t == 0 {
            while ready.load_acquire(0) == 0 {}
        }
        warp::sync();
        y[t] = data[t];
    }
}

#[test]
fn release_and_acquire_order_plain_accesses() {
    let inputs = vec![Input::slice(&[0f32; 32]), Input::slice(&[0u32]), Input::slice(&[0f32; 32])];
    let data = || (0..32).map(|t| t as f32);
    let expected = [Expected::exact(0, data()), Expected::exact(1, [1u32]), Expected::exact(2, data())];
    agree::<passed>(&checker(false), "passed", inputs, &expected);
    assemble::<passed>();
    assert!(passed::PTX.contains("st.volatile.global.u32"), "{}", passed::PTX);
    assert!(passed::PTX.contains("ld.volatile.global.u32"), "{}", passed::PTX);
    assert_eq!(passed::PTX.matches("membar.gl").count(), 2, "{}", passed::PTX);
}
