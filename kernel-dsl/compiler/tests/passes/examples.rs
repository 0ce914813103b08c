//! Hand-written kernels in the form of lowering.

use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::source::{KernelSource, Span};
use kernel_dsl_compiler::{Scalar, Target};
use smallvec::smallvec;

pub const USIZE: Type = Type::Scalar(Scalar::Usize);

pub fn kernel(name: &str, block: [u32; 3], parameters: Vec<Parameter>) -> Kernel {
    Kernel {
        name: name.into(),
        rust_name: name.into(),
        instance: name.into(),
        target: Target::SM_61,
        block: BlockExtents::fixed(block),
        min_blocks: None,
        max_registers: None,
        parameters,
        values: vec![],
        locals: vec![],
        shared: vec![],
        dynamic: Vec::new(),
        tables: Vec::new(),
        sources: vec![],
        locations: vec![],
        declared: Default::default(),
        unrolled: kernel_dsl_compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
        body: Region::default(),
    }
}

pub fn parameter(name: &str, argument: u32, role: Role) -> Parameter {
    Parameter { name: name.into(), argument, role }
}

fn slice(name: &str, argument: u32, mutable: bool) -> [Parameter; 2] {
    [
        parameter(name, argument, Role::Address { element: Scalar::F32.into(), mutable }),
        parameter(&format!("{name}_len"), argument, Role::Extent(0)),
    ]
}

/// Shorthands for the examples.
pub struct Write(pub Builder);

impl Write {
    pub fn new(kernel: Kernel) -> (Write, Vec<Value>) {
        let mut w = Write(Builder::new(kernel));
        let n = w.0.kernel.parameters.len() as u32;
        let parameters = (0..n).map(|i| w.0.value(Op::Parameter(i), w.0.kernel.parameters[i as usize].ty())).collect();
        (w, parameters)
    }
    pub fn special(&mut self, s: Special) -> Value {
        self.0.scalar(Op::Special(s), Scalar::Usize)
    }
    pub fn bin(&mut self, op: Binary, a: Value, b: Value) -> Value {
        let ty = self.0.kernel.ty(a);
        self.0.value(Op::Binary(op, a, b), ty)
    }
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.bin(Binary::Add, a, b)
    }
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.bin(Binary::Mul, a, b)
    }
    pub fn n(&mut self, n: u32) -> Value {
        self.0.index(n)
    }
    pub fn f(&mut self, x: f32) -> Value {
        self.0.constant(Scalar::F32, u64::from(x.to_bits()))
    }
    pub fn load(&mut self, place: AccessPlace) -> Value {
        self.0.scalar(Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None }, Scalar::F32)
    }
    pub fn store(&mut self, place: AccessPlace, v: Value) {
        self.0.effect(Op::Store { place, element: Scalar::F32, values: smallvec![v], guard: None });
    }
    pub fn read(&mut self, local: u32, index: Option<Value>) -> Value {
        let ty = self.0.kernel.locals[local as usize].element;
        self.0.value(Op::ReadLocal { local: LocalId(local), index }, ty)
    }
    pub fn write(&mut self, local: u32, index: Option<Value>, value: Value) {
        self.0.effect(Op::WriteLocal { local: LocalId(local), index, value });
    }
    pub fn iff(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        self.0.enter([]);
        then(self);
        let then = self.0.leave();
        self.0.enter([]);
        let otherwise = self.0.leave();
        self.0.effect(Op::If { condition, then, otherwise });
    }
    pub fn each(&mut self, label: u32, range: [Value; 3], unroll: Unroll, body: impl FnOnce(&mut Self, Value)) {
        let i = self.0.enter([USIZE])[0];
        body(self, i);
        let body = self.0.leave();
        let [start, end, step] = range;
        let l = For { label: Label(label), start, end, step, unroll, inits: smallvec![], body };
        self.0.effect(Op::For(Box::new(l)));
    }
}

pub fn at(base: Value, index: Value, extent: Value) -> AccessPlace {
    AccessPlace::Global { base, dims: smallvec![Dim { index, extent, stride: None }], within: None }
}

/// Returns the `saxpy` of the guide, with its source.
pub fn saxpy() -> Kernel {
    let mut k = kernel("saxpy", [256, 1, 1], vec![]);
    k.parameters.push(parameter("a", 0, Role::Value(Scalar::F32)));
    k.parameters.extend(slice("x", 1, false));
    k.parameters.extend(slice("y", 2, true));
    let text = [
        "pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {",
        "    let i = grid::index();",
        "    if i < y.len() { y[i] = a.mul_add(x[i], y[i]); }",
        "}",
    ];
    k.sources.push(KernelSource {
        name: "saxpy".into(),
        file: "kernels-rs/src/blas.rs".into(),
        line: 10,
        text: text.iter().map(|l| l.to_string()).collect(),
    });
    let place = |line, column, end_column| SourceLocation {
        source: 0,
        span: Span { line, column, end_line: line, end_column },
        caller: None,
    };
    k.locations = vec![place(0, 1, 10), place(1, 13, 27), place(2, 8, 19), place(2, 29, 49)];
    let (mut w, p) = Write::new(k);
    w.0.location = Location(1);
    let (b, t, n) = (w.special(Special::Block(0)), w.special(Special::Thread(0)), w.n(256));
    let first = w.mul(b, n);
    let i = w.add(first, t);
    w.0.location = Location(2);
    let inside = w.0.compare(Comparison::Lt, i, p[4]);
    w.iff(inside, |w| {
        w.0.location = Location(3);
        let (x, y) = (w.load(at(p[1], i, p[2])), w.load(at(p[3], i, p[4])));
        let sum = w.0.scalar(Op::MulAdd(p[0], x, y), Scalar::F32);
        w.store(at(p[3], i, p[4]), sum);
    });
    w.0.finish()
}
