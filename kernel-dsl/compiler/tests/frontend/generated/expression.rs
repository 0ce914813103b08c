//! Values, indices and places.

use super::generator::{Generator, IndexTable, Ty, Variable, list};

impl Generator {
    /// A `usize` below `below` that is constant once all loops are unrolled.
    pub fn index(&mut self, below: usize, depth: u32) -> String {
        if self.may_run_time && self.kernel && self.one_in(24) {
            self.run_time = true;
            return self.one_of(&[
                format!("n % {below}"),
                format!("x[t] as usize % {below}"),
                format!("(t + n) % {below}"),
            ]);
        }
        let literal = self.below(below);
        if depth == 0 {
            return self.index_variable(below, false).unwrap_or(literal.to_string());
        }
        let d = depth - 1;
        match self.below(20) {
            0 => literal.to_string(),
            1 => {
                let known: Vec<String> =
                    self.numbers.iter().filter(|(_, n)| *n < below).map(|(n, _)| n.clone()).collect();
                if known.is_empty() { literal.to_string() } else { self.one_of(&known) }
            }
            2..=6 => self.table(below, d).unwrap_or(literal.to_string()),
            7..=10 => self.index_variable(below, true).unwrap_or(literal.to_string()),
            11 => {
                let of = 1 + self.below(5);
                format!("({} + {literal}) % {below}", self.index(of, d))
            }
            12 => format!("({} - {})", below - 1, self.index(below, d)),
            13 => {
                let mask = (below + 1).next_power_of_two() / 2 - 1;
                format!("({} & {mask})", self.index(16, d))
            }
            14 => {
                let (condition, yes, no) = (self.constant_condition(d), self.index(below, d), self.index(below, d));
                format!("(if {condition} {{ {yes} }} else {{ {no} }})")
            }
            15 => {
                let (of, yes, no) = (self.index(3, d), self.index(below, d), self.index(below, d));
                format!("(match {of} {{ 0 => {yes}, 1 | 2 => {no}, _ => {literal} }})")
            }
            16 | 17 => {
                let known: Vec<_> = self.functions.iter().filter(|f| f.below <= below).cloned().collect();
                if known.is_empty() {
                    return literal.to_string();
                }
                let function = self.one_of(&known);
                format!("{}({})", function.name, self.index(function.of, d))
            }
            18 => format!("usize::min({}, {})", self.index(8, d), below - 1),
            _ => format!("{} / 2", self.index(below, d)),
        }
    }

    /// A `usize` below `below` that may depend on the thread.
    fn any_index(&mut self, below: usize, depth: u32) -> String {
        let counted: Vec<String> =
            self.scope.iter().filter(|v| v.name.starts_with('r')).map(|v| v.name.clone()).collect();
        match self.below(5) {
            0 if self.kernel => format!("(x[t] as usize + n) % {below}"),
            1 if self.kernel => format!("(t ^ {}) % {below}", self.index(8, depth)),
            2 | 3 if !counted.is_empty() => format!("{} as usize % {below}", self.one_of(&counted)),
            _ => self.index(below, depth),
        }
    }

    /// Returns an element of a constant array of indices below `below`.
    fn table(&mut self, below: usize, depth: u32) -> Option<String> {
        let known: Vec<IndexTable> = self.tables.iter().filter(|t| t.below <= below).cloned().collect();
        if known.is_empty() {
            return None;
        }
        let table = self.one_of(&known);
        let mut text = table.name.clone();
        for n in &table.extents {
            text += &format!("[{}]", self.index(*n, depth));
        }
        text += table.part;
        Some(match table.ty {
            "usize" => text,
            "u64" => format!("(({text} & 15) as usize)"),
            "i32" => format!("({text} as u32 as usize)"),
            _ => format!("({text} as usize)"),
        })
    }

