//! Generation of buffer accesses, shared memory, and collective operations.

use super::{COMMUTATIVE_METHODS, Generator, StatementContext, Variable};
use crate::forms::{BLOCKS, OperandType, OperationForm, SCANS, WARP_FORMS};
use crate::program::{Expr, Statement};
use kernel_dsl_compiler::Scalar::{self, *};

impl Generator {
    /// Generates a load of a buffer element.
    pub(super) fn load(&mut self, ty: Scalar, uniform: bool) -> Option<Expr> {
        let inputs: Vec<_> = self.inputs.iter().filter(|b| b.element == ty).map(|b| b.name.clone()).collect();
        let outputs: Vec<_> = self.outputs.iter().filter(|b| b.element == ty).map(|b| b.name.clone()).collect();
        let view = self.view.as_ref().is_some_and(|v| v.element == ty);
        let index = |g: &mut Generator| g.value(Usize, 1, uniform);
        let (construct, text, arguments) = match self.below(8) {
            0 if view => ("a view's element", "v[($0 & 7, $1 & 7)]".to_string(), vec![index(self), index(self)]),
            1 if view => {
                ("view.get", format!("v.get(($0, $1)).unwrap_or({})", self.literal(ty)), vec![index(self), index(self)])
            }
            2 if view => ("view.at", "v.at($0 & 7)[$1 & 7]".to_string(), vec![index(self), index(self)]),
            3 if view => (
                "view, transposed",
                "v.strided().transposed()[($0 & 7, $1 & 7)]".to_string(),
                vec![index(self), index(self)],
            ),
            // The thread loads an element that it stored itself.
            4 | 5 if !outputs.is_empty() && !uniform => {
                ("an own element", format!("{}[i]", self.one_of(&outputs)), vec![])
            }
            _ if inputs.is_empty() => return None,
            6 => {
                let literal = self.literal(ty);
                let text = format!("{}.get($0 * 37).copied().unwrap_or({literal})", self.one_of(&inputs));
                ("slice.get", text, vec![index(self)])
            }
            7 => {
                let k = self.below(4);
                let literal = self.literal(ty);
                let text = format!("{}.load_or::<4>($0 * 33, {literal})[{k}]", self.one_of(&inputs));
                ("slice.load_or", text, vec![index(self)])
            }
            _ => ("an element", format!("{}[$0]", self.one_of(&inputs)), vec![index(self)]),
        };
        Some(Expr { construct, ty, text, arguments })
    }

    /// Generates a variable with the result of a collective operation.
    pub(super) fn together(&mut self) -> Statement {
        let (all, uniform) = match self.below(8) {
            0..5 => (WARP_FORMS, false),
            5..7 => (BLOCKS, true),
            _ => (SCANS, false),
        };
        let form: OperationForm = self.one_of(all);
        let over = self.one_of(form.over);
        let ty = match form.result {
            OperandType::Of(of) => of,
            _ => over,
        };
        let slots = form.takes.iter().map(|slot| if let OperandType::Of(of) = slot { *of } else { over });
        let values: Vec<Expr> = slots.map(|ty| self.value(ty, 1, false)).collect();
        let name = self.name("w");
        let text = format!("let {name}: {ty} = {};", super::expressions::written(&form, over, ty));
        // Uniformity of narrower values is not proven.
        let uniform = uniform && (ty == Bool || ty.bits() >= 32);
        self.scope.push(Variable { name, ty, mutable: false, uniform });
        Statement { construct: form.name, text, values, blocks: Vec::new() }
    }

