//! The record of a checked launch: 32-bit words in global memory, all zero before the launch, that
//! [`Op::RecordViolation`](super::Op::RecordViolation) fills once.
//!
//! Words 1 to 3 are unused, so that accesses of 16 bytes can store the others.

/// 0 while there is no report, afterwards the number of the check's site plus 1.
pub const STATE: usize = 0;
/// Block index in x, y, z.
pub const BLOCK: usize = 4;
/// Thread index in its block in x, y, z.
pub const THREAD: usize = 7;
/// The values of the report, which the site explains.
pub const VALUES: usize = 10;
/// Maximum number of values of a report: index and extent in each of five dimensions.
pub const MAX_VALUES: usize = 10;
/// Words of a record.
pub const WORDS: usize = VALUES + MAX_VALUES;
