//! Hand-written kernels: a builder with a source text, whose instructions point at pieces of the
//! text.

use kernel_dsl::compiler::ir::build::Builder;
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, BlockExtents, CachePolicy, Dim, Kernel, Label, Local, LocalId, Location, Op, Parameter,
    Region, Role, SharedArray, SharedId, SharedLayout, SourceLocation, Special, Type, Value, Values,
};
use kernel_dsl::compiler::source::{KernelSource, Span};
use kernel_dsl::compiler::{Scalar, Target};
use runtime::interpreter::{ArgumentBytes, Binding, Check, Launch, Options, Outcome, Program};

/// The line of the file at which the text of a test kernel begins.
pub const FIRST_LINE: u32 = 10;

pub struct Kit {
    pub b: Builder,
    labels: u32,
    arguments: u32,
}

impl Kit {
    /// Creates a kernel of `block` threads with the Rust text of its instructions.
    pub fn new(block: [u32; 3], text: &str) -> Kit {
        let text: Vec<String> = text.lines().map(str::to_string).collect();
        let source = KernelSource { name: "kernel".into(), file: "zoo/src/lib.rs".into(), line: FIRST_LINE, text };
        let location = SourceLocation { source: 0, span: Span::default(), caller: None };
        let kernel = Kernel {
            name: "kernel".into(),
            rust_name: "kernel".into(),
            instance: "kernel".into(),
            target: Target::SM_61,
            block: BlockExtents::fixed(block),
            min_blocks: None,
            max_registers: None,
            parameters: vec![],
            values: vec![],
            locals: vec![],
            shared: vec![],
            dynamic: Vec::new(),
            tables: Vec::new(),
            sources: vec![source],
            locations: vec![location],
            declared: Default::default(),
            unrolled: kernel_dsl::compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
            body: Region::default(),
        };
        Kit { b: Builder::new(kernel), labels: 0, arguments: 0 }
    }

    /// Sets the source of the next instructions: the first occurrence of `piece` in the text.
    pub fn at(&mut self, piece: &str) {
        let text = &self.b.kernel.sources[0].text;
        let found = text.iter().enumerate().find_map(|(i, l)| Some((i, l.find(piece)?)));
        let (line, byte) = found.unwrap_or_else(|| panic!("{piece:?} is not in the kernel's text"));
        let column = text[line].as_bytes()[..byte].len() as u16 + 1;
        let span = Span {
            line: line as u16,
            column,
            end_line: line as u16,
            end_column: column + piece.chars().count() as u16,
        };
        self.b.kernel.locations.push(SourceLocation { source: 0, span, caller: None });
        self.b.location = Location(self.b.kernel.locations.len() as u32 - 1);
    }

    fn parameter(&mut self, name: String, role: Role) -> Value {
        let parameter = Parameter { name, argument: self.arguments, role };
        let ty = parameter.ty();
        self.b.kernel.parameters.push(parameter);
        self.b.value(Op::Parameter(self.b.kernel.parameters.len() as u32 - 1), ty)
    }

    pub fn scalar_argument(&mut self, name: &str, ty: Scalar) -> Value {
        let value = self.parameter(name.into(), Role::Value(ty));
        self.arguments += 1;
        value
    }

    pub fn slice(&mut self, name: &str, element: Scalar, mutable: bool) -> Slice {
        let base = self.parameter(name.into(), Role::Address { element: element.into(), mutable });
        let len = self.parameter(format!("{name}_len"), Role::Extent(0));
        self.arguments += 1;
        Slice { base, len }
    }

    pub fn view(&mut self, name: &str, element: Scalar, rank: u32, mutable: bool) -> View {
        let base = self.parameter(name.into(), Role::Address { element: element.into(), mutable });
        let extents = (0..rank).map(|d| self.parameter(format!("{name}_dim{d}"), Role::Extent(d))).collect();
        let strides = (0..rank - 1).map(|d| self.parameter(format!("{name}_stride{d}"), Role::Stride(d))).collect();
        self.arguments += 1;
        View { base, extents, strides }
    }

    pub fn shared(&mut self, name: &str, element: Scalar, shape: &[u32], strides: &[u32]) -> SharedId {
        let offset = self.b.kernel.shared_bytes().next_multiple_of(16);
        self.b.kernel.shared.push(SharedArray {
            name: name.into(),
            element: element.into(),
            shape: shape.iter().copied().collect(),
            strides: strides.iter().copied().collect(),
            layout: SharedLayout::Packed,
            over: None,
            offset,
        });
        SharedId(self.b.kernel.shared.len() as u32 - 1)
    }

