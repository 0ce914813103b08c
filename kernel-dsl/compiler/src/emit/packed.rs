//! Elements of 8 and 16 bits in whole words. An access to more than one word of such elements moves
//! words, which are unpacked after a load and packed before a store. One access then moves up to 16
//! bytes, whereas a vector of `.u8` moves 4.

use super::Emitter;
use super::memory::{AddressParts, operand, vector};
use crate::integer;
use crate::ir::MAX_VECTOR_BYTES;
use crate::ptx::{Guard, Modifier, Opcode, Operand, RegisterId, Type};
use crate::scalar::Scalar;
use smallvec::SmallVec;

/// Bytes of a word.
const WORD_BYTES: u32 = 4;

/// Returns whether `n` elements move as words.
pub(super) fn as_words(n: usize, element: Scalar) -> bool {
    let bytes = n * element.bytes() as usize;
    element.bytes() < WORD_BYTES && bytes > WORD_BYTES as usize && bytes.is_power_of_two()
}

/// Returns the number of words of one machine access, for an access to `n` elements.
fn words_at_once(n: usize, element: Scalar) -> usize {
    (n as u32 * element.bytes()).min(MAX_VECTOR_BYTES) as usize / WORD_BYTES as usize
}

/// The lanes that load words.
pub(super) struct WordLanes {
    /// The condition of the lanes that load; `None` if all load.
    pub guard: Option<Guard>,
    /// The elements of masked lanes, if all of them are constant. Otherwise the registers hold them
    /// already.
    pub constants: Option<Vec<u64>>,
}

impl Emitter<'_> {
    /// Loads words by `ld` with these modifiers, and unpacks their elements into `to`.
    pub(super) fn load_words(
        &mut self,
        access: &AddressParts,
        path: &[Modifier],
        lanes: WordLanes,
        element: Scalar,
        to: &[RegisterId],
    ) {
        let (words, each) = (words_at_once(to.len(), element), (WORD_BYTES / element.bytes()) as usize);
        let WordLanes { guard, constants } = lanes;
        let mut loaded: Vec<RegisterId> = Vec::new();
        for first in (0..to.len()).step_by(words * each) {
            let part: Vec<RegisterId> = (0..words).map(|_| self.register(Type::U32)).collect();
            for (word, bits) in part.iter().zip(constants.iter().flat_map(|c| c[first..].chunks(each))) {
                let bits = integer::join(bits, 8 * element.bytes());
                self.guarded(None, Opcode::Mov, &[Modifier::U32], [(*word).into(), Operand::Integer(bits as i64)]);
            }
            let mut modifiers: SmallVec<[Modifier; 4]> = SmallVec::from_slice(path);
            modifiers.extend(vector(words));
            modifiers.push(Modifier::U32);
            let registers = operand(part.iter().map(|r| Operand::Register(*r)).collect());
            self.guarded(guard, Opcode::Ld, &modifiers, [registers, access.part(first, element)]);
            loaded.extend(part);
        }
        // With `constants`, all lanes have words to unpack. Otherwise masked lanes already have
        // their elements, so the guard stays.
        let guard = if constants.is_some() { None } else { guard };
        if element == Scalar::F16 {
            for (pair, word) in to.chunks(2).zip(&loaded) {
                let halves = operand(pair.iter().map(|r| Operand::Register(*r)).collect());
                self.guarded(guard, Opcode::Mov, &[Modifier::B32], [halves, (*word).into()]);
            }
            return;
        }
        // Registers hold small integers sign- or zero-extended by their type.
        let ty = if element.is_signed() { Modifier::S32 } else { Modifier::U32 };
        for (i, to) in to.iter().enumerate() {
            let (bits, word) = (i64::from(8 * element.bytes()), loaded[i / each]);
            let (from, length) = (Operand::Integer((i % each) as i64 * bits), Operand::Integer(bits));
            self.guarded(guard, Opcode::Bfe, &[ty], [(*to).into(), word.into(), from, length]);
        }
    }

    /// Packs elements into words, and stores the words.
    pub(super) fn store_words(
        &mut self,
        access: &AddressParts,
        guard: Option<Guard>,
        element: Scalar,
        values: &[Operand],
    ) {
        let (words, each) = (words_at_once(values.len(), element), (WORD_BYTES / element.bytes()) as usize);
        let bits = i64::from(8 * element.bytes());
        let joined: Vec<Operand> = values
            .chunks(each)
            .map(|elements| {
                if element == Scalar::F16 {
                    return self.pair(elements).into();
                }
                let mut word = elements[0].clone();
                for (i, value) in elements.iter().enumerate().skip(1) {
                    let with = self.register(Type::U32);
                    let (to, length) = (Operand::Integer(i as i64 * bits), Operand::Integer(bits));
                    self.guarded(None, Opcode::Bfi, &[Modifier::B32], [with.into(), value.clone(), word, to, length]);
                    word = with.into();
                }
                word
            })
            .collect();
        for (i, part) in joined.chunks(words).enumerate() {
            let mut modifiers: SmallVec<[Modifier; 4]> = SmallVec::from_slice(&[access.space]);
            modifiers.extend(vector(words));
            modifiers.push(Modifier::U32);
            let address = access.part(i * words * each, element);
            self.guarded(guard, Opcode::St, &modifiers, [address, operand(part.to_vec())]);
        }
    }

    /// Returns the two registers of 16 bits as one of 32.
    fn pair(&mut self, halves: &[Operand]) -> RegisterId {
        let halves = halves.iter().map(|half| match half {
            Operand::Register(_) => half.clone(),
            constant => {
                let register = self.register(Type::B16);
                self.copy(register, constant.clone());
                register.into()
            }
        });
        let halves = operand(halves.collect());
        let word = self.register(Type::B32);
        self.guarded(None, Opcode::Mov, &[Modifier::B32], [word.into(), halves]);
        word
    }
}
