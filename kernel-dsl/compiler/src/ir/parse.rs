//! Parses the text of IR: the inverse of [`print`](super::print).
//!
//! The text contains everything that passes and executors read. Sources, locations and allowances
//! are not part of the text, so a parsed kernel has none. Values keep their numbers, and constants
//! get numbers after them, at the start of the body: printing a parsed kernel gives the same text
//! without its comments.

use super::part::OpField;
use super::*;
use crate::oracle::{Coverage, DeclaredOutput};
use crate::scalar::Scalar;
use crate::target::Target;
use crate::{float16, half};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// Error returned when text is not IR: the position, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IrParseError {
    /// The line, from 1.
    pub line: u32,
    /// The column, in bytes from 0.
    pub at: usize,
    expected: String,
    found: String,
}

impl fmt::Display for IrParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IrParseError { line, at, expected, found } = self;
        write!(f, "line {line}, column {}: expected {expected}, found `{found}`", at + 1)
    }
}

impl std::error::Error for IrParseError {}

impl FromStr for Kernel {
    type Err = IrParseError;

    /// Parses a kernel as it prints.
    fn from_str(text: &str) -> Result<Kernel, IrParseError> {
        Parser::kernel(text)
    }
}

/// The number of the first constant while a kernel is parsed; a printed value has a lower one.
const FIRST_CONSTANT: u32 = 1 << 31;

/// Reads the lines of a kernel, one item after the other.
pub(super) struct Parser<'t> {
    /// The lines that are not comments, without indentation, and their numbers.
    lines: Vec<(u32, &'t str)>,
    line: usize,
    /// The position in the line.
    at: usize,
    kernel: Kernel,
    /// The type of each value that is defined so far.
    types: Vec<Option<Type>>,
    /// The constants so far: their numbers begin at [`FIRST_CONSTANT`].
    constants: Vec<(Type, u64)>,
    /// The results of the current instruction.
    results: Values,
    /// Whether the parser is in a formula, where operations end at `;` or `)`.
    formula: bool,
    pub locals: Vec<String>,
    pub shared: Vec<String>,
    pub dynamic: Vec<String>,
    pub tables: Vec<String>,
}

