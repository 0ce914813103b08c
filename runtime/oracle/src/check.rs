//! The interpreter's checks: [`Check`], by name.
//!
//! A kernel that violates a check on purpose declares so at the statement,
//! `#[allow(global_race, reason = "…")]`. The violation is then listed with the reason
//! ([`Report::allowed`](crate::Report::allowed)) and is not a finding.
//! [`Options::without`](crate::Options::without) disables checks for a run.
//!
//! Other tools have checks that the language makes unnecessary:
//!
//! | error | why it cannot occur |
//! |---|---|
//! | an access in the wrong state space, a shared address that escapes its block | the type of an address contains its space, and an address is not a number; `ptx!` has no addresses |
//! | a load by the read-only path (`ld.global.nc`) of data that the launch writes | the read-only path serves only `&[T]` and `View`: they cannot be stored to, and a launch rejects one that overlaps a mutable argument |
//! | memory that was freed, or belongs to another launch; an address truncated to 32 bits | arguments are borrows for the launch; addresses are not numbers |
//! | padding of a vector store that was never written | elements have no padding, and a store names each scalar |
//! | barriers of different numbers or counts, `bar.red` beside `bar.sync` | there is one `block::sync()` |
//! | member masks of `*.sync` operations | an operation takes no mask: each is for the warp or the group, and `divergent-warp` reports missing lanes |
//! | the value of a shuffle from beyond the segment | `shuffle_up` and `shuffle_down` return an `Option` |
//! | an atomic operation of too narrow a scope | all atomic operations have device scope; a `fence::block()` orders nothing between blocks, which is then a `global-race` |
//! | polling a flag without fences | a plain load against the flag's store is a race; a poll that never ends, `livelock` |
//! | an index whose 32-bit product is widened too late | indices are `usize`, whose overflow is `usize-overflow` |
//! | a subnormal that is flushed to zero | arithmetic flushes none; `fetch_add` on `f32` in global memory does, on every executor |
//! | an index of 64 bits truncated to 32 | `u64 as usize` is rejected unless it is masked; any other cast that loses bits is `lossy-cast`, with notes enabled |
//!
//! Three kinds of results have no [`Check`], because no single run shows them. The names,
//! severities and kernels follow below, after those of the checks:
//!
//! | result | severity | reported by |
//! |---|---|---|
//! | `approximate-branch`, `-index`, `-integer`: a `fast::` value decides | warning, before any run | `kernels check` and `kernels report`; `runtime::testing::InstanceReport::decisions` |
//! | `order-dependent`: the results of atomic operations depend on the order | error | `kernels check`, by runs in several orders; `runtime::testing::Failure::OrderDependent` |
//! | legal but slow code, such as `bank-conflict` or `integer-division` | note, before any run | `kernels report`, beside sectors and occupancy; [`slow`](kernel_dsl_compiler::analyses::slow) |
#![doc = include_str!("checks.md")]

pub use kernel_dsl_compiler::oracle::{Allowance, Check, CheckSet, Coverage, DeclaredOutput, Severity, UnknownCheck};
