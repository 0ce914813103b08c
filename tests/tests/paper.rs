//! Checks the kernels of `tests/src/paper`: every declared instance on every executor against plain
//! Rust, and through ptxas.

mod every_target;

use kernel_dsl::compiler::hir::Instance;
use runtime::Device;
use runtime::testing::{Checker, kernel_specs};
use tests as _;

/// Checks the kernels of a module.
fn check(checker: &Checker, module: &str) {
    let module = format!("tests::paper::{module}");
    let kernels: Vec<_> = kernel_dsl::kernels().into_iter().filter(|k| k.module == module).collect();
    assert!(!kernels.is_empty(), "{module} has no kernels");
    for kernel in kernels {
        let all = kernel_specs();
        let spec = all.iter().find(|s| (s.artifact.module, s.artifact.name) == (kernel.module, kernel.name));
        let spec = spec.unwrap_or_else(|| panic!("nothing tries {}", kernel.name));
        for declared in kernel.instances {
            let report = checker.check(spec, &Instance(declared.constants.to_vec()), 1);
            assert!(report.passed(), "{report}");
        }
        every_target::assemble(kernel);
    }
}

macro_rules! kernels {
    ($($module:ident)*) => {
        $(#[test]
        fn $module() {
            check(&Checker::new(None), stringify!($module));
        })*

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn gpu_paper() {
            let checker = Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU is present")));
            $(check(&checker, stringify!($module));)*
        }
    };
}
kernels!(sgemm q8_gemm attention decode scan histogram bitonic conv3d elementwise topk);

#[test]
fn masked_loads_need_no_select() {
    let conv3d =
        kernel_dsl::kernels().into_iter().find(|k| k.name == "conv3d").expect("conv3d is a kernel of the paper");
    // `x.get(at).unwrap_or(0.0)` becomes a masked load, which needs no select.
    assert!(conv3d.instances.iter().all(|instance| !instance.ptx.contains("selp")));
}
