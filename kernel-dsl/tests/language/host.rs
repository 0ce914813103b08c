//! Tests of the prelude on the host: its results and its failures.

use kernel_dsl::host;
use kernel_dsl::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs blocks of 32 lanes along x.
fn warps(blocks: usize, warps: usize, kernel: impl Fn() + Sync) {
    // SAFETY: each thread writes separate elements, with barriers between conflicting accesses.
    unsafe { host::run([blocks, 1, 1], [32, warps, 1], kernel) }
}

/// Returns one value per lane of a single warp.
fn of_lanes<T: Copy + Default + Send>(value: impl Fn() -> T + Sync) -> Vec<T> {
    let lanes = std::sync::Mutex::new(vec![T::default(); 32]);
    warps(1, 1, || {
        let v = value();
        lanes.lock().unwrap()[warp::lane()] = v;
    });
    lanes.into_inner().unwrap()
}

/// Returns the message with which `run` panics.
fn failure(run: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("the run must fail");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or(payload.downcast_ref::<&str>().map(|s| s.to_string()))
        .expect("a message")
}

#[track_caller]
fn assert_has(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

#[test]
fn threads_and_blocks_are_counted_x_first() {
    let seen = std::sync::Mutex::new(Vec::new());
    // SAFETY: the kernel accesses no shared array and no view.
    unsafe {
        host::run([2, 1, 1], [2, 3, 2], || {
            assert_eq!((block::dim_x(), block::dim_y(), block::dim_z(), block::threads()), (2, 3, 2, 12));
            assert_eq!((grid::dim_x(), grid::dim_y(), grid::dim_z(), grid::threads()), (2, 1, 1, 24));
            assert_eq!(thread::index(), thread::x() + 2 * (thread::y() + 3 * thread::z()));
            assert_eq!((block::y(), block::z()), (0, 0));
            assert_eq!((warp::lane(), warp::index()), (thread::index(), 0));
            seen.lock().unwrap().push((grid::index(), block::x() * 12 + thread::index()));
        });
    }
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    assert_eq!(seen, (0..24).map(|i| (i, i)).collect::<Vec<_>>());
}

#[test]
fn sum_is_a_butterfly_widest_first() {
    // The sum of these values depends on the order.
    let value = |lane: usize| f32::powi(3.0, lane as i32 % 11) / (lane as f32 + 1.0);
    let got = of_lanes(|| warp::sum(value(warp::lane())));
    fn tree(lane: usize, distance: usize, value: &impl Fn(usize) -> f32) -> f32 {
        if distance == 32 {
            return value(lane);
        }
        tree(lane, distance * 2, value) + tree(lane ^ distance, distance * 2, value)
    }
    for (lane, sum) in got.iter().enumerate() {
        assert_eq!(sum.to_bits(), tree(lane, 1, &value).to_bits());
    }
    let narrowest_first = |values: Vec<f32>| -> f32 {
        let mut values = values;
        while values.len() > 1 {
            values = values.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        values[0]
    };
    assert_ne!(got[0], narrowest_first((0..32).map(value).collect()), "the values do not tell orders apart");
}

#[test]
fn extremes_pass_over_nan_and_order_zeros() {
    let value = || if warp::lane() == 7 { -3.5 } else { f32::NAN };
    assert_eq!(of_lanes(|| (warp::max(value()), warp::min(value()))), [(-3.5, -3.5); 32]);
    let zero = || if warp::lane() < 9 { 0.0f32 } else { -0.0 };
    assert_eq!(of_lanes(|| (warp::max(zero()).to_bits(), warp::min(zero()).to_bits())), [(0, 1 << 31); 32]);
    assert_eq!(of_lanes(|| (warp::max(warp::lane()), warp::min(-(warp::lane() as i64)))), [(31, -31); 32]);
}

#[test]
fn shuffles_and_votes_exchange_values_of_lanes() {
    let reverse: Vec<_> = (0..32u32).rev().collect();
    assert_eq!(of_lanes(|| warp::shuffle(warp::lane() as u32, 31 - warp::lane())), reverse);
    assert_eq!(of_lanes(|| warp::shuffle_xor(warp::lane() as u32, 31)), reverse);
    assert_eq!(of_lanes(|| warp::shuffle(warp::lane() as f64, 34)), [2.0; 32]);
    assert_eq!(of_lanes(|| warp::ballot(warp::lane() % 3 == 1)), [0x9249_2492; 32]);
    assert_eq!(of_lanes(|| (warp::any(warp::lane() == 9), warp::all(warp::lane() == 9))), [(true, false); 32]);
    assert_eq!(of_lanes(|| (warp::any(warp::lane() == 32), warp::all(warp::lane() < 32))), [(false, true); 32]);
}

#[test]
fn warps_of_a_block_do_not_mix() {
    warps(2, 3, || {
        for _ in 0..warp::index() + 1 {
            assert_eq!(warp::sum(warp::index()), 32 * warp::index());
            warp::sync();
        }
        block::sync();
    });
}

#[test]
fn views_move_and_shrink() {
    let x: Vec<i32> = (0..24).collect();
    // SAFETY: the vector outlives the views and is not written.
    let v = unsafe { View::host(&x, [2, 3, 4]) };
    assert_eq!((v.dim(0), v.dim(1), v.dim(2), v[(1, 2, 3)], v[[0, 1, 0]]), (2, 3, 4, 23, 4));
    let plane = v.at(1);
    assert_eq!((plane.rows(), plane.cols(), plane[(2, 0)]), (3, 4, 20));
    let corner = plane.offset((1, 2));
    assert_eq!((corner.rows(), corner.cols(), corner[(1, 1)]), (2, 2, 23));
    let past = plane.offset((7, 1));
    assert_eq!((past.rows(), past.cols()), (0, 3));
    let row = plane.at(2);
    assert_eq!((row.len(), row.is_empty(), row[3], row.offset(4).is_empty()), (4, false, 23, true));
    assert_eq!((v.at(9).rows(), v.at(9).is_empty()), (0, true), "past the end `at` leaves nothing, as `offset` does");
}

#[test]
fn alignment_counts_base_and_strides() {
    let x = [0u64; 32];
    let floats = {
        // SAFETY: every bit pattern is a valid float, and `x` outlives the slice.
        unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<f32>(), 64) }
    };
    assert!(floats.aligned(2) && !floats[1..].aligned(2));
    // SAFETY: `x` outlives the views and is not written.
    let (even, odd) = unsafe { (View::host(floats, [8, 8]), View::host(floats, [9, 7])) };
    assert!(even.aligned(2) && !odd.aligned(2) && odd.aligned(1));
    assert!(even.offset((1, 2)).aligned(2) && !even.offset((0, 1)).aligned(2));
}

