//! The command `kernels` over the kernels of `tests/src/paper`, and those of kernels-rs.

use tests as _;

fn main() -> std::process::ExitCode {
    kernels_rs_command::main()
}
