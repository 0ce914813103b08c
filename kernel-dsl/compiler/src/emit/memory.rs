//! Loads, stores and addresses. An address is a base register, or shared memory, plus constant
//! bytes.

use super::packed::{WordLanes, as_words};
use super::{Emitter, constant, memory_type, register_type};
use crate::ir::{AccessPlace, AsyncCopy, CachePolicy, Guard, MAX_VECTOR_BYTES, Type, Value};
use crate::ptx::{self, Address, Base, Modifier, Opcode, Operand, RegisterId, Symbol};
use crate::scalar::Scalar;
use smallvec::SmallVec;

/// The parts of an access, from its place.
pub(super) struct AddressParts {
    pub space: Modifier,
    address: Address,
}

/// Returns how many of `n` consecutive elements one access moves: the largest power of two that
/// divides `n`, up to the limit of the hardware. So no part needs a larger alignment than the
/// complete access.
fn elements_per_access(n: usize, element: Scalar) -> usize {
    let most = (MAX_VECTOR_BYTES / element.bytes()).min(4) as usize;
    (1 << n.trailing_zeros()).min(most)
}

/// Returns the modifier of an access to `n` elements.
pub(super) fn vector(n: usize) -> Option<Modifier> {
    match n {
        2 => Some(Modifier::V2),
        4 => Some(Modifier::V4),
        _ => None,
    }
}

/// Returns the elements as one operand: a vector, if there are several.
pub(super) fn operand(mut elements: Vec<Operand>) -> Operand {
    if elements.len() == 1 { elements.remove(0) } else { Operand::Vector(elements) }
}

