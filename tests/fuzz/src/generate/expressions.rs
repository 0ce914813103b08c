//! Generation of expressions.

use super::Generator;
use crate::forms::{FORMS, OperandType, OperationForm};
use crate::program::Expr;
use kernel_dsl_compiler::Scalar::{self, *};

/// Returns the text of the operation for these types, without its operands.
pub(super) fn written(form: &OperationForm, over: Scalar, result: Scalar) -> String {
    let text = form.text.replace("$T", over.name()).replace("$R", result.name());
    let text = text.replace("$W", &(over.bits() - 1).to_string());
    // A block at the start of an expression needs parentheses if an operator follows.
    if text.starts_with(['{', '\'']) { format!("({text})") } else { text }
}

impl Generator {
    /// Generates a value of the type, at most `depth` operations deep. A `uniform` value is the
    /// same for the whole block.
    pub(super) fn value(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        if depth == 0 || self.one_in(4) {
            return self.leaf(ty, uniform);
        }
        if self.one_in(12)
            && let Some(call) = self.call(ty, depth, uniform)
        {
            return call;
        }
        let fits = |form: &&OperationForm| match form.result {
            OperandType::T => form.over.contains(&ty),
            OperandType::R => form.results.contains(&ty),
            OperandType::Of(of) => of == ty,
        };
        let all: Vec<&OperationForm> = FORMS.iter().filter(fits).collect();
        let form = self.one_of(&all);
        self.made_of(form, ty, depth - 1, uniform)
    }

    /// Generates an operation of the row with result type `ty`.
    pub(super) fn made_of(&mut self, form: &OperationForm, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        let over = if form.result == OperandType::T { ty } else { self.one_of(form.over) };
        let argument = |slot: &OperandType| match slot {
            OperandType::T => over,
            OperandType::R => ty,
            OperandType::Of(of) => *of,
        };
        let arguments = form.takes.iter().map(|slot| self.value(argument(slot), depth, uniform)).collect();
        Expr { construct: form.name, ty, text: written(form, over, ty), arguments }
    }

    /// Generates a call of a device function.
    fn call(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Option<Expr> {
        let all: Vec<_> = self.functions.iter().filter(|function| function.value.ty == ty).cloned().collect();
        let function = self.random.choose(&all)?.clone();
        let holes: Vec<_> = (0..function.parameters.len()).map(|n| format!("${n}")).collect();
        let arguments = function.parameters.iter().map(|(_, ty)| self.value(*ty, depth - 1, uniform)).collect();
        let text = format!("{}({})", function.name, holes.join(", "));
        Some(Expr { construct: "a call of a device function", ty, text, arguments })
    }

    /// Generates a value without operations.
    fn leaf(&mut self, ty: Scalar, uniform: bool) -> Expr {
        let of_type = |v: &&super::Variable| v.ty == ty && (v.uniform || !uniform);
        let variables: Vec<_> = self.scope.iter().filter(of_type).map(|v| v.name.clone()).collect();
        if !variables.is_empty() && !self.one_in(3) {
            return Expr::leaf("a variable", ty, self.one_of(&variables));
        }
        if !self.one_in(3)
            && let Some(load) = self.load(ty, uniform)
        {
            return load;
        }
        if ty == Bool && !self.one_in(8) {
            // The operand is a separate leaf: the compiler knows no condition on it, and few leaves
            // are uniform.
            let place = self.leaf(Usize, uniform);
            let text = format!("($0 {} {})", self.one_of(&["<", ">", "==", "!="]), self.below(40));
            return Expr { construct: "a condition", ty, text, arguments: vec![place] };
        }
        if ty == Usize && self.within.is_none() && !self.one_in(4) {
            let uniform_ones = ["block::x()", "grid::dim_x()", "block::y()"];
            let others = ["(t & 63)", "(i & 63)", "warp::lane()", "warp::index()", "(thread::x() & 63)", "thread::y()"];
            let text = if uniform || self.one_in(4) { self.one_of(&uniform_ones) } else { self.one_of(&others) };
            return Expr::leaf("a thread's place", ty, text);
        }
        Expr::leaf("a literal", ty, self.literal(ty))
    }

    /// Generates a number at the edge of its type, or an ordinary one.
    pub(super) fn literal(&mut self, ty: Scalar) -> String {
        let n = ty.name();
        match ty {
            Bool => self.one_of(&["true", "false"]).to_string(),
            Usize => format!("{}usize", self.below(64)),
            F32 | F64 => {
                let some = [
                    "0.0",
                    "1.0",
                    "0.5",
                    "1.5",
                    "2.0",
                    "0.1",
                    "3.75",
                    "100.25",
                    "1e-3",
                    "16777216.0",
                    "65504.0",
                    "2147483648.0",
                ];
                let edges = ["MAX", "MIN", "MIN_POSITIVE", "INFINITY", "NEG_INFINITY", "NAN", "EPSILON"];
                match self.below(4) {
                    0 => format!("{n}::{}", self.one_of(&edges)),
                    1 => format!("(-{}{n})", self.one_of(&some)),
                    _ => format!("{}{n}", self.one_of(&some)),
                }
            }
            F16 | Bf16 => match self.below(3) {
                0 => {
                    format!("{n}::{}", self.one_of(&["MAX", "INFINITY", "NAN", "ONE", "NEG_INFINITY", "MIN_POSITIVE"]))
                }
                1 => format!("{n}::from_bits({})", self.below(0x10000)),
                _ => {
                    format!("{n}::from_f32({})", self.one_of(&["0.0", "-0.0", "1.5", "-2.25", "0.1", "300.0", "6e-8"]))
                }
            },
            _ => match self.below(4) {
                0 => format!("{n}::{}", self.one_of(&["MAX", "MIN"])),
                1 => format!("{}{n}", 1u128 << self.below(ty.bits() - 1)),
                2 if ty.is_signed() => format!("(-{}{n})", 1 + self.below(100)),
                _ => format!("{}{n}", self.below(100)),
            },
        }
    }
}
