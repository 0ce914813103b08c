//! The operation that produced a NaN or an infinity, in Rust syntax.

use crate::code::{Inst, Pc};
use crate::machine::describe::symbol;
use crate::observe::provenance::NonFiniteEvent;
use crate::program::chain;
use crate::program::{MATH, Program};
use crate::report::Produced;
use kernel_dsl_compiler::Approximation;
use kernel_dsl_compiler::ir::{Binary, Unary};
use runtime_simt::number::value;

/// Describes the operation of an event.
pub fn describe(program: &Program, event: &NonFiniteEvent) -> Produced {
    let inputs: Vec<String> = event.operands.iter().map(|(ty, bits)| value(*ty, *bits)).collect();
    let result = value(event.result.0, event.result.1);
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

/// Returns the outermost function of `math::` around the instruction, which the kernel itself
/// calls.
fn function(program: &Program, site: Pc) -> String {
    let first = program.code.locations.get(site as usize).copied();
    let sources = chain(&program.locations, first).map_while(|at| program.sources.get(at.source as usize));
    let outermost = sources.take_while(|source| source.file.starts_with(MATH)).last();
    outermost.map(|source| source.name.clone()).unwrap_or_default()
}

/// Formats a number as the receiver of a method call.
fn receiver(number: &str) -> String {
    if number.starts_with('-') { format!("({number})") } else { number.to_string() }
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
