//! A type-erased argument of a test case, which owns its data.

use super::ElementValue;
use kernel_dsl::compiler::hir::Type;
use kernel_dsl::compiler::{ElementType, Scalar};
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::launcher::{ArgumentShape, DimensionNumbers, ValueArgument};
use kernel_dsl::{Argument, Element};
use runtime_devices::executor::reach;
use runtime_devices::{Error, Result};
use runtime_simt::number::{short, to_f64};
use std::fmt;

/// A scalar, or an array with its shape.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// A scalar's bits, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// An array, for a slice (of rank 1) or a view.
    Array(StridedArray),
}

/// Elements in memory, with extents and strides. The numbers of an element, such as a struct, are
/// consecutive.
#[derive(Clone, PartialEq, Debug)]
pub struct StridedArray {
    element: ElementType,
    /// The numbers of an element, each with the offset of its first byte.
    numbers: Vec<(u32, Scalar)>,
    /// The bytes of the elements, little-endian.
    bytes: Vec<u8>,
    extents: Vec<usize>,
    strides: Vec<usize>,
    /// Whether the memory is uninitialized when a launch begins.
    uninitialized: bool,
}

impl Input {
    /// Returns a scalar argument.
    ///
    /// # Panics
    /// If the value is not a single number. [`value_of`](Input::value_of) splits structs and
    /// arrays.
    pub fn scalar(value: impl ValueArgument) -> Input {
        let mut all = Input::value_of(value);
        assert!(all.len() == 1, "a scalar argument is one number, but this value consists of {}", all.len());
        all.remove(0)
    }

    /// Returns the arguments that a value passed to a kernel consists of, in order.
    ///
    /// # Panics
    /// If the value holds a view. Pass an array for the view instead.
    pub fn value_of(value: impl ValueArgument) -> Vec<Input> {
        let mut list = Vec::new();
        value.arguments(&mut list);
        let one = |argument| match argument {
            Argument::Scalar { ty, bits } => Input::Scalar { ty, bits },
            Argument::Memory(_) => panic!("a view in a struct: pass the struct's numbers and an array for the view"),
        };
        list.into_iter().map(one).collect()
    }

    /// Returns a slice of all of `data`.
    pub fn slice<T: Element>(data: &[T]) -> Input {
        Input::view(data, [data.len()])
    }

    /// Returns a row-major view of all of `data`, with extents in elements. If the extents do not
    /// fit `data`, the run of the case is rejected.
    pub fn view<T: Element, const R: usize>(data: &[T], extents: [usize; R]) -> Input {
        let mut strides = [1usize; R];
        for d in (0..R.saturating_sub(1)).rev() {
            strides[d] = strides[d + 1].saturating_mul(extents[d + 1].max(1));
        }
        Input::strided(data, extents, strides)
    }

    /// Returns a view of the elements Σ indexᵢ · strideᵢ of `data`, with extents and strides in
    /// elements. The kernel must not change the gaps between these elements.
    pub fn strided<T: Element, const R: usize>(data: &[T], extents: [usize; R], strides: [usize; R]) -> Input {
        // SAFETY: elements have no padding, so all their bytes are initialized. `data` is borrowed
        // while the bytes are read.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) }.to_vec();
        let (extents, strides) = (extents.to_vec(), strides.to_vec());
        Input::Array(StridedArray {
            element: T::TYPE,
            numbers: T::TYPE.numbers(),
            bytes,
            extents,
            strides,
            uninitialized: false,
        })
    }

    /// Returns a row-major view of an output whose memory is uninitialized when the launch begins.
    /// The oracle reports each read of an element that the kernel has not written. All bits are 1,
    /// so that floats are NaN.
    pub fn uninitialized<T: Element, const R: usize>(extents: [usize; R]) -> Input {
        match Input::view::<T, R>(&[], extents) {
            Input::Array(array) => {
                let elements = extents.iter().fold(1usize, |n, extent| n.saturating_mul(*extent));
                let bytes = vec![0xff; elements.saturating_mul(size_of::<T>())];
                Input::Array(StridedArray { bytes, uninitialized: true, ..array })
            }
            scalar => scalar,
        }
    }

    /// Changes the extents and strides of an array, not its elements in memory. Returns a scalar
    /// unchanged.
    pub fn of_shape<const R: usize>(self, extents: [usize; R], strides: [usize; R]) -> Input {
        match self {
            Input::Array(array) => {
                Input::Array(StridedArray { extents: extents.into(), strides: strides.into(), ..array })
            }
            scalar => scalar,
        }
    }

