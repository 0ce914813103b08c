//! The parser of the notation: at compile time to a row, and to text with the shared sets expanded.

use super::{
    ConstantLimit, FormRow, FormSlot, MAX_OPERANDS, MAX_SLOTS, OperandForm, OperandKind, OperandType, Presence,
    Selection, Set,
};
use crate::ptx::words::{Modifier, Opcode, Type, Version, bytes_equal};
use std::fmt;

/// Formats the form with the shared sets expanded.
impl fmt::Display for FormRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.form.split("; ").enumerate() {
            f.write_str(if i > 0 { "; " } else { "" })?;
            match part.split_once(" = ") {
                Some((name, set)) if !set.starts_with('{') => write!(f, "{name} = {}", shared(set.as_bytes()))?,
                _ => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Parses a form to a row.
pub const fn row(target: u16, version: Version, form: &'static str) -> FormRow {
    let text = form.as_bytes();
    let mut at = NotationCursor { text, at: 0 };
    let Some(opcode) = Opcode::from_spelling(at.word()) else { panic!("the form begins with an opcode") };
    let slot = FormSlot { alternatives: Set::EMPTY, optional: false };
    let operand = OperandForm::NONE;
    let mut row = FormRow {
        opcode,
        form,
        target,
        version,
        removed: None,
        modifiers: Set::EMPTY,
        slots: [slot; MAX_SLOTS],
        slot_count: 0,
        operands: [operand; MAX_OPERANDS],
        operand_count: 0,
    };
    let mut names: [&[u8]; MAX_SLOTS] = [b""; MAX_SLOTS];
    loop {
        let optional = at.eat(b"{.");
        if !optional && !at.eat(b".") {
            break;
        }
        let name = at.word();
        names[row.slot_count] = name;
        let alternatives = alternatives(text, name);
        row.slots[row.slot_count] = FormSlot { alternatives, optional };
        row.modifiers = row.modifiers.or(alternatives);
        row.slot_count += 1;
        if optional {
            at.expect(b"}");
        }
    }
    if at.eat(b" ") {
        loop {
            row.operands[row.operand_count] = at.operand(&row, &names);
            row.operand_count += 1;
            if at.eat(b"{") {
                let presence = if at.eat(b", ") { Presence::Optional } else { at.presence(&row, &names) };
                row.operands[row.operand_count] = at.operand(&row, &names);
                row.operands[row.operand_count].presence = presence;
                row.operand_count += 1;
                at.expect(b"}");
                // The index of an operand equals that of its form.
                break;
            }
            if !at.eat(b", ") {
                break;
            }
        }
    }
    assert!(at.at == text.len() || at.text[at.at] == b';', "the form ends, or its sets follow");
    row
}

/// Returns the alternatives of `name`: the set defined after the semicolon, or the modifier itself.
const fn alternatives(text: &[u8], name: &[u8]) -> Set {
    let mut at = NotationCursor { text, at: 0 };
    at.skip_to_semicolon();
    while at.eat(b"; ") {
        at.expect(b".");
        let wanted = bytes_equal(at.word(), name);
        at.expect(b" = ");
        if wanted {
            let in_place = at.at < text.len() && text[at.at] == b'{';
            return if in_place {
                at.list()
            } else {
                NotationCursor { text: shared(at.word()).as_bytes(), at: 0 }.list()
            };
        }
        at.skip_to_semicolon();
    }
    assert!(at.at == text.len(), "nothing follows the sets");
    let Some(m) = Modifier::from_spelling(name) else { panic!("a modifier is known, or its set is given") };
    Set::EMPTY.with(m)
}

/// The sets of modifiers that many rows share.
pub const MODIFIER_SETS: [(&str, &str); 20] = [
    ("integer", "{.u16, .u32, .u64, .s16, .s32, .s64}"),
    ("any_integer", "{.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    ("unsigned", "{.u16, .u32, .u64}"),
    ("bits", "{.b16, .b32, .b64}"),
    ("value", "{.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),
    ("memory", "{.b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64}"),
    ("memory32", "{.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    ("memory64", "{.b64, .u64, .s64, .f64}"),
    ("word", "{.u32, .s32}"),
    ("double_word", "{.u64, .s64}"),
    ("rounding", "{.rn, .rz, .rm, .rp}"),
    ("integral", "{.rni, .rzi, .rmi, .rpi}"),
    ("compare", "{.eq, .ne, .lt, .le, .gt, .ge}"),
    ("float_compare", "{.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}"),
    ("logic", "{.and, .or, .xor}"),
    ("scope", "{.cta, .gpu, .sys}"),
    ("texel", "{.u32, .s32, .f16, .f32}"),
    ("flat", "{.1d, .2d, .3d, .a1d, .a2d}"),
    ("depth_shape", "{.1d, .2d, .a1d, .a2d}"),
    ("outside", "{.trap, .clamp, .zero}"),
];

/// Returns the shared set `name`.
const fn shared(name: &[u8]) -> &'static str {
    let mut i = 0;
    while i < MODIFIER_SETS.len() {
        if bytes_equal(MODIFIER_SETS[i].0.as_bytes(), name) {
            return MODIFIER_SETS[i].1;
        }
        i += 1;
    }
    panic!("a set that is not set out is a shared one")
}

#[derive(Clone, Copy)]
struct NotationCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> NotationCursor<'a> {
    const fn eat(&mut self, expected: &[u8]) -> bool {
        let mut i = 0;
        while i < expected.len() {
            if self.at + i >= self.text.len() || self.text[self.at + i] != expected[i] {
                return false;
            }
            i += 1;
        }
        self.at += expected.len();
        true
    }

    const fn expect(&mut self, expected: &[u8]) {
        assert!(self.eat(expected), "the notation's punctuation");
    }

    const fn skip_to_semicolon(&mut self) {
        while self.at < self.text.len() && self.text[self.at] != b';' {
            self.at += 1;
        }
    }

    /// Parses `{.a, .b}`.
    const fn list(&mut self) -> Set {
        self.expect(b"{");
        let mut set = Set::EMPTY;
        loop {
            self.expect(b".");
            let Some(m) = Modifier::from_spelling(self.word()) else { panic!("an alternative is a modifier") };
            set = set.with(m);
            if !self.eat(b", ") {
                break;
            }
        }
        self.expect(b"}");
        set
    }

    const fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.at < self.text.len() && matches!(self.text[self.at], b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_')
        {
            self.at += 1;
        }
        assert!(self.at > start, "a word stands here");
        self.text.split_at(self.at).0.split_at(start).1
    }

    const fn operand(&mut self, row: &FormRow, names: &[&[u8]; MAX_SLOTS]) -> OperandForm {
        let mut form = OperandForm::NONE;
        form.negatable = self.eat(b"{!}");
        form.signed = self.eat(b"{-}");
        if self.eat(b"[") {
            self.place(row, names, &mut form);
            self.expect(b"]");
            return form;
        }
        form.register = self.eat(b"%");
        let name = self.word();
        form.destination = name[0] == b'd' || bytes_equal(name, b"p");
        if bytes_equal(name, b"label") {
            form.kind = OperandKind::Label;
            return form;
        } else if bytes_equal(name, b"tlist") {
            form.kind = OperandKind::BranchTargets;
            return form;
        } else if bytes_equal(name, b"callee") {
            form.kind = OperandKind::Callee;
            return form;
        } else if bytes_equal(name, b"symbol") {
            form.kind = OperandKind::Symbol;
        } else if bytes_equal(name, b"sreg") {
            form.kind = OperandKind::Special;
        } else if bytes_equal(name, b"constant") {
            form.kind = OperandKind::Constant;
        } else if bytes_equal(name, b"event") {
            form.kind = OperandKind::Constant;
            form.limit = ConstantLimit::Event;
        } else if bytes_equal(name, b"barrier") {
            form.limit = ConstantLimit::Barrier;
        } else if bytes_equal(name, b"threads") {
            form.limit = ConstantLimit::Threads;
        }
        form.ty = if self.eat(b":") {
            self.operand_type(row, names, &mut form.kind)
        } else if bytes_equal(name, b"p") {
            OperandType::Fixed(Type::Pred)
        } else {
            OperandType::Slot(last_type(row))
        };
        form.wider = self.eat(b"+") || matches!(form.kind, OperandKind::Vectorized);
        form.sink = self.eat(b"{_}");
        form.paired = self.eat(b"{|p}");
        form.selection = self.selection();
        form
    }

    /// Parses the operand in brackets.
    const fn place(&mut self, row: &FormRow, names: &[&[u8]; MAX_SLOTS], form: &mut OperandForm) {
        let name = self.word();
        if bytes_equal(name, b"own") {
            form.kind = OperandKind::OwnSampler;
            return;
        }
        let object = if bytes_equal(name, b"texture") {
            Type::Texref
        } else if bytes_equal(name, b"surface") {
            Type::Surfref
        } else if bytes_equal(name, b"sampler") {
            Type::Samplerref
        } else {
            form.kind = OperandKind::Address;
            return;
        };
        form.kind = OperandKind::Object(object);
        if self.eat(b", ") {
            self.word();
            self.expect(b":");
            form.ty = self.operand_type(row, names, &mut form.kind);
            form.kind = OperandKind::Texel(object);
        }
    }

    const fn presence(&mut self, row: &FormRow, names: &[&[u8]; MAX_SLOTS]) -> Presence {
        self.expect(b".");
        let name = self.word();
        self.expect(b", ");
        let mut i = 0;
        while i < row.slot_count {
            if bytes_equal(names[i], name) {
                return Presence::With(i as u8);
            }
            i += 1;
        }
        panic!("an operand goes with a modifier of the form")
    }

    const fn selection(&mut self) -> Selection {
        if self.eat(b"{.part}") {
            Selection::Part
        } else if self.eat(b".part") {
            Selection::OnePart
        } else if self.eat(b"{.halves}") {
            Selection::Halves
        } else if self.eat(b"{.bytes}") {
            Selection::Bytes
        } else if self.eat(b"{.half_mask}") {
            Selection::HalfMask
        } else if self.eat(b"{.byte_mask}") {
            Selection::ByteMask
        } else {
            Selection::None
        }
    }

    const fn operand_type(&mut self, row: &FormRow, names: &[&[u8]; MAX_SLOTS], kind: &mut OperandKind) -> OperandType {
        let word = self.word();
        if bytes_equal(word, b"wide") {
            return OperandType::Wide(last_type(row));
        }
        if bytes_equal(word, b"vec") {
            *kind = OperandKind::Vectorized;
            return OperandType::Slot(last_type(row));
        }
        if bytes_equal(word, b"offsets") {
            *kind = OperandKind::Axes;
            return OperandType::Fixed(Type::S32);
        }
        if bytes_equal(word, b"slopes") {
            *kind = OperandKind::Axes;
            return OperandType::Fixed(Type::F32);
        }
        if let Some(ty) = named_type(row, names, word) {
            return ty;
        }
        let (ty, count) = word.split_at(word.len() - 2);
        assert!(count[0] == b'x', "an operand's type is known");
        *kind = OperandKind::Vector(count[1] - b'0');
        let Some(ty) = named_type(row, names, ty) else { panic!("a vector's type is known") };
        ty
    }
}

/// Returns the type in the slot with this name, or the type with this name.
const fn named_type(row: &FormRow, names: &[&[u8]; MAX_SLOTS], word: &[u8]) -> Option<OperandType> {
    let mut i = 0;
    while i < row.slot_count {
        if bytes_equal(names[i], word) && row.slots[i].alternatives.only_types() {
            return Some(OperandType::Slot(i as u8));
        }
        i += 1;
    }
    match Type::from_spelling(word) {
        Some(ty) => Some(OperandType::Fixed(ty)),
        None => None,
    }
}

/// Returns the slot of the instruction's type: the last slot that contains a type.
const fn last_type(row: &FormRow) -> u8 {
    let mut i = row.slot_count;
    while i > 0 {
        i -= 1;
        if row.slots[i].alternatives.only_types() {
            return i as u8;
        }
    }
    panic!("an operand without a type needs an instruction with one")
}
