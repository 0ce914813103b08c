//! The PTX interpreter on PTX text. It decodes every row of the table, or rejects it by name, and
//! its instructions match plain Rust. Diverged lanes reconverge under both policies, and each check
//! finds its violations.

mod card;
mod checks;
mod clang;
mod control;
mod cooperation;
mod graphs;
mod instructions;
mod kit;
mod launch;
mod memory;
mod nvrtc;
mod others;
mod parallel;
mod programs;
mod resident;
mod semantics;
mod specials;
mod stack;
mod table;
mod unspecified;
