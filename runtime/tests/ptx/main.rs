//! The PTX interpreter on PTX text: every row of the table is known or refused by name, instructions give what plain Rust
//! gives, lanes that part meet again under both policies, and each check finds what it is for.

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
mod resident;
mod semantics;
mod specials;
mod stack;
mod table;
mod unspecified;
