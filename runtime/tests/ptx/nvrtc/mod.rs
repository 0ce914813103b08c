//! CUDA C that NVRTC compiled, against plain Rust. How the PTX was made: `cuda/README.md`.

mod collective;
mod numeric;
mod various;

use super::launch::{Kernel, module, near, numbers, singles};
