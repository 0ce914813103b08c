//! Runs of an instance's PTX on the PTX interpreter, with the arguments of a launch.

use kernel_dsl::Argument;
use kernel_dsl::compiler::ir::SharedMemoryNeed;
use kernel_dsl::compiler::ptx::parse::parse;
use runtime_devices::executor;
use runtime_devices::executor::ValidatedArgs;
use runtime_devices::{Error, Result};
use runtime_ptx::observe::InstructionObserver;
use runtime_ptx::{self as ptx, Launch, Options, ParameterValue};

/// The PTX of an instance, decoded for the interpreter.
pub struct DecodedPtx {
    instance: String,
    program: ptx::Program,
    shared: SharedMemoryNeed,
}

impl DecodedPtx {
    /// Decodes the only entry of `text`, which is the PTX of the instance. `shared` describes the
    /// shared memory of launches.
    ///
    /// # Errors
    /// If the PTX interpreter rejects the text.
    pub fn new(instance: String, text: &str, shared: SharedMemoryNeed) -> Result<DecodedPtx> {
        let program = parse(text).map_err(ptx::RunFailure::Syntax).and_then(|module| {
            let entry = module.entries().next().map_or("", |entry| entry.name.as_str());
            ptx::Program::decode(&module, entry).map_err(ptx::RunFailure::Unsupported)
        });
        match program {
            Ok(program) => Ok(DecodedPtx { instance, program, shared }),
            Err(source) => Err(Error::Ptx { instance, source: source.into() }),
        }
    }

    /// Returns the shared memory of launches.
    pub fn shared(&self) -> &SharedMemoryNeed {
        &self.shared
    }

    /// Runs the PTX on arguments in host memory. `names` are the names of the kernel's parameters.
    /// Returns the text that the kernel printed.
    ///
    /// # Errors
    /// If the interpreter reports a violation.
    pub fn run(&self, validated: &ValidatedArgs, names: &[String], options: Options) -> Result<Vec<u8>> {
        if validated.shape().is_empty() {
            return Ok(Vec::new());
        }
        self.launch(validated, names, options, |program, launch| program.run(launch))
    }

    /// Runs some blocks of the PTX, without checks, and passes every instruction to the observer.
    /// `blocks` are linear indices; x varies fastest.
    pub fn observe(
        &self,
        validated: &ValidatedArgs,
        options: Options,
        blocks: impl Iterator<Item = u64>,
        observer: &mut dyn InstructionObserver,
    ) -> Result<()> {
        self.launch(validated, &[], options, |program, launch| program.observe(launch, blocks, observer)).map(drop)
    }

    fn launch(
        &self,
        validated: &ValidatedArgs,
        names: &[String],
        options: Options,
        run: impl FnOnce(&ptx::Program, Launch<'_>) -> std::result::Result<ptx::Outcome, ptx::Mismatch>,
    ) -> Result<Vec<u8>> {
        let (mut buffers, mut parameters) = (Vec::new(), Vec::new());
        for (index, argument) in validated.arguments().iter().enumerate() {
            match argument {
                Argument::Scalar { bits, .. } => parameters.push(ParameterValue::Bits(*bits)),
                Argument::Memory(memory) => {
                    parameters.push(ParameterValue::Address { buffer: buffers.len(), offset: 0 });
                    parameters.extend(memory.shape().numbers().map(ParameterValue::Bits));
                    let name = names.get(index).cloned().unwrap_or_default();
                    buffers.push(ptx::BufferArgument { name, bytes: executor::bytes(memory, validated.writes(index)) });
                }
            }
        }
        let shape = validated.shape();
        let dynamic_shared = validated.shared_bytes(&self.instance, &self.shared)?;
        let options = Options { cooperative: options.cooperative || validated.is_cooperative(), ..options };
        let launch = Launch { grid: shape.grid, block: shape.block, dynamic_shared, buffers, parameters, options };
        let failed = |source: ptx::RunFailure| Error::Ptx { instance: self.instance.clone(), source: Box::new(source) };
        let outcome = run(&self.program, launch).map_err(|mismatch| failed(mismatch.into()))?;
        let printed = outcome.printed.clone();
        outcome.result().map(|_| printed).map_err(|report| failed(report.into()))
    }
}