impl<'t> Parser<'t> {
    fn kernel(text: &'t str) -> Result<Kernel, IrParseError> {
        let lines = text.lines().enumerate().map(|(i, line)| (i as u32 + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//")).collect();
        let mut p = Parser {
            lines,
            line: 0,
            at: 0,
            kernel: Kernel::empty(Target::SM_61, BlockExtents::fixed([1, 1, 1])),
            types: Vec::new(),
            constants: Vec::new(),
            results: Values::new(),
            formula: false,
            locals: Vec::new(),
            shared: Vec::new(),
            dynamic: Vec::new(),
            tables: Vec::new(),
        };
        p.heading()?;
        while p.declaration()? {}
        let mut body = p.region()?;
        if p.line < p.lines.len() {
            return Err(p.fault("the end of the kernel"));
        }
        let Parser { mut kernel, types, constants, .. } = p;
        // Passes drop instructions, so some numbers have no definition.
        kernel.values = types.into_iter().map(|ty| ty.unwrap_or(Type::Scalar(Scalar::Bool))).collect();
        let first = kernel.values.len() as u32;
        renumber(&mut body, &|v| if v.0 >= FIRST_CONSTANT { Value(v.0 - FIRST_CONSTANT + first) } else { v });
        let definitions = constants.into_iter().map(|(ty, bits)| {
            let results = [kernel.value(ty)].into_iter().collect();
            Inst { op: Op::Constant(bits), results, location: Location(0) }
        });
        let definitions: Vec<Inst> = definitions.collect();
        body.insts.splice(0..0, definitions);
        kernel.body = body;
        Ok(kernel)
    }

    /// Parses `kernel NAME = INSTANCE for TARGET, block BLOCK`.
    fn heading(&mut self) -> Result<(), IrParseError> {
        self.expect("kernel ")?;
        self.kernel.name = self.until(" = ")?.to_string();
        let rest = self.rest();
        let end = rest.rfind(" for sm_").ok_or_else(|| self.fault("` for ` and a target"))?;
        self.kernel.rust_name = rest[..end].to_string();
        self.kernel.instance.clone_from(&self.kernel.rust_name);
        self.at += end + " for ".len();
        let target = self.until(", block ")?;
        self.kernel.target = target.parse().map_err(|_| self.fault("a target"))?;
        let (mut most, mut open) = ([1; 3], None);
        for (axis, extent) in most.iter_mut().enumerate() {
            if axis > 0 {
                self.expect("×")?;
            }
            *extent = self.number()?;
            if self.eat("..=") {
                let least = std::mem::replace(extent, self.number()?);
                self.expect(" by ")?;
                open = Some((axis, least, self.number()?));
            }
        }
        self.kernel.block = match open {
            None => BlockExtents::fixed(most),
            Some((axis, least, step)) => {
                self.expect(" multiple of ")?;
                let multiple = self.number()?;
                let block =
                    BlockExtents::ranging(most, axis, least, step).ok_or_else(|| self.fault("a range of sizes"))?;
                block.multiple_of(multiple)
            }
        };
        self.next_line()
    }

    /// Parses a declaration; returns whether there is one.
    fn declaration(&mut self) -> Result<bool, IrParseError> {
        if self.eat("instance ") {
            self.kernel.instance = self.rest().to_string();
            self.at += self.kernel.instance.len();
        } else if self.eat("at least ") {
            self.kernel.min_blocks = Some(self.number()?);
            self.expect(" blocks")?;
        } else if self.eat("at most ") {
            let limit = self.number()?;
            if self.eat(" registers") {
                self.kernel.max_registers = Some(limit);
            } else {
                self.expect(" unrolled instructions")?;
                self.kernel.unrolled = limit as usize;
            }
        } else if self.eat("cooperative") {
            self.kernel.declared.cooperative = true;
        } else if self.eat("output ") {
            let index = self.number()?;
            self.expect(" ")?;
            let all = [Coverage::All, Coverage::Once];
            let coverage = all.into_iter().find(|c| self.eat_word(c.name())).ok_or_else(|| self.fault("a coverage"))?;
            self.kernel.declared.outputs.push(DeclaredOutput { index, coverage });
        } else if self.rest().starts_with("parameter ") {
            self.entry_parameter()?;
        } else if self.eat("local ") {
            let name = self.declared_name()?;
            self.locals.push(name.1);
            self.expect(": ")?;
            let array = self.eat("[");
            let element = self.type_name()?;
            let len = if array { self.array_length()? } else { 1 };
            let memory = self.eat(" in memory");
            self.kernel.locals.push(Local { name: name.0, element, len, memory });
        } else if self.eat("shared ") {
            self.shared_array()?;
        } else if self.eat("dynamic ") {
            let (name, printed) = self.declared_name()?;
            self.dynamic.push(printed);
            self.expect(": ")?;
            let element = self.element()?;
            self.expect(" [")?;
            let mut extents = SmallVec::new();
            while !self.eat("]") {
                if !extents.is_empty() {
                    self.expect(", ")?;
                }
                extents.push(self.formula()?);
            }
            self.kernel.dynamic.push(DynamicArray { name, element, extents });
        } else if self.eat("table ") {
            self.table()?;
        } else {
            return Ok(false);
        }
        self.next_line()?;
        Ok(true)
    }

    fn entry_parameter(&mut self) -> Result<(), IrParseError> {
        self.expect("parameter ")?;
        let argument = self.number()?;
        self.expect(" ")?;
        let name = self.name()?;
        self.expect(": ")?;
        let role = if self.eat("global ") {
            let mutable = self.eat("mut ");
            Role::Address { element: self.element()?, mutable }
        } else {
            let scalar = self.scalar()?;
            if self.eat(" (extent ") {
                let dimension = self.number()?;
                self.expect(")")?;
                Role::Extent(dimension)
            } else if self.eat(" (stride ") {
                let dimension = self.number()?;
                self.expect(")")?;
                Role::Stride(dimension)
            } else {
                Role::Value(scalar)
            }
        };
        self.kernel.parameters.push(Parameter { name, argument, role });
        Ok(())
    }

    fn array_length(&mut self) -> Result<u32, IrParseError> {
        self.expect("; ")?;
        let len = self.number()?;
        self.expect("]")?;
        Ok(len)
    }

    fn shared_array(&mut self) -> Result<(), IrParseError> {
        let (name, printed) = self.declared_name()?;
        self.expect(": ")?;
        let element = self.element()?;
        self.expect(" ")?;
        let shape = self.numbers()?;
        self.expect(" strides ")?;
        let strides = self.numbers()?;
        self.expect(" at byte ")?;
        let offset = self.number()?;
        let layout = if self.eat(" exchange") {
            SharedLayout::Exchange
        } else if self.eat(" pitch") {
            SharedLayout::Pitch
        } else if self.eat(" padded by ") {
            SharedLayout::Padded { pad: self.number()? }
        } else if self.eat(" swizzled by row >> ") {
            let shift = self.number()?;
            self.expect(" & ")?;
            SharedLayout::Swizzled(Swizzle { mask: self.number()?, shift })
        } else {
            SharedLayout::Packed
        };
        let over = if self.eat(" over ") { Some(OpField::parse(self)?) } else { None };
        self.shared.push(printed);
        self.kernel.shared.push(SharedArray { name, element, shape, strides, layout, over, offset });
        Ok(())
    }

    fn table(&mut self) -> Result<(), IrParseError> {
        let (name, printed) = self.declared_name()?;
        self.expect(": ")?;
        let placement = if self.eat("constant ") {
            Placement::Constant
        } else if self.eat("global ") {
            Placement::Global
        } else {
            Placement::ByUse
        };
        let bytes = self.number()?;
        self.expect(" bytes {")?;
        let mut scalars = Vec::new();
        while !self.eat("}") {
            if !scalars.is_empty() {
                self.expect(", ")?;
            }
            let at = self.number()?;
            self.expect(": ")?;
            let (ty, bits) = self.constant()?;
            scalars.push((at, ty.scalar().ok_or_else(|| self.fault("a scalar"))?, bits));
        }
        self.tables.push(printed);
        self.kernel.tables.push(Table { name, scalars: scalars.into(), bytes, placement });
        Ok(())
    }

    /// Parses the instructions of a region, up to its closing brace or the end of the text.
    fn region(&mut self) -> Result<Region, IrParseError> {
        let mut insts = Vec::new();
        while self.line < self.lines.len() && !self.rest().starts_with('}') {
            insts.push(self.inst()?);
        }
        if !insts.last().is_some_and(|inst: &Inst| inst.op.is_terminator()) {
            insts.push(Inst { op: Op::Yield(Values::new()), results: Values::new(), location: Location(0) });
        }
        Ok(Region { parameters: Values::new(), insts })
    }

    fn inst(&mut self) -> Result<Inst, IrParseError> {
        let mut results = Values::new();
        if self.rest().starts_with('%') {
            results.push(self.definition()?);
            while self.eat(", ") {
                results.push(self.definition()?);
            }
            self.expect(" = ")?;
        }
        self.results = results.clone();
        let op = if self.eat("if ") {
            let condition = self.value()?;
            let then = self.braces(Values::new())?;
            let otherwise = match self.eat("} else") {
                true => self.braces(Values::new())?,
                false => Region {
                    parameters: Values::new(),
                    insts: vec![Inst { op: Op::Yield(Values::new()), results: Values::new(), location: Location(0) }],
                },
            };
            self.expect("}")?;
            self.next_line()?;
            Op::If { condition, then, otherwise }
        } else if self.rest().starts_with("'l") {
            let label = OpField::parse(self)?;
            self.expect(": ")?;
            let op = self.labeled(label)?;
            self.expect("}")?;
            self.next_line()?;
            op
        } else {
            let op = Op::parse(self)?;
            self.next_line()?;
            op
        };
        Ok(Inst { op, results, location: Location(0) })
    }

    /// Parses a loop or block after its label, up to its closing brace.
    fn labeled(&mut self, label: Label) -> Result<Op, IrParseError> {
        if self.eat("block") {
            return Ok(Op::Block { label, body: self.braces(Values::new())? });
        }
        if self.eat("loop") {
            let (parameters, inits) = self.carried()?;
            return Ok(Op::Loop { label, inits, body: self.braces(parameters)? });
        }
        self.expect("for ")?;
        let mut parameters: Values = [self.definition()?].into_iter().collect();
        self.expect(" in ")?;
        let start = self.value()?;
        self.expect("..")?;
        let end = self.value()?;
        self.expect(" step ")?;
        let step = self.value()?;
        let unroll = if self.eat(" unroll") {
            Unroll::Full
        } else if self.eat(" rolled") {
            Unroll::Never
        } else {
            Unroll::Auto
        };
        let (carried, inits) = self.carried()?;
        parameters.extend(carried);
        Ok(Op::For(Box::new(For { label, start, end, step, unroll, inits, body: self.braces(parameters)? })))
    }

    /// Parses the carried parameters of a loop and their first values.
    fn carried(&mut self) -> Result<(Values, Values), IrParseError> {
        let (mut parameters, mut inits) = (Values::new(), Values::new());
        if self.eat(" (") {
            while !self.eat(")") {
                if !parameters.is_empty() {
                    self.expect(", ")?;
                }
                parameters.push(self.definition()?);
                self.expect(" = ")?;
                inits.push(self.value()?);
            }
        }
        Ok((parameters, inits))
    }

    /// Parses ` {`, the lines of a region with these parameters, and leaves its closing brace.
    fn braces(&mut self, parameters: Values) -> Result<Region, IrParseError> {
        self.expect(" {")?;
        self.next_line()?;
        Ok(Region { parameters, ..self.region()? })
    }

    /// Parses a formula:
    /// `(%0: usize = parameter n; %1: usize = constant 0x2; %2: usize = mul %0, %1)`.
    fn formula(&mut self) -> Result<Formula, IrParseError> {
        let types = std::mem::take(&mut self.types);
        self.formula = true;
        self.expect("(")?;
        let mut steps = Vec::new();
        while !self.eat(")") {
            if !steps.is_empty() {
                self.expect("; ")?;
            }
            let result = self.definition()?;
            self.expect(" = ")?;
            let ty = self.ty(result).scalar().ok_or_else(|| self.fault("a scalar"))?;
            steps.push((ty, Op::parse(self)?));
        }
        self.formula = false;
        self.types = types;
        Ok(Formula::from_operations(steps))
    }

    /// Parses `%7: f32` and defines the value.
    fn definition(&mut self) -> Result<Value, IrParseError> {
        self.expect("%")?;
        let number: u32 = self.number()?;
        self.expect(": ")?;
        let ty = self.type_name()?;
        if number >= FIRST_CONSTANT / 2 {
            return Err(self.fault("a smaller number"));
        }
        let at = number as usize;
        self.types.resize(self.types.len().max(at + 1), None);
        if self.types[at].replace(ty).is_some() {
            return Err(self.fault("a value that is not defined above"));
        }
        Ok(Value(number))
    }

    /// Parses an operand: a value that is defined above, or a constant.
    pub fn value(&mut self) -> Result<Value, IrParseError> {
        if self.eat("%") {
            let number = self.number()?;
            return match self.types.get(number as usize) {
                Some(Some(_)) => Ok(Value(number)),
                _ => Err(self.fault("a value that is defined above")),
            };
        }
        let constant = self.constant()?;
        let at = self.constants.iter().position(|known| *known == constant).unwrap_or_else(|| {
            self.constants.push(constant);
            self.constants.len() - 1
        });
        Ok(Value(FIRST_CONSTANT + at as u32))
    }

    /// Returns the type of a value that was parsed.
    pub fn ty(&self, value: Value) -> Type {
        let known = match value.0.checked_sub(FIRST_CONSTANT) {
            Some(at) => self.constants.get(at as usize).map(|constant| constant.0),
            None => self.types.get(value.0 as usize).copied().flatten(),
        };
        known.unwrap_or(Type::Scalar(Scalar::Bool))
    }

    /// Returns the type of scalars in memory that an access moves from or to `values`.
    pub fn scalar_of(&self, values: &Values) -> Result<Scalar, IrParseError> {
        values.first().and_then(|v| self.ty(*v).scalar()).ok_or_else(|| self.fault("a scalar value"))
    }

    /// Returns the type of scalars in memory that the current instruction loads.
    pub fn scalar_of_results(&self) -> Result<Scalar, IrParseError> {
        self.scalar_of(&self.results)
    }

    /// Returns whether a value follows.
    pub fn at_value(&self) -> bool {
        let rest = self.rest();
        let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        rest.starts_with(|c: char| c == '%' || c == '-' || c.is_ascii_digit())
            || matches!(word, "true" | "false" | "inf") && !rest[word.len()..].starts_with(['[', '#'])
            || leading_type(rest).is_some_and(|(_, end)| rest[end..].starts_with("(0x"))
    }

    /// Parses a constant.
    fn constant(&mut self) -> Result<(Type, u64), IrParseError> {
        for (word, bits) in [("true", 1), ("false", 0)] {
            if self.eat_word(word) {
                return Ok((Type::Scalar(Scalar::Bool), bits));
            }
        }
        let rest = self.rest();
        let unsigned = rest.strip_prefix('-').unwrap_or(rest);
        if !unsigned.starts_with(|c: char| c.is_ascii_digit()) && !unsigned.starts_with("inf") {
            let ty = self.type_name()?;
            self.expect("(")?;
            let bits = self.bits()?;
            self.expect(")")?;
            return Ok((ty, bits));
        }
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut end = rest.len() - unsigned.len();
        let mut float = unsigned.starts_with("inf");
        end += if float { "inf".len() } else { digits(unsigned) };
        if rest[end..].starts_with('.') && digits(&rest[end + 1..]) > 0 {
            float = true;
            end += 1 + digits(&rest[end + 1..]);
        }
        if rest[end..].starts_with('e') {
            float = true;
            end += 1;
            end += usize::from(rest[end..].starts_with('-'));
            end += digits(&rest[end..]);
        }
        let number = &rest[..end];
        self.at += end;
        let scalar = match self.eat("_") {
            true => self.scalar()?,
            false if float => Scalar::F32,
            false => Scalar::Usize,
        };
        let bits = match scalar {
            Scalar::F64 => number.parse::<f64>().ok().map(f64::to_bits),
            Scalar::F32 => number.parse::<f32>().ok().map(|x| x.to_bits().into()),
            Scalar::F16 => number.parse::<f32>().ok().map(|x| half::f16_from_f32(x).into()),
            Scalar::Bf16 => number.parse::<f32>().ok().map(|x| half::bf16_from_f32(x).into()),
            _ => number.parse::<i128>().ok().map(|n| n as u64 & scalar.mask()),
        };
        Ok((Type::Scalar(scalar), bits.ok_or_else(|| self.fault("a number"))?))
    }

    /// Parses `0x` and hexadecimal digits.
    pub fn bits(&mut self) -> Result<u64, IrParseError> {
        self.expect("0x")?;
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let bits = u64::from_str_radix(&rest[..end], 16).map_err(|_| self.fault("hexadecimal digits"))?;
        self.at += end;
        Ok(bits)
    }

    /// Parses a number without sign.
    pub fn number(&mut self) -> Result<u32, IrParseError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse().map_err(|_| self.fault("a number"))?;
        self.at += end;
        Ok(number)
    }

    /// Parses `[1, 2, 3]`.
    fn numbers(&mut self) -> Result<SmallVec<[u32; 3]>, IrParseError> {
        self.expect("[")?;
        let mut numbers = SmallVec::new();
        while !self.eat("]") {
            if !numbers.is_empty() {
                self.expect(", ")?;
            }
            numbers.push(self.number()?);
        }
        Ok(numbers)
    }

    /// Parses the type of a value.
    fn type_name(&mut self) -> Result<Type, IrParseError> {
        let (ty, len) = leading_type(self.rest()).ok_or_else(|| self.fault("a type"))?;
        self.at += len;
        Ok(ty)
    }

    /// Parses a scalar type.
    pub fn scalar(&mut self) -> Result<Scalar, IrParseError> {
        let (scalar, len) = leading_scalar(self.rest()).ok_or_else(|| self.fault("a scalar type"))?;
        self.at += len;
        Ok(scalar)
    }

    fn element(&mut self) -> Result<MemoryElement, IrParseError> {
        if !self.eat("{") {
            return Ok(MemoryElement::Scalar(self.scalar()?));
        }
        let bytes = self.number()?;
        self.expect(" bytes, align ")?;
        let align = self.number()?;
        self.expect("}")?;
        Ok(MemoryElement::Aggregate { bytes, align })
    }

    /// Parses the name of a parameter of the entry, and returns its index.
    pub fn parameter(&mut self) -> Result<u32, IrParseError> {
        let name = self.name()?;
        let found = self.kernel.parameters.iter().position(|p| p.name == name);
        found.map(|at| at as u32).ok_or_else(|| self.fault("a declared parameter"))
    }

    /// Returns the target of the kernel.
    pub fn target(&self) -> Target {
        self.kernel.target
    }

    /// Parses a name, which is in quotes where it is not a plain word.
    pub fn name(&mut self) -> Result<String, IrParseError> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return Err(self.fault("a name"));
        }
        self.at += end;
        Ok(rest[..end].to_string())
    }

    /// Parses a name and the index that distinguishes equal names. Returns the text as printed.
    pub fn distinct_name(&mut self) -> Result<String, IrParseError> {
        self.declared_name().map(|(_, printed)| printed)
    }

    /// Parses the name of a declaration. Returns it plain, and as printed.
    fn declared_name(&mut self) -> Result<(String, String), IrParseError> {
        let start = self.at;
        let name = self.name()?;
        if self.eat("#") {
            self.number()?;
        }
        Ok((name, self.lines[self.line].1[start..self.at].to_string()))
    }

    /// Parses text in quotes with the escapes of Rust.
    pub fn quoted(&mut self) -> Result<String, IrParseError> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('0') => text.push('\0'),
                    Some('u') => {
                        let digits: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(digits.trim_start_matches('{'), 16).ok();
                        text.push(code.and_then(char::from_u32).ok_or_else(|| self.fault("an escape"))?);
                    }
                    Some(c) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.fault("a closing quote"))
    }

    fn until(&mut self, end: &str) -> Result<&'t str, IrParseError> {
        let rest = self.rest();
        let at = rest.find(end).ok_or_else(|| self.fault(format!("`{end}`")))?;
        self.at += at + end.len();
        Ok(&rest[..at])
    }

    fn rest(&self) -> &'t str {
        self.lines.get(self.line).map_or("", |(_, line)| &line[self.at..])
    }

    /// Consumes `text` if it follows, and returns whether it did.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Consumes `word` if it follows as a whole word, and returns whether it did.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        let found = after.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Consumes `text`; returns an error if other text follows.
    pub fn expect(&mut self, text: &str) -> Result<(), IrParseError> {
        if self.eat(text) { Ok(()) } else { Err(self.fault(format!("`{text}`"))) }
    }

    /// Checks that the operation ends here.
    pub fn end_of_line(&self) -> Result<(), IrParseError> {
        let ends = self.rest().is_empty() || self.formula && self.rest().starts_with([';', ')']);
        if ends { Ok(()) } else { Err(self.fault("the end of the line")) }
    }

    fn next_line(&mut self) -> Result<(), IrParseError> {
        self.end_of_line()?;
        (self.line, self.at) = (self.line + 1, 0);
        Ok(())
    }

    /// Returns the position in the line, for [`Parser::rewind`].
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves back to a [`position`](Parser::position) in the line.
    pub fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    /// Returns an error at the current position that names the expected text.
    pub fn fault(&self, expected: impl Into<String>) -> IrParseError {
        let (line, found) = match self.lines.get(self.line) {
            Some((line, text)) => (*line, text[self.at..].to_string()),
            None => (self.lines.last().map_or(1, |(line, _)| line + 1), "the end".to_string()),
        };
        IrParseError { line, at: self.at, expected: expected.into(), found }
    }
}

