//! The registers of a warp, in rows of 32 lanes.
//!
//! A register of at most 32 bits occupies a row of words. A wider one occupies two rows, which hold
//! 64-bit lanes. A predicate has one bit per lane. A value narrower than its lane is zero-extended.
//! Each function that writes a lane must keep this invariant.

use bytemuck::{Pod, Zeroable};

pub use runtime_simt::{FULL, LANES, lanes_of as lanes};

/// A row of 32 words.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(64))]
struct RegisterRow([u32; LANES]);

// SAFETY: zeros are words.
unsafe impl Zeroable for RegisterRow {}

// SAFETY: the row consists of words, whose bits may be any, and has no padding: its size is a
// multiple of its alignment.
unsafe impl Pod for RegisterRow {}

const _: () = assert!(
    size_of::<RegisterRow>() == 4 * LANES && size_of::<RegisterRow>().is_multiple_of(align_of::<RegisterRow>())
);

/// The position of a register's lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisterPlace {
    /// A row of words.
    Word(u32),
    /// The first of two consecutive rows.
    Wide(u32),
    /// A predicate.
    Predicate(u32),
}

/// The index of a register's state: definedness, cause and approximation.
pub type StateId = u32;

/// The reason why a value is undefined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndefinedCause {
    /// The register was never written.
    Unwritten,
    /// The instruction at `site` had no defined result.
    #[allow(missing_docs)]
    Instruction { site: u32, why: &'static str },
}

/// The registers of a warp.
#[derive(Clone, PartialEq, Default)]
pub struct Registers {
    rows: Vec<RegisterRow>,
    /// For each predicate, the lanes where it is true.
    pub predicates: Vec<u32>,
    /// The carry of the lanes, `CC.CF`.
    pub carry: u32,
    /// For each register, the lanes whose value is defined.
    pub defined: Vec<u32>,
    /// For each register, the reason why lanes of it are undefined.
    pub causes: Vec<UndefinedCause>,
    /// For each register, the lanes whose value depends on an approximation.
    pub approximate: Vec<u32>,
    /// For each register, the approximation, as the index of its site.
    pub approximations: Vec<u32>,
}

/// A copy of a register.
#[derive(Clone, Copy, Debug)]
pub struct SavedRegister {
    values: [u64; LANES],
    defined: u32,
    cause: UndefinedCause,
    approximate: u32,
    approximation: u32,
}

/// The type of a lane.
pub trait RegisterScalar: Copy + Default + Send + Sync + 'static {
    /// Returns the lanes of a register.
    fn row(registers: &Registers, at: u32) -> &[Self; LANES];

    /// Returns the lanes of a register for writing.
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [Self; LANES];
}

impl RegisterScalar for u32 {
    #[inline(always)]
    fn row(registers: &Registers, at: u32) -> &[u32; LANES] {
        &registers.rows[at as usize].0
    }

    #[inline(always)]
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [u32; LANES] {
        &mut registers.rows[at as usize].0
    }
}

impl RegisterScalar for u64 {
    #[inline(always)]
    fn row(registers: &Registers, at: u32) -> &[u64; LANES] {
        &bytemuck::cast_slice::<RegisterRow, [u64; LANES]>(&registers.rows[at as usize..at as usize + 2])[0]
    }

    #[inline(always)]
    fn row_mut(registers: &mut Registers, at: u32) -> &mut [u64; LANES] {
        &mut bytemuck::cast_slice_mut::<RegisterRow, [u64; LANES]>(&mut registers.rows[at as usize..at as usize + 2])[0]
    }
}

/// The numbers of rows, predicates and register states.
#[derive(Clone, Copy, Default, Debug)]
#[allow(missing_docs)]
pub struct Sizes {
    pub rows: u32,
    pub predicates: u32,
    pub ids: u32,
}

impl Registers {
    /// Creates the registers of a warp, all zero and uninitialized.
    pub fn new(sizes: Sizes) -> Registers {
        Registers {
            rows: vec![RegisterRow::zeroed(); sizes.rows as usize],
            predicates: vec![0; sizes.predicates as usize],
            carry: 0,
            defined: vec![0; sizes.ids as usize],
            causes: vec![UndefinedCause::Unwritten; sizes.ids as usize],
            approximate: vec![0; sizes.ids as usize],
            approximations: vec![0; sizes.ids as usize],
        }
    }

    /// Marks all registers as uninitialized. The rows keep their contents.
    pub fn forget(&mut self) {
        self.defined.fill(0);
        self.causes.fill(UndefinedCause::Unwritten);
        self.approximate.fill(0);
        self.carry = 0;
    }

    /// Returns a copy of these registers, each given by its position and state.
    pub fn saved(&self, registers: &[(RegisterPlace, StateId)]) -> Vec<SavedRegister> {
        let one = |(place, id): &(RegisterPlace, StateId)| SavedRegister {
            values: std::array::from_fn(|lane| self.get(*place, lane)),
            defined: self.defined[*id as usize],
            cause: self.causes[*id as usize],
            approximate: self.approximate[*id as usize],
            approximation: self.approximations[*id as usize],
        };
        registers.iter().map(one).collect()
    }

    /// Restores the lanes of `mask` of registers that were saved.
    pub fn restore(&mut self, registers: &[(RegisterPlace, StateId)], saved: &[SavedRegister], mask: u32) {
        for ((place, id), saved) in registers.iter().zip(saved) {
            for lane in lanes(mask) {
                self.set(*place, lane, saved.values[lane]);
            }
            let id = *id as usize;
            self.defined[id] = self.defined[id] & !mask | saved.defined & mask;
            self.approximate[id] = self.approximate[id] & !mask | saved.approximate & mask;
            self.causes[id] = saved.cause;
            self.approximations[id] = saved.approximation;
        }
    }

    /// Marks the lanes of `mask` of registers as uninitialized.
    pub fn forget_some(&mut self, registers: &[(RegisterPlace, StateId)], mask: u32) {
        for (_, id) in registers {
            self.defined[*id as usize] &= !mask;
            self.approximate[*id as usize] &= !mask;
            self.causes[*id as usize] = UndefinedCause::Unwritten;
        }
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn put<L: RegisterScalar>(&mut self, at: u32, mask: u32, values: &[L; LANES]) {
        let row = L::row_mut(self, at);
        if mask == FULL {
            *row = *values;
            return;
        }
        for (lane, value) in row.iter_mut().enumerate() {
            *value = if mask & 1 << lane == 0 { *value } else { values[lane] };
        }
    }

    /// Returns the value of a lane, zero-extended.
    pub fn get(&self, place: RegisterPlace, lane: usize) -> u64 {
        match place {
            RegisterPlace::Word(at) => u32::row(self, at)[lane].into(),
            RegisterPlace::Wide(at) => u64::row(self, at)[lane],
            RegisterPlace::Predicate(at) => u64::from(self.predicates[at as usize] >> lane & 1),
        }
    }

    /// Sets the value of a lane, truncated to the lane's width.
    pub fn set(&mut self, place: RegisterPlace, lane: usize, value: u64) {
        match place {
            RegisterPlace::Word(at) => u32::row_mut(self, at)[lane] = value as u32,
            RegisterPlace::Wide(at) => u64::row_mut(self, at)[lane] = value,
            RegisterPlace::Predicate(at) => {
                let predicate = &mut self.predicates[at as usize];
                *predicate = *predicate & !(1 << lane) | (value as u32 & 1) << lane;
            }
        }
    }

    /// Sets every lane.
    pub fn fill(&mut self, place: RegisterPlace, value: u64) {
        for lane in 0..LANES {
            self.set(place, lane, value);
        }
    }
}
