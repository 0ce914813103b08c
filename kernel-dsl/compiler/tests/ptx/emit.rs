//! Tests of whole emitted PTX modules, which ptxas assembles if it is installed.

use super::ptx_support;
use kernel_dsl_compiler::emit::emit;
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::ptx::parse;
use kernel_dsl_compiler::source::{KernelSource, Span};
use kernel_dsl_compiler::{Scalar, Target, passes};

const F32: Type = Type::Scalar(Scalar::F32);
const USIZE: Type = Type::Scalar(Scalar::Usize);

/// Returns an empty kernel with the source lines `text`.
fn kernel(name: &str, text: &str) -> Kernel {
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    let locations = (0..lines.len() as u16).map(|line| SourceLocation {
        source: 0,
        span: Span { line, ..Span::default() },
        caller: None,
    });
    Kernel {
        name: name.into(),
        rust_name: name.into(),
        instance: name.into(),
        target: Target::SM_61,
        block: BlockExtents::fixed([256, 1, 1]),
        min_blocks: None,
        max_registers: None,
        parameters: vec![],
        values: vec![],
        locals: vec![],
        shared: vec![],
        dynamic: Vec::new(),
        tables: Vec::new(),
        locations: locations.collect(),
        declared: Default::default(),
        unrolled: kernel_dsl_compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
        sources: vec![KernelSource { name: name.into(), file: "kernels/src/lib.rs".into(), line: 7, text: lines }],
        body: Region::default(),
    }
}

/// Adds a slice parameter: address and length.
fn slice(kernel: &mut Kernel, name: &str, element: Scalar, mutable: bool) {
    let argument = kernel.parameters.last().map_or(0, |p| p.argument + 1);
    kernel.parameters.push(Parameter {
        name: name.into(),
        argument,
        role: Role::Address { element: element.into(), mutable },
    });
    kernel.parameters.push(Parameter { name: format!("{name}_len"), argument, role: Role::Extent(0) });
}

/// Adds a scalar parameter.
fn scalar(kernel: &mut Kernel, name: &str, ty: Scalar) {
    let argument = kernel.parameters.last().map_or(0, |p| p.argument + 1);
    kernel.parameters.push(Parameter { name: name.into(), argument, role: Role::Value(ty) });
}

/// Reads every parameter.
fn parameters(b: &mut Builder) -> Vec<Value> {
    (0..b.kernel.parameters.len())
        .map(|i| {
            let ty = b.kernel.parameters[i].ty();
            b.value(Op::Parameter(i as u32), ty)
        })
        .collect()
}

fn values<const N: usize>(v: [Value; N]) -> Values {
    v.into_iter().collect()
}

fn address(base: Value) -> AccessPlace {
    AccessPlace::Address { base, offset: 0 }
}

fn load(b: &mut Builder, base: Value, element: Scalar, policy: CachePolicy) -> Value {
    b.scalar(Op::Load { place: address(base), element, policy, guard: None }, element)
}

fn store(b: &mut Builder, base: Value, element: Scalar, value: Value) {
    b.effect(Op::Store { place: address(base), element, values: values([value]), guard: None });
}

fn element(b: &mut Builder, base: Value, index: Value, element: Scalar) -> Value {
    b.value(
        Op::Offset { base, terms: [(index, None)].into_iter().collect(), bytes: element.bytes() },
        b.kernel.ty(base),
    )
}

