//! The PTX interpreter on PTX text. The interpreter decodes every row of the table, or rejects it
//! by name, and each instruction's results match plain Rust. Diverged lanes reconverge under both
//! policies, and each check finds its violations.

mod card;
mod checks;
mod clang;
mod control;
mod cooperation;
#[allow(dead_code)] // The bench prints the card's name.
#[path = "../../benches/card/gpu.rs"]
mod gpu;
mod graphs;
mod instructions;
mod kit;
mod launch;
mod memory;
mod nvrtc;
mod observe;
mod others;
mod parallel;
mod programs;
mod races;
mod resident;
mod semantics;
mod specials;
mod stack;
mod table;
mod unspecified;

/// Repeats on a card the tests of instructions whose results were once wrong. The tests have
/// carries of differences, divisors beyond 2¹²⁶, and results just below the least normal number.
/// The tests also have reciprocal roots of `f64`, and votes with members that differ between lanes.
/// In others, lanes meet although one side of a branch ends in a trap.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_with_the_interpreter() {
    kit::on_a_card(&[
        instructions::carries_pass_between_all_instructions,
        instructions::carries_run_through_chains,
        instructions::division_of_128_bits_mixes_sums_and_differences,
        unspecified::results_below_the_least_normal_number_are_flushed,
        unspecified::approximations_at_the_ends_agree_with_a_card,
        cooperation::votes_cover_the_lanes_own_members,
        cooperation::matches_and_reductions_follow_the_masks_of_lanes,
        control::lanes_reconverge_before_a_barrier_although_a_trap_follows,
        control::lanes_reconverge_past_bounds_checks,
    ]);
}
