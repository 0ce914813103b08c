//! Sizes and shapes at which tiled kernels tend to fail.

use super::Random;

/// Returns sizes around tiles of `tile`, ascending and without duplicates. The sizes are 0, 1, the
/// tile and its neighbors, two tiles, the largest prime below the tile, and the smallest prime
/// above two tiles.
pub fn edges(tile: usize) -> Vec<usize> {
    let tile = tile.max(1);
    let mut sizes = vec![0, 1, tile - 1, tile, tile + 1, tile * 2];
    sizes.extend((2..tile).rev().find(|n| is_prime(*n)));
    sizes.extend((tile * 2 + 1..).find(|n| is_prime(*n)));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns shapes of `D` dimensions in which each size of each dimension occurs at least once, with
/// random sizes in the other dimensions. The list also combines all first sizes, all second sizes,
/// and so on. The number of shapes grows with the sum of the numbers of sizes, not with their
/// product.
pub fn shapes<const D: usize>(sizes: [&[usize]; D], random: &mut Random) -> Vec<[usize; D]> {
    let mut all = Vec::new();
    let longest = sizes.iter().map(|s| s.len()).max().unwrap_or(0);
    if sizes.iter().any(|s| s.is_empty()) {
        return all;
    }
    for i in 0..longest {
        all.push(sizes.map(|s| s[i.min(s.len() - 1)]));
    }
    for d in 0..D {
        for size in sizes[d] {
            let mut shape = sizes.map(|s| s[random.below(s.len())]);
            shape[d] = *size;
            all.push(shape);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn is_prime(n: usize) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_surround_the_tile() {
        assert_eq!(edges(16), [0, 1, 13, 15, 16, 17, 32, 37]);
        assert_eq!(edges(1), [0, 1, 2, 3]);
        assert_eq!(edges(0), edges(1));
    }

    #[test]
    fn each_size_occurs_in_each_dimension() {
        let (a, b) = (edges(16), edges(7));
        let all = shapes([&a, &b], &mut Random::new(1));
        assert!(a.iter().all(|n| all.iter().any(|s| s[0] == *n)));
        assert!(b.iter().all(|n| all.iter().any(|s| s[1] == *n)));
        assert!(all.len() <= 3 * a.len().max(b.len()));
        assert!(shapes([&a, &[]], &mut Random::new(1)).is_empty());
    }
}
