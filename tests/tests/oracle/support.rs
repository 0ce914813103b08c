//! Support for tests: runs a kernel under the oracle.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::driver;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ir;
use runtime::interpreter::{ArgumentBytes, Binding, Check, Launch, Options, Program, Report};

/// Memory with the alignment of device memory.
#[repr(align(256))]
pub struct AlignedMemory(pub [u8; 256]);

impl AlignedMemory {
    pub fn new(values: impl Fn(usize) -> f32) -> AlignedMemory {
        let mut bytes = [0; 256];
        for (i, to) in bytes.chunks_exact_mut(4).enumerate() {
            to.copy_from_slice(&values(i).to_le_bytes());
        }
        AlignedMemory(bytes)
    }

    pub fn values(&self) -> Vec<f32> {
        self.0.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }
}

/// Lowers a kernel without generic parameters.
pub fn lowered(artifact: &Artifact) -> ir::Kernel {
    lowered_instance(artifact, &Instance::default())
}

/// Lowers an instance of a kernel.
pub fn lowered_instance(artifact: &Artifact, instance: &Instance) -> ir::Kernel {
    let program = artifact.program().unwrap();
    driver::lowered(&program, instance, artifact.target).unwrap().into()
}

/// Runs a kernel of `(x: &[f32], y: &mut [f32])` on 64 elements each.
pub fn run_on(artifact: &Artifact, blocks: u32, x: &AlignedMemory, options: Options) -> (Report, Vec<f32>) {
    let program = Program::decode(&lowered(artifact)).unwrap();
    let mut y = AlignedMemory::new(|_| 0.0);
    let arguments = vec![
        Binding::Memory { bytes: ArgumentBytes::Shared(&x.0), extents: vec![64], strides: vec![] },
        Binding::Memory { bytes: ArgumentBytes::Exclusive(&mut y.0), extents: vec![64], strides: vec![] },
    ];
    let outcome = program.run(Launch { grid: [blocks, 1, 1], block: None, arguments, options }).unwrap();
    (outcome.report, y.values())
}

/// Runs a kernel of `(x: &[f32], y: &mut [f32])` with x[i] = i.
pub fn run(artifact: &Artifact, blocks: u32) -> (Report, Vec<f32>) {
    run_on(artifact, blocks, &AlignedMemory::new(|i| i as f32), Options::default())
}

pub fn checks(report: &Report) -> Vec<Check> {
    report.findings.iter().map(|f| f.check).collect()
}
