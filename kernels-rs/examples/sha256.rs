//! SHA-256 of many short messages: a thread for each message, with its schedule in registers.
//!
//! ```text
//! cargo run --release -p kernels-rs --example sha256
//! ```
//!
//! The file shows tables of constants that are read with constant indices, and rotations. A full
//! unroll keeps an array of 16 words in registers.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// The first words of the fractional parts of the square roots of the first eight primes.
#[device]
pub const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// The first words of the fractional parts of the cube roots of the first 64 primes.
#[device]
pub const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

/// Computes the digest of each row of x, a padded message of one block, as eight words.
#[kernel(block = 128, grid = x.rows().div_ceil(128))]
#[requires(x.cols() == 16, y.cols() == 8, y.rows() == x.rows())]
pub fn sha256(x: View<u32, 2>, mut y: ViewMut<u32, 2>) {
    let i = grid::index();
    if i >= x.rows() {
        return;
    }
    let mut w: [u32; 16] = std::array::from_fn(|j| x[(i, j)].swap_bytes());
    let mut state = INITIAL;
    for t in unroll(0..64) {
        if t >= 16 {
            let (a, b) = (w[(t + 1) % 16], w[(t + 14) % 16]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            w[t % 16] = w[t % 16].wrapping_add(s0).wrapping_add(w[(t + 9) % 16]).wrapping_add(s1);
        }
        let [a, b, c, d, e, f, g, h] = state;
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUND[t]).wrapping_add(w[t % 16]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        state = [t1.wrapping_add(s0).wrapping_add(majority), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    for j in unroll(0..8) {
        y[(i, j)] = state[j].wrapping_add(INITIAL[j]);
    }
}

/// Returns a message of at most 55 bytes, padded to one block.
pub fn padded(message: &[u8]) -> [u32; 16] {
    let mut bytes = [0u8; 64];
    bytes[..message.len()].copy_from_slice(message);
    bytes[message.len()] = 0x80;
    bytes[56..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    std::array::from_fn(|j| u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[4 * j + k])))
}

/// The message and digest of FIPS 180-4's first example, and those of the empty message.
pub const KNOWN: [(&str, [u32; 8]); 2] = [
    ("abc", [0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad]),
    ("", [0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924, 0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855]),
];

/// Computes the known digests.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let messages: Vec<u32> = KNOWN.iter().flat_map(|(message, _)| padded(message.as_bytes())).collect();
    let x = device.upload(&messages)?;
    let mut y = device.zeros::<u32>(8 * KNOWN.len())?;
    sha256::launch(&device, x.view([KNOWN.len(), 16])?, y.view_mut([KNOWN.len(), 8])?)?;
    for ((message, known), digest) in KNOWN.iter().zip(y.download()?.chunks(8)) {
        assert_eq!(digest, known);
        println!("{message:?}: {}", digest.iter().map(|word| format!("{word:08x}")).collect::<String>());
    }
    Ok(())
}
