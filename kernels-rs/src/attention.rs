//! Attention: softmax(Q·Kᵀ)·V, for many queries and for a few. The entry points are [`Attention`],
//! [`Append`] and [`Decode`].
//!
//! | kernels | for | a block's work |
//! |---|---|---|
//! | [`prefill::flash_attention`] | many queries | 64 queries of a head, in steps of 128 keys; or 128 or 64 queries, in steps of 64 |
//! | [`prefill::flash_attention_cached`] | many queries, over a cache | the same |
//! | [`decode::flash_decode`] | one to 16 tokens a sequence | a split of a sequence's keys, with all tokens and query heads that share them |
//! | [`backward::attention_gradient_q`], [`backward::attention_gradient_kv`] | gradients | 64 queries, or 64 keys |
//! | [`backward::attention_delta`] | Σ dO·O for the gradients | four queries |
//! | [`debug::attention_scores`] | inspecting logits | 64 queries by 64 keys |
//! | [`append::cache_append`] | a step's new keys and values | a head |
//!
//! # Many queries
//!
//! A warp owns 16 queries. No score is stored to memory: the softmax is carried from tile to tile
//! by each row's largest logit and sum (Milakov and Gimelshein, 2018; Dao and others, 2022). For
//! heads of 128 `f32` a thread has eight queries, and with them eight of a step's 128 keys and
//! eight elements of O:
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
//! For narrower heads a thread has four queries, a step has 64 keys, and a block of 256 threads has
//! 128 queries. 16-bit floats are converted to `f32` when they are stored to shared memory.
//!
//! Both products work as in [`gemm`](crate::gemm): outer products of fragments, which are loaded by
//! `ld.shared.v4` without bank conflicts. Two slices alternate; the next is loaded from global
//! memory during the products of the current one. Slices run along the head's dimension, so that
//! heads of any size fit in 48 KB: Q is read again for each step, from L2. Further blocks compute
//! the elements of a value beyond the first 128.
//!
//! A query sees a band of keys: `left` keys before its position and `right` after it. A tile
//! without a seen key is skipped; a partially seen tile is masked.
//!
//! A call lasts until its last block ends. If blocks are few, or some have much more work, the last
//! ones would run alone. Therefore lists of key tiles are cut into parts, one for each block. The
//! block that ends last reduces the results of a tile of queries. A table assigns the work to
//! blocks. The host makes the table when a shape is first used, and caches it with the device or
//! the mask. The host simulates several ways to cut and to order the lists, and takes the one that
//! ends first. An example: 16 heads with 2048 causal queries, on a device with 396 block slots. A
//! tile of 64 queries sees 1, 2, … 32 tiles of keys, 21.3 for each slot. If lists are cut after 24
//! tiles, all slots have about the same work:
//!
//! ```text
//!   the longest first                      the remainders share slots with other lists
//!   ████████████████████████ 24 of 32      █████████████████████ 21, of a short row    ███ 3, of 27
//!   ████████████████████████ 24 of 30      ███████████████████   19, of a short row    █████ 5, of a short row
//!   ████████████████████████ 24 of 28      ████████████████      16, of a short row    ████████ 8, the rest of 32
//!            …                                  …                                     …
//! ```
//!
//! The lists of a mask have scattered keys, so that concurrent blocks share few of them. The lists
//! are processed head by head, so that a head's keys stay in the cache. Only the last two rounds of
//! blocks take the longest remaining lists of all heads first.
//!
//! # Many queries over a cache
//!
//! [`Attention::run_cached`] reads keys and values as a [`cache`] stores them: `f32`, 16-bit
//! floats, bytes with scales, q8_0 and q4_0, contiguous or in pages. One generic function serves
//! all formats. For floats, the machine code is that of a kernel for floats alone. A thread keeps a
//! word of 8-bit or 4-bit integers and its scale in registers. The thread converts the word when it
//! stores it to shared memory. The products read `f32` in every case.
//!
//! The plane and the row of each key of a step are kept in shared memory. For each load, the
//! address is computed from the plane and the row. On sm_61 the loop over slices of Q and K has
//! 1024 FFMA in 1188 issue slots for q8_0 in pages, where `f16` has 1078. The loop over V has 1143
//! instead of 1064. Contiguous caches spill 88 bytes and caches in pages 8, most of them in the
//! second pass for non-finite values.
//!
//! The table has times on an H200 in ms: the last tokens of a text, causal, 16 query heads and 8
//! key heads of 128 elements. A copy converts q8_0 to `f16`, at most 32 MiB of keys and values at a
//! time:
//!
//! | tokens | keys | q8_0, with copies | q8_0 | q8_0, pages of 64 | q4_0 |
//! |---|---|---|---|---|---|
//! | 512 | 8192 | 0.843 | 0.900 | 0.890 | 0.937 |
//! | 512 | 32,768 | 3.433 | 3.621 | 3.574 | 3.857 |
//! | 64 | 8192 | 0.189 | 0.165 | 0.166 | 0.170 |
//! | 64 | 32,768 | 0.930 | 0.542 | 0.549 | 0.553 |
//! | 17 | 32,768 | 0.874 | 0.536 | 0.540 | 0.538 |
//!
//! Many tokens read each key often, and convert it each time: this costs 4 to 7 % more than one
//! conversion to a copy. Few tokens read each key once, and then the copy is slower.
//!
//! # The limits on sm_61
//!
//! A thread holds 64 sums of O and 64 of S, and a multiprocessor has 168 registers a thread for 12
//! warps. Therefore all other state of a block stays in shared memory until it is needed. The next
//! slices of the operands use the same registers one after the other. The loop over slices of Q and
//! K has 1024 FFMA in 1080 issue slots, that over V 1024 in 1073
//! (`tests/tests/machine_code/budgets.rs` requires 80 %). A whole step has 16,384 FFMA in some
//! 18,600 slots. Both loops read 16 numbers from shared memory for 64 multiplications, as a matrix
//! product does. An earlier design with four queries and eight keys a thread, and 16 warps, read 12
//! numbers for 32 multiplications. During its first product, a fifth of all cycles on an H200
//! issued nothing: shared memory was too slow there as well.
//!
//! # The cost of large logits
//!
//! The maximum is subtracted from a logit before the product with log₂ e. One fused multiply-add
//! would do both, but its products overflow for some finite logits. The subtraction takes one more
//! instruction for each of the 64 logits of a thread, of some 18,600 in a step. On sm_61 the loop
//! over steps has 4110 instead of 4086 instructions. On sm_90 the loop has 4272 instead of 4223, of
//! which five spill and reload three registers. On an H100 a call is up to 1.7 % slower.
//!
//! # A decoding step
//!
//! A decoding step is limited by memory, see [`decode`]. The cache holds `f32`, 16-bit floats,
//! bytes with scales, or blocks of 32 numbers with a scale (q8_0 and q4_0, see [`cache`]),
//! contiguous or in pages. A step can have several tokens of a sequence, such as drafts to be
//! verified. The cache is then read once for all of them ([`Decode::tokens`]).
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite attention` and `kernels bench --suite decode`. For comparison, torch
//! 2.11's memory-efficient attention, which uses tensor cores, ran on the same card:
//!
//! | batch × heads × length × element | full | causal | torch's time over ours |
//! |---|---|---|---|
//! | 1 × 16 × 2048 × 128, `f32` | 41.2 TFLOP/s | 40.2 | 0.96, 1.22 |
//! | 1 × 16 × 4096 × 128, `f32` | 43.5 | 43.1 | 0.96, 1.09 |
//! | 4 × 16 × 512 × 64, `f32` | 37.4 | 26.9 | 1.35, 1.47 |
//! | 1 × 16 × 2048 × 80, `f32` | 37.5 | 32.9 | 1.25, 1.45 |
//! | 1 × 16 × 2048 × 128, `f16` | 41.4 | 38.7 | |
//! | masks of 16 × 4096 × 128, half and a tenth of the blocks of 128 | 0.503, 0.108 of the time | | |
//! | the same masks with blocks of 64 | 0.537, 0.118 | | |
//! | a tenth of 16 × 8192 × 128, of blocks of 128 and 64 | 0.105, 0.112 | | |
//!
//! Blocks of 64 are slower because the cache has fewer hits: if all heads share one head's keys and
//! values, a tenth of 4096 takes 0.110 of the time. Prefetching the next step's keys by
//! `prefetch.global.L2` made it slower by 3 to 5 %.
//!
//! Gradients take 3.4 to 4.1 times as long as the forward pass, with 3.5 times the multiplications
//! (see [`backward`]). A decoding step over 8192 keys of eight heads reads 3.07 TB/s, 0.85 × the
//! rate of a copy; over 65,536 keys 4.20 TB/s, 1.00 ×; over 32,768 keys of `f16` 3.57 TB/s, 0.93 ×.
//!
//! # User-defined scores and layouts
//!
//! [`score::Score`], [`span::Sequences`] and [`span::MaskPattern`] are traits of device structs. A
//! kernel is compiled for each implementation, so that it contains no unused code. A user's crate
//! can implement others.

pub mod append;
pub mod backward;
pub mod cache;
mod call;
pub mod debug;
pub mod decode;
mod extend;
mod gradient;
mod join;
mod layout;
pub mod mask;
mod plan;
pub mod prefill;
mod rows;
mod schedule;
pub mod score;
mod simulation;
pub mod span;
mod step;
mod tile;

pub use cache::{KvCache, KvCacheMut};
pub use call::Attention;
pub use extend::Append;
pub use gradient::Gradients;
pub use layout::{Layout, Qkv};
pub use step::{Decode, Scratch};
