//! Quotients of multiples of powers of two.
//!
//! For a multiple x of n, and c below n, (x + c) / n is x / n unless the sum wraps. If n is a power
//! of two, no sum wraps: 2³² is a multiple of n too, so that x is at most 2³² − n. For another n it
//! may: 2³² − 1 is a multiple of 3, and adding one gives 0. Such quotients are unchanged.
//!
//! That x is a multiple of n follows from `#[requires]`, and is shown by a comparison with n times
//! its quotient ([`Bounds`]).

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::analyses::bounds::{Bounds, Promised};
use kernel_dsl::compiler::ir::{Binary, Comparison, Inst, Kernel, Op, Region, Type, Value, Values};
use std::collections::HashMap;

/// Removes additions to a multiple of n before its division by n, and returns whether there was
/// one.
pub fn multiples(kernel: &mut Kernel, bounds: &Bounds, promised: &Promised) -> bool {
    let mut found = Vec::new();
    candidates(&kernel.body, &mut HashMap::new(), kernel, &mut found);
    if found.is_empty() {
        return false;
    }
    let mut asked = kernel.clone();
    let mut probes = HashMap::new();
    let mut body = std::mem::take(&mut asked.body);
    ask(&mut body, &mut asked, &found, &mut probes);
    asked.body = body;
    bounds.apply(&mut asked, promised);
    let mut shown = Vec::new();
    answers(&asked.body, &probes, &mut shown);
    replace(&mut kernel.body, &found, &shown);
    !shown.is_empty()
}

/// A quotient of x + c by n, a power of two.
struct Quotient {
    result: Value,
    x: Value,
    /// The operator, and the value of n.
    by: (Binary, Value),
    n: u64,
}

impl Quotient {
    fn op(&self) -> Op {
        Op::Binary(self.by.0, self.x, self.by.1)
    }
}

fn candidates(region: &Region, made: &mut HashMap<Value, Op>, kernel: &Kernel, found: &mut Vec<Quotient>) {
    for inst in &region.insts {
        if let ([result], Op::Binary(operator @ (Binary::Div | Binary::Shr), sum, by)) = (&inst.results[..], &inst.op)
            && kernel.ty(*result) == Type::Scalar(Scalar::Usize)
            && let Some(Op::Constant(bits)) = made.get(by)
            && let Some(Op::Binary(Binary::Add | Binary::WrappingAdd, x, c)) = made.get(sum)
            && let Some(Op::Constant(c)) = made.get(c)
        {
            let n = if *operator == Binary::Div { *bits } else { 1 << bits.min(&31) };
            if n.is_power_of_two() && *c < n {
                found.push(Quotient { result: *result, x: *x, by: (*operator, *by), n });
            }
        }
        if let ([result], true) = (&inst.results[..], inst.op.is_pure()) {
            made.insert(*result, inst.op.clone());
        }
        inst.op.regions().into_iter().for_each(|inner| candidates(inner, made, kernel, found));
    }
}

/// Inserts a comparison of each x with n · (x / n) after the quotient.
fn ask(region: &mut Region, kernel: &mut Kernel, found: &[Quotient], probes: &mut HashMap<Value, Value>) {
    for mut inst in std::mem::take(&mut region.insts) {
        inst.op.regions_mut().into_iter().for_each(|inner| ask(inner, kernel, found, probes));
        let (results, location) = (inst.results.clone(), inst.location);
        region.insts.push(inst);
        let Some(quotient) = found.iter().find(|quotient| results.contains(&quotient.result)) else { continue };
        let mut add = |op: Op, ty: Scalar| {
            let value = kernel.value(Type::Scalar(ty));
            region.insts.push(Inst { op, results: Values::from_slice(&[value]), location });
            value
        };
        let whole = add(quotient.op(), Scalar::Usize);
        let n = add(Op::Constant(quotient.n), Scalar::Usize);
        let product = add(Op::Binary(Binary::Mul, whole, n), Scalar::Usize);
        let probe = add(Op::Compare(Comparison::Eq, quotient.x, product), Scalar::Bool);
        probes.insert(probe, quotient.result);
    }
}

fn answers(region: &Region, probes: &HashMap<Value, Value>, shown: &mut Vec<Value>) {
    for inst in &region.insts {
        if let ([result], Op::Constant(1)) = (&inst.results[..], &inst.op) {
            shown.extend(probes.get(result));
        }
        inst.op.regions().into_iter().for_each(|inner| answers(inner, probes, shown));
    }
}

fn replace(region: &mut Region, found: &[Quotient], shown: &[Value]) {
    for inst in &mut region.insts {
        if let Some(quotient) = found.iter().find(|quotient| inst.results.contains(&quotient.result))
            && shown.contains(&quotient.result)
        {
            inst.op = quotient.op();
        }
        inst.op.regions_mut().into_iter().for_each(|inner| replace(inner, found, shown));
    }
}
