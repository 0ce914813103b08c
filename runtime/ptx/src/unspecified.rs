//! Operands for which the PTX manual specifies no result.
//!
//! For such operands, the interpreter returns the result of the machine code that ptxas emits for
//! sm_61. Where the result is a number that a kernel could rely on by mistake, the result counts as
//! undefined: the finding `undefined-value` reports it where it reaches an address, a condition or
//! memory.
#![doc = ""]
#![doc = include_str!("unspecified.md")]

use std::fmt::Write;

/// A range of operands whose result is undefined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unspecified {
    /// A divisor of 0.
    Divisor,
    /// A position or length above 255 in a word of 32 bits.
    NarrowField,
    /// A position or length above 255 in a word of 64 bits.
    WideField,
    /// A base above 31, or an offset of −2^31, in a search for a bit.
    Search,
}

impl Unspecified {
    /// Returns the range of positions and lengths in words of that many bits.
    pub const fn field(bits: u32) -> Unspecified {
        if bits == 64 { Unspecified::WideField } else { Unspecified::NarrowField }
    }

    /// Returns the reason that a finding states.
    pub const fn reason(self) -> &'static str {
        match self {
            Unspecified::Divisor => "it divides by zero",
            Unspecified::NarrowField | Unspecified::WideField => "its position or length is above 255",
            Unspecified::Search => "its base is above 31, or its offset is -2^31",
        }
    }
}

/// A row of the table: operands without a specified result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnspecifiedRow {
    /// The instructions.
    pub instructions: &'static str,
    /// The operands.
    pub operands: &'static str,
    /// The result.
    pub result: &'static str,
    /// The finding that reports the result, if any.
    pub found: Option<Unspecified>,
}

/// Every operand without a specified result.
pub const TABLE: &[UnspecifiedRow] = &[
    UnspecifiedRow {
        instructions: "`div` and `rem` of integers",
        operands: "a divisor of 0",
        result: "all ones",
        found: Some(Unspecified::Divisor),
    },
    UnspecifiedRow {
        instructions: "`bfe` and `bfi` of 32 bits",
        operands: "a position or length above 255",
        result: "as for the low 8 bits of position and length",
        found: Some(Unspecified::NarrowField),
    },
    UnspecifiedRow {
        instructions: "`bfe` and `bfi` of 64 bits",
        operands: "a position or length above 255",
        result: "as for 64: beyond all bits, or all bits",
        found: Some(Unspecified::WideField),
    },
    UnspecifiedRow {
        instructions: "`fns`",
        operands: "an offset of −2^31",
        result: "0",
        found: Some(Unspecified::Search),
    },
    UnspecifiedRow {
        instructions: "`fns`",
        operands: "a base above 31",
        result: "0xffffffff",
        found: Some(Unspecified::Search),
    },
    UnspecifiedRow {
        instructions: "arithmetic of `.f16`, `.f16x2` and `.f32`",
        operands: "any whose result is a NaN",
        result: "0x7fff or 0x7fffffff",
        found: None,
    },
    UnspecifiedRow {
        instructions: "`add`, `sub`, `mul`, `min`, `max` of `.f64`",
        operands: "two NaNs",
        result: "b, made quiet",
        found: None,
    },
    UnspecifiedRow { instructions: "`div.f64`", operands: "two NaNs", result: "a, made quiet", found: None },
    UnspecifiedRow {
        instructions: "`fma` and `mad` of `.f64`",
        operands: "several NaNs",
        result: "b if b is a NaN, else c, made quiet",
        found: None,
    },
    UnspecifiedRow {
        instructions: "`neg`, `abs`, `rcp`, `sqrt`, `rsqrt.approx` and `cvt` to an integral value of `.f64`",
        operands: "a NaN",
        result: "a with its sign, made quiet",
        found: None,
    },
    UnspecifiedRow {
        instructions: "arithmetic of `.f64`",
        operands: "no NaN, where the result is a NaN",
        result: "0xfff8000000000000",
        found: None,
    },
    UnspecifiedRow {
        instructions: "`cvt.f64.f32` and `cvt.f64.f16`",
        operands: "a NaN",
        result: "sign and payload of a, made quiet; with `.ftz`, of 0x7fffffff",
        found: None,
    },
    UnspecifiedRow {
        instructions: "`rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`",
        operands: "a NaN in the upper half of a",
        result: "0x7fffffff00000000",
        found: None,
    },
];

/// Returns the table as a page.
pub fn page() -> String {
    let mut page = "# Unspecified results\n\n\
        Where the PTX manual specifies no result, the interpreter returns the result of sm_61 machine code. The NaNs \
        are those of an H100. `UPDATE=1 cargo test -p runtime --test ptx unspecified` makes this page from the \
        table.\n\n\
        | instructions | operands | result | finding |\n|---|---|---|---|\n"
        .to_string();
    for UnspecifiedRow { instructions, operands, result, found } in TABLE {
        let found = found.map_or("none", |_| "`undefined-value`, where it matters");
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {instructions} | {operands} | {result} | {found} |");
    }
    page
}
