//! IR as text, to be read: `%7: f32 = load ta[%3, 5]`.
//!
//! Constants are written where they are used, and their own instructions left out; each group of instructions stands
//! under the line of Rust that it was made from, `// +3 let i = grid::index();`, where +3 counts lines from the `fn`.

use super::*;
use crate::half;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter, Write};

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} = {} for {}, block ", self.name, self.instance, self.target)?;
        match self.block.extents() {
            Some([x, y, z]) => writeln!(f, "{x}×{y}×{z}")?,
            None => writeln!(f, "{}", self.block)?,
        }
        for p in &self.parameters {
            match p.role {
                Role::Value(s) => writeln!(f, "    parameter {}: {s}", p.name)?,
                Role::Address { element, mutable } => {
                    writeln!(f, "    parameter {}: global {}{element}", p.name, if mutable { "mut " } else { "" })?
                }
                Role::Extent(d) => writeln!(f, "    parameter {}: usize (extent {d})", p.name)?,
                Role::Stride(d) => writeln!(f, "    parameter {}: usize (stride {d})", p.name)?,
            }
        }
        let mut printer = Printer::new(self);
        for (i, local) in self.locals.iter().enumerate() {
            let name = &printer.locals[i];
            match local.len {
                1 => writeln!(f, "    local {name}: {}", local.element)?,
                n => writeln!(f, "    local {name}: [{}; {n}]", local.element)?,
            }
        }
        for (array, name) in self.shared.iter().zip(&printer.shared) {
            let SharedArray { element, shape, strides, offset, over, layout, .. } = array;
            write!(f, "    shared {name}: {element} {shape:?} strides {strides:?} at byte {offset}")?;
            if let Layout::Swizzled(Swizzle { mask, shift }) = layout {
                write!(f, " swizzled by row >> {shift} & {mask}")?;
            }
            match over {
                Some(over) => writeln!(f, " over {}", printer.shared.get(over.0 as usize).map_or("?", String::as_str))?,
                None => writeln!(f)?,
            }
        }
        for DynamicArray { name, element, .. } in &self.dynamic {
            writeln!(f, "    dynamic {name}: {element}")?;
        }
        for Table { name, scalars, bytes, .. } in &self.tables {
            writeln!(f, "    table {name}: {} scalars in {bytes} bytes", scalars.len())?;
        }
        printer.region(f, &self.body, 0)
    }
}

/// An instruction of a kernel, and what it holds, for messages.
#[derive(Debug)]
pub struct Text<'a> {
    kernel: &'a Kernel,
    inst: &'a Inst,
}

impl Kernel {
    /// `inst` of this kernel as it is printed, without its source line.
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

/// `LeadingZeros` as `leading_zeros`.
fn snake(name: impl fmt::Debug) -> String {
    let mut out = String::new();
    for (i, c) in format!("{name:?}").chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// A name that several things bear is followed by which one is meant.
fn distinct<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut count: HashMap<&str, u32> = HashMap::new();
    names.clone().for_each(|n| *count.entry(n).or_default() += 1);
    names.enumerate().map(|(i, n)| if count[n] == 1 { n.to_string() } else { format!("{n}#{i}") }).collect()
}

struct Printer<'a> {
    kernel: &'a Kernel,
    constants: Vec<Option<u64>>,
    locals: Vec<String>,
    shared: Vec<String>,
    /// Source and line of the last comment.
    line: Option<(u32, u16)>,
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
        Printer { kernel, constants, locals, shared, line: None }
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

    /// The Rust line of what follows, where it is another than that of what came before.
    fn comment(&mut self, f: &mut dyn Write, location: Location, depth: usize) -> fmt::Result {
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
                writeln!(f, "if {} {{", self.value(*condition))?;
                self.region(f, then, depth + 1)?;
                if !matches!(&otherwise.insts[..], [Inst { op: Op::Yield(v), .. }] if v.is_empty()) {
                    writeln!(f, "{:indent$}}} else {{", "")?;
                    self.region(f, otherwise, depth + 1)?;
                }
                writeln!(f, "{:indent$}}}", "")
            }
            Op::For(l) => {
                let (start, end, step) = (self.value(l.start), self.value(l.end), self.value(l.step));
                let index = l.body.parameters.first().map_or(String::new(), |i| self.define(*i));
                write!(f, "{}: for {index} in {start}..{end} step {step}", label(l.label))?;
                match l.unroll {
                    Unroll::Auto => {}
                    Unroll::Full => f.write_str(" unroll")?,
                    Unroll::Never => f.write_str(" rolled")?,
                }
                self.carried(f, l.body.parameters.get(1..).unwrap_or(&[]), &l.inits)?;
                self.braces(f, &l.body, depth)
            }
            Op::Loop { label: l, inits, body } => {
                write!(f, "{}: loop", label(*l))?;
                self.carried(f, &body.parameters, inits)?;
                self.braces(f, body, depth)
            }
            Op::Block { label: l, body } => {
                write!(f, "{}: block", label(*l))?;
                self.braces(f, body, depth)
            }
            op => writeln!(f, "{}", self.op(op)),
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
        let inits = inits.iter().map(|v| self.value(*v)).chain(std::iter::repeat("?".to_string()));
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

