//! A generator of correct kernels from seeds, in which every value is defined.
//!
//! Values are *defined* by construction:
//!
//! - An index is below the smallest extent that it may index.
//! - A thread stores only to its own elements.
//! - Barriers enclose every exchange through shared memory.
//! - All atomic operations on an element have the same operator.
//! - Loops are short.
//! - The operations come from [`forms`](crate::forms).
//!
//! The generator tracks where all threads of the block are converged, which collective operations
//! need. `uniform` values are the same for the whole block.
//!
//! All variables are folded into a hash of 64 bits per thread, with all NaNs equal. So no variable
//! is dead, and no NaN or infinity hides the values that it was combined with.
//!
//! The project has three generators. Only this one makes kernels of many threads that exchange
//! values, so that all executors can run and compare them. In `kernel-dsl/compiler/tests`,
//! `passes/generator.rs` makes IR of one thread that lowering never makes, for single passes.
//! There `frontend/generated` makes programs with more types, which are compiled but never run.

mod expressions;
mod memory;
mod statements;

use crate::program::{Expr, Function, Kernel, Statement};
use kernel_dsl_compiler::Scalar::{self, *};
use runtime::testing::Random;

/// The atomic operations on integers whose result on an element does not depend on their order.
const COMMUTATIVE_METHODS: &[&str] =
    &["fetch_add", "fetch_sub", "fetch_max", "fetch_min", "fetch_and", "fetch_or", "fetch_xor"];

/// A variable in scope.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Scalar,
    mutable: bool,
    /// Whether the variable is uniform across the block.
    uniform: bool,
}

/// Enclosing loop.
#[derive(Clone, Copy, Debug)]
struct EnclosingLoop {
    label: u32,
    /// Whether threads may leave the loop separately. If so, the loop contains no collective
    /// operations.
    apart: bool,
}

/// Context of a statement.
#[derive(Clone, Copy, Debug)]
struct StatementContext {
    /// Whether all threads of the block reach the statement.
    uniform: bool,
    /// Whether threads may return here. If so, no collective operations follow.
    returns: bool,
    /// Number of enclosing constructs.
    depth: u32,
    /// Number of enclosing loops.
    loops: u32,
}

/// Array parameter of the kernel.
#[derive(Clone, Debug)]
struct Buffer {
    name: String,
    element: Scalar,
}

/// Operation on an array of counters whose result does not depend on the order.
#[derive(Clone, Debug)]
struct Counters {
    buffer: Buffer,
    method: &'static str,
}

/// State of the generation of one kernel.
struct Generator {
    random: Random,
    names: u32,
    scope: Vec<Variable>,
    around: Vec<EnclosingLoop>,
    /// Threads per block.
    threads: u32,
    inputs: Vec<Buffer>,
    view: Option<Buffer>,
    outputs: Vec<Buffer>,
    /// Buffer with four elements per thread.
    quads: Option<Buffer>,
    counters: Vec<Counters>,
    functions: Vec<Function>,
    /// Result type of the enclosing device function, if there is one.
    within: Option<Scalar>,
    /// Number of statements that may still be generated.
    budget: u32,
}

/// Types of values.
const TYPES: [Scalar; 13] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64];
/// Types of buffer elements.
const ELEMENTS: [Scalar; 12] = [I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64];
const SHAPES: [[u32; 2]; 7] = [[32, 1], [64, 1], [96, 1], [128, 1], [8, 8], [16, 4], [32, 2]];

/// Generates the kernel of a seed, with the name `k` and the seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let block = *random.choose(&SHAPES).unwrap_or(&[32, 1]);
    let grid = 1 + random.below(3) as u32;
    let mut generator = Generator {
        random,
        names: 0,
        scope: Vec::new(),
        around: Vec::new(),
        threads: block[0] * block[1],
        inputs: Vec::new(),
        view: None,
        outputs: Vec::new(),
        quads: None,
        counters: Vec::new(),
        functions: Vec::new(),
        within: None,
        budget: 0,
    };
    let parameters = generator.parameters();
    for _ in 0..generator.below(2) + generator.below(2) * generator.below(2) {
        let function = generator.function();
        generator.functions.push(function);
    }
    let body = generator.body();
    let clauses = if generator.one_in(8) { ", contract" } else { "" };
    Kernel { name: format!("k{seed}"), parameters, block, grid, clauses, functions: generator.functions, body }
}

