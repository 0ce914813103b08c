//! A simple interpreter of IR for one thread, with which the passes are compared.
//!
//! The interpreter evaluates operations itself. A mistake in `ir::eval`, which the passes use,
//! therefore shows as a difference.
//!
//! Global memory is a buffer for each address parameter, and shared memory another. All NaNs are
//! equal.

use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::half;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::ptx::inline::Effect;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The observable result of a run: stores in order (address, value), and how it ended.
#[derive(Debug, PartialEq)]
pub struct Trace {
    pub stores: Vec<(u64, u64)>,
    pub syncs: u32,
    pub report: Option<FirstReport>,
}

/// The first report of a failed check, which is the one that a launch keeps.
#[derive(Debug)]
pub struct FirstReport {
    state: u64,
    values: Vec<u64>,
}

impl PartialEq for FirstReport {
    /// Compares the values that both have. A report of several checks has as many values as the
    /// check with the most, and its reader ignores the others.
    fn eq(&self, other: &FirstReport) -> bool {
        self.state == other.state && self.values.iter().zip(&other.values).all(|(a, b)| a == b)
    }
}

/// Runs `kernel` with scalar parameters, thread index and memory contents that depend on `input`.
pub fn run(kernel: &Kernel, input: u64) -> Trace {
    run_with(kernel, input, None)
}

/// The values and instructions that a thread reaches, with the iterations of the enclosing loops,
/// outermost first.
#[derive(Default)]
pub struct Seen {
    /// Values at their definitions.
    pub values: HashMap<(Value, Vec<u32>), u64>,
    /// Instructions, by their address.
    pub reached: HashSet<(usize, Vec<u32>)>,
}

/// Runs the thread with the given indices, and returns what it reaches.
pub fn observe(kernel: &Kernel, input: u64, thread: [u32; 3]) -> Seen {
    let mut machine = Machine { thread: Some(thread), ..machine(kernel, input, None) };
    machine.region(&kernel.body);
    machine.seen
}

/// Runs a lane of a warp: the thread whose index along x is `lane`. The lane's stores are not read
/// back, not even by itself: the order of the 32 lanes' stores is unknown.
pub fn lane(kernel: &Kernel, input: u64, lane: u32) -> Seen {
    let mut machine = Machine { thread: Some([lane, 0, 0]), keeps: false, ..machine(kernel, input, None) };
    machine.region(&kernel.body);
    machine.seen
}

/// Runs `kernel`, with all scalar parameters equal to `scalar` if it is given.
pub fn run_with(kernel: &Kernel, input: u64, scalar: Option<u64>) -> Trace {
    let mut machine = machine(kernel, input, scalar);
    machine.region(&kernel.body);
    machine.trace
}

fn machine(kernel: &Kernel, input: u64, scalar: Option<u64>) -> Machine<'_> {
    Machine {
        kernel,
        input,
        scalar,
        values: vec![None; kernel.values.len()],
        locals: kernel.locals.iter().map(|l| vec![0; l.len as usize]).collect(),
        memory: HashMap::new(),
        dynamic: kernel.dynamic_offset().into(),
        trace: Trace { stores: vec![], syncs: 0, report: None },
        steps: 0,
        keeps: true,
        thread: None,
        iterations: Vec::new(),
        seen: Seen::default(),
    }
}

/// The value of parameter `i` that is an extent or stride, and of a scalar.
pub const EXTENT: u64 = 4096;
pub const STRIDE: u64 = 37;
const SHARED: u64 = 0;

enum Completion {
    Yield(Vec<u64>),
    Break(Label, Vec<u64>),
    Continue(Label, Vec<u64>),
    Return,
}

struct Machine<'k> {
    kernel: &'k Kernel,
    input: u64,
    scalar: Option<u64>,
    values: Vec<Option<u64>>,
    locals: Vec<Vec<u64>>,
    memory: HashMap<u64, u64>,
    /// The address of the next array of dynamic size.
    dynamic: u64,
    trace: Trace,
    steps: u64,
    /// Whether stored values can be loaded.
    keeps: bool,
    /// The thread that is observed.
    thread: Option<[u32; 3]>,
    iterations: Vec<u32>,
    seen: Seen,
}

/// Returns the one NaN for all.
fn one_nan(ty: Scalar, bits: u64) -> u64 {
    match ty {
        Scalar::F32 if f32::from_bits(bits as u32).is_nan() => 0x7fc0_0000,
        Scalar::F64 if f64::from_bits(bits).is_nan() => 0x7ff8_0000_0000_0000,
        _ => bits,
    }
}

