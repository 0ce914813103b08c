//! Words that are mixed from parts of other words by byte permutations.
//!
//! A word of bytes from four others takes three permutations, and can share two of them with
//! another word. A 4×4 transpose of bytes takes eight in total.

use super::WordParts;
use crate::ir::{Bits, Inst, Location, Op, Type, Value};
use crate::passes::constants::Constants;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// The place of a small integer: a word, and the part of the word.
pub(super) type SubwordLocation = (Value, usize);

/// A byte of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Byte(Value, u8);

/// Two bytes side by side in a mixed word.
pub(super) type Half = [Byte; 2];

/// Makes mixed words.
pub(super) struct Mixer {
    parts: HashMap<Value, SubwordLocation>,
    packs: HashSet<WordParts>,
    /// Halves of words that are mixed from four words, by the two words of each half.
    wanted: HashMap<[Value; 2], Vec<Half>>,
    /// The halves that code before this point has made, each as the lower or the upper half of a
    /// word.
    existing_halves: HalfLocations,
}

/// Maps a half, by its source bytes, to the two bytes of the word that contains it now.
pub(super) type HalfLocations = HashMap<Half, Half>;

impl Mixer {
    /// Collects small integers that lie in words, and packs of them to mix.
    pub fn new(parts: HashMap<Value, SubwordLocation>, packs: Vec<WordParts>) -> Mixer {
        let mut mixer = Mixer { parts, packs: HashSet::new(), wanted: HashMap::new(), existing_halves: HashMap::new() };
        for pack in packs {
            if let Some(bytes) = mixer.bytes(&pack).filter(|bytes| words(bytes).len() == 4) {
                for half in halves(bytes) {
                    mixer.wanted.entry(half.map(|byte| byte.0)).or_default().push(half);
                }
            }
            mixer.packs.insert(pack);
        }
        mixer
    }

    /// Returns whether a pack is mixed.
    pub fn mixes(&self, pack: &[Value]) -> bool {
        self.packs.contains(pack)
    }

    /// Returns the current state for [`Mixer::leave`]. Code around a region cannot use the values
    /// of the region.
    pub fn enter(&self) -> HalfLocations {
        self.existing_halves.clone()
    }

    /// Restores the state from before a region.
    pub fn leave(&mut self, outside: HalfLocations) {
        self.existing_halves = outside;
    }

    /// Returns the word of a pack that is mixed. The instructions that make the word are appended
    /// to `code`.
    pub fn mix(&mut self, pack: &[Value], code: &mut InstructionList) -> Option<Value> {
        if !self.mixes(pack) {
            return None;
        }
        let mut bytes = self.bytes(pack)?;
        let words = words(&bytes);
        if words.len() == 4 {
            let [low, high] = halves(bytes).map(|half| self.half(half, code));
            bytes = [low[0], low[1], high[0], high[1]];
        } else if let [a, b, _] = words[..] {
            // With three source words, the bytes from the first two are combined first.
            let mut of_two =
                bytes.iter().copied().filter(|byte| [a, b].contains(&byte.0)).collect::<SmallVec<[Byte; 4]>>();
            of_two.resize(4, bytes[0]);
            let word = code.permute([of_two[0], of_two[1], of_two[2], of_two[3]]);
            for byte in &mut bytes {
                if let Some(at) = of_two.iter().position(|known| known == byte) {
                    *byte = Byte(word, at as u8);
                }
            }
        }
        Some(code.permute(bytes))
    }

    /// Returns the bytes of a pack; `None` if a part is not in a word.
    fn bytes(&self, pack: &[Value]) -> Option<[Byte; 4]> {
        let each = 4 / pack.len();
        let byte = |k: usize| {
            let (word, at) = self.parts.get(pack.get(k / each)?)?;
            Some(Byte(*word, (at * each + k % each) as u8))
        };
        Some([byte(0)?, byte(1)?, byte(2)?, byte(3)?])
    }

    /// Returns the place of a half in a word: an existing word, or a new one. A new word also
    /// contains another requested half of the same source words.
    fn half(&mut self, half: Half, code: &mut InstructionList) -> Half {
        if let Some(existing) = self.existing_halves.get(&half) {
            return *existing;
        }
        let with = self.wanted.get(&half.map(|byte| byte.0)).into_iter().flatten();
        let with = *with
            .into_iter()
            .find(|other| **other != half && !self.existing_halves.contains_key(*other))
            .unwrap_or(&half);
        let word = code.permute([half[0], half[1], with[0], with[1]]);
        self.existing_halves.insert(with, [Byte(word, 2), Byte(word, 3)]);
        self.existing_halves.insert(half, [Byte(word, 0), Byte(word, 1)]);
        [Byte(word, 0), Byte(word, 1)]
    }
}

/// Returns the lower and the upper half of a word.
fn halves([a, b, c, d]: [Byte; 4]) -> [Half; 2] {
    [[a, b], [c, d]]
}

/// Returns the distinct words that contain these bytes.
fn words(bytes: &[Byte; 4]) -> SmallVec<[Value; 4]> {
    let mut words = SmallVec::new();
    for byte in bytes {
        if !words.contains(&byte.0) {
            words.push(byte.0);
        }
    }
    words
}

/// The list to which new instructions are appended.
pub(super) struct InstructionList<'a> {
    pub types: &'a mut Vec<Type>,
    pub constants: &'a mut Constants,
    pub inserts: &'a mut Vec<Inst>,
    pub location: Location,
}

impl InstructionList<'_> {
    /// Emits a word of these bytes, which come from two words at most.
    fn permute(&mut self, bytes: [Byte; 4]) -> Value {
        let first = bytes[0].0;
        let second = bytes.iter().map(|byte| byte.0).find(|word| *word != first).unwrap_or(first);
        assert!(bytes.iter().all(|byte| [first, second].contains(&byte.0)));
        // Bytes 0 to 3 are the first's, 4 to 7 the second's; four bits each.
        let of = |byte: &Byte| u64::from(byte.1) + if byte.0 == first { 0 } else { 4 };
        let selector = bytes.iter().rev().fold(0, |selector, byte| (selector << 4) | of(byte));
        let selector = self.constants.get(self.types, Type::Scalar(Scalar::U32), selector);
        let word = Value(self.types.len() as u32);
        self.types.push(self.types[first.0 as usize]);
        let op = Op::Bits(Bits::Permute, SmallVec::from_slice(&[first, second, selector]));
        self.inserts.push(Inst { op, results: SmallVec::from_slice(&[word]), location: self.location });
        word
    }
}
