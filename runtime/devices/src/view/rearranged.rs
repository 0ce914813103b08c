//! Views with other axes: only extents and strides change, no element moves.

use super::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut, ViewLayout};
use crate::Result;
use kernel_dsl::Element;

impl<const R: usize> ViewLayout<R> {
    fn permuted<T: Element>(&self, axes: [usize; R]) -> Result<ViewLayout<R>> {
        let mut seen = [false; R];
        for axis in axes {
            match seen.get_mut(axis) {
                Some(seen @ false) => *seen = true,
                _ => {
                    return Err(self.refused::<T>(self.len(), format!("{axes:?} is not a permutation of its {R} axes")));
                }
            }
        }
        let of = |all: &[usize; R]| axes.map(|axis| all[axis]);
        Ok(ViewLayout { start: self.start, extents: of(&self.extents), strides: of(&self.strides) })
    }

    fn reshaped<T: Element, const Q: usize>(&self, extents: [usize; Q]) -> Result<ViewLayout<Q>> {
        let () = ViewLayout::<Q>::RANK;
        match strides(&self.extents, &self.strides, extents) {
            Some(strides) => Ok(ViewLayout { start: self.start, extents, strides }),
            None => Err(self.refused::<T>(self.len(), format!("a view as {extents:?} would have to move elements"))),
        }
    }

    fn broadcast<T: Element, const Q: usize>(&self, extents: [usize; Q]) -> Result<ViewLayout<Q>> {
        let () = ViewLayout::<Q>::RANK;
        let mut strides = [0; Q];
        let ours = self.extents.iter().zip(&self.strides).rev();
        let mut wanted = extents.iter().zip(&mut strides).rev();
        for (n, stride) in ours {
            match wanted.next() {
                Some((m, to)) if m == n => *to = *stride,
                Some(_) | None if *n == 1 => (),
                _ => return Err(self.refused::<T>(self.len(), format!("it cannot be broadcast to {extents:?}"))),
            }
        }
        Ok(ViewLayout { start: self.start, extents, strides })
    }

    /// Returns the layout with last stride 1, if the last stride is 1 or irrelevant.
    fn side_by_side<T: Element>(mut self) -> Result<ViewLayout<R>> {
        if self.extents[R - 1] <= 1 {
            self.strides[R - 1] = 1;
        }
        match self.strides[R - 1] {
            1 => Ok(self),
            _ => Err(self.refused::<T>(self.len(), "the last stride must be 1".into())),
        }
    }

    fn len(&self) -> usize {
        self.extents.iter().product()
    }
}

/// Returns the strides for extents `to` of the same elements in the same order, if they exist. Each
/// run of axes of `to` must have the same number of elements as a contiguous run of axes of `from`.
fn strides<const Q: usize>(from: &[usize], by: &[usize], to: [usize; Q]) -> Option<[usize; Q]> {
    let product = |extents: &[usize]| extents.iter().try_fold(1usize, |n, e| n.checked_mul(*e));
    let mut strides = [1; Q];
    if product(from)? != product(&to)? {
        return None;
    }
    if from.contains(&0) {
        return Some(strides);
    }
    let mut old = from.iter().copied().zip(by.iter().copied()).filter(|(n, _)| *n != 1);
    let mut next = 0;
    while let Some((mut have, mut stride)) = old.next() {
        let (first, mut want) = (next, *to.get(next)?);
        next += 1;
        while want != have {
            if want < have {
                want *= *to.get(next)?;
                next += 1;
            } else {
                let (n, inner) = old.next()?;
                if stride != n * inner {
                    return None;
                }
                (have, stride) = (have * n, inner);
            }
        }
        for d in (first..next).rev() {
            strides[d] = stride;
            stride *= to[d];
        }
    }
    Some(strides)
}

