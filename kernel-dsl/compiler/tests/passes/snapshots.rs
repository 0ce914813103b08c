//! .
#[test]
fn show() {
    for seed in [4, 9] {
        let k = crate::generator::kernel(seed);
        println!("{k}");
        println!("{}", *kernel_dsl_compiler::passes::optimise(k).unwrap());
        println!("{:?}", crate::evaluator::run(&crate::generator::kernel(seed), 1).stores.len());
    }
    println!("{}", std::mem::size_of::<kernel_dsl_compiler::ir::Inst>());
}
