//! The registers of a warp: a row of 32 lanes each.
//!
//! A register of at most 32 bits has a row of words, a wider one two rows that hold 64-bit lanes, a predicate a bit a lane. A
//! register narrower than its lane is kept zero-extended: what writes one sees to that.

use bytemuck::{Pod, Zeroable};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Every lane.
pub const FULL: u32 = u32::MAX;

/// 32 words.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Row([u32; LANES]);

/// Where a register's lanes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A row of words.
    Word(u32),
    /// Two rows: the first.
    Wide(u32),
    /// A predicate.
    Predicate(u32),
}

/// A register by the number under which its state is kept.
pub type Id = u32;

/// Why a value is not defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Nothing has been written.
    Unwritten,
    /// The instruction there gave nothing that could be relied on.
    #[allow(missing_docs)]
    Instruction { site: u32, why: &'static str },
}

/// The registers of a warp.
#[derive(Clone, Default)]
pub struct Registers {
    rows: Vec<Row>,
    /// By predicate: the lanes where it is true.
    pub predicates: Vec<u32>,
    /// The carry of the lanes, `CC.CF`.
    pub carry: u32,
    /// By register: the lanes whose value is defined.
    pub defined: Vec<u32>,
    /// By register: what left lanes of it undefined.
    pub causes: Vec<Cause>,
    /// By register: the lanes whose value comes of an approximation.
    pub approximate: Vec<u32>,
    /// By register: of which one, as the index of its site.
    pub approximations: Vec<u32>,
}

/// What a lane holds.
pub trait Lane: Copy + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;

    /// The lanes of a register.
    fn row(registers: &Registers, at: u32) -> &[Self; LANES];

    /// The lanes of a register, to write.
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [Self; LANES];
}

impl Lane for u32 {
    const ZERO: u32 = 0;

    #[inline(always)]
    fn row(registers: &Registers, at: u32) -> &[u32; LANES] {
        &registers.rows[at as usize].0
    }

    #[inline(always)]
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [u32; LANES] {
        &mut registers.rows[at as usize].0
    }
}

impl Lane for u64 {
    const ZERO: u64 = 0;

    #[inline(always)]
    fn row(registers: &Registers, at: u32) -> &[u64; LANES] {
        &bytemuck::cast_slice::<Row, [u64; LANES]>(&registers.rows[at as usize..at as usize + 2])[0]
    }

    #[inline(always)]
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [u64; LANES] {
        &mut bytemuck::cast_slice_mut::<Row, [u64; LANES]>(&mut registers.rows[at as usize..at as usize + 2])[0]
    }
}

/// How many of each there are.
#[derive(Clone, Copy, Default, Debug)]
#[allow(missing_docs)]
pub struct Sizes {
    pub rows: u32,
    pub predicates: u32,
    pub ids: u32,
}

impl Registers {
    /// Registers of a warp, all zero.
    pub fn new(sizes: Sizes) -> Registers {
        Registers {
            rows: vec![Row::zeroed(); sizes.rows as usize],
            predicates: vec![0; sizes.predicates as usize],
            carry: 0,
            defined: vec![0; sizes.ids as usize],
            causes: vec![Cause::Unwritten; sizes.ids as usize],
            approximate: vec![0; sizes.ids as usize],
            approximations: vec![0; sizes.ids as usize],
        }
    }

    /// Nothing has been written any more. What the rows hold stays.
    pub fn forget(&mut self) {
        self.defined.fill(0);
        self.causes.fill(Cause::Unwritten);
        self.approximate.fill(0);
        self.carry = 0;
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn put<L: Lane>(&mut self, at: u32, mask: u32, values: &[L; LANES]) {
        let row = L::row_mut(self, at);
        if mask == FULL {
            *row = *values;
        } else {
            for lane in 0..LANES {
                row[lane] = if mask >> lane & 1 == 1 { values[lane] } else { row[lane] };
            }
        }
    }

    /// The value of a lane, zero-extended.
    pub fn get(&self, place: Place, lane: usize) -> u64 {
        match place {
            Place::Word(at) => u32::row(self, at)[lane].into(),
            Place::Wide(at) => u64::row(self, at)[lane],
            Place::Predicate(at) => u64::from(self.predicates[at as usize] >> lane & 1),
        }
    }

    /// Sets a lane's value, cut to the lane.
    pub fn set(&mut self, place: Place, lane: usize, value: u64) {
        match place {
            Place::Word(at) => u32::row_mut(self, at)[lane] = value as u32,
            Place::Wide(at) => u64::row_mut(self, at)[lane] = value,
            Place::Predicate(at) => {
                let predicate = &mut self.predicates[at as usize];
                *predicate = *predicate & !(1 << lane) | (value as u32 & 1) << lane;
            }
        }
    }

    /// Sets every lane.
    pub fn fill(&mut self, place: Place, value: u64) {
        for lane in 0..LANES {
            self.set(place, lane, value);
        }
    }
}

/// The lanes of a mask, from the lowest.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
