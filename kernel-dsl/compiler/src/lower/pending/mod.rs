//! Copies ahead: what is loaded at `copy_async` stays in registers until `wait` stores it; or it goes past them, on targets that
//! can, and what stays in a register is the number of its group.
//!
//! A token is a list of [`Flight`]s, each a copy to one array: whether it has begun, where to, and what was loaded. A variable
//! that holds tokens has a [`Slot`] for each kind of flight that it is ever given; which those are is found by lowering
//! what follows its `let`, and where that gives it more than its first value has, lowering it once again. So a token that
//! a loop hands on is a fixed number of registers.

mod token;

pub(super) use token::Tokens;

use super::Lowerer;
use super::captures::captures;
use super::cell::{Cell, align_of};
use super::closure::Callable;
use super::piece::Piece;
use super::value::{Handle, Known, Place, Storage, Val, View};
use crate::Scalar;
use crate::hir::{self, Expr, Pattern, TypeId};
use crate::ir::{self, Binary, Comparison, Inst, Landing, Op, Region, SharedId, Type, Values};
use crate::source::Span;
use smallvec::SmallVec;

/// Scalars that a thread may have on their way for one copy.
const MOST: usize = 256;

/// A copy that has begun, or would have.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Flight {
    kind: Kind,
    /// Whether it has.
    begun: Known,
    /// The first indices of the array that it goes to.
    prefix: SmallVec<[ir::Value; 3]>,
    /// The scalars, element by element of the thread's share, or piece by piece.
    data: Values,
}

/// What is known of a flight before it begins.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Kind {
    array: SharedId,
    cell: Cell,
    /// What is on its way of each element: what the array has, or before a conversion what the view has.
    held: Cell,
    prefix: usize,
    types: Vec<Scalar>,
    /// Elements that move at once.
    at_once: u32,
    /// What is done with each element at the wait, by index into the lowerer's conversions.
    conversion: Option<u32>,
    /// Whether it goes past the registers: then what is handed on is the number of its group.
    grouped: bool,
}

/// Registers for a flight.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Slot {
    kind: Kind,
    begun: ir::LocalId,
    prefix: Vec<ir::LocalId>,
    data: Vec<ir::LocalId>,
}

/// A closure that sees none of the variables around it, or a function: it can run later.
#[derive(Clone, Debug)]
pub(super) enum Conversion<'h> {
    Function(hir::FunctionId),
    Closure { function: &'h hir::Function, parameters: &'h [Pattern], types: &'h [TypeId], body: &'h Expr },
}

/// An element of a thread's share.
struct Share {
    indices: SmallVec<[Known; 3]>,
    /// Whether there is such an element; `None` if there is one in any case.
    exists: Option<Known>,
}

impl Flight {
    pub(super) fn array(&self) -> SharedId {
        self.kind.array
    }

    pub(super) fn values(&self) -> impl Iterator<Item = ir::Value> + '_ {
        std::iter::once(self.begun.value).chain(self.prefix.iter().copied()).chain(self.data.iter().copied())
    }
}

impl Kind {
    fn value_types(&self) -> impl Iterator<Item = Type> + '_ {
        let prefix = std::iter::repeat_n(Scalar::Usize, self.prefix);
        std::iter::once(Scalar::Bool).chain(prefix).chain(self.types.iter().copied()).map(Type::Scalar)
    }

    fn flight(self, values: &mut dyn Iterator<Item = ir::Value>) -> Option<Flight> {
        let begun = Known { value: values.next()?, bits: None };
        let prefix = values.take(self.prefix).collect();
        let data = values.take(self.types.len()).collect();
        Some(Flight { kind: self, begun, prefix, data })
    }
}

