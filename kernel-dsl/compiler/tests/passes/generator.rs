//! Random IR by seed: arithmetic of several types, locals and register arrays, memory, all
//! constructs and jumps.
//!
//! The programs avoid everything that the language leaves undefined: divisors are not 0, `usize`
//! does not overflow, indices are in range, and loops end.
//!
//! Two other generators write Rust. Passes also have to keep IR that lowering never makes, such as
//! that between two passes, so this one builds IR directly. The evaluator of these tests runs each
//! thread alone. `tests/fuzz` has kernels whose threads exchange values, and `frontend/generated`
//! has programs for the front end.

use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::ptx::inline::{self, Direction};
use kernel_dsl_compiler::{Approximation, Scalar};
use smallvec::smallvec;

/// Blocks that compute, with one result or two; that read the thread's index; and that query the
/// machine.
const INLINE: [&str; 4] = [
    "brev.b32 {d}, {a};",
    "mul.lo.u32 {d}, {a}, {b}; mul.hi.u32 {b}, {a}, {b};",
    "mov.u32 {d}, %laneid; add.u32 {d}, {d}, {a};",
    "mov.u32 {d}, %clock;",
];

/// Returns an empty kernel: slices `x` (read-only) and `y`, a view `m` with a row stride, scalars
/// `s` and `a`.
pub fn empty() -> Kernel {
    let parameter = |name: &str, argument, role| Parameter { name: name.into(), argument, role };
    let address = |mutable| Role::Address { element: Scalar::F32.into(), mutable };
    Kernel {
        name: "k".into(),
        rust_name: "k".into(),
        instance: "k".into(),
        target: Target::SM_61,
        block: BlockExtents::fixed([32, 1, 1]),
        min_blocks: None,
        max_registers: None,
        parameters: vec![
            parameter("x", 0, address(false)),
            parameter("x_len", 0, Role::Extent(0)),
            parameter("y", 1, address(true)),
            parameter("y_len", 1, Role::Extent(0)),
            parameter("m", 2, address(true)),
            parameter("m_dim0", 2, Role::Extent(0)),
            parameter("m_dim1", 2, Role::Extent(1)),
            parameter("m_stride0", 2, Role::Stride(0)),
            parameter("s", 3, Role::Value(Scalar::U32)),
            parameter("a", 4, Role::Value(Scalar::F32)),
        ],
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

pub struct Generator {
    pub b: Builder,
    state: u64,
    /// Values in scope.
    scope: Vec<(Scalar, Value)>,
    /// `usize` values in scope that are below 32.
    small: Vec<Value>,
    /// Enclosing constructs: label, the types that `Break` carries, and those that `Continue`
    /// carries (for loops).
    open: Vec<(Label, Vec<Scalar>, Option<Vec<Scalar>>)>,
    labels: u32,
    budget: u32,
    parameters: Vec<Value>,
    /// Addresses of the arrays of dynamic size, and their extents.
    dynamic: Vec<(Value, Value)>,
}

const TYPES: [Scalar; 9] = [
    Scalar::U32,
    Scalar::I32,
    Scalar::F32,
    Scalar::Bool,
    Scalar::U64,
    Scalar::I64,
    Scalar::F64,
    Scalar::U8,
    Scalar::I16,
];

pub fn kernel(seed: u64) -> Kernel {
    made(seed, empty(), |_| {})
}

/// Returns a kernel whose values depend on the thread or on shared inputs, and rarely on memory.
/// The block has two warps, in rows of 8.
pub fn of_threads(seed: u64) -> Kernel {
    made(seed, Kernel { block: BlockExtents::fixed([8, 8, 1]), ..empty() }, |g| {
        g.scope.clear();
        g.scope.extend([(Scalar::U32, g.parameters[8]), (Scalar::F32, g.parameters[9])]);
        let block = g.b.scalar(Op::Special(Special::Block(0)), Scalar::Usize);
        g.small.push(block);
        for axis in 0..2 {
            let t = g.b.scalar(Op::Special(Special::Thread(axis)), Scalar::Usize);
            g.small.push(t);
            for ty in TYPES.into_iter().filter(|ty| *ty != Scalar::Bool) {
                let v = g.b.scalar(Op::Cast(t), ty);
                g.scope.push((ty, v));
            }
        }
        // The warp's index, and other values.
        let [.., x, y] = g.small[..] else { unreachable!("two thread indices") };
        for (of, by) in [(y, 4), (y, 4), (x, 2), (block, 8)] {
            let n = g.b.index(by);
            let v = g.b.scalar(Op::Binary(Binary::Div, of, n), Scalar::Usize);
            g.small.push(v);
            for ty in [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::F32] {
                let v = g.b.scalar(Op::Cast(v), ty);
                g.scope.push((ty, v));
            }
        }
    })
}

/// Makes a program; `known` adds the values that it starts with.
fn made(seed: u64, mut k: Kernel, known: impl Fn(&mut Generator)) -> Kernel {
    for (i, ty) in TYPES.into_iter().enumerate() {
        k.locals.push(Local { name: format!("v{i}"), element: Type::Scalar(ty), len: 1, memory: false });
        k.locals.push(Local { name: format!("a{i}"), element: Type::Scalar(ty), len: 4, memory: false });
    }
    k.locals.push(Local { name: "count".into(), element: Type::Scalar(Scalar::U32), len: 1, memory: false });
    k.shared.push(SharedArray {
        name: "t".into(),
        element: Scalar::F32.into(),
        shape: smallvec![64, 64],
        strides: smallvec![65, 1],
        layout: SharedLayout::Padded { pad: 1 },
        over: None,
        offset: 256,
    });
    // Pairs of 4 bytes each.
    k.shared.push(SharedArray {
        name: "w".into(),
        element: MemoryElement::Aggregate { bytes: 8, align: 4 },
        shape: smallvec![64, 64],
        strides: smallvec![64, 1],
        layout: SharedLayout::Swizzled(Swizzle::of(512).expect("rows are whole pieces")),
        over: None,
        offset: 16_896,
    });
    let mut g = Generator {
        b: Builder::new(k),
        state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        scope: vec![],
        small: vec![],
        open: vec![],
        labels: 0,
        budget: 60,
        parameters: vec![],
        dynamic: vec![],
    };
    g.body(known);
    let extents: Vec<Value> = g.dynamic.iter().map(|d| d.1).collect();
    let mut kernel = g.b.finish();
    for (i, extent) in extents.into_iter().enumerate() {
        kernel.dynamic[i].extents = smallvec![Formula::of(&kernel, extent).expect("it is a formula of a parameter")];
    }
    kernel
}

impl Generator {
    fn below(&mut self, n: u32) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 33) % u64::from(n)) as u32
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        let i = self.below(of.len() as u32);
        of[i as usize]
    }

    fn body(&mut self, known: impl Fn(&mut Self)) {
        for i in 0..self.b.kernel.parameters.len() as u32 {
            let ty = self.b.kernel.parameters[i as usize].ty();
            let v = self.b.value(Op::Parameter(i), ty);
            self.parameters.push(v);
        }
        self.scope.extend([(Scalar::U32, self.parameters[8]), (Scalar::F32, self.parameters[9])]);
        for (i, name) in ["d", "e"].into_iter().enumerate() {
            let sum = self.b.index(100 + i as u32);
            let extent = self.b.scalar(Op::Binary(Binary::Add, self.parameters[3], sum), Scalar::Usize);
            let array = DynamicArray { name: name.into(), element: Scalar::F32.into(), extents: smallvec![] };
            self.b.kernel.dynamic.push(array);
            let op = Op::Dynamic { array: DynamicId(i as u32), extents: smallvec![extent] };
            let base = self.b.value(op, Type::Shared);
            self.dynamic.push((base, extent));
        }
        let t = self.b.scalar(Op::Special(Special::Thread(0)), Scalar::Usize);
        self.small.push(t);
        for ty in TYPES {
            let place = self.place(false);
            let op = Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None };
            let v = self.b.scalar(op, Scalar::F32);
            let op = if ty == Scalar::Bool { Op::Compare(Comparison::Lt, v, self.parameters[9]) } else { Op::Cast(v) };
            let v = self.b.scalar(op, ty);
            self.scope.push((ty, v));
        }
        known(self);
        self.statements(14);
        for ty in TYPES {
            let v = self.any(ty);
            self.show(ty, v);
            let local = self.local(ty, 0);
            let v = self.b.scalar(Op::ReadLocal { local, index: None }, ty);
            self.show(ty, v);
            let index = self.b.index(2);
            let local = self.local(ty, 1);
            let v = self.b.scalar(Op::ReadLocal { local, index: Some(index) }, ty);
            self.show(ty, v);
        }
    }

    /// Stores a value of any type as the element type of `y`.
    fn show(&mut self, ty: Scalar, v: Value) {
        let v = match ty {
            Scalar::F32 => v,
            Scalar::Bool => {
                let (one, zero) = (self.b.constant(Scalar::F32, 0x3f80_0000), self.b.constant(Scalar::F32, 0));
                self.b.scalar(Op::Select { condition: v, yes: one, no: zero }, Scalar::F32)
            }
            Scalar::I64 | Scalar::U64 | Scalar::F64 => {
                let bits = if ty == Scalar::F64 { self.b.scalar(Op::Bitcast(v), Scalar::U64) } else { v };
                let low = self.b.scalar(Op::Cast(bits), Scalar::U32);
                self.store_bits(low);
                let shift = self.b.constant(Scalar::U32, 32);
                let high =
                    self.b.scalar(Op::Binary(Binary::Shr, bits, shift), self.b.kernel.ty(bits).scalar().unwrap());
                return self.store_cast(high);
            }
            _ => return self.store_cast(v),
        };
        self.store(v);
    }

    fn store_cast(&mut self, v: Value) {
        let v = self.b.scalar(Op::Cast(v), Scalar::I16);
        let v = self.b.scalar(Op::Cast(v), Scalar::F32);
        self.store(v);
    }

    fn store_bits(&mut self, v: Value) {
        let v = self.b.scalar(Op::Bitcast(v), Scalar::F32);
        self.store(v);
    }

    fn store(&mut self, v: Value) {
        let place = self.place(true);
        // The result is used only sometimes.
        if self.below(4) == 0 {
            let operation = self.one_of(&[AtomicOperator::Add, AtomicOperator::Exchange]);
            let op = Op::Atomic { operation, place, element: Scalar::F32, values: smallvec![v] };
            let before = self.b.scalar(op, Scalar::F32);
            return self.scope.push((Scalar::F32, before));
        }
        self.b.effect(Op::Store { place, element: Scalar::F32, values: smallvec![v], guard: None });
        if self.below(8) == 0 {
            let number = self.b.scalar(Op::Compare(Comparison::Eq, v, v), Scalar::Bool);
            self.b.effect(Op::Log { format: "%s".into(), values: smallvec![number] });
        }
    }

    /// Returns a position in an element of `bytes` bytes.
    fn within(&mut self, bytes: u32, offset: u32) -> Option<Box<ElementOffset>> {
        Some(Box::new(ElementOffset { bytes, offset, indices: smallvec![] }))
    }

    fn place(&mut self, write: bool) -> AccessPlace {
        let dim = |index, extent| Dim { index, extent, stride: None };
        match self.below(7) {
            6 => {
                let ((base, extent), index) = (self.one_of(&self.dynamic.clone()), self.index(1));
                AccessPlace::Dynamic { base, dims: smallvec![dim(index, extent)], within: None }
            }
            4 => {
                let (i, j, half) = (self.index(0), self.index(0), self.below(2));
                AccessPlace::Shared { array: SharedId(1), indices: smallvec![i, j], within: self.within(8, 4 * half) }
            }
            5 => {
                let (i, j) = (self.index(1), self.index(0));
                let mut within = self.within(140, 8);
                if let Some(within) = &mut within {
                    within.indices.push(ElementIndex { index: j, extent: 33, bytes: 4 });
                }
                AccessPlace::Global { base: self.parameters[2], dims: smallvec![dim(i, self.parameters[3])], within }
            }
            0 if !write => {
                let index = self.index(2);
                AccessPlace::Global {
                    base: self.parameters[0],
                    dims: smallvec![dim(index, self.parameters[1])],
                    within: None,
                }
            }
            1 => {
                let (i, j) = (self.index(1), self.index(2));
                let row = Dim { index: i, extent: self.parameters[5], stride: Some(self.parameters[7]) };
                AccessPlace::Global {
                    base: self.parameters[4],
                    dims: smallvec![row, dim(j, self.parameters[6])],
                    within: None,
                }
            }
            2 => {
                let (i, j) = (self.index(0), self.index(0));
                AccessPlace::Shared { array: SharedId(0), indices: smallvec![i, j], within: None }
            }
            3 => {
                let (i, j, k) = (self.index(1), self.index(1), self.index(1));
                let terms = smallvec![(i, Some(self.parameters[7])), (j, None)];
                let op = Op::Offset { base: self.parameters[2], terms, bytes: 4 };
                let base = self.b.value(op, Type::Global);
                AccessPlace::Global { base, dims: smallvec![dim(k, self.parameters[3])], within: None }
            }
            _ => {
                let index = self.index(2);
                AccessPlace::Global {
                    base: self.parameters[2],
                    dims: smallvec![dim(index, self.parameters[3])],
                    within: None,
                }
            }
        }
    }

    /// Returns an index below 64, 256 or 1024 by `depth`.
    fn index(&mut self, depth: u32) -> Value {
        if depth == 0 {
            return match self.below(4) {
                0 => {
                    let n = self.below(32);
                    self.b.index(n)
                }
                1 => {
                    let v = self.any(Scalar::U32);
                    let v = self.b.scalar(Op::Cast(v), Scalar::Usize);
                    let mask = self.b.index(31);
                    self.b.scalar(Op::Binary(Binary::And, v, mask), Scalar::Usize)
                }
                _ => {
                    let small = self.small.clone();
                    self.one_of(&small)
                }
            };
        }
        let a = self.index(depth - 1);
        let n = self.below(32);
        let c = self.b.index(n);
        match self.below(6) {
            0 => a,
            4 => {
                let high = self.b.index(32);
                let up = self.b.scalar(Op::Binary(Binary::Or, a, high), Scalar::Usize);
                self.b.scalar(Op::Binary(Binary::Sub, up, c), Scalar::Usize)
            }
            1 => self.b.scalar(Op::Binary(Binary::Add, c, a), Scalar::Usize),
            2 => {
                let up = self.b.scalar(Op::Binary(Binary::Add, a, c), Scalar::Usize);
                let less = self.below(n + 1);
                let less = self.b.index(less);
                self.b.scalar(Op::Binary(Binary::Sub, up, less), Scalar::Usize)
            }
            3 => {
                let other = self.index(depth - 1);
                self.b.scalar(Op::Binary(Binary::Add, a, other), Scalar::Usize)
            }
            _ => {
                let n = self.below(4);
                let c = self.b.index(n);
                self.b.scalar(Op::Binary(Binary::Mul, a, c), Scalar::Usize)
            }
        }
    }

    fn local(&self, ty: Scalar, array: u32) -> LocalId {
        LocalId(2 * TYPES.iter().position(|t| *t == ty).expect("a type of the generator") as u32 + array)
    }

    fn constant(&mut self, ty: Scalar) -> Value {
        let interesting = match ty {
            Scalar::F32 => {
                let x = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-40, f32::MAX, f32::INFINITY, 3.25, -7.5];
                u64::from(self.one_of(&x).to_bits())
            }
            Scalar::F64 => self.one_of(&[0.0, -0.0, 1.0, -1.0, 4.0, 0.1, 5e-310, f64::MIN, -2.75]).to_bits(),
            _ => self.one_of(&[0, 1, 2, 3, 7, 8, 16, 255, 256, u64::MAX, 1 << 31, 1 << 63, 0x7fff_ffff, 12345]),
        };
        self.b.constant(ty, interesting)
    }

    fn any(&mut self, ty: Scalar) -> Value {
        let known: Vec<Value> = self.scope.iter().filter(|(t, _)| *t == ty).map(|(_, v)| *v).collect();
        if known.is_empty() || self.below(8) == 0 { self.constant(ty) } else { self.one_of(&known) }
    }

    fn expression(&mut self, ty: Scalar) -> Value {
        use Binary::*;
        let (a, mut b) = (self.any(ty), self.any(ty));
        if self.below(3) == 0 {
            b = self.constant(ty);
        }
        let op = match self.below(8) {
            0 => {
                let from = self.one_of(&TYPES);
                let v = self.any(from);
                match (from, ty) {
                    (_, Scalar::Bool) => Op::Compare(self.one_of(&[Comparison::Eq, Comparison::Ne]), v, v),
                    (Scalar::Bool, t) if t.is_float() => Op::Binary(Mul, a, b),
                    (Scalar::F32, Scalar::U32) | (Scalar::U32, Scalar::F32) => Op::Bitcast(v),
                    _ => Op::Cast(v),
                }
            }
            1 => {
                let condition = self.any(Scalar::Bool);
                Op::Select { condition, yes: a, no: b }
            }
            2 if ty == Scalar::Bool => Op::Unary(Unary::Not, a),
            2 if ty == Scalar::F32 && self.below(3) == 0 => Op::Approximate(self.one_of(&Approximation::ALL), a),
            2 if ty.is_float() => {
                let unary =
                    [Unary::Neg, Unary::Abs, Unary::Sqrt, Unary::Floor, Unary::Ceil, Unary::Trunc, Unary::RoundEven];
                Op::Unary(self.one_of(&unary), a)
            }
            2 if ty.bits() >= 32 => {
                let unary = [Unary::Neg, Unary::Not, Unary::ReverseBits, Unary::SwapBytes];
                Op::Unary(self.one_of(&unary), a)
            }
            2 => Op::Unary(self.one_of(&[Unary::Neg, Unary::Not]), a),
            3 if ty.is_float() => {
                let c = self.any(ty);
                Op::MulAdd(a, b, c)
            }
            3 | 4 if ty == Scalar::Bool => {
                let of = self.one_of(&TYPES);
                let (a, b) = (self.any(of), self.any(of));
                let comparisons =
                    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];
                let n = if of == Scalar::Bool { 2 } else { 6 };
                Op::Compare(self.one_of(&comparisons[..n]), a, b)
            }
            3 if ty == Scalar::U32 && self.below(2) == 0 => {
                let c = self.any(Scalar::U32);
                let all = [
                    Bits::Dot4,
                    Bits::Dot2 { high: true },
                    Bits::Permute,
                    Bits::FunnelLeft,
                    Bits::FunnelRight,
                    Bits::Extract,
                    Bits::MultiplyHigh,
                    Bits::Multiply24,
                    Bits::Insert,
                ];
                let what = self.one_of(&all);
                let operands = match what {
                    Bits::MultiplyHigh | Bits::Multiply24 => [a, b].into_iter().collect(),
                    Bits::Insert => [a, b, c, self.any(Scalar::U32)].into_iter().collect(),
                    _ => [a, b, c].into_iter().collect(),
                };
                Op::Bits(what, operands)
            }
            3 if ty.is_integer() => {
                let amount = self.any(Scalar::U32);
                let shifts = [Shl, Shr, WrappingShl, WrappingShr, RotateLeft];
                Op::Binary(self.one_of(&shifts[..if ty.bits() >= 32 { 5 } else { 4 }]), a, amount)
            }
            4 if ty.is_integer() => {
                let (mask, one) = (self.b.constant(ty, 0x7f), self.b.constant(ty, 1));
                let d = self.b.scalar(Op::Binary(And, b, mask), ty);
                let mut d = self.b.scalar(Op::Binary(Or, d, one), ty);
                if self.below(2) == 0 {
                    d = self.b.constant(ty, [1, 2, 4, 8, 64, 5][self.state as usize % 6]);
                }
                Op::Binary(self.one_of(&[Div, Rem]), a, d)
            }
            _ if ty == Scalar::Bool => Op::Binary(self.one_of(&[And, Or, Xor]), a, b),
            _ if ty.is_float() => Op::Binary(self.one_of(&[Add, Sub, Mul, Div, Min, Max]), a, b),
            _ => {
                let op = self.one_of(&[Add, Sub, Mul, WrappingAdd, WrappingSub, WrappingMul, Min, Max, And, Or, Xor]);
                Op::Binary(op, a, b)
            }
        };
        self.b.scalar(op, ty)
    }

    fn statements(&mut self, n: u32) {
        for _ in 0..n {
            if self.b.ended() {
                return;
            }
            self.statement();
        }
    }

    /// Runs `inside` in a separate region, whose values go out of scope, and returns the region.
    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) -> Region {
        let (scope, small) = (self.scope.len(), self.small.len());
        inside(self);
        self.scope.truncate(scope);
        self.small.truncate(small);
        self.b.leave()
    }

    fn some_types(&mut self) -> Vec<Scalar> {
        (0..self.below(3)).map(|_| self.one_of(&TYPES)).collect()
    }

    fn values(&mut self, types: &[Scalar]) -> Values {
        types.iter().map(|t| self.any(*t)).collect()
    }

    fn types(types: &[Scalar]) -> Vec<Type> {
        types.iter().map(|t| Type::Scalar(*t)).collect()
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// Fills the open region and ends it with a `Yield` of `types`, or a jump.
    fn fill(&mut self, n: u32, types: &[Scalar]) {
        self.statements(n);
        if self.b.ended() {
            return;
        }
        if self.below(4) == 0 && !self.open.is_empty() {
            let open = self.open.clone();
            let (label, leave, next) = self.one_of_ref(&open);
            match next {
                Some(next) if self.below(2) == 0 => {
                    let values = self.values(&next);
                    self.b.effect(Op::Continue(label, values));
                }
                _ => {
                    let values = self.values(&leave);
                    self.b.effect(Op::Break(label, values));
                }
            }
        } else if self.below(60) == 0 {
            self.b.effect(Op::Return);
        } else {
            let values = self.values(types);
            self.b.effect(Op::Yield(values));
        }
    }

    fn one_of_ref<T: Clone>(&mut self, of: &[T]) -> T {
        let i = self.below(of.len() as u32);
        of[i as usize].clone()
    }

    /// Adds a block of inline PTX with two words, of a random kind.
    fn inline(&mut self) {
        let text = self.one_of(&INLINE);
        let operand = |name: &str, direction| inline::InlineOperand { name: name.into(), direction, ty: Scalar::U32 };
        let all = [("a", Direction::In), ("b", Direction::InOut), ("d", Direction::Out)];
        let operands = all.iter().filter(|(name, _)| text.contains(&format!("{{{name}}}")));
        let operands = operands.map(|(name, direction)| operand(name, *direction)).collect();
        let source = inline::InlineSource { text: text.into(), operands };
        let code = source.check(None).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let inputs: Values = source.inputs().map(|_| self.any(Scalar::U32)).collect();
        let results = source.outputs().map(|_| Type::Scalar(Scalar::U32));
        let results = self.b.emit(Op::Inline { code: code.into(), inputs }, results);
        self.scope.extend(results.iter().map(|v| (Scalar::U32, *v)));
    }

    fn statement(&mut self) {
        if self.below(16) == 0 {
            return self.inline();
        }
        let choice = if self.budget == 0 || self.open.len() > 3 { self.below(9) } else { self.below(16) };
        self.budget = self.budget.saturating_sub(1);
        match choice {
            0..=3 => {
                let ty = self.one_of(&TYPES);
                let v = self.expression(ty);
                self.scope.push((ty, v));
            }
            4 => {
                let place = self.place(false);
                let v = self.b.scalar(
                    Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None },
                    Scalar::F32,
                );
                self.scope.push((Scalar::F32, v));
            }
            5 => {
                let ty = self.one_of(&TYPES);
                let v = self.any(ty);
                self.show(ty, v);
            }
            6 | 7 => self.locals(),
            8 => {
                let v = self.choice(2);
                self.scope.push((Scalar::F32, v));
            }
            9 | 10 => self.branch(),
            11 | 12 => self.counted(),
            13 => self.endless(),
            14 => self.running(),
            _ => {
                let (label, types) = (self.label(), self.some_types());
                self.open.push((label, types.clone(), None));
                self.b.enter([]);
                let body = self.scoped(|g| g.fill(4, &types));
                self.open.pop();
                let results = self.b.emit(Op::Block { label, body }, Self::types(&types));
                self.scope.extend(types.into_iter().zip(results));
            }
        }
    }

    /// Adds a loop that carries an address. The address moves always or sometimes, by a constant or
    /// a loop-invariant value, and is used before and after it moves. The address is used alone or
    /// with the thread's offset; the loop may end early.
    fn running(&mut self) {
        let label = self.label();
        let (base, extent) = (self.parameters[2], self.parameters[3]);
        let offset = |base, index| Op::Offset { base, terms: smallvec![(index, None)], bytes: 4 };
        let mut first = base;
        for _ in 0..self.below(3) {
            let index = self.index(0);
            first = self.b.value(offset(first, index), Type::Global);
        }
        let (own, other) = (self.index(0), self.index(0));
        let even = self.below(2) == 0;
        let n = self.below(5);
        let step = if even { self.b.index(n) } else { self.index(0) };
        let [start, end, one] = [0, 1 + self.below(5), 1].map(|n| self.b.index(n));
        let acc = self.any(Scalar::F32);
        let f32 = Type::Scalar(Scalar::F32);
        let parameters = self.b.enter([Type::Scalar(Scalar::Usize), Type::Global, f32]);
        let at = |base, index| AccessPlace::Global {
            base,
            dims: smallvec![Dim { index, extent, stride: None }],
            within: None,
        };
        let body = self.scoped(|g| {
            let load = |g: &mut Self, place| {
                let op = Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None };
                g.b.scalar(op, Scalar::F32)
            };
            let p = parameters[1];
            let v = load(g, at(p, own));
            let mut sum = g.b.scalar(Op::Binary(Binary::Add, parameters[2], v), Scalar::F32);
            if g.below(3) == 0 {
                let v = load(g, at(p, other));
                sum = g.b.scalar(Op::Binary(Binary::Max, sum, v), Scalar::F32);
            }
            if g.below(2) == 0 {
                let place = at(p, own);
                g.b.effect(Op::Store { place, element: Scalar::F32, values: smallvec![sum], guard: None });
            }
            if g.below(3) == 0 {
                g.b.effect(Op::WarpSync);
            }
            let mut next = g.b.value(offset(p, step), Type::Global);
            if g.below(3) == 0 {
                let v = load(g, at(next, own));
                sum = g.b.scalar(Op::Binary(Binary::Min, sum, v), Scalar::F32);
            }
            if g.below(3) == 0 {
                let condition = g.b.scalar(Op::Compare(Comparison::Gt, sum, v), Scalar::Bool);
                let last = if g.below(2) == 0 { p } else { next };
                g.b.enter([]);
                let then = g.scoped(|g| g.b.effect(Op::Break(label, smallvec![last, sum])));
                g.b.enter([]);
                let otherwise = g.scoped(|_| {});
                g.b.effect(Op::If { condition, then, otherwise });
            }
            if g.below(2) == 0 {
                let condition = g.b.scalar(Op::Compare(Comparison::Lt, sum, v), Scalar::Bool);
                next = g.b.value(Op::Select { condition, yes: next, no: p }, Type::Global);
            }
            g.b.effect(Op::Yield(smallvec![next, sum]));
        });
        let unroll = self.one_of(&[Unroll::Auto, Unroll::Never]);
        let l = For { label, start, end, step: one, unroll, inits: smallvec![first, acc], body };
        let results = self.b.emit(Op::For(Box::new(l)), [Type::Global, f32]);
        self.scope.push((Scalar::F32, results[1]));
        if self.below(3) == 0 {
            let (place, values) = (at(results[0], own), smallvec![results[1]]);
            self.b.effect(Op::Store { place, element: Scalar::F32, values, guard: None });
        }
    }

    fn locals(&mut self) {
        let ty = self.one_of(&TYPES);
        let array = self.below(2);
        let local = self.local(ty, array);
        let n = self.below(4);
        let index = (array == 1).then(|| self.b.index(n));
        if self.below(2) == 0 {
            let v = self.b.scalar(Op::ReadLocal { local, index }, ty);
            self.scope.push((ty, v));
        } else {
            let value = self.any(ty);
            self.b.effect(Op::WriteLocal { local, index, value });
        }
    }

    /// Adds a float selected by a condition: in each branch a loaded one, an existing one, or
    /// another choice.
    fn choice(&mut self, depth: u32) -> Value {
        let condition = self.any(Scalar::Bool);
        let branch = |g: &mut Self| {
            g.b.enter([]);
            g.scoped(|g| {
                let v = match g.below(4) {
                    0 | 1 => {
                        let place = g.place(false);
                        let op = Op::Load { place, element: Scalar::F32, policy: CachePolicy::Coherent, guard: None };
                        g.b.scalar(op, Scalar::F32)
                    }
                    2 if depth > 0 => g.choice(depth - 1),
                    _ => g.any(Scalar::F32),
                };
                g.b.effect(Op::Yield(smallvec![v]));
            })
        };
        let (then, otherwise) = (branch(self), branch(self));
        self.b.scalar(Op::If { condition, then, otherwise }, Scalar::F32)
    }

    fn branch(&mut self) {
        let types = self.some_types();
        let condition = self.expression(Scalar::Bool);
        self.b.enter([]);
        let n = self.below(5);
        let then = self.scoped(|g| g.fill(n, &types));
        self.b.enter([]);
        let n = self.below(3);
        let otherwise = self.scoped(|g| g.fill(n, &types));
        let results = self.b.emit(Op::If { condition, then, otherwise }, Self::types(&types));
        self.scope.extend(types.into_iter().zip(results));
    }

    fn counted(&mut self) {
        let (label, types) = (self.label(), self.some_types());
        let constant = self.below(3) > 0;
        let unroll = if constant { self.one_of(&[Unroll::Auto, Unroll::Full, Unroll::Never]) } else { Unroll::Auto };
        let start = self.below(3);
        let start = self.b.index(start);
        let end = if constant {
            let n = self.below(7);
            self.b.index(n)
        } else {
            let v = self.any(Scalar::U32);
            let v = self.b.scalar(Op::Cast(v), Scalar::Usize);
            let mask = self.b.index(7);
            self.b.scalar(Op::Binary(Binary::And, v, mask), Scalar::Usize)
        };
        let step = 1 + self.below(2);
        let step = self.b.index(step);
        let inits = self.values(&types);
        let parameters = self.b.enter([Type::Scalar(Scalar::Usize)].into_iter().chain(Self::types(&types)));
        self.open.push((label, types.clone(), Some(types.clone())));
        let body = self.scoped(|g| {
            g.small.push(parameters[0]);
            g.scope.extend(types.iter().copied().zip(parameters.iter().skip(1).copied()));
            if unroll == Unroll::Full && g.below(2) == 0 {
                let ty = g.one_of(&TYPES);
                let (local, three) = (g.local(ty, 1), g.b.index(3));
                let index = Some(g.b.scalar(Op::Binary(Binary::And, parameters[0], three), Scalar::Usize));
                let value = g.any(ty);
                g.b.effect(Op::WriteLocal { local, index, value });
            }
            g.fill(5, &types);
        });
        self.open.pop();
        let l = For { label, start, end, step, unroll, inits, body };
        let results = self.b.emit(Op::For(Box::new(l)), Self::types(&types));
        self.scope.extend(types.into_iter().zip(results));
    }

    /// Adds a `loop` with a counter that breaks it.
    fn endless(&mut self) {
        let (label, leave, carried) = (self.label(), self.some_types(), self.some_types());
        let inits: Values = [self.b.constant(Scalar::U32, 0)].into_iter().chain(self.values(&carried)).collect();
        let types: Vec<Scalar> = [Scalar::U32].into_iter().chain(carried.iter().copied()).collect();
        let parameters = self.b.enter(Self::types(&types));
        let body = self.scoped(|g| {
            g.scope.extend(types.iter().copied().zip(parameters.iter().copied()).skip(1));
            let (limit, one) = (g.b.constant(Scalar::U32, 5), g.b.constant(Scalar::U32, 1));
            let over = g.b.compare(Comparison::Ge, parameters[0], limit);
            g.b.enter([]);
            let then = g.scoped(|g| {
                let values = g.values(&leave);
                g.b.effect(Op::Break(label, values));
            });
            g.b.enter([]);
            let otherwise = g.scoped(|_| {});
            g.b.effect(Op::If { condition: over, then, otherwise });
            let next = g.b.scalar(Op::Binary(Binary::WrappingAdd, parameters[0], one), Scalar::U32);
            // Only `Break` from inside: a `Continue` would have to count.
            g.open.push((label, leave.clone(), None));
            g.statements(4);
            g.open.pop();
            if !g.b.ended() {
                let values = [next].into_iter().chain(g.values(&carried)).collect();
                let op = if g.below(2) == 0 { Op::Yield(values) } else { Op::Continue(label, values) };
                g.b.effect(op);
            }
        });
        let results = self.b.emit(Op::Loop { label, inits, body }, Self::types(&leave));
        self.scope.extend(leave.into_iter().zip(results));
    }
}