    /// A variable that is an index, or with `arrays` an element of an array of indices.
    fn index_variable(&mut self, below: usize, arrays: bool) -> Option<String> {
        let fits = |v: &&Variable| v.below.is_some_and(|b| b <= below) && (arrays || !matches!(v.ty, Ty::Array(..)));
        let known: Vec<Variable> = self.scope.iter().filter(fits).cloned().collect();
        if known.is_empty() {
            return None;
        }
        let variable = self.one_of(&known);
        Some(match &variable.ty {
            Ty::Array(_, n) => format!("{}[{}]", variable.name, self.index(*n, 0)),
            _ => variable.name.clone(),
        })
    }

    /// A condition that is constant once all loops are unrolled.
    pub fn constant_condition(&mut self, depth: u32) -> String {
        let (a, b) = (self.index(5, depth), self.below(5));
        match self.below(4) {
            0 => format!("{a} < {}", b + 1),
            1 => format!("{a} == {b}"),
            2 => format!("{a} % 2 == {}", b % 2),
            _ => format!("{a} != {b} && {} < {}", self.index(4, depth), b + 1),
        }
    }

    /// A condition that may depend on the thread.
    pub fn condition(&mut self, depth: u32) -> String {
        if self.one_in(3) {
            return self.constant_condition(depth);
        }
        if self.one_in(4) {
            return self.value(&Ty::Bool, depth);
        }
        let (a, b) = (self.value(&Ty::Number("u32"), depth), self.value(&Ty::Number("u32"), 0));
        format!("({a}) < {b}")
    }

    /// A value of a type.
    pub fn value(&mut self, ty: &Ty, depth: u32) -> String {
        if !self.one_in(4)
            && let Some((place, _)) = self.place_of(ty, false, depth.saturating_sub(1))
        {
            return place;
        }
        let d = depth.saturating_sub(1);
        if depth > 0 && self.one_in(6) {
            let (condition, yes, no) = (self.condition(d), self.value(ty, d), self.value(ty, d));
            return format!("(if {condition} {{ {yes} }} else {{ {no} }})");
        }
        match ty {
            Ty::Bool => match self.below(4) {
                3 if depth > 0 => {
                    let of = self.ty(1);
                    let operator = self.one_of(&["==", "!="]);
                    format!("(({}) {operator} ({}))", self.value(&of, d), self.value(&of, 0))
                }
                0 => format!("({})", self.constant_condition(d)),
                1 if depth > 0 => format!("!{}", self.value(ty, d)),
                _ => "true".to_string(),
            },
            Ty::Array(of, n) => match self.below(4) {
                0 => format!("[{}; {n}]", self.value(of, d)),
                1 if matches!(**of, Ty::Number(_)) && depth > 0 => {
                    let Some((place, _)) = self.place_of(ty, false, 0) else { return self.elements(of, *n, d) };
                    let element = self.value(of, 0);
                    match self.below(3) {
                        0 => format!("{place}.map(|v| if v == {element} {{ {element} }} else {{ v }})"),
                        _ => {
                            let index = self.name("i");
                            self.with_index(&index, *n, |g| {
                                let at = g.index(*n, 1);
                                format!("std::array::from_fn(|{index}| {place}[{at}])")
                            })
                        }
                    }
                }
                _ => self.elements(of, *n, d),
            },
            Ty::Tuple(parts) => {
                let values: Vec<String> = parts.iter().map(|p| self.value(p, d)).collect();
                format!("({},)", values.join(", "))
            }
            Ty::Struct(id) => {
                let fields = self.structs[*id].fields.clone();
                let values: Vec<String> =
                    fields.iter().enumerate().map(|(i, f)| format!("f{i}: {}", self.value(f, d))).collect();
                format!("S{id} {{ {} }}", values.join(", "))
            }
            Ty::Enum(id) => {
                let variants = self.enums[*id].variants.clone();
                let i = self.below(variants.len());
                let values: Vec<String> = variants[i].iter().map(|ty| self.value(ty, d)).collect();
                let arguments = match self.enum_arguments(*id) {
                    none if none.is_empty() => none,
                    some => format!("::{some}"),
                };
                let variant = match self.one_in(3) {
                    true => format!("E{id}::V{i}{arguments}"),
                    false => format!("E{id}{arguments}::V{i}"),
                };
                match (values.len(), i % 2) {
                    (0, _) => variant,
                    (_, 0) => format!("{variant}({})", values.join(", ")),
                    _ => {
                        let named: Vec<_> = values.iter().enumerate().map(|(f, v)| format!("f{f}: {v}")).collect();
                        format!("{variant} {{ {} }}", named.join(", "))
                    }
                }
            }
            Ty::Number(name) => self.number(name, depth),
        }
    }

