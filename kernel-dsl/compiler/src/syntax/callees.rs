//! The device items that a function names: in calls, types and bounds, as constants, and as
//! arguments in place of closures.
//!
//! The case of a name distinguishes paths: `shapes::Circle::new` is an associated item of the type
//! `shapes::Circle`, and `shapes::area` is a function.

use super::{
    Assignee, Block, Expr, ExprKind, Function, Generic, GenericKind, InstanceArgument, Item, Kernel, Module, Path,
    Pattern, Segment, SpanPair, Statement, TraitBound, TraitItem, Type, TypeKind, TypeOrConst,
};
use crate::Scalar;
use crate::language;

impl Function {
    /// Returns the paths of items that the signature and body name and that are not built in. Each
    /// path is listed once, without generic arguments, in the order of first use. `Result` is the
    /// first, because a device item can have this name. Names of variables are not included.
    pub fn callees(&self) -> Vec<syn::Path> {
        let mut callees = CalleeCollector::default();
        callees.function(self);
        callees.paths()
    }

    /// Returns whether the signature or body names `Result` or makes one.
    pub(crate) fn names_result(&self) -> bool {
        let mut callees = CalleeCollector::default();
        callees.function(self);
        callees.result
    }
}

impl Kernel {
    /// Returns the paths of items that the kernel names, including its launch expressions and
    /// instances.
    pub fn callees(&self) -> Vec<syn::Path> {
        self.collected().paths()
    }

    /// Returns whether the kernel names `Result` or makes one, also in its launch expressions.
    pub(crate) fn names_result(&self) -> bool {
        self.collected().result
    }

    fn collected(&self) -> CalleeCollector {
        let mut callees = CalleeCollector::default();
        callees.function(&self.function);
        callees.in_new_scope(|c| {
            c.scope.extend(self.function.generics.iter().map(|g| g.name.to_string()));
            c.scope.extend(self.function.parameters.iter().map(|p| p.name.to_string()));
            let conditions = self.requires.iter().map(|(e, _)| e);
            let block = self.block.iter().flat_map(super::BlockExtent::expressions);
            let limits = self.min_blocks.iter().chain(&self.max_registers);
            block.chain(&self.grid).chain(limits).chain(conditions).for_each(|e| c.expr(e));
        });
        for argument in self.instances.iter().flat_map(|i| &i.arguments) {
            if let InstanceArgument::Type { path, .. } = argument
                && path.single().is_none_or(|name| Scalar::from_name(&name.to_string()).is_none())
                && !path.is_builtin_type()
            {
                callees.named(path.clone());
            }
        }
        callees
    }
}

impl Module {
    /// Returns the paths of items that the module names and does not define.
    pub fn callees(&self) -> Vec<syn::Path> {
        let mut callees = CalleeCollector::default();
        callees.scope.extend(self.names());
        for item in &self.items {
            callees.item(item);
        }
        callees.paths()
    }

    /// Returns whether an item names `Result` or makes one.
    pub(crate) fn names_result(&self) -> bool {
        let mut callees = CalleeCollector::default();
        callees.scope.extend(self.names());
        for item in &self.items {
            callees.item(item);
        }
        callees.result
    }

    /// Returns the names that the module defines.
    fn names(&self) -> impl Iterator<Item = String> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(f) | Item::Constant(f) => Some(f.name.to_string()),
            Item::Struct(s) | Item::Alias(s) => Some(s.name.to_string()),
            Item::Enum(e) => Some(e.name.to_string()),
            Item::Trait(t) => Some(t.name.to_string()),
            Item::Impl(_) => None,
        })
    }
}

impl Path {
    /// Returns the path as written, without generic arguments.
    pub fn written(&self) -> String {
        format!("{}{}", if self.global { "::" } else { "" }, self.name())
    }

    /// Returns the path of a variant of Rust's `Result` with the path of the enum:
    /// `core::result::Result::Ok` for `Ok`. An item of the program called `Result` does not change
    /// the meaning of `Ok`.
    pub(super) fn with_result(mut self) -> Path {
        if !self.global
            && let [variant] = self.segments.as_slice()
            && (variant.name == "Ok" || variant.name == "Err")
        {
            let name = |name: &str| proc_macro2::Ident::new(name, variant.name.span());
            let names = ["core", "result", "Result"].map(name);
            self.segments.splice(0..0, names.map(|name| Segment { name, arguments: Vec::new() }));
        }
        self
    }

