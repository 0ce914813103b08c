//! A kernel that keeps a device busy while the host queues work.

use kernel_dsl::prelude::*;

/// The names that the macros use, with a registry that drops its entries: the commands list the
/// program's kernels, and not those of this crate.
pub(super) mod unlisted {
    pub use kernel_dsl::*;

    pub mod __private {
        pub use kernel_dsl::__private::*;

        pub mod inventory {
            macro_rules! submit {
                ($entry:expr) => {
                    const _: ::kernel_dsl::artifact::Registered = $entry;
                };
            }
            pub(crate) use submit;
        }
    }
}

/// Steps a generator of 32-bit numbers 16 times a round in each thread of one block.
#[kernel(crate = unlisted, block = 256, grid = 1, writes(states = once))]
#[requires(states.len() == 256)]
pub(super) fn busy(rounds: usize, states: &mut [u32]) {
    let mut state = states[thread::index()];
    for _ in rolled(0..rounds) {
        for _ in unroll(0..16) {
            // Numerical Recipes, "Quick and dirty generators".
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        }
    }
    states[thread::index()] = state;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::runtime::Device;

    #[test]
    fn each_thread_steps_its_generator() {
        let device = Device::cpu();
        let mut states = device.upload(&(0..256).collect::<Vec<u32>>()).unwrap();
        busy::launch(&device.stream().unwrap(), 3, &mut states).unwrap();
        let expected = |first: u32| (0..48).fold(first, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        assert_eq!(states.download().unwrap(), (0..256).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn the_program_does_not_list_it() {
        assert!(kernel_dsl::kernels().iter().all(|artifact| artifact.name != "busy"));
    }
}