macro_rules! int_ops {
    ($t:ty, $op:expr, $a:expr, $b:expr) => {{
        let (a, b, s) = ($a as $t, $b as $t, $b as u32);
        let out = match $op {
            Binary::Add | Binary::WrappingAdd => a.wrapping_add(b),
            Binary::Sub | Binary::WrappingSub => a.wrapping_sub(b),
            Binary::Mul | Binary::WrappingMul => a.wrapping_mul(b),
            Binary::Div => a / b,
            Binary::Rem => a % b,
            Binary::Min => a.min(b),
            Binary::Max => a.max(b),
            Binary::And => a & b,
            Binary::Or => a | b,
            Binary::Xor => a ^ b,
            Binary::Shl | Binary::WrappingShl => a.wrapping_shl(s),
            Binary::Shr | Binary::WrappingShr => a.wrapping_shr(s),
            Binary::RotateLeft => a.rotate_left(s),
        };
        out as u64
    }};
}

macro_rules! float_ops {
    ($op:expr, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        match $op {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::Rem => a % b,
            Binary::Min if a.is_nan() => b,
            Binary::Min if b.is_nan() => a,
            Binary::Min if a == b && a.is_sign_negative() => a,
            Binary::Min if a == b => b,
            Binary::Min => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            Binary::Max if a.is_nan() => b,
            Binary::Max if b.is_nan() => a,
            Binary::Max if a == b && a.is_sign_negative() => b,
            Binary::Max if a == b => a,
            Binary::Max => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            other => panic!("{other:?} of floats"),
        }
    }};
}

macro_rules! float_unary {
    ($op:expr, $a:expr) => {
        match $op {
            Unary::Neg => -$a,
            Unary::Abs => $a.abs(),
            Unary::Sqrt => $a.sqrt(),
            Unary::Floor => $a.floor(),
            Unary::Ceil => $a.ceil(),
            Unary::Trunc => $a.trunc(),
            Unary::RoundEven => $a.round_ties_even(),
            other => panic!("{other:?} of floats"),
        }
    };
}

macro_rules! int_unary {
    ($t:ty, $op:expr, $a:expr, $abs:expr) => {{
        let a = $a as $t;
        match $op {
            Unary::Neg => a.wrapping_neg() as u64,
            Unary::Not => !a as u64,
            Unary::Abs => $abs(a) as u64,
            Unary::CountOnes => a.count_ones() as u64,
            Unary::LeadingZeros => a.leading_zeros() as u64,
            Unary::ReverseBits => a.reverse_bits() as u64,
            Unary::SwapBytes => a.swap_bytes() as u64,
            other => panic!("{other:?} of integers"),
        }
    }};
}

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn binary(op: Binary, ty: Scalar, a: u64, b: u64) -> u64 {
    ty.mask()
        & match ty {
            Scalar::Bool => match op {
                Binary::And => a & b,
                Binary::Or => a | b,
                Binary::Xor => a ^ b,
                other => panic!("{other:?} of bool"),
            },
            Scalar::I8 => int_ops!(i8, op, a, b),
            Scalar::I16 => int_ops!(i16, op, a, b),
            Scalar::I32 => int_ops!(i32, op, a, b),
            Scalar::I64 => int_ops!(i64, op, a, b),
            Scalar::U8 => int_ops!(u8, op, a, b),
            Scalar::U16 => int_ops!(u16, op, a, b),
            Scalar::U32 => int_ops!(u32, op, a, b),
            Scalar::U64 => int_ops!(u64, op, a, b),
            Scalar::Usize => int_ops!(u32, op, a, b),
            Scalar::F32 => u64::from(float_ops!(op, f(a), f(b)).to_bits()),
            Scalar::F64 => float_ops!(op, d(a), d(b)).to_bits(),
            Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) | Scalar::U128 => panic!("{op:?} of {ty}"),
        }
}

