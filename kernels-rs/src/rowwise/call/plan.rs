//! How many threads share a row, and how its instance is named to the runtime.

use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::launcher::Call;
use runtime::{Device, Error};

use crate::Queue;

/// Threads that share a row, rows of a block, and elements of it that a thread keeps in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Team {
    threads: u32,
    rows: u32,
    keeps: u32,
}

/// Teams for many rows, by the elements that they keep: the fewest threads that keep a row, since rows are enough to fill the device. Of those
/// that keep as many, the one that keeps fewer a thread comes last: it is for kernels that keep several matrices.
const MANY: [Team; 10] = [
    Team { threads: 32, rows: 8, keeps: 8 },
    Team { threads: 32, rows: 8, keeps: 32 },
    Team { threads: 128, rows: 1, keeps: 8 },
    Team { threads: 256, rows: 1, keeps: 8 },
    Team { threads: 256, rows: 1, keeps: 16 },
    Team { threads: 512, rows: 1, keeps: 8 },
    Team { threads: 512, rows: 1, keeps: 16 },
    Team { threads: 1024, rows: 1, keeps: 8 },
    Team { threads: 1024, rows: 1, keeps: 16 },
    Team { threads: 1024, rows: 1, keeps: 32 },
];

/// Teams for no more rows than multiprocessors: as many threads as have work, since it is one row's time that counts.
const FEW: [Team; 4] = [
    Team { threads: 32, rows: 8, keeps: 8 },
    Team { threads: 256, rows: 1, keeps: 8 },
    Team { threads: 1024, rows: 1, keeps: 8 },
    Team { threads: 1024, rows: 1, keeps: 16 },
];

impl Team {
    /// For rows of `cols` elements on `device`; a thread keeps `most` elements at most.
    pub fn of(device: &Device, rows: usize, cols: usize, most: u32) -> Team {
        let few = rows <= device.facts().multiprocessors as usize;
        let teams: &[Team] = if few { &FEW } else { &MANY };
        let possible = || teams.iter().filter(|team| team.keeps <= most).copied();
        let whole = possible().find(|team| cols <= team.kept());
        // What no team keeps, the largest one passes over again.
        whole.or_else(|| possible().last()).unwrap_or(MANY[0])
    }

    /// Elements of a row that a team keeps.
    pub fn kept(self) -> usize {
        (self.threads * self.keeps) as usize
    }

    /// The constants L, ROWS, V, N and S of a row kernel, for accesses of `wide` elements.
    pub fn constants(self, wide: usize) -> [Constant; 5] {
        let wide = wide as u32;
        [self.threads, self.rows, wide, self.keeps / wide, 8 / wide].map(Constant::Usize)
    }
}

/// Elements that an access takes: 16 bytes of `T` where all arrays' rows begin at as many, as `begin` says, else one.
pub(super) fn wide<T>(cols: usize, begin: impl Fn(usize) -> Vec<bool>) -> usize {
    let wide = match size_of::<T>() {
        2 => 8,
        4 => 4,
        _ => 1,
    };
    if cols.is_multiple_of(wide) && begin(wide).into_iter().all(|begins| begins) { wide } else { 1 }
}

/// Queues the kernel of `call` as the instance of `constants`, whichever it was made for: all take the same arguments.
///
/// # Safety
/// That instance accesses nothing but what it may, for these arguments.
pub(crate) unsafe fn queue(on: &impl Queue, call: &Call<'_>, constants: &[Constant]) -> Result<(), Error> {
    // SAFETY: by the caller's promise.
    unsafe { on.launch_unchecked(call.kernel(), constants, None, call.arguments()) }
}