    /// Fills all elements that no index reaches, such as the gaps between rows, with NaN. Elements
    /// of non-floating-point types get all bits 1.
    pub fn with_nan_gaps(self) -> Input {
        self.with_ones(|array| {
            let mut gap = vec![true; array.len()];
            array.offsets().for_each(|offset| gap[offset] = false);
            (0..gap.len()).filter(|i| gap[*i]).collect()
        })
    }

    /// Fills each element that `unread` selects with NaN; elements are counted in row-major order.
    /// Elements of non-floating-point types get all bits 1.
    pub fn with_nan_where(self, unread: impl Fn(usize) -> bool) -> Input {
        self.with_ones(|array| array.offsets().enumerate().filter(|(n, _)| unread(*n)).map(|(_, at)| at).collect())
    }

    /// Sets all bits of the numbers in memory that `which` lists; returns a scalar unchanged.
    fn with_ones(self, which: impl FnOnce(&StridedArray) -> Vec<usize>) -> Input {
        match self {
            Input::Array(mut array) => {
                for i in which(&array) {
                    let bytes = array.bytes_of(i);
                    array.bytes[bytes].fill(0xff);
                }
                Input::Array(array)
            }
            scalar => scalar,
        }
    }

    /// Returns whether the memory is uninitialized when a launch begins.
    pub fn is_uninitialized(&self) -> bool {
        matches!(self, Input::Array(array) if array.uninitialized)
    }

    /// Returns the value of a scalar, or of an array's first element; NaN for an empty array.
    pub fn value(&self) -> f64 {
        match self {
            Input::Scalar { ty, bits } => to_f64(*ty, *bits),
            Input::Array(array) => array.offsets().next().map_or(f64::NAN, |i| to_f64(array.ty(i), array.bits(i))),
        }
    }

    /// Returns the values of an array in row-major order, without gaps. A scalar gives one value.
    /// Integers beyond 2⁵³ are rounded.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Input::Scalar { ty, bits } => vec![to_f64(*ty, *bits)],
            Input::Array(array) => array.offsets().map(|i| to_f64(array.ty(i), array.bits(i))).collect(),
        }
    }

    /// Returns the number of [`values`](Self::values), without reading them.
    pub fn value_count(&self) -> usize {
        match self {
            Input::Scalar { .. } => 1,
            Input::Array(array) => array.number_count(),
        }
    }

    /// Returns the numbers of an array in row-major order, without gaps and without rounding. A
    /// scalar gives one number. An element that is a struct or an array gives all its numbers.
    pub fn numbers(&self) -> Vec<ElementValue> {
        match self {
            Input::Scalar { ty, bits } => vec![ElementValue::from_bits(*ty, *bits)],
            Input::Array(array) => array.offsets().map(|i| array.value(i)).collect(),
        }
    }

    /// Returns the elements, bit for bit. `T` may be the type of the elements, structs included, or
    /// the type of the numbers of which they consist.
    ///
    /// # Panics
    /// If the numbers have other types than those of `T`.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        let (numbers, parts) = (self.numbers(), T::TYPE.numbers());
        assert!(
            numbers.len().is_multiple_of(parts.len().max(1)),
            "{} numbers are requested as elements `{}` of {} numbers",
            numbers.len(),
            T::TYPE,
            parts.len()
        );
        let mut all = vec![T::zero(); numbers.len() / parts.len().max(1)];
        // SAFETY: `all` is borrowed mutably while its bytes are written, and every bit pattern is a
        // value of an element type.
        let bytes = unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast::<u8>(), size_of_val(&all[..])) };
        for (i, (number, (offset, ty))) in numbers.iter().zip(parts.iter().cycle()).enumerate() {
            assert!(*ty == number.ty(), "the input has numbers of type `{}`, but `{ty}` is requested", number.ty());
            let at = i / parts.len() * size_of::<T>() + *offset as usize;
            let part = &mut bytes[at..][..ty.bytes() as usize];
            part.copy_from_slice(&number.bits().to_le_bytes()[..part.len()]);
        }
        all
    }

    /// Returns the types of the numbers that one element consists of; a scalar is a single number.
    /// The numbers of [`values`](Self::values) repeat these types.
    pub fn scalars(&self) -> Vec<Scalar> {
        match self {
            Input::Scalar { ty, .. } => vec![*ty],
            Input::Array(array) => array.numbers.iter().map(|(_, ty)| *ty).collect(),
        }
    }

    /// Returns the extents of an array; a scalar has none.
    pub fn extents(&self) -> &[usize] {
        match self {
            Input::Scalar { .. } => &[],
            Input::Array(array) => &array.extents,
        }
    }
}

macro_rules! scalars {
    ($($t:ty)*) => {$(
        impl From<$t> for Input {
            fn from(value: $t) -> Input {
                Input::scalar(value)
            }
        }
    )*};
}
scalars!(i8 i16 i32 i64 u8 u16 u32 u64 usize bool f16 bf16 f32 f64);

