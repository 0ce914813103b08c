//! Breadth-first search: a launch for each level, which finds the frontier of the next one.
//!
//! ```text
//! cargo run --release -p kernels-rs --example bfs
//! ```
//!
//! The file shows a vertex claimed by `compare_exchange`, and a list filled through a counter.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::collections::VecDeque;
use std::error::Error;

/// The distance of a vertex that was not reached.
#[device]
pub const UNREACHED: u32 = u32::MAX;

/// Visits the neighbors of the first `count` vertices of the frontier. Neighbors that are reached
/// for the first time get distance `level` and form the next frontier, in any order. The neighbors
/// of vertex v are `ends[starts[v]..starts[v + 1]]`.
#[kernel(block = 128, grid = count.div_ceil(128))]
#[requires(count <= frontier.len(), next.len() == distance.len(), found.len() == 1)]
#[requires(starts.len() == distance.len() + 1)]
pub fn expand(
    level: u32,
    count: usize,
    frontier: &[u32],
    starts: &[u32],
    ends: &[u32],
    distance: &mut [u32],
    next: &mut [u32],
    found: &mut [u32],
) {
    let i = grid::index();
    if i < count {
        let v = frontier[i] as usize;
        for e in starts[v] as usize..starts[v + 1] as usize {
            let to = ends[e];
            if distance.compare_exchange(to as usize, UNREACHED, level) == UNREACHED {
                next[found.fetch_add(0, 1) as usize] = to;
            }
        }
    }
}

/// Returns a graph of `n` vertices with three or four edges each, as starts and ends.
pub fn graph(n: u32) -> (Vec<u32>, Vec<u32>) {
    let neighbors =
        |v: u32| [v + 1, v * 7 + 3, v * v % n + 5, v / 2].map(|to| to % n).into_iter().take(3 + v as usize % 2);
    let starts = (0..=n).map(|v| (0..v).map(|v| neighbors(v).count() as u32).sum());
    (starts.collect(), (0..n).flat_map(neighbors).collect())
}

/// Returns the distances from vertex 0, by a queue.
pub fn distances(starts: &[u32], ends: &[u32]) -> Vec<u32> {
    let mut distance = vec![UNREACHED; starts.len() - 1];
    distance[0] = 0;
    let mut queue = VecDeque::from([0usize]);
    while let Some(v) = queue.pop_front() {
        for to in &ends[starts[v] as usize..starts[v + 1] as usize] {
            if distance[*to as usize] == UNREACHED {
                distance[*to as usize] = distance[v] + 1;
                queue.push_back(*to as usize);
            }
        }
    }
    distance
}

/// Searches a graph from vertex 0.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let n = 500;
    let (starts, ends) = graph(n);
    let (on_starts, on_ends) = (device.upload(&starts)?, device.upload(&ends)?);
    let mut distance = vec![UNREACHED; n as usize];
    distance[0] = 0;
    let mut distance = device.upload(&distance)?;
    let (mut frontier, mut next) = (device.zeros::<u32>(n as usize)?, device.zeros::<u32>(n as usize)?);
    let (mut count, mut level) = (1, 0);
    while count > 0 {
        level += 1;
        let mut found = device.zeros::<u32>(1)?;
        expand::launch(&device, level, count, &frontier, &on_starts, &on_ends, &mut distance, &mut next, &mut found)?;
        count = found.download()?[0] as usize;
        std::mem::swap(&mut frontier, &mut next);
    }
    assert_eq!(distance.download()?, distances(&starts, &ends));
    println!("{n} vertices in {level} levels");
    Ok(())
}
