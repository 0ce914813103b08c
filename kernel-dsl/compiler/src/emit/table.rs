//! Tables: initialized variables of the module.

use super::{Emitter, memory_type};
use crate::ir::{self, TableId, Type, Value};
use crate::ptx::{Initializer, Linkage, Operand, Space, Symbol, Variable};
use crate::scalar::Scalar;

impl Emitter<'_> {
    /// Emits the address of a table, and declares the table at its first use.
    pub(super) fn table(&mut self, result: Value, id: TableId) {
        if self.flow.survey.uses(result) == 0 {
            return;
        }
        let Some(table) = self.kernel.table(id) else { return self.malformed("a table that the kernel does not have") };
        let space = match self.ty(result) {
            Type::Constant => Space::Const,
            _ => Space::Global,
        };
        let known = self.tables.get(&(id, space)).copied();
        let symbol = match known.map_or_else(|| self.declare(table, space), Ok) {
            Ok(symbol) => symbol,
            Err(e) => return self.errors.extend(e.0),
        };
        self.tables.insert((id, space), symbol);
        let d = self.define(result);
        self.copy(d, Operand::Symbol(symbol, 0));
    }

    fn declare(&mut self, table: &ir::Table, space: Space) -> Result<Symbol, crate::error::Errors> {
        let name = called(table);
        let alike = self.kernel.tables.iter().take_while(|t| !std::ptr::eq(*t, table)).filter(|t| called(t) == name);
        let number = alike.count();
        let name = if number == 0 { name } else { format!("{name}${number}") };
        let (ty, list) = match table.of_one_type() {
            Some(scalar) => {
                (memory_type(scalar), table.scalars.iter().map(|(_, s, bits)| initial(*s, *bits)).collect())
            }
            None => {
                let bytes = table.contents().into_iter().map(|byte| Initializer::Integer(byte.into()));
                (crate::ptx::Type::B8, bytes.collect::<Vec<_>>())
            }
        };
        self.builder.global(Variable {
            linkage: Linkage::Internal,
            managed: false,
            space,
            align: Some(ir::Table::ALIGN),
            vector: 1,
            ty,
            name,
            dimensions: vec![Some(list.len() as u64)],
            initializer: Some(Initializer::List(list)),
        })
    }
}

/// Returns a table's name in PTX, which no Rust name can equal. Several tables may share a name.
fn called(table: &ir::Table) -> String {
    let name: String = table.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("${name}")
}

/// Returns a scalar as an initializer.
fn initial(scalar: Scalar, bits: u64) -> Initializer {
    match scalar {
        Scalar::F32 => Initializer::F32(bits as u32),
        Scalar::F64 => Initializer::F64(bits),
        Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) => Initializer::Bits(bits),
        s if s.is_signed() => {
            let unused = 64 - s.bits();
            Initializer::Integer((bits << unused) as i64 >> unused)
        }
        Scalar::U64 => Initializer::Bits(bits),
        _ => Initializer::Integer(bits as i64),
    }
}