    /// Returns the path as messages show it: a variant of `Result` without the module of the enum.
    pub(crate) fn shown(&self) -> String {
        let name = self.name();
        match name.strip_prefix("core::result::Result::") {
            Some(variant) => variant.to_string(),
            None => name,
        }
    }

    /// Returns whether the path names `Result` of Rust's prelude.
    fn is_result(&self) -> bool {
        matches!(self.written().as_str(), "Result" | "std::result::Result" | "core::result::Result")
    }

    fn to_syn(&self) -> syn::Path {
        syn::Path {
            leading_colon: self.global.then(|| syn::Token![::](self.mark.first)),
            segments: self.segments.iter().map(|s| syn::PathSegment::from(s.name.clone())).collect(),
        }
    }
}

#[derive(Default)]
struct CalleeCollector {
    found: Vec<Path>,
    /// Whether `Result` is named.
    result: bool,
    /// Names of variables, generic parameters and the module's own items, innermost last.
    scope: Vec<String>,
}

impl CalleeCollector {
    fn paths(self) -> Vec<syn::Path> {
        self.found.iter().map(Path::to_syn).collect()
    }

    fn named(&mut self, path: Path) {
        let first = path.segments.first().map(|s| s.name.to_string()).unwrap_or_default();
        let own = !path.global && self.scope.contains(&first) || first == "Self";
        if own || path.is_builtin() || self.found.iter().any(|p| p.written() == path.written()) {
            return;
        }
        if !path.is_result() {
            self.found.push(path);
            return;
        }
        self.result = true;
        // A device item of this name replaces the `Result` of Rust's prelude. The path is the
        // first, as `expand::chain` requires.
        if path.written() == language::RESULT_NAME {
            self.found.insert(0, path);
        }
    }

    /// Records the path of a struct, or of a variant of an enum.
    fn constructed(&mut self, path: &Path) {
        self.named(path.item().unwrap_or_else(|| path.clone()));
    }

    /// Records a path used as a value: a constant, an associated item or a variant.
    fn value(&mut self, path: &Path) {
        if path.is_builtin() || language::constant(&path.name()).is_some() {
            return;
        }
        match path.item() {
            Some(item) => self.named(item),
            None => {
                if path.is_constant() {
                    self.named(path.clone());
                }
            }
        }
        self.arguments(path);
    }

    /// Records a path that is called.
    fn called(&mut self, path: &Path) {
        if !path.is_builtin() {
            self.named(path.item().unwrap_or_else(|| path.clone()));
        }
        self.arguments(path);
    }

    fn arguments(&mut self, path: &Path) {
        // The last argument of a `Float16` is its policy, which is built in.
        let named = path.segments.iter().filter(|s| s.name != "Float16");
        for argument in named.flat_map(|s| &s.arguments) {
            self.argument(argument);
        }
    }

    fn argument(&mut self, argument: &TypeOrConst) {
        if let TypeOrConst::Type(ty) = argument {
            self.ty(ty);
        }
    }

    fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Infer => {}
            TypeKind::Path(path) => {
                let one = path.single().map(|name| name.to_string());
                if one.is_none_or(|name| Scalar::from_name(&name).is_none()) && !path.is_builtin_type() {
                    // `M::T` for a type parameter, or for a type of the module.
                    match path.segments.len() {
                        1 => self.named(path.clone()),
                        _ => self.named(path.item().unwrap_or_else(|| path.clone())),
                    }
                }
                self.arguments(path);
            }
            TypeKind::Tuple(parts) => parts.iter().for_each(|p| self.ty(p)),
            TypeKind::Array(element, size) => {
                self.ty(element);
                self.argument(size);
            }
            TypeKind::Slice(element) => self.ty(element),
            TypeKind::Reference { to, .. } => self.ty(to),
            TypeKind::Function { parameters, returns, .. } => {
                parameters.iter().for_each(|p| self.ty(p));
                returns.iter().for_each(|r| self.ty(r));
            }
        }
    }

    fn bounds(&mut self, bounds: &[TraitBound]) {
        for bound in bounds {
            if !bound.path.is_builtin_bound() {
                self.named(bound.path.clone());
            }
            if let Some((parameters, returns)) = &bound.signature {
                parameters.iter().chain([returns]).for_each(|t| self.ty(t));
            }
        }
    }

    fn generics(&mut self, generics: &[Generic]) {
        self.scope.extend(generics.iter().map(|g| g.name.to_string()));
        for generic in generics {
            if let GenericKind::Type(bounds) = &generic.kind {
                self.bounds(bounds);
            }
        }
    }

    fn function(&mut self, f: &Function) {
        self.in_new_scope(|c| {
            c.generics(&f.generics);
            f.parameters.iter().for_each(|p| c.ty(&p.ty));
            f.returns.iter().for_each(|t| c.ty(t));
            c.scope.extend(f.parameters.iter().map(|p| p.name.to_string()));
            c.block(&f.body);
        });
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Function(f) | Item::Constant(f) => self.function(f),
            Item::Struct(_) | Item::Alias(_) | Item::Enum(_) => {
                let Some(s) = item.fields() else { return };
                self.in_new_scope(|c| {
                    c.generics(&s.generics);
                    s.fields.iter().for_each(|(_, ty)| c.ty(ty));
                });
            }
            Item::Trait(t) => {
                self.bounds(&t.bounds);
                for item in &t.items {
                    match item {
                        TraitItem::Type { bounds, .. } => self.bounds(bounds),
                        TraitItem::Constant { function, .. } | TraitItem::Function { function, .. } => {
                            self.function(function);
                        }
                    }
                }
            }
            Item::Impl(i) => self.in_new_scope(|c| {
                c.generics(&i.generics);
                if let Some(path) = &i.of_trait {
                    c.named(path.clone());
                }
                c.ty(&i.for_type);
                i.types.iter().for_each(|(_, ty)| c.ty(ty));
                i.constants.iter().chain(&i.functions).for_each(|f| c.function(f));
            }),
        }
    }

    fn bind(&mut self, pattern: &Pattern) {
        pattern.names(&mut |name| self.scope.push(name.to_string()));
        self.pattern(pattern);
    }

    /// Records the items that a pattern names.
    fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Ignore | Pattern::Name { .. } | Pattern::None(_) | Pattern::Rest(_) => {}
            Pattern::Value(e) => self.expr(e),
            Pattern::Range { low, high, .. } => low.iter().chain(high).for_each(|e| self.expr(e)),
            Pattern::Tuple(parts, _) | Pattern::Array(parts, _) | Pattern::Any(parts, _) => {
                parts.iter().for_each(|p| self.pattern(p));
            }
            Pattern::Named { pattern, .. } | Pattern::Some(pattern, _) | Pattern::Reference(pattern, _) => {
                self.pattern(pattern);
            }
            Pattern::Struct { path, fields, .. } => {
                self.constructed(path);
                fields.iter().for_each(|(_, p)| self.pattern(p));
            }
        }
    }

    /// Runs `f` in a new scope.
    fn in_new_scope(&mut self, f: impl FnOnce(&mut Self)) {
        let depth = self.scope.len();
        f(self);
        self.scope.truncate(depth);
    }

    fn block(&mut self, b: &Block) {
        self.in_new_scope(|c| {
            // A constant is in scope in its whole block.
            c.scope.extend(b.statements.iter().filter_map(|s| match s {
                Statement::Constant { name, .. } => Some(name.to_string()),
                _ => None,
            }));
            for statement in &b.statements {
                match statement {
                    Statement::Let { pattern, ty, value, otherwise, .. } => {
                        ty.iter().for_each(|t| c.ty(t));
                        value.iter().for_each(|e| c.expr(e));
                        otherwise.iter().for_each(|b| c.block(b));
                        c.bind(pattern);
                    }
                    Statement::Constant { ty, value, .. } => {
                        c.ty(ty);
                        c.expr(value);
                    }
                    Statement::Expr(e) | Statement::Unit(e) | Statement::Assert { condition: e, .. } => c.expr(e),
                }
            }
            b.value.iter().for_each(|e| c.expr(e));
        });
    }

    fn assignee(&mut self, into: &Assignee) {
        match into {
            Assignee::Ignore | Assignee::Rest(_) => {}
            Assignee::Place(e) => self.expr(e),
            Assignee::Tuple(parts, _) | Assignee::Array(parts, _) => parts.iter().for_each(|p| self.assignee(p)),
        }
    }

    /// Records arguments in which a function's path may replace a closure.
    fn values(&mut self, arguments: &[Expr]) {
        for e in arguments {
            match &e.kind {
                ExprKind::Path(path) if path.may_be_function() => self.called(path),
                _ => self.expr(e),
            }
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Integer(..) | ExprKind::Float(..) | ExprKind::Bool(_) => {}
            ExprKind::Path(path) => self.value(path),
            ExprKind::Continue { .. } | ExprKind::Refused => {}
            ExprKind::Unary(_, a) | ExprKind::Field(a, _) | ExprKind::Try(a) => self.expr(a),
            ExprKind::Cast(a, ty) => {
                self.expr(a);
                self.ty(ty);
            }
            ExprKind::Repeat(a, size) => {
                self.expr(a);
                self.argument(size);
            }
            ExprKind::Struct { path, fields, rest } => {
                self.constructed(path);
                self.arguments(path);
                fields.iter().for_each(|(_, e)| self.expr(e));
                rest.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Reference { place: a, .. } => self.expr(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Range { start: a, end: b, .. }
            | ExprKind::Assign { place: a, value: b, .. } => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Destructure { into, value } => {
                self.expr(value);
                self.assignee(into);
            }
            ExprKind::Call(path, list) => {
                self.called(path);
                match path.is_builtin() && !path.takes_closure() {
                    true => list.iter().for_each(|e| self.expr(e)),
                    false => self.values(list),
                }
            }
            ExprKind::Assertion { condition, values, .. } => {
                condition.iter().for_each(|e| self.expr(e));
                values.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Inline { values: list, .. }
            | ExprKind::Log { values: list, .. }
            | ExprKind::Tuple(list)
            | ExprKind::Array(list) => list.iter().for_each(|e| self.expr(e)),
            ExprKind::Method { receiver, name, generics, arguments } => {
                self.expr(receiver);
                self.result |= name == "ok_or";
                generics.iter().for_each(|g| self.argument(g));
                match language::method_takes_closure(&name.to_string()) {
                    true => self.values(arguments),
                    false => arguments.iter().for_each(|e| self.expr(e)),
                }
            }
            ExprKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.block(then);
                otherwise.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Match { value, arms } => {
                self.expr(value);
                for arm in arms {
                    self.in_new_scope(|c| {
                        c.bind(&arm.pattern);
                        arm.guard.iter().for_each(|e| c.expr(e));
                        c.expr(&arm.body);
                    });
                }
            }
            ExprKind::Closure { parameters, returns, body } => self.in_new_scope(|c| {
                for p in parameters {
                    p.ty.iter().for_each(|t| c.ty(t));
                    c.bind(&p.pattern);
                }
                returns.iter().for_each(|t| c.ty(t));
                c.expr(body);
            }),
            ExprKind::Block(b) | ExprKind::Labeled { body: b, .. } | ExprKind::Loop { body: b, .. } => self.block(b),
            ExprKind::While { condition: e, body, .. } => {
                self.expr(e);
                self.block(body);
            }
            ExprKind::For { pattern, iterator: e, body, .. } => {
                self.expr(e);
                self.in_new_scope(|c| {
                    c.bind(pattern);
                    c.block(body);
                });
            }
            ExprKind::Break { value, .. } | ExprKind::Return(value) => value.iter().for_each(|e| self.expr(e)),
        }
    }
}

impl Path {
    /// Returns whether the path can name a function: it starts with a lower-case letter and is not
    /// a built-in constant.
    fn may_be_function(&self) -> bool {
        let last = self.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
        !last.starts_with(char::is_uppercase) && language::constant(&self.name()).is_none()
    }

    /// Returns whether the last name starts with a capital, like a constant or type.
    fn is_constant(&self) -> bool {
        self.segments.last().is_some_and(|s| s.name.to_string().starts_with(char::is_uppercase))
    }

    /// Returns the path of the type whose associated item this path names, if the name before the
    /// last starts with a capital.
    pub fn item(&self) -> Option<Path> {
        let (_, before) = self.segments.split_last()?;
        let last = before.last()?;
        let capital = last.name.to_string().starts_with(char::is_uppercase);
        let mark = SpanPair { last: last.name.span(), ..self.mark };
        capital.then(|| Path { global: self.global, segments: before.to_vec(), mark })
    }
}
