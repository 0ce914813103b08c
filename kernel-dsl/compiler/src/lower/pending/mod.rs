//! Asynchronous copies. `copy_async` loads to registers, and `wait` stores the registers to shared
//! memory. On targets with `cp.async` the copy bypasses registers, and a register holds the number
//! of its group.
//!
//! A token is a list of [`PendingCopy`]s, each a copy to one array: whether it was issued, its
//! destination, and the loaded values. A variable for tokens has a [`CopySlot`] for each kind of
//! copy that is ever assigned to it. To find these kinds, the code after the `let` is lowered. If
//! this code assigns kinds that the first value does not have, the code is lowered again. So a
//! token that a loop carries is a fixed number of registers.

mod token;

use super::captures::captures;
use super::memory_value::align_of;
use super::pack::Pack;
use crate::Scalar;
use crate::hir::{Expr, TypeId};
use crate::ir::{self, Binary, Comparison, Inst, Op, Region, Type, Values, WaitGroup};
use crate::lower::lowerer::Lowerer;
use crate::lower::lowerer::copies::{CopyKind, DeferredConversion, PendingCopy};
use crate::lower::lowerer::frame::Callable;
use crate::lower::lowerer::maybe_const::MaybeConst;
use crate::lower::lowerer::mem_layout::MemLayout;
use crate::lower::lowerer::value::{LoweredPlace, SharedHandle, Storage, Val, ViewValue};
use crate::source::Span;
use smallvec::SmallVec;

/// The largest number of scalars that one copy may have in flight in a thread.
const MAX_SCALARS_IN_FLIGHT: usize = 256;

/// An element, or a pack of elements, of a thread's share.
struct ThreadShare {
    indices: SmallVec<[MaybeConst; 3]>,
    /// Whether the element exists; `None` if it always does.
    exists: Option<MaybeConst>,
}

impl<'h> Lowerer<'h> {
    /// Lowers `to.copy_async(from)`, or `to.copy_async_map(from, map)` with `map`: the block issues
    /// a copy.
    pub(super) fn copy_async(&mut self, e: &Expr, to: &Val, from: &Val, map: Option<(&Val, TypeId)>) -> Val {
        let (Val::Shared(handle), Val::View(from)) = (to, from) else { return Val::Unit };
        let SharedHandle::Fixed { array, mem_layout, prefix } = handle else {
            self.error_with_help(
                e.span,
                "`copy_async` cannot fill an array of dynamic size: the number of registers it needs is unknown",
                "give the array a constant shape, or use `copy_from`",
            );
            return Val::Unit;
        };
        if map.is_none() && self.bypasses_registers(handle, from) {
            self.begin_copies(handle, from);
            let group = self.close_group().value;
            let issued = self.issued();
            let kind = CopyKind {
                array: *array,
                mem_layout: mem_layout.clone(),
                held: mem_layout.clone(),
                prefix: 0,
                types: vec![Scalar::Usize],
                at_once: 1,
                conversion: None,
                grouped: true,
            };
            return Val::Pending(vec![PendingCopy {
                kind,
                issued,
                prefix: SmallVec::new(),
                data: [group].into_iter().collect(),
            }]);
        }
        let n = self.elements_per_access(handle, from);
        let mut shape: SmallVec<[u32; 3]> =
            self.builder.kernel.shared[array.0 as usize].shape[prefix.len()..].iter().copied().collect();
        if let Some(last) = shape.last_mut() {
            *last /= n;
        }
        let (conversion, now) = match map {
            None => (None, None),
            Some((map, ty)) => match self.conversion(map) {
                Some(conversion) => (Some(conversion), None),
                None => (None, Some((map.clone(), ty))),
            },
        };
        let held = if conversion.is_some() { &from.mem_layout } else { mem_layout };
        let steps = shape.iter().product::<u32>().div_ceil(self.builder.kernel.block.least_threads()) as usize;
        let registers = steps * self.registers_of(held, n);
        if registers > MAX_SCALARS_IN_FLIGHT {
            let message = format!("the copy needs {registers} registers in each thread; a thread has at most 255");
            self.error_with_help(e.span, message, "use a smaller tile, a larger block, or `copy_from`");
            return Val::Unit;
        }
        let mut data = Values::new();
        for ThreadShare { indices, exists } in self.shares(&shape) {
            let indices = self.first_of_pack(&indices, n);
            self.poison(handle, &indices, n, exists);
            let mut loaded = match n {
                1 => self.load_where(from, &indices, exists),
                _ => self.wide_piece(from, &indices, n, exists),
            };
            if let Some((map, ty)) = &now {
                loaded = self.mapped([&from.mem_layout, mem_layout], n, &loaded, &mut |lowerer, element| {
                    let element = lowerer.assembled(*ty, &mut element.iter().copied());
                    let made = lowerer.call_with(e.span, map, vec![element]);
                    lowerer.flatten_mem_layout(&made)
                });
            }
            data.extend(loaded);
        }
        let types = data.iter().filter_map(|v| self.builder.kernel.ty(*v).scalar()).collect();
        let issued = self.issued();
        let (mem_layout, held, grouped) = (mem_layout.clone(), held.clone(), false);
        let kind =
            CopyKind { array: *array, mem_layout, held, prefix: prefix.len(), types, at_once: n, conversion, grouped };
        Val::Pending(vec![PendingCopy { kind, issued, prefix: prefix.clone(), data }])
    }

