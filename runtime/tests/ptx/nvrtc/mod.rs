//! CUDA C compiled by NVRTC, against plain Rust. `cuda/README.md` has the commands.

mod collective;
mod numeric;
mod various;

use super::launch::{Kernel, module, near, numbers, singles};
