//! Execution of a launch of a [`Program`].

use super::cooperative::WORKSPACE_BYTES;
use super::launch::{BufferArgument, Checks, Grid, Launch, Mismatch, Options, Outcome, ParameterValue};
use super::machine::{LaunchSetting, Machine};
use super::memory::{Buffer, Lookup, MAX_BUFFERS, base};
use super::program::Program;
use super::resident::END;
use super::service::Heap;
use super::texture::Objects;
use super::{ArgumentBytes, parallel};
use runtime_simt::GridShape;
use runtime_simt::report::Findings;
use std::sync::Arc;

/// The largest number of threads of a block, on every target.
const MAX_THREADS: u64 = 1024;

/// The bytes of the widest access. A GPU allocates shared memory in larger units, so compilers load
/// whole vectors that begin in the memory of the block. Only [`Checks::All`] reports the bytes past
/// the end.
const WIDEST_ACCESS: usize = 16;

/// The largest number of blocks that are resident at once.
const MAX_RESIDENT_BLOCKS: u64 = 1024;

impl Program {
    /// Runs a launch until it ends or reaches the limit of findings. The buffers hold what the
    /// kernel stored, even if there are findings.
    pub fn run(&self, launch: Launch<'_>) -> Result<Outcome, Mismatch> {
        let Launch { grid, block, dynamic_shared, buffers, parameters, options } = launch;
        let mut globals = self.initial_globals();
        let mut all = self.place(&mut globals, buffers);
        let parameters = self.bind(block, &all, &parameters)?;
        let grid = Grid { grid, block, dynamic_shared };
        if !self.code.allocates {
            return self.execute(grid, (all, Lookup::Number), (None, Arc::default()), parameters, options);
        }
        let mut memory = vec![0; Heap::DEFAULT_BYTES as usize];
        let bytes = ArgumentBytes::Exclusive(&mut memory);
        all.push(Buffer { base: base(all.len()), ..Buffer::new(0, "the heap".to_string(), true, bytes) });
        let mut heap = Heap::new(all[all.len() - 1].base, Heap::DEFAULT_BYTES);
        self.execute(grid, (all, Lookup::Number), (Some(&mut heap), Arc::default()), parameters, options)
    }

    /// Returns the initial contents of the module's variables.
    pub(super) fn initial_globals(&self) -> Vec<Vec<u8>> {
        self.globals.iter().map(|g| g.bytes.clone()).collect()
    }

    /// Places the module's variables and the launch's buffers in the space of global addresses.
    pub(super) fn place<'m>(&self, globals: &'m mut [Vec<u8>], buffers: Vec<BufferArgument<'m>>) -> Vec<Buffer<'m>> {
        let mut all: Vec<Buffer<'_>> = Vec::new();
        for (global, bytes) in self.globals.iter().zip(globals) {
            let name = global.name.clone();
            all.push(Buffer {
                name,
                base: base(all.len()),
                mutable: !global.constant,
                constant: global.constant,
                bytes: ArgumentBytes::Exclusive(bytes),
                approximate: false,
                touched: None,
                initialized: None,
                of_host: false,
            });
        }
        for BufferArgument { name, bytes } in buffers {
            let mutable = matches!(bytes, ArgumentBytes::Exclusive(_));
            all.push(Buffer::new(all.len(), name, mutable, bytes));
        }
        all
    }

    /// Returns the parts of a launch that are the same for all blocks.
    pub(super) fn setting(
        &self,
        Grid { grid, block, dynamic_shared }: Grid,
        lookup: Lookup,
        objects: Arc<Objects>,
        parameters: Vec<u8>,
    ) -> Result<LaunchSetting, Mismatch> {
        let shared = u64::from(self.dynamic) + u64::from(dynamic_shared);
        let Ok(shared) = u32::try_from(shared) else {
            return Err(Mismatch(vec![format!("{shared} bytes of shared memory exceed 32 bits")]));
        };
        let shared = shared.max(self.code.shared.bytes) as usize;
        let grid = GridShape { blocks: grid, threads: block };
        Ok(LaunchSetting { parameters, lookup, shared, grid, dynamic_shared, objects })
    }