/// Returns the kernel's PTX, after the parser has read it back and ptxas has accepted it.
fn ptx(b: Builder) -> String {
    let module = emit(&passes::legal(b.finish()).unwrap()).unwrap_or_else(|e| panic!("{e}"));
    let text = module.to_string();
    assert!(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")) == module, "{text}");
    if ptx_support::installed() {
        ptx_support::assemble(&text, 61).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
    text
}

const SAXPY: &str = "\
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() { y[i] = a.mul_add(x[i], y[i]); }
}";

#[test]
fn saxpy_is_emitted() {
    let mut k = kernel("saxpy", SAXPY);
    scalar(&mut k, "a", Scalar::F32);
    slice(&mut k, "x", Scalar::F32, false);
    slice(&mut k, "y", Scalar::F32, true);
    let mut b = Builder::new(k);
    let [a, x, _, y, y_len] = parameters(&mut b)[..] else { unreachable!() };
    b.location = Location(1);
    let block = b.value(Op::Special(Special::Block(0)), USIZE);
    let n = b.index(256);
    let first = b.value(Op::Binary(Binary::Mul, block, n), USIZE);
    let thread = b.value(Op::Special(Special::Thread(0)), USIZE);
    let i = b.value(Op::Binary(Binary::Add, first, thread), USIZE);
    b.location = Location(2);
    let inside = b.compare(Comparison::Lt, i, y_len);
    b.enter([]);
    let x = element(&mut b, x, i, Scalar::F32);
    let y = element(&mut b, y, i, Scalar::F32);
    let xi = load(&mut b, x, Scalar::F32, CachePolicy::ReadOnly);
    let yi = load(&mut b, y, Scalar::F32, CachePolicy::Coherent);
    let sum = b.value(Op::MulAdd(a, xi, yi), F32);
    store(&mut b, y, Scalar::F32, sum);
    let then = b.leave();
    b.enter([]);
    let otherwise = b.leave();
    b.effect(Op::If { condition: inside, then, otherwise });
    insta::assert_snapshot!(ptx(b));
}

const MATMUL: &str = "\
pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]); // bank conflicts: 16 × 2
    let mut acc = 0.0;
    for k in (0..n).step_by(T) {
        ta.copy_from(a.offset((k, 0)));
        block::sync();
        for i in rolled(0..T) {
            acc = ta[(thread::y(), i)].mul_add(ta[(i, thread::x())], acc);
        }
        block::sync();
    }
    c[thread::x()] = acc;
}";

/// Tests nested loops that carry an accumulator through both, with padded shared memory.
#[test]
fn matmul_is_emitted() {
    let mut k = kernel("matmul_16", MATMUL);
    k.rust_name = "matmul::<16>".into();
    k.block = BlockExtents::fixed([16, 16, 1]);
    k.min_blocks = Some(2);
    slice(&mut k, "a", Scalar::F32, false);
    slice(&mut k, "c", Scalar::F32, true);
    k.shared.push(SharedArray {
        name: "ta".into(),
        element: Scalar::F32.into(),
        shape: [16, 16].into_iter().collect(),
        strides: [17, 1].into_iter().collect(),
        layout: SharedLayout::Padded { pad: 1 },
        over: None,
        offset: 0,
    });
    let mut b = Builder::new(k);
    let [a, n, c, _] = parameters(&mut b)[..] else { unreachable!() };
    b.location = Location(2);
    let zero = b.constant(Scalar::F32, 0);
    b.location = Location(3);
    let start = b.index(0);
    let step = b.index(16);
    let outer = b.enter([USIZE, F32]);
    b.location = Location(4);
    let x = b.value(Op::Special(Special::Thread(0)), USIZE);
    let y = b.value(Op::Special(Special::Thread(1)), USIZE);
    let from = b.value(
        Op::Offset { base: a, terms: [(outer[0], Some(n)), (x, None)].into_iter().collect(), bytes: 4 },
        Type::Global,
    );
    let value = load(&mut b, from, Scalar::F32, CachePolicy::ReadOnly);
    let pitch = b.index(17 * 4);
    let row = b.value(Op::Binary(Binary::Mul, y, pitch), USIZE);
    let row = b.value(Op::Cast(row), Type::Shared);
    let cell = element(&mut b, row, x, Scalar::F32);
    store(&mut b, cell, Scalar::F32, value);
    b.location = Location(5);
    b.effect(Op::BlockSync);
    b.location = Location(6);
    let one = b.index(1);
    let inner = b.enter([USIZE, F32]);
    b.location = Location(7);
    let left = element(&mut b, row, inner[0], Scalar::F32);
    let left = load(&mut b, left, Scalar::F32, CachePolicy::Coherent);
    let fixed = b.value(Op::Constant(4), Type::Shared);
    let right = b.scalar(
        Op::Load {
            place: AccessPlace::Address { base: fixed, offset: 64 },
            element: Scalar::F32,
            policy: CachePolicy::Coherent,
            guard: None,
        },
        Scalar::F32,
    );
    let sum = b.value(Op::MulAdd(left, right, inner[1]), F32);
    b.effect(Op::Yield(values([sum])));
    let body = b.leave();
    b.location = Location(6);
    let sum = b.value(
        Op::For(Box::new(For {
            label: Label(1),
            start,
            end: step,
            step: one,
            unroll: Unroll::Never,
            inits: values([outer[1]]),
            body,
        })),
        F32,
    );
    b.location = Location(9);
    b.effect(Op::BlockSync);
    b.effect(Op::Yield(values([sum])));
    let body = b.leave();
    b.location = Location(3);
    let acc = b.value(
        Op::For(Box::new(For {
            label: Label(0),
            start,
            end: n,
            step,
            unroll: Unroll::Auto,
            inits: values([zero]),
            body,
        })),
        F32,
    );
    b.location = Location(11);
    let x = b.value(Op::Special(Special::Thread(0)), USIZE);
    let cell = element(&mut b, c, x, Scalar::F32);
    store(&mut b, cell, Scalar::F32, acc);
    insta::assert_snapshot!(ptx(b));
}

