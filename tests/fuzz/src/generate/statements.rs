//! Generation of statements and control flow.

use super::{EnclosingLoop, Generator, StatementContext, Variable};
use crate::program::{Expr, Statement};
use kernel_dsl_compiler::Scalar::{self, *};

/// Maximum nesting depth of constructs.
const DEPTH: u32 = 4;
/// Maximum nesting depth of loops.
const LOOPS: u32 = 2;

fn plain(construct: &'static str, text: impl Into<String>, values: Vec<Expr>) -> Statement {
    Statement { construct, text: text.into(), values, blocks: Vec::new() }
}

impl Generator {
    /// Generates at most `count` statements.
    pub(super) fn statements(&mut self, count: u32, place: StatementContext) -> Vec<Statement> {
        let mut all = Vec::new();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            all.push(self.statement(place));
        }
        all
    }

    /// Generates statements in braces, which scope their declarations.
    fn block(&mut self, place: StatementContext) -> Vec<Statement> {
        let outside = self.scope.len();
        let count = 1 + self.below(4);
        let statements = self.statements(count, StatementContext { depth: place.depth + 1, ..place });
        self.scope.truncate(outside);
        statements
    }

    fn statement(&mut self, place: StatementContext) -> Statement {
        let deep = place.depth >= DEPTH;
        let kernel = self.within.is_none();
        match self.below(40) {
            0..8 => self.let_variable(place),
            8..15 => self.assign(),
            15..18 if !deep => self.condition(place),
            18..22 if !deep && place.loops < LOOPS => self.for_loop(place),
            22 if !deep && place.loops < LOOPS => self.while_loop(place),
            23 if !deep && place.loops < LOOPS => self.endless(place),
            24..28 if place.uniform && kernel => self.together(),
            28..31 if place.uniform && kernel => self.shared(),
            31..33 if kernel => self.store(),
            33 | 34 if kernel => self.atomic(),
            35 => self.array(),
            36 | 37 => self.leave(place).unwrap_or_else(|| self.assign()),
            38 if kernel => self.order(place),
            39 => self.swap(),
            _ => self.let_variable(place),
        }
    }

    pub(super) fn let_variable(&mut self, place: StatementContext) -> Statement {
        let ty = if self.one_in(6) { Usize } else { self.ty() };
        let mutable = self.one_in(2);
        // Some variables are uniform. An assignment could make a mutable one differ, and so could
        // divergence.
        let uniform = place.uniform && !mutable && self.one_in(4);
        let depth = 1 + self.below(3);
        let value = self.value(ty, depth, uniform);
        let name = self.name("b");
        let text = format!("let {}{name}: {ty} = $0;", if mutable { "mut " } else { "" });
        self.scope.push(Variable { name, ty, mutable, uniform });
        plain("let", text, vec![value])
    }

    /// Returns the variables that can be assigned.
    fn mutable(&self) -> Vec<(String, Scalar)> {
        self.scope.iter().filter(|v| v.mutable).map(|v| (v.name.clone(), v.ty)).collect()
    }

    fn assign(&mut self) -> Statement {
        let all = self.mutable();
        if all.is_empty() {
            return self.let_variable(StatementContext { uniform: false, returns: false, depth: 0, loops: 0 });
        }
        let (name, ty) = self.one_of(&all);
        let operators: &[&str] = match ty {
            Bool => &["=", "&=", "|=", "^="],
            F32 | F64 => &["=", "+=", "-=", "*="],
            _ if ty.is_integer() && ty != Usize => &["=", "^=", "|=", "&="],
            _ => &["="],
        };
        let operator = self.one_of(operators);
        let depth = 1 + self.below(3);
        let value = self.value(ty, depth, false);
        plain(
            if operator == "=" { "an assignment" } else { "an operator that assigns" },
            format!("{name} {operator} $0;"),
            vec![value],
        )
    }

    fn swap(&mut self) -> Statement {
        let all = self.mutable();
        let pairs: Vec<_> = all
            .iter()
            .flat_map(|(a, x)| {
                all.iter().filter(move |(b, y)| a < b && x == y).map(move |(b, _)| (a.clone(), b.clone()))
            })
            .collect();
        match pairs.is_empty() {
            true => self.assign(),
            false => {
                let (a, b) = self.one_of(&pairs);
                plain("a destructuring assignment", format!("({a}, {b}) = ({b}, {a});"), vec![])
            }
        }
    }

    /// Generates a register array that is changed in an unrolled loop and then summed.
    fn array(&mut self) -> Statement {
        let ty = self.one_of(&[U32, I32, I64, U64, U16, I8]);
        let (name, a) = (self.name("b"), self.name("r"));
        let change = self.one_of(&[
            "{a}[k] ^ {a}[(k + 1) % 4]",
            "{a}[3 - k].wrapping_mul($2)",
            "{a}[k].wrapping_add($2).rotate_left(k as u32)",
        ]);
        let change = change.replace("{a}", &a);
        let text = format!(
            "let {name}: {ty} = {{ let mut {a} = [$0, $1, 5, $0]; for k in unroll(0..4) {{ {a}[k] = {change}; }} {a}[0] ^ {a}[1].wrapping_mul(3) ^ {a}[2] ^ {a}[3] }};"
        );
        let values = vec![self.value(ty, 2, false), self.value(ty, 2, false), self.value(ty, 1, false)];
        self.scope.push(Variable { name, ty, mutable: false, uniform: false });
        plain("an array in registers", text, values)
    }

    fn condition(&mut self, place: StatementContext) -> Statement {
        // Threads that must stay converged all take the same path.
        let uniform = place.uniform && self.one_in(2);
        let condition = self.value(Bool, 2, uniform);
        let inside = StatementContext { uniform, ..place };
        // Some threads may return inside: no collective operation may wait for them.
        let inside = StatementContext { returns: place.returns && !place.uniform, ..inside };
        let then = self.block(inside);
        if self.one_in(2) {
            let otherwise = self.block(inside);
            let text = "if $0 {@0} else {@1}".to_string();
            return Statement { construct: "if, else", text, values: vec![condition], blocks: vec![then, otherwise] };
        }
        Statement { construct: "if", text: "if $0 {@0}".to_string(), values: vec![condition], blocks: vec![then] }
    }

    /// Begins a loop; returns its label and the context of its statements.
    fn begin(&mut self, place: StatementContext, together: bool) -> (u32, StatementContext) {
        self.names += 1;
        let label = self.names;
        self.around.push(EnclosingLoop { label, apart: !together });
        let returns = place.returns && !place.uniform;
        (label, StatementContext { uniform: together, returns, loops: place.loops + 1, ..place })
    }

    fn for_loop(&mut self, place: StatementContext) -> Statement {
        let together = place.uniform && self.one_in(2);
        let k = self.name("k");
        let n = 1 + self.below(5);
        let step = 1 + self.below(3);
        let (construct, range, takes, ty): (_, String, &[Scalar], Scalar) = match self.below(10) {
            0 => ("for, of constants", format!("0..{n}usize"), &[], Usize),
            1 => ("for, to a value", "0..($0 & 7)".into(), &[Usize], Usize),
            2 => ("for, from a value", "($0 & 7)..($1 & 15)".into(), &[Usize, Usize], Usize),
            3 => ("for, of u32", "0..($0 & 7)".into(), &[U32], U32),
            4 => ("for, of i32", "($0 & 7) - 4..($1 & 7)".into(), &[I32, I32], I32),
            5 => ("step_by", format!("(0..($0 & 15)).step_by({step})"), &[Usize], Usize),
            6 => ("rev", "(0..($0 & 7)).rev()".into(), &[Usize], Usize),
            7 => ("unroll", format!("unroll(0..{n}usize)"), &[], Usize),
            8 => ("unroll_by", "unroll_by::<2>(0..($0 & 7))".into(), &[Usize], Usize),
            _ => ("rolled", format!("rolled(0..{n}usize)"), &[], Usize),
        };
        let values = takes.iter().map(|ty| self.value(*ty, 2, together)).collect();
        let (label, inside) = self.begin(place, together);
        self.scope.push(Variable { name: k.clone(), ty, mutable: false, uniform: together });
        let body = self.block(inside);
        self.scope.pop();
        self.around.pop();
        Statement { construct, text: format!("'l{label}: for {k} in {range} {{@0}}"), values, blocks: vec![body] }
    }

    fn while_loop(&mut self, place: StatementContext) -> Statement {
        let together = place.uniform && self.one_in(3);
        let value = self.value(U32, 2, together);
        let n = self.name("n");
        let (label, inside) = self.begin(place, together);
        self.scope.push(Variable { name: n.clone(), ty: U32, mutable: false, uniform: together });
        let body = self.block(inside);
        self.scope.pop();
        self.around.pop();
        let text = format!("{{ let mut {n} = $0 & 7; 'l{label}: while {n} > 0 {{ {n} -= 1;@0}} }}");
        Statement { construct: "while", text, values: vec![value], blocks: vec![body] }
    }

    /// Generates a loop that yields a value.
    fn endless(&mut self, place: StatementContext) -> Statement {
        let (n, name, ty) = (self.name("n"), self.name("b"), self.ty());
        let (label, inside) = self.begin(place, false);
        self.scope.push(Variable { name: n.clone(), ty: U32, mutable: false, uniform: false });
        let values = vec![self.value(Bool, 2, false), self.value(ty, 2, false), self.value(ty, 1, false)];
        // Breaks of this loop carry a value, so other statements must not break from it.
        self.around.pop();
        let body = self.block(StatementContext { loops: inside.loops, ..inside });
        self.scope.pop();
        let text = format!(
            "let {name}: {ty} = {{ let mut {n}: u32 = 0; 'l{label}: loop {{ {n} += 1; if $0 {{ break $1; }} if {n} > 5 {{ break $2; }}@0}} }};"
        );
        self.scope.push(Variable { name, ty, mutable: false, uniform: false });
        Statement { construct: "loop, break with a value", text, values, blocks: vec![body] }
    }

    /// Generates a break, a continue or a return, taken by some threads or, where threads must stay
    /// converged, by all.
    fn leave(&mut self, place: StatementContext) -> Option<Statement> {
        if place.returns && self.one_in(2) {
            let condition = self.value(Bool, 2, false);
            return Some(match self.within {
                None => plain("return", "if $0 { return; }", vec![condition]),
                Some(ty) => {
                    let value = self.value(ty, 2, false);
                    plain("return of a value", "if $0 { return $1; }", vec![condition, value])
                }
            });
        }
        let around = self.around.clone();
        let uniform = place.uniform;
        // Threads leave a converged loop only together.
        let all: Vec<EnclosingLoop> = around.iter().rev().take_while(|a| a.apart).copied().collect();
        let all = if uniform { around } else { all };
        let around = *self.random.choose(&all)?;
        let condition = self.value(Bool, 2, uniform);
        let (construct, word) = self.one_of(&[("break", "break"), ("continue", "continue")]);
        Some(plain(construct, format!("if $0 {{ {word} 'l{}; }}", around.label), vec![condition]))
    }
}
