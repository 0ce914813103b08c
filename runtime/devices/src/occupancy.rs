//! The number of blocks that a multiprocessor holds, and the block size that fills it best.

use crate::device::Backend;
use crate::{Device, Error, Result};
use kernel_dsl::Call;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::launch::{MAX_THREADS, Refusal};
use kernel_dsl::compiler::{Target, driver};
use serde::Serialize;

/// The resources of a launch of the unchecked PTX, and the number of its blocks that one
/// multiprocessor holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Residency {
    /// Threads of a block.
    pub threads: u32,
    /// The registers of a thread as the driver compiled the kernel. `None` on the CPU, where
    /// registers limit nothing.
    pub registers: Option<u32>,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// The occupancy by this project's calculator.
    pub occupancy: Occupancy,
    /// Blocks at once as the driver counts them; `None` on the CPU.
    pub by_driver: Option<u32>,
}

impl Device {
    /// Returns the occupancy of a launch. On the CPU, the limits are those of the kernel's target.
    ///
    /// # Errors
    /// Arguments that violate the kernel's contract, or a kernel that cannot be loaded.
    pub fn residency(&self, call: &Call<'_>) -> Result<Residency> {
        let (kernel, constants) = (call.kernel(), call.constants());
        let found = self.validated(kernel, constants, call.block(), call.arguments(), |program, validated| {
            let threads = validated.shape().block.iter().product();
            Ok(Some(match self.backend() {
                Backend::Cpu(_) => {
                    let lowered = driver::lowered_monomorphic(program, kernel.target);
                    let instance = program.instance_name();
                    let lowered = lowered.map_err(|source| Error::Compile { instance: instance.clone(), source })?;
                    let own = lowered.shared_memory();
                    // Arrays sized by the launch lie after the entry's own.
                    let shared = own.fixed.max(validated.shared_bytes(&instance, &own)?);
                    residency(kernel.target, threads, None, shared, None)
                }
                Backend::Cuda(cuda) => {
                    let figures = cuda.residency(kernel, program, validated)?;
                    let capability = cuda.info().capability;
                    let target = target(10 * capability.major + capability.minor);
                    residency(target, figures.threads, Some(figures.registers), figures.shared, Some(figures.blocks))
                }
            }))
        })?;
        found.ok_or_else(|| Error::Refused {
            instance: kernel.name.to_string(),
            refusals: vec![Refusal("grid: the launch has no blocks".into())],
        })
    }

    /// Returns the block size, in threads, that fills a multiprocessor with the most warps; of
    /// equally good sizes, the largest. Sizes that the kernel does not allow are skipped. Pass the
    /// result to [`Call::in_blocks_of`].
    ///
    /// # Errors
    /// If the kernel has a fixed block size, or no block size is valid for these arguments.
    pub fn best_block(&self, call: &Call<'_>) -> Result<usize> {
        let refused = |why: &str| {
            let refusals = vec![Refusal(why.into())];
            Error::Refused { instance: call.kernel().name.to_string(), refusals }
        };
        if call.block().is_none() {
            return Err(refused("block: the kernel fixes its size"));
        }
        let mut best: Option<(u32, usize)> = None;
        let mut why = None;
        // Blocks of less than one warp, and blocks of whole warps.
        for extent in (1..32).chain((32..=MAX_THREADS as usize).step_by(32)) {
            match self.residency(&call.clone().in_blocks_of(extent)) {
                Ok(found) => best = best.max(Some((found.occupancy.warps, extent))),
                Err(refusal @ Error::Refused { .. }) => why = Some(refusal),
                Err(other) => return Err(other),
            }
        }
        match (best, why) {
            (Some((1.., extent)), _) => Ok(extent),
            (_, Some(why)) => Err(why),
            _ => Err(refused("block: a multiprocessor cannot hold a block of any size")),
        }
    }
}

fn residency(target: Target, threads: u32, registers: Option<u32>, shared: u32, by_driver: Option<u32>) -> Residency {
    let occupancy = Occupancy::of(target, Needs { threads, registers, shared });
    Residency { threads, registers, shared, occupancy, by_driver }
}

/// Returns the latest known target that is not later than the device.
fn target(sm: u32) -> Target {
    let known = (Target::SM_61.sm()..=sm.min(u32::from(u16::MAX)) as u16).rev().find_map(Target::new);
    known.unwrap_or(Target::SM_61)
}