    pub fn local(&mut self, name: &str, element: Scalar, len: u32) -> LocalId {
        self.b.kernel.locals.push(Local { name: name.into(), element: Type::Scalar(element), len, memory: false });
        LocalId(self.b.kernel.locals.len() as u32 - 1)
    }

    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    pub fn special(&mut self, special: Special) -> Value {
        self.b.scalar(Op::Special(special), Scalar::Usize)
    }

    pub fn thread(&mut self) -> Value {
        self.special(Special::Thread(0))
    }

    /// Computes block::x() · block size + thread::x().
    pub fn grid_index(&mut self) -> Value {
        let threads = self.b.kernel.block.most_threads();
        let (block, threads, thread) = (self.special(Special::Block(0)), self.b.index(threads), self.thread());
        let first = self.binary(Binary::Mul, block, threads);
        self.binary(Binary::Add, first, thread)
    }

    pub fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        let ty = self.b.kernel.ty(a);
        self.b.value(Op::Binary(op, a, b), ty)
    }

    pub fn load(&mut self, place: AccessPlace, element: Scalar) -> Value {
        self.load_many(place, element, 1)[0]
    }

    pub fn load_many(&mut self, place: AccessPlace, element: Scalar, n: usize) -> Values {
        let op = Op::Load { place, element, policy: CachePolicy::Coherent, guard: None };
        self.b.emit(op, vec![Type::Scalar(element); n])
    }

    pub fn store(&mut self, place: AccessPlace, element: Scalar, value: Value) {
        self.b.effect(Op::Store { place, element, values: [value].into_iter().collect(), guard: None });
    }

    /// Runs `then` where `condition` holds.
    pub fn when(&mut self, condition: Value, then: impl FnOnce(&mut Kit)) {
        self.b.enter([]);
        then(self);
        let then = self.b.leave();
        self.b.enter([]);
        let otherwise = self.b.leave();
        self.b.effect(Op::If { condition, then, otherwise });
    }

    pub fn finish(self) -> Kernel {
        self.b.finish()
    }
}

#[derive(Clone, Copy)]
pub struct Slice {
    pub base: Value,
    pub len: Value,
}

impl Slice {
    pub fn at(&self, index: Value) -> AccessPlace {
        AccessPlace::Global {
            base: self.base,
            dims: [Dim { index, extent: self.len, stride: None }].into_iter().collect(),
            within: None,
        }
    }
}

pub struct View {
    pub base: Value,
    pub extents: Vec<Value>,
    pub strides: Vec<Value>,
}

impl View {
    pub fn at(&self, indices: &[Value]) -> AccessPlace {
        let dim =
            |(d, i): (usize, &Value)| Dim { index: *i, extent: self.extents[d], stride: self.strides.get(d).copied() };
        AccessPlace::Global { base: self.base, dims: indices.iter().enumerate().map(dim).collect(), within: None }
    }
}

pub fn in_shared(array: SharedId, indices: &[Value]) -> AccessPlace {
    AccessPlace::Shared { array, indices: indices.iter().copied().collect(), within: None }
}

/// Binds writable bytes as a slice of the data's elements.
pub fn out<T: bytemuck::Pod>(data: &mut [T]) -> Binding<'_> {
    let n = data.len() as u32;
    Binding::Memory {
        bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(data)),
        extents: vec![n],
        strides: vec![],
    }
}

/// Binds readable bytes as a slice of the data's elements.
pub fn input<T: bytemuck::Pod>(data: &[T]) -> Binding<'_> {
    let n = data.len() as u32;
    Binding::Memory { bytes: ArgumentBytes::Shared(bytemuck::cast_slice(data)), extents: vec![n], strides: vec![] }
}

/// Runs a kernel with all checks.
pub fn run(kernel: &Kernel, blocks: u32, arguments: Vec<Binding<'_>>) -> Outcome {
    run_with(kernel, [blocks, 1, 1], arguments, Options::default())
}

pub fn run_with(kernel: &Kernel, grid: [u32; 3], arguments: Vec<Binding<'_>>, options: Options) -> Outcome {
    let program = Program::decode(kernel).unwrap_or_else(|e| panic!("{e}"));
    program.run(Launch { grid, block: None, arguments, options }).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the checks that a run reports, each with its line in the kernel's text, from 0.
pub fn findings(outcome: &Outcome) -> Vec<(Check, u32)> {
    outcome.report.findings.iter().map(|f| (f.check, f.place.line - FIRST_LINE)).collect()
}

/// A small generator of repeatable test values: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
}
