//! What is done with the elements of a product before they are written.

use kernel_dsl::prelude::*;
pub use items::*;

#[device]
mod items {
    use kernel_dsl::prelude::*;

    /// A function of a piece of a row of the product, at (row, col) of matrix `batch`.
    pub trait Epilogue: Copy {
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V];
    }

    /// The product as it is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Identity;

    impl Epilogue for Identity {
        fn apply<const V: usize>(&self, x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            x
        }
    }
}
