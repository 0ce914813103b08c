//! Kernels of experts.

mod bitonic;
mod conv3d;
mod elementwise;
mod histogram;
mod scan;
mod sgemm;
mod topk;