/// Returns the type at the start of `text`, and its length there.
fn leading_type(text: &str) -> Option<(Type, usize)> {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    match &text[..end] {
        "global" => Some((Type::Global, end)),
        "constant" => Some((Type::Constant, end)),
        "shared" => Some((Type::Shared, end)),
        _ => leading_scalar(text).map(|(scalar, len)| (Type::Scalar(scalar), len)),
    }
}

/// Returns the scalar type at the start of `text`, and its length there.
fn leading_scalar(text: &str) -> Option<(Scalar, usize)> {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    if let Some(scalar) = Scalar::from_name(&text[..end]) {
        return Some((scalar, end));
    }
    let inside = text.strip_prefix("Float16<")?;
    let end = inside.find('>')?;
    let mut arguments = inside[..end].split(", ");
    let (exponent, bias) = (arguments.next()?.parse().ok()?, arguments.next()?.parse().ok()?);
    let policy = match arguments.next() {
        None => float16::Float16Policy::Ieee,
        Some("Finite") => float16::Float16Policy::Finite,
        Some("Saturating") => float16::Float16Policy::Saturating,
        Some(_) => return None,
    };
    let format = float16::Float16Format::new(exponent, bias, policy)?;
    Some((Scalar::Custom(format), "Float16<".len() + end + 1))
}

fn renumber(region: &mut Region, number: &impl Fn(Value) -> Value) {
    for inst in &mut region.insts {
        inst.op.map_operands(number);
        inst.op.regions_mut().into_iter().for_each(|r| renumber(r, number));
    }
}
