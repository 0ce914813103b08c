//! Printing of PTX.

mod body;

use super::ast::{
    File, Function, FunctionKind, Initializer, Item, Linkage, Module, Parameter, Pointer, PropertyValue, Section,
    Symbol, Variable,
};
use super::words::{Type, Version};
use std::fmt::{Display, Formatter, Result};

/// A value together with its names, for printing.
pub struct In<'a, T: ?Sized>(pub ValueNames<'a>, pub &'a T);

/// The module and function whose names a value refers to.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ValueNames<'a> {
    pub module: &'a Module,
    pub function: &'a Function,
}

impl<'a> ValueNames<'a> {
    /// Writes the name of a parameter, a variable or a function.
    pub fn symbol(self, symbol: Symbol) -> &'a str {
        match symbol {
            Symbol::Parameter(i) => &self.function.parameters[i as usize].name,
            Symbol::Return(i) => &self.function.returns[i as usize].name,
            Symbol::Variable(i) => &self.function.variables[i as usize].name,
            Symbol::Global(i) => &self.module.variables[i as usize].name,
            Symbol::Function(i) => &self.module.functions[i as usize].name,
        }
    }
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for line in &self.header {
            comment(f, line)?;
        }
        write!(f, ".version {}\n.target {}", self.version, self.target)?;
        self.options.iter().try_for_each(|o| write!(f, ", {o}"))?;
        // Earlier versions do not have the directive.
        let has_size = self.version >= Version::new(2, 3);
        f.write_str(if has_size { "\n.address_size 64\n\n" } else { "\n\n" })?;
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 && matches!(item, Item::Definition(_)) {
                f.write_str("\n")?;
            }
            self.item(f, item)?;
        }
        Ok(())
    }
}

impl Module {
    fn item(&self, f: &mut Formatter<'_>, item: &Item) -> Result {
        let name = |i: &u32| &self.functions[*i as usize].name;
        match item {
            Item::Comment(text) => comment(f, text),
            Item::Variable(i) => variable(f, self, None, &self.variables[*i as usize]),
            Item::Declaration(i) => {
                signature(f, &self.functions[*i as usize])?;
                f.write_str(";\n")
            }
            Item::Definition(i) => {
                let function = &self.functions[*i as usize];
                signature(f, function)?;
                f.write_str("\n")?;
                body::body(f, ValueNames { module: self, function })
            }
            Item::Alias(a, b) => writeln!(f, ".alias {}, {};", name(a), name(b)),
            Item::Pragma(text) => writeln!(f, ".pragma \"{text}\";"),
            Item::File(File { index, name, stamp }) => {
                write!(f, ".file {index} \"{name}\"")?;
                if let Some((time, size)) = stamp {
                    write!(f, ", {time}, {size}")?;
                }
                f.write_str("\n")
            }
            Item::Section(Section { name, lines }) => {
                writeln!(f, ".section {name}\n{{")?;
                lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
                f.write_str("}\n")
            }
        }
    }
}

impl Linkage {
    /// Writes the directive with a following space.
    fn directive(self) -> &'static str {
        match self {
            Linkage::Internal => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        }
    }
}

/// Writes a function up to its body, without the end of the line.
fn signature(f: &mut Formatter<'_>, function: &Function) -> Result {
    f.write_str(function.linkage.directive())?;
    match function.kind {
        FunctionKind::Entry => f.write_str(".entry ")?,
        FunctionKind::Device => f.write_str(".func ")?,
    }
    if !function.returns.is_empty() {
        parameters(f, &function.returns)?;
        f.write_str(" ")?;
    }
    write!(f, "{}(", function.name)?;
    for (i, p) in function.parameters.iter().enumerate() {
        f.write_str(if i > 0 { ",\n    " } else { "\n    " })?;
        parameter(f, p)?;
    }
    f.write_str(if function.parameters.is_empty() { ")" } else { "\n)" })?;
    let d = &function.directives;
    for (name, extent) in [(".maxntid", d.max_threads), (".reqntid", d.required_threads)] {
        if let Some([x, y, z]) = extent {
            write!(f, "\n{name} {x}, {y}, {z}")?;
        }
    }
    let counts = [(".minnctapersm", d.min_blocks), (".maxnreg", d.max_registers)];
    for (name, count) in counts {
        if let Some(n) = count {
            write!(f, "\n{name} {n}")?;
        }
    }
    if d.no_return {
        f.write_str("\n.noreturn")?;
    }
    d.pragmas.iter().try_for_each(|p| write!(f, "\n.pragma \"{p}\";"))
}