#[test]
fn copies_put_zero_beyond_the_edge() {
    let x: Vec<f32> = (1..=12).map(|i| i as f32).collect();
    let mut y = vec![f32::NAN; 20];
    // SAFETY: barriers separate the copy from its use, each element of `y` has one writer, and the
    // vectors outlive the run.
    unsafe {
        let (x, mut y) = (View::host(&x, [3, 4]), ViewMut::host(&mut y, [4, 5]));
        host::run([1, 1, 1], [3, 2, 1], || {
            let s = Shared::<f32, 2>::with_pitch([4, 5], 7);
            s.copy_from(x.offset((1, 1)));
            block::sync();
            for i in (thread::index()..20).step_by(block::threads()) {
                let mut y = y;
                y[(i / 5, i % 5)] = s.at(i / 5)[i % 5];
            }
        });
        y[(3, 4)] = -1.0;
    }
    let want = [[6.0, 7.0, 8.0, 0.0, 0.0], [10.0, 11.0, 12.0, 0.0, 0.0], [0.0; 5], [0.0, 0.0, 0.0, 0.0, -1.0]];
    assert_eq!(y, want.concat());
}

#[test]
fn shared_arrays_belong_to_a_block_and_begin_undefined() {
    warps(2, 2, || {
        let mut a = Shared::<f32, 1>::new([64]);
        let mut b = Shared::<u8, 3>::padded([2, 4, 8]);
        assert!(a[63].is_nan() && b[(1, 3, 7)] == 255 && b.dim(1) == 4);
        block::sync();
        a[thread::index()] = thread::index() as f32;
        b[(thread::index() / 32, thread::index() / 8 % 4, thread::index() % 8)] = thread::index() as u8;
        block::sync();
        let other = 63 - thread::index();
        assert_eq!((a[other], b.at(other / 32).at(other / 8 % 4)[other % 8]), (other as f32, other as u8));
    });
}

