//! The start of a module: a comment that identifies the kernel, and directives.

use super::Emitter;
use crate::ir::DynamicArray;

impl Emitter<'_> {
    /// Writes the comment that identifies the kernel, and sets the entry's directives.
    pub(super) fn header(&mut self) {
        let kernel = self.kernel;
        self.builder.header(kernel.rust_name.as_str());
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
        self.builder.directives(kernel.block.max_extents(), kernel.min_blocks, kernel.max_registers);
    }
}
