//! Attention: softmax(Q·Kᵀ)·V, of many queries and of one. [`Attention`], [`Append`] and [`Decode`] are what to call.
//!
//! | kernels | for | a block's work |
//! |---|---|---|
//! | [`prefill::flash_attention`] | many queries | 128 or 64 queries of a head, over tiles of 64 keys |
//! | [`decode::flash_decode`] | one query a sequence | a split of a sequence's keys, with all query heads that share them |
//! | [`backward::attention_delta`], [`backward::attention_gradient`] | gradients | 64 queries, or 64 keys |
//! | [`debug::attention_scores`] | looking at logits | 64 queries by 64 keys |
//! | [`append::cache_append`] | a step's new keys and values | a head |
//!
//! # Many queries
//!
//! A warp owns 16 queries, a thread four of them, with eight keys of a tile of scores and with a row of squares of the output. No score goes to
//! memory: the softmax goes on from tile to tile with each row's largest logit and sum (Milakov and Gimelshein, 2018; Dao and others, 2022).
//!
//! ```text
//!        slices of 8 products            S, in registers        P, shared          O, in registers
//!   Q ▒▒ 128 × 8 ┐ two of each,     ┌────────────────────┐   ┌─────────┐   V    ┌─────────────────┐
//!   K ▒▒  64 × 8 ┘ side by side ──▶ │ 16 × 64 a warp     │──▶│ 64 × 128│─┐ ▒▒▒▒ │ 16 × W a warp   │
//!                                   │ 4 × (4 + 4) a      │   │ a row a │ ├──────▶ 4 × (4 + 4 + …) a │
//!                                   │ thread             │   │ key     │ │slices │ thread          │
//!                                   └────────────────────┘   └─────────┘ │of 8   └─────────────────┘
//!                                    max, exp2, sum: by the               │keys
//!                                    eight lanes of a row                 ┘
//! ```
//!
//! Both products are as in [`gemm`](crate::gemm): outer products of fragments that come as `ld.shared.v4` without bank conflicts, from two slices in
//! turn, the next of which is on its way from global memory meanwhile. Slices run along the head's dimension, so that heads of any size fit
//! 48 KB: Q is read again for each tile of keys, from L2. Values wider than 128 are a second block's work.
//!
//! What a query sees is a band: `left` keys before its position and `right` behind. Tiles without a key that is seen are left out; those that have
//! others, too, are masked. Where rows have unlike work, blocks run the long ones first, every second wave backwards.
//!
//! A call lasts as long as its longest block. Where that would run on alone, because blocks are few or some have much more to do, lists of tiles of keys are
//! cut into parts as long as what each place for a block has to do at least, and the part that ends last brings a tile of queries together. Of 16 heads with 2048 causal
//! queries, on a device with 264 places, a tile of 128 queries sees 2, 4, … 32 tiles of keys, 16.5 for each place: cut at 17, nearly all places have 17.
//!
//! ```text
//!   the longest first                what is left of those lies beside the others
//!   ████████████████▌ 17 of 32       ████████████████ 16, of a short row     ▌ 1, of 18
//!   ████████████████▌ 17 of 30       ███████████████  15, the rest of 32     ██ 2, of a short row
//!   ████████████████▌ 17 of 28       ██████████████   14, of a short row     ███ 3, the rest of 20
//!            …                                  …                                …
//! ```
//!
//! # What limits it on sm_61
//!
//! A thread holds 64 sums of O and 32 of S, and 128 registers are what a multiprocessor has for 16 warps. So whatever else a block knows waits in
//! shared memory until it is wanted, and the coming slices of both operands take turns in the same registers. The loop over slices of Q and K has 512
//! FFMA in 559 issue slots, that over V 1024 in 1054 (`tests/tests/budgets.rs` holds them to 80 %). A tile of scores costs its exponentials, 32 a
//! thread at a quarter of the rate, beside 8192 multiplications. What is left is shared memory: 12 numbers are read for 32 multiplications in the one
//! and 20 for 64 in the other, where a matrix product reads 16 for 64.
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
//! | 1 × 16 × 2048 × 128, `f32` | 39.4 TFLOP/s | 35.7 | 0.91, 1.09 |
//! | 1 × 16 × 4096 × 128, `f32` | 39.8 | 37.2 | 0.88, 0.94 |
//! | 4 × 16 × 512 × 64, `f32` | 37.2 | 27.0 | 1.34, 1.46 |
//! | 1 × 16 × 2048 × 80, `f32` | 37.7 | 34.0 | 1.27, 1.51 |
//! | 1 × 16 × 2048 × 128, `f16` | 37.1 | 34.0 | |
//! | masks of 16 × 4096 × 128, half and a tenth of the blocks | 0.51, 0.11 of the time | | |
//!
//! Gradients take 6.7 times the forward pass. A step over 8192 keys of eight heads reads 3.08 TB/s, 0.85 × a copy, over 65,536 4.20, 1.00 ×; of `f16` over 32,768 3.11, 0.80 ×.
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