#[test]
fn calls_outside_a_launch_are_explained() {
    let message = failure(|| {
        let _ = thread::x();
    });
    assert_has(
        &message,
        &["`thread::x()` was called outside of a kernel", "launch the kernel on a device", "kernel_dsl::host::run"],
    );
}

#[test]
fn out_of_bounds_says_what_and_where() {
    let mut x = [0.0f32; 12];
    // SAFETY: `x` outlives the view and is accessed only through it.
    let mut v = unsafe { ViewMut::host(&mut x, [3, 4]) };
    let message = failure(|| warps(2, 1, || assert_eq!(v.at(2)[3 + block::x()], 0.0)));
    assert_has(&message, &["of block (1, 0, 0)", "out of bounds: element 4 of a view of 4"]);
    let message = failure(|| v[(3, 0)] = 1.0);
    assert_has(&message, &["out of bounds: element (3, 0) of a view of (3, 4)"]);
    let message = failure(|| assert_eq!(v.at(3)[0], 1.0));
    assert_has(&message, &["element 0 of a view that `at` took past the end"]);
    let message = failure(|| {
        warps(1, 1, || {
            let mut s = Shared::<i32, 2>::new([2, 2]);
            s[(0, warp::lane())] = 1;
        })
    });
    assert_has(&message, &["out of bounds: element (0, ", "of a shared array of (2, 2)"]);
}

#[test]
fn a_panic_releases_waiting_threads() {
    let message = failure(|| {
        warps(3, 2, || {
            assert!(block::x() != 1 || thread::index() != 40, "forty");
            warp::sync();
            block::sync();
        })
    });
    assert_eq!(message, "thread (8, 1, 0) of block (1, 0, 0): forty");
}

#[test]
fn divergence_is_reported_with_its_location() {
    let message = failure(|| {
        warps(1, 2, || {
            if thread::y() == 0 {
                block::sync();
            }
        })
    });
    assert_has(
        &message,
        &[
            "threads diverge before block::sync()",
            "all threads of the block",
            "language/host.rs",
            "has left the kernel",
        ],
    );
    let message = failure(|| {
        warps(1, 1, || {
            if warp::lane() < 5 {
                let _ = warp::sum(1);
            } else {
                let _ = warp::sum(2);
            }
        })
    });
    assert_has(&message, &["diverge before warp::sum", "Thread 0 waits at warp::sum", "thread 5 waits at warp::sum"]);
    let message = failure(|| {
        warps(1, 1, || {
            if warp::any(warp::lane() == 3) && warp::lane() == 3 {
                return;
            }
            let _ = warp::ballot(true);
        })
    });
    assert_has(&message, &["diverge before warp::ballot", "thread 3 has left the kernel"]);
}

#[test]
fn warps_must_be_whole() {
    // SAFETY: the kernel accesses no shared array and no view.
    let message = failure(|| unsafe { host::run([1, 1, 1], [33, 1, 1], warp::sync) });
    assert_has(&message, &["needs whole warps", "33 threads", "multiple of 32"]);
}

#[test]
fn blocks_have_1_to_1024_threads() {
    for block in [[0, 1, 1], [32, 33, 1], [usize::MAX, 2, 1]] {
        // SAFETY: the kernel is empty.
        let message = failure(|| unsafe { host::run([1, 1, 1], block, || ()) });
        assert_has(&message, &["a block has 1 to 1024 threads"]);
    }
}

#[test]
fn shared_arrays_must_agree() {
    let message = failure(|| {
        warps(1, 1, || {
            let _ = Shared::<f32, 1>::new([if warp::lane() == 4 { 8 } else { 16 }]);
            block::sync();
        })
    });
    assert_has(&message, &["the same shared arrays in the same order", "of 8 at", "language/host.rs"]);
}

#[test]
fn a_mutable_slice_has_one_writer_an_element() {
    let mut x = [0i32; 64];
    let xs = host::SliceMut::new(&mut x);
    let message = failure(|| warps(1, 1, || xs.of_thread()[warp::lane() / 31] = 1));
    assert_has(&message, &["both store to element 0 of a `&mut [T]`", "`ViewMut`"]);
    drop(xs);

    // A later block reads the stores of an earlier one.
    let xs = host::SliceMut::new(&mut x[32..]);
    warps(3, 1, || xs.of_thread()[warp::lane()] += 1 + warp::lane() as i32);
    drop(xs);
    assert_eq!((x[32], x[63]), (3, 96));
}