fn unary(op: Unary, ty: Scalar, a: u64) -> u64 {
    match ty {
        Scalar::Bool => a ^ 1,
        Scalar::I8 => int_unary!(i8, op, a, i8::wrapping_abs) & 0xff,
        Scalar::I16 => int_unary!(i16, op, a, i16::wrapping_abs) & 0xffff,
        Scalar::I32 => int_unary!(i32, op, a, i32::wrapping_abs) & 0xffff_ffff,
        Scalar::I64 => int_unary!(i64, op, a, i64::wrapping_abs),
        Scalar::U8 => int_unary!(u8, op, a, std::convert::identity) & 0xff,
        Scalar::U16 => int_unary!(u16, op, a, std::convert::identity) & 0xffff,
        Scalar::U32 | Scalar::Usize => int_unary!(u32, op, a, std::convert::identity),
        Scalar::U64 => int_unary!(u64, op, a, std::convert::identity),
        Scalar::F32 => u64::from(float_unary!(op, f(a)).to_bits()),
        Scalar::F64 => float_unary!(op, d(a)).to_bits(),
        Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) | Scalar::U128 => panic!("{op:?} of {ty}"),
    }
}

fn compare(op: Comparison, ty: Scalar, a: u64, b: u64) -> bool {
    macro_rules! by {
        ($a:expr, $b:expr) => {{
            let (a, b) = ($a, $b);
            match op {
                Comparison::Eq => a == b,
                Comparison::Ne => a != b,
                Comparison::Lt => a < b,
                Comparison::Le => a <= b,
                Comparison::Gt => a > b,
                Comparison::Ge => a >= b,
            }
        }};
    }
    match ty {
        Scalar::I8 => by!(a as i8, b as i8),
        Scalar::I16 => by!(a as i16, b as i16),
        Scalar::I32 => by!(a as i32, b as i32),
        Scalar::I64 => by!(a as i64, b as i64),
        Scalar::F32 => by!(f(a), f(b)),
        Scalar::F64 => by!(d(a), d(b)),
        _ => by!(a, b),
    }
}

fn cast(from: Scalar, to: Scalar, a: u64) -> u64 {
    macro_rules! into {
        ($x:expr) => {{
            let x = $x;
            match to {
                Scalar::Bool | Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) | Scalar::U128 => panic!("cast to {to}"),
                Scalar::I8 => x as i8 as u8 as u64,
                Scalar::I16 => x as i16 as u16 as u64,
                Scalar::I32 => x as i32 as u32 as u64,
                Scalar::I64 => x as i64 as u64,
                Scalar::U8 => x as u8 as u64,
                Scalar::U16 => x as u16 as u64,
                Scalar::U32 | Scalar::Usize => x as u32 as u64,
                Scalar::U64 => x as u64,
                Scalar::F32 => (x as f32).to_bits() as u64,
                Scalar::F64 => (x as f64).to_bits(),
            }
        }};
    }
    match from {
        Scalar::F16 if to == Scalar::F32 => u64::from(half::f16_to_f32(a as u16).to_bits()),
        Scalar::F32 if to == Scalar::F16 => u64::from(half::f16_from_f32(f(a))),
        Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) | Scalar::U128 => panic!("cast from {from} to {to}"),
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::Usize | Scalar::U64 if to == from => a,
        Scalar::Bool | Scalar::U8 => into!(a as u8),
        Scalar::U16 => into!(a as u16),
        Scalar::U32 | Scalar::Usize => into!(a as u32),
        Scalar::U64 => into!(a),
        Scalar::I8 => into!(a as i8),
        Scalar::I16 => into!(a as i16),
        Scalar::I32 => into!(a as i32),
        Scalar::I64 => into!(a as i64),
        Scalar::F32 => into!(f(a)),
        Scalar::F64 => into!(d(a)),
    }
}

