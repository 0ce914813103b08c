//! Constant expressions, evaluated in 64 bits as the manual defines.

use super::cursor::{Cursor, ParseFailed};
use super::error::ParseMistake;
use super::lex::{LiteralValue, Punctuation, TokenKind};

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ConstantValue {
    /// An integer of type `.s64`, written in decimal or computed.
    Signed(i64),
    /// An integer of type `.u64`.
    Unsigned(u64),
    /// An integer literal written in hexadecimal.
    Bits(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`
    F64(u64),
    /// A float written in decimal or computed.
    Decimal(f64),
}

/// The largest nesting depth of parentheses, unary operators and conditions.
const MAX_DEPTH: usize = 64;

impl ConstantValue {
    /// Returns the bits of an integer.
    pub fn integer(self) -> Option<u64> {
        match self {
            ConstantValue::Signed(n) => Some(n as u64),
            ConstantValue::Unsigned(n) | ConstantValue::Bits(n) => Some(n),
            _ => None,
        }
    }

    fn is_unsigned(self) -> bool {
        match self {
            ConstantValue::Unsigned(_) => true,
            // A literal is signed if its value fits.
            ConstantValue::Bits(n) => n > i64::MAX as u64,
            _ => false,
        }
    }

    fn with(bits: u64, unsigned: bool) -> ConstantValue {
        if unsigned { ConstantValue::Unsigned(bits) } else { ConstantValue::Signed(bits as i64) }
    }
}

/// Returns the precedence of a binary operator; the lowest is 1.
fn precedence(mark: Punctuation) -> Option<u8> {
    Some(match mark {
        Punctuation::Either => 1,
        Punctuation::Both => 2,
        Punctuation::Bar => 3,
        Punctuation::Xor => 4,
        Punctuation::And => 5,
        Punctuation::Equal | Punctuation::Differs => 6,
        Punctuation::Less | Punctuation::LessEqual | Punctuation::Greater | Punctuation::GreaterEqual => 7,
        Punctuation::ShiftLeft | Punctuation::ShiftRight => 8,
        Punctuation::Plus | Punctuation::Minus => 9,
        Punctuation::Times | Punctuation::Slash | Punctuation::Percent => 10,
        _ => return None,
    })
}

impl Cursor<'_> {
    /// Returns whether a constant expression begins here.
    pub fn at_constant(&self) -> bool {
        match self.peek().kind {
            TokenKind::Number(_) => true,
            TokenKind::Punctuation(m) => matches!(
                m,
                Punctuation::Minus | Punctuation::Plus | Punctuation::Not | Punctuation::Tilde | Punctuation::Open
            ),
            TokenKind::Word => self.text(self.peek()) == "WARP_SZ",
            _ => false,
        }
    }

    /// Parses a constant expression.
    pub fn constant(&mut self) -> Result<ConstantValue, ParseFailed> {
        self.conditional(0)
    }

    /// Parses a constant expression of integer type. Returns its bits.
    pub fn integer(&mut self) -> Result<u64, ParseFailed> {
        let at = self.peek();
        let value = self.constant()?;
        value.integer().ok_or_else(|| self.expected_at(at, "an integer"))
    }

    /// Parses a constant expression whose value fits in 32 bits.
    pub fn constant_u32(&mut self) -> Result<u32, ParseFailed> {
        let at = self.peek();
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.expected_at(at, "an integer that fits in 32 bits"))
    }

    fn conditional(&mut self, depth: usize) -> Result<ConstantValue, ParseFailed> {
        let condition = self.binary(1, depth)?;
        if !self.eat(Punctuation::Question) {
            return Ok(condition);
        }
        let at = self.peek();
        let yes = self.conditional(depth + 1)?;
        self.expect(Punctuation::Colon)?;
        let no = self.conditional(depth + 1)?;
        match condition.integer() {
            Some(0) => Ok(no),
            Some(_) => Ok(yes),
            None => Err(self.expected_at(at, "an integer as condition")),
        }
    }

    fn binary(&mut self, loosest: u8, depth: usize) -> Result<ConstantValue, ParseFailed> {
        let mut left = self.unary(depth)?;
        loop {
            let at = self.peek();
            let TokenKind::Punctuation(mark) = at.kind else { return Ok(left) };
            let Some(tightness) = precedence(mark).filter(|p| *p >= loosest) else { return Ok(left) };
            self.next();
            let right = self.binary(tightness + 1, depth + 1)?;
            left = match apply(mark, left, right) {
                Ok(value) => value,
                Err(why) => return Err(self.fail(at, ParseMistake::Wrong(why.to_string()))),
            };
        }
    }

    fn unary(&mut self, depth: usize) -> Result<ConstantValue, ParseFailed> {
        let at = self.next();
        if depth > MAX_DEPTH {
            let what = format!("an expression with more than {MAX_DEPTH} levels");
            return Err(self.fail(at, ParseMistake::Unsupported { what, help: "" }));
        }
        let wrong =
            |cursor: &mut Self| Err(cursor.expected_at(at, "an operator that the type of the constant supports"));
        match at.kind {
            TokenKind::Number(LiteralValue::Integer { bits, hexadecimal, unsigned }) => Ok(match hexadecimal {
                true if !unsigned => ConstantValue::Bits(bits),
                _ => ConstantValue::with(bits, unsigned || bits > i64::MAX as u64),
            }),
            TokenKind::Number(LiteralValue::F32(bits)) => Ok(ConstantValue::F32(bits)),
            TokenKind::Number(LiteralValue::F64(bits)) => Ok(ConstantValue::F64(bits)),
            TokenKind::Number(LiteralValue::Decimal(value)) => Ok(ConstantValue::Decimal(value)),
            TokenKind::Word if self.text(at) == "WARP_SZ" => Ok(ConstantValue::Signed(32)),
            TokenKind::Punctuation(Punctuation::Open) => {
                if self.peek().kind == TokenKind::Dotted {
                    let ty = self.next();
                    let unsigned = match self.text(ty) {
                        ".u64" => true,
                        ".s64" => false,
                        _ => return Err(self.expected_at(ty, "`.s64` or `.u64` as the target of a constant cast")),
                    };
                    self.expect(Punctuation::Close)?;
                    let value = self.unary(depth + 1)?;
                    return match value.integer() {
                        Some(bits) => Ok(ConstantValue::with(bits, unsigned)),
                        None => wrong(self),
                    };
                }
                let value = self.conditional(depth + 1)?;
                self.expect(Punctuation::Close)?;
                Ok(value)
            }
            TokenKind::Punctuation(
                mark @ (Punctuation::Minus | Punctuation::Plus | Punctuation::Not | Punctuation::Tilde),
            ) => {
                let value = self.unary(depth + 1)?;
                match (mark, value, value.integer()) {
                    (Punctuation::Plus, ConstantValue::Decimal(_), _) => Ok(value),
                    (Punctuation::Minus, ConstantValue::Decimal(x), _) => Ok(ConstantValue::Decimal(-x)),
                    (Punctuation::Plus, _, Some(n)) => Ok(ConstantValue::with(n, value.is_unsigned())),
                    (Punctuation::Minus, _, Some(n)) => Ok(ConstantValue::Signed((n as i64).wrapping_neg())),
                    (Punctuation::Tilde, _, Some(n)) => Ok(ConstantValue::with(!n, value.is_unsigned())),
                    (Punctuation::Not, _, Some(n)) => Ok(ConstantValue::Signed(i64::from(n == 0))),
                    _ => wrong(self),
                }
            }
            _ => Err(self.expected_at(at, "a constant")),
        }
    }
}

fn apply(mark: Punctuation, a: ConstantValue, b: ConstantValue) -> Result<ConstantValue, &'static str> {
    if let (ConstantValue::Decimal(x), ConstantValue::Decimal(y)) = (a, b) {
        let truth = |t: bool| ConstantValue::Signed(i64::from(t));
        return Ok(match mark {
            Punctuation::Plus => ConstantValue::Decimal(x + y),
            Punctuation::Minus => ConstantValue::Decimal(x - y),
            Punctuation::Times => ConstantValue::Decimal(x * y),
            Punctuation::Slash => ConstantValue::Decimal(x / y),
            Punctuation::Less => truth(x < y),
            Punctuation::LessEqual => truth(x <= y),
            Punctuation::Greater => truth(x > y),
            Punctuation::GreaterEqual => truth(x >= y),
            Punctuation::Equal => truth(x == y),
            Punctuation::Differs => truth(x != y),
            _ => return Err("this operator does not apply to floats"),
        });
    }
    let (Some(x), Some(y)) = (a.integer(), b.integer()) else {
        return Err("this operator does not apply to operands of these types");
    };
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let (s, t) = (x as i64, y as i64);
    let truth = |t: bool| Ok(ConstantValue::Signed(i64::from(t)));
    let compared = if unsigned { x.cmp(&y) } else { s.cmp(&t) };
    let bits = match mark {
        Punctuation::Plus => x.wrapping_add(y),
        Punctuation::Minus => x.wrapping_sub(y),
        Punctuation::Times => x.wrapping_mul(y),
        Punctuation::Slash | Punctuation::Percent if y == 0 => return Err("division by zero in a constant"),
        Punctuation::Slash if unsigned => x / y,
        Punctuation::Slash => s.wrapping_div(t) as u64,
        Punctuation::Percent if unsigned => x % y,
        Punctuation::Percent => s.wrapping_rem(t) as u64,
        // The type of a shift is the type of the shifted value.
        Punctuation::ShiftLeft => return Ok(ConstantValue::with(if y > 63 { 0 } else { x << y }, a.is_unsigned())),
        Punctuation::ShiftRight if a.is_unsigned() => {
            return Ok(ConstantValue::Unsigned(if y > 63 { 0 } else { x >> y }));
        }
        Punctuation::ShiftRight => return Ok(ConstantValue::Signed(s >> y.min(63))),
        Punctuation::And => x & y,
        Punctuation::Bar => x | y,
        Punctuation::Xor => x ^ y,
        Punctuation::Less => return truth(compared.is_lt()),
        Punctuation::LessEqual => return truth(compared.is_le()),
        Punctuation::Greater => return truth(compared.is_gt()),
        Punctuation::GreaterEqual => return truth(compared.is_ge()),
        Punctuation::Equal => return truth(x == y),
        Punctuation::Differs => return truth(x != y),
        Punctuation::Both => return truth(x != 0 && y != 0),
        Punctuation::Either => return truth(x != 0 || y != 0),
        _ => return Err("this operator is not allowed in a constant"),
    };
    Ok(ConstantValue::with(bits, unsigned))
}
