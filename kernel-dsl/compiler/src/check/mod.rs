//! Names, types and mutability: the language's tree to HIR.
//!
//! Types are inferred by unification over one table a function, as rustc does it, so that a kernel means here what it
//! means there. rustc checks the same body: a mistake that both see is told by rustc alone (see [`expand`](crate::expand)),
//! so the sentences here are for what rustc accepts and the device does not, and for users of the compiler as a library.
//!
//! What leaves this module has no unknown type, no unresolved name, and assigns to nothing that is not `mut`.

mod call;
mod closure;
#[cfg(test)]
mod documented;
mod expression;
mod group;
mod link;
mod option;
mod pattern;
pub(crate) mod prelude;
mod statement;
mod types;

use crate::Scalar;
use crate::hir::{self, LabelId, LocalId};
use crate::syntax::{self, Mark};
use link::Linked;
use proc_macro2::TokenStream;
use quote::quote;
use types::{Finished, Id, Kind, Table, Ty};

/// A device function that a body calls: its path as written, and what was handed over for it.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Tokens of the path, as [`syntax::Path::written`] gives them.
    pub path: String,
    /// The function, closed over its own callees.
    pub library: hir::Library,
}

/// A mistake of names, types or mutability.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// First and last token.
    pub mark: Mark,
    /// What is wrong and what to do.
    pub message: String,
}

/// What was checked, with what rustc can confirm of it.
#[derive(Clone, Debug)]
pub struct Checked<T> {
    /// The result.
    pub hir: T,
    /// Each variable bound by a plain `let`: its name's token, and the type that was inferred, if Rust can write it.
    pub locals: Vec<(proc_macro2::Span, TokenStream)>,
    /// Each function of the prelude that is called: as written, and below `kernel_dsl::prelude`, both with their type argument.
    pub prelude: Vec<(TokenStream, TokenStream)>,
}

/// Checks a kernel with what was handed over for the device functions that it calls.
pub fn kernel(kernel: &syntax::Kernel, callees: &[Callee]) -> Result<Checked<hir::Program>, Vec<Mistake>> {
    let mut checker = Checker::new(&kernel.function, callees);
    checker.signature();
    let usize = checker.table.scalar(Scalar::Usize);
    let bool = checker.table.scalar(Scalar::Bool);
    let list = |checker: &mut Checker, all: &[syntax::Expr]| -> Vec<hir::Expr> {
        all.iter().map(|e| checker.wanted(e, usize)).collect()
    };
    let mut block = list(&mut checker, &kernel.block);
    let mut grid = list(&mut checker, &kernel.grid);
    let mut requires: Vec<_> = kernel
        .requires
        .iter()
        .map(|(e, text)| hir::Requirement { condition: checker.wanted(e, bool), text: text.clone() })
        .collect();
    if let Some(ty) = &kernel.function.returns {
        checker.mistake(ty.mark, "a kernel returns nothing: it writes its results to buffers");
    }
    checker.parameters_of_kernel();
    let mut body = checker.body();
    let mut finish = checker.finish(&mut body);
    let conditions = requires.iter_mut().map(|r| &mut r.condition);
    for e in block.iter_mut().chain(&mut grid).chain(conditions) {
        finish.expr(e);
    }
    let (function, rest) = finish.done(body)?;
    let launch = hir::Launch {
        block,
        grid,
        requires,
        min_blocks: kernel.min_blocks,
        max_registers: kernel.max_registers,
        target: kernel.target,
        instances: kernel.instances.clone(),
    };
    Ok(rest.map(|callees| hir::Program { launch, functions: std::iter::once(function).chain(callees).collect() }))
}

/// Checks a device function with what was handed over for those that it calls.
pub fn device(function: &syntax::Function, callees: &[Callee]) -> Result<Checked<hir::Library>, Vec<Mistake>> {
    let mut checker = Checker::new(function, callees);
    checker.signature();
    let mut body = checker.body();
    let finish = checker.finish(&mut body);
    let (function, rest) = finish.done(body)?;
    Ok(rest.map(|callees| hir::Library { functions: std::iter::once(function).chain(callees).collect() }))
}

