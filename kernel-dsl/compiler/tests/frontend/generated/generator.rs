//! The state of the generator, and the items of a program.

use super::Program;
use crate::support::Random;
use std::fmt::Write;

/// A type of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Ty {
    /// A number by its Rust name.
    Number(&'static str),
    Bool,
    Array(Box<Ty>, usize),
    Tuple(Vec<Ty>),
    /// A struct of the module, by its index.
    Struct(usize),
    /// An enum of the module, by its index.
    Enum(usize),
}

/// Numbers that registers hold.
pub const NUMBERS: [&str; 8] = ["u32", "i32", "f32", "u8", "u64", "i16", "f64", "u32"];

/// A variable in scope.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub ty: Ty,
    pub mutable: bool,
    /// The upper end of each `usize` in it, exclusive, if they are indices that are constant once
    /// all loops are unrolled.
    pub below: Option<usize>,
    /// The code that all threads reach with the same history, in which the variable was declared.
    /// Assignments to indices elsewhere would make them depend on the thread.
    pub region: u32,
    /// Whether it is an array in local memory, whose indices any thread may compute.
    pub memory: bool,
}

/// A constant array of indices of the module, or a part of its elements.
#[derive(Clone, Debug)]
pub struct IndexTable {
    pub name: String,
    /// The extents, outermost first.
    pub extents: Vec<usize>,
    /// The field after the indices, or nothing.
    pub part: &'static str,
    /// The type of the number.
    pub ty: &'static str,
    /// The upper end of its elements, exclusive.
    pub below: usize,
}

/// A device function of indices.
#[derive(Clone, Debug)]
pub struct IndexFunction {
    pub name: String,
    /// The upper ends of argument and result, exclusive.
    pub of: usize,
    pub below: usize,
}

/// A device function that takes an array of numbers and indices of it.
#[derive(Clone, Debug)]
pub struct ArrayFunction {
    pub name: String,
    pub element: &'static str,
    pub len: usize,
    /// The number of its indices.
    pub indices: usize,
    /// Whether it changes the array, and returns nothing.
    pub changes: bool,
}

/// A struct: the types of the fields `f0`, `f1`, ….
#[derive(Clone, Debug)]
pub struct Struct {
    pub fields: Vec<Ty>,
}

/// An enum: the types of the fields of the variants `V0`, `V1`, …. Fields of odd variants have the
/// names `f0`, `f1`, ….
#[derive(Clone, Debug)]
pub struct Enum {
    pub variants: Vec<Vec<Ty>>,
    /// The types for the parameters `T0`, `T1`, …, in the order of the fields that have one.
    pub arguments: Vec<Ty>,
}

/// A device function with a generic constant.
#[derive(Clone, Debug)]
pub struct ConstantFunction {
    pub name: String,
    pub element: &'static str,
    /// The type of the constant.
    pub constant: &'static str,
}

pub struct Generator {
    pub random: Random,
    pub text: String,
    pub indent: usize,
    pub names: u32,
    pub scope: Vec<Variable>,
    pub tables: Vec<IndexTable>,
    pub numbers: Vec<(String, usize)>,
    pub functions: Vec<IndexFunction>,
    pub arrays: Vec<ArrayFunction>,
    pub structs: Vec<Struct>,
    pub enums: Vec<Enum>,
    pub constants: Vec<ConstantFunction>,
    /// The current region: see [`Variable::region`].
    pub region: u32,
    pub regions: u32,
    /// The labels of enclosing loops that threads may leave one by one.
    pub jumps: Vec<String>,
    /// Whether the function may return here, and return nothing.
    pub returns: bool,
    /// Whether indices of register arrays may depend on the thread, and whether one does.
    pub may_run_time: bool,
    pub run_time: bool,
    /// Whether the current function is the kernel, which has buffers.
    pub kernel: bool,
    /// The statements that may still be generated.
    pub budget: u32,
    /// The variables of enclosing blocks, which no variable shadows.
    pub outer: usize,
    /// The copies of the current statement that unrolling makes.
    pub copies: usize,
}

