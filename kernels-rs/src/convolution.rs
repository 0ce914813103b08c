//! Convolution of volumes by im2col: each window becomes a row of a matrix, and the convolution a
//! product (Chellapilla, Puri, Simard, *High performance convolutional neural networks for document
//! processing*, 2006). The entry point is [`Convolution`]: the patch embedding of a vision tower,
//! and layers with strides, padding and dilation.
//!
//! | kernel | for | a thread's work |
//! |---|---|---|
//! | [`columns::im2col`] | the matrix of windows | a column of it, or several adjacent ones, for 8 windows |
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
//! # The limits
//!
//! An element of x is stored once for each window that contains it, so that the matrix has kd·kh·kw
//! / stride³ times the elements of x. If the stride equals the kernel and there is no padding, as
//! in a patch embedding, windows do not overlap. Each element is then read once and written once,
//! without comparisons, by 16 bytes if rows of windows allow it. If a window is a single element,
//! the product reads x itself. A matrix larger than 256 MB is made and used in pieces
//! ([`Convolution::at_once`]).

pub mod columns;
mod run;

pub use run::{ChannelBias, Convolution};