impl<T: Element> From<&[T]> for Input {
    fn from(data: &[T]) -> Input {
        Input::slice(data)
    }
}

impl<T: Element> From<&Vec<T>> for Input {
    fn from(data: &Vec<T>) -> Input {
        Input::slice(data)
    }
}

/// The form in which a kernel takes an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InputForm {
    Slice,
    View,
    Strided,
}

impl InputForm {
    /// Returns the form of a parameter of type `ty`.
    pub fn of(ty: &Type) -> InputForm {
        match ty {
            Type::Slice { .. } => InputForm::Slice,
            Type::View { strided: true, .. } => InputForm::Strided,
            _ => InputForm::View,
        }
    }
}

impl StridedArray {
    pub(super) fn element(&self) -> ElementType {
        self.element
    }

    /// Returns the type of number `i`.
    pub(super) fn ty(&self, i: usize) -> Scalar {
        self.numbers[i % self.numbers.len()].1
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns an array of the same shape with other contents; `bytes` must have the same length.
    pub(super) fn with_bytes(&self, bytes: Vec<u8>) -> StridedArray {
        StridedArray { bytes, ..self.clone() }
    }

    /// Returns the count of numbers in memory, gaps included.
    pub(super) fn len(&self) -> usize {
        self.elements() * self.numbers.len()
    }

    fn elements(&self) -> usize {
        self.bytes.len() / self.element.bytes().max(1) as usize
    }

    /// Returns the range of bytes of number `i` in memory.
    fn bytes_of(&self, i: usize) -> std::ops::Range<usize> {
        let (start, ty) = self.numbers[i % self.numbers.len()];
        let at = i / self.numbers.len() * self.element.bytes() as usize + start as usize;
        at..at + ty.bytes() as usize
    }

    /// Returns the bits of number `i` in memory.
    pub(super) fn bits(&self, i: usize) -> u64 {
        let bytes = self.bytes_of(i);
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(&self.bytes[bytes]);
        u64::from_le_bytes(bits)
    }

    /// Returns number `i` in memory.
    pub(super) fn value(&self, i: usize) -> ElementValue {
        ElementValue::from_bits(self.ty(i), self.bits(i))
    }

    /// Returns whether the elements are `u128`s, each of which is two numbers here.
    pub(super) fn is_u128(&self) -> bool {
        self.element.to_string() == "u128"
    }

    /// Returns the elements in row-major order, if they are `u128`s.
    pub(super) fn long_integers(&self) -> Vec<u128> {
        let words: Vec<_> = self.offsets().map(|offset| u128::from(self.bits(offset))).collect();
        words.chunks_exact(2).map(|pair| pair[0] | pair[1] << 64).collect()
    }

    /// Returns the count of numbers in an element.
    pub(super) fn numbers_in_element(&self) -> usize {
        self.numbers.len()
    }

    /// Rejects a shape that exceeds the elements.
    pub(super) fn check(&self) -> Result<()> {
        let reach = reach(&self.extents, &self.strides);
        if self.extents.len() == self.strides.len() && reach <= self.elements() as u128 {
            return Ok(());
        }
        Err(Error::View {
            element: self.element,
            len: self.elements(),
            extents: self.extents.clone(),
            strides: self.strides.clone(),
            why: format!("the view spans {reach} elements"),
        })
    }

    /// Returns the shape for a launch, in the form of the parameter. The shape is a slice only if
    /// the array is contiguous.
    pub(super) fn shape(&self, form: InputForm) -> ArgumentShape {
        let wide = |numbers: &[usize]| numbers.iter().map(|n| *n as u64).collect::<DimensionNumbers>();
        let (extents, strides) = (wide(&self.extents), wide(&self.strides));
        match (form, &self.extents[..], &self.strides[..]) {
            (InputForm::Slice, [len], [1]) => ArgumentShape::Slice(*len as u64),
            (InputForm::Strided, ..) => ArgumentShape::Strided { extents, strides },
            _ => ArgumentShape::View { extents, strides },
        }
    }

    /// Returns the positions of the elements' numbers in memory, in row-major order.
    pub(super) fn offsets(&self) -> impl Iterator<Item = usize> {
        let each = self.numbers.len();
        (0..self.number_count()).map(move |n| {
            let (mut element, mut rest) = (0, n / each);
            for (extent, stride) in self.extents.iter().zip(&self.strides).rev() {
                element += rest % extent * stride;
                rest /= extent;
            }
            element * each + n % each
        })
    }

    /// Returns the number of numbers of all elements, without gaps.
    fn number_count(&self) -> usize {
        // A product could overflow before its factor 0.
        let elements = if self.extents.contains(&0) { 0 } else { self.extents.iter().product::<usize>() };
        elements * self.numbers.len()
    }

    /// Returns the index of the element that contains number `n` in row-major order.
    pub(super) fn index(&self, n: usize) -> Vec<usize> {
        let mut n = n / self.numbers.len();
        let mut index = vec![0; self.extents.len()];
        for (i, extent) in index.iter_mut().zip(&self.extents).rev() {
            *i = n % extent;
            n /= extent;
        }
        index
    }
}

/// The largest number of runs of equal values that [`Input`]'s `Display` shows.
const RUNS: usize = 12;

/// Prints the type and the values; equal neighbors are printed once: `f32[37] = 0.0 × 36, -0.0`.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = match self {
            Input::Scalar { ty, bits } => return write!(f, "{ty} = {}", short(*ty, *bits)),
            Input::Array(array) => array,
        };
        write!(f, "{}{:?}", array.element, array.extents)?;
        let rows = array.extents.iter().skip(1).product::<usize>();
        if array.strides.first().is_some_and(|stride| array.extents.len() > 1 && *stride != rows) {
            write!(f, " by strides of {:?}", array.strides)?;
        }
        let values: Vec<_> = match array.is_u128() {
            true => array.long_integers().iter().map(u128::to_string).collect(),
            false => array.offsets().map(|i| short(array.ty(i), array.bits(i))).collect(),
        };
        let runs: Vec<_> = values.chunk_by(|a, b| a == b).collect();
        let shown = runs.iter().take(RUNS).map(|run| match run {
            [one] => one.clone(),
            several => format!("{} × {}", several[0], several.len()),
        });
        write!(f, " = {}", if runs.is_empty() { "nothing".to_string() } else { shown.collect::<Vec<_>>().join(", ") })?;
        let more: usize = runs.iter().skip(RUNS).map(|run| run.len()).sum();
        if more > 0 { write!(f, ", … ({more} more)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_index_order_without_gaps() {
        let data: Vec<i16> = (-3..7).collect();
        assert_eq!(Input::view(&data, [2, 5]).values(), data.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        assert_eq!(Input::strided(&data, [2, 3], [7, 1]).values(), [-3.0, -2.0, -1.0, 4.0, 5.0, 6.0]);
        assert!(Input::strided(&data, [2, 0], [7, 1]).values().is_empty());
        assert_eq!(Input::view(&data, [2, 5]).to_vec::<i16>(), data);
        assert_eq!(Input::scalar(-2i8).value(), -2.0);
        assert_eq!(Input::scalar(3usize).value(), 3.0);
    }

    #[test]
    fn elements_are_read_as_structs_and_as_numbers() {
        let words: Vec<[u32; 2]> = vec![[1, 2], [3, u32::MAX]];
        assert_eq!(Input::slice(&words).to_vec::<[u32; 2]>(), words);
        assert_eq!(Input::slice(&words).to_vec::<u32>(), [1, 2, 3, u32::MAX]);
        assert_eq!(Input::slice(&[1u32, 2, 3, 4]).to_vec::<[u32; 4]>(), [[1, 2, 3, 4]]);
        assert_eq!(Input::strided(&[1u64, 0, u64::MAX], [2], [2]).to_vec::<u64>(), [1, u64::MAX]);
        assert_eq!(Input::slice::<u64>(&[]).to_vec::<[u64; 3]>(), Vec::<[u64; 3]>::new());
        assert_eq!(Input::slice(&[u64::MAX]).numbers(), [ElementValue::new(u64::MAX)]);
    }

    #[test]
    fn values_convert_to_inputs() {
        let inputs: [Input; 5] = [2.0f32.into(), 7usize.into(), true.into(), f16::ONE.into(), (&vec![1u64, 2]).into()];
        assert_eq!(inputs[..2], [Input::scalar(2.0f32), Input::scalar(7usize)]);
        assert_eq!(inputs[2..], [Input::scalar(true), Input::scalar(f16::ONE), Input::slice(&[1u64, 2])]);
    }

    #[test]
    fn shapes_larger_than_the_data_are_rejected() {
        let check = |input| match input {
            Input::Array(array) => array.check(),
            Input::Scalar { .. } => Ok(()),
        };
        assert!(check(Input::view(&[1.0f32; 6], [2, 3])).is_ok());
        assert!(check(Input::view(&[1.0f32; 6], [2, 4])).is_err());
        assert!(check(Input::strided(&[1.0f32; 6], [2, 3], [4, 1])).is_err());
        assert!(check(Input::view(&[1.0f32; 6], [usize::MAX; 3])).is_err());
    }
}
