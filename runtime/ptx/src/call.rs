//! Calls with a stack: the running functions of a warp, and how arguments and results are passed.
//!
//! A call saves the registers of the called routine and starts a control flow for the calling
//! lanes. That flow ends when each of these lanes has returned or ended. Then the results are
//! passed, the registers are restored, and the caller's flow continues. Lanes that do not call wait
//! meanwhile.

use super::code::{Code, Inst, ParameterLocation, PassLocation, Pc, Routine, RoutineCall, Window};
use super::flow::WarpFlow;
use super::machine::Machine;
use super::registers::{LANES, RegisterPlace, SavedRegister, UndefinedCause, lanes};
use super::warp::Warp;
use super::{Check, Finding};
use smallvec::SmallVec;

/// A call in progress.
pub struct Activation {
    /// The control flow of the caller.
    flow: WarpFlow,
    /// The call instruction.
    call: Pc,
    /// The calling lanes.
    mask: u32,
    /// The calling lanes that have ended.
    ended: u32,
    /// The caller's registers that the routine uses.
    saved: Vec<SavedRegister>,
    /// For each lane, the caller's frame and the end of the stack.
    stack: [(u64, u64); LANES],
    /// The bytes that the frames of all calls in progress have in machine code at least.
    least_bytes: u64,
}

/// The value of an argument or result.
struct PassedValue {
    bytes: SmallVec<[u8; 16]>,
    /// For each byte, 1 if it was stored.
    written: SmallVec<[u8; 16]>,
    cause: UndefinedCause,
    /// The approximation that the value depends on, as the index of its site.
    approximation: Option<u32>,
}

/// The least size of a frame in bytes, which bounds the number of calls in progress.
const MIN_FRAME: u64 = 16;

impl Warp {
    /// Returns the lanes that have not ended, including those outside the running routine.
    pub fn live(&self) -> u32 {
        let ended = self.calls.iter().fold(0, |all, call| all | call.ended);
        self.calls.first().map_or(self.flow.live, |outermost| outermost.flow.live & !ended)
    }

    /// Ends lanes of the running routine; they do not run again.
    pub fn end_lanes(&mut self, code: &Code, lanes: u32) {
        if let Some(call) = self.calls.last_mut() {
            call.ended |= lanes;
        }
        self.flow.end(&code.structure, lanes);
    }

    fn stack(&self, code: &Code, lane: usize) -> (u64, u64) {
        let get = |place| self.registers.get(place, lane);
        code.stack.map_or((0, 0), |stack| (get(stack.frame), get(stack.end)))
    }

    fn set_stack(&mut self, code: &Code, lane: usize, (frame, end): (u64, u64)) {
        if let Some(stack) = code.stack {
            self.registers.set(stack.frame, lane, frame);
            self.registers.set(stack.end, lane, end);
        }
    }

    /// Returns a range of a lane's local memory as a range of the warp's local memory.
    fn local_range(&self, lane: usize, offset: u64, bytes: u32) -> std::ops::Range<usize> {
        let start = lane * self.local_bytes() + offset as usize;
        start..start + bytes as usize
    }

    fn read_local(&self, lane: usize, offset: u64, bytes: u32) -> PassedValue {
        let range = self.local_range(lane, offset, bytes);
        PassedValue {
            bytes: self.local.bytes.get(range.clone()).unwrap_or_default().into(),
            written: self.local.written.get(range).unwrap_or_default().into(),
            cause: UndefinedCause::Unwritten,
            approximation: None,
        }
    }

    fn write_local(&mut self, lane: usize, offset: u64, bytes: u32, value: &PassedValue) {
        let range = self.local_range(lane, offset, bytes.min(value.bytes.len() as u32));
        for (to, from) in [(&mut self.local.bytes, &value.bytes), (&mut self.local.written, &value.written)] {
            if let Some(to) = to.get_mut(range.clone()) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
    }

    fn read_register(&self, place: RegisterPlace, id: u32, bits: u32, lane: usize) -> PassedValue {
        let bytes = &self.registers.get(place, lane).to_le_bytes()[..bits.div_ceil(8) as usize];
        let (bit, id) = (1 << lane, id as usize);
        let is_defined = self.registers.defined[id] & bit != 0;
        PassedValue {
            bytes: bytes.into(),
            written: SmallVec::from_elem(u8::from(is_defined), bytes.len()),
            cause: self.registers.causes[id],
            approximation: (self.registers.approximate[id] & bit != 0).then(|| self.registers.approximations[id]),
        }
    }

    fn write_register(&mut self, place: RegisterPlace, id: u32, lane: usize, value: &PassedValue) {
        let mut bits = [0; 8];
        let length = value.bytes.len().min(8);
        bits[..length].copy_from_slice(&value.bytes[..length]);
        self.registers.set(place, lane, u64::from_le_bytes(bits));
        let (bit, id) = (1 << lane, id as usize);
        let registers = &mut self.registers;
        registers.defined[id] &= !bit;
        registers.approximate[id] &= !bit;
        if value.written.contains(&0) {
            registers.causes[id] = value.cause;
        } else {
            registers.defined[id] |= bit;
        }
        if let Some(site) = value.approximation {
            registers.approximate[id] |= bit;
            registers.approximations[id] = site;
        }
    }
}

impl ParameterLocation {
    fn bytes(self) -> u32 {
        match self {
            ParameterLocation::Register(data) => data.bits.div_ceil(8),
            ParameterLocation::Frame { bytes, .. } => bytes,
        }
    }

