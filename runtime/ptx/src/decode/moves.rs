//! Decodes `mov`, and makes the copies that the decoder inserts.

use super::super::body::{lanewise, unary};
use super::super::code::{AccessStrength, Body, Data, DefinednessRule, InstructionKind, MemoryAccess, Window};
use super::super::registers::{RegisterPlace, Registers, lanes};
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Operand, Type};
use smallvec::{SmallVec, smallvec};

impl OperandLocation {
    /// Returns the registers as the data of an access.
    pub fn data(self) -> Data {
        Data { place: self.place, id: self.id, bits: self.bits }
    }
}

/// Returns a copy between registers of any width, truncated to the destination's.
fn copy(to: OperandLocation, from: OperandLocation) -> Body {
    let mask = u64::MAX >> (64 - to.bits.min(64));
    match (to.place, from.place) {
        (RegisterPlace::Word(d), RegisterPlace::Word(a)) if to.bits >= from.bits => unary(d, a, |x: u32| x),
        (RegisterPlace::Wide(d), RegisterPlace::Wide(a)) => unary(d, a, |x: u64| x),
        (RegisterPlace::Predicate(d), RegisterPlace::Predicate(a)) => {
            Box::new(move |registers: &mut Registers, mask| {
                let value = registers.predicates[a as usize];
                let to = &mut registers.predicates[d as usize];
                *to = *to & !mask | value & mask;
                0
            })
        }
        _ => lanewise(to.place, smallvec![from.place], Box::new(move |[a, ..]| (a & mask, true))),
    }
}

impl<'m> Decoder<'m> {
    pub(super) fn copy(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        words.pass(&[Modifier::V2, Modifier::V4]);
        let ty = words.ty()?;
        let [to, from] = operands else { return Err("it has two operands".to_string()) };
        match (to, from) {
            (Operand::Vector(to), Operand::Vector(from)) => self.copy_vector(frame, to, from, ty),
            (Operand::Vector(parts), from) => {
                let from = self.from(frame, from, ty)?;
                self.unpack(frame, parts, from, ty)
            }
            (to, Operand::Vector(parts)) => {
                let to = self.to(frame, std::slice::from_ref(to), 0)?;
                self.pack(frame, to, parts, ty)
            }
            (_, Operand::Special(s)) => {
                let to = self.to(frame, operands, 0)?;
                if let Some(reading) = self.reading(to, *s) {
                    return Ok(reading);
                }
                let from = self.from(frame, from, ty)?;
                Ok(self.compute(to, &[from], copy(to, from)))
            }
            _ => {
                let (to, from) = (self.to(frame, operands, 0)?, self.from(frame, from, ty)?);
                Ok(self.compute(to, &[from], copy(to, from)))
            }
        }
    }

    /// Copies a vector. All elements are read before the first is written.
    fn copy_vector(&mut self, frame: &mut Frame<'m>, to: &[Operand], from: &[Operand], ty: Type) -> Result {
        let mut pairs: SmallVec<[(OperandLocation, OperandLocation); 4]> = SmallVec::new();
        for (to, from) in to.iter().zip(from) {
            if let Operand::Register(to) = to {
                pairs.push((self.register(frame, *to)?, self.from(frame, from, ty)?));
            }
        }
        let (to, from): (Vec<_>, Vec<_>) =
            pairs.iter().map(|(to, from)| ((to.place, to.id), (from.place, from.id))).unzip();
        // The body also copies the state of each element, because only some elements may be
        // undefined.
        let body: Body = Box::new(move |registers, mask| {
            let values = registers.saved(&from);
            registers.restore(&to, &values, mask);
            0
        });
        let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
        Ok(Decoded { kind, reads: smallvec![], writes: smallvec![] })
    }

    /// Unpacks a value into registers, the lowest part first.
    fn unpack(&mut self, frame: &mut Frame<'m>, parts: &[Operand], from: OperandLocation, ty: Type) -> Result {
        let bits = ty.bits() / parts.len().max(1) as u32;
        let mut to: SmallVec<[Option<OperandLocation>; 4]> = SmallVec::new();
        for part in parts {
            to.push(match part {
                Operand::Register(r) => Some(self.register(frame, *r)?),
                Operand::Sink => None,
                _ => return Err("a part of its destination is not a register".to_string()),
            });
        }
        let places = to.clone();
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let body: Body = Box::new(move |registers, lanes_of| {
            for lane in lanes(lanes_of) {
                let value = registers.get(from.place, lane);
                for (i, part) in places.iter().enumerate() {
                    if let Some(part) = part {
                        registers.set(part.place, lane, value >> (bits * i as u32) & mask);
                    }
                }
            }
            0
        });
        let kind = InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "" };
        Ok(Decoded { kind, reads: smallvec![from.id], writes: to.iter().flatten().map(|s| s.id).collect() })
    }

    /// Packs registers into a value, the lowest part first.
    fn pack(&mut self, frame: &mut Frame<'m>, to: OperandLocation, parts: &[Operand], ty: Type) -> Result {
        let bits = ty.bits() / parts.len().max(1) as u32;
        let part_type = match bits {
            8 => Type::B8,
            16 => Type::B16,
            32 => Type::B32,
            _ => return Err("the size of its parts is not supported".to_string()),
        };
        let mut from: SmallVec<[OperandLocation; 4]> = SmallVec::new();
        for part in parts {
            from.push(self.from(frame, part, part_type)?);
        }
        let mask = u64::MAX >> (64 - bits);
        Ok(self.lanewise(to, &from, move |x| {
            x.iter()
                .enumerate()
                .fold(0, |value, (i, part)| value | (part & mask).checked_shl(bits * i as u32).unwrap_or(0))
        }))
    }

    /// Inserts a copy that is not in the text.
    pub(super) fn move_register(&mut self, to: OperandLocation, from: OperandLocation) {
        let decoded = self.compute(to, &[from], copy(to, from));
        let site = self.site;
        self.push(None, decoded, site);
    }

    /// Inserts a store to local memory that is not in the text.
    pub(super) fn store_local(&mut self, from: OperandLocation, offset: u32, bytes: u32) {
        let access = local(from, offset, bytes);
        let site = self.site;
        let kind = InstructionKind::Store(access);
        self.push(None, Decoded { kind, reads: smallvec![from.id], writes: smallvec![] }, site);
    }

    /// Inserts a load from local memory that is not in the text.
    pub(super) fn load_local(&mut self, to: OperandLocation, offset: u32, bytes: u32) {
        let access = local(to, offset, bytes);
        let site = self.site;
        let kind = InstructionKind::Load(access);
        self.push(None, Decoded { kind, reads: smallvec![], writes: smallvec![to.id] }, site);
    }
}

fn local(register: OperandLocation, offset: u32, bytes: u32) -> MemoryAccess {
    MemoryAccess {
        window: Window::Local,
        base: None,
        offset: offset.into(),
        element: bytes,
        signed: false,
        values: smallvec![Some(register.data())],
        needed: 1,
        strength: AccessStrength::Weak,
        read_only: false,
    }
}
