//! IR as text: `%7: f32 = load ta[%3, 5]`. `str::parse` reads it back.
//!
//! A constant is written where it is used, and its own instruction is left out. A bare integer is a
//! `usize`, a bare float an `f32`; other constants name their type, as in `5_u32`. A constant
//! without an exact decimal form is written as bits: `f32(0x7fc00000)`.
//!
//! A comment before each group of instructions shows their line of Rust:
//! `// +3 let i = grid::index();`, where +3 counts lines from the `fn`. The parser skips comments:
//! sources, locations and the allowances that refer to them are not part of the text.

use super::part::OpField;
use super::*;
use crate::half;
use crate::oracle::DeclaredOutput;
use crate::scalar::Scalar;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter, Write};

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(self).kernel(f)
    }
}

/// Returns the size of a block: `256×1×1`, or `32..=1024 by 32×1×1 multiple of 32`.
fn block(block: &BlockExtents) -> String {
    let axis = |(axis, n): (usize, u32)| match block.open() {
        Some(OpenAxis { axis: open, least, step }) if open == axis => format!("{least}..={n} by {step}"),
        _ => n.to_string(),
    };
    let axes: Vec<String> = block.max_extents().into_iter().enumerate().map(axis).collect();
    let multiple = if block.open().is_some() { format!(" multiple of {}", block.multiple()) } else { String::new() };
    format!("{}{multiple}", axes.join("×"))
}

fn element(element: MemoryElement) -> String {
    match element {
        MemoryElement::Scalar(s) => s.to_string(),
        MemoryElement::Aggregate { bytes, align } => format!("{{{bytes} bytes, align {align}}}"),
    }
}

/// Returns a name, in quotes where it is not a plain word.
pub(super) fn name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    let is_word = name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty();
    if is_word { name.to_string() } else { format!("{name:?}") }
}

/// Returns the text of a constant: its value if a decimal is exact, otherwise its type and bits.
pub(super) fn constant(ty: Type, bits: u64) -> String {
    let exact = |text: String, default: Scalar, scalar: Scalar| {
        if scalar == default { text } else { format!("{text}_{scalar}") }
    };
    let float = |value: f64, text: String, scalar| {
        if value.is_nan() { format!("{scalar}({bits:#x})") } else { exact(text, Scalar::F32, scalar) }
    };
    match ty {
        Type::Scalar(Scalar::Bool) => (bits != 0).to_string(),
        Type::Scalar(s @ (Scalar::F16 | Scalar::Bf16)) => {
            let x = if s == Scalar::F16 { half::f16_to_f32(bits as u16) } else { half::bf16_to_f32(bits as u16) };
            float(x.into(), format!("{x:?}"), s)
        }
        Type::Scalar(Scalar::F32) => {
            let x = f32::from_bits(bits as u32);
            float(x.into(), format!("{x:?}"), Scalar::F32)
        }
        Type::Scalar(Scalar::F64) => {
            let x = f64::from_bits(bits);
            float(x, format!("{x:?}"), Scalar::F64)
        }
        Type::Scalar(s) if s.is_integer() => exact(eval::integer(s, bits).to_string(), Scalar::Usize, s),
        ty => format!("{ty}({bits:#x})"),
    }
}

/// A line of a kernel's text, and the location of its instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocatedLine {
    /// The line, without a comment.
    pub text: String,
    /// The instruction's location; `None` for declarations and closing braces.
    pub location: Option<Location>,
}

/// Marks the number of a location in the printer's output. No name contains this character.
const MARK: char = '\u{1}';

/// The text of an instruction of a kernel and of its regions, for messages.
#[derive(Debug)]
pub struct Text<'a> {
    kernel: &'a Kernel,
    inst: &'a Inst,
}

impl Kernel {
    /// Returns the lines of the kernel's text, each with the location of its instruction instead of
    /// comments.
    pub fn located_lines(&self) -> Vec<LocatedLine> {
        let mut text = String::new();
        let mut printer = Printer { marks: true, ..Printer::new(self) };
        // Writing to a string does not fail.
        let _ = printer.kernel(&mut text);
        let mut lines = Vec::new();
        let mut location = None;
        for line in text.lines() {
            if let Some(mark) = line.strip_prefix(MARK) {
                location = mark.parse().ok().map(Location);
                continue;
            }
            lines.push(LocatedLine { text: line.to_string(), location: location.take() });
        }
        lines
    }

