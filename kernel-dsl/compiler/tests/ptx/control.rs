//! Tests of control flow and of registers shared by carried values. Random structured kernels run
//! as IR and as the emitted PTX, by two small interpreters, and must store the same.

use super::ptx_support;
use kernel_dsl_compiler::emit::emit;
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::ptx::{self, Modifier, Opcode, Operand, Statement};
use kernel_dsl_compiler::{Scalar, Target, passes};
use std::collections::HashMap;

const U32: Type = Type::Scalar(Scalar::U32);
const BOOL: Type = Type::Scalar(Scalar::Bool);

fn kernel() -> Kernel {
    Kernel {
        name: "k".into(),
        rust_name: "k".into(),
        instance: "k".into(),
        target: Target::SM_61,
        block: BlockExtents::fixed([32, 1, 1]),
        min_blocks: None,
        max_registers: None,
        parameters: vec![
            Parameter {
                name: "out".into(),
                argument: 0,
                role: Role::Address { element: Scalar::U32.into(), mutable: true },
            },
            Parameter { name: "n".into(), argument: 1, role: Role::Value(Scalar::U32) },
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

/// The value of the parameter `n` in these runs.
const N: u64 = 3;

/// The way in which control left a region.
enum Left {
    Yield(Vec<u64>),
    Break(Label, Vec<u64>),
    Continue(Label, Vec<u64>),
    Return,
}

/// An interpreter of IR for one thread, according to the IR's documentation.
struct Ir {
    values: Vec<u64>,
    stores: Vec<u64>,
    /// The number of regions that may still be entered.
    fuel: u32,
}

impl Ir {
    fn set(&mut self, values: &[Value], to: &[u64]) {
        values.iter().zip(to).for_each(|(v, x)| self.values[v.0 as usize] = *x);
    }

    fn get(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|v| self.values[v.0 as usize]).collect()
    }

    fn region(&mut self, region: &Region, parameters: &[u64]) -> Left {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return Left::Return;
        }
        self.set(&region.parameters, parameters);
        for inst in &region.insts {
            match &inst.op {
                Op::Yield(v) => return Left::Yield(self.get(v)),
                Op::Break(l, v) => return Left::Break(*l, self.get(v)),
                Op::Continue(l, v) => return Left::Continue(*l, self.get(v)),
                Op::Return => return Left::Return,
                _ => {
                    let results = match self.instruction(inst) {
                        Ok(results) => results,
                        Err(left) => return left,
                    };
                    self.set(&inst.results, &results);
                }
            }
        }
        unreachable!("a region ends with a terminator")
    }

    fn instruction(&mut self, inst: &Inst) -> Result<Vec<u64>, Left> {
        let v = |x: &Value| self.values[x.0 as usize];
        let u32_of = |x: u64| u64::from(x as u32);
        Ok(match &inst.op {
            Op::Constant(bits) => vec![*bits],
            Op::Parameter(i) => vec![if *i == 1 { N } else { 0 }],
            Op::Cast(a) => vec![v(a)],
            Op::Unary(Unary::Not, a) => vec![1 - v(a)],
            Op::Binary(op, a, b) => {
                let (a, b) = (v(a), v(b));
                vec![u32_of(match op {
                    Binary::Add => a + b,
                    Binary::Mul => a.wrapping_mul(b),
                    Binary::And => a & b,
                    Binary::Xor => a ^ b,
                    _ => unreachable!(),
                })]
            }
            Op::Compare(c, a, b) => {
                let (a, b) = (v(a), v(b));
                vec![u64::from(if *c == Comparison::Lt { a < b } else { a == b })]
            }
            Op::Select { condition, yes, no } => vec![if v(condition) != 0 { v(yes) } else { v(no) }],
            Op::Store { values, .. } => {
                let stored = self.get(values);
                self.stores.extend(stored);
                vec![]
            }
            Op::If { condition, then, otherwise } => {
                let side = if v(condition) != 0 { then } else { otherwise };
                match self.region(side, &[]) {
                    Left::Yield(v) => v,
                    left => return Err(left),
                }
            }
            Op::For(l) => {
                let (mut index, end, step) = (v(&l.start), v(&l.end), v(&l.step));
                let mut carried = self.get(&l.inits);
                while index < end {
                    let parameters: Vec<u64> = [index].into_iter().chain(carried).collect();
                    match self.region(&l.body, &parameters) {
                        Left::Yield(v) => carried = v,
                        Left::Continue(label, v) if label == l.label => carried = v,
                        Left::Break(label, v) if label == l.label => return Ok(v),
                        left => return Err(left),
                    }
                    index = u32_of(index + step);
                }
                carried
            }
            Op::Loop { label: this, inits, body } => {
                let mut carried = self.get(inits);
                loop {
                    match self.region(body, &carried) {
                        Left::Yield(v) => carried = v,
                        Left::Continue(label, v) if label == *this => carried = v,
                        Left::Break(label, v) if label == *this => return Ok(v),
                        left => return Err(left),
                    }
                }
            }
            Op::Block { label: this, body } => match self.region(body, &[]) {
                Left::Yield(v) => v,
                Left::Break(label, v) if label == *this => v,
                left => return Err(left),
            },
            op => unreachable!("{op:?}"),
        })
    }
}

/// Returns the kernel's stores; `None` if it does not end soon.
fn run_ir(kernel: &Kernel) -> Option<Vec<u64>> {
    let mut ir = Ir { values: vec![0; kernel.values.len()], stores: vec![], fuel: 5000 };
    ir.region(&kernel.body, &[]);
    (ir.fuel > 0).then_some(ir.stores)
}

/// Runs the PTX of one thread, in the subset that these kernels use.
fn run_ptx(module: &ptx::Module) -> Vec<u64> {
    let entry = module.entries().next().expect("it has one");
    let body = entry.statements();
    let labels: HashMap<ptx::Label, usize> = body
        .iter()
        .enumerate()
        .filter_map(|(i, s)| if let Statement::Label(l) = s { Some((*l, i)) } else { None })
        .collect();
    let mut registers: HashMap<ptx::RegisterId, u64> = HashMap::new();
    let mut stores = Vec::new();
    let mut at = 0;
    let mut fuel = 1_000_000;
    while at < body.len() {
        fuel -= 1;
        assert!(fuel > 0, "the kernel does not end");
        let statement = &body[at];
        at += 1;
        let Statement::Instruction(i) = statement else { continue };
        // A register that was never written reads as a conspicuous value.
        let read = |o: &Operand| match o {
            Operand::Register(r) => registers.get(r).copied().unwrap_or(0xdead),
            Operand::Not(r) => 1 - registers.get(r).copied().unwrap_or(0),
            Operand::Integer(n) => u64::from(*n as u32),
            Operand::Bits(n) => *n,
            o => unreachable!("{o:?}"),
        };
        if i.guard.is_some_and(|g| (registers.get(&g.register) == Some(&1)) == g.negated) {
            continue;
        }
        let o = &i.operands;
        let has = |m: Modifier| i.modifiers.contains(&m);
        let result = match i.opcode {
            Opcode::Ret => break,
            Opcode::Bra => {
                let Operand::Label(l) = &o[0] else { unreachable!() };
                at = labels[l];
                continue;
            }
            Opcode::St => {
                stores.push(read(&o[1]));
                continue;
            }
            Opcode::Ld => {
                if has(Modifier::U32) {
                    N
                } else {
                    0
                }
            }
            Opcode::Cvta | Opcode::Mov => read(&o[1]),
            Opcode::Add => u64::from((read(&o[1]) + read(&o[2])) as u32),
            Opcode::Mul => u64::from(read(&o[1]).wrapping_mul(read(&o[2])) as u32),
            Opcode::And => read(&o[1]) & read(&o[2]),
            Opcode::Or => read(&o[1]) | read(&o[2]),
            Opcode::Xor => read(&o[1]) ^ read(&o[2]),
            Opcode::Not => 1 - read(&o[1]),
            Opcode::Selp => {
                if read(&o[3]) != 0 {
                    read(&o[1])
                } else {
                    read(&o[2])
                }
            }
            Opcode::Setp => {
                let (a, b) = (read(&o[1]), read(&o[2]));
                u64::from(match i.modifiers[0] {
                    Modifier::Lt => a < b,
                    Modifier::Ge => a >= b,
                    Modifier::Eq => a == b,
                    m => unreachable!("{m:?}"),
                })
            }
            opcode => unreachable!("{opcode:?}"),
        };
        let Operand::Register(d) = o[0] else { unreachable!() };
        registers.insert(d, result);
    }
    stores
}

/// A generator of random numbers (xorshift), so that a failing kernel can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// A construct that code can leave, and the values that a jump must carry.
#[derive(Clone)]
struct Enclosing {
    label: Label,
    leaves_with: Vec<Type>,
    /// For a loop: the carried types and, for an endless one, the counter that must be the first of
    /// them.
    continues_with: Option<(Vec<Type>, Option<Value>)>,
}

struct Generator {
    random: Random,
    b: Builder,
    out: Value,
    labels: u32,
    budget: i32,
}

impl Generator {
    fn kernel(seed: u64) -> Kernel {
        let mut b = Builder::new(kernel());
        let out = b.value(Op::Parameter(0), Type::Global);
        let n = b.value(Op::Parameter(1), U32);
        let mut g = Generator { random: Random(seed * 0x9e37_79b9 + 1), b, out, labels: 0, budget: 40 };
        let mut scope = vec![n];
        g.statements(&mut scope, &[], 0);
        if !g.b.ended() {
            for v in scope.clone() {
                g.store(v);
            }
        }
        g.b.finish()
    }

    fn ty(&mut self) -> Type {
        if self.random.below(4) == 0 { BOOL } else { U32 }
    }

    fn types(&mut self) -> Vec<Type> {
        (0..self.random.below(4)).map(|_| self.ty()).collect()
    }

    /// Returns a value of type `ty`: one in scope, preferably a recent one, or a constant.
    fn pick(&mut self, scope: &[Value], ty: Type) -> Value {
        let fitting: Vec<Value> = scope.iter().copied().filter(|v| self.b.kernel.ty(*v) == ty).collect();
        if fitting.is_empty() || self.random.below(8) == 0 {
            let bits = self.random.below(if ty == BOOL { 2 } else { 6 }) as u64;
            return self.b.value(Op::Constant(bits), ty);
        }
        let window = [1, 3, 6, fitting.len()][self.random.below(4)];
        let back = self.random.below(fitting.len().min(window));
        fitting[fitting.len() - 1 - back]
    }

    fn picks(&mut self, scope: &[Value], types: &[Type]) -> Values {
        types.iter().map(|t| self.pick(scope, *t)).collect()
    }

    fn store(&mut self, value: Value) {
        let element = self.b.kernel.ty(value).scalar().unwrap();
        let place = AccessPlace::Address { base: self.out, offset: 0 };
        self.b.effect(Op::Store { place, element, values: [value].into_iter().collect(), guard: None });
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// Adds some statements, which may end in a jump.
    fn statements(&mut self, scope: &mut Vec<Value>, enclosing: &[Enclosing], depth: u32) {
        for _ in 0..1 + self.random.below(6) {
            self.budget -= 1;
            match self.random.below(if depth < 4 && self.budget > 0 { 14 } else { 8 }) {
                0..4 => {
                    let op = [Binary::Add, Binary::Xor, Binary::Mul, Binary::Add][self.random.below(4)];
                    let (a, b) = (self.pick(scope, U32), self.pick(scope, U32));
                    let v = self.b.value(Op::Binary(op, a, b), U32);
                    scope.push(v);
                }
                4 => {
                    let comparison = [Comparison::Lt, Comparison::Eq][self.random.below(2)];
                    let (a, b) = (self.pick(scope, U32), self.pick(scope, U32));
                    let v = self.b.compare(comparison, a, b);
                    scope.push(v);
                }
                5 => {
                    let ty = self.ty();
                    let (condition, yes, no) = (self.pick(scope, BOOL), self.pick(scope, ty), self.pick(scope, ty));
                    let v = self.b.value(Op::Select { condition, yes, no }, ty);
                    scope.push(v);
                }
                6 => {
                    let ty = self.ty();
                    let v = self.pick(scope, ty);
                    self.store(v);
                }
                7 => {
                    let v = self.pick(scope, U32);
                    let v = self.b.scalar(Op::Cast(v), Scalar::U32);
                    scope.push(v);
                }
                8..10 => self.branch(scope, enclosing, depth),
                10..12 => self.counted(scope, enclosing, depth),
                12 => self.endless(scope, enclosing, depth),
                _ => self.block(scope, enclosing, depth),
            }
        }
        // Occasionally leave from here.
        if depth > 0 && self.random.below(5) == 0 {
            self.jump(scope, enclosing);
        }
    }

    fn jump(&mut self, scope: &[Value], enclosing: &[Enclosing]) {
        if enclosing.is_empty() || self.random.below(12) == 0 {
            return self.b.effect(Op::Return);
        }
        let to = enclosing[self.random.below(enclosing.len())].clone();
        match to.continues_with {
            Some((types, count)) if self.random.below(2) == 0 => {
                let mut values = self.picks(scope, &types);
                if let Some(count) = count {
                    values[0] = count;
                }
                self.b.effect(Op::Continue(to.label, values));
            }
            _ => {
                let values = self.picks(scope, &to.leaves_with);
                self.b.effect(Op::Break(to.label, values));
            }
        }
    }

    /// Returns a region of statements that ends by yielding values of `types`, unless it jumps.
    fn region(
        &mut self,
        parameters: &[Type],
        types: &[Type],
        scope: &[Value],
        enclosing: &[Enclosing],
        depth: u32,
    ) -> Region {
        let entered = self.b.enter(parameters.iter().copied());
        let mut inner = scope.to_vec();
        inner.extend(entered);
        self.statements(&mut inner, enclosing, depth + 1);
        if !self.b.ended() {
            let values = self.picks(&inner, types);
            self.b.effect(Op::Yield(values));
        }
        self.b.leave()
    }

    fn branch(&mut self, scope: &mut Vec<Value>, enclosing: &[Enclosing], depth: u32) {
        let condition = self.pick(scope, BOOL);
        let types = self.types();
        let then = self.region(&[], &types, scope, enclosing, depth);
        let otherwise = if self.random.below(3) == 0 {
            self.b.enter([]);
            let values = self.picks(scope, &types);
            self.b.effect(Op::Yield(values));
            self.b.leave()
        } else {
            self.region(&[], &types, scope, enclosing, depth)
        };
        let results = self.b.emit(Op::If { condition, then, otherwise }, types);
        scope.extend(results);
    }

    fn counted(&mut self, scope: &mut Vec<Value>, enclosing: &[Enclosing], depth: u32) {
        let three = self.b.value(Op::Constant(3), U32);
        let small = |g: &mut Self| {
            let v = g.pick(scope, U32);
            g.b.value(Op::Binary(Binary::And, v, three), U32)
        };
        let start = small(self);
        // Arbitrary bounds may make an endless loop; such a kernel is not run.
        let (end, step) = if self.random.below(3) > 0 {
            (small(self), self.b.value(Op::Constant(1 + self.random.below(2) as u64), U32))
        } else {
            (self.pick(scope, U32), self.pick(scope, U32))
        };
        let carried = self.types();
        let inits = self.picks(scope, &carried);
        let label = self.label();
        let mut inner = enclosing.to_vec();
        let continues_with = Some((carried.clone(), None));
        inner.push(Enclosing { label, leaves_with: carried.clone(), continues_with });
        let parameters: Vec<Type> = [U32].into_iter().chain(carried.iter().copied()).collect();
        let body = self.region(&parameters, &carried, scope, &inner, depth);
        let unroll = Unroll::Auto;
        let op = Op::For(Box::new(For { label, start, end, step, unroll, inits, body }));
        let results = self.b.emit(op, carried);
        scope.extend(results);
    }

    /// Adds a loop that counts its iterations in its first carried value, and leaves after three.
    fn endless(&mut self, scope: &mut Vec<Value>, enclosing: &[Enclosing], depth: u32) {
        let (carried, leaves_with) = (self.types(), self.types());
        let label = self.label();
        let zero = self.b.value(Op::Constant(0), U32);
        let types: Vec<Type> = [U32].into_iter().chain(carried).collect();
        let mut inits = self.picks(scope, &types);
        inits[0] = zero;
        let entered = self.b.enter(types.iter().copied());
        let mut inside = scope.clone();
        inside.extend(entered.iter().skip(1));
        let one = self.b.value(Op::Constant(1), U32);
        let three = self.b.value(Op::Constant(3), U32);
        let count = self.b.value(Op::Binary(Binary::Add, entered[0], one), U32);
        let over = self.b.compare(Comparison::Lt, three, count);
        self.b.enter([]);
        let values = self.picks(&inside, &leaves_with);
        self.b.effect(Op::Break(label, values));
        let then = self.b.leave();
        self.b.enter([]);
        let otherwise = self.b.leave();
        self.b.effect(Op::If { condition: over, then, otherwise });
        let mut inner = enclosing.to_vec();
        let continues_with = Some((types.clone(), Some(count)));
        inner.push(Enclosing { label, leaves_with: leaves_with.clone(), continues_with });
        self.statements(&mut inside, &inner, depth + 1);
        if !self.b.ended() {
            let mut values = self.picks(&inside, &types);
            values[0] = count;
            self.b.effect(Op::Yield(values));
        }
        let body = self.b.leave();
        let results = self.b.emit(Op::Loop { label, inits, body }, leaves_with);
        scope.extend(results);
    }

    fn block(&mut self, scope: &mut Vec<Value>, enclosing: &[Enclosing], depth: u32) {
        let (label, types) = (self.label(), self.types());
        let mut inner = enclosing.to_vec();
        inner.push(Enclosing { label, leaves_with: types.clone(), continues_with: None });
        let body = self.region(&[], &types, scope, &inner, depth);
        let results = self.b.emit(Op::Block { label, body }, types);
        scope.extend(results);
    }
}

#[test]
fn random_kernels_store_what_their_ir_says() {
    let mut stores = 0;
    // Set `SEEDS=100000` for a long run.
    let seeds = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5000);
    for seed in 0..seeds {
        let kernel = Generator::kernel(seed);
        let Some(expected) = run_ir(&kernel) else { continue };
        let module = emit(&passes::legal(kernel).unwrap()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let found = run_ptx(&module);
        assert_eq!(found, expected, "seed {seed}\n{module}");
        stores += found.len();
        if seed % 10 == 0 {
            assert!(ptx::parse(&module.to_string()).unwrap() == module, "seed {seed}\n{module}");
        }
        if seed % 250 == 0 && ptx_support::installed() {
            ptx_support::assemble(&module.to_string(), 61).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{module}"));
        }
    }
    assert!(stores > 10_000, "the kernels store something");
}

/// Tests two carried values that are swapped, a carried truth value, a `break` and a `continue`.
#[test]
fn every_construct_is_emitted() {
    let mut b = Builder::new(kernel());
    let out = b.value(Op::Parameter(0), Type::Global);
    let n = b.value(Op::Parameter(1), U32);
    let constants: Vec<Value> = (0..4).map(|i| b.value(Op::Constant(i), U32)).collect();
    let no = b.value(Op::Constant(0), BOOL);
    let values = |v: &[Value]| v.iter().copied().collect::<Values>();
    let store = |b: &mut Builder, v: Value| {
        let place = AccessPlace::Address { base: out, offset: 4 };
        b.effect(Op::Store { place, element: Scalar::U32, values: values(&[v]), guard: None });
    };
    // A counted loop: (a, b, odd) → (b, a, not odd), with an early `break` and an early `continue`.
    let p = b.enter([U32, U32, U32, BOOL]);
    let late = b.compare(Comparison::Eq, p[0], constants[3]);
    b.enter([]);
    b.effect(Op::Break(Label(0), values(&[p[2], p[2], p[3]])));
    let then = b.leave();
    b.enter([]);
    let otherwise = b.leave();
    b.effect(Op::If { condition: late, then, otherwise });
    b.enter([]);
    store(&mut b, p[0]);
    b.effect(Op::Continue(Label(0), values(&[p[1], p[2], no])));
    let then = b.leave();
    b.enter([]);
    let otherwise = b.leave();
    b.effect(Op::If { condition: p[3], then, otherwise });
    let even = b.value(Op::Unary(Unary::Not, p[3]), BOOL);
    b.effect(Op::Yield(values(&[p[2], p[1], even])));
    let body = b.leave();
    let results = b.emit(
        Op::For(Box::new(For {
            label: Label(0),
            start: constants[0],
            end: n,
            step: constants[1],
            unroll: Unroll::Auto,
            inits: values(&[constants[1], constants[2], no]),
            body,
        })),
        [U32, U32, BOOL],
    );
    // An endless loop, left from inside a block.
    let p = b.enter([U32]);
    b.enter([]);
    let next = b.value(Op::Binary(Binary::Add, p[0], results[0]), U32);
    let over = b.compare(Comparison::Lt, n, next);
    b.enter([]);
    b.effect(Op::Break(Label(1), values(&[next])));
    let then = b.leave();
    b.enter([]);
    b.effect(Op::Break(Label(2), values(&[next])));
    let otherwise = b.leave();
    b.effect(Op::If { condition: over, then, otherwise });
    b.effect(Op::Yield(values(&[n])));
    let body = b.leave();
    let next = b.value(Op::Block { label: Label(2), body }, U32);
    b.effect(Op::Yield(values(&[next])));
    let body = b.leave();
    let sum = b.value(Op::Loop { label: Label(1), inits: values(&[results[1]]), body }, U32);
    // Two branches that yield a value, and a thread that ends.
    b.enter([]);
    let twice = b.value(Op::Binary(Binary::Add, sum, sum), U32);
    b.effect(Op::Yield(values(&[twice])));
    let then = b.leave();
    b.enter([]);
    store(&mut b, n);
    b.effect(Op::Yield(values(&[sum])));
    let otherwise = b.leave();
    let either = b.value(Op::If { condition: results[2], then, otherwise }, U32);
    let none = b.compare(Comparison::Eq, either, constants[0]);
    b.enter([]);
    b.effect(Op::Return);
    let then = b.leave();
    b.enter([]);
    let otherwise = b.leave();
    b.effect(Op::If { condition: none, then, otherwise });
    store(&mut b, either);
    let kernel = b.finish();
    let expected = run_ir(&kernel).unwrap();
    let module = emit(&passes::legal(kernel).unwrap()).unwrap();
    assert_eq!(run_ptx(&module), expected);
    if ptx_support::installed() {
        ptx_support::assemble(&module.to_string(), 61).unwrap();
    }
    insta::assert_snapshot!(module);
}

/// Tests two claims on one register: an inner loop's first result continues the outer loop's value,
/// which starts its second.
#[test]
fn one_register_is_given_once() {
    let mut b = Builder::new(kernel());
    let out = b.value(Op::Parameter(0), Type::Global);
    let n = b.value(Op::Parameter(1), U32);
    let [zero, one, seven] = [0, 1, 7].map(|i| b.value(Op::Constant(i), U32));
    let counted = |b: &mut Builder, label, inits: &[Value], body| {
        let inits: Values = inits.iter().copied().collect();
        let types = vec![U32; inits.len()];
        let (label, unroll) = (Label(label), Unroll::Auto);
        b.emit(Op::For(Box::new(For { label, start: zero, end: n, step: one, unroll, inits, body })), types)
    };
    let outer = b.enter([U32, U32]);
    let inner = b.enter([U32, U32, U32]);
    let sum = b.value(Op::Binary(Binary::Add, inner[1], inner[2]), U32);
    b.effect(Op::Yield([inner[2], sum].into_iter().collect()));
    let body = b.leave();
    let results = counted(&mut b, 1, &[seven, outer[1]], body);
    b.effect(Op::Yield([results[0]].into_iter().collect()));
    let body = b.leave();
    let results = counted(&mut b, 0, &[one], body);
    let place = AccessPlace::Address { base: out, offset: 0 };
    let values = [results[0]].into_iter().collect();
    b.effect(Op::Store { place, element: Scalar::U32, values, guard: None });
    let kernel = b.finish();
    let expected = run_ir(&kernel).unwrap();
    assert_eq!(run_ptx(&emit(&passes::legal(kernel).unwrap()).unwrap()), expected);
}
