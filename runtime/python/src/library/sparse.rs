//! Block masks of attention.

use crate::device::Opened;
use kernel_dsl_compiler::lock::Lock;
use kernels_rs::attention::mask::{BlockMask, BlockSize, DeviceMask};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// The blocks of keys that each block of queries sees, and their lists on the devices of its calls.
#[pyclass(frozen, module = "kernels_rs", name = "SeenBlocks")]
pub struct SeenBlocks {
    mask: BlockMask,
    uploaded: Lock<Vec<(Arc<Opened>, Arc<DeviceMask>)>>,
}

#[pymethods]
impl SeenBlocks {
    /// Makes a mask from truth values [heads, blocks of queries, blocks of keys], for sequences of
    /// these numbers of queries and keys. Blocks have 64 or 128 rows.
    #[new]
    fn new(seen: Vec<Vec<Vec<bool>>>, queries: usize, keys: usize, block: usize) -> PyResult<SeenBlocks> {
        let size = match block {
            64 => BlockSize::Small,
            128 => BlockSize::Large,
            other => return Err(PyValueError::new_err(format!("blocks have 64 or 128 rows, given {other}"))),
        };
        let [rows, cols] = [queries, keys].map(|n| n.div_ceil(block));
        if seen.iter().any(|head| head.len() != rows || head.iter().any(|row| row.len() != cols)) {
            return Err(PyValueError::new_err(format!(
                "{queries} queries and {keys} keys have {rows} and {cols} blocks of {block}: `seen` has other extents"
            )));
        }
        let mask = BlockMask::new(size, seen.len(), [queries, keys], |head, row, col| seen[head][row][col]);
        Ok(SeenBlocks { mask, uploaded: Lock::default() })
    }

    /// Returns the fraction of blocks that are seen.
    fn density(&self) -> f64 {
        self.mask.density()
    }
}

impl SeenBlocks {
    /// Returns the lists on a device, uploaded at first use.
    pub fn on(&self, opened: &Arc<Opened>) -> runtime::Result<Arc<DeviceMask>> {
        let mut uploaded = self.uploaded.lock();
        if let Some((_, known)) = uploaded.iter().find(|(known, _)| Arc::ptr_eq(known, opened)) {
            return Ok(known.clone());
        }
        let made = Arc::new(self.mask.upload(&opened.device)?);
        uploaded.push((opened.clone(), made.clone()));
        Ok(made)
    }
}