impl Generator {
    pub fn new(random: Random) -> Generator {
        Generator {
            random,
            text: String::new(),
            indent: 0,
            names: 0,
            scope: Vec::new(),
            tables: Vec::new(),
            numbers: Vec::new(),
            functions: Vec::new(),
            arrays: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
            constants: Vec::new(),
            region: 0,
            regions: 0,
            jumps: Vec::new(),
            returns: false,
            may_run_time: false,
            run_time: false,
            kernel: false,
            budget: 0,
            outer: 0,
            copies: 1,
        }
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len())].clone()
    }

    pub fn name(&mut self, of: &str) -> String {
        self.names += 1;
        format!("{of}{}", self.names)
    }

    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * self.indent);
    }

    pub fn written(&self, ty: &Ty) -> String {
        match ty {
            Ty::Number(name) => name.to_string(),
            Ty::Bool => "bool".to_string(),
            Ty::Array(of, n) => format!("[{}; {n}]", self.written(of)),
            Ty::Tuple(parts) => format!("({},)", parts.iter().map(|p| self.written(p)).collect::<Vec<_>>().join(", ")),
            Ty::Struct(id) => format!("S{id}"),
            Ty::Enum(id) => format!("E{id}{}", self.enum_arguments(*id)),
        }
    }

    /// Returns the generic arguments of an enum, between `<` and `>`.
    pub fn enum_arguments(&self, id: usize) -> String {
        let all: Vec<_> = self.enums[id].arguments.iter().map(|ty| self.written(ty)).collect();
        if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
    }

    /// A type without indices.
    pub fn ty(&mut self, depth: u32) -> Ty {
        match self.below(if depth == 0 { 3 } else { 13 }) {
            0..=2 => Ty::Number(self.one_of(&NUMBERS)),
            3 => Ty::Bool,
            4..=8 => Ty::Array(Box::new(self.ty(depth - 1)), 2 + self.below(4)),
            9 => Ty::Tuple((0..2 + self.below(2)).map(|_| self.ty(depth - 1)).collect()),
            10 if !self.enums.is_empty() => Ty::Enum(self.below(self.enums.len())),
            _ if self.structs.is_empty() => Ty::Number("u32"),
            _ => Ty::Struct(self.below(self.structs.len())),
        }
    }

    /// A whole program.
    pub fn program(mut self) -> Program {
        self.may_run_time = self.one_in(6);
        self.line("mod items {");
        self.indent = 1;
        self.line("use kernel_dsl::prelude::*;");
        for _ in 0..1 + self.below(4) {
            self.constant();
        }
        for id in 0..self.below(3) {
            self.a_struct(id);
        }
        for id in 0..self.below(3) {
            self.an_enum(id);
        }
        for _ in 0..self.below(3) {
            self.constant_function();
        }
        for _ in 0..self.below(3) {
            self.index_function();
        }
        for _ in 0..self.below(3) {
            self.array_function();
        }
        self.indent = 0;
        self.line("}");
        let module = std::mem::take(&mut self.text);
        self.kernel = true;
        self.budget = 6 + self.below(20) as u32;
        self.line("#[kernel(block = 32, grid = 1)]");
        self.line("fn k(n: usize, x: &[u32], y: &mut [u32]) {");
        self.indent = 1;
        self.line("let t = thread::x();");
        let count = 3 + self.below(8);
        self.scope.clear();
        self.let_array();
        self.statements(count, true);
        let all = self.scope.clone();
        for variable in &all {
            if let Some(value) = self.some_number(variable) {
                self.line(&format!("y[t] ^= {value};"));
            }
        }
        self.indent = 0;
        self.line("}");
        Program { module, kernel: self.text, run_time: self.run_time }
    }

    /// A constant number, or an array of indices.
    fn constant(&mut self) {
        let name = self.name("C");
        let below = 2 + self.below(4);
        if self.one_in(4) {
            let value = self.below(below);
            let text = match self.numbers.first().cloned() {
                Some((of, most)) if self.one_in(2) && most < below => of,
                _ => value.to_string(),
            };
            self.line(&format!("pub const {name}: usize = {text};"));
            return self.numbers.push((name, below - 1));
        }
        let table = |extents: Vec<usize>, part, ty| IndexTable { name: name.clone(), extents, part, ty, below };
        let n = 1 + self.random.below(6);
        let (text, tables) = match self.random.below(6) {
            0 => {
                let m = 1 + self.random.below(3);
                let rows: Vec<String> = (0..m).map(|_| list((0..n).map(|_| self.random.below(below)))).collect();
                (format!("[[usize; {n}]; {m}] = {}", list(rows)), vec![table(vec![m, n], "", "usize")])
            }
            1 => {
                let pairs = (0..n).map(|_| format!("({}, {})", self.random.below(below), self.random.below(below)));
                let text = format!("[(usize, u32); {n}] = {}", list(pairs.collect::<Vec<_>>()));
                (text, vec![table(vec![n], ".0", "usize"), table(vec![n], ".1", "u32")])
            }
            2 => {
                let ty = ["u32", "u8", "i32", "u64"][self.random.below(4)];
                let text = format!("[{ty}; {n}] = {}", list((0..n).map(|_| self.random.below(below))));
                (text, vec![table(vec![n], "", ty)])
            }
            _ => {
                let text = format!("[usize; {n}] = {}", list((0..n).map(|_| self.random.below(below))));
                (text, vec![table(vec![n], "", "usize")])
            }
        };
        self.line(&format!("pub const {name}: {text};"));
        self.tables.extend(tables);
    }

    /// A struct with a method that reads, one that writes, and a constant of it.
    fn a_struct(&mut self, id: usize) {
        let len = 2 + self.below(4);
        let element = self.one_of(&NUMBERS);
        let array = Ty::Array(Box::new(Ty::Number(element)), len);
        let mut fields = vec![array];
        for _ in 0..self.below(3) {
            let ty = self.ty(1);
            fields.push(ty);
        }
        let written: Vec<_> =
            fields.iter().enumerate().map(|(i, f)| format!("pub f{i}: {}", self.written(f))).collect();
        // A struct derives its comparison, or has its own.
        let own = self.one_in(2);
        self.line(if own { "#[derive(Clone, Copy)]" } else { "#[derive(Clone, Copy, PartialEq)]" });
        self.line(&format!("pub struct S{id} {{ {} }}", written.join(", ")));
        if own {
            self.line(&format!("impl PartialEq for S{id} {{"));
            self.line(&format!("    fn eq(&self, other: &S{id}) -> bool {{ self.f0[0] == other.f0[1] }}"));
            self.line("}");
        }
        self.line(&format!("impl S{id} {{"));
        self.indent += 1;
        self.line(&format!("pub fn get(self, at: usize) -> {element} {{ self.f0[at] }}"));
        self.line(&format!("pub fn set(&mut self, at: usize, to: {element}) {{ self.f0[at] = to; }}"));
        self.indent -= 1;
        self.line("}");
        self.structs.push(Struct { fields });
    }

    /// Writes an enum with a variant without data, and others with data.
    fn an_enum(&mut self, id: usize) {
        let mut variants = vec![Vec::new()];
        for _ in 0..1 + self.below(3) {
            let fields = (0..self.below(3)).map(|_| self.ty(1)).collect();
            variants.push(fields);
        }
        let mut arguments: Vec<Ty> = Vec::new();
        let mut lines = Vec::new();
        for (i, fields) in variants.iter().enumerate() {
            let mut written = Vec::new();
            for (f, ty) in fields.iter().enumerate() {
                let text = if self.one_in(3) {
                    arguments.push(ty.clone());
                    format!("T{}", arguments.len() - 1)
                } else {
                    self.written(ty)
                };
                written.push(if i % 2 == 0 { text } else { format!("f{f}: {text}") });
            }
            let text = written.join(", ");
            let text = match (fields.len(), i % 2) {
                (0, _) => String::new(),
                (_, 0) => format!("({text})"),
                _ => format!(" {{ {text} }}"),
            };
            lines.push(format!("    V{i}{text},"));
        }
        let parameters: Vec<_> = (0..arguments.len()).map(|k| format!("T{k}")).collect();
        let parameters = if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) };
        self.line("#[derive(Clone, Copy, PartialEq)]");
        self.line(&format!("pub enum E{id}{parameters} {{"));
        for line in lines {
            self.line(&line);
        }
        self.line("}");
        self.enums.push(Enum { variants, arguments });
    }

    /// Writes a function with a generic constant.
    fn constant_function(&mut self) {
        let (name, element) = (self.name("c"), self.one_of(&NUMBERS));
        let constant = self.one_of(&["u8", "i32", "u64", "bool", "usize", "i16", "i64"]);
        let other = self.constant_value(constant);
        let value = match constant {
            "bool" => format!("if K {{ v }} else {{ {} as {element} }}", self.below(9)),
            _ => format!("if K > {other} {{ K as {element} }} else {{ v }}"),
        };
        self.line(&format!("pub fn {name}<const K: {constant}>(v: {element}) -> {element} {{ {value} }}"));
        self.constants.push(ConstantFunction { name, element, constant });
    }

    /// A value of a generic constant.
    pub fn constant_value(&mut self, ty: &str) -> String {
        match ty {
            "bool" => self.one_of(&["true", "false"]).to_string(),
            "u8" => self.one_of(&["0", "7", "255"]).to_string(),
            "i16" => self.one_of(&["-32768", "-1", "5"]).to_string(),
            "i32" => self.one_of(&["-2147483648", "-3", "2147483647"]).to_string(),
            "i64" => self.one_of(&["-9223372036854775808", "-3", "4294967296"]).to_string(),
            "u64" => self.one_of(&["18446744073709551615", "1", "4294967296"]).to_string(),
            _ => self.below(9).to_string(),
        }
    }

    /// A function from indices to indices.
    fn index_function(&mut self) {
        let (name, of, below) = (self.name("at"), 2 + self.below(4), 2 + self.below(4));
        self.scope = vec![self.parameter("at", of)];
        let value = self.index(below, 3);
        self.line(&format!("pub fn {name}(at: usize) -> usize {{ {value} }}"));
        self.scope.clear();
        self.functions.push(IndexFunction { name, of, below });
    }

    fn parameter(&self, name: &str, below: usize) -> Variable {
        let (name, ty) = (name.to_string(), Ty::Number("usize"));
        Variable { name, ty, mutable: false, below: Some(below), region: self.region, memory: false }
    }

    /// A function of an array and indices of it.
    fn array_function(&mut self) {
        let (name, len, element) = (self.name("f"), 2 + self.below(4), self.one_of(&NUMBERS));
        let (indices, changes) = (1 + self.below(2), self.one_in(2));
        let array = Ty::Array(Box::new(Ty::Number(element)), len);
        let place = if changes { "(*a)" } else { "a" };
        let region = self.region;
        let of = Variable { name: place.to_string(), ty: array, mutable: true, below: None, region, memory: false };
        self.scope = vec![of];
        for i in 0..indices {
            let index = self.parameter(&format!("i{i}"), len);
            self.scope.push(index);
        }
        let parameters: String = (0..indices).map(|i| format!(", i{i}: usize")).collect();
        self.budget = 4;
        let count = 1 + self.below(3);
        // A parameter that is changed is `&mut`, or a copy.
        if changes {
            self.line(&format!("pub fn {name}(a: &mut [{element}; {len}]{parameters}) {{"));
        } else {
            self.line(&format!("pub fn {name}(mut a: [{element}; {len}]{parameters}) -> {element} {{"));
        }
        self.indent += 1;
        self.returns = changes;
        self.statements(count, true);
        self.returns = false;
        if !changes {
            self.scope.truncate(1 + indices);
            let value = self.value(&Ty::Number(element), 2);
            self.line(&value);
        }
        self.indent -= 1;
        self.line("}");
        self.scope.clear();
        self.arrays.push(ArrayFunction { name, element, len, indices, changes });
    }
}

/// Returns an array of these values.
pub fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
    format!("[{}]", values.join(", "))
}
