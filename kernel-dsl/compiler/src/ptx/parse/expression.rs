//! Constant expressions: what may stand where a number does, worked out as the manual says, in 64 bits.

use super::cursor::{Cursor, Failed};
use super::error::Mistake;
use super::lex::{Kind, Mark, Number};

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Constant {
    /// Of type `.s64`, written in decimal or computed.
    Signed(i64),
    /// Of type `.u64`.
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

/// Parentheses, unary operators and conditions inside one another at most.
const DEPTH: usize = 64;

impl Constant {
    /// The bits of an integer.
    pub fn integer(self) -> Option<u64> {
        match self {
            Constant::Signed(n) => Some(n as u64),
            Constant::Unsigned(n) | Constant::Bits(n) => Some(n),
            _ => None,
        }
    }

    fn is_unsigned(self) -> bool {
        match self {
            Constant::Unsigned(_) => true,
            // A literal is signed if it fits.
            Constant::Bits(n) => n > i64::MAX as u64,
            _ => false,
        }
    }

    fn with(bits: u64, unsigned: bool) -> Constant {
        if unsigned { Constant::Unsigned(bits) } else { Constant::Signed(bits as i64) }
    }
}

/// How tightly a binary operator binds; the loosest has 1.
fn precedence(mark: Mark) -> Option<u8> {
    Some(match mark {
        Mark::Either => 1,
        Mark::Both => 2,
        Mark::Bar => 3,
        Mark::Xor => 4,
        Mark::And => 5,
        Mark::Equal | Mark::Differs => 6,
        Mark::Less | Mark::LessEqual | Mark::Greater | Mark::GreaterEqual => 7,
        Mark::ShiftLeft | Mark::ShiftRight => 8,
        Mark::Plus | Mark::Minus => 9,
        Mark::Times | Mark::Slash | Mark::Percent => 10,
        _ => return None,
    })
}

impl Cursor<'_> {
    /// Whether a constant expression begins here.
    pub fn at_constant(&self) -> bool {
        match self.peek().kind {
            Kind::Number(_) => true,
            Kind::Mark(m) => matches!(m, Mark::Minus | Mark::Plus | Mark::Not | Mark::Tilde | Mark::Open),
            Kind::Word => self.text(self.peek()) == "WARP_SZ",
            _ => false,
        }
    }

    /// A constant expression.
    pub fn constant(&mut self) -> Result<Constant, Failed> {
        self.conditional(0)
    }

    /// A constant expression of integer type, its bits.
    pub fn integer(&mut self) -> Result<u64, Failed> {
        let at = self.peek();
        let value = self.constant()?;
        value.integer().ok_or_else(|| self.expected_at(at, "an integer"))
    }

    /// A constant expression whose value 32 bits hold.
    pub fn small(&mut self) -> Result<u32, Failed> {
        let at = self.peek();
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.expected_at(at, "an integer that fits in 32 bits"))
    }

    fn conditional(&mut self, depth: usize) -> Result<Constant, Failed> {
        let condition = self.binary(1, depth)?;
        if !self.eat(Mark::Question) {
            return Ok(condition);
        }
        let at = self.peek();
        let yes = self.conditional(depth + 1)?;
        self.expect(Mark::Colon)?;
        let no = self.conditional(depth + 1)?;
        match condition.integer() {
            Some(0) => Ok(no),
            Some(_) => Ok(yes),
            None => Err(self.expected_at(at, "an integer as condition")),
        }
    }

    fn binary(&mut self, loosest: u8, depth: usize) -> Result<Constant, Failed> {
        let mut left = self.unary(depth)?;
        loop {
            let at = self.peek();
            let Kind::Mark(mark) = at.kind else { return Ok(left) };
            let Some(tightness) = precedence(mark).filter(|p| *p >= loosest) else { return Ok(left) };
            self.next();
            let right = self.binary(tightness + 1, depth + 1)?;
            left = match apply(mark, left, right) {
                Ok(value) => value,
                Err(why) => return Err(self.fail(at, Mistake::Wrong(why.to_string()))),
            };
        }
    }

    fn unary(&mut self, depth: usize) -> Result<Constant, Failed> {
        let at = self.next();
        if depth > DEPTH {
            let what = format!("an expression with more than {DEPTH} levels");
            return Err(self.fail(at, Mistake::Unsupported { what, help: "" }));
        }
        let wrong =
            |cursor: &mut Self| Err(cursor.expected_at(at, "an operator that the type of the constant supports"));
        match at.kind {
            Kind::Number(Number::Integer { bits, hexadecimal, unsigned }) => Ok(match hexadecimal {
                true if !unsigned => Constant::Bits(bits),
                _ => Constant::with(bits, unsigned || bits > i64::MAX as u64),
            }),
            Kind::Number(Number::F32(bits)) => Ok(Constant::F32(bits)),
            Kind::Number(Number::F64(bits)) => Ok(Constant::F64(bits)),
            Kind::Number(Number::Decimal(value)) => Ok(Constant::Decimal(value)),
            Kind::Word if self.text(at) == "WARP_SZ" => Ok(Constant::Signed(32)),
            Kind::Mark(Mark::Open) => {
                if self.peek().kind == Kind::Dotted {
                    let ty = self.next();
                    let unsigned = match self.text(ty) {
                        ".u64" => true,
                        ".s64" => false,
                        _ => return Err(self.expected_at(ty, "`.s64` or `.u64` as the target of a constant cast")),
                    };
                    self.expect(Mark::Close)?;
                    let value = self.unary(depth + 1)?;
                    return match value.integer() {
                        Some(bits) => Ok(Constant::with(bits, unsigned)),
                        None => wrong(self),
                    };
                }
                let value = self.conditional(depth + 1)?;
                self.expect(Mark::Close)?;
                Ok(value)
            }
            Kind::Mark(mark @ (Mark::Minus | Mark::Plus | Mark::Not | Mark::Tilde)) => {
                let value = self.unary(depth + 1)?;
                match (mark, value, value.integer()) {
                    (Mark::Plus, Constant::Decimal(_), _) => Ok(value),
                    (Mark::Minus, Constant::Decimal(x), _) => Ok(Constant::Decimal(-x)),
                    (Mark::Plus, _, Some(n)) => Ok(Constant::with(n, value.is_unsigned())),
                    (Mark::Minus, _, Some(n)) => Ok(Constant::Signed((n as i64).wrapping_neg())),
                    (Mark::Tilde, _, Some(n)) => Ok(Constant::with(!n, value.is_unsigned())),
                    (Mark::Not, _, Some(n)) => Ok(Constant::Signed(i64::from(n == 0))),
                    _ => wrong(self),
                }
            }
            _ => Err(self.expected_at(at, "a constant")),
        }
    }
}