impl Emitter<'_> {
    /// Loads a parameter to a register.
    pub(super) fn load_parameter(&mut self, ty: Type, stored: ptx::Type, symbol: Symbol) -> RegisterId {
        let address = Operand::Address(Address { base: Base::Symbol(symbol), offset: 0 });
        let load = [Modifier::Param, stored.modifier()];
        if ty == Type::Scalar(Scalar::Bool) {
            let byte = self.register(ptx::Type::U32);
            self.op(Opcode::Ld, load, [byte.into(), address]);
            let d = self.register(ptx::Type::Pred);
            self.truth(d, byte);
            return d;
        }
        let d = self.register(register_type(ty));
        self.op(Opcode::Ld, load, [d.into(), address]);
        if ty == Type::Global {
            let to = [Modifier::To, Modifier::Global, Modifier::U64];
            self.op(Opcode::Cvta, to, [d.into(), d.into()]);
        }
        d
    }

    /// Emits a comparison of a byte from memory with zero, for a `bool`.
    pub(super) fn truth(&mut self, to: RegisterId, byte: RegisterId) {
        self.op(Opcode::Setp, [Modifier::Ne, Modifier::U32], [to.into(), byte.into(), Operand::Integer(0)]);
    }

    /// Returns a truth value as a byte for memory.
    pub(super) fn byte(&mut self, value: Value) -> Operand {
        match self.operand(value) {
            Operand::Register(p) => {
                let byte = self.register(ptx::Type::U32);
                let (yes, no) = (Operand::Integer(1), Operand::Integer(0));
                self.op(Opcode::Selp, [Modifier::U32], [byte.into(), yes, no, p.into()]);
                byte.into()
            }
            constant => constant,
        }
    }

    pub(super) fn access(&mut self, place: &AccessPlace) -> Option<AddressParts> {
        let AccessPlace::Address { base, offset } = *place else {
            self.malformed("an access without an address");
            return None;
        };
        let space = match self.ty(base) {
            Type::Global => Modifier::Global,
            Type::Constant => Modifier::Const,
            Type::Shared => Modifier::Shared,
            Type::Scalar(_) => {
                self.malformed("an access through a number");
                return None;
            }
        };
        let address = match (space, self.constant(base), self.shared) {
            (Modifier::Shared, Some(bits), Some(symbol)) => {
                Address { base: Base::Symbol(symbol), offset: (bits as i32).wrapping_add(offset) }
            }
            _ => Address { base: Base::Register(self.in_register(base)), offset },
        };
        Some(AddressParts { space, address })
    }

    /// Returns the guard of an access; `None` if no lane accesses memory.
    fn lanes(&mut self, condition: Option<Value>) -> Option<Option<ptx::Guard>> {
        let Some(condition) = condition else { return Some(None) };
        match self.constant(condition) {
            Some(0) => None,
            Some(_) => Some(None),
            None => Some(Some(ptx::Guard { register: self.in_register(condition), negated: false })),
        }
    }

    pub(super) fn load(
        &mut self,
        results: &[Value],
        place: &AccessPlace,
        element: Scalar,
        policy: CachePolicy,
        guard: Option<&Guard>,
    ) {
        let Some(access) = self.access(place) else { return };
        if results.is_empty() || results.iter().any(|r| self.ty(*r) != Type::Scalar(element)) {
            return self.malformed("a load whose results are not of the element's type");
        }
        if guard.is_some_and(|g| g.otherwise.len() != results.len()) {
            return self.malformed("a guarded load without a value for each result");
        }
        let lanes = self.lanes(guard.map(|g| g.condition));
        let words = as_words(results.len(), element);
        // Constants for masked lanes are written to whole words before unpacking. Unpacking under a
        // guard would keep a register for each element.
        let constants = match (guard, &lanes) {
            (Some(guard), Some(Some(_))) if words => guard.otherwise.iter().map(|v| self.constant(*v)).collect(),
            _ => None,
        };
        // The registers that the load writes, and the predicates that are computed from loaded
        // bytes.
        let mut written: Vec<RegisterId> = Vec::with_capacity(results.len());
        for (i, &result) in results.iter().enumerate() {
            let truth = element == Scalar::Bool;
            let d = if truth { self.register(ptx::Type::U32) } else { self.define(result) };
            written.push(d);
            if let (Some(guard), None, None | Some(Some(_))) = (guard, &constants, &lanes) {
                let other = if truth { self.byte(guard.otherwise[i]) } else { self.operand(guard.otherwise[i]) };
                if other != Operand::Register(d) {
                    self.copy(d, other);
                }
            }
        }
        let mut path: SmallVec<[Modifier; 4]> = SmallVec::from_slice(&[access.space]);
        if access.space == Modifier::Global {
            path.extend_from_slice(match policy {
                CachePolicy::ReadOnly => &[Modifier::Nc],
                CachePolicy::ReadOnce => &[Modifier::Cs, Modifier::Nc],
                CachePolicy::Coherent => &[],
                CachePolicy::CoherentOnce => &[Modifier::Cs],
                CachePolicy::BypassL1 => &[Modifier::Cg],
            });
        }
        if let Some(lanes) = lanes
            && words
        {
            self.load_words(&access, &path, WordLanes { guard: lanes, constants }, element, &written);
        } else if let Some(lanes) = lanes {
            let n = elements_per_access(results.len(), element);
            let ty = memory_type(element);
            for (i, part) in written.chunks(n).enumerate() {
                let mut modifiers = path.clone();
                modifiers.extend(vector(n));
                modifiers.push(ty.modifier());
                let address = access.part(i * n, element);
                let to = operand(part.iter().map(|r| Operand::Register(*r)).collect());
                self.guarded(lanes, Opcode::Ld, &modifiers, [to, address]);
            }
        }
        if element == Scalar::Bool {
            for (byte, &result) in written.into_iter().zip(results) {
                let d = self.define(result);
                self.truth(d, byte);
            }
        }
    }

    pub(super) fn store(&mut self, place: &AccessPlace, element: Scalar, values: &[Value], guard: Option<Value>) {
        let Some(access) = self.access(place) else { return };
        if values.is_empty() || values.iter().any(|v| self.ty(*v) != Type::Scalar(element)) {
            return self.malformed("a store whose values are not of the element's type");
        }
        let Some(lanes) = self.lanes(guard) else { return };
        let n = elements_per_access(values.len(), element);
        let ty = memory_type(element);
        let values: Vec<Operand> =
            values.iter().map(|v| if element == Scalar::Bool { self.byte(*v) } else { self.operand(*v) }).collect();
        if as_words(values.len(), element) {
            return self.store_words(&access, lanes, element, &values);
        }
        for (i, part) in values.chunks(n).enumerate() {
            let mut modifiers: SmallVec<[Modifier; 4]> = SmallVec::from_slice(&[access.space]);
            modifiers.extend(vector(n));
            modifiers.push(ty.modifier());
            let address = access.part(i * n, element);
            self.guarded(lanes, Opcode::St, &modifiers, [address, operand(part.to_vec())]);
        }
    }

    /// Emits `cp.async`, which bypasses L1 for copies of 16 bytes.
    pub(super) fn copy_async(&mut self, copy: &AsyncCopy) {
        let (Some(to), Some(from)) = (self.access(&copy.to), self.access(&copy.from)) else { return };
        let Some(lanes) = self.lanes(copy.guard) else { return };
        let size = Operand::Integer(copy.size().into());
        let way = if copy.size() == MAX_VECTOR_BYTES { Modifier::Cg } else { Modifier::Ca };
        let mut operands = vec![to.part(0, copy.element), from.part(0, copy.element), size.clone()];
        let read = copy.bytes.map(|bytes| self.operand(bytes));
        let inside = copy.inside.map(|inside| (inside, self.constant(inside)));
        operands.extend(match inside {
            None | Some((_, Some(1..))) => read,
            Some((_, Some(0))) => Some(Operand::Integer(0)),
            Some((inside, None)) => {
                let (d, inside) = (self.register(ptx::Type::U32), self.in_register(inside));
                let read = read.unwrap_or(size);
                self.op(Opcode::Selp, [Modifier::U32], [d.into(), read, Operand::Integer(0), inside.into()]);
                Some(d.into())
            }
        });
        let words = [Modifier::Async, way, Modifier::Shared, Modifier::Global];
        self.guarded(lanes, Opcode::Cp, &words, operands);
    }

    /// Emits base + Σ indexᵢ · strideᵢ · size. Indices and their products have 32 bits, which the
    /// kernel must not overflow.
    pub(super) fn offset(&mut self, result: Value, base: Value, terms: &[(Value, Option<Value>)], bytes: u32) {
        let ty = self.ty(base);
        if self.ty(result) != ty || ty.scalar().is_some() {
            return self.malformed("an offset that is not from an address to an address");
        }
        let size = Operand::Integer(i64::from(bytes));
        let mut constant_bytes: u64 = 0;
        let mut factors: Vec<Operand> = Vec::new();
        for &(index, stride) in terms {
            let stride_bits = stride.map_or(Some(1), |s| self.constant(s));
            match (self.constant(index), stride_bits) {
                (Some(i), Some(s)) => {
                    constant_bytes = constant_bytes.wrapping_add(i.wrapping_mul(s) * u64::from(bytes));
                }
                (None, Some(1)) => factors.push(self.operand(index)),
                _ => {
                    let (i, s) = (self.operand(index), self.operand(stride.unwrap_or(index)));
                    let product = self.register(ptx::Type::U32);
                    self.op(Opcode::Mul, [Modifier::Lo, Modifier::U32], [product.into(), i, s]);
                    factors.push(product.into());
                }
            }
        }
        if factors.is_empty()
            && ty == Type::Shared
            && let Some(bits) = self.constant(base)
        {
            let bits = bits.wrapping_add(constant_bytes) & u64::from(u32::MAX);
            self.bindings[result.0 as usize] = Some(super::ValueForm::Constant(bits));
            return;
        }
        let mut sum: Operand = self.in_register(base).into();
        let (mad, add): (&[Modifier], _) = match ty {
            Type::Shared => (&[Modifier::Lo, Modifier::U32], Modifier::U32),
            _ => (&[Modifier::Wide, Modifier::U32], Modifier::S64),
        };
        let last = factors.len();
        for (i, factor) in factors.into_iter().enumerate() {
            let done = i + 1 == last && constant_bytes == 0;
            let d = if done { self.define(result) } else { self.register(register_type(ty)) };
            match (ty, &size) {
                // A 32-bit offset in bytes needs no multiplication.
                (Type::Shared, Operand::Integer(1)) => self.op(Opcode::Add, [Modifier::U32], [d.into(), factor, sum]),
                _ => self.guarded(None, Opcode::Mad, mad, [d.into(), factor, size.clone(), sum]),
            }
            sum = d.into();
        }
        if constant_bytes != 0 {
            let bytes =
                constant(if ty == Type::Shared { Type::Shared } else { Type::Scalar(Scalar::I64) }, constant_bytes);
            let d = self.define(result);
            self.op(Opcode::Add, [add], [d.into(), sum, bytes]);
        } else if last == 0 {
            let d = self.define(result);
            self.copy(d, sum);
        }
    }

    /// Emits an address from a number: bytes from the start of shared memory, or the bits of a
    /// global address.
    pub(super) fn address_of(&mut self, result: Value, number: Value) {
        let bits = self.constant(number);
        match (self.ty(result), self.ty(number).scalar().map(Scalar::bits), bits) {
            (Type::Shared, Some(32), Some(bits)) => {
                self.bindings[result.0 as usize] = Some(super::ValueForm::Constant(bits));
            }
            (Type::Shared, Some(32), None) => {
                let Some(base) = self.shared_base else {
                    return self.malformed("an address in shared memory, in a kernel without shared memory");
                };
                let (bytes, d) = (self.operand(number), self.define(result));
                self.op(Opcode::Add, [Modifier::U32], [d.into(), base.into(), bytes]);
            }
            (Type::Global, Some(64), _) => {
                let (number, d) = (self.operand(number), self.define(result));
                self.copy(d, number);
            }
            _ => self.malformed("a cast between an address and a number"),
        }
    }
}

impl AddressParts {
    /// Returns the address of element `index` of the access.
    pub(super) fn part(&self, index: usize, element: Scalar) -> Operand {
        let bytes = index as i32 * element.bytes() as i32;
        Operand::Address(Address { offset: self.address.offset.wrapping_add(bytes), ..self.address })
    }
}
