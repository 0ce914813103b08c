//! Tests that the parser of IR is the inverse of its printer.

use crate::filetests::plain;
use crate::{evaluator, generator};
use kernel_dsl_compiler::emit::emit;
use kernel_dsl_compiler::ir::Kernel;
use kernel_dsl_compiler::ir::verify::verify;
use kernel_dsl_compiler::lower::checked::CheckedKernel;
use kernel_dsl_compiler::passes::{optimize, optimize_with};

/// Parses the printed `kernel`. The result must print the same.
fn again(kernel: &Kernel) -> Kernel {
    let text = kernel.to_string();
    let parsed: Kernel = text.parse().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    verify(&parsed).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(plain(&parsed.to_string()), plain(&text));
    parsed
}

#[test]
fn parsed_kernels_run_and_compile_to_the_same() {
    for seed in 0..60 {
        let kernel = generator::kernel(seed);
        let parsed = again(&kernel);
        for input in 0..2 {
            assert!(evaluator::run(&kernel, input) == evaluator::run(&parsed, input), "seed {seed}\n{kernel}");
        }
        let ptx = |kernel: Kernel| optimize(kernel).and_then(|k| emit(&k)).map(|module| module.to_string());
        assert_eq!(ptx(parsed), ptx(kernel), "seed {seed}");
    }
}

#[test]
fn ir_after_each_pass_is_parsed() {
    for seed in 0..20 {
        optimize_with(generator::kernel(seed), |_, kernel| _ = again(kernel)).unwrap();
        again(&CheckedKernel::of(generator::of_threads(seed)).kernel);
    }
}

#[test]
fn faults_name_the_place() {
    let text = "kernel k = k for sm_61, block 32×1×1\n    parameter 0 x: global f32\n%0: global = parameter x\n";
    let fault = |line: &str| format!("{text}{line}\n").parse::<Kernel>().unwrap_err().to_string();
    assert_eq!(fault("%1: f32 = load [%2]"), "line 4, column 19: expected a value that is defined above, found `]`");
    assert_eq!(fault("%1: f32 = neg 1.0, 2.0"), "line 4, column 18: expected the end of the line, found `, 2.0`");
    assert_eq!(
        fault("%0: f32 = neg 1.0"),
        "line 4, column 8: expected a value that is not defined above, found ` = neg 1.0`"
    );
    assert_eq!(fault("'l0: loop {"), "line 5, column 1: expected `}`, found `the end`");
}
