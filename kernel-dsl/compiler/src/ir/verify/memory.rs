//! The rules of accesses to memory and locals.

use super::{S, Verifier};
use crate::ir::*;
use crate::scalar::Scalar;

impl Verifier<'_> {
    pub(super) fn dynamic(&mut self, inst: &Inst, array: DynamicId, extents: &[Value]) {
        let rank = self.kernel.dynamic.get(array.0 as usize).map(|a| a.extents.len());
        let fits = extents.iter().all(|v| self.ty(*v) == S(Scalar::Usize)) && rank == Some(extents.len());
        self.check(
            inst,
            fits && self.first_result_type(inst) == Type::Shared && inst.results.len() == 1,
            "it gives an address in shared memory, and has a usize extent for each dimension of its array",
        );
    }

    pub(super) fn load(&mut self, inst: &Inst, place: &AccessPlace, element: Scalar, guard: Option<&Guard>) {
        let results = inst.results.len();
        self.place(inst, place, element, results as u32);
        let fits = inst.results.iter().all(|r| self.ty(*r) == S(element)) && results > 0;
        self.check(inst, fits, "a load's results have its element type");
        if let Some(g) = guard {
            let fits = self.ty(g.condition) == S(Scalar::Bool) && self.have_same_types(&g.otherwise, &inst.results);
            self.check(inst, fits, "a guard is a bool and a value of the element type for each result");
        }
    }

    pub(super) fn store(
        &mut self,
        inst: &Inst,
        place: &AccessPlace,
        element: Scalar,
        values: &[Value],
        guard: Option<Value>,
    ) {
        self.place(inst, place, element, values.len() as u32);
        let of_element = values.iter().all(|r| self.ty(*r) == S(element));
        let fits = of_element && !values.is_empty() && inst.results.is_empty();
        self.check(inst, fits, "a store's values have its element type, and it has no result");
        self.check(inst, guard.is_none_or(|g| self.ty(g) == S(Scalar::Bool)), "a guard is a bool");
    }

    pub(super) fn mark_undef(
        &mut self,
        inst: &Inst,
        place: &AccessPlace,
        element: Scalar,
        count: u32,
        guard: Option<Value>,
    ) {
        self.place(inst, place, element, count);
        let shared = match place {
            AccessPlace::Shared { .. } | AccessPlace::Dynamic { .. } => true,
            AccessPlace::Address { base, .. } => self.ty(*base) == Type::Shared,
            AccessPlace::Global { .. } => false,
        };
        self.check(
            inst,
            shared && inst.results.is_empty(),
            "the marked elements are in shared memory, and there is no result",
        );
        self.check(inst, guard.is_none_or(|g| self.ty(g) == S(Scalar::Bool)), "a guard is a bool");
    }

    pub(super) fn lifetime_start(&mut self, inst: &Inst, array: SharedId) {
        let fits = (array.0 as usize) < self.kernel.shared.len() && inst.results.is_empty();
        self.check(inst, fits, "there is no such shared array, or it has a result");
    }

    pub(super) fn atomic(
        &mut self,
        inst: &Inst,
        operation: AtomicOperator,
        place: &AccessPlace,
        element: Scalar,
        values: &[Value],
    ) {
        let results = inst.results.len();
        self.place(inst, place, element, 1);
        let fits = values.iter().chain(&inst.results).all(|v| self.ty(*v) == S(element));
        let most = usize::from(operation != AtomicOperator::Store);
        let counts = values.len() == operation.operands() && results <= most;
        self.check(inst, fits && counts, "an atomic operation has one element type, and has one result at most");
        self.check(inst, operation.takes(element), "there is no such atomic operation on its element type");
    }

    pub(super) fn read_local(&mut self, inst: &Inst, local: LocalId, index: Option<Value>) {
        self.local(inst, local, index, (inst.results.len() == 1).then_some(self.first_result_type(inst)));
    }

    pub(super) fn write_local(&mut self, inst: &Inst, local: LocalId, index: Option<Value>, value: Value) {
        let ty = self.ty(value);
        self.local(inst, local, index, inst.results.is_empty().then_some(ty));
    }

    /// Verifies an access to `n` scalars of type `scalar` at `place`.
    pub(super) fn place(&mut self, inst: &Inst, place: &AccessPlace, scalar: Scalar, n: u32) {
        let index = |v: Value| self.ty(v) == S(Scalar::Usize);
        let fault = match place {
            AccessPlace::Global { dims, within: None, .. } if dims.is_empty() => Some("it has no dimensions"),
            AccessPlace::Global { base, .. } if !self.ty(*base).is_wide_address() => {
                Some("its base is not an address in global or constant memory")
            }
            AccessPlace::Global { base, .. } | AccessPlace::Address { base, .. }
                if self.ty(*base) == Type::Constant && !matches!(inst.op, Op::Load { .. }) =>
            {
                Some("constant memory is read-only")
            }
            AccessPlace::Dynamic { base, .. } if self.ty(*base) != Type::Shared => {
                Some("its base is not an address in shared memory")
            }
            AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. }
                if !dims.iter().all(|d| index(d.index) && index(d.extent) && d.stride.is_none_or(index)) =>
            {
                Some("indices, extents and strides are usize")
            }
            AccessPlace::Shared { array, indices, within } => match self.kernel.shared.get(array.0 as usize) {
                None => Some("there is no such shared array"),
                Some(a) if a.shape.len() != indices.len() => {
                    Some("the number of indices differs from the number of dimensions")
                }
                Some(_) if !indices.iter().all(|i| index(*i)) => Some("indices are usize"),
                Some(a) if within.as_ref().map_or(scalar.bytes(), |w| w.bytes) != a.element.bytes() => {
                    Some("the size of its elements differs from that of the array's")
                }
                Some(a) if a.swizzle().is_some() && n * scalar.bytes() > Swizzle::PIECE => {
                    Some("the access exceeds a unit of a swizzled row")
                }
                Some(_) => None,
            },
            AccessPlace::Address { base, .. } if self.ty(*base).scalar().is_some() => {
                Some("its base is not an address")
            }
            _ => None,
        };
        let fault = fault.or_else(|| {
            let within = place.element_offset()?;
            let size = scalar.bytes();
            let last = within.indices.last();
            // The scalar is a word that consists of several smaller elements.
            let several = within.offset == 0 && last.is_none() && within.bytes > 0 && size.is_multiple_of(within.bytes);
            if within.indices.iter().any(|step| !index(step.index)) {
                Some("indices are usize")
            } else if !several
                && (within.offset % size != 0 || within.bytes % size != 0 || within.offset >= within.bytes)
            {
                Some("a scalar in an element lies inside it, at a multiple of the scalar's size")
            } else if last.is_some_and(|step| step.bytes < n * size && n * size > step.extent * step.bytes) {
                Some("the access exceeds the array in the element")
            } else {
                None
            }
        });
        if let Some(fault) = fault {
            self.error(inst, fault);
        }
    }

    fn local(&mut self, inst: &Inst, local: LocalId, index: Option<Value>, ty: Option<Type>) {
        let found = self.kernel.locals.get(local.0 as usize);
        self.check(inst, found.is_some_and(|l| Some(l.element) == ty), "the local has another type");
        self.check(inst, index.is_none_or(|i| self.ty(i) == S(Scalar::Usize)), "an index is usize");
    }
}