impl<'h> Lowerer<'h> {
    /// `to.copy_async(from)`, and with `map` `to.copy_async_map(from, map)`: the whole block begins to copy.
    pub(super) fn copy_async(&mut self, e: &Expr, to: &Val, from: &Val, map: Option<(&Val, TypeId)>) -> Val {
        let (Val::Shared(handle), Val::View(from)) = (to, from) else { return Val::Unit };
        let Handle::Fixed { array, cell, prefix } = handle else {
            self.error_with_help(
                e.span,
                "`copy_async` cannot fill an array of dynamic size: the number of registers it needs is unknown",
                "give the array a constant shape, or use `copy_from`",
            );
            return Val::Unit;
        };
        if map.is_none() && self.past_registers(handle, from) {
            self.begin_copies(handle, from);
            let group = self.close_group().value;
            let begun = self.begun();
            let kind = Kind {
                array: *array,
                cell: cell.clone(),
                held: cell.clone(),
                prefix: 0,
                types: vec![Scalar::Usize],
                at_once: 1,
                conversion: None,
                grouped: true,
            };
            return Val::Pending(vec![Flight {
                kind,
                begun,
                prefix: SmallVec::new(),
                data: [group].into_iter().collect(),
            }]);
        }
        let n = self.at_once_of(handle, from);
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
        let held = if conversion.is_some() { &from.cell } else { cell };
        let steps = shape.iter().product::<u32>().div_ceil(self.builder.kernel.block.least_threads()) as usize;
        let registers = steps * self.registers_of(held, n);
        if registers > MOST {
            let message = format!("the copy needs {registers} registers in each thread; a thread has at most 255");
            self.error_with_help(e.span, message, "use a smaller tile, a larger block, or `copy_from`");
            return Val::Unit;
        }
        let mut data = Values::new();
        for Share { indices, exists } in self.shares(&shape) {
            let indices = self.first_of_piece(&indices, n);
            self.poison(handle, &indices, n, exists);
            let mut loaded = match n {
                1 => self.taken_where(from, &indices, exists),
                _ => self.wide_piece(from, &indices, n, exists),
            };
            if let Some((map, ty)) = &now {
                loaded = self.mapped([&from.cell, cell], n, &loaded, &mut |lowerer, element| {
                    let element = lowerer.assembled(*ty, &mut element.iter().copied());
                    let made = lowerer.call_with(e.span, map, vec![element]);
                    lowerer.flatten_cell(&made)
                });
            }
            data.extend(loaded);
        }
        let types = data.iter().filter_map(|v| self.builder.kernel.ty(*v).scalar()).collect();
        let begun = self.begun();
        let (cell, held, grouped) = (cell.clone(), held.clone(), false);
        let kind = Kind { array: *array, cell, held, prefix: prefix.len(), types, at_once: n, conversion, grouped };
        Val::Pending(vec![Flight { kind, begun, prefix: prefix.clone(), data }])
    }

    fn begun(&mut self) -> Known {
        Known { value: self.builder.constant(Scalar::Bool, 1), bits: Some(1) }
    }

    /// Stores what a token's copies have brought.
    pub(super) fn wait(&mut self, span: Span, token: Val) {
        let Val::Pending(flights) = token else { return };
        for flight in flights {
            match flight.begun.bits {
                Some(0) => {}
                Some(_) => self.land(span, &flight),
                None => {
                    self.builder.enter([]);
                    self.land(span, &flight);
                    let then = self.builder.leave();
                    self.builder.enter([]);
                    let otherwise = self.builder.leave();
                    self.builder.effect(Op::If { condition: flight.begun.value, then, otherwise });
                }
            }
        }
    }

