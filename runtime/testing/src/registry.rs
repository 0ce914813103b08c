//! A registry of the subjects that a program links. `kernels check` runs all of them.

use super::Subject;

// Only `register!` makes entries.
inventory::collect!(Subject);

/// Returns the subjects that the program links, sorted by module and name of the kernel.
pub fn subjects() -> Vec<&'static Subject> {
    let mut all: Vec<_> = inventory::iter::<Subject>().collect();
    all.sort_by_key(|subject| (subject.artifact.module, subject.artifact.name));
    all
}

/// Registers the test cases of a kernel: `runtime::register!(saxpy, cases, reference)`.
///
/// The arguments are the kernel and the functions of a [`Subject`]. For a generic kernel, pass any
/// instance, such as `matmul<16>`. Invoke the macro among the items of a module. `kernels check`
/// finds the kernel in every program that links the crate.
#[macro_export]
macro_rules! register {
    ($kernel:ty, $cases:expr, $reference:expr $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::Subject {
                artifact: <$kernel as $crate::__private::Kernel>::ARTIFACT,
                cases: $cases,
                reference: $reference,
            }
        }
    };
}
