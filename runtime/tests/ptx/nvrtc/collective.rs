//! `cuda/collective.cu`.

use super::{Kernel, module, numbers, singles};
use kernel_dsl::compiler::ptx::Module;

fn collective() -> Module {
    module(include_str!("../cuda/collective.ptx"))
}

fn integers(seed: u64, n: usize, most: u64) -> Vec<i32> {
    numbers(seed).take(n).map(|x| (x % (2 * most)) as i32 - most as i32).collect()
}

#[test]
fn a_tree_in_shared_memory_sums_each_block() {
    let x = integers(1, 1000, 1000);
    let out = Kernel::of(&collective(), "reduce_tree", 4, 256).read(&x).written(&[0i32; 4]).bits(1000).run();
    assert_eq!(out.get::<i32>(0), x.chunks(256).map(|c| c.iter().sum()).collect::<Vec<i32>>());
}

#[test]
fn shuffles_sum_each_block() {
    let x = singles(2, 777);
    let out = Kernel::of(&collective(), "reduce_warps", 1, 128).read(&x).written(&[0f32]).bits(777).run();
    // The order of the kernel: by thread, then by halves of a warp, then of the block.
    let mut part: Vec<f32> = (0..128).map(|t| x[t..].iter().step_by(128).fold(0.0, |s, v| s + v)).collect();
    for warp in part.chunks_mut(32) {
        for d in [16, 8, 4, 2, 1] {
            (0..d).for_each(|i| warp[i] += warp[i + d]);
        }
    }
    let (a, b, c, d) = (part[0], part[32], part[64], part[96]);
    assert_eq!(out.get::<f32>(0), [(a + c) + (b + d)]);
}

#[test]
fn the_last_block_sums_all_parts() {
    let x: Vec<u32> = numbers(3).take(500).map(|x| x as u32).collect();
    let out = Kernel::of(&collective(), "reduce_last_block", 8, 64)
        .read(&x)
        .written(&[0u32; 8])
        .written(&[0u32])
        .written(&[0u32])
        .bits(500)
        .run();
    assert_eq!(out.get::<u32>(1), [x.iter().fold(0u32, |s, v| s.wrapping_add(*v))]);
    assert_eq!(out.get::<u32>(2), [0]);
}

#[test]
fn running_sums_agree_with_rust() {
    let x = integers(4, 200, 50);
    let sums: Vec<i32> = x.iter().scan(0, |s, v| Some(std::mem::replace(s, *s + v) + v)).collect();
    let kernel = Kernel::of(&collective(), "scan_block", 1, 256).shared(2048);
    assert_eq!(kernel.read(&x).written(&[0i32; 200]).bits(200).run().get::<i32>(0), sums);
    let x: Vec<u32> = numbers(5).take(100).map(|x| x as u32).collect();
    let out = Kernel::of(&collective(), "scan_warps", 2, 64).read(&x).written(&[0u64; 100]).bits(100).run();
    let sums = x.chunks(32).flat_map(|c| {
        c.iter().scan(0u64, |s, v| {
            *s += u64::from(*v);
            Some(*s)
        })
    });
    assert_eq!(out.get::<u64>(0), sums.collect::<Vec<_>>());
}

#[test]
fn a_bitonic_network_sorts() {
    let x = integers(6, 512, 1 << 30);
    let out = Kernel::of(&collective(), "sort_bitonic", 2, 256).written(&x).run();
    let mut sorted = x;
    sorted.chunks_mut(256).for_each(<[i32]>::sort_unstable);
    assert_eq!(out.get::<i32>(0), sorted);
}

#[test]
fn a_histogram_counts_every_value() {
    let x: Vec<u8> = numbers(7).take(3000).map(|x| (x & x >> 8) as u8).collect();
    let out = Kernel::of(&collective(), "histogram", 3, 256).read(&x).written(&[0u32; 256]).bits(3000).run();
    let mut bins = vec![0u32; 256];
    x.iter().for_each(|v| bins[usize::from(*v)] += 1);
    assert_eq!(out.get::<u32>(0), bins);
}

#[test]
fn ballots_compact_positive_values() {
    let x = integers(8, 300, 100);
    let out = Kernel::of(&collective(), "compact_positive", 3, 128)
        .read(&x)
        .written(&[0i32; 300])
        .written(&[0i32])
        .bits(300)
        .run();
    let kept: Vec<i32> = x.into_iter().filter(|v| *v > 0).collect();
    assert_eq!(out.get::<i32>(1), [kept.len() as i32]);
    // The interpreter runs blocks and warps in order.
    assert_eq!(out.get::<i32>(0)[..kept.len()], kept);
}

#[test]
fn the_game_of_life_follows_its_rules() {
    let x: Vec<u32> = numbers(9).take(20).map(|x| x as u32).collect();
    let out = Kernel::of(&collective(), "life", 20, 32).read(&x).written(&[7u32; 20]).bits(20).run();
    let cell = |r: usize, c: usize| x[r % 20] >> (c % 32) & 1;
    let next = |r: usize| {
        (0..32).fold(0, |row, c| {
            let n: u32 = (0..9).filter(|k| *k != 4).map(|k| cell(r + 19 + k / 3, c + 31 + k % 3)).sum();
            row | u32::from(n == 3 || n == 2 && cell(r, c) == 1) << c
        })
    };
    assert_eq!(out.get::<u32>(0), (0..20).map(next).collect::<Vec<_>>());
}
