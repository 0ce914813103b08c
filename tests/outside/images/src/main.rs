//! The command `kernels` for this crate's kernels.
#![deny(warnings)]

use images as _;

fn main() -> std::process::ExitCode {
    kernels_rs_command::main()
}
