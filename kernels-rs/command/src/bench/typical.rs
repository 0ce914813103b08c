//! Rough speeds of an H100, and the bytes that keep data out of the L2 cache. The suites and
//! `kernels tune` derive the number of launches in one measurement from these speeds.

/// Total bytes of the weights that cold products read alternately: several times the L2 cache of a
/// card, as the layers of a model are.
pub(crate) const COLD_BYTES: usize = 256 << 20;

/// Target duration of one measurement, long enough to hide launch overhead and clock resolution.
pub(super) const LONG_NS: f64 = 5e6;

/// Floating-point operations per nanosecond of products in `f32`.
pub(crate) const PRODUCT_FLOP_PER_NS: f64 = 4e4;

/// Floating-point operations per nanosecond of attention in `f32`, and of products of any shape.
pub(super) const ATTENTION_FLOP_PER_NS: f64 = 3e4;

/// Operations per nanosecond of products of bytes, by `dp4a`.
pub(crate) const DP4A_OPERATIONS_PER_NS: f64 = 1e5;

/// Bytes per nanosecond of reads from memory.
pub(crate) const BYTES_PER_NS: f64 = 3e3;
