//! The formats of GGML's files, each in its own file.
//!
//! | | numbers of a block | bytes | bits a number | a number is |
//! |---|---|---|---|---|
//! | [`Q4_0`] | 32 | 18 | 4.5 | d · (q − 8) |
//! | [`Q4_1`] | 32 | 20 | 5 | d · q + m |
//! | [`Q5_0`] | 32 | 22 | 5.5 | d · (q − 16) |
//! | [`Q5_1`] | 32 | 24 | 6 | d · q + m |
//! | [`Q8_0`] | 32 | 34 | 8.5 | d · q |
//! | [`Q2K`] | 256 | 84 | 2.625 | d · s · q − m · t, s and t for each 16 |
//! | [`Q3K`] | 256 | 110 | 3.4375 | d · s · (q − 4), s for each 16 |
//! | [`Q4K`] | 256 | 144 | 4.5 | d · s · q − m · t, s and t for each 32 |
//! | [`Q5K`] | 256 | 176 | 5.5 | d · s · q − m · t, s and t for each 32 |
//! | [`Q6K`] | 256 | 210 | 6.5625 | d · s · (q − 32), s for each 16 |
//! | [`Iq4Nl`] | 32 | 18 | 4.5 | d · table\[q\] |
//! | [`Iq4Xs`] | 256 | 136 | 4.25 | d · s · table\[q\], s for each 32 |
//! | [`Mxfp4`] | 32 | 17 | 4.25 | 2^e · float of four bits |
//! | [`Int8`] | 32 | 32 | 8 | q, times a scale for each row; not of GGML |
//!
//! In the table, s, t and e are decoded values: some formats store them with a bias. A format's
//! file describes the fields of a block, the planes of a repacked row of blocks, and the rule of
//! quantization. The file also describes how 32 numbers of the planes become operands of `dp4a`.
//! [`device`] uses these descriptions in kernels, and [`host`] on the host. Planes hold all bits of
//! a file's blocks: repacking is lossless, and [`host::restore`] is its inverse.

pub mod device;
pub mod host;
mod int8;
mod iq4_nl;
mod iq4_xs;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

pub use int8::Int8;
pub use iq4_nl::Iq4Nl;
pub use iq4_xs::Iq4Xs;
pub use mxfp4::Mxfp4;
pub use q2_k::Q2K;
pub use q3_k::Q3K;
pub use q4_0::Q4_0;
pub use q4_1::Q4_1;
pub use q4_k::Q4K;
pub use q5_0::Q5_0;
pub use q5_1::Q5_1;
pub use q5_k::Q5K;
pub use q6_k::Q6K;
pub use q8_0::Q8_0;
