//! The share of a long test that runs on every change.
//!
//! `TESTS=all` runs the whole test, as `.ci/release` does before a release.

/// Returns whether the environment requests whole tests.
pub fn is_whole() -> bool {
    std::env::var("TESTS").is_ok_and(|tests| tests == "all")
}
