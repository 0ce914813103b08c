//! The command `kernels`.

fn main() -> std::process::ExitCode {
    kernels_rs::command::main()
}
