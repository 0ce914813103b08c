//! Prints the IR of a found kernel as lowered and after each pass that changes it, and its PTX:
//! `cargo run -p fuzz --bin passes -- FILE`.

use fuzz::compile::Frontend;

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("the argument is a file")?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let compiled = Frontend::default().compile(&text).map_err(|refused| refused.said)?;
    println!("as lowered:\n{}", compiled.lowered);
    let mut last = compiled.lowered.to_string();
    let observe = |pass: &kernel_dsl_compiler::passes::Pass, kernel: &kernel_dsl_compiler::ir::Kernel| {
        let now = kernel.to_string();
        if now != last {
            println!("after {}:\n{now}", pass.name);
            last = now;
        }
    };
    kernel_dsl_compiler::passes::optimize_with(compiled.lowered.clone(), observe).map_err(|e| e.to_string())?;
    println!("{}\nthe checked form:\n{}\n{}", compiled.ptx, *compiled.checked, compiled.checked_ptx);
    Ok(())
}
