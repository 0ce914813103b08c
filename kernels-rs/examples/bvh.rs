//! Nearest hits of rays in a tree of boxes: a stack for each thread, in shared memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example bvh
//! ```
//!
//! The rays are parallel to the z axis, and the leaves are the boxes themselves. A stack is a
//! column of a shared array, so that the threads of a warp access different banks. `&` instead of
//! `&&` loads the corners at once, without branches.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The largest depth of the tree.
#[device]
const DEPTH: usize = 24;

/// Finds the smallest z at which each ray (x, y) enters a leaf; infinity if it enters none. Six
/// elements of `boxes` are the low corner and the high corner of a node. The children of node v are
/// `child[v]` and `child[v] + 1`; a leaf has no child, which is 0.
#[kernel(block = 64, grid = hits.len().div_ceil(64), writes(hits = once))]
#[requires(rays.len() == hits.len(), boxes.len() == 6 * child.len())]
pub fn trace(boxes: &[f32], child: &[u32], rays: &[[f32; 2]], hits: &mut [f32]) {
    let mut stack = Shared::<u32, 2>::new([DEPTH, 64]);
    let (i, t) = (grid::index(), thread::x());
    if i >= hits.len() {
        return;
    }
    let [x, y] = rays[i];
    let mut nearest = f32::INFINITY;
    stack[(0, t)] = 0;
    let mut depth = 1;
    while depth > 0 {
        depth -= 1;
        let v = stack[(depth, t)] as usize;
        let inside = |axis: usize, p: f32| (boxes[6 * v + axis] <= p) & (p <= boxes[6 * v + axis + 3]);
        let z = boxes[6 * v + 2];
        if (z < nearest) & inside(0, x) & inside(1, y) {
            if child[v] == 0 {
                nearest = z;
            } else {
                assert!(depth + 2 <= DEPTH, "the tree is deeper than {DEPTH}");
                stack[(depth, t)] = child[v];
                stack[(depth + 1, t)] = child[v] + 1;
                depth += 2;
            }
        }
    }
    hits[i] = nearest;
}

/// A tree: the corners and the first child of each node.
#[derive(Default)]
pub struct Tree {
    /// The low corner and the high corner.
    pub boxes: Vec<[f32; 6]>,
    /// The first child, or 0.
    pub child: Vec<u32>,
}

/// Builds a tree that divides the leaves in halves.
pub fn tree(leaves: &[[f32; 6]]) -> Tree {
    fn fill(tree: &mut Tree, at: usize, leaves: &mut [[f32; 6]], axis: usize) {
        let corner = |k: usize| {
            let all = leaves.iter().map(|leaf| leaf[k]);
            if k < 3 { all.fold(f32::INFINITY, f32::min) } else { all.fold(f32::NEG_INFINITY, f32::max) }
        };
        tree.boxes[at] = std::array::from_fn(corner);
        if leaves.len() == 1 {
            return;
        }
        leaves.sort_by(|a, b| a[axis].total_cmp(&b[axis]));
        let first = tree.child.len();
        tree.child[at] = first as u32;
        tree.child.extend([0, 0]);
        tree.boxes.extend([[0.0; 6]; 2]);
        let (low, high) = leaves.split_at_mut(leaves.len() / 2);
        fill(tree, first, low, (axis + 1) % 3);
        fill(tree, first + 1, high, (axis + 1) % 3);
    }
    let mut tree = Tree { boxes: vec![[0.0; 6]], child: vec![0] };
    fill(&mut tree, 0, &mut leaves.to_vec(), 0);
    tree
}

/// Returns `n` small boxes in the unit cube.
pub fn leaves(n: usize) -> Vec<[f32; 6]> {
    let part = |k: usize| ((k * k * 7 + k * 7919 + 13) % 1009) as f32 / 1009.0;
    (0..n).map(|i| std::array::from_fn(|k| part(3 * i + k % 3) + if k < 3 { 0.0 } else { 0.1 })).collect()
}

/// Returns `n` rays.
pub fn rays(n: usize) -> Vec<[f32; 2]> {
    let part = |k: usize| ((k * k * 31 + k * 389 + 7) % 997) as f32 / 997.0;
    (0..n).map(|i| [part(2 * i), part(2 * i + 1)]).collect()
}

/// Returns the nearest hits, from all leaves.
pub fn nearest(leaves: &[[f32; 6]], rays: &[[f32; 2]]) -> Vec<f32> {
    let hit = |ray: &[f32; 2]| {
        let inside = |leaf: &&[f32; 6]| (0..2).all(|k| leaf[k] <= ray[k] && ray[k] <= leaf[k + 3]);
        leaves.iter().filter(inside).map(|leaf| leaf[2]).fold(f32::INFINITY, f32::min)
    };
    rays.iter().map(hit).collect()
}

/// Compares with a search of all leaves.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let (leaves, rays) = (leaves(100), rays(200));
    let tree = tree(&leaves);
    let (on_boxes, on_child) = (device.upload(tree.boxes.as_flattened())?, device.upload(&tree.child)?);
    let (on_rays, mut hits) = (device.upload(&rays)?, device.zeros::<f32>(200)?);
    trace::launch(&device, &on_boxes, &on_child, &on_rays, &mut hits)?;
    let hits = hits.download()?;
    assert_eq!(hits, nearest(&leaves, &rays));
    println!("{} of {} rays hit", hits.iter().filter(|z| z.is_finite()).count(), hits.len());
    Ok(())
}
