//! A pack: adjacent elements of a copy in registers, between their load and their store.
//!
//! Numbers smaller than a word are joined if they fill whole words. An asynchronous copy of 16-bit
//! floats then takes half as many registers, and any copy moves words. Only a conversion splits
//! them, and the machine reads half a register directly.

use super::lowerer::Lowerer;
use super::lowerer::mem_layout::MemLayout;
use crate::Scalar;
use crate::ir::{self, Binary, Bits, ElementOffset, Op, Values};
use smallvec::SmallVec;

/// The number of bytes of a register.
const WORD: u32 = 4;

/// Returns the integer type with the size of a number smaller than a word.
fn bits_of(scalar: Scalar) -> Scalar {
    if scalar.bytes() == 1 { Scalar::U8 } else { Scalar::U16 }
}

/// The form of `n` adjacent elements in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pack {
    /// The type of the numbers.
    number: Scalar,
    /// The number of elements.
    n: u32,
}

impl Pack {
    /// Returns the pack of `n` elements that are numbers; `None` for other elements, which move one
    /// by one.
    pub fn of(mem_layout: &MemLayout, n: u32) -> Option<Pack> {
        mem_layout.scalar().map(|number| Pack { number, n })
    }

    /// Returns whether the numbers are joined.
    pub fn joined(self) -> bool {
        self.number.bytes() < WORD && (self.n * self.number.bytes()).is_multiple_of(WORD)
    }

    /// Returns the type of the registers.
    pub fn register(self) -> Scalar {
        if self.joined() { Scalar::U32 } else { self.number }
    }

    /// Returns the number of registers.
    pub fn registers(self) -> u32 {
        if self.joined() { self.n * self.number.bytes() / WORD } else { self.n }
    }

    /// Returns the type in which one number is loaded before it is joined with others.
    pub fn part(self) -> Scalar {
        if self.joined() { bits_of(self.number) } else { self.number }
    }

    /// Returns the place of the registers that begin with the number at `place`.
    pub fn place(self, mut place: ir::AccessPlace) -> ir::AccessPlace {
        if self.joined()
            && let ir::AccessPlace::Global { within, .. }
            | ir::AccessPlace::Dynamic { within, .. }
            | ir::AccessPlace::Shared { within, .. } = &mut place
        {
            *within = Some(Box::new(ElementOffset { bytes: self.number.bytes(), offset: 0, indices: SmallVec::new() }));
        }
        place
    }
}

impl Lowerer<'_> {
    /// Joins numbers into the registers of a pack. Each has its own type or that of [`Pack::part`].
    pub(super) fn join(&mut self, pack: Pack, numbers: &[ir::Value]) -> Values {
        if !pack.joined() {
            return numbers.into();
        }
        let parts: Values = numbers.iter().map(|v| self.as_scalar(*v, pack.part())).collect();
        let each = (WORD / pack.number.bytes()) as usize;
        parts.chunks(each).map(|word| self.builder.scalar(Op::Bits(Bits::Join, word.into()), Scalar::U32)).collect()
    }

    /// Splits the registers of a pack into numbers.
    pub(super) fn split(&mut self, pack: Pack, registers: &[ir::Value]) -> Values {
        if !pack.joined() {
            return registers.into();
        }
        let bits = 8 * pack.number.bytes();
        let mut numbers = Values::new();
        for word in registers {
            for k in 0..8 * WORD / bits {
                let distance = self.builder.constant(Scalar::U32, u64::from(k * bits));
                let lowest = match k {
                    0 => *word,
                    _ => self.builder.scalar(Op::Binary(Binary::Shr, *word, distance), Scalar::U32),
                };
                let part = self.builder.scalar(Op::Cast(lowest), pack.part());
                numbers.push(self.as_scalar(part, pack.number));
            }
        }
        numbers
    }
}
