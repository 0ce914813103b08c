//! .
use crate::examples;
#[test]
fn show() {
    for k in [examples::saxpy(), examples::stencil(), examples::matmul(4), examples::blocked(2, 2, 2)] {
        kernel_dsl_compiler::ir::verify::verify(&k).unwrap_or_else(|e| panic!("{e}\n{k}"));
        println!("{k}");
        println!("{}", *kernel_dsl_compiler::passes::optimise(k).unwrap());
    }
}