    /// A value as an operand: its name, or what it is if it is constant.
    fn value(&self, v: Value) -> String {
        let Some(bits) = self.constants.get(v.0 as usize).copied().flatten() else { return v.to_string() };
        match self.kernel.ty(v) {
            Type::Scalar(Scalar::Bool) => (bits != 0).to_string(),
            Type::Scalar(Scalar::F16) => format!("{:?}", half::f16_to_f32(bits as u16)),
            Type::Scalar(Scalar::Bf16) => format!("{:?}", half::bf16_to_f32(bits as u16)),
            Type::Scalar(Scalar::Custom(format)) => format!("{:?}", format.decode(bits as u16)),
            Type::Scalar(Scalar::F32) => format!("{:?}", f32::from_bits(bits as u32)),
            Type::Scalar(Scalar::F64) => format!("{:?}", f64::from_bits(bits)),
            Type::Scalar(s) if s.is_signed() => (((bits << (64 - s.bits())) as i64) >> (64 - s.bits())).to_string(),
            _ => bits.to_string(),
        }
    }

    fn values(&self, values: &[Value]) -> String {
        values.iter().map(|v| self.value(*v)).collect::<Vec<_>>().join(", ")
    }

    fn local(&self, local: LocalId, index: Option<Value>) -> String {
        let name = self.locals.get(local.0 as usize).map_or("?", String::as_str);
        index.map_or(name.to_string(), |i| format!("{name}[{}]", self.value(i)))
    }

    fn place(&self, place: &Place) -> String {
        let mut text = self.element(place);
        if let Some(within) = place.within() {
            text.push_str(&format!(".{}", within.offset));
            for Step { index, extent, bytes } in &within.indices {
                text.push_str(&format!("[{} of {extent} by {bytes}]", self.value(*index)));
            }
        }
        text
    }

    fn element(&self, place: &Place) -> String {
        match place {
            Place::Global { base, dims, .. } | Place::Dynamic { base, dims, .. } => {
                let dims: Vec<_> = dims
                    .iter()
                    .map(|d| {
                        let stride = d.stride.map_or(String::new(), |s| format!(" by {}", self.value(s)));
                        format!("{} of {}{stride}", self.value(d.index), self.value(d.extent))
                    })
                    .collect();
                format!("{}[{}]", self.value(*base), dims.join(", "))
            }
            Place::Shared { array, indices, .. } => {
                let name = self.shared.get(array.0 as usize).map_or("?", String::as_str);
                format!("{name}[{}]", self.values(indices))
            }
            Place::Address { base, offset: 0 } => format!("[{}]", self.value(*base)),
            Place::Address { base, offset } if *offset < 0 => {
                format!("[{} - {}]", self.value(*base), offset.unsigned_abs())
            }
            Place::Address { base, offset } => format!("[{} + {offset}]", self.value(*base)),
        }
    }

