//! Kernels of other compilers, launched on buffers of plain data: under both policies, and without
//! checks.

use super::kit::POLICIES;
use bytemuck::Pod;
use kernel_dsl::compiler::ptx::{Module, parse};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Checks, Launch, Options, ParameterValue, Program};

/// A kernel and its launch configuration.
pub struct Kernel {
    program: Program,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    arguments: Vec<Given>,
}

/// The value of a parameter.
#[derive(Clone)]
enum Given {
    Bits(u64),
    Structure(Vec<u8>),
    Read(Vec<u8>),
    Written(Vec<u8>),
}

/// The written buffers, in the order of their parameters.
pub struct Results(Vec<Vec<u8>>);

impl Results {
    pub fn get<T: Pod>(&self, index: usize) -> Vec<T> {
        self.0[index].chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }
}

pub fn module(text: &str) -> Module {
    parse(text).unwrap_or_else(|e| panic!("{e}"))
}

impl Kernel {
    /// Selects a kernel of a module, with `grid` blocks of `block` threads.
    pub fn of(module: &Module, name: &str, grid: u32, block: u32) -> Kernel {
        let program = Program::decode(module, name).unwrap_or_else(|e| panic!("{e}"));
        Kernel { program, grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, arguments: Vec::new() }
    }

    pub fn shape(self, grid: [u32; 3], block: [u32; 3]) -> Kernel {
        Kernel { grid, block, ..self }
    }

    pub fn shared(self, bytes: u32) -> Kernel {
        Kernel { shared: bytes, ..self }
    }

    pub fn bits(mut self, bits: u64) -> Kernel {
        self.arguments.push(Given::Bits(bits));
        self
    }

    pub fn float(self, x: f32) -> Kernel {
        self.bits(x.to_bits().into())
    }

    pub fn structure(mut self, bytes: &[u8]) -> Kernel {
        self.arguments.push(Given::Structure(bytes.to_vec()));
        self
    }

    pub fn read<T: Pod>(mut self, data: &[T]) -> Kernel {
        self.arguments.push(Given::Read(bytemuck::cast_slice(data).to_vec()));
        self
    }

    pub fn written<T: Pod>(mut self, data: &[T]) -> Kernel {
        self.arguments.push(Given::Written(bytemuck::cast_slice(data).to_vec()));
        self
    }

    /// Runs the kernel under each policy and without checks. The reports must be empty, and the
    /// results equal.
    pub fn run(self) -> Results {
        let ways = [(POLICIES[0], Checks::All), (POLICIES[1], Checks::All), (POLICIES[0], Checks::Values)];
        let [a, b, c] = ways.map(|(policy, checks)| {
            let mut arguments = self.arguments.clone();
            let (mut buffers, mut parameters) = (Vec::new(), Vec::new());
            for given in &mut arguments {
                let bytes = match given {
                    Given::Bits(bits) => {
                        parameters.push(ParameterValue::Bits(*bits));
                        continue;
                    }
                    Given::Structure(bytes) => {
                        parameters.push(ParameterValue::Bytes(bytes.clone()));
                        continue;
                    }
                    Given::Read(bytes) => ArgumentBytes::Shared(bytes),
                    Given::Written(bytes) => ArgumentBytes::Exclusive(bytes),
                };
                parameters.push(ParameterValue::Address { buffer: buffers.len(), offset: 0 });
                buffers.push(BufferArgument { name: format!("argument {}", parameters.len() - 1), bytes });
            }
            let options = Options { policy, checks, ..Options::default() };
            let launch = Launch {
                grid: self.grid,
                block: self.block,
                dynamic_shared: self.shared,
                buffers,
                parameters,
                options,
            };
            let outcome = self.program.run(launch).unwrap_or_else(|e| panic!("{e}"));
            // The math library branches on approximate values intentionally.
            assert!(outcome.report.verdict() == runtime::ptx::Verdict::Pass, "{}", outcome.report);
            let written = |given| if let Given::Written(bytes) = given { Some(bytes) } else { None };
            arguments.into_iter().filter_map(written).collect::<Vec<_>>()
        });
        assert_eq!(a, b, "the policies differ");
        assert_eq!(a, c, "checks change values");
        Results(a)
    }
}

/// Returns a repeatable sequence of numbers.
pub fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    })
}

/// Returns singles in [−1, 1).
pub fn singles(seed: u64, n: usize) -> Vec<f32> {
    numbers(seed).take(n).map(|x| (x >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Asserts that numbers are close: `bound` is a relative error, and an absolute one for small
/// numbers.
#[track_caller]
pub fn near(ours: impl IntoIterator<Item = f64>, theirs: impl IntoIterator<Item = f64>, bound: f64) {
    for (i, (a, b)) in ours.into_iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= bound * b.abs().max(1.0), "{i}: {a} is not {b}");
    }
}
