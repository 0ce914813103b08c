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
//! others, too, are masked. Where rows have unlike work, blocks run the long ones first, every second wave backwards.
//!
//! A call lasts as long as its longest block. Where that would run on alone, because blocks are few or some have much more to do, lists of tiles of keys are
//! cut into parts as long as what each place for a block has to do at least, and the part that ends last brings a tile of queries together. Of 16 heads with 2048 causal
//! queries, on a device with 396 places, a tile of 64 queries sees 1, 2, … 32 tiles of keys, 21.3 for each place: cut at 22, nearly all places have 22.
//!
//! ```text
//!   the longest first                     what is left of those lies beside the others
//!   ██████████████████████ 22 of 32       ████████████████████ 20, of a short row     ██ 2, of 24
//!   ██████████████████████ 22 of 30       ██████████████████   18, of a short row     ████ 4, of a short row
//!   ██████████████████████ 22 of 28       ████████████         12, of a short row     ██████████ 10, the rest of 32
//!            …                                  …                                     …
//! ```
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
//! | 1 × 16 × 2048 × 128, `f32` | 41.5 TFLOP/s | 38.8 | 0.96, 1.18 |
//! | 1 × 16 × 4096 × 128, `f32` | 42.9 | 41.2 | 0.96, 1.05 |
//! | 4 × 16 × 512 × 64, `f32` | 37.1 | 27.0 | 1.35, 1.48 |
//! | 1 × 16 × 2048 × 80, `f32` | 37.4 | 33.5 | 1.27, 1.49 |
//! | 1 × 16 × 2048 × 128, `f16` | 42.2 | 39.0 | |
//! | masks of 16 × 4096 × 128, half and a tenth of the blocks of 128 | 0.505, 0.112 of the time | | |
//! | the same, of 64 | 0.530, 0.117 | | |
//! | a tenth of 16 × 8192 × 128, of blocks of 128 and 64 | 0.104, 0.113 | | |
//!
//! Gradients take 7 times the forward pass. A step over 8192 keys of eight heads reads 3.08 TB/s, 0.85 × a copy, over 65,536 4.20, 1.00 ×; of `f16` over 32,768 3.57, 0.93 ×.
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
mod division;
mod extend;
mod gradient;
mod join;
pub mod mask;
pub mod prefill;
pub mod score;
pub mod span;
mod step;
mod tile;

pub use call::Attention;
pub use extend::{Append, AppendedScales};
pub use gradient::Gradients;
pub use step::{Decode, Scratch};