/// A kernel with one buffer for each type: `emit` runs on values read from the buffers, and its
/// results are stored.
struct Family {
    b: Builder,
    buffers: Vec<(Scalar, Value)>,
}

impl Family {
    fn new(name: &str) -> Family {
        let mut k = kernel(name, "");
        for s in Scalar::ALL {
            slice(&mut k, &format!("of_{s}"), s, true);
        }
        let mut b = Builder::new(k);
        let read = parameters(&mut b);
        let buffers = Scalar::ALL.into_iter().zip(read.into_iter().step_by(2)).collect();
        Family { b, buffers }
    }

    fn buffer(&self, s: Scalar) -> Value {
        self.buffers.iter().find(|(t, _)| *t == s).unwrap().1
    }

    fn read(&mut self, s: Scalar) -> Value {
        let base = self.buffer(s);
        load(&mut self.b, base, s, CachePolicy::Coherent)
    }

    fn write(&mut self, value: Value) {
        let s = self.b.kernel.ty(value).scalar().unwrap();
        let base = self.buffer(s);
        store(&mut self.b, base, s, value);
    }

    /// Adds an operation with one operand, in a register and constant; the constant's bits are 1.
    fn unary(&mut self, from: Scalar, to: Scalar, op: impl Fn(Value) -> Op) {
        for operand in [self.read(from), self.b.constant(from, 1)] {
            let result = self.b.scalar(op(operand), to);
            self.write(result);
        }
    }

    /// Adds an operation with two operands, in registers and constant.
    fn binary(&mut self, from: [Scalar; 2], to: Scalar, op: impl Fn(Value, Value) -> Op) {
        let [a, b] = from.map(|s| self.read(s));
        let [c, d] = from.map(|s| self.b.constant(s, u64::MAX));
        for (a, b) in [(a, b), (a, d), (c, b), (c, d)] {
            let result = self.b.scalar(op(a, b), to);
            self.write(result);
        }
    }
}

