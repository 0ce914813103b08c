//! The calls for row kernels, which check the shapes and choose the team.

mod backward;
mod group;
mod loss;
mod norm;
pub(crate) mod plan;
mod project;
mod softmax;
mod tuned;

pub use group::GroupNorm;
pub use loss::CrossEntropy;
pub use norm::{Added, Norm, Saved};
pub use plan::Team;
pub use softmax::Softmax;
pub use tuned::{RowKernel, RowsShape};
