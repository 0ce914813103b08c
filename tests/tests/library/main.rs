//! Tests of the library's calls, on the CPU and on a GPU, against plain Rust.

mod append;
mod attention;
mod attention_cached;
mod attention_extremes;
mod blocks;
mod convolution;
mod dense;
mod formats;
mod memory_bound;
mod preload;
mod projected;
mod quant;
mod refusals;
mod rowwise;
mod sampling;
mod shapes;