#[test]
fn every_unary_operator_is_emitted() {
    use Unary::*;
    let mut f = Family::new("unary");
    for s in Scalar::ALL {
        let integer = s.is_integer();
        for (op, has, to) in [
            (Neg, integer || s.is_float(), s),
            (Not, integer || s == Scalar::Bool, s),
            (Abs, s.is_float() || s.is_signed(), s),
            (Sqrt, s.is_float(), s),
            (Floor, s.is_float(), s),
            (Ceil, s.is_float(), s),
            (Trunc, s.is_float(), s),
            (RoundEven, s.is_float(), s),
            (CountOnes, integer && s.bits() >= 32, Scalar::U32),
            (LeadingZeros, integer && s.bits() >= 32, Scalar::U32),
            (ReverseBits, integer && s.bits() >= 32, s),
            (SwapBytes, integer && s.bits() >= 32, s),
        ] {
            if has {
                f.unary(s, to, |a| Op::Unary(op, a));
            }
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

#[test]
fn every_binary_operator_is_emitted() {
    use Binary::*;
    let mut f = Family::new("binary");
    for s in Scalar::ALL {
        let (integer, float) = (s.is_integer(), s.is_float());
        let (number, bits) = (integer || float, integer || s == Scalar::Bool);
        for (op, has) in [
            (Add, number),
            (Sub, number),
            (Mul, number),
            (Div, number),
            (Rem, integer),
            (WrappingAdd, integer),
            (WrappingSub, integer),
            (WrappingMul, integer),
            (Min, number),
            (Max, number),
            (And, bits),
            (Or, bits),
            (Xor, bits),
        ] {
            if has {
                f.binary([s, s], s, |a, b| Op::Binary(op, a, b));
            }
        }
        if integer {
            for op in [Shl, Shr, WrappingShl, WrappingShr] {
                f.binary([s, Scalar::U32], s, |a, b| Op::Binary(op, a, b));
            }
            if s.bits() >= 32 {
                f.binary([s, Scalar::U32], s, |a, b| Op::Binary(RotateLeft, a, b));
            }
        }
        if float {
            f.binary([s, s], s, |a, b| Op::MulAdd(a, b, a));
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

#[test]
fn every_comparison_and_selection_is_emitted() {
    use Comparison::*;
    let mut f = Family::new("compare");
    for s in Scalar::ALL {
        for c in [Eq, Ne, Lt, Le, Gt, Ge] {
            if !s.is_half() && (s != Scalar::Bool || matches!(c, Eq | Ne)) {
                f.binary([s, s], Scalar::Bool, |a, b| Op::Compare(c, a, b));
            }
        }
        let condition = f.read(Scalar::Bool);
        let always = f.b.constant(Scalar::Bool, 1);
        for condition in [condition, always] {
            f.binary([s, s], s, |yes, no| Op::Select { condition, yes, no });
        }
    }
    // Truth values with each constant.
    let condition = f.read(Scalar::Bool);
    let other = f.read(Scalar::Bool);
    for bits in [0, 1] {
        let constant = f.b.constant(Scalar::Bool, bits);
        let opposite = f.b.constant(Scalar::Bool, 1 - bits);
        for (yes, no) in [(constant, other), (other, constant), (constant, opposite)] {
            let result = f.b.scalar(Op::Select { condition, yes, no }, Scalar::Bool);
            f.write(result);
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

#[test]
fn every_cast_is_emitted() {
    let mut f = Family::new("cast");
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            let halves = [from, to].iter().any(|s| s.is_half());
            let converts = matches!((from, to), (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16));
            if from == to || converts || to != Scalar::Bool && !halves {
                f.unary(from, to, Op::Cast);
            }
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

#[test]
fn every_bitcast_is_emitted() {
    let mut f = Family::new("bitcast");
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            if from.bits() == to.bits() {
                f.unary(from, to, Op::Bitcast);
            }
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

#[test]
fn every_shuffle_and_vote_is_emitted() {
    let mut f = Family::new("warp");
    let selector = f.read(Scalar::U32);
    for width in [2, 32] {
        for mode in [Shuffle::Index, Shuffle::Xor, Shuffle::Up, Shuffle::Down] {
            let one = f.b.constant(Scalar::U32, 1);
            for s in [Scalar::F32, Scalar::U32, Scalar::F64, Scalar::I64] {
                let value = f.read(s);
                for selector in [one, selector] {
                    let result = f.b.scalar(Op::Shuffle { mode, value, selector, width }, s);
                    f.write(result);
                }
            }
        }
    }
    for (mode, to) in [(Vote::Ballot, Scalar::U32), (Vote::All, Scalar::Bool), (Vote::Any, Scalar::Bool)] {
        f.unary(Scalar::Bool, to, |value| Op::Vote { mode, value });
    }
    f.b.effect(Op::WarpSync);
    f.b.effect(Op::BlockSync);
    insta::assert_snapshot!(ptx(f.b));
}

/// Tests loads and stores of 1 to 8 elements of every type, with and without a guard, in global and
/// shared memory.
#[test]
fn every_access_is_emitted() {
    let mut f = Family::new("access");
    f.b.kernel.shared.push(SharedArray {
        name: "s".into(),
        element: Scalar::U64.into(),
        shape: [64].into_iter().collect(),
        strides: [1].into_iter().collect(),
        layout: SharedLayout::Packed,
        over: None,
        offset: 0,
    });
    let condition = f.read(Scalar::Bool);
    let shared = f.b.value(Op::Constant(64), Type::Shared);
    for s in Scalar::ALL {
        let global = f.buffer(s);
        let zero = f.b.constant(s, 0);
        for n in [1, 2, 3, 4, 8] {
            let guard = Guard { condition, otherwise: vec![zero; n].into() };
            for (from, to, policy, guard) in [
                (global, shared, CachePolicy::ReadOnly, Some(guard.clone())),
                (shared, global, CachePolicy::Coherent, None),
            ] {
                let op =
                    Op::Load { place: AccessPlace::Address { base: from, offset: -16 }, element: s, policy, guard };
                let values = f.b.emit(op, vec![Type::Scalar(s); n]);
                let place = AccessPlace::Address { base: to, offset: 32 };
                let guard = (n % 2 == 0).then_some(condition);
                f.b.effect(Op::Store { place, element: s, values, guard });
            }
        }
    }
    insta::assert_snapshot!(ptx(f.b));
}

/// Tests addresses of every form: with constant and variable strides and indices, in global and
/// shared memory.
#[test]
fn every_address_is_emitted() {
    let mut f = Family::new("address");
    f.b.kernel.shared.push(SharedArray {
        name: "s".into(),
        element: Scalar::U32.into(),
        shape: [256].into_iter().collect(),
        strides: [1].into_iter().collect(),
        layout: SharedLayout::Packed,
        over: None,
        offset: 0,
    });
    let index = f.read(Scalar::Usize);
    let far = f.read(Scalar::I64);
    let near = f.read(Scalar::I32);
    let condition = f.read(Scalar::Bool);
    let three = f.b.index(3);
    let global = f.buffer(Scalar::U32);
    let fixed = f.b.value(Op::Constant(16), Type::Shared);
    let moving = f.b.value(Op::Bitcast(index), Type::Shared);
    let mut addresses = vec![fixed, moving];
    for base in [global, fixed, moving] {
        let ty = f.b.kernel.ty(base);
        for terms in [
            vec![],
            vec![(three, None)],
            vec![(index, None)],
            vec![(index, Some(index))],
            vec![(index, Some(three)), (three, Some(three))],
            vec![(three, Some(index)), (index, None)],
        ] {
            let op = Op::Offset { base, terms: terms.into_iter().collect(), bytes: 4 };
            addresses.push(f.b.value(op, ty));
        }
        for bytes in if ty == Type::Global { vec![index, near, far, three] } else { vec![index, near, three] } {
            addresses.push(f.b.value(Op::Binary(Binary::Add, base, bytes), ty));
        }
        let other = *addresses.last().unwrap();
        addresses.push(f.b.value(Op::Select { condition, yes: base, no: other }, ty));
    }
    for a in addresses {
        let value = load(&mut f.b, a, Scalar::U32, CachePolicy::Coherent);
        f.write(value);
    }
    insta::assert_snapshot!(ptx(f.b));
}

/// Returns the kernel's errors.
fn mistakes(b: Builder) -> String {
    emit(&passes::legal(b.finish()).unwrap()).unwrap_err().to_string()
}

#[test]
fn illegal_ir_is_an_error() {
    let mut k = kernel("k", "fn k(x: &[f32]) {\n    x[0] % x[1];\n}");
    slice(&mut k, "x", Scalar::F32, true);
    let mut b = Builder::new(k.clone());
    let x = parameters(&mut b)[0];
    b.location = Location(1);
    let v = load(&mut b, x, Scalar::F32, CachePolicy::Coherent);
    b.value(Op::Binary(Binary::Rem, v, v), F32);
    assert_eq!(mistakes(b), "kernels/src/lib.rs:8:0: PTX has no Rem of f32");

    // A place that no pass has converted to an address is rejected before emission.
    let mut b = Builder::new(k);
    let x = parameters(&mut b)[0];
    let place = AccessPlace::Global { base: x, dims: Default::default(), within: None };
    b.scalar(Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None }, Scalar::F32);
    let refused = passes::legal(b.finish()).unwrap_err().to_string();
    assert!(refused.contains("a place is not an address yet"), "{refused}");
}