/// Writes `(…, …)`.
fn parameters(f: &mut Formatter<'_>, list: &[Parameter]) -> Result {
    f.write_str("(")?;
    for (i, p) in list.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        parameter(f, p)?;
    }
    f.write_str(")")
}

fn parameter(f: &mut Formatter<'_>, p: &Parameter) -> Result {
    f.write_str(if p.register.is_some() { ".reg" } else { ".param" })?;
    if let Some(align) = p.align {
        write!(f, " .align {align}")?;
    }
    write!(f, " .{}", p.ty)?;
    if let Some(Pointer { space, align }) = p.pointer {
        f.write_str(" .ptr")?;
        if let Some(space) = space {
            write!(f, " .{space}")?;
        }
        if let Some(align) = align {
            write!(f, " .align {align}")?;
        }
    }
    write!(f, " {}", p.name)?;
    match p.elements {
        Some(Some(n)) => write!(f, "[{n}]"),
        Some(None) => f.write_str("[]"),
        None => Ok(()),
    }
}

/// Writes a declaration of a variable, of a function or of the module.
fn variable(f: &mut Formatter<'_>, module: &Module, function: Option<&Function>, v: &Variable) -> Result {
    // The older form of a texture.
    if v.ty == Type::Texref && module.version < Version::new(1, 5) {
        return writeln!(f, "{}.tex .u32 {};", v.linkage.directive(), v.name);
    }
    write!(f, "{}.{}", v.linkage.directive(), v.space)?;
    if v.managed {
        f.write_str(" .attribute(.managed)")?;
    }
    if let Some(align) = v.align {
        write!(f, " .align {align}")?;
    }
    if v.vector > 1 {
        write!(f, " .v{}", v.vector)?;
    }
    write!(f, " .{} {}", v.ty, v.name)?;
    for dimension in &v.dimensions {
        match dimension {
            Some(n) => write!(f, "[{n}]")?,
            None => f.write_str("[]")?,
        }
    }
    if let Some(value) = &v.initializer {
        f.write_str(" = ")?;
        initializer(f, module, function, value)?;
    }
    f.write_str(";\n")
}

fn initializer(f: &mut Formatter<'_>, module: &Module, function: Option<&Function>, value: &Initializer) -> Result {
    match value {
        Initializer::Integer(n) => n.fmt(f),
        Initializer::Bits(n) => write!(f, "0x{n:X}"),
        Initializer::F32(bits) => write!(f, "0f{bits:08X}"),
        Initializer::F64(bits) => write!(f, "0d{bits:016X}"),
        Initializer::Address { symbol, offset, generic, byte } => {
            let name = match (symbol, function) {
                (Symbol::Global(i), _) => &module.variables[*i as usize].name,
                (Symbol::Function(i), _) => &module.functions[*i as usize].name,
                (_, Some(function)) => ValueNames { module, function }.symbol(*symbol),
                // Only a function has other symbols.
                (_, None) => "",
            };
            if let Some(byte) = byte {
                write!(f, "0x{:X}(", 0xffu64 << (8 * byte))?;
            }
            f.write_str(if *generic { "generic(" } else { "" })?;
            f.write_str(name)?;
            f.write_str(if *generic { ")" } else { "" })?;
            displacement(f, *offset)?;
            f.write_str(if byte.is_some() { ")" } else { "" })
        }
        Initializer::List(list) => {
            f.write_str("{")?;
            for (i, value) in list.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                initializer(f, module, function, value)?;
            }
            f.write_str("}")
        }
        Initializer::Properties(list) => {
            f.write_str("{")?;
            for (i, (property, setting)) in list.iter().enumerate() {
                write!(f, "{} {property} = ", if i > 0 { "," } else { "" })?;
                match setting {
                    PropertyValue::Number(n) => n.fmt(f)?,
                    PropertyValue::Sampling(sampling) => sampling.fmt(f)?,
                }
            }
            f.write_str(" }")
        }
    }
}

/// Writes a line of comment.
fn comment(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_str("//")?;
    f.write_str(if text.is_empty() { "" } else { " " })?;
    writeln!(f, "{text}")
}

/// Writes a comment line. ptxas rejects characters outside ASCII, and treats a final backslash as a
/// line continuation.
pub(super) fn comment_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.trim_end_matches(|c: char| c == '\\' || c.is_whitespace()).chars() {
        match c {
            ' '..='~' => clean.push(c),
            '\t' => clean.push_str("    "),
            _ => clean.extend(c.escape_unicode()),
        }
    }
    clean
}

/// Writes an offset; ptxas has no subtraction in addresses, so −4 is `+-4`.
fn displacement(f: &mut Formatter<'_>, offset: i32) -> Result {
    if offset == 0 { Ok(()) } else { write!(f, "+{offset}") }
}
