//! The words of a module: the comment at its top and the Rust line above each group of instructions.

use super::Emitter;
use crate::ir::DynamicArray;

impl Emitter<'_> {
    /// Says what the module is, and sets its directives.
    pub(super) fn header(&mut self) {
        let kernel = self.kernel;
        self.builder.header(kernel.instance.as_str());
        self.builder.header(format!("block {}", kernel.block));
        if kernel.shared_bytes() > 0 {
            self.builder.header(format!("shared memory, {} bytes:", kernel.shared_bytes()));
            for array in &kernel.shared {
                self.builder.header(format!("  {array}"));
            }
        }
        if !kernel.dynamic.is_empty() {
            self.builder.header(format!("shared memory of the launch's size, from byte {}:", kernel.dynamic_offset()));
            for DynamicArray { name, element, .. } in &kernel.dynamic {
                self.builder.header(format!("  {name}: {element}"));
            }
        }
        self.builder.directives(kernel.block.most(), kernel.min_blocks, kernel.max_registers);
    }

    /// Writes the Rust line of the current instruction, if it is not the one that was written last: its offset in
    /// lines from the function's first, so that a kernel that moves within its file keeps its PTX.
    pub(super) fn comment_line(&mut self) {
        let Some(at) = self.location.and_then(|l| self.kernel.locations.get(l.0 as usize)) else { return };
        let line = (at.source, at.span.line);
        if self.commented == Some(line) {
            return;
        }
        self.commented = Some(line);
        let Some(source) = self.kernel.sources.get(at.source as usize) else { return };
        let heading = source.heading(u32::from(at.span.line), at.source != 0);
        self.builder.comment(heading);
    }
}
