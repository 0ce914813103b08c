//! Placement of tables in constant or global memory.
//!
//! The constant cache serves one word of a warp at a time, as fast as a register. Lanes that read
//! different words are serialized. The read-only path serves lanes together, with the latency of a
//! load. So a table goes to constant memory if every remaining read is proven to be uniform across
//! a warp. Tables are placed in the order in which the kernel names them, until the 64 KB are used
//! up. Other tables go to global memory. An explicit placement in the kernel takes precedence.

use crate::analyses::uniformity::{UniformScope, Uniformity, UniformityVerdict};
use crate::error::{Error, Errors};
use crate::ir::*;

/// Places each table that the kernel still reads.
pub fn tables(kernel: &mut Kernel) -> Result<(), Errors> {
    if kernel.tables.is_empty() {
        return Ok(());
    }
    let mut reads = TableUniformity { bases: Vec::new(), uniform: vec![None; kernel.tables.len()] };
    reads.collect(&kernel.body, &Uniformity::new(kernel));
    let constant = constant(&kernel.tables, &reads.uniform)?;
    for (base, table) in reads.bases {
        if constant[table.0 as usize] {
            kernel.values[base.0 as usize] = Type::Constant;
        }
    }
    Ok(())
}

/// Returns whether each table goes to constant memory; `uniform` is whether its reads are uniform.
fn constant(tables: &[Table], uniform: &[Option<bool>]) -> Result<Vec<bool>, Errors> {
    let (mut constant, mut left) = (vec![false; tables.len()], CONSTANT_LIMIT);
    let read = |wanted: Placement| {
        tables.iter().enumerate().filter(move |(i, t)| t.placement == wanted && uniform[*i].is_some())
    };
    for (i, table) in read(Placement::Constant) {
        let bytes = table.bytes.next_multiple_of(Table::ALIGN);
        left = left.checked_sub(bytes).ok_or_else(|| too_many(read(Placement::Constant).map(|(_, t)| t)))?;
        constant[i] = true;
    }
    for (i, table) in read(Placement::ByUse).filter(|(i, _)| uniform[*i] == Some(true)) {
        if let Some(rest) = left.checked_sub(table.bytes.next_multiple_of(Table::ALIGN)) {
            (constant[i], left) = (true, rest);
        }
    }
    Ok(constant)
}

fn too_many<'t>(tables: impl Iterator<Item = &'t Table>) -> Error {
    let (mut names, mut bytes) = (Vec::new(), 0);
    for table in tables {
        names.push(format!("`{}` has {}", table.name, table.bytes));
        bytes += u64::from(table.bytes);
    }
    let names = names.join(", ");
    Error::without_span(format!(
        "the tables in constant memory need {bytes} bytes; the limit is {CONSTANT_LIMIT} bytes: {names}"
    ))
    .help("remove `#[device(constant)]` from tables whose elements differ between lanes, or pass the table as a buffer")
}

struct TableUniformity {
    /// The addresses of tables.
    bases: Vec<(Value, TableId)>,
    /// Whether each read of a table is uniform across a warp, for each table that is read.
    uniform: Vec<Option<bool>>,
}

impl TableUniformity {
    fn collect(&mut self, region: &Region, uniformity: &Uniformity) {
        for inst in &region.insts {
            match &inst.op {
                Op::Table(table) => self.bases.push((inst.results[0], *table)),
                Op::Load { place: AccessPlace::Global { base, within: Some(within), .. }, .. } => {
                    // A kernel has few tables, so a linear search is fast enough.
                    let Some((_, table)) = self.bases.iter().find(|(b, _)| b == base) else { continue };
                    let same = |step: &ElementIndex| {
                        uniformity.of(step.index, UniformScope::Warp) == UniformityVerdict::Uniform
                    };
                    let same = within.indices.iter().all(same);
                    let so_far = &mut self.uniform[table.0 as usize];
                    *so_far = Some(so_far.unwrap_or(true) && same);
                }
                op => op.regions().into_iter().for_each(|r| self.collect(r, uniformity)),
            }
        }
    }
}
