//! Occupancy, by the project's own calculator. Registers do not limit the occupancy, because the
//! PTX is not register-allocated.

use super::error::{Error, Result};
use super::module::ModuleFunction;
use super::settings::Settings;
use kernel_dsl_compiler::analyses::occupancy::{MultiprocessorLimits, Needs, Occupancy};

/// Returns the number of blocks of `threads` threads that a multiprocessor holds at once.
pub fn blocks(function: &ModuleFunction, settings: &Settings, threads: i64, dynamic: usize) -> Result<u32> {
    let Some(threads) = u32::try_from(threads).ok().filter(|n| *n > 0) else {
        return Err(Error::value(format!("invalid block size {threads}: a block has at least one thread")));
    };
    let shared = u64::from(function.program.shared_bytes()).saturating_add(dynamic as u64);
    if threads > function.most_threads() || shared > super::module::shared_at_most(settings).into() {
        return Ok(0);
    }
    let needs = Needs { threads, registers: function.directives().max_registers, shared: shared as u32 };
    Ok(Occupancy::of(settings.target(), needs).blocks)
}

/// Returns the block size with the highest occupancy, and the number of blocks that fill the
/// device. Of equal block sizes the largest wins.
pub fn best(
    function: &ModuleFunction,
    settings: &Settings,
    dynamic: impl Fn(u32) -> usize,
    limit: i32,
) -> Result<(u32, u32)> {
    let most = match u32::try_from(limit) {
        Ok(limit) if limit > 0 => limit.min(function.most_threads()),
        _ => function.most_threads(),
    };
    let mut found = (0, 0, 0);
    // Whole warps, and the maximum even if it is not a multiple of 32.
    for threads in (32..=most).step_by(32).chain([most]) {
        let blocks = blocks(function, settings, threads.into(), dynamic(threads))?;
        if (blocks * threads, threads) > (found.0, found.1) {
            found = (blocks * threads, threads, blocks);
        }
    }
    if found.0 == 0 {
        return Err(Error::value(format!("no block of `{}` fits a multiprocessor", function.name)));
    }
    Ok((found.2 * settings.multiprocessors, found.1))
}

/// Returns the dynamic shared memory in bytes available to each of `resident` concurrent blocks.
pub fn dynamic(function: &ModuleFunction, settings: &Settings, resident: i32, threads: i32) -> Result<usize> {
    let limits = MultiprocessorLimits::of(settings.target());
    let own = function.program.shared_bytes();
    let Some(resident) = u32::try_from(resident).ok().filter(|n| *n > 0) else {
        return Err(Error::value(format!("invalid number of blocks: {resident}")));
    };
    if blocks(function, settings, threads.into(), 0)? < resident {
        return Err(Error::value(format!("{resident} blocks of {threads} threads do not fit a multiprocessor")));
    }
    let each = limits.shared / resident / limits.shared_unit * limits.shared_unit;
    let each = each.saturating_sub(limits.shared_reserved).min(super::module::shared_at_most(settings));
    Ok(each.saturating_sub(own) as usize)
}