    /// An operation that holds no region.
    fn op(&self, op: &Op) -> String {
        let v = |v: &Value| self.value(*v);
        let jump = |word: &str, l: Label, values: &[Value]| match values {
            [] => format!("{word} {}", label(l)),
            _ => format!("{word} {} {}", label(l), self.values(values)),
        };
        match op {
            Op::Constant(bits) => format!("constant {bits:#x}"),
            Op::Parameter(i) => match self.kernel.parameters.get(*i as usize) {
                Some(p) => format!("parameter {}", p.name),
                None => format!("parameter #{i}"),
            },
            Op::Special(s) => s.to_string(),
            Op::Table(t) => format!("table {}", self.kernel.table(*t).map_or("?", |t| t.name.as_str())),
            Op::Unary(o, a) => format!("{} {}", snake(o), v(a)),
            Op::Binary(o, a, b) => format!("{} {}, {}", snake(o), v(a), v(b)),
            Op::MulAdd(a, b, c) => format!("mul_add {}, {}, {}", v(a), v(b), v(c)),
            Op::Approximate(what, a) => format!("approximate {} {}", snake(what), v(a)),
            Op::Bits(what, operands) => format!("{} {}", what.name(), self.values(operands)),
            Op::Compare(c, a, b) => format!("{} {}, {}", snake(c), v(a), v(b)),
            Op::Select { condition, yes, no } => format!("select {}, {}, {}", v(condition), v(yes), v(no)),
            Op::Cast(a) => format!("cast {}", v(a)),
            Op::Bitcast(a) => format!("bitcast {}", v(a)),
            Op::Offset { base, terms, bytes } => {
                let terms: Vec<_> =
                    terms.iter().map(|(i, s)| s.map_or(v(i), |s| format!("{} * {}", v(i), v(&s)))).collect();
                format!("offset {} + {bytes} * ({})", v(base), terms.join(" + "))
            }
            Op::Dynamic { array, extents } => {
                let name = self.kernel.dynamic.get(array.0 as usize).map_or("?", |a| a.name.as_str());
                format!("dynamic {name} [{}]", self.values(extents))
            }
            Op::Load { place, policy, guard, .. } => {
                let policy = match policy {
                    Policy::ReadOnly => " readonly",
                    Policy::ReadOnce => " readonly once",
                    Policy::Coherent => "",
                    Policy::CoherentOnce => " once",
                    Policy::SecondCache => " coherent",
                };
                let guard = guard
                    .as_ref()
                    .map_or(String::new(), |g| format!(" if {} else {}", v(&g.condition), self.values(&g.otherwise)));
                format!("load{policy} {}{guard}", self.place(place))
            }
            Op::Store { place, values, guard, .. } => {
                let guard = guard.map_or(String::new(), |g| format!(" if {}", v(&g)));
                format!("store {} = {}{guard}", self.place(place), self.values(values))
            }
            Op::Poison { place, element, count, guard } => {
                let guard = guard.map_or(String::new(), |g| format!(" if {}", v(&g)));
                format!("poison {count} {element} at {}{guard}", self.place(place))
            }
            Op::CopyAsync(copy) => {
                let AsyncCopy { to, from, element, count, guard, inside, bytes } = &**copy;
                let word = |name: &str, value: &Option<Value>| {
                    value.map_or(String::new(), |value| format!(" {name} {}", v(&value)))
                };
                let (guard, inside, bytes) = (word("if", guard), word("inside", inside), word("bytes", bytes));
                let (to, from) = (self.place(to), self.place(from));
                format!("copy_async {count} {element} to {to} from {from}{guard}{inside}{bytes}")
            }
            Op::CopyCommit => "copy_commit".to_string(),
            Op::CopyWait(Landing::Through(group)) => format!("copy_wait through {}", v(group)),
            Op::CopyWait(Landing::But(n)) => format!("copy_wait but {n}"),
            Op::Begin(array) => format!("begin {}", self.shared.get(array.0 as usize).map_or("?", String::as_str)),
            Op::Named { name, value } => format!("name {name} = {}", v(value)),
            Op::Atomic { operation, place, values, .. } => {
                format!("atomic {} {}, {}", snake(operation), self.place(place), self.values(values))
            }
            Op::Inline { code, inputs } => {
                let given = code.source().inputs().zip(inputs);
                let given: Vec<_> = given.map(|(o, value)| format!("{} = {}", o.name, v(value))).collect();
                let given = if given.is_empty() { String::new() } else { format!(" with {}", given.join(", ")) };
                format!("ptx \"{code}\"{given}")
            }
            Op::ReadLocal { local, index } => format!("read {}", self.local(*local, *index)),
            Op::WriteLocal { local, index, value } => format!("write {} = {}", self.local(*local, *index), v(value)),
            Op::BlockSync => "block_sync".to_string(),
            Op::WarpSync => "warp_sync".to_string(),
            Op::Shuffle { mode, value, selector, width } => {
                format!("shuffle {} {}, {} width {width}", snake(mode), v(value), v(selector))
            }
            Op::Fence(scope) => format!("fence {}", snake(scope)),
            Op::Match(value) => format!("match {}", v(value)),
            Op::Reduce(operation, value) => format!("reduce {} {}", snake(operation), v(value)),
            Op::Vote { mode, value } => format!("vote {} {}", snake(mode), v(value)),
            Op::Report { record, site, values } => format!("report {site} to {}: {}", v(record), self.values(values)),
            Op::Yield(values) => format!("yield {}", self.values(values)),
            Op::Break(l, values) => jump("break", *l, values),
            Op::Continue(l, values) => jump("continue", *l, values),
            Op::Return => "return".to_string(),
            Op::If { .. } | Op::For(_) | Op::Loop { .. } | Op::Block { .. } => "{ … }".to_string(),
        }
    }
}

fn label(l: Label) -> String {
    format!("'l{}", l.0)
}

impl fmt::Display for SharedArray {
    /// `ta: f32 [16, 16], pitch 17 (padded by 1), bytes 0..1084`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedArray { name, element, shape, offset, .. } = self;
        write!(f, "{name}: {element} {shape:?}")?;
        let pitch = self.strides.len().checked_sub(2).map(|i| self.strides[i]);
        match (self.layout, pitch) {
            (Layout::Padded { pad }, Some(pitch)) => write!(f, ", pitch {pitch} (padded by {pad})")?,
            (Layout::Pitch, Some(pitch)) => write!(f, ", pitch {pitch}")?,
            (Layout::Swizzled(_), Some(_)) => f.write_str(", swizzled")?,
            _ => {}
        }
        write!(f, ", bytes {offset}..{}", offset + self.bytes())
    }
}
