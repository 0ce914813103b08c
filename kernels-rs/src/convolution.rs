//! Convolution of volumes by im2col: what each window sees becomes a row of a matrix, and the convolution a product (Chellapilla, Puri, Simard, *High performance convolutional
//! neural networks for document processing*, 2006). [`Convolution`] is what to call: the patch embedding of a vision tower, and layers with strides, padding and dilation.
//!
//! | kernel | for | a thread's work |
//! |---|---|---|
//! | [`columns::im2col`] | the matrix of windows | a column of it, or a piece of one, for 8 windows |
//! | [`gemm`](crate::gemm) | the product | |
//!
//! ```text
//!   x [sample, channel, depth, height, width]          a row a window: sample, od, oh, ow
//!   ┌─────────────┐                                    ┌─ c, kd, kh, kw ─────────┐
//!   │ ┌───┐       │                                    │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │ │▒▒▒│ ─────────────────────────────────────────▶ │                         │ · Wᵀ [out, c·kd·kh·kw]
//!   │ └───┘       │                                    └─────────────────────────┘
//!   └─────────────┘
//! ```
//!
//! # What limits it
//!
//! A window of kd·kh·kw elements is stored as often as windows overlap: kd·kh·kw / stride³ times x. Where the stride is the kernel and nothing is padded, as in a patch embedding,
//! windows part x among them: each element is read once and written once, without a comparison, in pieces of 16 bytes where rows of windows allow it. Where a window is an element,
//! the product reads x itself. The matrix is made and used piece by piece where it would be larger than 256 MB ([`Convolution::at_once`]).

pub mod columns;
mod run;

pub use run::{ChannelBias, Convolution};