    /// Generates a variable with a value that another thread stored to shared memory.
    pub(super) fn shared(&mut self) -> Statement {
        let (n, ty) = (self.threads, self.element());
        let (name, s) = (self.name("w"), self.name("s"));
        let linear = |ty: Scalar, shape: &str, store: &str, load: &str| {
            let rank = if load.contains("[(") { 2 } else { 1 };
            format!(
                "let {name}: {ty} = {{ let mut {s} = Shared::<{ty}, {rank}>::{shape}; {store}; block::sync(); let p = {load}; block::sync(); p }};"
            )
        };
        let (construct, ty, text, takes): (_, Scalar, String, &[Scalar]) = match self.below(13) {
            0 | 1 => {
                let text = linear(ty, &format!("new([{n}])"), &format!("{s}[t] = $0"), &format!("{s}[$1 % {n}]"));
                ("Shared::new", ty, text, &[ty, Usize])
            }
            2 => {
                let (shape, store) = (format!("padded([{}, 8])", n / 8), format!("{s}[(t / 8, t % 8)] = $0"));
                (
                    "Shared::padded",
                    ty,
                    linear(ty, &shape, &store, &format!("{s}[($1 % {}, $2 & 7)]", n / 8)),
                    &[ty, Usize, Usize],
                )
            }
            3 => {
                let (shape, store) =
                    (format!("with_pitch([{}, 16], 19)", n / 16), format!("{s}[(t / 16, t % 16)] = $0"));
                (
                    "Shared::with_pitch",
                    ty,
                    linear(ty, &shape, &store, &format!("{s}[($1 % {}, $2 & 15)]", n / 16)),
                    &[ty, Usize, Usize],
                )
            }
            4 => {
                let ty = if ty.bits() < 32 { U32 } else { ty };
                let text = format!(
                    "let {name}: {ty} = {{ let mut {s} = Shared::<{ty}, 2>::swizzled([{0}, 32]); {s}[(t / 32, t % 32)] = $0; block::sync(); let p = {s}[($1 % {0}, $2 & 31)]; block::sync(); p }};",
                    n / 32
                );
                ("Shared::swizzled", ty, text, &[ty, Usize, Usize])
            }
            5 => {
                let text = linear(
                    ty,
                    &format!("new([{}])", 4 * n),
                    &format!("{s}.store(4 * t, [$0, $1, $2, $0])"),
                    &format!("{s}[$3 * 2]"),
                );
                ("shared.store", ty, text, &[ty, ty, ty, Usize])
            }
            6 => {
                let (k, load) = (self.below(2), format!("{s}.load::<2>(($1 % {}) * 2)", n / 2));
                (
                    "shared.load",
                    ty,
                    linear(ty, &format!("new([{n}])"), &format!("{s}[t] = $0"), &format!("{load}[{k}]")),
                    &[ty, Usize],
                )
            }
            7 => {
                let ty = self.one_of(&[U32, I32, U64]);
                let method = self.one_of(COMMUTATIVE_METHODS);
                let (store, load) =
                    (format!("{s}.fill(1); block::sync(); {s}.{method}($0 & 15, $1 & 0xff)"), format!("{s}[$2 & 15]"));
                ("atomic operations in shared memory", ty, linear(ty, "new([16])", &store, &load), &[Usize, ty, Usize])
            }
            8 => {
                let literal = self.literal(ty);
                let text =
                    linear(ty, "new([40])", &format!("{s}.fill({literal})"), &format!("{s}.get($0).unwrap_or($1)"));
                ("shared.fill, shared.get", ty, text, &[Usize, ty])
            }
            9 if self.view.is_some() => {
                let ty = self.view.as_ref().map_or(U32, |v| v.element);
                (
                    "shared.copy_from",
                    ty,
                    linear(ty, "new([8, 8])", &format!("{s}.copy_from(v)"), &format!("{s}[($0 & 7, $1 & 7)]")),
                    &[Usize, Usize],
                )
            }
            10 if self.view.is_some() => {
                let ty = self.view.as_ref().map_or(U32, |v| v.element);
                let store = format!("let p = {s}.copy_async(v.offset(($2 & 7, $3 & 7))); p.wait()");
                let text = linear(ty, "padded([8, 8])", &store, &format!("{s}[($0 & 7, $1 & 7)]"));
                ("shared.copy_async", ty, text, &[Usize, Usize, Usize, Usize])
            }
            11 => {
                let text = format!(
                    "let {name}: u32 = {{ let mut {s} = Shared::<i32, 1>::new([{n}]); {s}[t] = $0; block::sync(); let p = {s}.cast::<u32>()[$1 % {n}]; block::sync(); p }};"
                );
                ("shared.cast", U32, text, &[I32, Usize])
            }
            _ => {
                let text = format!(
                    "let {name}: {ty} = {{ let mut {s} = Shared::<{ty}, 1>::new([{n}]); {s}[t] = $0; warp::sync(); let p = {s}[t ^ 5]; block::sync(); p }};"
                );
                ("shared memory of a warp", ty, text, &[ty])
            }
        };
        // The start of the copy is uniform across the block.
        let takes: Vec<(Scalar, bool)> =
            takes.iter().enumerate().map(|(n, ty)| (*ty, construct == "shared.copy_async" && n > 1)).collect();
        let values = takes.into_iter().map(|(ty, uniform)| self.value(ty, 1, uniform)).collect();
        self.scope.push(Variable { name, ty, mutable: false, uniform: false });
        Statement { construct, text, values, blocks: Vec::new() }
    }

