//! A registry of the specs that a program links. `kernels check` runs all of them.

use super::KernelSpec;

// Only `register!` makes entries.
inventory::collect!(KernelSpec);

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
}
