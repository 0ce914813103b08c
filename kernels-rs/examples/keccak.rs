//! Keccak-f[1600], the permutation of SHA-3: a thread for each state of 25 words of 64 bits.
//!
//! ```text
//! cargo run --release -p kernels-rs --example keccak
//! ```
//!
//! The file shows tables whose elements are indices: π permutes the words of an array in registers.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The constants of ι.
#[device]
pub const ROUND: [u64; 24] = [
    0x0000000000000001,
    0x0000000000008082,
    0x800000000000808a,
    0x8000000080008000,
    0x000000000000808b,
    0x0000000080000001,
    0x8000000080008081,
    0x8000000000008009,
    0x000000000000008a,
    0x0000000000000088,
    0x0000000080008009,
    0x000000008000000a,
    0x000000008000808b,
    0x800000000000008b,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800a,
    0x800000008000000a,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
];

/// The rotations of ρ, in the order in which π visits the words.
#[device]
pub const ROTATE: [u32; 24] =
    [1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44];

/// The word to which π moves the previous one.
#[device]
pub const MOVE: [usize; 24] = [10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1];

/// Permutes each row of x, a state.
#[kernel(block = 128, grid = x.rows().div_ceil(128))]
#[requires(x.cols() == 25)]
pub fn keccak(mut x: ViewMut<u64, 2>) {
    let i = grid::index();
    if i >= x.rows() {
        return;
    }
    let mut a: [u64; 25] = std::array::from_fn(|j| x[(i, j)]);
    for round in rolled(0..24) {
        let c: [u64; 5] = std::array::from_fn(|k| a[k] ^ a[k + 5] ^ a[k + 10] ^ a[k + 15] ^ a[k + 20]);
        for j in unroll(0..25) {
            a[j] ^= c[(j + 4) % 5] ^ c[(j + 1) % 5].rotate_left(1);
        }
        let mut last = a[1];
        for t in unroll(0..24) {
            let next = a[MOVE[t]];
            a[MOVE[t]] = last.rotate_left(ROTATE[t]);
            last = next;
        }
        for y in unroll(0..5) {
            let row: [u64; 5] = std::array::from_fn(|k| a[5 * y + k]);
            for k in unroll(0..5) {
                a[5 * y + k] = row[k] ^ (!row[(k + 1) % 5] & row[(k + 2) % 5]);
            }
        }
        a[0] ^= ROUND[round];
    }
    for j in unroll(0..25) {
        x[(i, j)] = a[j];
    }
}

/// Returns the state that absorbs the empty message, for SHA3-256.
pub fn empty() -> [u64; 25] {
    let mut state = [0; 25];
    (state[0], state[16]) = (6, 1 << 63);
    state
}

/// The digest SHA3-256 of the empty message, from FIPS 202's examples.
pub const EMPTY: [u8; 32] = [
    0xa7, 0xff, 0xc6, 0xf8, 0xbf, 0x1e, 0xd7, 0x66, 0x51, 0xc1, 0x47, 0x56, 0xa0, 0x61, 0xd6, 0x62, 0xf5, 0x80, 0xff,
    0x4d, 0xe4, 0x3b, 0x49, 0xfa, 0x82, 0xd8, 0x0a, 0x4b, 0x80, 0xf8, 0x43, 0x4a,
];

/// Computes the digest of the empty message.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let mut x = device.upload(&empty())?;
    keccak::launch(&device, x.view_mut([1, 25])?)?;
    let digest: Vec<u8> = x.download()?[..4].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(digest, EMPTY);
    println!("SHA3-256 of nothing: {}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Ok(())
}
