//! Statements.

use super::generator::{Generator, Ty, Variable};

impl Generator {
    /// Writes some statements in a separate scope. `kept` leaves their variables in scope.
    pub fn statements(&mut self, count: usize, kept: bool) {
        let scope = self.scope.len();
        let outer = std::mem::replace(&mut self.outer, scope);
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.statement();
        }
        self.outer = outer;
        if !kept {
            self.scope.truncate(scope);
        }
    }

    fn block(&mut self) {
        self.indent += 1;
        let count = 1 + self.below(3);
        self.statements(count, false);
        self.indent -= 1;
    }

    /// A block that threads reach, or leave, one by one.
    fn apart(&mut self, f: impl FnOnce(&mut Generator)) {
        self.regions += 1;
        let region = std::mem::replace(&mut self.region, self.regions);
        f(self);
        self.region = region;
    }

    fn declare(&mut self, name: String, ty: Ty, mutable: bool, below: Option<usize>) {
        self.scope.push(Variable { name, ty, mutable, below, region: self.region, memory: false });
    }

    /// Declares an array of numbers, on which the statements work.
    pub fn let_array(&mut self) {
        if self.one_in(4) {
            return self.local_array();
        }
        let (name, n, element) = (self.name("a"), 2 + self.below(4), self.one_of(&super::generator::NUMBERS));
        let ty = Ty::Array(Box::new(Ty::Number(element)), n);
        let value = self.value(&ty, 2);
        let written = self.written(&ty);
        self.line(&format!("let mut {name}: {written} = {value};"));
        self.declare(name, ty, true, None);
    }

    /// Declares an array in local memory, and writes each element.
    fn local_array(&mut self) {
        let (name, n, of) = (self.name("m"), 2 + self.below(4), self.ty(1));
        let written = self.written(&of);
        self.line(&format!("let mut {name} = thread::local::<[{written}; {n}]>();"));
        let index = self.name("i");
        let value = self.value(&of, 1);
        let wrapped = self.one_of(&["0..", "rolled(0..", "unroll(0.."]);
        let end = if wrapped.contains('(') { ")" } else { "" };
        self.line(&format!("for {index} in {wrapped}{n}{end} {{ {name}[{index}] = {value}; }}"));
        let ty = Ty::Array(Box::new(of), n);
        self.scope.push(Variable { name, ty, mutable: true, below: None, region: self.region, memory: true });
    }

    fn statement(&mut self) {
        match self.below(26) {
            0 | 1 => self.let_array(),
            2 => {
                let ty = self.ty(2);
                let (value, written) = (self.value(&ty, 2), self.written(&ty));
                // Shadows a variable that nothing else names, sometimes.
                let name = match self.scope.last().cloned() {
                    Some(last) if self.scope.len() > self.outer && self.one_in(3) => {
                        self.scope.pop();
                        last.name
                    }
                    _ => self.name("v"),
                };
                let mutable = !self.one_in(3);
                self.line(&format!("let {}{name}: {written} = {value};", if mutable { "mut " } else { "" }));
                self.declare(name, ty, mutable, None);
            }
            3 | 4 => self.let_indices(),
            5..=7 => self.assign(),
            8 => self.assign_index(),
            9 | 10 => self.swap(),
            11..=14 => self.unrolled(),
            15 => self.rolled(),
            16 | 17 => {
                let condition = self.condition(2);
                self.line(&format!("if {condition} {{"));
                self.apart(|g| {
                    g.block();
                    if !g.jumps.is_empty() && g.one_in(2) {
                        let jump = g.one_of(&["break", "continue"]);
                        let label = g.one_of(&g.jumps.clone());
                        g.line(&format!("    {jump} {label};"));
                    } else if g.returns && g.one_in(4) {
                        g.line("    return;");
                    }
                });
                if self.one_in(2) {
                    self.line("} else {");
                    self.apart(Generator::block);
                }
                self.line("}");
            }
            18 => {
                let of = self.index(5, 2);
                self.line(&format!("match {of} {{"));
                for pattern in ["0", "1 | 2", "_"] {
                    self.line(&format!("    {pattern} => {{"));
                    self.indent += 1;
                    self.apart(Generator::block);
                    self.indent -= 1;
                    self.line("    }");
                }
                self.line("}");
            }
            19 | 20 => self.neighbors(),
            21 | 22 => self.call(),
            23 => self.closure(),
            24 => self.pattern(),
            _ => {
                let ty = self.ty(1);
                let (condition, value, other) = (self.condition(1), self.value(&ty, 1), self.value(&ty, 1));
                let (name, label) = (self.name("v"), self.name("'b"));
                // `from_fn` alone does not state the length of its array.
                let undetermined = [&value, &other].iter().any(|value| value.contains("from_fn"));
                let written = if undetermined { format!(": {}", self.written(&ty)) } else { String::new() };
                self.line(&format!("let mut {name}{written} = {label}: {{"));
                self.line(&format!("    if {condition} {{ break {label} {value}; }}"));
                self.line(&format!("    {other}"));
                self.line("};");
                self.declare(name, ty, true, None);
            }
        }
    }

    /// A variable that is an index, an array of indices, or a constant array of the body.
    fn let_indices(&mut self) {
        let below = 2 + self.below(4);
        if self.one_in(2) {
            let name = self.name("i");
            let value = self.index(below, 3);
            let mutable = self.one_in(2);
            self.line(&format!("let {}{name} = {value};", if mutable { "mut " } else { "" }));
            return self.declare(name, Ty::Number("usize"), mutable, Some(below));
        }
        let n = 2 + self.below(3);
        let ty = Ty::Array(Box::new(Ty::Number("usize")), n);
        if self.one_in(2) {
            let name = self.name("P");
            let values: Vec<usize> = (0..n).map(|_| self.below(below)).collect();
            self.line(&format!("const {name}: [usize; {n}] = {values:?};"));
            return self.declare(name, ty, false, Some(below));
        }
        let name = self.name("p");
        let values: Vec<String> = (0..n).map(|_| self.index(below, 1)).collect();
        self.line(&format!("let mut {name} = [{}];", values.join(", ")));
        self.declare(name, ty, true, Some(below));
    }

    fn assign(&mut self) {
        let ty = if self.one_in(3) { self.ty(1) } else { Ty::Number(self.one_of(&super::generator::NUMBERS)) };
        let Some((place, _)) = self.place_of(&ty, true, 3) else { return };
        let value = self.value(&ty, 2);
        let operator = match &ty {
            Ty::Number("f32" | "f64") => self.one_of(&["=", "+=", "*="]),
            Ty::Number(_) => self.one_of(&["=", "^=", "|=", "&="]),
            Ty::Bool => self.one_of(&["=", "&=", "^="]),
            _ => "=",
        };
        self.line(&format!("{place} {operator} {value};"));
    }

    /// Changes an index, only where all threads change it alike.
    fn assign_index(&mut self) {
        let here = |v: &&Variable| v.below.is_some() && v.mutable && v.region == self.region;
        let known: Vec<Variable> = self.scope.iter().filter(here).cloned().collect();
        if known.is_empty() {
            return;
        }
        let variable = self.one_of(&known);
        let below = variable.below.unwrap_or(1);
        match variable.ty {
            Ty::Array(_, n) => {
                let (at, value) = (self.index(n, 1), self.index(below, 2));
                self.line(&format!("{}[{at}] = {value};", variable.name));
            }
            _ if self.one_in(2) => self.line(&format!("{0} = ({0} + 1) % {below};", variable.name)),
            _ => {
                let value = self.index(below, 2);
                self.line(&format!("{} = {value};", variable.name));
            }
        }
    }

    fn swap(&mut self) {
        let ty = Ty::Number(self.one_of(&super::generator::NUMBERS));
        let (Some((a, _)), Some((b, _))) = (self.place_of(&ty, true, 2), self.place_of(&ty, true, 2)) else { return };
        // `swap` takes places without calls in their indices.
        let plain = [&a, &b].iter().all(|place| !place.replace("(*", "").contains('('));
        match self.below(3) {
            0 => self.line(&format!("({a}, {b}) = ({b}, {a});")),
            1 if plain => self.line(&format!("std::mem::swap(&mut {a}, &mut {b});")),
            _ => {
                let name = self.name("t");
                self.line(&format!("let {name} = {a};"));
                self.line(&format!("{a} = {b};"));
                self.line(&format!("{b} = {name};"));
            }
        }
    }

    /// A loop whose index is constant in each copy.
    fn unrolled(&mut self) {
        let n = 2 + self.below(3);
        if self.copies * n > 64 {
            return;
        }
        let (name, label) = (self.name("k"), self.name("'l"));
        let range = match self.below(6) {
            4 => format!("0..={}", n - 1),
            5 => format!("(0..={}).rev()", n - 1),
            0 => format!("(0..{n}).rev()"),
            1 => format!("(0..{n}).step_by(2)"),
            2 => format!("{}..{n}", self.start(n)),
            _ => format!("0..{n}"),
        };
        let jumps = self.one_in(3);
        if jumps {
            self.line(&format!("{label}: for {name} in unroll({range}) {{"));
        } else {
            self.line(&format!("for {name} in unroll({range}) {{"));
        }
        self.copies *= n;
        let outer = self.jumps.len();
        if jumps {
            self.jumps.push(label);
            self.apart(|g| g.with_index(&name, n, Generator::block));
        } else {
            // A jump to a loop around would leave this one too.
            let around = std::mem::take(&mut self.jumps);
            self.with_index(&name, n, Generator::block);
            self.jumps = around;
        }
        self.jumps.truncate(outer);
        self.copies /= n;
        self.line("}");
    }

    /// Returns the start of a range, which is constant before any loop is unrolled.
    fn start(&mut self, below: usize) -> String {
        let known: Vec<String> = self.numbers.iter().filter(|(_, n)| *n < below).map(|(n, _)| n.clone()).collect();
        if known.is_empty() || self.one_in(2) { self.below(below).to_string() } else { self.one_of(&known) }
    }

    /// A loop that stays one, whose index is not an index of registers.
    fn rolled(&mut self) {
        let (name, label) = (self.name("r"), self.name("'l"));
        let n = 5 + self.below(4);
        let ahead = match self.below(4) {
            0 => {
                self.line(&format!("let mut {name} = 0u32;"));
                format!("while {name} < {n}")
            }
            1 => format!("for {name} in rolled(0..{n}u32)"),
            2 => format!("for {name} in rolled(0..={}u32)", n - 1),
            _ => format!("for {name} in 0..{n}u32"),
        };
        self.line(&format!("{label}: {ahead} {{"));
        if ahead.starts_with("while") {
            self.line(&format!("    {name} += 1;"));
        }
        self.jumps.push(label);
        let scope = self.scope.len();
        self.apart(|g| {
            g.declare(name, Ty::Number("u32"), false, None);
            g.block();
        });
        self.scope.truncate(scope);
        self.jumps.pop();
        self.line("}");
    }

    /// Writes accesses to the elements beside an index, where there are such elements.
    fn neighbors(&mut self) {
        let mut arrays = Vec::new();
        for v in self.scope.iter().filter(|v| v.mutable && v.below.is_none()) {
            if let Ty::Array(of, n) = &v.ty
                && matches!(**of, Ty::Number(_))
            {
                arrays.push((v.name.clone(), *n));
            }
        }
        if arrays.is_empty() {
            return;
        }
        let (array, n) = self.one_of(&arrays);
        let index = self.name("i");
        let value = self.index(n, 2);
        self.line(&format!("let {index} = {value};"));
        if self.one_in(2) {
            self.line(&format!("if {index} + 1 < {n} {{ {array}[{index} + 1] = {array}[{index}]; }}"));
        } else {
            self.line(&format!("if {index} > 0 {{ {array}[{index} - 1] = {array}[{index}]; }}"));
        }
    }

    fn call(&mut self) {
        let known: Vec<_> = self.arrays.iter().filter(|f| f.changes).cloned().collect();
        if known.is_empty() || self.one_in(3) {
            let of: Vec<usize> = (0..self.structs.len()).collect();
            if of.is_empty() {
                return;
            }
            let id = self.one_of(&of);
            let Some((place, _)) = self.place_of(&Ty::Struct(id), true, 0) else { return };
            let Ty::Array(element, n) = self.structs[id].fields[0].clone() else { return };
            let (at, value) = (self.index(n, 2), self.value(&element, 1));
            let name = self.name("w");
            self.line(&format!("let {name} = {value};"));
            return self.line(&format!("{place}.set({at}, {name});"));
        }
        let function = self.one_of(&known);
        let ty = Ty::Array(Box::new(Ty::Number(function.element)), function.len);
        let Some((place, _)) = self.place_of(&ty, true, 1) else { return };
        let indices: Vec<String> = (0..function.indices).map(|_| self.index(function.len, 2)).collect();
        self.line(&format!("{}(&mut {place}, {});", function.name, indices.join(", ")));
    }

    fn closure(&mut self) {
        let element = self.one_of(&super::generator::NUMBERS);
        let (name, n) = (self.name("f"), 2 + self.below(4));
        let value = self.with_index("at", n, |g| g.value(&Ty::Number(element), 2));
        let (at, again) = (self.index(n, 2), self.index(n, 1));
        let (first, second) = (self.name("v"), self.name("v"));
        self.line(&format!("let {name} = |at: usize| {value};"));
        self.line(&format!("let ({first}, {second}) = ({name}({at}), {name}({again}));"));
        self.declare(first, Ty::Number(element), false, None);
        self.declare(second, Ty::Number(element), false, None);
    }

    fn pattern(&mut self) {
        let element = self.one_of(&super::generator::NUMBERS);
        let ty = Ty::Array(Box::new(Ty::Number(element)), 3);
        let Some((place, _)) = self.place_of(&ty, false, 1) else { return };
        let (a, b) = (self.name("v"), self.name("v"));
        self.line(&format!("let [mut {a}, .., {b}] = {place};"));
        self.declare(a, Ty::Number(element), true, None);
        self.declare(b, Ty::Number(element), false, None);
    }
}
