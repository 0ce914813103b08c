//! A piece of a copy in registers: elements that follow one another, between the load that brings them and the store that
//! takes them on.
//!
//! Numbers smaller than a word go joined where they make up whole words: a copy ahead then takes half as many registers for
//! floats of 16 bits across the loop that hides it, and a copy moves words in any case. They are taken apart only for a
//! conversion, where the machine reads the half of a register as it is.

use super::Lowerer;
use super::cell::Cell;
use crate::Scalar;
use crate::ir::{self, Binary, Bits, Op, Values, Within};
use smallvec::SmallVec;

/// Bytes of a register.
const WORD: u32 = 4;

/// The integer of as many bytes as a number that is smaller than a word.
fn bits_of(scalar: Scalar) -> Scalar {
    if scalar.bytes() == 1 { Scalar::U8 } else { Scalar::U16 }
}

/// What a piece of `n` elements is in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The type of the numbers.
    number: Scalar,
    /// How many there are.
    n: u32,
}

impl Piece {
    /// A piece of `n` elements that are numbers; `None` of other elements, which move one by one.
    pub fn of(cell: &Cell, n: u32) -> Option<Piece> {
        cell.scalar().map(|number| Piece { number, n })
    }

    /// Whether the numbers are joined.
    pub fn joined(self) -> bool {
        self.number.bytes() < WORD && (self.n * self.number.bytes()).is_multiple_of(WORD)
    }

    /// The type of its registers.
    pub fn register(self) -> Scalar {
        if self.joined() { Scalar::U32 } else { self.number }
    }

    /// Its registers.
    pub fn registers(self) -> u32 {
        if self.joined() { self.n * self.number.bytes() / WORD } else { self.n }
    }

    /// As what one number is loaded that is to be joined with others.
    pub fn part(self) -> Scalar {
        if self.joined() { bits_of(self.number) } else { self.number }
    }

    /// The place of the registers that begin with the number at `place`.
    pub fn place(self, mut place: ir::Place) -> ir::Place {
        if self.joined()
            && let ir::Place::Global { within, .. }
            | ir::Place::Dynamic { within, .. }
            | ir::Place::Shared { within, .. } = &mut place
        {
            *within = Some(Box::new(Within { bytes: self.number.bytes(), offset: 0, indices: SmallVec::new() }));
        }
        place
    }
}

impl Lowerer<'_> {
    /// The registers of a piece from its numbers, each a [`Piece::part`] or a number.
    pub(super) fn together(&mut self, piece: Piece, numbers: &[ir::Value]) -> Values {
        if !piece.joined() {
            return numbers.into();
        }
        let parts: Values = numbers.iter().map(|v| self.as_scalar(*v, piece.part())).collect();
        let each = (WORD / piece.number.bytes()) as usize;
        parts.chunks(each).map(|word| self.builder.scalar(Op::Bits(Bits::Join, word.into()), Scalar::U32)).collect()
    }

    /// The numbers of a piece from its registers.
    pub(super) fn apart(&mut self, piece: Piece, registers: &[ir::Value]) -> Values {
        if !piece.joined() {
            return registers.into();
        }
        let bits = 8 * piece.number.bytes();
        let mut numbers = Values::new();
        for word in registers {
            for k in 0..8 * WORD / bits {
                let distance = self.builder.constant(Scalar::U32, u64::from(k * bits));
                let lowest = match k {
                    0 => *word,
                    _ => self.builder.scalar(Op::Binary(Binary::Shr, *word, distance), Scalar::U32),
                };
                let part = self.builder.scalar(Op::Cast(lowest), piece.part());
                numbers.push(self.as_scalar(part, piece.number));
            }
        }
        numbers
    }
}