    fn issued(&mut self) -> MaybeConst {
        MaybeConst::new(self.builder.constant(Scalar::Bool, 1), Some(1))
    }

    /// Completes the copies of a token.
    pub(super) fn wait(&mut self, span: Span, token: Val) {
        let Val::Pending(copies) = token else { return };
        for copy in copies {
            match copy.issued.bits {
                Some(0) => {}
                Some(_) => self.complete(span, &copy),
                None => {
                    self.builder.enter([]);
                    self.complete(span, &copy);
                    let then = self.builder.leave();
                    self.builder.enter([]);
                    let otherwise = self.builder.leave();
                    self.builder.effect(Op::If { condition: copy.issued.value, then, otherwise });
                }
            }
        }
    }

    fn complete(&mut self, span: Span, copy: &PendingCopy) {
        let CopyKind { array, mem_layout, held, prefix, conversion, at_once: n, grouped, .. } = &copy.kind;
        if *grouped {
            self.builder.effect(Op::CopyWait(WaitGroup::UpTo(copy.data[0])));
            return;
        }
        let mut shape: SmallVec<[u32; 3]> =
            self.builder.kernel.shared[array.0 as usize].shape[*prefix..].iter().copied().collect();
        if let Some(last) = shape.last_mut() {
            *last /= n;
        }
        let handle = SharedHandle::Fixed { array: *array, mem_layout: mem_layout.clone(), prefix: copy.prefix.clone() };
        let shares = self.shares(&shape);
        if shares.is_empty() {
            return;
        }
        let each = copy.data.len() / shares.len();
        for (i, ThreadShare { indices, exists }) in shares.iter().enumerate() {
            let brought = &copy.data[i * each..][..each];
            let scalars = match conversion {
                Some(conversion) => self.mapped([held, mem_layout], *n, brought, &mut |lowerer, element| {
                    lowerer.convert(span, *conversion, element)
                }),
                None => brought.into(),
            };
            let indices = self.first_of_pack(indices, *n);
            self.put(&handle, &indices, *n, &scalars, *exists);
        }
    }

    /// Returns the number of registers of `n` elements that move in one access.
    fn registers_of(&self, mem_layout: &MemLayout, n: u32) -> usize {
        match Pack::of(mem_layout, n).filter(|_| n > 1) {
            Some(pack) => pack.registers() as usize,
            None => self.leaves_of(mem_layout, n).len(),
        }
    }

    /// Applies `map` to each of `n` elements that move in one access, from their scalars to the
    /// scalars of the results.
    fn mapped(
        &mut self,
        [from, to]: [&MemLayout; 2],
        n: u32,
        brought: &[ir::Value],
        map: &mut dyn FnMut(&mut Self, &[ir::Value]) -> Values,
    ) -> Values {
        let (Some(from), Some(to), true) = (Pack::of(from, n), Pack::of(to, n), n > 1) else {
            return map(self, brought);
        };
        let mut made = Values::new();
        for element in self.split(from, brought) {
            made.extend(map(self, &[element]));
        }
        self.join(to, &made)
    }

