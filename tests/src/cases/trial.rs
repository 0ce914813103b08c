//! Cases of a kernel: inputs, and expected outputs.

use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::{Element, GenericArgument};
use runtime::testing::{Case, Expected, Input};

/// Arguments, with the expected contents of those that are written.
pub(super) struct Trial {
    name: String,
    inputs: Vec<Input>,
    expected: Vec<Expected>,
    block: Option<usize>,
    free: Vec<usize>,
}

impl Trial {
    pub(super) fn new(
        name: impl Into<String>,
        inputs: impl Into<Vec<Input>>,
        expected: impl Into<Vec<Expected>>,
    ) -> Trial {
        Trial { name: name.into(), inputs: inputs.into(), expected: expected.into(), block: None, free: Vec::new() }
    }

    /// Lets the contents of an argument depend on the order of atomic operations.
    pub(super) fn with_free(mut self, argument: usize) -> Trial {
        self.free.push(argument);
        self
    }

    /// Sets the number of threads of a block, where the launch decides it.
    pub(super) fn with_block(self, threads: usize) -> Trial {
        Trial { block: Some(threads), ..self }
    }
}

/// Registers the cases of a kernel, given by a function of the instance.
macro_rules! trials {
    ($kernel:ty, $trials:expr) => {
        const _: () = {
            const TRIALS: fn(&kernel_dsl::compiler::hir::Instance) -> Vec<$crate::cases::trial::Trial> = $trials;
            runtime::register!(
                $kernel,
                |instance, _| $crate::cases::trial::cases(TRIALS(instance)),
                |instance, inputs| $crate::cases::trial::expected(TRIALS(instance), inputs)
            );
        };
    };
}
pub(super) use trials;

pub(super) fn cases(trials: Vec<Trial>) -> Vec<Case> {
    let case = |trial: Trial| {
        let case = Case::new(trial.name, trial.inputs);
        let case = trial.free.into_iter().fold(case, Case::with_order_dependent);
        match trial.block {
            Some(threads) => case.with_block(threads),
            None => case,
        }
    };
    trials.into_iter().map(case).collect()
}

/// Returns the expected outputs of the case with these inputs.
pub(super) fn expected(trials: Vec<Trial>, inputs: &[Input]) -> Vec<Expected> {
    let of_these = trials.into_iter().find(|trial| trial.inputs == inputs);
    of_these.expect("the inputs are those of a case").expected
}

/// Returns whether `T` is the instance's parameter `n`.
pub(super) fn is<T: GenericArgument>(instance: &Instance, n: usize) -> bool {
    instance.0[n] == T::CONSTANT
}

/// Returns the instance's parameter `n`, a number.
pub(super) fn number(instance: &Instance, n: usize) -> usize {
    match instance.0[n] {
        Constant::Usize(value) => value as usize,
        ref other => panic!("parameter {n} is {other}"),
    }
}

/// Returns the instance's parameter `n`, a Boolean.
pub(super) fn truth(instance: &Instance, n: usize) -> bool {
    instance.0[n] == Constant::Bool(true)
}

/// Returns small integers, the same ones each time.
pub(super) fn whole(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 17) as f32 - 8.0
    };
    (0..n).map(|_| next()).collect()
}

/// Returns a matrix whose rows have a gap of `gap` elements, filled with `between`.
pub(super) fn apart<T: Element>(values: &[T], [rows, cols]: [usize; 2], gap: usize, between: T) -> Input {
    let row = |r: usize| values[r * cols..(r + 1) * cols].iter().copied().chain(std::iter::repeat_n(between, gap));
    Input::strided(&(0..rows).flat_map(row).collect::<Vec<T>>(), [rows, cols], [cols + gap, 1])
}

pub(super) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}