macro_rules! rearranged {
    ($($Strided:ident $View:ident)*) => {$(
        impl<'a, T: Element, const R: usize> $Strided<'a, T, R> {
            /// Permutes the axes: axis `d` of the result is axis `axes[d]`.
            ///
            /// # Errors
            /// If `axes` does not name each axis once.
            pub fn permuted(self, axes: [usize; R]) -> Result<Self> {
                Ok($Strided::new(self.origin, self.layout.permuted::<T>(axes)?))
            }

            /// Changes the extents; elements and their order stay.
            ///
            /// # Errors
            /// If the number of elements differs, or elements would have to move: axes are merged
            /// only if their strides permit.
            pub fn reshaped<const Q: usize>(self, extents: [usize; Q]) -> Result<$Strided<'a, T, Q>> {
                Ok($Strided::new(self.origin, self.layout.reshaped::<T, Q>(extents)?))
            }

            /// Returns the same elements as a view whose last stride is 1.
            ///
            /// # Errors
            /// If the last stride is not 1 and there is more than one element along the last axis.
            pub fn side_by_side(self) -> Result<$View<'a, T, R>> {
                Ok($View::new(self.origin, self.layout.side_by_side::<T>()?))
            }
        }
    )*};
}
rearranged!(BufferStrided BufferView  BufferStridedMut BufferViewMut);

impl<'a, T: Element, const R: usize> BufferStrided<'a, T, R> {
    /// Repeats elements to fill `extents`: an axis with one element represents all, and missing
    /// leading axes count as such (NumPy's broadcasting).
    ///
    /// # Errors
    /// If an extent is neither 1 nor the requested one.
    pub fn broadcast<const Q: usize>(self, extents: [usize; Q]) -> Result<BufferStrided<'a, T, Q>> {
        Ok(BufferStrided::new(self.origin, self.layout.broadcast::<T, Q>(extents)?))
    }
}

#[cfg(test)]
mod tests {
    use super::strides;
    use crate::Device;

    #[test]
    fn axes_are_split_and_joined_where_strides_allow() {
        assert_eq!(strides(&[2, 3, 4], &[12, 4, 1], [6, 4]), Some([4, 1]));
        assert_eq!(strides(&[2, 3, 4], &[20, 5, 1], [6, 4]), None);
        assert_eq!(strides(&[2, 3, 4], &[15, 5, 1], [6, 4]), Some([5, 1]));
        assert_eq!(strides(&[6, 4], &[5, 1], [1, 2, 3, 4, 1]), Some([30, 15, 5, 1, 1]));
        assert_eq!(strides(&[4, 6], &[0, 1], [2, 2, 6]), Some([0, 0, 1]));
        assert_eq!(strides(&[1, 1], &[7, 1], [1]), Some([1]));
        assert_eq!(strides(&[0, 4], &[4, 1], [2, 0]), Some([1, 1]));
        assert_eq!(strides(&[4], &[1], [5]), None);
        // Axes that meet nowhere but at the end.
        assert_eq!(strides(&[4, 6], &[6, 1], [6, 4]), Some([4, 1]));
        assert_eq!(strides(&[4, 6], &[7, 1], [6, 4]), None);
    }

    #[test]
    fn views_are_reordered_and_broadcast() {
        let device = Device::cpu();
        let x = device.zeros::<f32>(24).unwrap();
        let view = x.view([2, 3, 4]).unwrap().strided();
        let permuted_view = view.permuted([2, 0, 1]).unwrap();
        assert_eq!((permuted_view.extents(), permuted_view.strides()), ([4, 2, 3], [1, 12, 4]));
        assert!(view.permuted([0, 0, 1]).is_err() && view.permuted([0, 1, 3]).is_err());
        assert!(permuted_view.side_by_side().is_err() && view.side_by_side().is_ok());

        let row = x.range(0..4).unwrap().strided().broadcast([5, 3, 4]).unwrap();
        assert_eq!((row.extents(), row.strides()), ([5, 3, 4], [0, 0, 1]));
        let column = x.range(0..3).unwrap().strided().reshaped([3, 1]).unwrap().broadcast([3, 9]).unwrap();
        assert_eq!((column.extents(), column.strides()), ([3, 9], [1, 0]));
        assert!(view.broadcast([2, 3, 5]).is_err() && view.broadcast([3, 4]).is_err());
    }
}