impl<T> Checked<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Checked<U> {
        Checked { hir: f(self.hir), locals: self.locals, prelude: self.prelude }
    }
}

/// A function being checked.
struct Checker<'a> {
    function: &'a syntax::Function,
    generics: Vec<hir::Generic>,
    linked: Linked,
    table: Table,
    locals: Vec<Variable>,
    /// Names in scope, innermost last.
    scope: Vec<(String, LocalId)>,
    loops: Vec<Loop>,
    labels: u32,
    /// Closures and functions that stand for them, so far.
    closures: u32,
    returns: Id,
    /// Literals whose bits depend on a type to be inferred.
    literals: Vec<Literal>,
    /// Plain `let`s, for rustc to confirm.
    bound: Vec<(proc_macro2::Span, LocalId)>,
    /// Calls of the prelude, for rustc to confirm: path, canonical path, type argument.
    called: Vec<(TokenStream, TokenStream, Option<Id>)>,
    mistakes: Vec<Mistake>,
}

struct Variable {
    name: String,
    ty: Id,
    mutable: bool,
    /// Declared without a value: the first assignment needs no `mut`, and rustc sees to it that it is the only one.
    unset: bool,
    /// Assigned as a whole somewhere, or lent to be.
    assigned: bool,
    mark: Mark,
}

struct Loop {
    label: Option<String>,
    id: LabelId,
    /// Of a `loop`: the type of its `break`s, once there is one.
    result: Option<Id>,
    is_loop: bool,
}

#[derive(Clone, Copy)]
enum Literal {
    Integer(u64, Mark),
    Float(syntax::Float),
}