    fn land(&mut self, span: Span, flight: &Flight) {
        let Kind { array, cell, held, prefix, conversion, at_once: n, grouped, .. } = &flight.kind;
        if *grouped {
            self.builder.effect(Op::CopyWait(Landing::Through(flight.data[0])));
            return;
        }
        let mut shape: SmallVec<[u32; 3]> =
            self.builder.kernel.shared[array.0 as usize].shape[*prefix..].iter().copied().collect();
        if let Some(last) = shape.last_mut() {
            *last /= n;
        }
        let handle = Handle::Fixed { array: *array, cell: cell.clone(), prefix: flight.prefix.clone() };
        let shares = self.shares(&shape);
        if shares.is_empty() {
            return;
        }
        let each = flight.data.len() / shares.len();
        for (i, Share { indices, exists }) in shares.iter().enumerate() {
            let brought = &flight.data[i * each..][..each];
            let scalars = match conversion {
                Some(conversion) => self.mapped([held, cell], *n, brought, &mut |lowerer, element| {
                    lowerer.convert(span, *conversion, element)
                }),
                None => brought.into(),
            };
            let indices = self.first_of_piece(indices, *n);
            self.put(&handle, &indices, *n, &scalars, *exists);
        }
    }

    /// Registers that `n` elements take which move at once.
    fn registers_of(&self, cell: &Cell, n: u32) -> usize {
        match Piece::of(cell, n).filter(|_| n > 1) {
            Some(piece) => piece.registers() as usize,
            None => self.leaves_of(cell, n).len(),
        }
    }

    /// What `map` makes of each of `n` elements that move at once, from the scalars of one to those of the other.
    fn mapped(
        &mut self,
        [from, to]: [&Cell; 2],
        n: u32,
        brought: &[ir::Value],
        map: &mut dyn FnMut(&mut Self, &[ir::Value]) -> Values,
    ) -> Values {
        let (Some(from), Some(to), true) = (Piece::of(from, n), Piece::of(to, n), n > 1) else {
            return map(self, brought);
        };
        let mut made = Values::new();
        for element in self.apart(from, brought) {
            made.extend(map(self, &[element]));
        }
        self.together(to, &made)
    }

    /// What a conversion makes of an element's scalars.
    fn convert(&mut self, span: Span, conversion: u32, brought: &[ir::Value]) -> Values {
        let made = match self.tokens.conversion(conversion) {
            Conversion::Function(id) => {
                let Some(function) = self.program.functions.get(id.0 as usize) else { return Values::new() };
                let frame = self.enter_function(function, None);
                self.inliner.push(frame);
                let element = self.assembled(function.locals[0].ty, &mut brought.iter().copied());
                self.inliner.pop();
                self.inline(span, id, vec![element])
            }
            Conversion::Closure { function, parameters, types, body } => {
                self.at(span);
                let frame = self.enter_function(function, Some(self.builder.location));
                self.inliner.push(frame);
                let element = self.assembled(types[0], &mut brought.iter().copied());
                self.bind(&parameters[0], types[0], element);
                let made = self.leavable(body.ty, body.span, |l| l.expr(body));
                self.inliner.pop();
                self.at(span);
                made
            }
        };
        self.flatten_cell(&made)
    }

    /// A closure or function as a conversion that may run later: it must see nothing of what is around it.
    fn conversion(&mut self, map: &Val) -> Option<u32> {
        let Val::Callable(index) = map else { return None };
        let found = match self.inliner.callable(*index) {
            Callable::Function(id) => Conversion::Function(id),
            Callable::Closure { frame, parameters, types, body, .. } => {
                if parameters.len() != 1 || captures(parameters, body) {
                    return None;
                }
                let function = self.inliner.function_of(frame)?;
                Conversion::Closure { function, parameters, types, body }
            }
        };
        Some(self.tokens.add_conversion(found))
    }

