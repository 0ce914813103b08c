//! Calls of a spec's functions, whose panics are results.

use crate::{Case, Random};
use kernel_dsl::compiler::hir::Instance;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Generates the cases of an instance from `seed`.
///
/// # Errors
/// Returns the description of a panic of `cases`. The panic hook has printed its place.
pub fn generated(
    cases: fn(&Instance, &mut Random) -> Vec<Case>,
    instance: &Instance,
    seed: u64,
) -> Result<Vec<Case>, String> {
    caught("the function that generates its cases", || cases(instance, &mut Random::new(seed)))
}

/// Calls `function`, which `name` describes. The kernel's author wrote it, so its panic is a
/// mistake in one spec, and other kernels are still checked.
pub(super) fn caught<T>(name: &str, function: impl FnOnce() -> T) -> Result<T, String> {
    // No value that an interrupted function leaves behind is used again.
    catch_unwind(AssertUnwindSafe(function)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        format!("{name} panicked: {}", text.unwrap_or("a panic without a message"))
    })
}
