//! Reports of the checked form: the first lane to report writes to the launch's record, from which
//! the host makes a finding.

use crate::check;
use crate::code;
use crate::code::frame::{LANES, LaneWord};
use crate::machine::arithmetic::{describe_nonpositive_step, overflow};
use crate::machine::describe::{ARRAY_IN_ELEMENT, beyond, failure};
use crate::machine::memory::argument_at;
use crate::machine::{Machine, Warp};
use crate::program::place;
use crate::report::{Finding, Object, Report, Space, Thread};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::record::{BLOCK, MAX_VALUES, STATE, THREAD, VALUES, WORDS};
use kernel_dsl_compiler::lower::checked::{CheckSite, CheckedKernel, ReportedCheck};
use runtime_simt::ArgumentBytes;
use runtime_simt::Schedule;
use runtime_simt::number::value;

/// Returns the oracle's report for the record of a launch of `form`, with its first finding.
/// Returns `None` if nothing was reported.
pub fn reported(form: &CheckedKernel, record: &[u32; WORDS]) -> Option<Report> {
    let kernel = &form.kernel;
    let CheckSite { location, check } = form.sites.get(record[STATE].checked_sub(1)? as usize)?;
    let values: [u64; MAX_VALUES] = std::array::from_fn(|i| record[VALUES + i].into());
    let pairs =
        |dims: usize| -> (Vec<u64>, Vec<u64>) { values.chunks(2).take(dims).map(|pair| (pair[0], pair[1])).unzip() };
    let access = |name: String, space, dims: usize, elements: u32| {
        let (index, extents) = pairs(dims);
        let message = beyond(&format!("`{name}`"), &index, &extents, elements.into());
        (check::Check::OutOfBounds, message, Some(Object { name, space, index, extents, element: None }))
    };
    let (check, message, object) = match check {
        ReportedCheck::Global { argument, rank, elements } => {
            let parameter = argument.and_then(|a| kernel.parameters.iter().find(|p| p.argument == a));
            let name = parameter.map_or_else(|| "a buffer".to_string(), |p| p.name.clone());
            access(name, Space::Buffer, *rank as usize, *elements)
        }
        ReportedCheck::Shared { array, elements } => {
            let array = kernel.shared.get(array.0 as usize)?;
            access(array.name.clone(), Space::Shared, array.shape.len(), *elements)
        }
        ReportedCheck::Dynamic { array, rank, elements } => {
            let array = array.and_then(|a| kernel.dynamic.get(a.0 as usize));
            let name = array.map_or_else(|| "shared memory".to_string(), |a| a.name.clone());
            access(name, Space::Shared, *rank as usize, *elements)
        }
        ReportedCheck::Local { array } => access(kernel.locals.get(array.0 as usize)?.name.clone(), Space::Local, 1, 1),
        ReportedCheck::Within { table, rank, elements } => {
            let (index, extents) = pairs(*rank as usize);
            let table = table.and_then(|t| kernel.table(t));
            let of = table.map_or_else(|| ARRAY_IN_ELEMENT.to_string(), |t| format!("`{}`", t.name));
            (check::Check::OutOfBounds, beyond(&of, &index, &extents, (*elements).into()), None)
        }
        ReportedCheck::Step(ty) => {
            // A step is a `usize` in Rust, which is never negative.
            let step = if ty.bits() == 32 { value(*ty, values[0]) } else { "0".to_string() };
            (check::Check::LoopStep, describe_nonpositive_step(&step), None)
        }
        ReportedCheck::Assertion { message, types } => {
            let mut words = values[..].iter().copied();
            let shown = types.iter().map(|ty| {
                let low = words.next()?;
                let high = if ty.bits() == 64 { words.next()? } else { 0 };
                Some((*ty, high << 32 | low))
            });
            let shown: Vec<_> = shown.collect();
            (check::Check::Assertion, failure(message, |i| shown.get(i).copied().flatten()), None)
        }
        ReportedCheck::Overflow(op) => {
            (check::Check::UsizeOverflow, overflow(*op, Scalar::Usize, values[0], values[1]), None)
        }
    };
    let axes = |first: usize| [0, 1, 2].map(|axis| record[first + axis]);
    let (block, thread) = (axes(BLOCK), axes(THREAD));
    let [x, y, _] = kernel.block.max_extents();
    let linear = thread[0] + x * (thread[1] + y * thread[2]);
    let place = place(&kernel.instance, &kernel.sources, &kernel.locations, Some(*location));
    let thread = Thread { block, thread, warp: linear / 32, lane: linear % 32 };
    let finding = Finding { object, ..Finding::new(check, check.severity(kernel.target), message, place, thread) };
    let (kernel, sources) = (kernel.instance.clone(), kernel.sources.clone());
    Some(Report {
        kernel,
        findings: vec![finding],
        allowed: Vec::new(),
        truncated: false,
        schedule: Schedule::InOrder,
        sources,
    })
}

impl Machine<'_, '_> {
    /// Writes `report` for the lane of `mask` whose check comes first in the program, if the record
    /// is empty. An address outside any record is ignored.
    #[cold]
    pub fn record_violation(&mut self, warp: &Warp, mask: u32, report: &code::ViolationReport) {
        let states = u32::lanes(&warp.rows, report.state as usize);
        let failed = (0..LANES).filter(|lane| mask >> lane & 1 == 1);
        let Some(lane) = failed.min_by_key(|lane| states[*lane]) else { return };
        let at = |row: u32| u32::lanes(&warp.rows, row as usize)[lane];
        let thread = self.thread(warp.index, lane);
        let mut words = [0; WORDS];
        words[STATE] = at(report.state);
        words[BLOCK..][..3].copy_from_slice(&thread.block);
        words[THREAD..][..3].copy_from_slice(&thread.thread);
        for (word, row) in words[VALUES..].iter_mut().zip(&report.values) {
            *word = at(*row);
        }
        let address = u64::lanes(&warp.rows, report.record as usize)[lane];
        let buffer = argument_at(address).and_then(|a| self.setting.by_argument.get(a as usize).copied().flatten());
        let Some(buffer) = buffer.map(|b| &mut self.buffers[b]).filter(|b| b.base == address) else { return };
        let ArgumentBytes::Exclusive(bytes) = &mut buffer.bytes else { return };
        let Some(bytes) = bytes.get_mut(..4 * WORDS) else { return };
        if bytes[4 * STATE..][..4] == [0; 4] {
            let words = words.iter().flat_map(|w| w.to_le_bytes());
            bytes.iter_mut().zip(words).for_each(|(byte, new)| *byte = new);
        }
    }
}