    /// The elements of an array of `shape` that fall to this thread: t, t + threads, ….
    fn shares(&mut self, shape: &[u32]) -> Vec<Share> {
        let elements: u32 = shape.iter().product();
        let block = self.builder.kernel.block;
        let thread = self.thread_index();
        let mut shares = Vec::new();
        // As many as a thread of the smallest block has.
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
            shares.push(Share { indices, exists });
        }
        shares
    }

    /// The scalars of an element of a view where `exists` holds; zeros beyond its extents.
    fn taken_where(&mut self, from: &View, indices: &[Known], exists: Option<Known>) -> Values {
        let mut inside = self.inside(&from.extents, indices);
        if let Some(exists) = exists {
            inside = self.binary(Binary::And, Scalar::Bool, exists, inside);
        }
        let zeros = self.zeros(&from.cell);
        let leaves = self.leaves_of(&from.cell, 1);
        let Place::Memory { place, policy, .. } = self.view_place(from, indices) else { return Values::new() };
        let align = align_of(&place, &from.cell);
        self.load_scalars(&place, &leaves, align, policy, Some((inside, &zeros)))
    }

    /// Leaves `n` elements undefined until they are stored.
    fn poison(&mut self, to: &Handle, indices: &[Known], n: u32, exists: Option<Known>) {
        let Place::Memory { place, cell, .. } = to.place(indices) else { return };
        let leaves = self.leaves_of(&cell, 1);
        let Some(element) = leaves.iter().map(|(_, s)| *s).min_by_key(|s| s.bytes()) else { return };
        let count = n * cell.bytes() / element.bytes();
        self.builder.effect(Op::Poison { place, element, count, guard: exists.map(|k| k.value) });
    }

    /// The scalars of a value of numbers, arrays and tuples, whatever frame its type is of.
    fn flatten_cell(&mut self, value: &Val) -> Values {
        match value {
            Val::Scalar(k) => [k.value].into_iter().collect(),
            Val::Tuple(parts) => {
                let mut all = Values::new();
                for part in parts {
                    all.extend(self.flatten_cell(part));
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

    /// The value of a branch that gives a token: one of two lists of flights.
    pub(super) fn choose_pending(
        &mut self,
        condition: Known,
        span: Span,
        then: impl FnOnce(&mut Self) -> Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let (mut then, a) = self.arm(None, then);
        let (mut otherwise, b) = self.arm(None, otherwise);
        let flights = |value: Val| if let Val::Pending(flights) = value { flights } else { Vec::new() };
        let (mut a, mut b) = (flights(a), flights(b));
        // Each kind as often as the arm has it that has it more often.
        let mut kinds: Vec<Kind> = a.iter().map(|f| f.kind.clone()).collect();
        let mut spare = kinds.clone();
        for flight in &b {
            match spare.iter().position(|k| *k == flight.kind) {
                Some(i) => _ = spare.swap_remove(i),
                None => kinds.push(flight.kind.clone()),
            }
        }
        let begun: Vec<Option<u64>> = kinds.iter().map(|_| None).collect();
        self.yield_flights(&mut then, &kinds, &mut a);
        self.yield_flights(&mut otherwise, &kinds, &mut b);
        self.at(span);
        let types: Vec<Type> = kinds.iter().flat_map(Kind::value_types).collect();
        let op = Op::If { condition: condition.value, then, otherwise };
        let mut results = self.builder.emit(op, types).into_iter();
        let flights = kinds.into_iter().zip(begun).filter_map(|(kind, bits)| {
            let flight = kind.flight(&mut results)?;
            Some(Flight { begun: Known { bits, ..flight.begun }, ..flight })
        });
        Val::Pending(flights.collect())
    }

    /// Has an arm hand on a flight of each kind; where it has none, one that has not begun.
    fn yield_flights(&mut self, arm: &mut Region, kinds: &[Kind], flights: &mut Vec<Flight>) {
        if arm.yielded().is_none() {
            return;
        }
        arm.insts.pop();
        let location = self.builder.location;
        let mut values = Values::new();
        for kind in kinds {
            match flights.iter().position(|f| f.kind == *kind) {
                Some(i) => values.extend(flights.remove(i).values()),
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

/// The dimensions of an array in registers.
fn first_leaf(storage: &Storage) -> Option<SmallVec<[u32; 2]>> {
    match storage {
        Storage::Leaf { dims, .. } => Some(dims.clone()),
        Storage::Tuple(parts) => parts.iter().find_map(first_leaf),
        Storage::Unit | Storage::Pending { .. } => None,
    }
}
