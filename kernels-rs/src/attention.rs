//! Attention: softmax(Q·Kᵀ)·V, of many queries and of one. [`Attention`], [`Append`] and [`Decode`] are what to call.
//!
//! | kernels | for | a block's work |
//! |---|---|---|
//! | [`prefill::flash_attention`] | many queries | 64 queries of a head, over 128 keys at a time; or 128 or 64 over 64 |
//! | [`decode::flash_decode`] | one query a sequence | a split of a sequence's keys, with all query heads that share them |
//! | [`backward::attention_delta`], [`backward::attention_gradient`] | gradients | 64 queries, or 64 keys |
//! | [`debug::attention_scores`] | looking at logits | 64 queries by 64 keys |
//! | [`append::cache_append`] | a step's new keys and values | a head |
//!
//! # Many queries
//!
//! A warp owns 16 queries. No score goes to memory: the softmax goes on from tile to tile with each row's largest logit and sum (Milakov and Gimelshein,
//! 2018; Dao and others, 2022). Of heads of 128 `f32` a thread has eight queries, with eight keys of a step's 128 and with eight elements of O:
//!
//! ```text
//!        slices of 8 products            S, in registers        P, shared          O, in registers
//!   Q ▒▒  64 × 8 ┐ two of each,     ┌────────────────────┐   ┌─────────┐   V    ┌─────────────────┐
//!   K ▒▒ 128 × 8 ┘ side by side ──▶ │ 16 × 128 a warp    │──▶│ 64 × 64 │─┐ ▒▒▒▒ │ 16 × 128 a warp │
//!                                   │ (4 + 4) × (4 + 4)  │   │ a row a │ ├──────▶ (4 + 4) × (4 + 4)│
//!                                   │ a thread           │   │ key     │ │slices │ a thread        │
//!                                   └────────────────────┘   └─────────┘ │of 8   └─────────────────┘
//!                                    max, exp2, sum: by the   twice, for │keys
//!                                    16 lanes of a row        64 keys    ┘
//! ```
//!
//! Narrower heads have four queries a thread, 64 keys a step, and 128 queries a block of 256 threads. Numbers of 16 bits are converted on their
//! way to shared memory.
//!
//! Both products are as in [`gemm`](crate::gemm): outer products of fragments that come as `ld.shared.v4` without bank conflicts, from two slices in
//! turn, the next of which is on its way from global memory meanwhile. Slices run along the head's dimension, so that heads of any size fit
//! 48 KB: Q is read again for each step, from L2. Values wider than 128 are a second block's work.
//!
//! What a query sees is a band: `left` keys before its position and `right` behind. Tiles without a key that is seen are left out; those that have
//! others, too, are masked.
//!
//! A call lasts until its last block ends. Where one would run on alone, because blocks are few or some have much more to do, lists of tiles of keys are
//! cut into parts, and the part that ends last brings a tile of queries together. Which block has what is a table, made on the host when a shape is first
//! asked for and kept with the device or the mask: of some ways to cut and to order lists it has the one that ends first in a simulation of the device. Of 16 heads with
//! 2048 causal queries, on a device with 396 places, a tile of 64 queries sees 1, 2, … 32 tiles of keys, 21.3 for each place: cut at 24, the others have as much beside them.
//!
//! ```text
//!   the longest first                      what is left of those lies beside the others
//!   ████████████████████████ 24 of 32      █████████████████████ 21, of a short row    ███ 3, of 27
//!   ████████████████████████ 24 of 30      ███████████████████   19, of a short row    █████ 5, of a short row
//!   ████████████████████████ 24 of 28      ████████████████      16, of a short row    ████████ 8, the rest of 32
//!            …                                  …                                     …
//! ```
//!
//! The lists of a mask have keys here and there, so that blocks which run at once share few: they go head by head, whose keys then stay in the cache, and only the last
//! two rounds of blocks are of all that is left, the longest first.
//!
//! # What limits it on sm_61
//!
//! A thread holds 64 sums of O and 64 of S, and 168 registers are what a multiprocessor has for 12 warps. So whatever else a block knows waits in
//! shared memory until it is wanted, and the coming slices of the operands take turns in the same registers. The loop over slices of Q and K has 1024
//! FFMA in 1080 issue slots, that over V 1024 in 1073 (`tests/tests/budgets.rs` holds them to 80 %), and all of a step 16,384 in some 18,600. Both read 16
//! numbers from shared memory for 64 multiplications, as a matrix product does. With four queries and eight keys a thread, and 16 warps, it was 12 for 32: on an H200,
//! whose shared memory is no faster for its multipliers, a fifth of all cycles issued nothing while the first product ran.
//!
//! # A step
//!
//! What limits it is memory, see [`decode`]. Its cache is of `f32`, 16-bit floats, or bytes with scales, in one piece or in pages.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench attention` and `kernels bench decode`; torch 2.11's memory-efficient attention, which uses
//! tensor cores, ran on the same card:
//!
//! | batch × heads × length × element | full | causal | torch over ours |
//! |---|---|---|---|
//! | 1 × 16 × 2048 × 128, `f32` | 41.2 TFLOP/s | 40.2 | 0.96, 1.22 |
//! | 1 × 16 × 4096 × 128, `f32` | 43.5 | 43.1 | 0.96, 1.09 |
//! | 4 × 16 × 512 × 64, `f32` | 37.4 | 26.9 | 1.35, 1.47 |
//! | 1 × 16 × 2048 × 80, `f32` | 37.5 | 32.9 | 1.25, 1.45 |
//! | 1 × 16 × 2048 × 128, `f16` | 41.4 | 38.7 | |
//! | masks of 16 × 4096 × 128, half and a tenth of the blocks of 128 | 0.503, 0.108 of the time | | |
//! | the same, of 64 | 0.537, 0.118 | | |
//! | a tenth of 16 × 8192 × 128, of blocks of 128 and 64 | 0.105, 0.112 | | |
//!
//! What blocks of 64 lack is the cache: with the keys and values of one head for all, 4096 take a tenth in 0.110 of the time. To ask for the next step's by `prefetch.global.L2` made
//! it slower by 3 to 5 %.
//!
//! Gradients take 7 times the forward pass. A step over 8192 keys of eight heads reads 3.07 TB/s, 0.85 × a copy, over 65,536 4.20, 1.00 ×; of `f16` over 32,768 3.57, 0.93 ×.
//!
//! # Own scores, own layouts
//!
//! [`score::Score`], [`span::Sequences`] and [`span::Pattern`] are traits of device structs, so that a kernel is compiled with what it needs and no
//! more: a user's crate can have others.

pub mod append;
pub mod backward;
pub mod cache;
mod call;
pub mod debug;
pub mod decode;
mod extend;
mod gradient;
mod join;
mod lengths;
pub mod mask;
mod plan;
pub mod prefill;
mod schedule;
pub mod score;
mod simulation;
pub mod span;
mod step;
mod tile;

pub use call::Attention;
pub use extend::{Append, AppendedScales};
pub use gradient::Gradients;
pub use step::{Decode, Scratch};
