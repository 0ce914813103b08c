//! Inline PTX, executed by the PTX interpreter's implementation of the same instructions.

use crate::check::Check;
use crate::code::frame::lanes_of;
use crate::code::{Inline, Pc};
use crate::machine::{ACCESSES, Machine, Warp};
use crate::report::Description;
use runtime_ptx::inline::InlineContext;

impl Machine<'_, '_> {
    /// Runs block `index` of the kernel on the lanes of `mask`; `count` is the number of
    /// instructions that the launch has run.
    pub fn inline<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, index: u32, count: u64) {
        let program = self.program;
        let Inline { block, inputs, results, checked, reads_machine } = &program.code.inlines[index as usize];
        if TIER >= ACCESSES && *checked && *reads_machine {
            self.report(Check::MachineDependent, site, warp.index, mask, |_, _| {
                Description::new("inline PTX reads a value that differs between machines and between runs")
            });
        }
        let mut registers = std::mem::take(&mut self.inline[index as usize]);
        for (_, from, to) in inputs {
            lanes_of(mask).for_each(|lane| registers.set(*to, lane, from.get(&warp.rows, lane)));
        }
        let shared = &program.memory;
        let context = InlineContext {
            warp: warp.index,
            block: self.block,
            threads: self.setting.grid.threads,
            blocks: self.setting.grid.blocks,
            dynamic_shared: self.setting.shared_bytes.saturating_sub(shared.fixed),
            total_shared: self.setting.shared_bytes,
        };
        // Clock values increase from instruction to instruction if a block has fewer than 2¹⁶ of
        // them.
        let time = count << 16;
        block.run(&mut registers, mask, &context, time, |undefined| {
            if TIER >= ACCESSES && *checked {
                let check = if undefined.division { Check::DivisionByZero } else { Check::UndefinedValue };
                self.report(check, site, warp.index, undefined.lanes, |_, _| {
                    Description::new(format!("`{}` has no defined result: {}", undefined.text, undefined.reason))
                });
            }
        });
        for (_, to, from) in results {
            lanes_of(mask).for_each(|lane| to.set(&mut warp.rows, lane, registers.get(*from, lane)));
        }
        self.inline[index as usize] = registers;
    }
}
