//! The choice of the number of threads that share a row, and of the kernel instance.

use crate::queue::LibraryCall;
use kernel_dsl::Launcher;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::launcher::Call;
use runtime::{Device, Error};

use crate::Queue;

/// A team: the threads that share a row, the rows of a block, and the elements of a row that a
/// thread keeps in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Team {
    threads: u32,
    rows: u32,
    keeps: u32,
}

/// Teams for many rows, sorted by the elements that they keep: the fewest threads that keep a row,
/// because the rows are enough to fill the device. Of teams that keep equally many elements, the
/// one with the fewest per thread is last, for kernels that keep several matrices.
const TEAMS_FOR_MANY_ROWS: [Team; 10] = [
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

/// Teams for at most one row per multiprocessor: as many threads as there is work, because the time
/// of a single row counts.
const TEAMS_FOR_FEW_ROWS: [Team; 4] = [
    Team { threads: 32, rows: 8, keeps: 8 },
    Team { threads: 256, rows: 1, keeps: 8 },
    Team { threads: 1024, rows: 1, keeps: 8 },
    Team { threads: 1024, rows: 1, keeps: 16 },
];

/// The limits of teams for rows that few waves of blocks read.
#[derive(Clone, Copy, Debug)]
pub(super) struct FewWaves {
    /// The largest block of which a multiprocessor's registers hold two.
    pub threads: usize,
    /// The largest number of elements of a row that a thread keeps.
    pub keeps: usize,
}

/// The longest row that a team can keep, with 32 elements per thread.
pub(super) const LONGEST_KEPT_ROW: usize = 32_768;

/// The elements that are read again at once by each thread: of a row that a team keeps, if there
/// were others, and of a longer one.
const ELEMENTS_READ_AGAIN: u32 = 8;
const ELEMENTS_OF_LONG_ROWS_READ_AGAIN: u32 = 16;

impl Team {
    /// Returns a team for more than one and at most four rows for each multiprocessor. The blocks
    /// are small, so that nearly all rows are in flight from the beginning: a larger block would
    /// begin a second row when it has stored the first. Returns `None` for other rows, and for
    /// `wide` accesses of one element, which need more instructions.
    pub fn for_few_waves(device: &Device, rows: usize, cols: usize, wide: usize, limits: FewWaves) -> Option<Team> {
        let multiprocessors = device.facts().multiprocessors as usize;
        let few = rows > multiprocessors && rows <= 4 * multiprocessors;
        let threads = cols.div_ceil(32).next_multiple_of(32).clamp(128, limits.threads);
        let keeps = cols.div_ceil(threads).next_multiple_of(wide);
        let fits = wide > 1 && (17..=limits.keeps).contains(&keeps);
        (few && fits).then_some(Team { threads: threads as u32, rows: 1, keeps: keeps as u32 })
    }

    /// Returns the team for rows of `cols` elements on `device`. A thread keeps at most `most`
    /// elements.
    pub fn of(device: &Device, rows: usize, cols: usize, most: u32) -> Team {
        let few = rows <= device.facts().multiprocessors as usize;
        let teams: &[Team] = if few { &TEAMS_FOR_FEW_ROWS } else { &TEAMS_FOR_MANY_ROWS };
        let possible = || teams.iter().filter(|team| team.keeps <= most).copied();
        let whole = possible().find(|team| cols <= team.kept());
        // The largest team reads again the elements that it cannot keep.
        whole.or_else(|| possible().last()).unwrap_or(TEAMS_FOR_MANY_ROWS[0])
    }

    /// Returns the number of elements of a row that a team keeps.
    pub fn kept(self) -> usize {
        (self.threads * self.keeps) as usize
    }

    /// Returns the constants L, ROWS, V, N and S of a row kernel, for accesses of `wide` elements.
    pub fn constants(self, wide: usize) -> [Constant; 5] {
        self.constants_with(wide, ELEMENTS_READ_AGAIN)
    }

    /// Returns the constants for rows of `cols` elements, of which long ones are streamed.
    pub fn streaming_constants(self, wide: usize, cols: usize) -> [Constant; 5] {
        let long = cols > self.kept() && self.threads == 1024;
        self.constants_with(wide, if long { ELEMENTS_OF_LONG_ROWS_READ_AGAIN } else { ELEMENTS_READ_AGAIN })
    }

    fn constants_with(self, wide: usize, read_again: u32) -> [Constant; 5] {
        let wide = wide as u32;
        [self.threads, self.rows, wide, self.keeps / wide, read_again / wide].map(Constant::Usize)
    }
}

/// Returns the number of elements of an access: 16 bytes of `T` if the rows of all arrays are
/// aligned to it, according to `begin`, otherwise one element.
pub(super) fn wide<T>(cols: usize, begin: impl Fn(usize) -> Vec<bool>) -> usize {
    let wide = match size_of::<T>() {
        2 => 8,
        4 => 4,
        _ => 1,
    };
    if cols.is_multiple_of(wide) && begin(wide).into_iter().all(|begins| begins) { wide } else { 1 }
}

/// Queues the kernel of `call` as the instance of `constants`. All instances take the same
/// arguments.
///
/// # Safety
/// With these arguments, the instance's accesses must be in bounds.
pub(crate) unsafe fn queue(on: &impl Queue, call: &Call<'_>, constants: &[Constant]) -> Result<(), Error> {
    // SAFETY: the caller guarantees that accesses are in bounds.
    unsafe { LibraryCall(on).launch_unchecked(call.kernel(), constants, None, call.arguments()) }
}