    /// Applies a conversion to the scalars of an element.
    fn convert(&mut self, span: Span, conversion: u32, brought: &[ir::Value]) -> Values {
        let made = match self.tokens.conversion(conversion) {
            DeferredConversion::Function(id) => {
                let Some(function) = self.program.functions.get(id.0 as usize) else { return Values::new() };
                let frame = self.enter_function(function, None);
                self.inliner.push(frame);
                let element = self.assembled(function.locals[0].ty, &mut brought.iter().copied());
                self.inliner.pop();
                self.inline(span, id, vec![element])
            }
            DeferredConversion::Closure { function, parameters, types, body } => {
                self.at(span);
                let frame = self.enter_function(function, Some(self.builder.location));
                self.inliner.push(frame);
                let element = self.assembled(types[0], &mut brought.iter().copied());
                self.bind(&parameters[0], types[0], element);
                let made = self.lower_with_returns(body.ty, body.span, |l| l.expr(body));
                self.inliner.pop();
                self.at(span);
                made
            }
        };
        self.flatten_mem_layout(&made)
    }

    /// Returns the number of a closure or function as a conversion, if it captures nothing and so
    /// can run later.
    fn conversion(&mut self, map: &Val) -> Option<u32> {
        let Val::Callable(index) = map else { return None };
        let found = match self.inliner.callable(*index) {
            Callable::Function(id) => DeferredConversion::Function(id),
            Callable::Closure { frame, parameters, types, body, .. } => {
                if parameters.len() != 1 || captures(parameters, body) {
                    return None;
                }
                let function = self.inliner.function_of(frame)?;
                DeferredConversion::Closure { function, parameters, types, body }
            }
        };
        Some(self.tokens.add_conversion(found))
    }

    /// Returns the elements of an array of `shape` that fall to this thread: t, t + threads, ….
    fn shares(&mut self, shape: &[u32]) -> Vec<ThreadShare> {
        let elements: u32 = shape.iter().product();
        let block = self.builder.kernel.block;
        let thread = self.thread_index();
        let mut shares = Vec::new();
        // The number of elements of a thread of the smallest block.
        for k in 0..elements.div_ceil(block.least_threads()) {
            let skip = match block.threads() {
                Some(threads) => self.index(k * threads),
                None => {
                    let (k, threads) = (self.index(k), self.block_threads());
                    self.binary(Binary::Mul, Scalar::Usize, k, threads)
                }
            };
            let item = self.binary(Binary::Add, Scalar::Usize, thread, skip);
            let exists = ((k + 1) * block.most_threads() > elements).then(|| {
                let count = self.index(elements);
                self.compare(Comparison::Lt, Scalar::Usize, item, count)
            });
            let indices = self.row_major(item, shape.len(), |l, d| l.index(shape[d]));
            shares.push(ThreadShare { indices, exists });
        }
        shares
    }

    /// Returns the scalars of an element of a view, in lanes where `exists` holds; zeros in other
    /// lanes and out of bounds.
    fn load_where(&mut self, from: &ViewValue, indices: &[MaybeConst], exists: Option<MaybeConst>) -> Values {
        let mut inside = self.bounds_test(&from.extents, indices);
        if let Some(exists) = exists {
            inside = self.binary(Binary::And, Scalar::Bool, exists, inside);
        }
        let zeros = self.zeros(&from.mem_layout);
        let leaves = self.leaves_of(&from.mem_layout, 1);
        let LoweredPlace::Memory { place, policy, .. } = self.view_place(from, indices) else { return Values::new() };
        let align = align_of(&place, &from.mem_layout);
        self.load_scalars(&place, &leaves, align, policy, Some((inside, &zeros)))
    }

    /// Marks `n` elements as undefined until they are stored.
    fn poison(&mut self, to: &SharedHandle, indices: &[MaybeConst], n: u32, exists: Option<MaybeConst>) {
        let LoweredPlace::Memory { place, mem_layout, .. } = to.place(indices) else { return };
        let leaves = self.leaves_of(&mem_layout, 1);
        let Some(element) = leaves.iter().map(|(_, s)| *s).min_by_key(|s| s.bytes()) else { return };
        let count = n * mem_layout.bytes() / element.bytes();
        self.builder.effect(Op::MarkUndef { place, element, count, guard: exists.map(|k| k.value) });
    }

