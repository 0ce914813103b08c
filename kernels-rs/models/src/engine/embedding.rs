//! The embedding: a table with a row of elements for each token.

use super::linear::{FileRows, convert, read_elements};
use crate::file::TensorFormat;
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::Queue;
use kernels_rs::permute::gather;
use kernels_rs::quant;
use kernels_rs::quant::formats::{device::BlockFormat, host};
use kernels_rs::quant::repack::{dequantize, repack};
use kernels_rs::with_format;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::sync::Arc;

/// An embedding on a device, in the format of the file.
#[derive(Debug)]
pub struct Embedding {
    table: EmbeddingTable,
    /// Rows and columns.
    extents: [usize; 2],
}

/// The rows of an embedding: blocks as in the file, or elements.
#[derive(Debug)]
enum EmbeddingTable {
    Blocks(quant::Format, Arc<DeviceBuffer<u8>>),
    F32(Arc<DeviceBuffer<f32>>),
    F16(Arc<DeviceBuffer<f16>>),
    Bf16(Arc<DeviceBuffer<bf16>>),
}

impl Embedding {
    /// Uploads the rows of an embedding.
    ///
    /// # Errors
    /// If there are no kernels for the format, or memory runs out.
    pub fn new(device: &Device, rows: &FileRows<'_>) -> crate::Result<Embedding> {
        let table = match (rows.format, rows.format.quant_format()) {
            (_, Some(format)) => EmbeddingTable::Blocks(format, Arc::new(device.upload(rows.bytes)?)),
            (TensorFormat::F32, _) => {
                EmbeddingTable::F32(Arc::new(device.upload(&read_elements(rows.bytes, f32::from_le_bytes))?))
            }
            (TensorFormat::F16, _) => {
                EmbeddingTable::F16(Arc::new(device.upload(&read_elements(rows.bytes, f16::from_le_bytes))?))
            }
            (TensorFormat::BF16, _) => {
                EmbeddingTable::Bf16(Arc::new(device.upload(&read_elements(rows.bytes, bf16::from_le_bytes))?))
            }
            (other, _) => {
                let problem = format!("there are no kernels for the format {other}");
                return Err(crate::Error::tensor("the embedding", "table", problem));
            }
        };
        Ok(Embedding { table, extents: rows.extents })
    }

    /// Returns the number of tokens, and the number of elements of a token.
    pub fn extents(&self) -> [usize; 2] {
        self.extents
    }

    /// Queues y ← the rows of `tokens`, converted to `f32`. y is `[tokens, columns]`. A token
    /// beyond the table gives zeros.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run(
        &self,
        on: &impl Queue,
        tokens: &BufferView<'_, u32, 1>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        match &self.table {
            EmbeddingTable::Blocks(format, table) => {
                let [rows, columns] = self.extents;
                let row_bytes = table.len() / rows.max(1);
                let table = on.share(table)?;
                let mut token_blocks = on.scratch::<u8>(tokens.extents()[0] * row_bytes)?;
                let blocks = [tokens.extents()[0], row_bytes];
                gather(on, &table.view([rows, row_bytes])?, tokens, &mut token_blocks.view_mut(blocks)?)?;
                let blocks = token_blocks.view(blocks)?;
                with_format!(*format, F => unpacked::<F>(on, &blocks, columns, y))
            }
            EmbeddingTable::F32(table) => {
                let table = on.share(table)?;
                gather(on, &table.view(self.extents)?, tokens, y)
            }
            EmbeddingTable::F16(table) => self.converted(on, table, tokens, y),
            EmbeddingTable::Bf16(table) => self.converted(on, table, tokens, y),
        }
    }

    /// Queues y ← the rows of `tokens` from a table of `T`.
    fn converted<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        table: &Arc<DeviceBuffer<T>>,
        tokens: &BufferView<'_, u32, 1>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let token_extents = [tokens.extents()[0], self.extents[1]];
        let mut rows = on.scratch::<T>(token_extents[0] * token_extents[1])?;
        let table = on.share(table)?;
        gather(on, &table.view(self.extents)?, tokens, &mut rows.view_mut(token_extents)?)?;
        convert(on, rows.view(token_extents)?, y.reborrow())
    }
}

/// Queues y ← the elements of rows of blocks. The blocks are first repacked to planes, which the
/// kernel of the conversion reads.
fn unpacked<F: BlockFormat + GenericArgument>(
    on: &impl Queue,
    rows: &BufferView<'_, u8, 2>,
    columns: usize,
    y: &mut BufferViewMut<'_, f32, 2>,
) -> Result<(), Error> {
    let n = rows.extents()[0];
    let units = columns / F::NUMBERS * (F::NUMBERS / 32);
    let (pitch, half_pitch) = (host::pitch::<F>(units), F::halves(units));
    let (mut words, mut halves) = (on.scratch::<u32>(n * pitch)?, on.scratch::<u16>(n * half_pitch)?);
    let plane_extents = [n, F::words(units)];
    // SAFETY: the launches compare the extents, and the kernels stay within them, as the oracle
    // says of every format (`kernels check`).
    unsafe {
        let to = words.view_strided_mut(plane_extents, [pitch, 1])?;
        repack::<F>::launch_unchecked(on, *rows, units, to, halves.view_mut([n, half_pitch])?)?;
        let from = words.view_strided(plane_extents, [pitch, 1])?;
        dequantize::<F, f32, 1>::launch_unchecked(on, from, halves.view([n, half_pitch])?, units, y.reborrow())
    }
}