impl Generator {
    fn below(&mut self, n: u32) -> u32 {
        self.random.below(n as usize) as u32
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len())].clone()
    }

    /// Returns an unused name.
    fn name(&mut self, of: &str) -> String {
        self.names += 1;
        format!("{of}{}", self.names)
    }

    fn ty(&mut self) -> Scalar {
        // Types that are common in kernels are drawn more often.
        if self.one_in(3) { self.one_of(&[U32, I32, F32, U32]) } else { self.long_or(&TYPES) }
    }

    /// Draws one of `types`, or rarely `u128`, whose operations take many instructions.
    fn long_or(&mut self, types: &[Scalar]) -> Scalar {
        if self.one_in(24) { U128 } else { self.one_of(types) }
    }

    /// Draws the type of a parameter, or of its elements.
    fn parameter(&mut self) -> Scalar {
        if self.one_in(3) { self.one_of(&[U32, I32, F32]) } else { self.long_or(&ELEMENTS) }
    }

    fn element(&mut self) -> Scalar {
        if self.one_in(3) { self.one_of(&[U32, I32, F32]) } else { self.one_of(&ELEMENTS) }
    }

    /// Generates the kernel's parameters.
    fn parameters(&mut self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        for n in 0..1 + self.below(3) {
            let (name, ty) = (format!("a{n}"), self.parameter());
            list.push((name.clone(), ty.to_string()));
            self.scope.push(Variable { name, ty, mutable: false, uniform: true });
        }
        for n in 0..1 + self.below(4) {
            let buffer = Buffer { name: format!("x{n}"), element: self.parameter() };
            list.push((buffer.name.clone(), format!("&[{}]", buffer.element)));
            self.inputs.push(buffer);
        }
        if self.one_in(2) {
            let buffer = Buffer { name: "v".to_string(), element: self.element() };
            list.push((buffer.name.clone(), format!("View<{}, 2>", buffer.element)));
            self.view = Some(buffer);
        }
        for n in 0..1 + self.below(3) {
            let buffer = Buffer { name: format!("y{n}"), element: self.parameter() };
            list.push((buffer.name.clone(), format!("&mut [{}]", buffer.element)));
            self.outputs.push(buffer);
        }
        if self.one_in(3) {
            let buffer = Buffer { name: "q".to_string(), element: self.element() };
            list.push((buffer.name.clone(), format!("&mut [{}]", buffer.element)));
            self.quads = Some(buffer);
        }
        for n in 0..self.below(3) {
            let element = self.one_of(&[U32, I32, U64, F32, F64]);
            let method = match element {
                F32 | F64 => self.one_of(&["fetch_add", "fetch_sub"]),
                _ => self.one_of(COMMUTATIVE_METHODS),
            };
            // A float counter counts small whole numbers, so that sums are exact. By the name, the
            // code that fills the buffer selects such numbers.
            let name = if element.is_float() { format!("count{n}") } else { format!("c{n}") };
            list.push((name.clone(), format!("&mut [{element}]")));
            self.counters.push(Counters { buffer: Buffer { name, element }, method });
        }
        list.push(("hash".to_string(), "&mut [u64]".to_string()));
        list
    }

    /// Generates a device function on numbers.
    fn function(&mut self) -> Function {
        let outside = std::mem::take(&mut self.scope);
        let buffers = (std::mem::take(&mut self.inputs), self.view.take(), std::mem::take(&mut self.outputs));
        let counters = std::mem::take(&mut self.counters);
        let quads = self.quads.take();
        let mut parameters = Vec::new();
        for n in 0..1 + self.below(3) {
            let (name, ty) = (format!("g{n}"), self.ty());
            parameters.push((name.clone(), ty));
            self.scope.push(Variable { name, ty, mutable: false, uniform: false });
        }
        let result = self.ty();
        self.within = Some(result);
        self.budget = 8;
        let place = StatementContext { uniform: false, returns: true, depth: 0, loops: 0 };
        let count = 1 + self.below(4);
        let body = self.statements(count, place);
        let value = self.value(result, 3, false);
        self.within = None;
        self.scope = outside;
        (self.inputs, self.view, self.outputs) = buffers;
        self.counters = counters;
        self.quads = quads;
        Function { name: self.name("h"), parameters, value, body }
    }

    /// Generates the kernel's body.
    fn body(&mut self) -> Vec<Statement> {
        let fixed = |text: &str| Statement {
            construct: "where a thread is",
            text: text.to_string(),
            values: Vec::new(),
            blocks: Vec::new(),
        };
        let mut body =
            vec![fixed("let t = thread::index();"), fixed("let i = grid::index();"), fixed("let mut h: u64 = 0;")];
        // The body begins with some variables.
        for _ in 0..3 {
            let statement = self.let_variable(StatementContext { uniform: true, returns: false, depth: 0, loops: 0 });
            body.push(statement);
        }
        self.budget = 10 + self.below(20);
        let together = StatementContext { uniform: true, returns: false, depth: 0, loops: 0 };
        let count = 3 + self.below(10);
        body.extend(self.statements(count, together));
        let alone = StatementContext { uniform: false, returns: true, depth: 0, loops: 0 };
        let count = self.below(6);
        body.extend(self.statements(count, alone));
        let variables: Vec<Variable> = self.scope.clone();
        body.extend(variables.iter().map(hashed));
        body.push(fixed("hash[i] = h;"));
        body
    }
}

/// Returns the statement that folds a variable into the hash.
fn hashed(variable: &Variable) -> Statement {
    let bits = match variable.ty {
        F32 | F64 => "(if $0.is_nan() { 7 } else { $0.to_bits() }) as u64",
        F16 | Bf16 => "(if $0 == $0 { $0.to_bits() } else { 7 }) as u64",
        U128 => "($0 ^ $0 >> 64) as u64",
        _ => "$0 as u64",
    };
    Statement {
        construct: "a hash",
        text: format!("h = h.rotate_left(5) ^ ({bits});"),
        values: vec![Expr::leaf("a variable", variable.ty, variable.name.clone())],
        blocks: Vec::new(),
    }
}
