//! The number of threads of a block.

use std::fmt;

/// Threads of a block in x, y and z. The extent of one axis may be chosen at launch; all later axes
/// then have extent 1. So a thread with a given linear index has the same x, y and z in each
/// launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockExtents {
    most: [u32; 3],
    open: Option<OpenAxis>,
    multiple: u32,
}

/// The axis whose extent the launch chooses: the minimum plus a number of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenAxis {
    /// 0 is x.
    pub axis: usize,
    /// Minimum extent.
    pub least: u32,
    /// Step between possible extents.
    pub step: u32,
}

/// Threads of a warp.
const LANES: u32 = 32;

impl BlockExtents {
    /// Returns a block of a fixed size.
    pub fn fixed(extents: [u32; 3]) -> BlockExtents {
        BlockExtents { most: extents, open: None, multiple: product(extents) }
    }

    /// Returns a block whose extent along `axis` is one of `least`, `least` + `step`, …, up to its
    /// extent in `most`. Returns `None` if there is no such number, or if a later axis has more
    /// than one thread.
    pub fn ranging(most: [u32; 3], axis: usize, least: u32, step: u32) -> Option<BlockExtents> {
        let last = *most.get(axis)?;
        if step == 0 || least > last || most[axis + 1..].iter().any(|n| *n != 1) {
            return None;
        }
        let mut most = most;
        most[axis] = last - (last - least) % step;
        if most[axis] == least {
            return Some(BlockExtents::fixed(most));
        }
        let multiple = product(most).checked_div(most[axis])?.saturating_mul(gcd(least, step));
        Some(BlockExtents { most, open: Some(OpenAxis { axis, least, step }), multiple })
    }

    /// Records that the number of threads is a multiple of `n`.
    pub fn multiple_of(mut self, n: u32) -> BlockExtents {
        if n > 0 {
            let common = (u64::from(self.multiple) / u64::from(gcd(self.multiple, n))).saturating_mul(n.into());
            self.multiple = u32::try_from(common).unwrap_or(self.multiple);
        }
        self
    }

    /// Returns the extents, if they are equal in all launches.
    pub fn extents(&self) -> Option<[u32; 3]> {
        self.open.is_none().then_some(self.most)
    }

    /// Returns the extent along an axis, if it is equal in all launches.
    pub fn extent(&self, axis: u8) -> Option<u32> {
        let axis = usize::from(axis);
        let open = self.open.is_some_and(|open| open.axis == axis);
        self.most.get(axis).copied().filter(|_| !open)
    }

    /// Returns the extents with the variable one at its maximum.
    pub fn max_extents(&self) -> [u32; 3] {
        self.most
    }

    /// Returns the number of threads, if it is equal in all launches.
    pub fn threads(&self) -> Option<u32> {
        self.extents().map(product)
    }

    /// Returns the maximum number of threads.
    pub fn most_threads(&self) -> u32 {
        product(self.most)
    }

    /// Returns the minimum number of threads.
    pub fn least_threads(&self) -> u32 {
        product(self.sized(|open| open.least))
    }

    /// Returns a number that divides the number of threads of every launch.
    pub fn multiple(&self) -> u32 {
        self.multiple
    }

    /// Returns a number that divides the extent along an axis in every launch.
    pub fn divisor(&self, axis: u8) -> u32 {
        match self.open {
            Some(open) if open.axis == usize::from(axis) => {
                let inner = self.most[..open.axis].iter().product();
                gcd(open.least, open.step).max(self.multiple / gcd(self.multiple, inner))
            }
            _ => self.most.get(usize::from(axis)).copied().unwrap_or(1),
        }
    }

    /// Returns whether blocks consist of whole warps in each launch.
    pub fn has_whole_warps(&self) -> bool {
        self.multiple.is_multiple_of(LANES)
    }

    /// Returns the axis whose extent the launch chooses, if there is one.
    pub fn open(&self) -> Option<OpenAxis> {
        self.open
    }

