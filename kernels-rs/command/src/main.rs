//! Entry point of the command `kernels`.

fn main() -> std::process::ExitCode {
    kernels_rs_command::main()
}
