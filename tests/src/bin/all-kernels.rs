//! The command `kernels` over the kernels of kernels-rs and those of its expert examples.

use tests as _;

fn main() -> std::process::ExitCode {
    kernels_rs_command::main()
}