    /// Returns `inst` of this kernel as text, without its source line.
    pub fn text<'a>(&'a self, inst: &'a Inst) -> Text<'a> {
        Text { kernel: self, inst }
    }
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        Printer::new(self.kernel).inst(&mut out, self.inst, 0)?;
        f.write_str(out.trim_end())
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(s) => s.fmt(f),
            Type::Global => f.write_str("global"),
            Type::Constant => f.write_str("constant"),
            Type::Shared => f.write_str("shared"),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Display for Special {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (what, axis) = match self {
            Special::Thread(a) => ("thread", a),
            Special::Block(a) => ("block", a),
            Special::Grid(a) => ("grid", a),
            Special::BlockDim(a) => ("block_dim", a),
        };
        write!(f, "{what}.{}", ["x", "y", "z"].get(*axis as usize).unwrap_or(&"?"))
    }
}

/// Returns each name. If several names are equal, an index follows each.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut count: HashMap<&str, u32> = HashMap::new();
    names.clone().for_each(|n| *count.entry(n).or_default() += 1);
    names.enumerate().map(|(i, n)| if count[n] == 1 { name(n) } else { format!("{}#{i}", name(n)) }).collect()
}

/// Writes the text of a kernel's instructions.
pub(super) struct Printer<'a> {
    kernel: &'a Kernel,
    constants: Vec<Option<u64>>,
    pub locals: Vec<String>,
    pub shared: Vec<String>,
    pub dynamic: Vec<String>,
    pub tables: Vec<String>,
    /// Source and line of the last comment.
    line: Option<(u32, u16)>,
    /// Whether each instruction follows a line with [`MARK`] and its location, instead of comments.
    marks: bool,
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel) -> Printer<'a> {
        let mut constants = vec![None; kernel.values.len()];
        fn collect(region: &Region, constants: &mut [Option<u64>]) {
            for inst in &region.insts {
                if let (Op::Constant(bits), Some(r)) = (&inst.op, inst.results.first())
                    && let Some(c) = constants.get_mut(r.0 as usize)
                {
                    *c = Some(*bits);
                }
                inst.op.regions().into_iter().for_each(|r| collect(r, constants));
            }
        }
        collect(&kernel.body, &mut constants);
        let locals = distinct(kernel.locals.iter().map(|l| l.name.as_str()));
        let shared = distinct(kernel.shared.iter().map(|s| s.name.as_str()));
        let dynamic = distinct(kernel.dynamic.iter().map(|d| d.name.as_str()));
        let tables = distinct(kernel.tables.iter().map(|t| t.name.as_str()));
        Printer { kernel, constants, locals, shared, dynamic, tables, line: None, marks: false }
    }

    /// Returns a printer for the steps of a formula, which are numbered by themselves and include
    /// their constants.
    pub fn of_formula(&self) -> Printer<'a> {
        let (locals, shared, dynamic, tables) = Default::default();
        Printer {
            kernel: self.kernel,
            constants: Vec::new(),
            locals,
            shared,
            dynamic,
            tables,
            line: None,
            marks: false,
        }
    }

    /// Writes the whole kernel.
    fn kernel(&mut self, f: &mut dyn Write) -> fmt::Result {
        let kernel = self.kernel;
        writeln!(
            f,
            "kernel {} = {} for {}, block {}",
            kernel.name,
            kernel.rust_name,
            kernel.target,
            block(&kernel.block)
        )?;
        if kernel.instance != kernel.rust_name {
            writeln!(f, "    instance {}", kernel.instance)?;
        }
        let limits = [
            ("at least", kernel.min_blocks, "blocks"),
            ("at most", kernel.max_registers, "registers"),
            (
                "at most",
                (kernel.unrolled != MAX_UNROLLED_INSTRUCTIONS).then_some(kernel.unrolled as u32),
                "unrolled instructions",
            ),
        ];
        for (bound, limit, what) in limits {
            if let Some(limit) = limit {
                writeln!(f, "    {bound} {limit} {what}")?;
            }
        }
        if kernel.declared.cooperative {
            writeln!(f, "    cooperative")?;
        }
        for DeclaredOutput { index, coverage } in &kernel.declared.outputs {
            writeln!(f, "    output {index} {}", coverage.name())?;
        }
        for p in &kernel.parameters {
            write!(f, "    parameter {} {}: ", p.argument, name(&p.name))?;
            match p.role {
                Role::Value(s) => writeln!(f, "{s}")?,
                Role::Address { element: e, mutable } => {
                    writeln!(f, "global {}{}", if mutable { "mut " } else { "" }, element(e))?
                }
                Role::Extent(d) => writeln!(f, "usize (extent {d})")?,
                Role::Stride(d) => writeln!(f, "usize (stride {d})")?,
            }
        }
        for (i, local) in kernel.locals.iter().enumerate() {
            let name = &self.locals[i];
            match local.len {
                1 => writeln!(f, "    local {name}: {}", local.element)?,
                n => {
                    let memory = if local.memory { " in memory" } else { "" };
                    writeln!(f, "    local {name}: [{}; {n}]{memory}", local.element)?;
                }
            }
        }
        for (array, name) in kernel.shared.iter().zip(&self.shared) {
            let SharedArray { shape, strides, offset, over, layout, .. } = array;
            write!(f, "    shared {name}: {} {shape:?} strides {strides:?}", element(array.element))?;
            write!(f, " at byte {offset}")?;
            match layout {
                SharedLayout::Packed => {}
                SharedLayout::Exchange => f.write_str(" exchange")?,
                SharedLayout::Pitch => f.write_str(" pitch")?,
                SharedLayout::Padded { pad } => write!(f, " padded by {pad}")?,
                SharedLayout::Swizzled(Swizzle { mask, shift }) => write!(f, " swizzled by row >> {shift} & {mask}")?,
            }
            match over {
                Some(over) => writeln!(f, " over {}", self.shared.get(over.0 as usize).map_or("?", String::as_str))?,
                None => writeln!(f)?,
            }
        }
        for (array, name) in kernel.dynamic.iter().zip(&self.dynamic) {
            let extents: Vec<String> = array.extents.iter().map(|extent| extent.text(self)).collect();
            writeln!(f, "    dynamic {name}: {} [{}]", element(array.element), extents.join(", "))?;
        }
        for (table, name) in kernel.tables.iter().zip(&self.tables) {
            let placement = match table.placement {
                Placement::ByUse => "",
                Placement::Constant => "constant ",
                Placement::Global => "global ",
            };
            let scalars = table.scalars.iter();
            let scalars: Vec<String> =
                scalars.map(|(at, ty, bits)| format!("{at}: {}", constant(Type::Scalar(*ty), *bits))).collect();
            writeln!(f, "    table {name}: {placement}{} bytes {{{}}}", table.bytes, scalars.join(", "))?;
        }
        self.region(f, &kernel.body, 0)
    }

    fn region(&mut self, f: &mut dyn Write, region: &Region, depth: usize) -> fmt::Result {
        for inst in &region.insts {
            if matches!(inst.op, Op::Constant(_)) || matches!(&inst.op, Op::Yield(v) if v.is_empty()) {
                continue;
            }
            self.comment(f, inst.location, depth)?;
            self.inst(f, inst, depth)?;
        }
        Ok(())
    }

    /// Writes a changed source line as a comment; with `marks`, writes the location's number.
    fn comment(&mut self, f: &mut dyn Write, location: Location, depth: usize) -> fmt::Result {
        if self.marks {
            return writeln!(f, "{MARK}{}", location.0);
        }
        let Some(l) = self.kernel.locations.get(location.0 as usize) else { return Ok(()) };
        let line = (l.source, l.span.line);
        let Some(source) = self.kernel.sources.get(l.source as usize).filter(|_| self.line != Some(line)) else {
            return Ok(());
        };
        self.line = Some(line);
        let heading = source.heading(u32::from(l.span.line), l.source != 0);
        writeln!(f, "{:indent$}// {heading}", "", indent = depth * 4)
    }

    fn inst(&mut self, f: &mut dyn Write, inst: &Inst, depth: usize) -> fmt::Result {
        let indent = depth * 4;
        write!(f, "{:indent$}", "")?;
        for (i, r) in inst.results.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, self.define(*r))?;
        }
        if !inst.results.is_empty() {
            f.write_str(" = ")?;
        }
        match &inst.op {
            Op::If { condition, then, otherwise } => {
                writeln!(f, "if {} {{", self.text(*condition))?;
                self.region(f, then, depth + 1)?;
                if !matches!(&otherwise.insts[..], [Inst { op: Op::Yield(v), .. }] if v.is_empty()) {
                    writeln!(f, "{:indent$}}} else {{", "")?;
                    self.region(f, otherwise, depth + 1)?;
                }
                writeln!(f, "{:indent$}}}", "")
            }
            Op::For(l) => {
                let (start, end, step) = (self.text(l.start), self.text(l.end), self.text(l.step));
                let index = l.body.parameters.first().map_or(String::new(), |i| self.define(*i));
                write!(f, "{}: for {index} in {start}..{end} step {step}", self.part(&l.label))?;
                match l.unroll {
                    Unroll::Auto => {}
                    Unroll::Full => f.write_str(" unroll")?,
                    Unroll::Never => f.write_str(" rolled")?,
                }
                self.carried(f, l.body.parameters.get(1..).unwrap_or(&[]), &l.inits)?;
                self.braces(f, &l.body, depth)
            }
            Op::Loop { label: l, inits, body } => {
                write!(f, "{}: loop", self.part(l))?;
                self.carried(f, &body.parameters, inits)?;
                self.braces(f, body, depth)
            }
            Op::Block { label: l, body } => {
                write!(f, "{}: block", self.part(l))?;
                self.braces(f, body, depth)
            }
            op => {
                let mut text = String::new();
                op.print(self, &mut text);
                writeln!(f, "{text}")
            }
        }
    }

    fn braces(&mut self, f: &mut dyn Write, body: &Region, depth: usize) -> fmt::Result {
        f.write_str(" {\n")?;
        self.region(f, body, depth + 1)?;
        writeln!(f, "{:indent$}}}", "", indent = depth * 4)
    }

    fn carried(&self, f: &mut dyn Write, parameters: &[Value], inits: &[Value]) -> fmt::Result {
        if parameters.is_empty() {
            return Ok(());
        }
        let inits = inits.iter().map(|v| self.text(*v)).chain(std::iter::repeat("?".to_string()));
        let pairs: Vec<_> =
            parameters.iter().zip(inits).map(|(p, init)| format!("{} = {init}", self.define(*p))).collect();
        write!(f, " ({})", pairs.join(", "))
    }

    fn define(&self, v: Value) -> String {
        match self.kernel.values.get(v.0 as usize) {
            Some(ty) => format!("{v}: {ty}"),
            None => format!("{v}: ?"),
        }
    }

    /// Appends a value as an operand: its name, or its value if it is constant.
    pub fn value(&self, v: Value, out: &mut String) {
        match self.constants.get(v.0 as usize).copied().flatten() {
            Some(bits) => out.push_str(&constant(self.kernel.ty(v), bits)),
            None => out.push_str(&v.to_string()),
        }
    }

    /// Appends the name of a parameter of the entry.
    pub fn parameter(&self, index: u32, out: &mut String) {
        match self.kernel.parameters.get(index as usize) {
            Some(p) => out.push_str(&name(&p.name)),
            None => out.push_str(&format!("#{index}")),
        }
    }

    /// Returns the text of a field.
    fn part(&self, part: &impl OpField) -> String {
        let mut text = String::new();
        part.print(self, &mut text);
        text
    }

    fn text(&self, v: Value) -> String {
        self.part(&v)
    }
}

impl fmt::Display for Local {
    /// Writes the declaration: `stack: u32 [32], 128 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}], {} bytes", self.name, self.element, self.len, self.bytes())
    }
}

impl fmt::Display for SharedArray {
    /// Writes the declaration: `ta: f32 [16, 16], pitch 17 (padded by 1), bytes 0..1084`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedArray { name, element, shape, offset, .. } = self;
        write!(f, "{name}: {element} {shape:?}")?;
        let pitch = self.strides.len().checked_sub(2).map(|i| self.strides[i]);
        match (self.layout, pitch) {
            (SharedLayout::Padded { pad }, Some(pitch)) => write!(f, ", pitch {pitch} (padded by {pad})")?,
            (SharedLayout::Pitch, Some(pitch)) => write!(f, ", pitch {pitch}")?,
            (SharedLayout::Swizzled(_), Some(_)) => f.write_str(", swizzled")?,
            _ => {}
        }
        write!(f, ", bytes {offset}..{}", offset + self.bytes())
    }
}
