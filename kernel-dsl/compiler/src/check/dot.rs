//! `dp4a`, `dp2a` and `int::word`, whose signedness follows from the operands; and the operand
//! types of `int::` functions.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{ExprKind, Intrinsic, Size};
use crate::ir::Bits;
use crate::syntax::{self, Path, SpanPair};

impl FunctionChecker<'_> {
    /// Checks `dp4a(a, b, c)` and the other dot products.
    pub(super) fn dot(
        &mut self,
        what: Bits,
        path: &Path,
        arguments: &[syntax::Expr],
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let name = path.name();
        let wrong = |checker: &mut Self| (ExprKind::Tuple(Vec::new()), checker.wrong());
        if path.segments.last().is_some_and(|s| !s.arguments.is_empty()) {
            self.report(
                path.mark,
                format!("`{name}` takes no generic arguments in a kernel: they follow from the operands"),
            );
        }
        if !self.count(&name, 3, arguments.len(), mark) {
            return wrong(self);
        }
        let [a, b] = [0, 1].map(|k| self.expr(&arguments[k], None));
        let (of_a, of_b) = if what == Bits::Dot4 { (BYTES, BYTES) } else { (HALVES, BYTES) };
        let mut signed = false;
        for (operand, packed, e) in [(&a, of_a, &arguments[0]), (&b, of_b, &arguments[1])] {
            match self.packed(TypeIndex(operand.ty.0), packed) {
                Some(s) => signed |= s,
                None if matches!(self.table.get(TypeIndex(operand.ty.0)), Ty::Wrong) => return wrong(self),
                None => {
                    let (given, [of_signed, of_unsigned]) = (self.named(TypeIndex(operand.ty.0)), packed.0);
                    let n = packed.1;
                    self.report(
                        e.mark,
                        format!(
                            "`{name}` takes `[{of_signed}; {n}]` or `[{of_unsigned}; {n}]`, or the {n} elements packed in an `i32` or `u32`; found `{given}`"
                        ),
                    );
                    return wrong(self);
                }
            }
        }
        self.confirm(path, &name, &[TypeIndex(a.ty.0), TypeIndex(b.ty.0)], false);
        let sum = self.table.scalar(if signed { Scalar::I32 } else { Scalar::U32 });
        if let Some(expected) = expected {
            self.table.unify(expected, sum);
        }
        let c = self.expr_of_type(&arguments[2], sum);
        (ExprKind::Intrinsic { intrinsic: Intrinsic::Bits(what), arguments: vec![a, b, c] }, sum)
    }

    /// Checks `int::word(bytes)`.
    pub(super) fn word(&mut self, path: &Path, arguments: &[syntax::Expr], mark: SpanPair) -> (ExprKind, TypeIndex) {
        if path.segments.last().is_some_and(|s| !s.arguments.is_empty()) {
            let why = "`int::word` takes no generic arguments in a kernel: they follow from the operand";
            self.report(path.mark, why.to_string());
        }
        if !self.count("int::word", 1, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let bytes = self.expr(&arguments[0], None);
        let of = TypeIndex(bytes.ty.0);
        let Some(signed) = self.packed(of, BYTES) else {
            if !matches!(self.table.get(of), Ty::Wrong) {
                let given = self.named(of);
                self.report(arguments[0].mark, format!("`int::word` takes `[i8; 4]` or `[u8; 4]`, found `{given}`"));
            }
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        self.confirm(path, "int::word", &[of], false);
        let word = self.table.scalar(if signed { Scalar::I32 } else { Scalar::U32 });
        (ExprKind::Intrinsic { intrinsic: Intrinsic::Bits(Bits::Join), arguments: vec![bytes] }, word)
    }

    /// Returns whether the packed numbers of an operand are signed; `None` if the type cannot be an
    /// operand.
    fn packed(&mut self, ty: TypeIndex, ([signed, unsigned], n): PackedTypes) -> Option<bool> {
        match self.table.get(ty).clone() {
            Ty::Scalar(Scalar::I32) => Some(true),
            Ty::Scalar(Scalar::U32) => Some(false),
            Ty::Array(element, size) => {
                if *self.table.get(size) == Ty::Unknown(UnknownKind::Size) {
                    let known = self.table.add(Ty::Size(Size::Known(n)));
                    self.table.unify(size, known);
                }
                let fits = *self.table.get(size) == Ty::Size(Size::Known(n));
                let element = self.table.as_scalar(element)?;
                (fits && (element == signed || element == unsigned)).then_some(element == signed)
            }
            _ => None,
        }
    }
}

/// The signed and unsigned type of packed numbers, and their count in a word.
type PackedTypes = ([Scalar; 2], u32);

const BYTES: PackedTypes = ([Scalar::I8, Scalar::U8], 4);
const HALVES: PackedTypes = ([Scalar::I16, Scalar::U16], 2);