    /// Returns the scalars of a value, independently of the frame of its type.
    fn flatten_mem_layout(&mut self, value: &Val) -> Values {
        match value {
            Val::Scalar(k) => [k.value].into_iter().collect(),
            Val::Tuple(parts) => {
                let mut all = Values::new();
                for part in parts {
                    all.extend(self.flatten_mem_layout(part));
                }
                all
            }
            Val::Array(storage) => self.elements_of(storage),
            _ => Values::new(),
        }
    }

    /// Reads all registers of an array, in the order of its elements.
    fn elements_of(&mut self, storage: &Storage) -> Values {
        let mut all = Values::new();
        let dims = match first_leaf(storage) {
            Some(dims) => dims,
            None => return all,
        };
        if dims.is_empty() {
            match storage {
                Storage::Tuple(parts) => parts.iter().for_each(|p| all.extend(self.elements_of(p))),
                leaf => all.extend(self.read_leaf(leaf).map(|k| k.value)),
            }
            return all;
        }
        for i in 0..dims[0] {
            let i = self.index(i);
            let element = self.element(storage, i);
            all.extend(self.elements_of(&element));
        }
        all
    }

    /// Lowers the value of a branch that yields a token: one of two lists of copies.
    pub(super) fn choose_pending(
        &mut self,
        condition: MaybeConst,
        span: Span,
        then: impl FnOnce(&mut Self) -> Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let (mut then, a) = self.arm(None, then);
        let (mut otherwise, b) = self.arm(None, otherwise);
        let copies = |value: Val| if let Val::Pending(copies) = value { copies } else { Vec::new() };
        let (mut a, mut b) = (copies(a), copies(b));
        // Each kind occurs as often as in the arm with more copies of this kind.
        let mut kinds: Vec<CopyKind> = a.iter().map(|f| f.kind.clone()).collect();
        let mut spare = kinds.clone();
        for copy in &b {
            match spare.iter().position(|k| *k == copy.kind) {
                Some(i) => _ = spare.swap_remove(i),
                None => kinds.push(copy.kind.clone()),
            }
        }
        let issued: Vec<Option<u64>> = kinds.iter().map(|_| None).collect();
        self.yield_flights(&mut then, &kinds, &mut a);
        self.yield_flights(&mut otherwise, &kinds, &mut b);
        self.at(span);
        let types: Vec<Type> = kinds.iter().flat_map(CopyKind::value_types).collect();
        let op = Op::If { condition: condition.value, then, otherwise };
        let mut results = self.builder.emit(op, types).into_iter();
        let copies = kinds.into_iter().zip(issued).filter_map(|(kind, bits)| {
            let copy = kind.copy(&mut results)?;
            Some(PendingCopy { issued: MaybeConst { bits, ..copy.issued }, ..copy })
        });
        Val::Pending(copies.collect())
    }

    /// Makes an arm yield one copy of each kind; a missing copy is one that was not issued.
    fn yield_flights(&mut self, arm: &mut Region, kinds: &[CopyKind], copies: &mut Vec<PendingCopy>) {
        if arm.yielded().is_none() {
            return;
        }
        arm.insts.pop();
        let location = self.builder.location;
        let mut values = Values::new();
        for kind in kinds {
            match copies.iter().position(|f| f.kind == *kind) {
                Some(i) => values.extend(copies.remove(i).values()),
                None => {
                    for ty in kind.value_types() {
                        let value = self.builder.kernel.value(ty);
                        arm.insts.push(Inst { op: Op::Constant(0), results: [value].into_iter().collect(), location });
                        values.push(value);
                    }
                }
            }
        }
        arm.insts.push(Inst { op: Op::Yield(values), results: Values::new(), location });
    }
}

/// Returns the dimensions of an array in registers.
fn first_leaf(storage: &Storage) -> Option<SmallVec<[u32; 2]>> {
    match storage {
        Storage::Leaf { dims, .. } => Some(dims.clone()),
        Storage::Tuple(parts) => parts.iter().find_map(first_leaf),
        Storage::Unit | Storage::Shared { .. } | Storage::Pending { .. } => None,
    }
}
