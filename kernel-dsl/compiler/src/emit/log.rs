//! `log!`: calls of the driver's `vprintf`.
//!
//! A call passes the generic addresses of a format and of a structure with the arguments, each
//! aligned to its size. The structure lies in local memory, and all logs of a kernel share it.

use super::{Emitter, register_type};
use crate::error::Errors;
use crate::ir::{Kernel, Op, Region, Value};
use crate::ptx::{
    Address, Base, Callee, FunctionCall, Initializer, Linkage, Modifier, Opcode, Operand, RegisterId, Space, Symbol,
    Type, Variable,
};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// The declarations for calls of `vprintf`.
pub(super) struct LogSymbols {
    function: u32,
    /// The arguments of a call, in local memory.
    structure: Symbol,
    /// The parameters of a call: the format, the address of the structure, and the result.
    parameters: [Symbol; 3],
    /// The texts that are already declared.
    texts: HashMap<Box<str>, Symbol>,
}

/// Returns the bytes of an argument.
fn bytes(ty: Scalar) -> u32 {
    // A `bool` is passed as the address of its text.
    if ty == Scalar::Bool { 8 } else { ty.bytes() }
}

/// Returns the offset of each argument in the structure, and the size of the structure.
fn offsets(kernel: &Kernel, values: &[Value]) -> (Vec<u32>, u32) {
    let mut end = 0u32;
    let place = |value: &Value| {
        let bytes = kernel.ty(*value).scalar().map_or(8, bytes);
        let at = end.next_multiple_of(bytes);
        end = at + bytes;
        at
    };
    (values.iter().map(place).collect(), end)
}

/// Returns the size of the largest structure.
fn largest(kernel: &Kernel, region: &Region) -> u32 {
    let of = |op: &Op| match op {
        Op::Log { values, .. } => offsets(kernel, values).1,
        op => op.regions().into_iter().map(|inner| largest(kernel, inner)).max().unwrap_or(0),
    };
    region.insts.iter().map(|inst| of(&inst.op)).max().unwrap_or(0)
}

impl Emitter<'_> {
    pub(super) fn log(&mut self, format: &str, values: &[Value]) {
        if let Err(e) = self.try_log(format, values) {
            self.errors.extend(e.0);
        }
    }

    fn try_log(&mut self, format: &str, values: &[Value]) -> Result<(), Errors> {
        let (function, structure, parameters) = match &self.log {
            Some(log) => (log.function, log.structure, log.parameters),
            None => self.declare_log()?,
        };
        let at = |symbol, offset| Operand::Address(Address { base: Base::Symbol(symbol), offset });
        for (value, offset) in values.iter().zip(offsets(self.kernel, values).0) {
            let ty = self.ty(*value);
            let (ty, operand) = match ty.scalar() {
                Some(Scalar::Bool) => (Type::U64, self.truth_text(*value)?),
                _ => (register_type(ty), self.operand(*value)),
            };
            self.op(Opcode::St, [Modifier::Local, ty.modifier()], [at(structure, offset as i32), operand]);
        }
        let [text, arguments, printed] = parameters;
        let format = self.text(format)?;
        let format = self.generic(format, Modifier::Global);
        let structure = self.generic(structure, Modifier::Local);
        for (parameter, address) in [(text, format), (arguments, structure)] {
            self.op(Opcode::St, [Modifier::Param, Modifier::B64], [at(parameter, 0), address.into()]);
        }
        let symbol = |symbol| Operand::Symbol(symbol, 0);
        let call = FunctionCall {
            guard: None,
            uniform: false,
            returns: vec![symbol(printed)],
            callee: Callee::Function(function),
            arguments: vec![symbol(text), symbol(arguments)],
        };
        self.line();
        self.builder.call(call).map_err(|illegal| crate::error::Error::without_span(illegal.to_string()).into())
    }

    /// Declares `vprintf` and its operands.
    fn declare_log(&mut self) -> Result<(u32, Symbol, [Symbol; 3]), Errors> {
        let size = largest(self.kernel, &self.kernel.body);
        let builder = &mut self.builder;
        let parameters = [("format", Type::B64), ("arguments", Type::B64)];
        let function = builder.declare("vprintf", &[("printed", Type::B32)], &parameters)?;
        let structure = builder.variable("$log_values", Space::Local, 8, size)?;
        let mut parameter = |name, ty| builder.call_parameter(name, ty);
        let format = parameter("$log_format", Type::B64)?;
        let parameters = [format, parameter("$log_arguments", Type::B64)?, parameter("$log_printed", Type::B32)?];
        self.log = Some(LogSymbols { function, structure, parameters, texts: HashMap::new() });
        Ok((function, structure, parameters))
    }

    /// Returns the text of a `bool` as a generic address.
    fn truth_text(&mut self, value: Value) -> Result<Operand, Errors> {
        let address = |e: &mut Self, text| {
            let symbol = e.text(text)?;
            Ok::<RegisterId, Errors>(e.generic(symbol, Modifier::Global))
        };
        Ok(match self.operand(value) {
            Operand::Register(holds) => {
                let (yes, no) = (address(self, "true")?, address(self, "false")?);
                let text = self.register(Type::U64);
                self.op(Opcode::Selp, [Modifier::B64], [text.into(), yes.into(), no.into(), holds.into()]);
                text.into()
            }
            Operand::Integer(0) => address(self, "false")?.into(),
            _ => address(self, "true")?.into(),
        })
    }

    /// Returns a text that ends with a NUL, in global memory.
    fn text(&mut self, text: &str) -> Result<Symbol, Errors> {
        let texts = self.log.as_ref().map(|log| &log.texts);
        if let Some(symbol) = texts.and_then(|texts| texts.get(text)) {
            return Ok(*symbol);
        }
        let name = format!("$log_{}", texts.map_or(0, HashMap::len));
        let list: Vec<_> = text.bytes().chain([0]).map(|byte| Initializer::Integer(byte.into())).collect();
        let symbol = self.builder.global(Variable {
            linkage: Linkage::Internal,
            initializer: Some(Initializer::List(list)),
            ..Variable::bytes(Space::Global, 1, &name, text.len() as u32 + 1)
        })?;
        if let Some(log) = &mut self.log {
            log.texts.insert(text.into(), symbol);
        }
        Ok(symbol)
    }

    /// Returns the generic address of a variable.
    fn generic(&mut self, symbol: Symbol, space: Modifier) -> RegisterId {
        let [address, generic] = [(); 2].map(|()| self.register(Type::U64));
        self.copy(address, Operand::Symbol(symbol, 0));
        self.op(Opcode::Cvta, [space, Modifier::U64], [generic.into(), address.into()]);
        generic
    }
}
