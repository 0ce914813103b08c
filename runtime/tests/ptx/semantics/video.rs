//! Video instructions, by the pseudocode of the manual.

use super::Given;
use super::integer::signed;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Selector, Type};

/// Extracts the selected part of a 32-bit word, sign-extended.
fn chosen(word: u64, selector: Option<Selector>, ty: Type) -> i128 {
    let (bits, shift) = match selector {
        None => (32, 0),
        Some(Selector::Byte(n)) => (8, 8 * u32::from(n)),
        Some(Selector::Half(n)) => (16, 16 * u32::from(n)),
        other => panic!("{other:?}"),
    };
    extended(word >> shift, bits, ty)
}

fn extended(word: u64, bits: u32, ty: Type) -> i128 {
    let low = i128::from(word) & ((1 << bits) - 1);
    if signed(ty) && low >> (bits - 1) & 1 == 1 { low - (1 << bits) } else { low }
}

fn clamped(x: i128, bits: u32, ty: Type) -> i128 {
    if signed(ty) { x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { x.clamp(0, (1 << bits) - 1) }
}

/// Computes the operation on two numbers.
fn operated(given: &Given<'_>, x: i128, y: i128) -> i128 {
    use Opcode::*;
    match given.form.row.opcode {
        Vadd | Vadd2 | Vadd4 => x + y,
        Vsub | Vsub2 | Vsub4 => x - y,
        Vabsdiff | Vabsdiff2 | Vabsdiff4 => (x - y).abs(),
        Vmin | Vmin2 | Vmin4 => x.min(y),
        Vmax | Vmax2 | Vmax4 => x.max(y),
        Vavrg2 | Vavrg4 => (x + y + i128::from(x + y >= 0)) >> 1,
        Vset | Vset2 | Vset4 => i128::from(given.form.modifiers.iter().any(|m| match m {
            Modifier::Eq => x == y,
            Modifier::Ne => x != y,
            Modifier::Lt => x < y,
            Modifier::Le => x <= y,
            Modifier::Gt => x > y,
            Modifier::Ge => x >= y,
            _ => false,
        })),
        Vshl | Vshr => {
            let y = if given.has(Modifier::Wrap) { y & 31 } else { y.min(32) };
            if given.form.row.opcode == Vshl { x << y } else { x >> y }
        }
        other => panic!("{other}"),
    }
}

/// Returns whether the opcode is a video instruction.
pub fn has(opcode: Opcode) -> bool {
    opcode.spelling().starts_with('v') && opcode != Opcode::Vote
}

pub fn of(given: &Given<'_>) -> u32 {
    use Opcode::*;
    let types = given.named();
    let set = matches!(given.form.row.opcode, Vset | Vset2 | Vset4);
    // `vset` names no result type.
    let (to, types) = if set { (Type::U32, types) } else { (types[0], &types[1..]) };
    match given.form.row.opcode {
        Vmad => multiplied(given, types),
        Vadd2 | Vsub2 | Vavrg2 | Vabsdiff2 | Vmin2 | Vmax2 | Vset2 => several(given, 16, to, types),
        Vadd4 | Vsub4 | Vavrg4 | Vabsdiff4 | Vmin4 | Vmax4 | Vset4 => several(given, 8, to, types),
        _ => scalar(given, to, types),
    }
}

fn scalar(given: &Given<'_>, to: Type, types: &[Type]) -> u32 {
    let [a, b, c, _] = given.x;
    let part = given.form.chosen[0].0;
    let x = chosen(a, given.form.chosen[1].0, types[0]);
    let y = chosen(b, given.form.chosen[2].0, types[1]);
    let mut result = operated(given, x, y);
    if given.has(Modifier::Sat) {
        let bits = match part {
            None => 32,
            Some(Selector::Half(_)) => 16,
            Some(_) => 8,
        };
        result = clamped(result, bits, to);
    }
    let as_number = |word: u32| extended(word.into(), 32, to);
    match part {
        Some(Selector::Byte(n)) => c as u32 & !(0xff << (8 * n)) | (result as u32 & 0xff) << (8 * n),
        Some(Selector::Half(n)) => c as u32 & !(0xffff << (16 * n)) | (result as u32 & 0xffff) << (16 * n),
        // The comparison of `vset` is not a secondary operation.
        _ => match given.form.modifiers.last() {
            Some(Modifier::Add) => (result as u32).wrapping_add(c as u32),
            Some(Modifier::Min) => as_number(result as u32).min(as_number(c as u32)) as u32,
            Some(Modifier::Max) => as_number(result as u32).max(as_number(c as u32)) as u32,
            _ => result as u32,
        },
    }
}

fn several(given: &Given<'_>, bits: u32, to: Type, types: &[Type]) -> u32 {
    let [a, b, c, _] = given.x;
    let count = (32 / bits) as usize;
    let both = b << 32 | a;
    // Part by part from the lowest; the selectors name the highest first.
    let order = |selector: Option<Selector>, first: u8| -> Vec<u8> {
        match selector {
            None => (0..count as u8).map(|i| first + i).collect(),
            Some(Selector::Halves([high, low])) => vec![low, high],
            Some(Selector::Bytes(digits)) => digits.into_iter().flatten().rev().collect(),
            other => panic!("{other:?}"),
        }
    };
    let mask: Vec<u8> = match given.form.chosen[0].0 {
        None => (0..count as u8).collect(),
        Some(Selector::Half(n) | Selector::Byte(n)) => vec![n],
        Some(Selector::Halves(list)) => list.to_vec(),
        Some(Selector::Bytes(digits)) => digits.into_iter().flatten().collect(),
    };
    let left = order(given.form.chosen[1].0, 0);
    let right = order(given.form.chosen[2].0, count as u8);
    let add = given.form.modifiers.last() == Some(&Modifier::Add);
    let mut d = c as u32;
    for (i, (left, right)) in (0..count as u8).zip(left.into_iter().zip(right)) {
        if !mask.contains(&i) {
            continue;
        }
        let x = extended(both >> (u32::from(left) * bits), bits, types[0]);
        let y = extended(both >> (u32::from(right) * bits), bits, types[1]);
        let mut result = operated(given, x, y);
        if given.has(Modifier::Sat) {
            result = clamped(result, bits, to);
        }
        let (shift, ones) = (u32::from(i) * bits, (1u32 << bits) - 1);
        d = if add { d.wrapping_add(result as u32) } else { d & !(ones << shift) | (result as u32 & ones) << shift };
    }
    d
}

fn multiplied(given: &Given<'_>, types: &[Type]) -> u32 {
    let [a, b, c, _] = given.x;
    let negated = |i: usize| given.form.chosen[i].1;
    let x = chosen(a, given.form.chosen[1].0, types[0]);
    let y = chosen(b, given.form.chosen[2].0, types[1]);
    let is_signed = signed(types[0]) || signed(types[1]) || (negated(1) ^ negated(2)) || negated(3);
    let (mut product, mut c, mut low) = (x * y, c as u32, 0);
    if given.has(Modifier::Po) {
        low = 1;
    } else if negated(1) ^ negated(2) {
        (product, low) = (!product, 1);
    } else if negated(3) {
        (c, low) = (!c, 1);
    }
    let c = if is_signed { i128::from(c as i32) } else { i128::from(c) };
    let sum = product + c + low;
    let scaled = match () {
        () if given.has(Modifier::Shr7) => sum >> 7,
        () if given.has(Modifier::Shr15) => sum >> 15,
        () => sum,
    };
    let result = if given.has(Modifier::Sat) {
        clamped(scaled, 32, if is_signed { Type::S32 } else { Type::U32 })
    } else {
        scaled
    };
    result as u32
}
