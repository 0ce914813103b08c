//! Cases of the example `keccak`: the permutation in plain Rust, which gives the known digest.

use super::trial::{Trial, trials};
use crate::examples::keccak::{EMPTY, empty, keccak};
use runtime::testing::{Expected, Input};

trials!(keccak, |_| {
    let digest: Vec<u8> = permuted(empty())[..4].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(digest, EMPTY);
    let of = |n: usize| {
        let mut x: Vec<u64> = empty().to_vec();
        x.extend((25..25 * n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let all: Vec<u64> = x.chunks(25).flat_map(|state| permuted(state.try_into().expect("25 words"))).collect();
        Trial::new(format!("{n} states"), [Input::view(&x, [n, 25])], [Expected::exact(0, all)])
    };
    [1, 3, 129].into_iter().map(of).collect()
});

/// Permutes a state. The constants and offsets come from the definitions in FIPS 202, and not from
/// tables.
fn permuted(state: [u64; 25]) -> [u64; 25] {
    let mut a = state;
    let mut bits = 1u8;
    let mut next_bit = || {
        let bit = bits & 1;
        bits = if bits & 0x80 != 0 { (bits << 1) ^ 0x71 } else { bits << 1 };
        u64::from(bit)
    };
    for _ in 0..24 {
        let column = |x: usize| (0..5).fold(0, |sum, y| sum ^ a[x % 5 + 5 * y]);
        let spread: [u64; 5] = std::array::from_fn(|x| column(x + 4) ^ column(x + 1).rotate_left(1));
        (0..25).for_each(|i| a[i] ^= spread[i % 5]);
        let before = a;
        let (mut x, mut y) = (1, 0);
        for t in 0..24u32 {
            let to = (y, (2 * x + 3 * y) % 5);
            a[to.0 + 5 * to.1] = before[x + 5 * y].rotate_left((t + 1) * (t + 2) / 2 % 64);
            (x, y) = to;
        }
        let before = a;
        let at = |x: usize, y: usize| before[x % 5 + 5 * y];
        (0..25).for_each(|i| a[i] = at(i % 5, i / 5) ^ (!at(i % 5 + 1, i / 5) & at(i % 5 + 2, i / 5)));
        a[0] ^= (0..7).fold(0, |constant, j| constant | next_bit() << ((1 << j) - 1));
    }
    a
}
