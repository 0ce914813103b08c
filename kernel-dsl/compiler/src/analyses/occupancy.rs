//! The number of blocks and warps that are resident on a multiprocessor at once, and the resource
//! that limits it.

use crate::ir::SHARED_LIMIT;
use crate::target::Target;
use serde::Serialize;

/// Number of threads of a warp.
const WARP_THREADS: u32 = 32;

/// Resources of a multiprocessor of a target. The source is the table of technical specifications
/// in the appendix on compute capabilities of NVIDIA's CUDA C++ Programming Guide; the traits of
/// NVIDIA's CCCL agree. The allocation units come from the occupancy calculator that CUDA contained
/// until version 11.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MultiprocessorLimits {
    /// Maximum number of resident warps.
    pub warps: u32,
    /// Maximum number of resident blocks.
    pub blocks: u32,
    /// Number of 32-bit registers.
    pub registers: u32,
    /// Allocation unit of the registers of a warp.
    pub register_unit: u32,
    /// Number of partitions of the register file, each with its own warps.
    pub parts: u32,
    /// Maximum number of registers of a thread.
    pub registers_of_thread: u32,
    /// Maximum size of shared memory in bytes.
    pub shared: u32,
    /// Bytes of shared memory that a block may use without an opt-in at the launch.
    pub shared_of_block: u32,
    /// Allocation unit of the shared memory of a block, in bytes.
    pub shared_unit: u32,
    /// Bytes of shared memory reserved by the system in each block.
    pub shared_reserved: u32,
}

impl MultiprocessorLimits {
    /// Returns the limits of `target`.
    pub const fn of(target: Target) -> MultiprocessorLimits {
        let (warps, blocks, shared_kib) = match target.sm() {
            0..70 => (64, 32, 96),
            70..75 => (64, 32, 96),
            75..80 => (32, 16, 64),
            80..86 => (64, 32, 164),
            86..89 => (48, 16, 100),
            89..90 => (48, 24, 100),
            _ => (64, 32, 228),
        };
        let (shared_unit, shared_reserved) = if target.sm() < 80 { (256, 0) } else { (128, 1024) };
        MultiprocessorLimits {
            warps,
            blocks,
            registers: 64 << 10,
            register_unit: 256,
            parts: 4,
            registers_of_thread: 255,
            shared: shared_kib << 10,
            shared_of_block: SHARED_LIMIT,
            shared_unit,
            shared_reserved,
        }
    }
}

/// Resources of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread; `None` if unknown, which counts as no limit.
    pub registers: Option<u32>,
    /// Bytes of shared memory, including arrays sized at launch.
    pub shared: u32,
}

/// Resident blocks and warps of a multiprocessor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Occupancy {
    /// Number of resident blocks.
    pub blocks: u32,
    /// Number of resident warps.
    pub warps: u32,
    /// Maximum number of warps.
    pub of: u32,
    /// Resources that limit the number of blocks: one, or several with the same limit.
    pub limited_by: Vec<OccupancyLimit>,
}

/// Resource that limits the number of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum OccupancyLimit {
    Blocks,
    Warps,
    Registers,
    SharedMemory,
}

impl OccupancyLimit {
    /// Returns the name of the limit.
    pub fn name(self) -> &'static str {
        match self {
            OccupancyLimit::Blocks => "blocks",
            OccupancyLimit::Warps => "warps",
            OccupancyLimit::Registers => "registers",
            OccupancyLimit::SharedMemory => "shared memory",
        }
    }
}

impl Occupancy {
    /// Computes the occupancy of a multiprocessor of `target`.
    pub fn of(target: Target, needs: Needs) -> Occupancy {
        let limits = MultiprocessorLimits::of(target);
        let warps = needs.threads.div_ceil(WARP_THREADS).max(1);
        let by_registers = match needs.registers {
            None | Some(0) => u32::MAX,
            Some(n) if n > limits.registers_of_thread => 0,
            Some(n) => {
                let of_warp = (n * WARP_THREADS).next_multiple_of(limits.register_unit);
                limits.registers / limits.parts / of_warp * limits.parts / warps
            }
        };
        let by_shared = match needs.shared.saturating_add(limits.shared_reserved) {
            0 => u32::MAX,
            bytes => limits.shared / bytes.next_multiple_of(limits.shared_unit),
        };
        let all = [
            (OccupancyLimit::Warps, limits.warps / warps),
            (OccupancyLimit::Blocks, limits.blocks),
            (OccupancyLimit::Registers, by_registers),
            (OccupancyLimit::SharedMemory, by_shared),
        ];
        let blocks = all.iter().map(|(_, n)| *n).min().unwrap_or(0);
        let limited_by = all.iter().filter(|(_, n)| *n == blocks).map(|(limit, _)| *limit).collect();
        Occupancy { blocks, warps: blocks * warps, of: limits.warps, limited_by }
    }

    /// Returns the resident warps in percent of the maximum, rounded.
    pub fn percent(&self) -> u32 {
        (100 * self.warps + self.of / 2) / self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(target: Target, threads: u32, registers: u32, shared: u32) -> (u32, u32, Vec<OccupancyLimit>) {
        let o = Occupancy::of(target, Needs { threads, registers: Some(registers), shared });
        (o.blocks, o.percent(), o.limited_by)
    }

    /// Compares with results derived by hand from the limits.
    #[test]
    fn the_scarcest_resource_limits_occupancy() {
        use OccupancyLimit::*;
        let sm_61 = |threads, registers, shared| occupancy(Target::SM_61, threads, registers, shared);
        assert_eq!(sm_61(256, 32, 0), (8, 100, vec![Warps, Registers]));
        assert_eq!(sm_61(256, 33, 0), (6, 75, vec![Registers]));
        assert_eq!(sm_61(256, 128, 0), (2, 25, vec![Registers]));
        assert_eq!(sm_61(256, 255, 0), (1, 13, vec![Registers]));
        assert_eq!(sm_61(64, 20, 0), (32, 100, vec![Warps, Blocks]));
        assert_eq!(sm_61(32, 20, 0), (32, 50, vec![Blocks]));
        assert_eq!(sm_61(128, 32, 48 << 10), (2, 13, vec![SharedMemory]));
        assert_eq!(sm_61(128, 32, 16 << 10), (6, 38, vec![SharedMemory]));
        assert_eq!(sm_61(1024, 65, 0), (0, 0, vec![Registers]), "a block that cannot be launched");
        assert_eq!(occupancy(Target::SM_75, 256, 32, 0), (4, 100, vec![Warps]));
        // From sm_80 on, the system reserves 1 KiB in each block.
        assert_eq!(occupancy(Target::SM_86, 128, 32, 24 << 10), (4, 33, vec![SharedMemory]));
        assert_eq!(occupancy(Target::SM_90, 256, 64, 100 << 10), (2, 25, vec![SharedMemory]));
    }

    #[test]
    fn unknown_register_counts_do_not_limit_occupancy() {
        let needs = Needs { threads: 512, registers: None, shared: 0 };
        assert_eq!(Occupancy::of(Target::SM_61, needs).limited_by, [OccupancyLimit::Warps]);
    }
}
