//! What the interpreter checks: [`Check`], by name.
//!
//! A kernel that does one of these on purpose says so at the statement, `#[allow(global_race, reason = "…")]`: it is not
//! found then, but listed with the reason ([`Report::allowed`](super::Report::allowed)). A run leaves checks out by
//! [`Options::without`](super::Options::without).
//!
//! What other tools look for and there is no check of, because it cannot be said in the language:
//!
//! | what | why not |
//! |---|---|
//! | an access in the wrong state space, a shared address that escapes its block | an address has its space in its type and is no number; `ptx!` has no addresses |
//! | a load by the read-only path (`ld.global.nc`) of what the launch writes | only `&[T]` and `View` are read by it: they cannot be stored to, and a launch refuses one that overlaps a mutable argument |
//! | memory that was freed, or is another launch's; an address cut to 32 bits | arguments are borrows for the launch; addresses are no numbers |
//! | padding of a vector store that was never written | elements have no padding, and a store names each scalar |
//! | barriers of different numbers or counts, `bar.red` beside `bar.sync` | there is one `block::sync()` |
//! | member masks of `*.sync` operations | there are none to give: each operation is for the warp or the group, and `divergent-warp` tells who is missing |
//! | the value of a shuffle from beyond the segment | `shuffle_up` and `shuffle_down` give an `Option` |
//! | an atomic operation of too narrow a scope | all are of the device's; a `fence::block()` orders nothing between blocks, which is then a `global-race` |
//! | polling a flag without fences | a plain load against the flag's store is a race; a poll that never ends, `livelock` |
//! | an index whose 32-bit product is widened too late | indices are `usize`, whose overflow is `usize-overflow` |
//! | a subnormal that is flushed to zero | arithmetic flushes none; `fetch_add` on `f32` in global memory does, on every executor |
//! | an index of 64 bits cut to 32 | `u64 as usize` is refused unless it is masked; any other cast that loses bits is `lossy-cast`, where a launch asks for notes |
//!
//! Three kinds of thing are told of a kernel and are no [`Check`], since no single run shows them. Each has its name, its severity and
//! its kernels below, behind those of the checks:
//!
//! | what | severity | told by |
//! |---|---|---|
//! | `approximate-branch`, `-index`, `-integer`: a `fast::` value decides | warning, before any run | `kernels check` and `kernels report`; [`InstanceReport::decisions`](crate::testing::InstanceReport::decisions) |
//! | `order-dependent`: atomic operations leave something else in another order | error | `kernels check`, by runs in several orders; [`Failure::OrderDependent`](crate::testing::Failure::OrderDependent) |
//! | what is legal and slow, such as `bank-conflict` or `integer-division` | note, before any run | `kernels report`, beside sectors and occupancy; [`slow`](kernel_dsl::compiler::analyses::slow) |
//!
#![doc = include_str!("checks.md")]

pub use kernel_dsl::compiler::oracle::{Allowance, Check, CheckSet, Coverage, Output, Severity, UnknownCheck};