    fn elements(&mut self, of: &Ty, n: usize, depth: u32) -> String {
        list((0..n).map(|_| self.value(of, depth)).collect::<Vec<_>>())
    }

    /// Calls `f` with an index in scope.
    pub fn with_index<T>(&mut self, name: &str, below: usize, f: impl FnOnce(&mut Generator) -> T) -> T {
        let (name, ty) = (name.to_string(), Ty::Number("usize"));
        self.scope.push(Variable { name, ty, mutable: false, below: Some(below), region: self.region, memory: false });
        let result = f(self);
        self.scope.pop();
        result
    }

    fn number(&mut self, name: &'static str, depth: u32) -> String {
        let float = name.starts_with('f');
        let literal = if float { format!("{}.5", self.below(9)) } else { format!("{}{name}", self.below(9)) };
        if depth == 0 {
            return literal;
        }
        let d = depth - 1;
        let ty = Ty::Number(name);
        match self.below(11) {
            0 => literal,
            9 => {
                let known: Vec<_> = self.constants.iter().filter(|f| f.element == name).cloned().collect();
                let function = if known.is_empty() { return literal } else { self.one_of(&known) };
                let (constant, value) = (self.constant_value(function.constant), self.value(&ty, d));
                format!("{}::<{constant}>({value})", function.name)
            }
            10 if !self.enums.is_empty() => {
                let id = self.below(self.enums.len());
                let value = self.value(&Ty::Enum(id), d);
                self.matched(&value, id, name, &literal)
            }
            1 | 2 if self.kernel => {
                let at = match self.below(3) {
                    0 => "t".to_string(),
                    1 => self.index(32, d),
                    _ => format!("t ^ {}", self.index(8, d)),
                };
                format!("x[{at}] as {name}")
            }
            3 => format!("({}) as {name}", self.index(16, d)),
            4 => {
                let known: Vec<_> = self.arrays.iter().filter(|f| f.element == name && !f.changes).cloned().collect();
                let function = if known.is_empty() { return literal } else { self.one_of(&known) };
                let array = self.value(&Ty::Array(Box::new(ty), function.len), 0);
                let indices: String =
                    (0..function.indices).map(|_| format!(", {}", self.index(function.len, d))).collect();
                format!("{}({array}{indices})", function.name)
            }
            5 => {
                let of = self.structs.iter().position(|s| matches!(&s.fields[0], Ty::Array(e, _) if **e == ty));
                let Some(id) = of else { return literal };
                let Ty::Array(_, n) = self.structs[id].fields[0].clone() else { return literal };
                let Some((place, _)) = self.place_of(&Ty::Struct(id), false, 0) else { return literal };
                format!("{place}.get({})", self.index(n, d))
            }
            6 => {
                let (value, other) = (self.value(&ty, d), self.value(&ty, d));
                format!("{{ let v = {value}; if v == {other} {{ {literal} }} else {{ v }} }}")
            }
            _ if float => format!("({} + {})", self.value(&ty, d), self.value(&ty, d)),
            7 => format!("({}).wrapping_add({})", self.value(&ty, d), self.value(&ty, d)),
            _ => format!("({} ^ {})", self.value(&ty, d), self.value(&ty, d)),
        }
    }

