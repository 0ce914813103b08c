//! Kernels as lowering would write them, made by hand.

use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::source::{Source, Span};
use kernel_dsl_compiler::{Scalar, Target};
use smallvec::smallvec;

pub const USIZE: Type = Type::Scalar(Scalar::Usize);

fn kernel(name: &str, block: [u32; 3], parameters: Vec<Parameter>) -> Kernel {
    Kernel {
        name: name.into(),
        instance: name.into(),
        target: Target::SM_61,
        block: Block::fixed(block),
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
        unrolled: kernel_dsl_compiler::passes::unroll::LIMIT,
        body: Region::default(),
    }
}

fn parameter(name: &str, argument: u32, role: Role) -> Parameter {
    Parameter { name: name.into(), argument, role }
}

fn slice(name: &str, argument: u32, mutable: bool) -> [Parameter; 2] {
    [
        parameter(name, argument, Role::Address { element: Scalar::F32.into(), mutable }),
        parameter(&format!("{name}_len"), argument, Role::Extent(0)),
    ]
}

fn view(name: &str, argument: u32, mutable: bool) -> [Parameter; 4] {
    [
        parameter(name, argument, Role::Address { element: Scalar::F32.into(), mutable }),
        parameter(&format!("{name}_dim0"), argument, Role::Extent(0)),
        parameter(&format!("{name}_dim1"), argument, Role::Extent(1)),
        parameter(&format!("{name}_stride0"), argument, Role::Stride(0)),
    ]
}

/// What the examples write often.
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
    pub fn load(&mut self, place: Place) -> Value {
        self.0.scalar(Op::Load { place, element: Scalar::F32, policy: Policy::Coherent, guard: None }, Scalar::F32)
    }
    pub fn store(&mut self, place: Place, v: Value) {
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
    /// `if condition { then() } else { 0.0 }`.
    pub fn or_zero(&mut self, condition: Value, then: impl FnOnce(&mut Self) -> Value) -> Value {
        self.0.enter([]);
        let v = then(self);
        self.0.effect(Op::Yield(smallvec![v]));
        let then = self.0.leave();
        self.0.enter([]);
        let zero = self.f(0.0);
        self.0.effect(Op::Yield(smallvec![zero]));
        let otherwise = self.0.leave();
        self.0.value(Op::If { condition, then, otherwise }, Type::Scalar(Scalar::F32))
    }
    pub fn each(&mut self, label: u32, range: [Value; 3], unroll: Unroll, body: impl FnOnce(&mut Self, Value)) {
        let i = self.0.enter([USIZE])[0];
        body(self, i);
        let body = self.0.leave();
        let [start, end, step] = range;
        let l = For { label: Label(label), start, end, step, unroll, inits: smallvec![], body };
        self.0.effect(Op::For(Box::new(l)));
    }
    pub fn upto(&mut self, label: u32, n: u32, unroll: Unroll, body: impl FnOnce(&mut Self, Value)) {
        let range = [self.n(0), self.n(n), self.n(1)];
        self.each(label, range, unroll, body);
    }
}

pub fn at(base: Value, index: Value, extent: Value) -> Place {
    Place::Global { base, dims: smallvec![Dim { index, extent, stride: None }], within: None }
}

/// Element `i`, `j` of the view whose four parameters are `v`.
pub fn at2(v: &[Value], i: Value, j: Value) -> Place {
    let row = Dim { index: i, extent: v[1], stride: Some(v[3]) };
    Place::Global { base: v[0], dims: smallvec![row, Dim { index: j, extent: v[2], stride: None }], within: None }
}

