//! The operation that made a NaN or an infinity, as Rust writes it.

use super::Program;
use super::code::{Inst, Pc};
use super::provenance::Event;
use super::report::Produced;
use kernel_dsl::compiler::float16::Format;
use kernel_dsl::compiler::ir::{Binary, Unary};
use kernel_dsl::compiler::{Approximation, Scalar, half};

/// The file in which the functions of `math::` are.
const MATH: &str = "kernel-dsl/src/math/";

impl Program {
    /// Whether an instruction is of a function of `math::`.
    pub(super) fn is_math(&self, site: Pc) -> bool {
        let location = self.code.locations.get(site as usize).and_then(|l| self.locations.get(l.0 as usize));
        let source = location.and_then(|l| self.sources.get(l.source as usize));
        source.is_some_and(|s| s.file.starts_with(MATH))
    }
}

/// What an event was.
pub fn describe(program: &Program, event: &Event) -> Produced {
    let inputs: Vec<String> = event.operands.iter().map(|(ty, bits)| show(*ty, *bits)).collect();
    let result = show(event.result.0, event.result.1);
    let operation = match (program.code.insts.get(event.site as usize), &inputs[..]) {
        (Some(Inst::Binary { op, .. }), [a, b]) => match symbol(*op) {
            Some(symbol) => format!("{a} {symbol} {b}"),
            None => format!("{}.{}({b})", receiver(a), if *op == Binary::Max { "max" } else { "min" }),
        },
        (Some(Inst::MulAdd { .. }), [a, b, c]) => format!("{}.mul_add({b}, {c})", receiver(a)),
        (Some(Inst::Unary { op: Unary::Sqrt, .. }), [a]) => format!("{}.sqrt()", receiver(a)),
        (Some(Inst::Approximate { what, .. }), [a]) => format!("fast::{}({a})", fast(*what)),
        (Some(Inst::Cast { .. }), [a]) => format!("{a} as {}", event.result.0),
        (Some(Inst::Bitcast { .. }), [a]) => format!("{a} as {}", event.result.0),
        (Some(Inst::Atomic(_)), [a, b]) => format!("{a} + {b}"),
        (Some(Inst::Inline(_)), inputs) => format!("ptx!({})", inputs.join(", ")),
        (_, inputs) => format!("an operation on {}", inputs.join(", ")),
    };
    let math = if program.is_math(event.site) { function(program, event.site) } else { String::new() };
    let operation = match (event.operands.is_empty(), math.is_empty()) {
        (true, _) => format!("the result of `math::{math}`"),
        (false, true) => format!("`{operation}`"),
        (false, false) => format!("`{operation}` in `math::{math}`"),
    };
    Produced { operation, inputs, result }
}

/// The function of `math::` that the kernel calls: the outermost.
fn function(program: &Program, site: Pc) -> String {
    let mut location = program.code.locations.get(site as usize).and_then(|l| program.locations.get(l.0 as usize));
    let mut name = String::new();
    // A chain of calls is as long as there are locations at most.
    for _ in 0..=program.locations.len() {
        let Some(at) = location else { break };
        match program.sources.get(at.source as usize) {
            Some(source) if source.file.starts_with(MATH) => name.clone_from(&source.name),
            _ => break,
        }
        location = at.caller.and_then(|l| program.locations.get(l.0 as usize));
    }
    name
}

/// A number before a dot.
fn receiver(number: &str) -> String {
    if number.starts_with('-') { format!("({number})") } else { number.to_string() }
}

fn symbol(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        _ => return None,
    })
}

fn fast(what: Approximation) -> &'static str {
    match what {
        Approximation::Reciprocal => "rcp",
        Approximation::SquareRoot => "sqrt",
        Approximation::ReciprocalSquareRoot => "rsqrt",
        Approximation::Sine => "sin",
        Approximation::Cosine => "cos",
        Approximation::Exponential => "exp2",
        Approximation::Logarithm => "log2",
        Approximation::Tangent => "tanh",
    }
}

/// A number as Rust shows it.
fn show(ty: Scalar, bits: u64) -> String {
    let custom = |format: Format| format!("{:?}", format.decode(bits as u16));
    match ty {
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        Scalar::F16 => format!("{:?}", half::f16_to_f32(bits as u16)),
        Scalar::Bf16 => format!("{:?}", half::bf16_to_f32(bits as u16)),
        Scalar::Custom(format) => custom(format),
        _ => bits.to_string(),
    }
}
