//! Launches of PTX text.

use super::gpu::Gpu;
use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{
    BranchPolicy, BufferArgument, Check, Launch, Options, Outcome, ParameterValue, Program, Unsupported,
};
use std::cell::Cell;

/// Both reconvergence policies.
pub const POLICIES: [BranchPolicy; 2] = [BranchPolicy::PostDominator, BranchPolicy::LowestFirst];

/// Returns a module with the entry `kernel`, which has a buffer `out` for results. The arguments
/// are declarations at module scope, and the body.
pub fn module(globals: &str, body: &str) -> String {
    module_for("6.4", "sm_61", globals, body)
}

/// Returns a module for another target, in a PTX version that supports it.
pub fn module_for(version: &str, target: &str, globals: &str, body: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n{globals}\n\
         .visible .entry kernel(.param .u64 out, .param .u64 in)\n{{\n\
         .reg .pred %p<10>;\n.reg .b16 %h<20>;\n.reg .b32 %r<40>;\n.reg .b64 %d<40>;\n.reg .f32 %f<20>;\n.reg .f64 %g<20>;\n\
         ld.param.u64 %d0, [out];\ncvta.to.global.u64 %d0, %d0;\nld.param.u64 %d1, [in];\ncvta.to.global.u64 %d1, %d1;\n\
         mov.u32 %r0, %tid.x;\nmad.wide.u32 %d2, %r0, 8, %d0;\n\
         {body}\n}}\n"
    )
}

/// Decodes the entry `kernel` of a valid text.
pub fn program(text: &str) -> Program {
    decode(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Decodes the entry `kernel` of a text that parses.
pub fn decode(text: &str) -> Result<Program, Unsupported> {
    let module = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Program::decode(&module, "kernel")
}

thread_local! {
    /// The GPU on which this thread repeats the interpreter's runs, if any.
    static CARD: Cell<Option<Gpu>> = const { Cell::new(None) };
}

/// Runs tests whose launches are repeated on the first GPU.
pub fn on_a_card(tests: &[fn()]) {
    let gpu = Gpu::open().unwrap();
    gpu.enter().unwrap();
    CARD.set(Some(gpu));
    tests.iter().for_each(|test| test());
    CARD.set(None);
}

/// The launch configuration of a [`module`].
pub struct Run {
    pub blocks: u32,
    pub threads: u32,
    pub dynamic_shared: u32,
    pub options: Options,
}

impl Default for Run {
    fn default() -> Run {
        Run { blocks: 1, threads: 32, dynamic_shared: 0, options: Options::default() }
    }
}

impl Run {
    pub fn policy(policy: BranchPolicy) -> Run {
        Run { options: Options { policy, ..Options::default() }, ..Run::default() }
    }

    /// Runs a text; `out` is initially all ones. A run without findings must give the same words
    /// on the card of [`on_a_card`], if there is one.
    pub fn of(&self, text: &str, out: usize, input: &[u64]) -> (Outcome, Vec<u64>) {
        let (outcome, words) = self.launch(&program(text), out, input);
        if let Some(gpu) = CARD.get()
            && outcome.report.findings.is_empty()
        {
            assert_eq!(self.of_card(gpu, text, out, input), words, "the card differs\n{text}");
        }
        (outcome, words)
    }

    /// Runs a text on a GPU; `out` is initially all ones.
    fn of_card(&self, gpu: Gpu, text: &str, out: usize, input: &[u64]) -> Vec<u64> {
        assert_eq!(self.dynamic_shared, 0, "a launch on a card has no dynamic shared memory");
        let loaded = gpu.load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut words = vec![u64::MAX; out];
        // The driver allocates no empty buffer.
        let [mut to, mut from] = [out, input.len()].map(|n| gpu.allocate(8 * n.max(1)).unwrap());
        to.write(&words).unwrap();
        from.write(input).unwrap();
        let parameters = [to.address(), from.address()];
        // SAFETY: the entry of a module takes both addresses. The interpreter has run it on these
        // inputs without an access out of bounds.
        unsafe { loaded.run([self.blocks, self.threads], &parameters).unwrap_or_else(|e| panic!("{e}\n{text}")) };
        to.read(&mut words).unwrap();
        words
    }

    /// Runs a decoded program.
    pub fn launch(&self, program: &Program, out: usize, input: &[u64]) -> (Outcome, Vec<u64>) {
        let mut words = vec![u64::MAX; out];
        let outcome = program.run(self.arguments(&mut words, input)).unwrap_or_else(|e| panic!("{e}"));
        (outcome, words)
    }

    /// Returns the launch of a program with these words as `out` and `in`.
    pub fn arguments<'m>(&self, out: &'m mut [u64], input: &'m [u64]) -> Launch<'m> {
        Launch {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            dynamic_shared: self.dynamic_shared,
            buffers: vec![
                BufferArgument { name: "out".into(), bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(out)) },
                BufferArgument { name: "in".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(input)) },
            ],
            parameters: vec![
                ParameterValue::Address { buffer: 0, offset: 0 },
                ParameterValue::Address { buffer: 1, offset: 0 },
            ],
            options: self.options,
        }
    }

    /// Runs a text that must have no findings, and returns `out`.
    pub fn good(&self, text: &str, out: usize, input: &[u64]) -> Vec<u64> {
        let (outcome, words) = self.of(text, out, input);
        assert!(outcome.report.findings.is_empty(), "{}\n{text}", outcome.report);
        words
    }
}

/// Runs `body` on one warp under both policies, and returns `out`: a 64-bit word per thread.
pub fn lanes(globals: &str, body: &str) -> Vec<u64> {
    let text = module(globals, body);
    let [a, b] = POLICIES.map(|policy| Run::policy(policy).good(&text, 32, &[]));
    assert_eq!(a, b, "the policies differ\n{text}");
    a
}

/// Runs `body` under both policies, and returns the violated checks with the first message of each.
pub fn found(globals: &str, body: &str) -> Vec<(Check, String)> {
    let text = module(globals, body);
    let [a, b] = POLICIES.map(|policy| {
        let (outcome, _) = Run::policy(policy).of(&text, 32, &[1; 32]);
        outcome.report.findings.into_iter().map(|f| (f.check, f.message)).collect::<Vec<_>>()
    });
    assert_eq!(a, b, "the policies differ\n{text}");
    a
}
