//! `log!`: lines that threads print.

use crate::code::Log;
use crate::code::frame::{FrameRegister, Row, lanes_of};
use crate::machine::{Machine, Warp};
use kernel_dsl_compiler::Scalar;
use runtime_ptx::printf::{Arguments, format};

/// The values of one thread.
struct ThreadValues<'a> {
    rest: std::slice::Iter<'a, (FrameRegister, Scalar)>,
    rows: &'a [Row],
    lane: usize,
}

impl Arguments for ThreadValues<'_> {
    fn next(&mut self, _: u64) -> Option<u64> {
        let (from, ty) = self.rest.next()?;
        let bits = from.get(self.rows, self.lane);
        // `bits + 1` is the address of a `bool`'s text: an address of 0 would be null.
        Some(if *ty == Scalar::Bool { bits + 1 } else { bits })
    }

    fn text(&mut self, address: u64) -> Option<Vec<u8>> {
        Some((address != 1).to_string().into())
    }
}

impl Log {
    /// Returns the text of lane `lane`, with its line break.
    pub fn text(&self, warp: &Warp, lane: usize) -> Vec<u8> {
        let mut values = ThreadValues { rest: self.values.iter(), rows: &warp.rows, lane };
        format(self.format.as_bytes(), &mut values).map(|(text, _)| text).unwrap_or_default()
    }
}

impl Machine<'_, '_> {
    /// Prints the line of each lane of `mask`.
    pub fn log(&mut self, warp: &Warp, mask: u32, log: &Log) {
        for lane in lanes_of(mask) {
            self.printed.add(log.text(warp, lane));
        }
    }
}