    /// A `match` of an enum with a number as value.
    fn matched(&mut self, value: &str, id: usize, name: &str, literal: &str) -> String {
        // The value may be a literal of a struct, which needs parentheses here.
        let mut text = format!("(match ({value}) {{ ");
        for (i, fields) in self.enums[id].variants.clone().into_iter().enumerate() {
            let names: Vec<String> = fields.iter().map(|_| self.name("v")).collect();
            let mut found = None;
            for (name, ty) in names.iter().zip(&fields) {
                let (name, ty) = (name.clone(), ty.clone());
                let of = Variable { name, ty, mutable: false, below: None, region: self.region, memory: false };
                found = found.or(self.some_number(&of));
            }
            let pattern = match (fields.len(), i % 2) {
                (0, _) => String::new(),
                (_, 0) => format!("({})", names.join(", ")),
                _ => {
                    let named: Vec<_> = names.iter().enumerate().map(|(f, v)| format!("f{f}: {v}")).collect();
                    format!(" {{ {} }}", named.join(", "))
                }
            };
            let value = found.map_or(literal.to_string(), |found| format!("{found} as {name}"));
            text += &format!("E{id}::V{i}{pattern} => {value}, ");
        }
        text + "})"
    }

    /// A place of a type in a variable, and the variable.
    pub fn place_of(&mut self, ty: &Ty, mutable: bool, depth: u32) -> Option<(String, Variable)> {
        let fits = |v: &&Variable| v.below.is_none() && (v.mutable || !mutable);
        let all: Vec<Variable> = self.scope.iter().filter(fits).cloned().collect();
        let mut found = Vec::new();
        for variable in all {
            let mut paths = Vec::new();
            self.paths(&variable.ty, ty, &mut Vec::new(), &mut paths);
            found.extend(paths.into_iter().map(|path| (variable.clone(), path)));
        }
        if found.is_empty() {
            return None;
        }
        let (variable, path) = self.one_of(&found);
        let mut text = variable.name.clone();
        for (nth, step) in path.into_iter().enumerate() {
            text += &match step {
                // Only the outermost index is that of the array in local memory.
                Step::Index(n) if nth == 0 && variable.memory => format!("[{}]", self.any_index(n, depth)),
                Step::Index(n) => format!("[{}]", self.index(n, depth)),
                Step::Part(name) => format!(".{name}"),
            };
        }
        Some((text, variable))
    }

    /// Collects the ways from a value of type `from` to its parts of type `to`.
    fn paths(&self, from: &Ty, to: &Ty, so_far: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
        if from == to {
            found.push(so_far.clone());
            return;
        }
        let parts: Vec<(Step, Ty)> = match from {
            Ty::Array(of, n) => vec![(Step::Index(*n), (**of).clone())],
            Ty::Tuple(parts) => parts.iter().enumerate().map(|(i, p)| (Step::Part(i.to_string()), p.clone())).collect(),
            Ty::Struct(id) => {
                let fields = self.structs[*id].fields.iter().enumerate();
                fields.map(|(i, f)| (Step::Part(format!("f{i}")), f.clone())).collect()
            }
            Ty::Number(_) | Ty::Bool | Ty::Enum(_) => Vec::new(),
        };
        for (step, part) in parts {
            so_far.push(step);
            self.paths(&part, to, so_far, found);
            so_far.pop();
        }
    }

    /// A `u32` made of some number in a variable.
    pub fn some_number(&mut self, variable: &Variable) -> Option<String> {
        let mut paths = Vec::new();
        for name in super::generator::NUMBERS.into_iter().chain(["usize"]) {
            self.paths(&variable.ty, &Ty::Number(name), &mut Vec::new(), &mut paths);
        }
        if paths.is_empty() {
            return None;
        }
        let mut text = variable.name.clone();
        for step in self.one_of(&paths) {
            text += &match step {
                Step::Index(n) => format!("[{}]", self.index(n, 1)),
                Step::Part(name) => format!(".{name}"),
            };
        }
        Some(format!("{text} as u32"))
    }
}

/// A step from a value to a part of it.
#[derive(Clone, Debug)]
enum Step {
    Index(usize),
    Part(String),
}
