//! A kernel as a tree of text with holes: what the generator makes, the shrinker takes apart, and the compiler reads as Rust.
//!
//! A node does not know what it means; its construct's name, its type and what fills its holes are all that shrinking and counting need.

use kernel_dsl_compiler::Scalar;
use std::fmt::{self, Write};

/// A value: text in which `$0` to `$9` stand for other values.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// What it is of the language, for the statistics.
    pub construct: &'static str,
    /// Its type.
    pub ty: Scalar,
    /// The text with its holes.
    pub text: String,
    /// What fills them.
    pub arguments: Vec<Expr>,
}

/// A statement: text in which `$0` stands for values, and `@0` for lists of statements.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// What it is of the language, for the statistics.
    pub construct: &'static str,
    /// The text with its holes.
    pub text: String,
    /// What fills `$0` and on.
    pub values: Vec<Expr>,
    /// What fills `@0` and on.
    pub blocks: Vec<Vec<Statement>>,
}

/// A device function that the kernel calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Names and types of its parameters.
    pub parameters: Vec<(String, Scalar)>,
    /// What it gives, at its end.
    pub value: Expr,
    /// What comes before.
    pub body: Vec<Statement>,
}

/// A kernel, and the functions that it calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Names and types of its parameters, as text.
    pub parameters: Vec<(String, String)>,
    /// Threads of a block.
    pub block: [u32; 2],
    /// Blocks.
    pub grid: u32,
    /// Clauses of the attribute beside its shape, such as `, contract`.
    pub clauses: &'static str,
    /// What it may call.
    pub functions: Vec<Function>,
    /// What it does.
    pub body: Vec<Statement>,
}

impl Expr {
    /// Text without holes.
    pub fn leaf(construct: &'static str, ty: Scalar, text: impl Into<String>) -> Expr {
        Expr { construct, ty, text: text.into(), arguments: Vec::new() }
    }

    /// Calls `f` on it and all in it.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        self.arguments.iter().for_each(|argument| argument.visit(f));
    }

    /// Values in it, itself among them.
    pub fn size(&self) -> usize {
        1 + self.arguments.iter().map(Expr::size).sum::<usize>()
    }
}

impl Statement {
    /// Calls `f` on all values in it, and `g` on it and all statements in it.
    pub fn visit(&self, f: &mut impl FnMut(&Expr), g: &mut impl FnMut(&Statement)) {
        g(self);
        self.values.iter().for_each(|value| value.visit(f));
        self.blocks.iter().flatten().for_each(|statement| statement.visit(f, g));
    }
}

impl Kernel {
    /// Calls `f` on all values, and `g` on all statements.
    pub fn visit(&self, f: &mut impl FnMut(&Expr), g: &mut impl FnMut(&Statement)) {
        for function in &self.functions {
            function.body.iter().for_each(|statement| statement.visit(f, g));
            function.value.visit(f);
        }
        self.body.iter().for_each(|statement| statement.visit(f, g));
    }
}

/// Fills the holes of `text`.
fn fill(
    text: &str,
    out: &mut dyn Write,
    hole: &mut dyn FnMut(char, usize, &mut dyn Write) -> fmt::Result,
) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['$', '@']) {
        out.write_str(&rest[..at])?;
        let mut after = rest[at..].chars();
        let (kind, digit) = (after.next().unwrap_or('$'), after.next().and_then(|c| c.to_digit(10)));
        match digit {
            Some(n) => {
                hole(kind, n as usize, out)?;
                rest = &rest[at + 2..];
            }
            None => {
                out.write_char(kind)?;
                rest = &rest[at + 1..];
            }
        }
    }
    out.write_str(rest)
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fill(&self.text, f, &mut |_, n, out| match self.arguments.get(n) {
            Some(argument) => write!(out, "{argument}"),
            None => Ok(()),
        })
    }
}

/// A list of statements, one a line.
struct Lines<'s>(&'s [Statement], usize);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lines(statements, depth) = *self;
        for Statement { text, values, blocks, .. } in statements {
            write!(f, "{:1$}", "", 4 * depth)?;
            fill(text, f, &mut |kind, n, out| match kind {
                '$' => values.get(n).map_or(Ok(()), |value| write!(out, "{value}")),
                _ => {
                    let inside = blocks.get(n).map_or(&[][..], |block| block);
                    write!(out, "\n{}{:2$}", Lines(inside, depth + 1), "", 4 * depth)
                }
            })?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for function in &self.functions {
            let parameters: Vec<_> = function.parameters.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            writeln!(f, "#[device]\nfn {}({}) -> {} {{", function.name, parameters.join(", "), function.value.ty)?;
            writeln!(f, "{}    {}\n}}\n", Lines(&function.body, 1), function.value)?;
        }
        let [x, y] = self.block;
        let block = if y == 1 { format!("{x}") } else { format!("({x}, {y})") };
        writeln!(f, "#[kernel(block = {block}, grid = {}{})]", self.grid, self.clauses)?;
        let parameters: Vec<_> = self.parameters.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        writeln!(f, "fn {}({}) {{\n{}}}", self.name, parameters.join(", "), Lines(&self.body, 1))
    }
}