impl<'a> Checker<'a> {
    fn new(function: &'a syntax::Function, callees: &[Callee]) -> Checker<'a> {
        let mut table = Table::default();
        let returns = table.add(Ty::Unit);
        let generics = function.generics.iter().map(|g| hir::Generic { name: g.name.to_string(), ty: g.ty }).collect();
        Checker {
            function,
            generics,
            linked: Linked::new(callees),
            table,
            locals: Vec::new(),
            scope: Vec::new(),
            loops: Vec::new(),
            labels: 0,
            closures: 0,
            returns,
            literals: Vec::new(),
            bound: Vec::new(),
            called: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    fn mistake(&mut self, mark: Mark, message: impl Into<String>) {
        self.mistakes.push(Mistake { mark, message: message.into() });
    }

    fn wrong(&mut self) -> Id {
        self.table.add(Ty::Wrong)
    }

    fn named(&self, id: Id) -> String {
        self.table.name(id, &self.generics)
    }

    fn signature(&mut self) {
        for p in &self.function.parameters {
            let ty = self.ty(&p.ty);
            let mark = p.ty.mark;
            self.declare(p.name.to_string(), ty, p.mutable, false, mark);
        }
        if let Some(ty) = &self.function.returns {
            self.returns = self.ty(ty);
            if self.is_closure(self.returns) {
                self.mistake(ty.mark, "a device function cannot give a closure: pass what it captures, and make the closure where it is called");
            }
        }
    }

    /// A kernel's parameters are what a launch can pass.
    fn parameters_of_kernel(&mut self) {
        for (i, p) in self.function.parameters.iter().enumerate() {
            let passable = matches!(
                self.table.get(self.locals[i].ty),
                Ty::Scalar(_) | Ty::Slice { .. } | Ty::View { .. } | Ty::Wrong
            );
            if !passable {
                let name = self.named(self.locals[i].ty);
                self.mistake(
                    p.ty.mark,
                    format!("a kernel cannot take `{name}`: its parameters are numbers, bool, `&[T]`, `&mut [T]`, `View` and `ViewMut`"),
                );
            }
        }
    }

    fn body(&mut self) -> hir::Block {
        let returns = self.returns;
        let (block, ty) = self.block(&self.function.body, Some(returns));
        self.coerce(ty, returns, self.function.body.value.as_ref().map_or(self.function.body.mark, |v| v.mark));
        block
    }

    fn declare(&mut self, name: String, ty: Id, mutable: bool, unset: bool, mark: Mark) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Variable { name: name.clone(), ty, mutable, unset, assigned: false, mark });
        self.scope.push((name, id));
        id
    }

    /// Whether a value of type `actual` can stand where `wanted` is expected; says so if not.
    fn coerce(&mut self, actual: Id, wanted: Id, mark: Mark) -> bool {
        let fits = match (self.table.get(actual).clone(), self.table.get(wanted).clone()) {
            (Ty::Never, _) => true,
            (Ty::Slice { element: a, mutable: true }, Ty::Slice { element: b, mutable: false }) => a == b,
            (Ty::Reference { to: a, mutable: true }, Ty::Reference { to: b, mutable: false }) => self.table.unify(a, b),
            _ => self.table.unify(actual, wanted),
        };
        if !fits && self.callable_alike(actual, wanted) {
            self.mistake(
                mark,
                "which closure or function this is would depend on a value at run time, and on the device it is code that is inlined: write the call into both branches",
            );
        } else if !fits {
            let (actual, wanted) = (self.named(actual), self.named(wanted));
            self.mistake(mark, format!("expected `{wanted}`, found `{actual}`"));
        }
        fits
    }

    /// The type that the user wrote.
    fn ty(&mut self, ty: &syntax::Type) -> Id {
        use syntax::TypeKind;
        match &ty.kind {
            TypeKind::Infer => self.table.unknown(),
            TypeKind::Tuple(parts) if parts.is_empty() => self.table.add(Ty::Unit),
            TypeKind::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.ty(p)).collect();
                self.table.add(Ty::Tuple(parts))
            }
            TypeKind::Array(element, size) => {
                let element = self.ty(element);
                let size = self.size(size);
                self.table.add(Ty::Array(element, size))
            }
            TypeKind::Reference { mutable, to } => match &to.kind {
                TypeKind::Slice(element) => match self.element(element) {
                    Some(element) => self.table.add(Ty::Slice { element, mutable: *mutable }),
                    None => self.wrong(),
                },
                _ => {
                    let to = self.ty(to);
                    self.table.add(Ty::Reference { to, mutable: *mutable })
                }
            },
            TypeKind::Slice(_) => {
                self.mistake(ty.mark, "a slice stands behind a reference: `&[T]` or `&mut [T]`");
                self.wrong()
            }
            TypeKind::Function { parameters, returns } => {
                let parameters = parameters.iter().map(|p| self.ty(p)).collect();
                let returns = match returns {
                    Some(ty) => self.ty(ty),
                    None => self.table.add(Ty::Unit),
                };
                self.table.add(Ty::Function { parameters, returns })
            }
            TypeKind::Path(path) => self.path_type(path),
        }
    }

    fn path_type(&mut self, path: &syntax::Path) -> Id {
        let last = path.segments.last().expect("a path has a segment");
        let name = last.name.to_string();
        if let (Some(s), Some(_)) = (Scalar::from_name(&name), path.single()) {
            return self.table.scalar(s);
        }
        match name.as_str() {
            "Group" => self.group_type(path),
            "View" | "ViewMut" | "Shared" => {
                let Some((element, rank)) = self.element_and_rank(&last.arguments, path.mark, &name) else {
                    return self.wrong();
                };
                let most = if name == "Shared" { 3 } else { 5 };
                if !(1..=most).contains(&rank) {
                    self.mistake(path.mark, format!("a `{name}` has a rank from 1 to {most}"));
                    return self.wrong();
                }
                self.table.add(match name.as_str() {
                    "Shared" => Ty::Shared { element, rank },
                    _ => Ty::View { element, rank, mutable: name == "ViewMut" },
                })
            }
            "Option" => match last.arguments.as_slice() {
                [syntax::Argument::Type(inner)] => {
                    let inner = self.ty(inner);
                    self.table.add(Ty::Option(inner))
                }
                _ => {
                    self.mistake(path.mark, "`Option` takes a type: `Option<f32>`");
                    self.wrong()
                }
            },
            _ => {
                self.mistake(
                    path.mark,
                    format!("`{}` has no meaning on the device: a kernel has numbers, bool, tuples, arrays, slices, `View`, `ViewMut` and `Shared`", path.name()),
                );
                self.wrong()
            }
        }
    }

    fn element_and_rank(&mut self, arguments: &[syntax::Argument], mark: Mark, name: &str) -> Option<(Scalar, u32)> {
        match arguments {
            [syntax::Argument::Type(element), syntax::Argument::Number(rank, _)] => {
                Some((self.element(element)?, *rank))
            }
            _ => {
                self.mistake(mark, format!("`{name}` takes an element type and a rank: `{name}<f32, 2>`"));
                None
            }
        }
    }

    /// An element type of a buffer.
    fn element(&mut self, ty: &syntax::Type) -> Option<Scalar> {
        let id = self.ty(ty);
        match self.table.get(id) {
            Ty::Wrong => None,
            Ty::Scalar(Scalar::Usize) => {
                self.mistake(
                    ty.mark,
                    "`usize` is 32 bits on the device and 64 on the host: a buffer holds `u32` or `u64`",
                );
                None
            }
            Ty::Scalar(Scalar::Bool) => {
                self.mistake(ty.mark, "a buffer cannot hold `bool`, since not every byte is one: use `u8`");
                None
            }
            Ty::Scalar(s) => Some(*s),
            _ => {
                let name = self.named(id);
                self.mistake(ty.mark, format!("a buffer holds numbers, not `{name}`"));
                None
            }
        }
    }

    /// A number in a type: a literal or a generic constant.
    fn size(&mut self, argument: &syntax::Argument) -> Id {
        let size = match argument {
            syntax::Argument::Number(n, _) => hir::Size::Known(*n),
            syntax::Argument::Bool(b, _) => hir::Size::Known(u32::from(*b)),
            syntax::Argument::Type(syntax::Type { kind: syntax::TypeKind::Infer, .. }) => {
                return self.table.add(Ty::Unknown(Kind::Size));
            }
            syntax::Argument::Type(ty) => {
                let name = match &ty.kind {
                    syntax::TypeKind::Path(p) => p.single().map(|i| i.to_string()),
                    _ => None,
                };
                match self.generics.iter().position(|g| Some(&g.name) == name.as_ref()) {
                    Some(i) => hir::Size::Generic(i as u32),
                    None => {
                        self.mistake(ty.mark, "a size is a number or the name of a generic constant of this function");
                        return self.wrong();
                    }
                }
            }
        };
        self.table.add(Ty::Size(size))
    }

    /// Ends inference and fixes what depended on it.
    fn finish(self, body: &mut hir::Block) -> Finish<'a> {
        let types = Finished::new(&self.table);
        let mut finish = Finish { checker: self, types };
        hir::visit::block(body, &mut |e| finish.one(e));
        finish
    }
}

