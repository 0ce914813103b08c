//! Validation of a call's operands before anything is queued, and the errors for rejected ones.

use crate::fold::{MAX_BLOCKS, fits};
use kernel_dsl::Element;
use kernel_dsl::compiler::launch::Refusal;
use runtime::{BufferStrided, BufferView, BufferViewMut, Error};
use std::fmt::Arguments;

/// The number of elements by which the counters of product kernels run past the end of K before the
/// kernels compare them.
pub(crate) const COUNTER_OVERRUN: usize = 4096;

/// An array that is passed to a call.
pub(crate) trait ArrayOperand<const R: usize> {
    /// Returns the extents and strides.
    fn layout(&self) -> [[usize; R]; 2];

    /// Returns the error that rejects the array.
    fn refused_operand(&self, why: String) -> Error;

    /// Rejects an array without the extents `wanted`; `why` is the reason for them.
    fn expected(&self, name: &str, wanted: [usize; R], why: &str) -> Result<(), Error> {
        let [extents, _] = self.layout();
        if extents == wanted {
            return Ok(());
        }
        Err(rejected(format!("{name}: extents {extents:?}, expected {wanted:?} ({why})")))
    }

    /// Rejects a number of elements `n` along an axis that overflows a kernel's counter. The kernel
    /// counts up to `beyond` elements past the end before it compares.
    fn countable(&self, n: usize, beyond: usize) -> Result<(), Error> {
        let max = max_countable(beyond);
        if n as u64 <= max {
            return Ok(());
        }
        Err(self.refused_operand(format!(
            "{n} elements are too many for one call, which takes at most {max}: its kernel counts in 32 bits, up to {beyond} past the last; \
             split the call"
        )))
    }

    /// Rejects x × y × z blocks of threads, if a grid that may be [folded](crate::fold) cannot have
    /// them. `work` describes them in the caller's terms.
    fn check_grid(&self, blocks: [usize; 3], work: Arguments<'_>) -> Result<(), Error> {
        if fits(blocks) {
            return Ok(());
        }
        let blocks = blocks.into_iter().fold(1u128, |all, n| all.saturating_mul(n as u128));
        Err(self.refused_operand(format!(
            "{work} take {blocks} blocks of threads, and one call has at most {MAX_BLOCKS}: split the call"
        )))
    }
}

macro_rules! operands {
    ($($View:ident)*) => {$(
        impl<T: Element, const R: usize> ArrayOperand<R> for $View<'_, T, R> {
            fn layout(&self) -> [[usize; R]; 2] {
                [self.extents(), self.strides()]
            }

            fn refused_operand(&self, why: String) -> Error {
                refused_operand::<T, R>(self.layout(), why)
            }
        }
    )*};
}
operands!(BufferView BufferViewMut BufferStrided);

/// Returns the error for an operand with these extents and strides that the call does not support.
pub(crate) fn refused_operand<T: Element, const R: usize>([extents, strides]: [[usize; R]; 2], why: String) -> Error {
    rejected(format!("{why} (operand of {}, extents {extents:?}, strides {strides:?})", T::TYPE))
}

/// Returns the error for arguments that the call does not support.
pub(crate) fn rejected(why: String) -> Error {
    Error::RefusedArguments { refusals: vec![Refusal(why)] }
}

/// Rejects an optional operand that is present, but does not have the extents `wanted`. Kernels
/// treat an empty operand as absent, so an operand that is present and empty would be ignored.
pub(crate) fn check_optional<const R: usize>(
    operand: Option<&impl ArrayOperand<R>>,
    name: &str,
    wanted: [usize; R],
    why: &str,
) -> Result<(), Error> {
    operand.map_or(Ok(()), |operand| operand.expected(name, wanted, why))
}

/// Returns the maximum number of elements along an axis for which a 32-bit counter can run `beyond`
/// elements past the end.
const fn max_countable(beyond: usize) -> u64 {
    (1u64 << 32).saturating_sub(beyond as u64)
}

#[cfg(test)]
mod tests {
    use super::{ArrayOperand, check_optional, max_countable};
    use runtime::{BufferView, Device};

    #[test]
    fn a_count_beyond_32_bits_is_rejected() {
        assert_eq!((max_countable(0), max_countable(8192), max_countable(usize::MAX)), (1 << 32, (1 << 32) - 8192, 0));
        let device = Device::cpu();
        let x = device.zeros::<f32>(1).unwrap();
        let x = x.view([1]).unwrap();
        x.countable((1 << 32) - 8192, 8192).unwrap();
        for n in [(1 << 32) - 8191, usize::MAX] {
            let message = x.countable(n, 8192).unwrap_err().to_string();
            assert!(message.contains("which takes at most 4294959104"), "{message}");
        }
    }

    #[test]
    fn more_blocks_than_a_grid_has_are_rejected() {
        let device = Device::cpu();
        let x = device.zeros::<f32>(1).unwrap();
        let x = x.view([1]).unwrap();
        let work = |n: usize| format!("{n} sequences");
        for blocks in
            [[(1 << 31) - 1, 65_535, 65_535], [0, 1 << 40, 1 << 40], [1, 1, (1 << 31) - 1], [30_000, 70_000, 1]]
        {
            x.check_grid(blocks, format_args!("{}", work(1))).unwrap();
        }
        for blocks in [[1 << 31, 1, 1], [1, 1 << 31, 1], [2, 1, 1 << 30], [31_000, 70_000, 1], [usize::MAX; 3]] {
            let message = x.check_grid(blocks, format_args!("{}", work(7))).unwrap_err().to_string();
            assert!(message.contains("7 sequences take") && message.contains("at most 2147483647"), "{message}");
        }
    }

    #[test]
    fn other_extents_are_rejected() {
        let device = Device::cpu();
        let x = device.zeros::<f32>(6).unwrap();
        let x = x.view([2, 3]).unwrap();
        x.expected("x", [2, 3], "here").unwrap();
        let message = x.expected("x", [3, 2], "here").unwrap_err().to_string();
        assert!(message.contains("x: extents [2, 3], expected [3, 2] (here)"), "{message}");
        check_optional(None::<&BufferView<'_, f32, 2>>, "x", [3, 2], "here").unwrap();
        assert!(check_optional(Some(&x), "x", [3, 2], "here").is_err());
        // A broadcast row with more elements than can be counted.
        let far = x.strided().broadcast([usize::MAX, 2, 3]).unwrap().side_by_side().unwrap();
        assert!(far.expected("x", [2, 2, 3], "here").is_err());
    }
}