/// The `saxpy` of the guide, with its source.
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
    k.sources.push(Source {
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

/// Three-point stencil: `y[i] = x[i - 1] + x[i] + x[i + 1]`, on a grid-stride loop from 1.
pub fn stencil() -> Kernel {
    let parameters = slice("x", 0, false).into_iter().chain(slice("y", 1, true)).collect();
    let (mut w, p) = Write::new(kernel("stencil", [256, 1, 1], parameters));
    let (b, t, n, one) = (w.special(Special::Block(0)), w.special(Special::Thread(0)), w.n(256), w.n(1));
    let first = w.mul(b, n);
    let i = w.add(first, t);
    let start = w.add(i, one);
    let grid = w.special(Special::Grid(0));
    let step = w.mul(grid, n);
    let end = w.bin(Binary::Sub, p[1], one);
    w.each(0, [start, end, step], Unroll::Auto, |w, i| {
        let one = w.n(1);
        let before = w.bin(Binary::Sub, i, one);
        let after = w.add(i, one);
        let a = w.load(at(p[0], before, p[1]));
        let b = w.load(at(p[0], i, p[1]));
        let c = w.load(at(p[0], after, p[1]));
        let sum = w.add(a, b);
        let sum = w.add(sum, c);
        w.store(at(p[2], i, p[3]), sum);
    });
    w.0.finish()
}

/// The tiled product of the guide: T×T tiles in shared memory with a padded pitch.
pub fn matmul(tile: u32) -> Kernel {
    let views = ["a", "b", "c"].into_iter().enumerate();
    let parameters = views.flat_map(|(i, n)| view(n, i as u32, n == "c")).collect();
    let mut k = kernel("matmul", [tile, tile, 1], parameters);
    k.locals.push(Local { name: "acc".into(), element: Type::Scalar(Scalar::F32), len: 1 });
    for (i, name) in ["ta", "tb"].into_iter().enumerate() {
        k.shared.push(SharedArray {
            name: name.into(),
            element: Scalar::F32.into(),
            shape: smallvec![tile, tile],
            strides: smallvec![tile + 1, 1],
            layout: Layout::Padded { pad: 1 },
            over: None,
            offset: i as u32 * (tile + 1) * tile * 4,
        });
    }
    let (mut w, p) = Write::new(k);
    let (a, b, c) = (&p[0..4], &p[4..8], &p[8..12]);
    let (tx, ty) = (w.special(Special::Thread(0)), w.special(Special::Thread(1)));
    let (bx, by) = (w.special(Special::Block(0)), w.special(Special::Block(1)));
    let (t, zero) = (w.n(tile), w.f(0.0));
    let (first_row, first_col) = (w.mul(by, t), w.mul(bx, t));
    let (row, col) = (w.add(first_row, ty), w.add(first_col, tx));
    w.write(0, None, zero);
    let range = [w.n(0), a[2], w.n(tile)];
    w.each(0, range, Unroll::Auto, |w, k| {
        let ka = w.add(k, tx);
        let (r, c2) = (w.0.compare(Comparison::Lt, row, a[1]), w.0.compare(Comparison::Lt, ka, a[2]));
        let inside = w.0.scalar(Op::Binary(Binary::And, r, c2), Scalar::Bool);
        let x = w.or_zero(inside, |w| w.load(at2(a, row, ka)));
        w.store(Place::Shared { array: SharedId(0), indices: smallvec![ty, tx], within: None }, x);
        let kb = w.add(k, ty);
        let (r, c2) = (w.0.compare(Comparison::Lt, kb, b[1]), w.0.compare(Comparison::Lt, col, b[2]));
        let inside = w.0.scalar(Op::Binary(Binary::And, r, c2), Scalar::Bool);
        let x = w.or_zero(inside, |w| w.load(at2(b, kb, col)));
        w.store(Place::Shared { array: SharedId(1), indices: smallvec![ty, tx], within: None }, x);
        w.0.effect(Op::BlockSync);
        w.upto(1, tile, Unroll::Full, |w, i| {
            let x = w.load(Place::Shared { array: SharedId(0), indices: smallvec![ty, i], within: None });
            let y = w.load(Place::Shared { array: SharedId(1), indices: smallvec![i, tx], within: None });
            let acc = w.read(0, None);
            let acc = w.0.scalar(Op::MulAdd(x, y, acc), Scalar::F32);
            w.write(0, None, acc);
        });
        w.0.effect(Op::BlockSync);
    });
    let (r, c2) = (w.0.compare(Comparison::Lt, row, c[1]), w.0.compare(Comparison::Lt, col, c[2]));
    let inside = w.0.scalar(Op::Binary(Binary::And, r, c2), Scalar::Bool);
    w.iff(inside, |w| {
        let acc = w.read(0, None);
        w.store(at2(c, row, col), acc);
    });
    w.0.finish()
}

/// A register-blocked product: `tm`×`tn` accumulators a thread, `bk` steps unrolled, in blocks of 16×16 threads.
pub fn blocked(tm: u32, tn: u32, bk: u32) -> Kernel {
    let views = ["a", "b", "c"].into_iter().enumerate();
    let parameters = views.flat_map(|(i, n)| view(n, i as u32, n == "c")).collect();
    let mut k = kernel("blocked", [16, 16, 1], parameters);
    for (name, len) in [("acc", tm * tn), ("ra", tm), ("rb", tn)] {
        k.locals.push(Local { name: name.into(), element: Type::Scalar(Scalar::F32), len });
    }
    for (i, (name, width)) in [("ta", 16 * tm), ("tb", 16 * tn)].into_iter().enumerate() {
        k.shared.push(SharedArray {
            name: name.into(),
            element: Scalar::F32.into(),
            shape: smallvec![bk, width],
            strides: smallvec![width, 1],
            layout: Layout::Packed,
            over: None,
            offset: i as u32 * bk * 16 * tm * 4,
        });
    }
    let (mut w, p) = Write::new(k);
    let (a, b, c) = (&p[0..4], &p[4..8], &p[8..12]);
    let (tx, ty) = (w.special(Special::Thread(0)), w.special(Special::Thread(1)));
    let (bx, by) = (w.special(Special::Block(0)), w.special(Special::Block(1)));
    let (rows, cols) = (w.n(16 * tm), w.n(16 * tn));
    let (row, col) = (w.mul(by, rows), w.mul(bx, cols));
    w.upto(0, tm * tn, Unroll::Full, |w, i| {
        let zero = w.f(0.0);
        w.write(0, Some(i), zero);
    });
    let range = [w.n(0), a[2], w.n(bk)];
    w.each(1, range, Unroll::Auto, |w, k| {
        w.upto(2, tm, Unroll::Full, |w, i| {
            let sixteen = w.n(16);
            let r = w.mul(i, sixteen);
            let r = w.add(ty, r);
            let (gr, gk) = (w.add(row, r), w.add(k, tx));
            let x = w.load(at2(a, gr, gk));
            w.store(Place::Shared { array: SharedId(0), indices: smallvec![tx, r], within: None }, x);
        });
        w.upto(3, tn, Unroll::Full, |w, j| {
            let sixteen = w.n(16);
            let s = w.mul(j, sixteen);
            let s = w.add(tx, s);
            let (gk, gc) = (w.add(k, ty), w.add(col, s));
            let x = w.load(at2(b, gk, gc));
            w.store(Place::Shared { array: SharedId(1), indices: smallvec![ty, s], within: None }, x);
        });
        w.0.effect(Op::BlockSync);
        w.upto(4, bk, Unroll::Full, |w, k| {
            for (local, array, t, n) in [(1, 0, ty, tm), (2, 1, tx, tn)] {
                w.upto(5 + local, n, Unroll::Full, |w, i| {
                    let n = w.n(n);
                    let first = w.mul(t, n);
                    let r = w.add(first, i);
                    let x = w.load(Place::Shared { array: SharedId(array), indices: smallvec![k, r], within: None });
                    w.write(local, Some(i), x);
                });
            }
            w.upto(10, tm, Unroll::Full, |w, i| {
                w.upto(11, tn, Unroll::Full, |w, j| {
                    let n = w.n(tn);
                    let at = w.mul(i, n);
                    let at = w.add(at, j);
                    let (x, y, acc) = (w.read(1, Some(i)), w.read(2, Some(j)), w.read(0, Some(at)));
                    let acc = w.0.scalar(Op::MulAdd(x, y, acc), Scalar::F32);
                    w.write(0, Some(at), acc);
                });
            });
        });
        w.0.effect(Op::BlockSync);
    });
    w.upto(20, tm, Unroll::Full, |w, i| {
        w.upto(21, tn, Unroll::Full, |w, j| {
            let (n, m) = (w.n(tn), w.n(tm));
            let at = w.mul(i, n);
            let at = w.add(at, j);
            let (r, s) = (w.mul(ty, m), w.mul(tx, n));
            let (r, s) = (w.add(r, i), w.add(s, j));
            let (r, s) = (w.add(row, r), w.add(col, s));
            let acc = w.read(0, Some(at));
            w.store(at2(c, r, s), acc);
        });
    });
    w.0.finish()
}