/// A function whose inference has ended, with its expressions being fixed.
struct Finish<'a> {
    checker: Checker<'a>,
    types: Finished,
}

impl Finish<'_> {
    fn expr(&mut self, e: &mut hir::Expr) {
        hir::visit::expr(e, &mut |e| self.one(e));
    }

    fn one(&mut self, e: &mut hir::Expr) {
        e.ty = self.types.get(&self.checker.table, Id(e.ty.0));
        match &mut e.kind {
            hir::ExprKind::Literal(index) => {
                let hir::Type::Scalar(ty) = self.types.types[e.ty.0 as usize] else { return };
                *index = match self.checker.literals[*index as usize] {
                    Literal::Float(x) if ty == Scalar::F32 => u64::from(x.single.to_bits()),
                    Literal::Float(x) => x.double.to_bits(),
                    Literal::Integer(n, mark) => {
                        if n & !ty.mask() != 0 {
                            self.checker.mistake(
                                mark,
                                format!("`{n}` does not fit `{ty}`, which has {} bits on the device", ty.bits()),
                            );
                        }
                        n
                    }
                };
            }
            hir::ExprKind::Call { generics, .. } | hir::ExprKind::Function { generics, .. } => {
                for g in generics {
                    *g = self.types.get(&self.checker.table, Id(g.0));
                }
            }
            _ => {}
        }
    }

    fn done(mut self, body: hir::Block) -> Result<(hir::Function, Checked<Vec<hir::Function>>), Vec<Mistake>> {
        let locals: Vec<_> = self
            .checker
            .locals
            .iter()
            .map(|v| hir::Local {
                name: v.name.clone(),
                ty: self.types.get(&self.checker.table, v.ty),
                // A view is declared `mut` to write its elements; where it stays the same it is a name.
                mutable: match self.checker.table.get(v.ty) {
                    Ty::View { .. } | Ty::Slice { .. } => v.assigned || v.unset,
                    _ => v.mutable || v.unset,
                },
                span: v.mark.span,
            })
            .collect();
        let returns = self.types.get(&self.checker.table, self.checker.returns);
        // What stayed unknown is told where a variable has it; rustc tells the rest. Other mistakes may be why it did.
        let unknown = std::mem::take(&mut self.types.unknown);
        for id in unknown.into_iter().filter(|_| self.checker.mistakes.is_empty()).collect::<Vec<_>>() {
            let root = self.checker.table.root(id);
            if let Some(v) = self.checker.locals.iter().find(|v| self.checker.table.root(v.ty) == root) {
                let (mark, message) =
                    (v.mark, format!("the type of `{}` cannot be told: write it as `{}: …`", v.name, v.name));
                self.checker.mistake(mark, message);
            }
        }
        let checker = self.checker;
        if !checker.mistakes.is_empty() {
            return Err(checker.mistakes);
        }
        let checked = Checked {
            locals: checker
                .bound
                .iter()
                .filter_map(|(span, local)| {
                    Some((*span, rust_type(&self.types.types, &checker.generics, locals[local.0 as usize].ty)?))
                })
                .collect(),
            prelude: checker
                .called
                .iter()
                .filter_map(|(path, canonical, argument)| {
                    let argument = match argument {
                        None => quote!(),
                        Some(id) => {
                            let id = self.types.get(&checker.table, *id);
                            let ty = rust_type(&self.types.types, &checker.generics, id)?;
                            quote!(::<#ty>)
                        }
                    };
                    Some((quote!(#path #argument), quote!(#canonical #argument)))
                })
                .collect(),
            hir: checker.linked.functions,
        };
        let function = hir::Function {
            name: checker.function.name.to_string(),
            hash: checker.function.hash,
            source: checker.function.source.clone(),
            generics: checker.generics,
            types: self.types.types,
            parameters: checker.function.parameters.len() as u32,
            locals,
            returns,
            body,
        };
        Ok((function, checked))
    }
}

/// A type as Rust tokens that need no import; `None` for the types of the prelude.
fn rust_type(types: &[hir::Type], generics: &[hir::Generic], id: hir::TypeId) -> Option<TokenStream> {
    let ident = |name: &str| proc_macro2::Ident::new(name, proc_macro2::Span::call_site());
    Some(match &types[id.0 as usize] {
        hir::Type::Scalar(s) if s.is_half() => return None,
        hir::Type::Scalar(s) => {
            let name = ident(s.name());
            quote!(::core::primitive::#name)
        }
        hir::Type::Tuple(parts) => {
            let parts = parts.iter().map(|p| rust_type(types, generics, *p)).collect::<Option<Vec<_>>>()?;
            quote!((#(#parts),*))
        }
        hir::Type::Option(inner) => {
            let inner = rust_type(types, generics, *inner)?;
            quote!(::core::option::Option<#inner>)
        }
        hir::Type::Array(element, size) => {
            let element = rust_type(types, generics, *element)?;
            let size = match size {
                hir::Size::Known(n) => {
                    let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                    quote!(#n)
                }
                hir::Size::Generic(i) => {
                    let name = ident(&generics[*i as usize].name);
                    quote!(#name)
                }
            };
            quote!([#element; #size])
        }
        hir::Type::Constant(size) => match size {
            hir::Size::Known(n) => {
                let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                quote!(#n)
            }
            hir::Size::Generic(i) => {
                let name = ident(&generics[*i as usize].name);
                quote!(#name)
            }
        },
        _ => return None,
    })
}
