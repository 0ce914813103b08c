//! The subjects that a program links, for a command that checks every kernel to find.

use super::Subject;

// An entry is only made by `register!`.
inventory::collect!(Subject);

/// The subjects that the program links, by module and name of their kernels.
pub fn subjects() -> Vec<&'static Subject> {
    let mut all: Vec<_> = inventory::iter::<Subject>().collect();
    all.sort_by_key(|subject| (subject.artifact.module, subject.artifact.name));
    all
}

/// Registers how to try a kernel: `runtime::register!(saxpy, cases, reference)`.
///
/// The kernel, of a generic one any instance (`matmul<16>`), and the functions of a [`Subject`]. It stands among a
/// module's items; `kernels check` finds it in whatever program links the crate.
#[macro_export]
macro_rules! register {
    ($kernel:ty, $cases:expr, $reference:expr $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::testing::Subject {
                artifact: <$kernel as $crate::__private::Kernel>::ARTIFACT,
                cases: $cases,
                reference: $reference,
            }
        }
    };
}
