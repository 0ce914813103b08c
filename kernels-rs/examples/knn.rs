//! The K nearest points of each query, in a k-d tree: a stack and a sorted list for each thread, in
//! local memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example knn
//! ```
//!
//! Both arrays have indices that are computed at run time, so they cannot be in registers. The
//! example `bvh` keeps such a stack in shared memory, which holds fewer threads and is faster to
//! access.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The largest depth of the tree, which 2³¹ points reach.
#[device]
const DEPTH: usize = 32;

/// Finds the squared distances of the K nearest points of each query, the smallest first; infinity
/// where there are fewer points. A node is a range of `points`: the point in the middle divides the
/// others by x or y in turn.
#[kernel(block = 64, grid = queries.rows().div_ceil(64), instances(K = 4 | 8))]
#[requires(points.cols() == 2, queries.cols() == 2, nearest.cols() == K, nearest.rows() == queries.rows())]
pub fn knn<const K: usize>(points: View<f32, 2>, queries: View<f32, 2>, mut nearest: ViewMut<f32, 2>) {
    let i = grid::index();
    if i >= queries.rows() {
        return;
    }
    let query = [queries[(i, 0)], queries[(i, 1)]];
    let mut best = thread::local::<[f32; K]>();
    for k in 0..K {
        best[k] = f32::INFINITY;
    }
    // Ranges and their axes that are still to be searched.
    let mut stack = thread::local::<[(u32, u32, bool); DEPTH]>();
    stack[0] = (0, points.rows() as u32, false);
    let mut depth = 1;
    while depth > 0 {
        depth -= 1;
        let (low, high, by_y) = stack[depth];
        if low == high {
            continue;
        }
        let middle = low + (high - low) / 2;
        let (dx, dy) = (query[0] - points[(middle as usize, 0)], query[1] - points[(middle as usize, 1)]);
        let distance = dx * dx + dy * dy;
        if distance < best[K - 1] {
            let mut at = K - 1;
            while at > 0 && best[at - 1] > distance {
                best[at] = best[at - 1];
                at -= 1;
            }
            best[at] = distance;
        }
        let across = if by_y { dy } else { dx };
        let (before, after) = ((low, middle, !by_y), (middle + 1, high, !by_y));
        let (near, far) = if across < 0.0 { (before, after) } else { (after, before) };
        assert!(depth + 2 <= DEPTH, "the tree is deeper than {DEPTH}");
        // The other side holds no nearer point if its border is farther than all that are kept.
        if across * across < best[K - 1] {
            stack[depth] = far;
            depth += 1;
        }
        stack[depth] = near;
        depth += 1;
    }
    for k in 0..K {
        nearest[(i, k)] = best[k];
    }
}

/// Orders points as the nodes of a tree.
pub fn tree(points: &mut [[f32; 2]], axis: usize) {
    let middle = points.len() / 2;
    if !points.is_empty() {
        points.select_nth_unstable_by(middle, |a, b| a[axis].total_cmp(&b[axis]));
        let (before, after) = points.split_at_mut(middle);
        tree(before, 1 - axis);
        tree(&mut after[1..], 1 - axis);
    }
}

/// Returns `n` points of the unit square, some of them equal.
pub fn scattered(n: usize, seed: usize) -> Vec<[f32; 2]> {
    let part = |k: usize| ((k * k * 31 + k * 389 + seed) % 997) as f32 / 997.0;
    (0..n).map(|i| [part(2 * i), part(2 * i + 1)]).collect()
}

/// Returns the squared distances of the `k` nearest of all points.
pub fn expected(points: &[[f32; 2]], queries: &[[f32; 2]], k: usize) -> Vec<f32> {
    let of = |query: &[f32; 2]| {
        let distance = |point: &[f32; 2]| {
            let (dx, dy) = (query[0] - point[0], query[1] - point[1]);
            dx * dx + dy * dy
        };
        let mut all: Vec<f32> = points.iter().map(distance).collect();
        all.sort_by(f32::total_cmp);
        all.resize(k, f32::INFINITY);
        all
    };
    queries.iter().flat_map(of).collect()
}

/// Compares with all distances, sorted.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let (mut points, queries) = (scattered(1000, 7), scattered(100, 13));
    tree(&mut points, 0);
    let (on_points, on_queries) = (device.upload(points.as_flattened())?, device.upload(queries.as_flattened())?);
    let mut nearest = device.zeros::<f32>(800)?;
    knn::<8>::launch(&device, on_points.view([1000, 2])?, on_queries.view([100, 2])?, nearest.view_mut([100, 8])?)?;
    let nearest = nearest.download()?;
    assert_eq!(nearest, expected(&points, &queries, 8));
    println!("the nearest point of the first query is at a distance of {:.4}", nearest[0].sqrt());
    Ok(())
}
