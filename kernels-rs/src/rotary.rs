//! Rotary position embedding (Su and others, *RoFormer*, 2021): pairs of numbers of each head are turned by angles that grow with the token's position.
//!
//! [`Rotary`] is what to call. Pair i of a token at position p is turned by p · fᵢ:
//!
//! ```text
//!   (a, b) → (a·cos − b·sin, b·cos + a·sin)
//!
//!   Layout::Halves, as GPT-NeoX and Llama            Layout::Interleaved, as GPT-J
//!   │ a0 a1 a2 a3 │ b0 b1 b2 b3 │ as it is │         │ a0 b0 │ a1 b1 │ a2 b2 │ a3 b3 │ as it is │
//!   └──── turned, 2 · pairs ────┘                    └──────────── turned ───────────┘
//! ```
//!
//! A block has a token: its threads compute the sine and the cosine of each pair once, into shared memory, for all heads; what they will turn is
//! loaded before that, so that memory has work meanwhile. What limits it is memory: each element is read and written once, four numbers at a time.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench memory`, 32768 × 4096: of `f32` 4.06 TB/s, 0.97 × a copy, in place 4.01; of `f16` 4.07, 0.98 ×, in place 4.08.

pub mod kernels;
mod run;

pub use run::{Layout, Rotary};