fn apply(mark: Mark, a: Constant, b: Constant) -> Result<Constant, &'static str> {
    if let (Constant::Decimal(x), Constant::Decimal(y)) = (a, b) {
        let truth = |t: bool| Constant::Signed(i64::from(t));
        return Ok(match mark {
            Mark::Plus => Constant::Decimal(x + y),
            Mark::Minus => Constant::Decimal(x - y),
            Mark::Times => Constant::Decimal(x * y),
            Mark::Slash => Constant::Decimal(x / y),
            Mark::Less => truth(x < y),
            Mark::LessEqual => truth(x <= y),
            Mark::Greater => truth(x > y),
            Mark::GreaterEqual => truth(x >= y),
            Mark::Equal => truth(x == y),
            Mark::Differs => truth(x != y),
            _ => return Err("this operator does not apply to floats"),
        });
    }
    let (Some(x), Some(y)) = (a.integer(), b.integer()) else {
        return Err("this operator does not apply to operands of these types");
    };
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let (s, t) = (x as i64, y as i64);
    let truth = |t: bool| Ok(Constant::Signed(i64::from(t)));
    let compared = if unsigned { x.cmp(&y) } else { s.cmp(&t) };
    let bits = match mark {
        Mark::Plus => x.wrapping_add(y),
        Mark::Minus => x.wrapping_sub(y),
        Mark::Times => x.wrapping_mul(y),
        Mark::Slash | Mark::Percent if y == 0 => return Err("division by zero in a constant"),
        Mark::Slash if unsigned => x / y,
        Mark::Slash => s.wrapping_div(t) as u64,
        Mark::Percent if unsigned => x % y,
        Mark::Percent => s.wrapping_rem(t) as u64,
        // The type of a shift is that of what is shifted.
        Mark::ShiftLeft => return Ok(Constant::with(if y > 63 { 0 } else { x << y }, a.is_unsigned())),
        Mark::ShiftRight if a.is_unsigned() => return Ok(Constant::Unsigned(if y > 63 { 0 } else { x >> y })),
        Mark::ShiftRight => return Ok(Constant::Signed(s >> y.min(63))),
        Mark::And => x & y,
        Mark::Bar => x | y,
        Mark::Xor => x ^ y,
        Mark::Less => return truth(compared.is_lt()),
        Mark::LessEqual => return truth(compared.is_le()),
        Mark::Greater => return truth(compared.is_gt()),
        Mark::GreaterEqual => return truth(compared.is_ge()),
        Mark::Equal => return truth(x == y),
        Mark::Differs => return truth(x != y),
        Mark::Both => return truth(x != 0 && y != 0),
        Mark::Either => return truth(x != 0 || y != 0),
        _ => return Err("this operator is not allowed in a constant"),
    };
    Ok(Constant::with(bits, unsigned))
}
