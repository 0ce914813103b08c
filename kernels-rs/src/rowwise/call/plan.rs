//! The choice of the number of threads that share a row, and of the kernel instance.

use crate::queue::LibraryCall;
use kernel_dsl::Launcher;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::launcher::Call;
use runtime::{Device, Error};
use std::fmt;
use std::str::FromStr;

use crate::rowwise::divided::MAX_PARTS;
use crate::{Queue, tuned};

/// A team: the threads that share a row, the rows of a block, and the elements of a row that a
/// thread keeps in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Team {
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
/// The longest row of which 1024 threads keep 16 elements each.
const MAX_COLS_OF_16: usize = 16_384;

/// The elements that each thread reads again at once.
const ELEMENTS_READ_AGAIN: u32 = 8;

impl Team {
    /// Returns a team for more than one and at most four rows for each multiprocessor. The blocks
    /// are small, so that nearly all rows are in flight from the beginning: a larger block would
    /// begin a second row when it has stored the first. Returns `None` for other rows, and for
    /// `wide` accesses of one element, which need more instructions.
    pub(super) fn for_few_waves(
        device: &Device,
        rows: usize,
        cols: usize,
        wide: usize,
        limits: FewWaves,
    ) -> Option<Team> {
        let multiprocessors = device.facts().multiprocessors as usize;
        let few = rows > multiprocessors && rows <= 4 * multiprocessors;
        let threads = cols.div_ceil(32).next_multiple_of(32).clamp(128, limits.threads);
        let keeps = cols.div_ceil(threads).next_multiple_of(wide);
        let fits = wide > 1 && (17..=limits.keeps).contains(&keeps);
        (few && fits).then_some(Team { threads: threads as u32, rows: 1, keeps: keeps as u32 })
    }

    /// Returns the team for rows of `cols` elements on `device`. A thread keeps at most `most`
    /// elements.
    pub(super) fn of(device: &Device, rows: usize, cols: usize, most: u32) -> Team {
        Team::with_multiprocessors(device.facts().multiprocessors, rows, cols, most)
    }

    /// Returns the team of [`of`](Team::of) on a device with this number of multiprocessors.
    pub(super) fn with_multiprocessors(multiprocessors: u32, rows: usize, cols: usize, most: u32) -> Team {
        let few = rows <= multiprocessors as usize;
        let teams: &[Team] = if few { &TEAMS_FOR_FEW_ROWS } else { &TEAMS_FOR_MANY_ROWS };
        let possible = || teams.iter().filter(|team| team.keeps <= most).copied();
        let whole = possible().find(|team| cols <= team.kept());
        // The largest team reads again the elements that it cannot keep.
        whole.or_else(|| possible().last()).unwrap_or(TEAMS_FOR_MANY_ROWS[0])
    }

    /// Returns the number of elements of a row that a team keeps.
    pub(super) fn kept(self) -> usize {
        (self.threads * self.keeps) as usize
    }

    /// Returns the constants L, ROWS, V, N and S of a row kernel, for accesses of `wide` elements.
    pub(super) fn constants(self, wide: usize) -> [Constant; 5] {
        let wide = wide as u32;
        [self.threads, self.rows, wide, self.keeps / wide, ELEMENTS_READ_AGAIN / wide].map(Constant::Usize)
    }

    /// Returns this team, and then other teams, those nearest to this one first.
    pub(super) fn with_others(self) -> Vec<Team> {
        let mut all = Vec::new();
        for threads in [32, 64, 128, 192, 256, 384, 512, 768, 1024] {
            for keeps in [4, 8, 12, 16, 24, 32, 48] {
                all.push(Team { threads, rows: rows_of_block(threads), keeps });
            }
        }
        all.retain(|team| *team != self);
        let ratio = |a: u32, b: u32| (f64::from(a) / f64::from(b)).log2().abs();
        let steps = |team: &Team| ratio(team.threads, self.threads) + ratio(team.keeps, self.keeps);
        all.sort_by(|a, b| steps(a).total_cmp(&steps(b)));
        all.insert(0, self);
        all
    }
}

/// The division of long rows among blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Division {
    /// The elements of a row that a thread keeps.
    keeps: usize,
    /// The parts of a row.
    parts: usize,
}

