//! Tests of the specs of the library's kernels: their extreme inputs, and their cases on a GPU.

mod extreme_inputs;
mod gpu;
