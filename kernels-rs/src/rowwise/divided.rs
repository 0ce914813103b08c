//! Rows that several blocks share, because registers of one block cannot hold them.
//!
//! A block keeps its part of the row in registers, and publishes two numbers, such as the part's
//! maximum and sum. Then the block waits for the numbers of the other parts, and combines all of
//! them in a fixed order. Each element is read once and written once:
//!
//! ```text
//!   block 0   │ part 0 → registers │ publish │ poll 0 … 3 │ combine │ write part 0 │
//!   block 1   │ part 1 → registers │ publish │ poll 0 … 3 │ combine │ write part 1 │
//!   …                                   ╰──── two words for each part ────╯
//! ```
//!
//! A block may wait for a later one, which starts late or never if other launches fill the device.
//! Therefore a block polls a limited number of times. Then it reads the row, and computes the
//! numbers of all parts itself, by the same operations in the same order: the result has the same
//! bits. So no launch depends on which blocks run at the same time, and the interpreters can run
//! blocks one after another.
//!
//! A word has the 32 bits of a number, and a flag above them. Both become visible at once, so that
//! no block needs a fence. The last block of a row to read the words sets them back to 0.

use crate::counters::{MAX_POLLS, PUBLISHED};
use kernel_dsl::prelude::*;

/// The maximum number of parts of a row.
#[device]
pub const MAX_PARTS: usize = 128;

/// Publishes `own`, the numbers of part `part`, and writes those of all parts to `all`. All threads
/// of the block may read `all` after the call, and all call it. Returns the number of blocks that
/// had read the words before, to thread 0; [`clear`] needs it.
///
/// `links` are the words of the row, 0 at first: two for each part, and the number of blocks that
/// have read them. `of_part` returns the numbers of any part to thread 0; it may use barriers.
#[device]
pub fn exchange<const L: usize>(
    links: ViewMut<u64, 1>,
    part: usize,
    parts: usize,
    own: [f32; 2],
    mut all: Shared<f32, 2>,
    of_part: impl Fn(usize) -> [f32; 2],
) -> u32 {
    if thread::x() == 0 {
        for i in unroll(0..2) {
            links.exchange(2 * part + i, published(own[i]));
        }
    }
    let mut late = false;
    for i in rolled((thread::x()..2 * parts).step_by(L)) {
        let mut word = 0u64;
        for _ in rolled(0..MAX_POLLS) {
            // Loads poll faster, and delay the words of other blocks.
            word = links.fetch_or(i, 0);
            if word >= PUBLISHED {
                break;
            }
        }
        late = late || word < PUBLISHED;
        all[(i / 2, i % 2)] = f32::from_bits(word as u32);
    }
    if block::any(late) {
        for part in rolled(0..parts) {
            let numbers = of_part(part);
            if thread::x() == 0 {
                all[(part, 0)] = numbers[0];
                all[(part, 1)] = numbers[1];
            }
            // `of_part` uses the same shared memory for the next part.
            block::sync();
        }
    }
    let mut before = 0u32;
    if thread::x() == 0 {
        before = links.fetch_add(2 * parts, 1) as u32;
    }
    before
}

/// Sets the words of a row back to 0 if `before`, the result of [`exchange`], says that all other
/// blocks have read them. A block calls it last, so that it does not wait for the atomic addition.
#[device]
pub fn clear(links: ViewMut<u64, 1>, parts: usize, before: u32) {
    if thread::x() == 0 && before as usize + 1 == parts {
        for i in 0..2 * parts + 1 {
            links.store_relaxed(i, 0);
        }
    }
}

/// Returns the word of a published number. A NaN has the same bits on every device.
#[device]
fn published(number: f32) -> u64 {
    let bits = if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() };
    bits as u64 | PUBLISHED
}