impl Division {
    const THREADS: usize = 256;

    /// Returns the division of rows of `cols` elements, of which a thread keeps `keeps`. Returns
    /// `None` if a team reduces a row: if registers hold it, or if there are too many parts. A team
    /// also reduces the rows of the CPU device: it runs blocks one after another, so that nearly
    /// each block would read the row again.
    pub(super) fn of(device: &Device, cols: usize, keeps: usize) -> Option<Division> {
        let parts = cols.div_ceil(Division::THREADS * keeps);
        let divided = cols > LONGEST_KEPT_ROW && parts <= MAX_PARTS && !device.is_cpu();
        divided.then_some(Division { keeps, parts })
    }

    /// Returns the number of words that the blocks of `rows` rows exchange.
    pub(super) fn words(self, rows: usize) -> usize {
        rows * (2 * self.parts + 1)
    }

    /// Returns the constants L, V, N and PART of a kernel, for accesses of `wide` elements.
    pub(super) fn constants(self, wide: usize) -> [Constant; 4] {
        let part = Division::THREADS * self.keeps;
        [Division::THREADS, wide, self.keeps / wide, part].map(|n| Constant::Usize(n as u32))
    }
}

/// Returns the number of elements that a thread of a divided softmax keeps, for accesses of `wide`
/// elements: the most that its registers hold on sm_61.
pub(super) fn kept_of_divided_softmax(masked: bool, wide: usize) -> usize {
    match (masked, wide) {
        (true, 1) => 16,
        (_, 8) => 24,
        _ => 32,
    }
}

/// Returns the number of elements that a thread of a divided norm keeps, or if `fused`, of the norm
/// of a sum.
pub(super) fn kept_of_divided_norm(fused: bool, wide: usize) -> usize {
    match (fused, wide) {
        (true, 1) => 8,
        (false, 1) => 16,
        (true, _) => 24,
        (false, _) => 32,
    }
}

/// Returns the maximum number of elements that a thread of a softmax keeps.
pub(super) fn most_kept_of_softmax(masked: bool) -> u32 {
    if masked { 16 } else { 32 }
}

/// Returns the maximum number of elements that a thread of a norm keeps. For `f32` the maximum is
/// small, so that more threads share a row, as long as a block can keep it. For narrow elements the
/// maximum is larger, because the cost of a row's reductions is spread over half the bytes.
pub(super) fn most_kept_of_norm<T>(cols: usize) -> u32 {
    if size_of::<T>() == 4 && cols <= 8192 { 8 } else { 16 }
}

/// Returns the maximum number of elements that a thread of a norm in floats keeps.
pub(super) fn most_kept_of_norm_in_floats<T>(cols: usize) -> u32 {
    if (MAX_COLS_OF_16 + 1..=LONGEST_KEPT_ROW).contains(&cols) { 32 } else { most_kept_of_norm::<T>(cols) }
}

/// Returns the rows of a block: a team of one warp shares its block with others.
fn rows_of_block(threads: u32) -> u32 {
    if threads == 32 { 8 } else { 1 }
}

/// Formats a team as tables of tuned plans write it: `team 256 8` for the threads of a row, and the
/// elements that each of them keeps.
impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "team {} {}", self.threads, self.keeps)
    }
}

/// Reads what [`Display`](fmt::Display) writes. The error says what is wrong.
impl FromStr for Team {
    type Err = String;

    fn from_str(text: &str) -> Result<Team, String> {
        let ["team", threads, keeps] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("`{text}` is not a plan; write `team 256 8`"));
        };
        let number = |word: &str| tuned::number(word, text);
        let (threads, keeps) = (number(threads)?, number(keeps)?);
        if !(32..=1024).contains(&threads) || !threads.is_multiple_of(32) {
            return Err(format!("`{text}` is no plan: a team has 32 to 1024 threads, in warps of 32"));
        }
        // The elements of an access divide those that a thread keeps.
        if !(4..=64).contains(&keeps) || !keeps.is_multiple_of(4) {
            return Err(format!("`{text}` is no plan: a thread of a team keeps 4 to 64 elements, in fours"));
        }
        let (threads, keeps) = (threads as u32, keeps as u32);
        Ok(Team { threads, rows: rows_of_block(threads), keeps })
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