    /// Returns whether a launch may have that extent along an axis.
    pub fn has_extent(&self, axis: usize, n: u32) -> bool {
        let Some(most) = self.most.get(axis) else { return n == 1 };
        match self.open {
            Some(open) if open.axis == axis => {
                n <= *most && n >= open.least && (n - open.least).is_multiple_of(open.step)
            }
            _ => n == *most,
        }
    }

    /// Returns whether a launch may have blocks of that size.
    pub fn has(&self, extents: [u32; 3]) -> bool {
        let fits = extents.iter().enumerate().all(|(axis, n)| self.has_extent(axis, *n));
        fits && product(extents).is_multiple_of(self.multiple.max(1))
    }

    /// Returns block sizes to test: the minimum, the maximum, and one between. Returns one size if
    /// it is fixed.
    pub fn samples(&self) -> Vec<[u32; 3]> {
        let Some(open) = self.open else { return vec![self.most] };
        let steps = (self.most[open.axis] - open.least) / open.step;
        let sizes: Vec<_> =
            (0..=steps).map(|n| self.sized(|open| open.least + n * open.step)).filter(|size| self.has(*size)).collect();
        let mut some: Vec<_> =
            sizes.first().into_iter().chain(sizes.get(sizes.len() / 2)).chain(sizes.last()).collect();
        some.dedup();
        some.into_iter().copied().collect()
    }

    fn sized(&self, extent: impl Fn(&OpenAxis) -> u32) -> [u32; 3] {
        let mut size = self.most;
        if let Some(open) = &self.open {
            size[open.axis] = extent(open);
        }
        size
    }
}

fn product(extents: [u32; 3]) -> u32 {
    extents.iter().fold(1, |all, n| all.saturating_mul(*n))
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// `32 x 8 x 1: 256 threads`, or `32..=1024 by 32 x 1 x 1: 32 to 1024 threads`.
impl fmt::Display for BlockExtents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, n) in self.most.iter().enumerate() {
            let separator = if axis > 0 { " x " } else { "" };
            match self.open {
                Some(OpenAxis { axis: open, least, step }) if open == axis => {
                    let by = if step > 1 { format!(" by {step}") } else { String::new() };
                    write!(f, "{separator}{least}..={n}{by}")?;
                }
                _ => write!(f, "{separator}{n}")?,
            }
        }
        match self.threads() {
            Some(threads) => write!(f, ": {threads} threads"),
            None => write!(f, ": {} to {} threads", self.least_threads(), self.most_threads()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_at_a_step() {
        let block = BlockExtents::ranging([1000, 1, 1], 0, 32, 32).unwrap();
        assert_eq!((block.least_threads(), block.most_threads(), block.multiple()), (32, 992, 32));
        assert!(block.has([64, 1, 1]) && !block.has([65, 1, 1]) && !block.has([1024, 1, 1]) && !block.has([0, 1, 1]));
        assert_eq!(block.samples(), [[32, 1, 1], [512, 1, 1], [992, 1, 1]]);
        assert_eq!(block.to_string(), "32..=992 by 32 x 1 x 1: 32 to 992 threads");
        assert_eq!(BlockExtents::ranging([40, 1, 1], 0, 32, 32), Some(BlockExtents::fixed([32, 1, 1])));
    }

    #[test]
    fn the_last_axis_alone_is_open() {
        assert_eq!(BlockExtents::ranging([8, 8, 1], 0, 4, 1), None);
        let block = BlockExtents::ranging([32, 8, 1], 1, 1, 1).unwrap();
        assert!(block.has_whole_warps() && block.extent(0) == Some(32) && block.extent(1).is_none());
        assert_eq!(block.samples(), [[32, 1, 1], [32, 5, 1], [32, 8, 1]]);
    }

    #[test]
    fn known_thread_counts_narrow_ranges() {
        let block = BlockExtents::ranging([100, 1, 1], 0, 1, 1).unwrap();
        assert!(!block.has_whole_warps());
        let whole = block.multiple_of(32);
        assert!(whole.has_whole_warps() && whole.has([64, 1, 1]) && !whole.has([65, 1, 1]));
        assert_eq!(whole.samples(), [[32, 1, 1], [64, 1, 1], [96, 1, 1]]);
    }
}
