//! Machine code of an instance, made with NVIDIA's tools where they are found.

use crate::error::Error;
use crate::output::counted;
use kernel_dsl::compiler::Target;
use kernels_rs_estimate::nvdisasm::Nvdisasm;
use kernels_rs_estimate::ptxas::{Ptxas, Resources};
use kernels_rs_estimate::sass::{Listing, NaturalLoop};
use serde::Serialize;
use std::fmt;

/// NVIDIA tools found on this machine.
pub(super) struct Tools {
    pub(super) ptxas: Ptxas,
    pub(super) nvdisasm: Option<Nvdisasm>,
}

/// Result of assembling an instance with ptxas.
pub(super) struct MachineCode {
    pub(super) resources: Resources,
    /// Instructions and their cost; `None` if no nvdisasm is found.
    pub(super) code: Option<CodeCost>,
}

/// Instructions and their cost.
pub(super) struct CodeCost {
    pub(super) listing: Listing,
    pub(super) loops: Vec<NaturalLoop>,
}

impl Tools {
    /// Finds a ptxas that supports `target`, and an nvdisasm beside it.
    pub(super) fn find(target: Target) -> Option<Tools> {
        let ptxas = Ptxas::find().filter(|ptxas| ptxas.supports(target))?;
        Some(Tools { nvdisasm: Nvdisasm::find(&ptxas), ptxas })
    }

    /// Rejects missing tools.
    pub(super) fn required(tools: Option<&Tools>, target: Target) -> Result<&Tools, Error> {
        let tools = tools.ok_or_else(|| Error::NoTools { missing: format!("a ptxas that knows {target}") })?;
        match tools.nvdisasm {
            Some(_) => Ok(tools),
            None => Err(Error::NoTools { missing: "nvdisasm".to_string() }),
        }
    }

    /// Assembles and disassembles the PTX of `instance`.
    pub(super) fn assemble(&self, instance: &str, ptx: &str, target: Target) -> Result<MachineCode, Error> {
        let failed =
            |message| Error::Assembler { instance: instance.to_string(), ptxas: self.ptxas.to_string(), message };
        let Some(nvdisasm) = &self.nvdisasm else {
            return Ok(MachineCode { resources: self.ptxas.assemble(ptx, target).map_err(failed)?, code: None });
        };
        let (resources, listing) = nvdisasm.disassemble(&self.ptxas, ptx, target).map_err(failed)?;
        Ok(MachineCode { resources, code: Some(CodeCost { loops: listing.loops(), listing }) })
    }
}

impl CodeCost {
    /// Returns the number of instructions other than `NOP`, and the number of their issue slots.
    pub(super) fn size(&self) -> (u32, u32) {
        let all = 0..self.listing.instructions.len();
        (self.listing.issued(all.clone()).count() as u32, self.listing.slots(all))
    }

    /// Returns the cycles that the whole code loses to register bank conflicts, if known.
    pub(super) fn bank_conflicts(&self) -> Option<u32> {
        Some(self.listing.bank_conflicts()?.iter().map(|conflict| conflict.cycles).sum())
    }

    /// Returns the innermost loop that encloses the loop with index `inner`.
    pub(super) fn enclosing_loop(&self, inner: usize) -> Option<usize> {
        let NaturalLoop { head, depth, .. } = self.loops[inner];
        let holds = |l: &NaturalLoop| l.depth + 1 == depth && l.body.binary_search(&head).is_ok();
        self.loops.iter().position(holds)
    }
}

/// `66 instructions in 48 issue slots, 4 cycles lost to register banks`
#[derive(Clone, Copy, Serialize)]
pub(super) struct Issue {
    pub(super) instructions: u32,
    pub(super) slots: u32,
    pub(super) bank_conflicts: Option<u32>,
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", counted(self.instructions, "instruction"), counted(self.slots, "issue slot"))?;
        match self.bank_conflicts {
            None => Ok(()),
            Some(0) => f.write_str(", no register bank conflicts"),
            Some(n) => write!(f, ", {} lost to register banks", counted(n, "cycle")),
        }
    }
}

impl From<&NaturalLoop> for Issue {
    fn from(l: &NaturalLoop) -> Issue {
        Issue { instructions: l.instructions, slots: l.slots, bank_conflicts: l.bank_conflicts }
    }
}

impl From<&CodeCost> for Issue {
    fn from(code: &CodeCost) -> Issue {
        let (instructions, slots) = code.size();
        Issue { instructions, slots, bank_conflicts: code.bank_conflicts() }
    }
}