    fn read(self, warp: &Warp, code: &Code, lane: usize) -> PassedValue {
        match self {
            ParameterLocation::Register(data) => warp.read_register(data.place, data.id, data.bits, lane),
            ParameterLocation::Frame { offset, bytes } => {
                warp.read_local(lane, warp.stack(code, lane).0 + u64::from(offset), bytes)
            }
        }
    }

    fn write(self, warp: &mut Warp, code: &Code, lane: usize, value: &PassedValue) {
        match self {
            ParameterLocation::Register(data) => warp.write_register(data.place, data.id, lane, value),
            ParameterLocation::Frame { offset, bytes } => {
                let frame = warp.stack(code, lane).0;
                warp.write_local(lane, frame + u64::from(offset), bytes, value);
            }
        }
    }
}

impl PassLocation {
    /// Reads an argument of `bytes` bytes.
    fn read(self, warp: &Warp, code: &Code, parameters: &[u8], lane: usize, bytes: u32) -> PassedValue {
        let known = |from: &[u8]| PassedValue {
            bytes: from.into(),
            written: SmallVec::from_elem(1, from.len()),
            cause: UndefinedCause::Unwritten,
            approximation: None,
        };
        match self {
            PassLocation::Register(data) => warp.read_register(data.place, data.id, data.bits, lane),
            PassLocation::Memory { window: Window::Param, offset } => {
                known(parameters.get(offset as usize..(offset + bytes) as usize).unwrap_or_default())
            }
            PassLocation::Memory { offset, .. } => warp.read_local(lane, offset.into(), bytes),
            PassLocation::Frame { offset } => {
                warp.read_local(lane, warp.stack(code, lane).0 + u64::from(offset), bytes)
            }
            PassLocation::Constant(bits) => known(&bits.to_le_bytes()[..bytes.min(8) as usize]),
            PassLocation::Nothing => known(&[]),
        }
    }