impl Machine<'_> {
    fn keep(&mut self, at: u64, bits: u64) {
        if self.keeps {
            self.memory.insert(at, bits);
        }
    }

    fn get(&self, v: Value) -> u64 {
        self.values[v.0 as usize].unwrap_or_else(|| panic!("{v} has no value"))
    }

    fn all(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|v| self.get(*v)).collect()
    }

    fn set(&mut self, values: &[Value], bits: &[u64]) {
        assert_eq!(values.len(), bits.len());
        for (v, b) in values.iter().zip(bits) {
            let b = self.kernel.ty(*v).scalar().map_or(*b, |ty| one_nan(ty, *b));
            self.values[v.0 as usize] = Some(b);
            if self.thread.is_some() {
                self.seen.values.insert((*v, self.iterations.clone()), b);
            }
        }
    }

    /// Returns the thread's index in its warp.
    fn lane_index(&self) -> u64 {
        let [x, y, _] = self.kernel.block.max_extents().map(u64::from);
        let [a, b, c] = self.thread.unwrap_or([5 + self.input as u32, 0, 0]).map(u64::from);
        (a + x * (b + y * c)) % 32
    }

    fn scalar(&self, v: Value) -> Scalar {
        self.kernel.ty(v).scalar().expect("a scalar")
    }

    fn address(&self, place: &AccessPlace, element: Scalar) -> u64 {
        let bytes = place.element_offset().map_or(element.bytes(), |w| w.bytes);
        let inside = place.element_offset().map_or(0, |w| {
            let steps = w.indices.iter().map(|s| self.get(s.index) * u64::from(s.bytes));
            u64::from(w.offset) + steps.sum::<u64>()
        });
        match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                let index: u64 = dims.iter().map(|d| self.get(d.index) * d.stride.map_or(1, |s| self.get(s))).sum();
                self.get(*base) + index * u64::from(bytes) + inside
            }
            AccessPlace::Shared { array, indices, .. } => {
                let array = &self.kernel.shared[array.0 as usize];
                let index: u64 = indices.iter().zip(&array.strides).map(|(i, s)| self.get(*i) * u64::from(*s)).sum();
                let mut byte = index * u64::from(bytes) + inside;
                if let SharedLayout::Swizzled(Swizzle { mask, shift }) = array.layout {
                    let row = self.get(indices[indices.len() - 2]);
                    byte ^= ((row >> shift) & u64::from(mask)) << 4;
                }
                SHARED + u64::from(array.offset) + byte
            }
            AccessPlace::Address { base, offset } => self.get(*base).wrapping_add_signed(i64::from(*offset)),
        }
    }

    /// Loads an element. An address that was never stored to has a number computed from the
    /// address, sometimes a special one.
    fn load(&self, address: u64, element: Scalar) -> u64 {
        let fresh = || {
            let mixed = (address + (self.input << 50)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let special = [-0.0f32, 0.0, 1.0, f32::INFINITY, 1e-41, f32::NAN, f32::MIN, -1.0];
            match element {
                Scalar::F32 if mixed & 3 == 0 => u64::from(special[(mixed >> 2 & 7) as usize].to_bits()),
                Scalar::F32 => u64::from((mixed as i32 as f32 / 65536.0).to_bits()),
                Scalar::F64 => (mixed as i32 as f64 / 65536.0).to_bits(),
                _ => mixed & element.mask(),
            }
        };
        self.memory.get(&address).copied().unwrap_or_else(fresh)
    }

    fn region(&mut self, region: &Region) -> Completion {
        for inst in &region.insts {
            self.steps += 1;
            assert!(self.steps < 5_000_000, "the program does not end");
            if self.thread.is_some() {
                self.seen.reached.insert((std::ptr::from_ref(inst).addr(), self.iterations.clone()));
            }
            if let Some(flow) = self.inst(inst) {
                return flow;
            }
        }
        panic!("a region without end")
    }

    fn inst(&mut self, inst: &Inst) -> Option<Completion> {
        let get = |v: &Value| self.get(*v);
        let out = inst.results.first().map(|r| self.kernel.ty(*r));
        let ty = out.and_then(Type::scalar).unwrap_or(Scalar::U64);
        let result = match &inst.op {
            Op::Constant(bits) => *bits,
            Op::Parameter(i) => match self.kernel.parameters[*i as usize].role {
                Role::Address { .. } => (u64::from(*i) + 1) << 40,
                Role::Extent(_) => EXTENT,
                Role::Stride(_) => STRIDE,
                Role::Value(_) if self.scalar.is_some() => self.scalar.unwrap_or(0),
                Role::Value(Scalar::F32) => u64::from((1.5f32 + *i as f32 - 7.0 * self.input as f32).to_bits()),
                Role::Value(_) => (u64::from(*i) + 3 * self.input) & ty.mask(),
            },
            Op::Table(_) => panic!("no kernel of these tests has tables"),
            Op::Special(s) => match s {
                Special::Thread(a) if self.thread.is_some_and(|t| usize::from(*a) < t.len()) => {
                    u64::from(self.thread.unwrap_or_default()[usize::from(*a)])
                }
                Special::Thread(a) => 5 + u64::from(*a) + self.input,
                Special::Block(a) => 2 + u64::from(*a),
                Special::Grid(_) => 9,
                Special::BlockDim(a) => u64::from(self.kernel.block.max_extents()[usize::from(*a)]),
            },
            Op::Unary(o, a) => unary(*o, self.scalar(*a), get(a)),
            Op::Binary(o, a, b) => binary(*o, ty, get(a), get(b)),
            Op::MulAdd(a, b, c) if ty == Scalar::F32 => u64::from(f(get(a)).mul_add(f(get(b)), f(get(c))).to_bits()),
            Op::MulAdd(a, b, c) => d(get(a)).mul_add(d(get(b)), d(get(c))).to_bits(),
            Op::Approximate(what, a) => u64::from(what.stand_in(f(get(a))).to_bits()),
            Op::Bits(what, operands) => {
                let (types, bits): (Vec<_>, Vec<_>) = operands.iter().map(|v| (self.scalar(*v), get(v))).unzip();
                what.evaluate(&types, &bits).expect("operands that it takes")
            }
            Op::Compare(o, a, b) => u64::from(compare(*o, self.scalar(*a), get(a), get(b))),
            Op::Select { condition, yes, no } => {
                if get(condition) != 0 {
                    get(yes)
                } else {
                    get(no)
                }
            }
            Op::Cast(a) => cast(self.scalar(*a), ty, get(a)),
            Op::Bitcast(a) => get(a),
            Op::Dynamic { array, extents } => {
                let element = self.kernel.dynamic[array.0 as usize].element;
                let bytes = extents.iter().map(get).product::<u64>() * u64::from(element.bytes());
                let start = self.dynamic;
                self.dynamic += bytes.next_multiple_of(16);
                start
            }
            Op::MarkUndef { .. } | Op::LifetimeStart(_) | Op::DbgValue { .. } => return None,
            Op::Offset { base, terms, bytes } => {
                let index: u64 = terms.iter().map(|(i, s)| get(i) * s.map_or(1, |s| self.get(s))).sum();
                let moved = get(base) + index * u64::from(*bytes);
                if out == Some(Type::Shared) { moved & 0xffff_ffff } else { moved }
            }
            Op::Load { place, element, guard, .. } => {
                let bits = match guard {
                    Some(g) if self.get(g.condition) == 0 => self.all(&g.otherwise),
                    _ => {
                        let first = self.address(place, *element);
                        let at = |k: usize| first + k as u64 * u64::from(element.bytes());
                        (0..inst.results.len()).map(|k| self.load(at(k), *element)).collect()
                    }
                };
                self.set(&inst.results, &bits);
                return None;
            }
            Op::Store { place, element, values, guard } => {
                if guard.is_none_or(|g| self.get(g) != 0) {
                    let first = self.address(place, *element);
                    for (k, v) in values.iter().enumerate() {
                        let (at, bits) = (first + k as u64 * u64::from(element.bytes()), self.get(*v));
                        self.trace.stores.push((at, bits));
                        self.keep(at, bits);
                    }
                }
                return None;
            }
            Op::Atomic { operation, place, element, values } => {
                let at = self.address(place, *element);
                let (before, operand) = (self.load(at, *element), values.first().map_or(0, get));
                let combined = |op| binary(op, *element, before, operand);
                let after = match operation {
                    AtomicOperator::Add if element.is_float() => combined(Binary::Add),
                    AtomicOperator::Add => combined(Binary::WrappingAdd),
                    AtomicOperator::Min => combined(Binary::Min),
                    AtomicOperator::Max => combined(Binary::Max),
                    AtomicOperator::And => combined(Binary::And),
                    AtomicOperator::Or => combined(Binary::Or),
                    AtomicOperator::Xor => combined(Binary::Xor),
                    AtomicOperator::Exchange | AtomicOperator::Store => operand,
                    AtomicOperator::Load => before,
                    AtomicOperator::CompareExchange if before == operand => get(&values[1]),
                    AtomicOperator::CompareExchange => before,
                };
                self.trace.stores.push((at, after));
                self.keep(at, after);
                if !inst.results.is_empty() {
                    self.set(&inst.results, &[before]);
                }
                return None;
            }
            Op::ReadLocal { local, index } => self.locals[local.0 as usize][index.map_or(0, |i| self.get(i)) as usize],
            Op::WriteLocal { local, index, value } => {
                let (index, value) = (index.map_or(0, |i| self.get(i)), get(value));
                self.locals[local.0 as usize][index as usize] = value;
                return None;
            }
            // An arbitrary function of the inputs. Queries of the machine are ordered, and return
            // their number in that order.
            Op::Inline { code, inputs } => {
                if code.effect() == Effect::Machine {
                    self.trace.syncs += 1;
                }
                let from = match code.effect() {
                    Effect::None => 0,
                    Effect::Thread => self.lane_index(),
                    Effect::Machine => u64::from(self.trace.syncs),
                };
                let mut hash = DefaultHasher::new();
                (&code.source().text, from, self.all(inputs)).hash(&mut hash);
                let results: Vec<u64> = (0..inst.results.len() as u64)
                    .map(|i| hash.finish().wrapping_mul(2 * i + 1) & u64::from(u32::MAX))
                    .collect();
                self.set(&inst.results, &results);
                return None;
            }
            Op::GridSync | Op::BlockSync | Op::WarpSync | Op::Fence(_) => {
                self.trace.syncs += 1;
                return None;
            }
            Op::CopyAsync(_) | Op::CopyCommit | Op::CopyWait(_) => panic!("no example copies ahead"),
            // The passes drop it or keep it as a trap: no generated kernel has one.
            Op::Panic { .. } => panic!("no example fails an assertion"),
            // Logs are recorded as stores at addresses outside of memory.
            Op::Log { format, values } => {
                let mut hash = DefaultHasher::new();
                format.hash(&mut hash);
                let values: Vec<_> = values.iter().map(get).collect();
                self.trace.stores.extend(values.into_iter().map(|v| (1 << 63 | hash.finish(), v)));
                return None;
            }
            Op::RecordViolation { state, values, .. } => {
                let report = FirstReport { state: get(state), values: values.iter().map(get).collect() };
                self.trace.report.get_or_insert(report);
                return None;
            }
            Op::Shuffle { value, .. } => get(value),
            Op::Vote { value, .. } | Op::Match(value) | Op::Reduce(_, value) => get(value),
            Op::Yield(values) => return Some(Completion::Yield(self.all(values))),
            Op::Break(l, values) => return Some(Completion::Break(*l, self.all(values))),
            Op::Continue(l, values) => return Some(Completion::Continue(*l, self.all(values))),
            Op::Return => return Some(Completion::Return),
            Op::If { condition, then, otherwise } => {
                let taken = if get(condition) != 0 { then } else { otherwise };
                return match self.region(taken) {
                    Completion::Yield(bits) => {
                        self.set(&inst.results, &bits);
                        None
                    }
                    flow => Some(flow),
                };
            }
            Op::For(l) => return self.counted(l, inst),
            Op::Loop { label, inits, body } => {
                let mut carried = self.all(inits);
                for iteration in 0.. {
                    self.iterations.push(iteration);
                    self.set(&body.parameters, &carried);
                    let flow = self.region(body);
                    self.iterations.pop();
                    match flow {
                        Completion::Yield(next) => carried = next,
                        Completion::Continue(l, next) if l == *label => carried = next,
                        Completion::Break(l, bits) if l == *label => {
                            self.set(&inst.results, &bits);
                            return None;
                        }
                        flow => return Some(flow),
                    }
                }
                unreachable!("a loop ends with its last iteration")
            }
            Op::Block { label, body } => {
                return match self.region(body) {
                    Completion::Yield(bits) => {
                        self.set(&inst.results, &bits);
                        None
                    }
                    Completion::Break(l, bits) if l == *label => {
                        self.set(&inst.results, &bits);
                        None
                    }
                    flow => Some(flow),
                };
            }
        };
        self.set(&inst.results, &[result]);
        None
    }

    fn counted(&mut self, l: &For, inst: &Inst) -> Option<Completion> {
        let ty = self.scalar(l.start);
        let (mut index, end, step) = (self.get(l.start), self.get(l.end), self.get(l.step));
        let mut carried = self.all(&l.inits);
        let mut iteration = 0;
        while compare(Comparison::Lt, ty, index, end) {
            self.iterations.push(iteration);
            iteration += 1;
            self.set(&l.body.parameters[..1], &[index]);
            self.set(&l.body.parameters[1..], &carried);
            let flow = self.region(&l.body);
            self.iterations.pop();
            match flow {
                Completion::Yield(next) => carried = next,
                Completion::Continue(label, next) if label == l.label => carried = next,
                Completion::Break(label, bits) if label == l.label => {
                    self.set(&inst.results, &bits);
                    return None;
                }
                flow => return Some(flow),
            }
            index = binary(Binary::Add, ty, index, step);
        }
        self.set(&inst.results, &carried);
        None
    }
}
