//! Kernels by seed: right ones, whose every value is defined.
//!
//! *Defined* is by construction. An index is below the least extent that it may index, a thread stores to its own elements
//! only, what threads exchange through shared memory is between barriers, atomic operations of one kind meet at an element, loops are
//! short, and the operations are those of [`forms`](crate::forms). Where threads work together the generator knows that all of
//! the block come: `uniform` values are those that the whole block shares.
//!
//! All variables end in a hash of 64 bits a thread, NaNs as one: none is dead, and no NaN or infinity hides what it met.

mod expressions;
mod memory;
mod statements;

use crate::program::{Expr, Function, Kernel, Statement};
use kernel_dsl_compiler::Scalar::{self, *};
use runtime::testing::Random;

/// A variable in scope.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Scalar,
    mutable: bool,
    /// Whether it is the same for all threads of a block.
    uniform: bool,
}

/// A loop around.
#[derive(Clone, Copy, Debug)]
struct Around {
    label: u32,
    /// Whether threads may leave it one by one: then nothing in it is done together.
    apart: bool,
}

/// What stands around a statement.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Whether all threads of the block come here.
    uniform: bool,
    /// Whether a thread may return here: nothing is done together afterwards.
    returns: bool,
    /// Constructs around.
    depth: u32,
    /// Loops around.
    loops: u32,
}

/// An array that the kernel is given.
#[derive(Clone, Debug)]
struct Buffer {
    name: String,
    element: Scalar,
}

/// An operation on an array of counters that leaves the same in every order.
#[derive(Clone, Debug)]
struct Counters {
    buffer: Buffer,
    method: &'static str,
}

/// Makes a kernel.
struct Generator {
    random: Random,
    names: u32,
    scope: Vec<Variable>,
    around: Vec<Around>,
    /// Threads of a block.
    threads: u32,
    inputs: Vec<Buffer>,
    view: Option<Buffer>,
    outputs: Vec<Buffer>,
    /// Of which each thread has four elements.
    quads: Option<Buffer>,
    counters: Vec<Counters>,
    functions: Vec<Function>,
    /// Inside a device function: what it gives.
    within: Option<Scalar>,
    /// Statements that may still come.
    budget: u32,
}

/// What values are of.
const TYPES: [Scalar; 13] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64];
/// What buffers hold.
const ELEMENTS: [Scalar; 12] = [I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64];
const SHAPES: [[u32; 2]; 7] = [[32, 1], [64, 1], [96, 1], [128, 1], [8, 8], [16, 4], [32, 2]];

/// The kernel of a seed, with the name `k` and the seed.
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

    /// A name that nothing has.
    fn name(&mut self, of: &str) -> String {
        self.names += 1;
        format!("{of}{}", self.names)
    }

    fn ty(&mut self) -> Scalar {
        // Those that kernels are mostly of come more often.
        if self.one_in(3) { self.one_of(&[U32, I32, F32, U32]) } else { self.one_of(&TYPES) }
    }

    fn element(&mut self) -> Scalar {
        if self.one_in(3) { self.one_of(&[U32, I32, F32]) } else { self.one_of(&ELEMENTS) }
    }

    /// The kernel's parameters.
    fn parameters(&mut self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        for n in 0..1 + self.below(3) {
            let (name, ty) = (format!("a{n}"), self.element());
            list.push((name.clone(), ty.to_string()));
            self.scope.push(Variable { name, ty, mutable: false, uniform: true });
        }
        for n in 0..1 + self.below(4) {
            let buffer = Buffer { name: format!("x{n}"), element: self.element() };
            list.push((buffer.name.clone(), format!("&[{}]", buffer.element)));
            self.inputs.push(buffer);
        }
        if self.one_in(2) {
            let buffer = Buffer { name: "v".to_string(), element: self.element() };
            list.push((buffer.name.clone(), format!("View<{}, 2>", buffer.element)));
            self.view = Some(buffer);
        }
        for n in 0..1 + self.below(3) {
            let buffer = Buffer { name: format!("y{n}"), element: self.element() };
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
                F32 | F64 | I32 if element.is_float() => "fetch_add",
                U64 => self.one_of(&["fetch_add", "fetch_max", "fetch_min", "fetch_and", "fetch_or", "fetch_xor"]),
                _ => self.one_of(&["fetch_add", "fetch_max", "fetch_min", "fetch_and", "fetch_or", "fetch_xor"]),
            };
            // What a float counts is small whole numbers: their sums are exact. Its name tells that to whoever fills it.
            let name = if element.is_float() { format!("count{n}") } else { format!("c{n}") };
            list.push((name.clone(), format!("&mut [{element}]")));
            self.counters.push(Counters { buffer: Buffer { name, element }, method });
        }
        list.push(("hash".to_string(), "&mut [u64]".to_string()));
        list
    }

    /// A device function of numbers.
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
        let place = Place { uniform: false, returns: true, depth: 0, loops: 0 };
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

    /// The kernel's body.
    fn body(&mut self) -> Vec<Statement> {
        let fixed = |text: &str| Statement {
            construct: "where a thread is",
            text: text.to_string(),
            values: Vec::new(),
            blocks: Vec::new(),
        };
        let mut body =
            vec![fixed("let t = thread::index();"), fixed("let i = grid::index();"), fixed("let mut h: u64 = 0;")];
        // Some variables to begin with.
        for _ in 0..3 {
            let statement = self.let_variable(Place { uniform: true, returns: false, depth: 0, loops: 0 });
            body.push(statement);
        }
        self.budget = 10 + self.below(20);
        let together = Place { uniform: true, returns: false, depth: 0, loops: 0 };
        let count = 3 + self.below(10);
        body.extend(self.statements(count, together));
        let alone = Place { uniform: false, returns: true, depth: 0, loops: 0 };
        let count = self.below(6);
        body.extend(self.statements(count, alone));
        let variables: Vec<Variable> = self.scope.clone();
        body.extend(variables.iter().map(hashed));
        body.push(fixed("hash[i] = h;"));
        body
    }
}

/// What takes a variable into the hash.
fn hashed(variable: &Variable) -> Statement {
    let bits = match variable.ty {
        F32 | F64 => "(if $0.is_nan() { 7 } else { $0.to_bits() }) as u64",
        F16 | Bf16 => "(if $0 == $0 { $0.to_bits() } else { 7 }) as u64",
        _ => "$0 as u64",
    };
    Statement {
        construct: "a hash",
        text: format!("h = h.rotate_left(5) ^ ({bits});"),
        values: vec![Expr::leaf("a variable", variable.ty, variable.name.clone())],
        blocks: Vec::new(),
    }
}
