//! A registry of the specs that a program links. `kernels check` runs all of them.

use super::{Case, KernelSpec, Random};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;

// Only `register!` and `register_bench!` make entries.
inventory::collect!(KernelSpec);
inventory::collect!(BenchCases);

/// The cases in which `kernels bench` measures a kernel, instead of those of its spec. The cases
/// may be larger than what `kernels check` runs on the interpreter.
#[derive(Clone, Copy, Debug)]
pub struct BenchCases {
    /// The kernel.
    pub artifact: &'static Artifact,
    /// Generates the cases of an instance. All random choices must come from the given generator.
    pub cases: fn(&Instance, &mut Random) -> Vec<Case>,
}

/// Returns the cases for measurements that the program links, sorted by module and name of the
/// kernel.
pub fn bench_cases() -> Vec<&'static BenchCases> {
    let mut all: Vec<_> = inventory::iter::<BenchCases>().collect();
    all.sort_by_key(|bench| (bench.artifact.module, bench.artifact.name));
    all
}

/// Returns the specs that the program links, sorted by module and name of the kernel.
pub fn kernel_specs() -> Vec<&'static KernelSpec> {
    let mut all: Vec<_> = inventory::iter::<KernelSpec>().collect();
    all.sort_by_key(|spec| (spec.artifact.module, spec.artifact.name));
    all
}

/// Registers the test cases of a kernel: `runtime::register!(saxpy, cases, reference)`.
///
/// The arguments are the kernel and the functions of a [`KernelSpec`]. For a generic kernel, pass
/// any instance, such as `matmul<16>`. Invoke the macro among the items of a module.
/// `kernels check` finds the kernel in every program that links the crate.
#[macro_export]
macro_rules! register {
    ($kernel:ty, $cases:expr, $reference:expr $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::KernelSpec {
                artifact: <$kernel as $crate::__private::Kernel>::ARTIFACT,
                cases: $cases,
                reference: $reference,
            }
        }
    };
    ($kernel:ty $(, $cases:expr)? $(,)?) => {
        ::std::compile_error!(
            "`register!` takes a kernel, its cases and its reference: a reference that states nothing gives `Expected::unchecked(argument)` for each output"
        );
    };
}

/// Registers the cases in which `kernels bench` measures a kernel: `runtime::register_bench!(saxpy,
/// cases)`. Without these cases, `kernels bench` takes those of [`register!`].
#[macro_export]
macro_rules! register_bench {
    ($kernel:ty, $cases:expr $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::BenchCases {
                artifact: <$kernel as $crate::__private::Kernel>::ARTIFACT,
                cases: $cases,
            }
        }
    };
}