    /// Writes a result of `bytes` bytes.
    fn write(self, warp: &mut Warp, code: &Code, lane: usize, bytes: u32, value: &PassedValue) {
        match self {
            PassLocation::Register(data) => warp.write_register(data.place, data.id, lane, value),
            PassLocation::Memory { offset, .. } => warp.write_local(lane, offset.into(), bytes, value),
            PassLocation::Frame { offset } => {
                let frame = warp.stack(code, lane).0;
                warp.write_local(lane, frame + u64::from(offset), bytes, value);
            }
            PassLocation::Constant(_) | PassLocation::Nothing => {}
        }
    }
}

/// Start of the message about a stack without room for a call.
const STACK_OVERFLOW: &str = "has no room left on the stack";

/// Returns whether a finding is a stack overflow, for which CUDA has a separate error code.
pub fn is_stack_overflow(finding: &Finding) -> bool {
    finding.check == Check::Trap && finding.message.starts_with(STACK_OVERFLOW)
}

impl Machine<'_, '_> {
    /// Starts a call by the lanes of `mask`, which are all active lanes.
    pub fn call(&mut self, warp: &mut Warp, inst: &Inst, call: &RoutineCall, mask: u32) {
        let code = &self.program.code;
        let routine = &code.routines[call.routine];
        let limit = warp.local_bytes() as u64;
        let stack: [(u64, u64); LANES] = std::array::from_fn(|lane| warp.stack(code, lane));
        let places = stack.map(|(_, end)| {
            // `stackrestore` may have set the end of the stack to any number.
            let frame = end.checked_next_multiple_of(16).unwrap_or(u64::MAX);
            (frame, frame.saturating_add(u64::from(routine.bytes).max(MIN_FRAME)))
        });
        let full = lanes(mask).filter(|lane| places[*lane].1 > limit).fold(0, |all, lane| all | 1 << lane);
        let depth = warp.calls.len();
        let least_bytes = warp.calls.last().map_or(0, |call| call.least_bytes) + u64::from(routine.least_bytes);
        let beyond = self.options.stack_limit.filter(|limit| least_bytes > u64::from(*limit));
        if full != 0 || beyond.is_some() {
            let lanes = if full != 0 { full } else { mask };
            self.report(warp, Check::Trap, inst.site, lanes, || {
                let calls = format!("{STACK_OVERFLOW}, after {depth} calls that have not returned");
                match beyond {
                    Some(limit) => format!(
                        "{calls}: the local variables of the calls take {least_bytes} bytes, and the limit of the stack \
                         is {limit}; raise CU_LIMIT_STACK_SIZE"
                    ),
                    None => calls,
                }
            });
            self.stopped = true;
            return;
        }
        let read = |warp: &Warp, lane: usize| -> Vec<PassedValue> {
            let arguments = call.arguments.iter().zip(&routine.parameters);
            arguments.map(|(from, to)| from.read(warp, code, &self.memory.parameters, lane, to.bytes())).collect()
        };
        let arguments: Vec<(usize, Vec<PassedValue>)> = lanes(mask).map(|lane| (lane, read(warp, lane))).collect();
        let saved = warp.registers.saved(&routine.registers);
        warp.registers.forget_some(&routine.registers, mask);
        for (lane, values) in arguments {
            let (frame, end) = places[lane];
            warp.set_stack(code, lane, (frame, end));
            let range = warp.local_range(lane, frame, (end - frame) as u32);
            if let Some(written) = warp.local.written.get_mut(range) {
                written.fill(0);
            }
            for (to, value) in routine.parameters.iter().zip(&values) {
                to.write(warp, code, lane, value);
            }
        }
        let mut flow = WarpFlow::new(self.options.policy, mask);
        flow.pc = routine.start;
        let pc = warp.flow.pc;
        let flow = std::mem::replace(&mut warp.flow, flow);
        warp.calls.push(Activation { flow, call: pc, mask, ended: 0, saved, stack, least_bytes });
    }

    /// Completes calls whose lanes have all returned or ended. Returns whether any lane can run.
    pub fn complete_calls(&mut self, warp: &mut Warp) -> bool {
        let code = &self.program.code;
        while warp.flow.mask == 0 {
            let Some(done) = warp.calls.pop() else { return false };
            let super::code::InstructionKind::Call(call) = &code.insts[done.call as usize].kind else { return false };
            let routine: &Routine = &code.routines[call.routine];
            let returned = done.mask & !done.ended;
            let results: Vec<(usize, Vec<PassedValue>)> = lanes(returned)
                .map(|lane| (lane, routine.returns.iter().map(|slot| slot.read(warp, code, lane)).collect()))
                .collect();
            warp.registers.restore(&routine.registers, &done.saved, done.mask);
            for lane in lanes(done.mask) {
                warp.set_stack(code, lane, done.stack[lane]);
            }
            for (lane, values) in results {
                for ((to, slot), value) in call.results.iter().zip(&routine.returns).zip(&values) {
                    to.write(warp, code, lane, slot.bytes(), value);
                }
            }
            warp.flow = done.flow;
            warp.flow.pc += 1;
            if done.ended != 0 {
                warp.end_lanes(code, done.ended);
            }
        }
        true
    }

    /// Returns an argument of a function of the device.
    pub fn argument(&self, warp: &Warp, (passed, bytes): (PassLocation, u32), lane: usize) -> u64 {
        let value = passed.read(warp, &self.program.code, &self.memory.parameters, lane, bytes);
        let mut bits = [0; 8];
        let length = value.bytes.len().min(8);
        bits[..length].copy_from_slice(&value.bytes[..length]);
        u64::from_le_bytes(bits)
    }

    /// Writes the result of a function of the device.
    pub fn give(&self, warp: &mut Warp, (passed, bytes): (PassLocation, u32), lane: usize, result: u64) {
        let value = PassedValue {
            bytes: result.to_le_bytes()[..bytes.min(8) as usize].into(),
            written: SmallVec::from_elem(1, bytes as usize),
            cause: UndefinedCause::Unwritten,
            approximation: None,
        };
        passed.write(warp, &self.program.code, lane, bytes, &value);
    }
}
