//! The next token from its logits, without leaving the device: the most likely one, or one drawn.
//! [`Sample`] is what to call.
//!
//! | kernels | for |
//! |---|---|
//! | [`best::best_parts`], [`best::best_of_parts`] | arg-max; a draw from all tokens, as the arg-max of logits with Gumbel noise |
//! | [`top::sample_top`] | a draw from up to 1024 likeliest tokens, or of these the likeliest whose probabilities reach p |
//! | [`threshold::sample_likely`] | the same of more tokens, or of all |
//!
//! # What limits them
//!
//! A vocabulary is long, 150,000 or so, and rows are few. A draw from all of it needs no sum and no
//! sort: the arg-max of x/T + g is distributed as softmax(x/T) where the g are independent and
//! −log(−log u), u uniform (Gumbel, 1954; Maddison, Tarlow, Minka, *A\* sampling*, 2014). So a row
//! is read once, by as many blocks as fill the device. Top-k is a radix select and reads its row
//! three or four times, by one block, after the first time from the second cache; top-p of a whole
//! vocabulary is one by sums of probabilities.
//!
//! # Random numbers
//!
//! They are a function of seed, offset, row and column ([`random`]): the same call draws the same
//! tokens on every device. A loop that draws one token after another counts the offset.
//!
//! # Extreme inputs
//!
//! [`Sample`] says what extreme logits and temperatures give. The arg-max is of x + T·g and not of
//! x/T + g, which need not be finite; sums are exact, so that the noise counts beside logits of any
//! size.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench sampling`, a row of
//! 151,936 logits and 64 of them: the likeliest 5.4 and 16.2 µs, a token of all 6.5 and 43.8; of
//! the likeliest 50 184 and 188, of 1024 with p = 0.9 158 and 195, of p = 0.9 alone 335 and 340:
//! one block has a row, and reads it several times.

pub mod best;
mod call;
pub mod random;
pub mod threshold;
pub mod top;

pub use call::Sample;
