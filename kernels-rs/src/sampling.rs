//! The next token from its logits, without leaving the device: the most likely one, or a random
//! one. The entry point is [`Sample`].
//!
//! | kernels | for |
//! |---|---|
//! | [`best::best_parts`], [`best::best_of_parts`] | arg-max; a draw from all tokens, as the arg-max of logits with Gumbel noise |
//! | [`top::likeliest_of_parts`], [`top::sample_top`] | a draw from up to 1024 likeliest tokens, or from the likeliest of them whose probabilities add up to p |
//! | [`nucleus::ends_of_parts`], [`nucleus::level_sums`], [`nucleus::level_tokens`], [`nucleus::draw_likely`] | a draw from the likeliest tokens of all whose probabilities add up to p |
//! | [`threshold::sample_likely`] | a draw from more than 1024 likeliest tokens |
//!
//! # The limits
//!
//! A vocabulary is long, about 150,000, and rows are few. A draw from all tokens needs no sum and
//! no sort. The arg-max of x/T + g is distributed as softmax(x/T) if the g are independent and
//! −log(−log u), with u uniform (Gumbel, 1954; Maddison, Tarlow, Minka, *A\* sampling*, 2014).
//! Therefore a row is read once, by enough blocks to fill the device. Top-k is a radix select in
//! two kernels: blocks keep the k likeliest of each 8192 logits, which they read once, and a block
//! draws from those. Top-p of a whole vocabulary is a histogram of probabilities, from which a
//! block selects and draws. The row is read three times, from the L2 cache after the first time.
//!
//! # Random numbers
//!
//! Random numbers are a function of seed, offset, row and column ([`random`]): the same call draws
//! the same tokens on every device. A loop that draws successive tokens increments the offset.
//!
//! # Extreme inputs
//!
//! [`Sample`] documents the results of extreme logits and temperatures. The arg-max is taken of x +
//! T·g instead of x/T + g, which need not be finite. Sums are exact, so that the noise has an
//! effect on logits of any size.
//!
//! # Measured
//!
//! Measured on an H100 (driver 580, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite sampling`, for a row of 151,936 logits and for 64 rows. A copy of the
//! logits takes 2.0 and 12.1 µs:
//!
//! - the likeliest token: 5.6 and 15.2 µs; a draw from all tokens: 7.2 and 39.7 µs;
//! - from the likeliest 50: 19 and 60 µs; from 1024 with p = 0.9: 33 and 76 µs. One block for each
//!   row took 171 and 180 µs, and 149 and 189 µs. Most of that time was the latency of loads, one
//!   at a time, and of atomic additions of equal digits. Blocks that read their logits again in
//!   each round took 71 and 94 µs for 64 rows;
//! - with p = 0.9 alone: 36 and 112 µs, and on an H200 21.7 and 74 µs after the draw was changed
//!   as [`nucleus`] describes. One block for each row, which reads the row about ten times, took
//!   311 and 318 µs.

pub mod best;
mod call;
pub mod nucleus;
pub mod random;
pub mod threshold;
pub mod top;

pub use call::Sample;