    /// Runs a launch that was validated against the entry.
    pub(super) fn execute<'m>(
        &self,
        grid: Grid,
        (mut all, lookup): (Vec<Buffer<'m>>, Lookup),
        (heap, objects): (Option<&'m mut Heap>, Arc<Objects>),
        parameters: Vec<u8>,
        options: Options,
    ) -> Result<Outcome, Mismatch> {
        let mut setting = self.setting(grid, lookup, objects, parameters)?;
        if options.checks != Checks::All {
            setting.shared = setting.shared.next_multiple_of(WIDEST_ACCESS);
        }
        if options.cooperative {
            return self.execute_cooperative(&setting, (all, heap), options);
        }
        if let Some(statistics) = parallel::run(self, &setting, &mut all, options) {
            let report = Findings::new(self, options.limit, options.schedule).report();
            let (approximate, printed, asserted) = Default::default();
            return Ok(Outcome { statistics, report, points: 0, approximate, printed, asserted });
        }
        let mut machine = Machine::new(self, &setting, all, options);
        machine.heap = heap;
        machine.run(0..setting.grid.block_count());
        Ok(machine.outcome(self.globals.len()))
    }

    /// Runs a cooperative launch.
    fn execute_cooperative<'m>(
        &self,
        setting: &LaunchSetting,
        (all, heap): (Vec<Buffer<'m>>, Option<&'m mut Heap>),
        options: Options,
    ) -> Result<Outcome, Mismatch> {
        let blocks = setting.grid.block_count();
        if blocks > MAX_RESIDENT_BLOCKS {
            let why = format!("{blocks} blocks of a cooperative launch are more than {MAX_RESIDENT_BLOCKS}");
            return Err(Mismatch(vec![why]));
        }
        let given = all.len();
        // The workspace takes the end of the address space, beyond all buffers.
        let start = END - (1 << 36);
        let mut workspace = [0u64; WORKSPACE_BYTES / 8];
        workspace[0] = WORKSPACE_BYTES as u64;
        let bytes = ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut workspace));
        let name = "the grid's workspace".to_string();
        let mut all: Vec<Buffer<'_>> = all;
        all.push(Buffer { base: start, ..Buffer::new(0, name, true, bytes) });
        let mut machine = Machine::new(self, setting, all, options);
        machine.heap = heap;
        machine.workspace = start;
        machine.memory.lookup = Lookup::Search;
        machine.run(0..setting.grid.block_count());
        let report = machine.findings.report();
        let given = machine.memory.buffers[..given].iter().skip(self.globals.len());
        let approximate = given.enumerate().filter_map(|(i, buffer)| buffer.approximate.then_some(i)).collect();
        let (printed, asserted, points) = (machine.printed.take(), machine.asserted, machine.points.passed);
        Ok(Outcome { statistics: machine.statistics, report, points, approximate, printed, asserted })
    }

    /// Returns the reasons why blocks of this shape cannot run.
    pub(super) fn invalid_block_reasons(&self, block: [u32; 3]) -> Vec<String> {
        let mut wrong = Vec::new();
        let threads = block.iter().map(|n| u64::from(*n)).try_fold(1, u64::checked_mul).unwrap_or(u64::MAX);
        if threads == 0 || threads > MAX_THREADS {
            wrong.push(format!("invalid block size {block:?}: a block has 1 to {MAX_THREADS} threads"));
        }
        if let Some(required) = self.required_threads.filter(|r| *r != block) {
            wrong.push(format!("the entry requires blocks of {required:?} threads, and {block:?} are given"));
        }
        let most = self.max_threads.map(|m| m.iter().map(|n| u64::from(*n)).product::<u64>());
        if let Some(most) = most.filter(|most| threads > *most) {
            wrong.push(format!("the entry is for blocks of {most} threads at most, and {threads} are given"));
        }
        wrong
    }

    /// Checks that the launch fits the entry, and converts the values to the bytes of the
    /// parameters.
    pub(super) fn bind(
        &self,
        block: [u32; 3],
        buffers: &[Buffer<'_>],
        values: &[ParameterValue],
    ) -> Result<Vec<u8>, Mismatch> {
        let mut wrong = self.invalid_block_reasons(block);
        if buffers.len() > MAX_BUFFERS {
            wrong.push(format!("{} buffers exceed the limit of {MAX_BUFFERS}", buffers.len()));
        }
        if values.len() != self.parameters.len() {
            let (takes, given) = (self.parameters.len(), values.len());
            wrong.push(format!("`{}` takes {takes} parameters, and {given} are given", self.name));
            return Err(Mismatch(wrong));
        }
        let mut bytes = vec![0; self.code.parameters.bytes as usize];
        for ((variable, parameter), value) in self.code.parameters.variables.iter().zip(&self.parameters).zip(values) {
            let to = &mut bytes[variable.offset as usize..][..variable.bytes as usize];
            let size = to.len();
            let bits = match value {
                ParameterValue::Bits(bits) => *bits,
                ParameterValue::Bytes(from) if from.len() == size => {
                    to.copy_from_slice(from);
                    continue;
                }
                ParameterValue::Bytes(from) => {
                    wrong.push(format!(
                        "parameter `{}` has {size} bytes, and {} are given",
                        parameter.name,
                        from.len()
                    ));
                    continue;
                }
                ParameterValue::Address { buffer, offset } => match buffers.get(self.globals.len() + buffer) {
                    Some(buffer) => buffer.base.wrapping_add(*offset),
                    None => {
                        wrong.push(format!(
                            "parameter `{}` is the address of a buffer that is not given",
                            parameter.name
                        ));
                        continue;
                    }
                },
            };
            if size > 8 || size < 8 && bits >> (8 * size) != 0 {
                wrong.push(format!("parameter `{}` has {size} bytes, and {bits:#x} is given", parameter.name));
                continue;
            }
            to.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        if wrong.is_empty() { Ok(bytes) } else { Err(Mismatch(wrong)) }
    }
}
