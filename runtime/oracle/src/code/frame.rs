//! The registers of a warp: rows of 32 lanes, structure of arrays.
//!
//! A value of at most 32 bits takes one row, zero-extended; a `bool` is 0 or 1. A value of 64 bits
//! takes two rows, which together are 32 `u64`s. Rows are allocated in the order of definition, so
//! the result of a computation is above all its operands. Splitting the rows between operands and
//! result borrows both without a copy. Only moves may have a destination below their source.

use bytemuck::{Pod, Zeroable};

pub use runtime_simt::{FULL, LANES, lanes_of};

/// A 32-bit register of all lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Row(pub [u32; LANES]);

// SAFETY: zeros are words.
unsafe impl Zeroable for Row {}

// SAFETY: the row consists of words, whose bits may be any, and has no padding: its size is a
// multiple of its alignment.
unsafe impl Pod for Row {}

const _: () = assert!(size_of::<Row>() == 4 * LANES && size_of::<Row>().is_multiple_of(align_of::<Row>()));

/// The contents of a lane of a register: 32 or 64 bits.
pub trait LaneWord: Copy + 'static {
    /// Returns the register at `row`.
    fn lanes(rows: &[Row], row: usize) -> &[Self; LANES];
    /// Returns the register at `row`.
    fn lanes_mut(rows: &mut [Row], row: usize) -> &mut [Self; LANES];
}

impl LaneWord for u32 {
    #[inline(always)]
    fn lanes(rows: &[Row], row: usize) -> &[u32; LANES] {
        &rows[row].0
    }
    #[inline(always)]
    fn lanes_mut(rows: &mut [Row], row: usize) -> &mut [u32; LANES] {
        &mut rows[row].0
    }
}

impl LaneWord for u64 {
    #[inline(always)]
    fn lanes(rows: &[Row], row: usize) -> &[u64; LANES] {
        bytemuck::cast_ref(rows[row..].first_chunk::<2>().expect("a wide register has two rows"))
    }
    #[inline(always)]
    fn lanes_mut(rows: &mut [Row], row: usize) -> &mut [u64; LANES] {
        bytemuck::cast_mut(rows[row..].first_chunk_mut::<2>().expect("a wide register has two rows"))
    }
}

/// A register: its first row, and whether it has a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRegister {
    /// The first row.
    pub row: u32,
    /// Whether the register has 64 bits a lane.
    pub wide: bool,
}

impl FrameRegister {
    /// Returns lane `lane`, zero-extended.
    pub fn get(self, rows: &[Row], lane: usize) -> u64 {
        if self.wide {
            u64::lanes(rows, self.row as usize)[lane]
        } else {
            u64::from(u32::lanes(rows, self.row as usize)[lane])
        }
    }

    /// Sets lane `lane`.
    pub fn set(self, rows: &mut [Row], lane: usize, bits: u64) {
        if self.wide {
            u64::lanes_mut(rows, self.row as usize)[lane] = bits;
        } else {
            u32::lanes_mut(rows, self.row as usize)[lane] = bits as u32;
        }
    }

    /// Sets all lanes.
    pub fn fill(self, rows: &mut [Row], bits: u64) {
        if self.wide {
            *u64::lanes_mut(rows, self.row as usize) = [bits; LANES];
        } else {
            *u32::lanes_mut(rows, self.row as usize) = [bits as u32; LANES];
        }
    }

    /// Sets the lanes of `mask` to those of `from`, another register of the same width.
    #[inline(always)]
    pub fn copy(self, rows: &mut [Row], from: FrameRegister, mask: u32) {
        if self.wide {
            blend::<u64>(rows, self.row, from.row, mask);
        } else {
            blend::<u32>(rows, self.row, from.row, mask);
        }
    }
}

#[inline(always)]
fn blend<W: LaneWord>(rows: &mut [Row], to: u32, from: u32, mask: u32) {
    // Moves go in both directions; in either case, the frame is split between the two registers.
    let middle = to.max(from) as usize;
    let (low, high) = rows.split_at_mut(middle);
    let (to, from) = if to < from {
        (W::lanes_mut(low, to as usize), W::lanes(high, 0))
    } else {
        (W::lanes_mut(high, 0), W::lanes(low, from as usize))
    };
    if mask == FULL {
        *to = *from;
    } else {
        for lane in 0..LANES {
            to[lane] = if mask >> lane & 1 == 1 { from[lane] } else { to[lane] };
        }
    }
}