    /// Generates a store to an element of the thread.
    pub(super) fn store(&mut self) -> Statement {
        if let Some(quads) = self.quads.clone()
            && self.one_in(3)
        {
            let values = (0..4).map(|_| self.value(quads.element, 1, false)).collect();
            let text = "q.store_in(4 * i, [$0, $1, $2, $3]);".to_string();
            return Statement { construct: "slice.store_in", text, values, blocks: Vec::new() };
        }
        let buffer = self.one_of(&self.outputs.clone());
        let values = vec![self.value(buffer.element, 2, false)];
        let construct = "a store";
        let text = format!("{}[i] = $0;", buffer.name);
        Statement { construct, text, values, blocks: Vec::new() }
    }

    /// Generates an atomic operation, on counters or on an element of the thread.
    pub(super) fn atomic(&mut self) -> Statement {
        let words = [U32, I32, U64];
        let own: Vec<_> = self.outputs.iter().filter(|b| words.contains(&b.element)).cloned().collect();
        if !own.is_empty() && (self.counters.is_empty() || self.one_in(3)) {
            let (buffer, name) = (self.one_of(&own), self.name("o"));
            let ty = buffer.element;
            let (construct, call) = match self.below(4) {
                0 => ("exchange", "exchange(i, $0)"),
                1 => ("compare_exchange", "compare_exchange(i, $1, $0)"),
                2 => ("fetch_sub, its old value", "fetch_sub(i, $0)"),
                _ => ("fetch_xor, its old value", "fetch_xor(i, $0)"),
            };
            let values = vec![self.value(ty, 2, false), self.value(ty, 1, false)];
            let text = format!("let {name}: {ty} = {}.{call};", buffer.name);
            self.scope.push(Variable { name, ty, mutable: false, uniform: false });
            return Statement { construct, text, values, blocks: Vec::new() };
        }
        if self.counters.is_empty() {
            return self.store();
        }
        let counters = self.one_of(&self.counters.clone());
        let element = counters.buffer.element;
        let (construct, amount, ty) = match element {
            F32 | F64 => ("atomic operations on floats", format!("($1 & 0xff) as {element}"), U32),
            _ => ("an atomic operation", "$1".to_string(), element),
        };
        let values = vec![self.value(Usize, 2, false), self.value(ty, 2, false)];
        let text = format!("{}.{}($0 & 31, {amount});", counters.buffer.name, counters.method);
        Statement { construct, text, values, blocks: Vec::new() }
    }

    /// Generates a fence or, where all threads are converged, a barrier of the warp.
    pub(super) fn order(&mut self, place: StatementContext) -> Statement {
        let text = if place.uniform {
            self.one_of(&["warp::sync();", "block::sync();", "fence::block();", "fence::grid();"])
        } else {
            "fence::block();"
        };
        Statement { construct: "a fence or barrier", text: text.to_string(), values: Vec::new(), blocks: Vec::new() }
    }
}
