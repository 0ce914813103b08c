//! The kernels of forms in the PTX interpreter.

use super::forms::{Kernel, SampleForm, THREADS, canonical, explanation};
use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Checks, Launch, Options, ParameterValue, Program};
use std::num::NonZeroUsize;

/// Runs a kernel in the interpreter and returns the words that the kernel writes.
pub fn interpret(kernel: &Kernel, input: &[[u64; 4]]) -> Vec<u64> {
    let text = kernel.text();
    let module = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = Program::decode(&module, "kernel").unwrap_or_else(|e| panic!("{e}"));
    let mut words = vec![0; kernel.words()];
    let launch = Launch {
        grid: [THREADS as u32 / 256, 1, 1],
        block: [256, 1, 1],
        dynamic_shared: 0,
        buffers: vec![
            BufferArgument { name: "in".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(input)) },
            BufferArgument {
                name: "out".into(),
                bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut words)),
            },
        ],
        parameters: vec![
            ParameterValue::Address { buffer: 0, offset: 0 },
            ParameterValue::Address { buffer: 1, offset: 0 },
        ],
        options: Options { checks: Checks::Values, threads: NonZeroUsize::new(1), ..Options::default() },
    };
    program.run(launch).unwrap_or_else(|e| panic!("{e}"));
    words
}

/// Returns a hash (FNV-1a) of the results of all forms that must agree with a card bit for bit,
/// each NaN as one.
pub fn hash(kernel: &Kernel, words: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let exact = |form: &SampleForm| !form.approximate && explanation(form).is_none();
    for (form, results) in kernel.forms.iter().zip(words.chunks(2 * THREADS)).filter(|(form, _)| exact(form)) {
        for pair in results.chunks(2) {
            for word in canonical(form, [pair[0], pair[1]]) {
                hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    hash
}
