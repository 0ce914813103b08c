//! A kernel as a tree of text with holes: the generator makes it, the shrinker reduces it, and the
//! compiler reads it as Rust.
//!
//! A node has no semantics. Shrinking and counting need only the name of its construct, its type,
//! and the contents of its holes.

use kernel_dsl_compiler::Scalar;
use std::fmt::{self, Write};

/// A value: text in which `$0` to `$9` are placeholders of other values.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Name of the language construct, for the statistics.
    pub construct: &'static str,
    /// Type of the value.
    pub ty: Scalar,
    /// Text with holes.
    pub text: String,
    /// Values of the placeholders.
    pub arguments: Vec<Expr>,
}

/// A statement: text in which `$0` and so on are placeholders of values, and `@0` and so on of
/// lists of statements.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Name of the language construct, for the statistics.
    pub construct: &'static str,
    /// Text with holes.
    pub text: String,
    /// Values of `$0` and so on.
    pub values: Vec<Expr>,
    /// Statements of `@0` and so on.
    pub blocks: Vec<Vec<Statement>>,
}

/// A device function that the kernel calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Parameter names and types.
    pub parameters: Vec<(String, Scalar)>,
    /// Value of the function, at its end.
    pub value: Expr,
    /// Statements before the value.
    pub body: Vec<Statement>,
}

/// Kernel and the functions that it calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// Parameter names and types, as text.
    pub parameters: Vec<(String, String)>,
    /// Threads of a block in x and y.
    pub block: [u32; 2],
    /// Number of blocks.
    pub grid: u32,
    /// Clauses of the attribute other than the block shape, such as `, contract`.
    pub clauses: &'static str,
    /// Device functions that the kernel may call.
    pub functions: Vec<Function>,
    /// Statements of the kernel.
    pub body: Vec<Statement>,
}

impl Expr {
    /// Returns a text without placeholders.
    pub fn leaf(construct: &'static str, ty: Scalar, text: impl Into<String>) -> Expr {
        Expr { construct, ty, text: text.into(), arguments: Vec::new() }
    }

    /// Calls `f` on the expression and all its operands.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        self.arguments.iter().for_each(|argument| argument.visit(f));
    }

    /// Returns the number of values in the expression, including itself.
    pub fn size(&self) -> usize {
        1 + self.arguments.iter().map(Expr::size).sum::<usize>()
    }
}

impl Statement {
    /// Calls `f` on all values of the statement, and `g` on the statement and all nested ones.
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

/// List of statements, printed one per line.
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
