//! Integers and bits, in 128-bit arithmetic.

use super::{Given, Outcome, Value};
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};

/// The opcodes of [`of`], for integers.
pub const ARITHMETIC: &[Opcode] = {
    use Opcode::*;
    &[Add, Sub, Mul, Mad, Div, Rem, Min, Max, Neg, Abs, Addc, Subc, Madc, Mul24, Mad24, Sad, Dp4a, Dp2a]
};

/// The opcodes of [`bits`].
pub const BITS: &[Opcode] = {
    use Opcode::*;
    &[And, Or, Xor, Not, Cnot, Shl, Shr, Shf, Bfe, Bfi, Bfind, Bmsk, Brev, Clz, Popc, Prmt, Lop3, Fns, Szext]
};

/// Returns whether the type is signed.
pub fn signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

/// Converts bits of that type to their value.
pub fn number(bits: u64, ty: Type) -> i128 {
    let unused = 128 - ty.bits();
    let x = i128::from(bits) << unused;
    if signed(ty) { x >> unused } else { (x as u128 >> unused) as i128 }
}

/// Truncates a number to the bits of a type.
pub fn cut(x: i128, ty: Type) -> u64 {
    x as u64 & u64::MAX >> (64 - ty.bits())
}

/// Returns the minimum and maximum of a type.
pub fn range(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if signed(ty) { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Clamps a number to the range of the type.
pub fn clamp(x: i128, ty: Type) -> u64 {
    let (least, greatest) = range(ty);
    cut(x.clamp(least, greatest), ty)
}

/// Computes the full product, truncated to twice the type's bits.
fn product(a: u64, b: u64, ty: Type) -> u128 {
    if signed(ty) { (number(a, ty) * number(b, ty)) as u128 } else { (number(a, ty) as u128) * (number(b, ty) as u128) }
}

/// Returns the half of a product that `.lo` or `.hi` selects.
fn half(given: &Given<'_>, ty: Type) -> u64 {
    let [a, b, ..] = given.x;
    let whole = product(a, b, ty);
    let shifted = if given.has(Modifier::Hi) { whole >> ty.bits() } else { whole };
    cut(shifted as i128, ty)
}

/// Returns 32 bits of the 48-bit product of 24-bit operands.
fn half24(given: &Given<'_>, ty: Type) -> u64 {
    let low = |x: u64| {
        let x = (x & 0xff_ffff) as i128;
        if signed(ty) && x >> 23 == 1 { x - (1 << 24) } else { x }
    };
    let whole = low(given.x[0]) * low(given.x[1]);
    cut(if given.has(Modifier::Hi) { whole >> 16 } else { whole }, ty)
}

pub fn of(given: &Given<'_>) -> Outcome {
    let ty = given.ty();
    let [a, b, c, _] = given.x;
    let (x, y) = (number(a, ty), number(b, ty));
    let exact = |d: i128| Value::Bits(cut(d, ty));
    let carry = i128::from(given.carry);
    // The sum of two numbers, and its carry-out.
    let sum = |a: u64, b: u64, more: i128| {
        let whole = i128::from(a) + i128::from(b) + more;
        Outcome { d: exact(whole), second: None, carry: given.has(Modifier::Cc).then_some(whole >> ty.bits() != 0) }
    };
    // A carry of 1 means no borrow.
    let difference = |carry: i128| {
        let whole = i128::from(a) - i128::from(b) - (1 - carry);
        Outcome { d: exact(whole), second: None, carry: given.has(Modifier::Cc).then_some(whole >= 0) }
    };
    let sat = given.has(Modifier::Sat);
    let d = match given.form.row.opcode {
        Opcode::Add if sat => Value::Bits(clamp(x + y, ty)),
        Opcode::Sub if sat => Value::Bits(clamp(x - y, ty)),
        Opcode::Add => return sum(a, b, 0),
        Opcode::Addc => return sum(a, b, carry),
        Opcode::Sub => return difference(1),
        Opcode::Subc => return difference(carry),
        Opcode::Mul if given.has(Modifier::Wide) => Value::Bits(cut(product(a, b, ty) as i128, ty.doubled().unwrap())),
        Opcode::Mad if given.has(Modifier::Wide) => {
            let wide = ty.doubled().unwrap();
            Value::Bits(cut((product(a, b, ty) as i128).wrapping_add(i128::from(c)), wide))
        }
        Opcode::Mul => Value::Bits(half(given, ty)),
        Opcode::Mad if sat => Value::Bits(clamp(number(half(given, ty), ty) + number(c, ty), ty)),
        Opcode::Mad => return sum(half(given, ty), c, 0),
        Opcode::Madc => return sum(half(given, ty), c, carry),
        Opcode::Mul24 => Value::Bits(half24(given, ty)),
        Opcode::Mad24 if sat => Value::Bits(clamp(number(half24(given, ty), ty) + number(c, ty), ty)),
        Opcode::Mad24 => exact(i128::from(half24(given, ty)) + i128::from(c)),
        Opcode::Sad => exact(i128::from(c) + (x - y).abs()),
        // A divisor of 0 gives ones.
        Opcode::Div | Opcode::Rem if y == 0 => exact(-1),
        Opcode::Div => exact(x / y),
        Opcode::Rem => exact(x % y),
        Opcode::Min => exact(x.min(y)),
        Opcode::Max => exact(x.max(y)),
        Opcode::Neg => exact(-x),
        Opcode::Abs => exact(x.abs()),
        Opcode::Dp4a | Opcode::Dp2a => return dot(given).into(),
        other => panic!("{other}"),
    };
    d.into()
}

fn dot(given: &Given<'_>) -> Value {
    let types = given.named();
    let [a, b, c, _] = given.x;
    let part = |word: u64, bits: u32, i: u32, ty: Type| {
        let unused = 64 - bits;
        let x = word >> (bits * i) << unused;
        if signed(ty) { x as i64 >> unused } else { (x >> unused) as i64 }
    };
    let sum: i64 = match given.form.row.opcode {
        Opcode::Dp4a => (0..4).map(|i| part(a, 8, i, types[0]) * part(b, 8, i, types[1])).sum(),
        _ => {
            let first = if given.has(Modifier::Hi) { 2 } else { 0 };
            (0..2).map(|i| part(a, 16, i, types[0]) * part(b, 8, first + i, types[1])).sum()
        }
    };
    Value::Bits(u64::from((c as u32).wrapping_add(sum as u32)))
}

pub fn bits(given: &Given<'_>) -> u64 {
    let ty = given.ty();
    let n = ty.bits();
    let [a, b, c, e] = given.x;
    let ones = |count: u32| ((1u128 << count.min(64)) - 1) as u64;
    let all = ones(n);
    let clamped = |x: u64| x.min(u64::from(n)) as u32;
    // The machine takes the low bytes of a position and a length in a word, and all of both in two
    // words.
    let field = |at: u64, length: u64| if n == 32 { (at & 0xff, length & 0xff) } else { (at, length) };
    match given.form.row.opcode {
        Opcode::And => a & b,
        Opcode::Or => a | b,
        Opcode::Xor => a ^ b,
        Opcode::Not => !a & all,
        Opcode::Cnot => u64::from(a == 0),
        Opcode::Shl => cut((u128::from(a) << clamped(b)) as i128, ty),
        Opcode::Shr => cut(number(a, ty) >> clamped(b), ty),
        Opcode::Shf => {
            let both = u128::from(b << 32 | a);
            let by = if given.has(Modifier::Wrap) { c % 32 } else { c.min(32) };
            let shifted = if given.has(Modifier::L) { (both << by) >> 32 } else { both >> by };
            shifted as u64 & 0xffff_ffff
        }
        Opcode::Bfe => {
            let (position, length) = field(b, c);
            let bit = |i: u64| if i < u64::from(n) { a >> i & 1 } else { 0 };
            // The manual's definition, bit by bit: the sign comes from the last existing bit.
            let sign = if !signed(ty) || length == 0 { 0 } else { bit((position + length - 1).min(u64::from(n) - 1)) };
            let chosen = |i: u64| if i < length && position + i < u64::from(n) { bit(position + i) } else { sign };
            (0..u64::from(n)).fold(0, |d, i| d | chosen(i) << i)
        }
        Opcode::Bfi => {
            let (position, length) = field(c, e);
            let bit = |i: u64| {
                let inside = i >= position && i < position + length;
                if inside { a >> (i - position) & 1 } else { b >> i & 1 }
            };
            (0..u64::from(n)).fold(0, |d, i| d | bit(i) << i)
        }
        Opcode::Bfind => {
            let magnitude = if signed(ty) && a >> (n - 1) & 1 == 1 { !a & all } else { a };
            let highest = (0..n).rev().find(|i| magnitude >> i & 1 == 1);
            match highest {
                None => 0xffff_ffff,
                Some(i) if given.has(Modifier::Shiftamt) => u64::from(n - 1 - i),
                Some(i) => i.into(),
            }
        }
        Opcode::Bmsk => {
            let (start, count) = if given.has(Modifier::Wrap) { (a % 32, b % 32) } else { (a.min(32), b.min(32)) };
            (start..(start + count).min(32)).fold(0, |d, i| d | 1 << i)
        }
        Opcode::Szext => {
            let count = if given.has(Modifier::Wrap) { b % 32 } else { b.min(32) };
            let kept = a & ones(count as u32);
            let sign = count > 0 && signed(ty) && a >> (count - 1) & 1 == 1;
            if sign { kept | all & !ones(count as u32) } else { kept }
        }
        Opcode::Brev => (0..n).fold(0, |d, i| d | (a >> i & 1) << (n - 1 - i)),
        Opcode::Clz => (0..n).rev().take_while(|i| a >> i & 1 == 0).count() as u64,
        Opcode::Popc => (0..n).map(|i| a >> i & 1).sum(),
        Opcode::Prmt => permuted(given, a, b, c),
        Opcode::Lop3 => {
            let row = |i: u32| (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
            (0..32).fold(0, |d, i| d | (given.form.constant >> row(i) & 1) << i)
        }
        Opcode::Fns => {
            let offset = c as u32 as i32;
            let set = |i: i64| a >> i & 1 == 1;
            let (base, step) = (b as i64, i64::from(offset.signum()));
            let mut left = offset.abs() - 1;
            let mut at = base;
            if offset == 0 {
                return if set(base) { b } else { 0xffff_ffff };
            }
            while (0..32).contains(&at) {
                if set(at) {
                    if left == 0 {
                        return at as u64;
                    }
                    left -= 1;
                }
                at += step;
            }
            0xffff_ffff
        }
        other => panic!("{other}"),
    }
}

/// Permutes bytes by the tables of the manual.
fn permuted(given: &Given<'_>, a: u64, b: u64, c: u64) -> u64 {
    let byte = |i: u64| (b << 32 | a) >> (8 * i) & 0xff;
    let n = c & 3;
    let mode = given.form.modifiers.iter().copied().find(|m| m.ty().is_none());
    let chosen: [u64; 4] = match mode {
        None => {
            let of = |i: u64| {
                let nibble = c >> (4 * i) & 0xf;
                let value = byte(nibble & 7);
                if nibble & 8 == 0 { value } else { 0xff * (value >> 7) }
            };
            return (0..4).fold(0, |d, i| d | of(i) << (8 * i));
        }
        // The selected bytes, from byte 0 of the result to byte 3.
        Some(Modifier::F4e) => [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]][n as usize],
        Some(Modifier::B4e) => [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]][n as usize],
        Some(Modifier::Rc8) => [n; 4],
        Some(Modifier::Ecl) => [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]][n as usize],
        Some(Modifier::Ecr) => [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]][n as usize],
        _ => [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]][n as usize],
    };
    chosen.into_iter().zip(0..).fold(0, |d, (i, at)| d | byte(i) << (8 * at))
}
