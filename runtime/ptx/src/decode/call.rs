//! Calls. Most are inlined: each has a copy of the callee's code with separate registers and
//! memory. Functions that can call themselves, and the functions of large indirect calls, are
//! routines: a call saves their registers, and their variables are in a frame of the stack.

use super::super::body::{Join, comparison};
use super::super::code::{
    self, DeviceFunction, InstructionKind, NOWHERE, ParameterLocation, PassLocation, Pc, Routine, Service, SpaceLayout,
    Window,
};
use super::super::memory::function_address;
use super::frame::least_frame_bytes;
use super::operand::VariableLocation;
use super::{Decoded, Decoder, Frame, Result, VARIABLE_GAP};
use kernel_dsl_compiler::ptx::ast::FunctionCall;
use kernel_dsl_compiler::ptx::{Callee, Callees, Function, Module, Operand, Parameter, RegisterId, Statement, Symbol};
use std::collections::HashSet;

/// The largest number of possible functions of an indirect call that are inlined.
const MAX_INLINED: usize = 4;

/// Returns the functions of each call of a function, by index in the module.
pub fn callees(module: &Module, function: usize) -> impl Iterator<Item = Vec<usize>> {
    let function = &module.functions()[function];
    function.statements().iter().filter_map(move |statement| {
        let Statement::Call(call) = statement else { return None };
        Some(match call.callee {
            Callee::Function(callee) => vec![defined(module, callee)],
            Callee::Indirect { targets, .. } => match function.call_targets.get(targets as usize) {
                Some(targets) => candidates(module, &targets.callees),
                None => Vec::new(),
            },
        })
    })
}

/// Returns the index of the definition that calls of function `index` run, or `index` if nothing
/// defines the function.
fn defined(module: &Module, index: u32) -> usize {
    module.definition(index).unwrap_or(index) as usize
}

/// Returns the functions among `reachable` that are called with a stack: those that can call
/// themselves, and the possible functions of large indirect calls.
pub fn outlined(module: &Module, reachable: &[usize]) -> HashSet<usize> {
    let mut found = HashSet::new();
    for &function in reachable {
        for possible in callees(module, function).filter(|possible| possible.len() > MAX_INLINED) {
            found.extend(possible);
        }
        let mut seen = HashSet::new();
        let mut open: Vec<usize> = callees(module, function).flatten().collect();
        while let Some(callee) = open.pop() {
            if callee == function {
                found.insert(function);
                break;
            }
            if seen.insert(callee) {
                open.extend(callees(module, callee).flatten());
            }
        }
    }
    found
}

/// Returns the functions whose addresses the module takes.
pub fn addressed(module: &Module) -> Vec<usize> {
    let mut found = Vec::new();
    let mut add = |symbol: Symbol| {
        if let Symbol::Function(i) = symbol
            && let index = defined(module, i)
            && !found.contains(&index)
        {
            found.push(index);
        }
    };
    for variable in module.variables() {
        variable.initializer.iter().for_each(|i| super::place::symbols(i, &mut add));
    }
    for function in module.functions() {
        for statement in function.statements() {
            if let Statement::Instruction(instruction) = statement {
                for operand in &instruction.operands {
                    if let Operand::Symbol(symbol, _) = operand {
                        add(*symbol);
                    }
                }
            }
        }
        for targets in &function.call_targets {
            if let Callees::Functions(list) = &targets.callees {
                list.iter().for_each(|i| add(Symbol::Function(*i)));
            }
        }
    }
    found.retain(|i| module.functions()[*i].body.is_some() && !module.functions()[*i].is_entry());
    found
}

/// Returns the functions that an indirect call may reach, among those whose addresses are taken.
fn candidates(module: &Module, callees: &Callees) -> Vec<usize> {
    let alike = |a: &[Parameter], b: &[Parameter]| {
        let same =
            |(a, b): (&Parameter, &Parameter)| a.size() == b.size() && a.register.is_some() == b.register.is_some();
        a.len() == b.len() && a.iter().zip(b).all(same)
    };
    match callees {
        Callees::Functions(list) => list.iter().map(|i| defined(module, *i)).collect(),
        Callees::Prototype { returns, parameters, .. } => {
            let mut found = addressed(module);
            found.retain(|i| {
                let function = &module.functions()[*i];
                alike(&function.returns, returns) && alike(&function.parameters, parameters)
            });
            found
        }
    }
}

impl<'m> Decoder<'m> {
    pub(super) fn call(&mut self, frame: &mut Frame<'m>, call: &FunctionCall) -> Result<()> {
        let site = self.site;
        // Lanes that do not call jump past the body.
        let around = match &call.guard {
            Some(guard) => {
                let condition = self.condition(frame, guard.register, !guard.negated)?;
                self.push(Some(condition), Decoded::plain(InstructionKind::Branch(NOWHERE)), site);
                Some(self.next_pc() - 1)
            }
            None => None,
        };
        match call.callee {
            Callee::Function(index) => self.callee(frame, call, defined(self.module, index))?,
            Callee::Indirect { register, targets } => self.indirect(frame, call, register, targets)?,
        }
        if let Some(pc) = around {
            self.arrive_here(&[pc]);
        }
        Ok(())
    }

    /// Makes the next instruction the target of these branches.
    fn arrive_here(&mut self, branches: &[Pc]) {
        let here = self.next_pc();
        for pc in branches {
            self.code.insts[*pc as usize].kind = InstructionKind::Branch(here);
        }
    }

    /// Decodes an indirect call: it compares the register with each possible function, and calls
    /// that function.
    fn indirect(
        &mut self,
        frame: &mut Frame<'m>,
        call: &FunctionCall,
        register: RegisterId,
        targets: u32,
    ) -> Result<()> {
        let Some(targets) = frame.function.call_targets.get(targets as usize) else {
            return Err("its possible callees are not declared".to_string());
        };
        let address = self.register(frame, register)?;
        let mut done = Vec::new();
        for index in candidates(self.module, &targets.callees) {
            let this = self.constant(function_address(index), 64);
            let other = self.fresh(1);
            let rows = [address.wide()?, this.wide()?];
            let body = comparison([Some(other.predicate()?), None], rows, Join::None, |a: u64, b: u64| a != b);
            let compare = self.compute(other, &[address, this], body);
            let site = self.site;
            self.push(None, compare, site);
            let condition = super::Condition { predicate: other.predicate()?, id: other.id, negated: false };
            self.push(Some(condition), Decoded::plain(InstructionKind::Branch(NOWHERE)), site);
            let next = self.next_pc() - 1;
            self.callee(frame, call, index)?;
            self.push(None, Decoded::plain(InstructionKind::Branch(NOWHERE)), site);
            done.push(self.next_pc() - 1);
            self.arrive_here(&[next]);
        }
        let site = self.site;
        self.push(
            None,
            Decoded::plain(InstructionKind::Trap("it calls a function that is not among its possible callees")),
            site,
        );
        self.arrive_here(&done);
        Ok(())
    }

    /// Decodes a call of a known function.
    fn callee(&mut self, frame: &mut Frame<'m>, call: &FunctionCall, index: usize) -> Result<()> {
        let callee = &self.module.functions()[index];
        if callee.body.is_none() {
            return self.service(frame, call, callee);
        }
        match self.outlined.contains(&index) {
            true => self.outline(frame, call, index),
            false => self.inline(frame, call, index),
        }
    }

    /// Decodes a call of a function that the device provides.
    fn service(&mut self, frame: &mut Frame<'m>, call: &FunctionCall, callee: &Function) -> Result<()> {
        let (function, sizes, result): (_, &[u32], _) = match callee.name.as_str() {
            "vprintf" => (DeviceFunction::Print, &[8, 8], Some(4)),
            "malloc" => (DeviceFunction::Allocate, &[8], Some(8)),
            "free" => (DeviceFunction::Free, &[8], None),
            "cudaCGGetIntrinsicHandle" => (DeviceFunction::GridHandle, &[4], Some(8)),
            "cudaCGSynchronize" => (DeviceFunction::GridBarrier, &[8, 4], Some(4)),
            "__assertfail" => (DeviceFunction::Assert, &[8, 8, 4, 8, 8], None),
            name => {
                return Err(format!("the module does not define it, and the interpreter does not provide `{name}`"));
            }
        };
        let declared: Vec<u32> = callee.parameters.iter().map(Parameter::size).collect();
        let returned: Vec<u32> = callee.returns.iter().map(Parameter::size).collect();
        if declared != sizes || returned.first().is_some_and(|bytes| Some(*bytes) != result) || returned.len() > 1 {
            return Err(format!("`{}` of the device has other parameters or another result", callee.name));
        }
        self.code.allocates |= matches!(function, DeviceFunction::Allocate | DeviceFunction::Free);
        // Blocks must run in order, because the order of prints and allocations is observable.
        self.code.ordered = true;
        let arguments = self.passed(frame, &call.arguments)?.into_iter().zip(sizes.iter().copied()).collect();
        let result = self.passed(frame, &call.returns)?.first().copied().zip(result);
        let site = self.site;
        let kind = InstructionKind::Service(Box::new(Service { function, arguments, result }));
        self.push(None, Decoded::plain(kind), site);
        Ok(())
    }

    /// Decodes a call of a routine, whose code is decoded later.
    fn outline(&mut self, frame: &mut Frame<'m>, call: &FunctionCall, index: usize) -> Result<()> {
        let callee = &self.module.functions()[index];
        if callee.parameters.len() != call.arguments.len() || callee.returns.len() != call.returns.len() {
            return Err(format!("`{}` has a different number of parameters or results", callee.name));
        }
        // The stack's registers are allocated first, so that no routine counts them as its own.
        self.frame_register();
        let routine = *self.routines.entry(index).or_insert_with(|| {
            self.pending.push(index);
            self.code.routines.push(Routine::default());
            self.code.routines.len() - 1
        });
        let (arguments, results) = (self.passed(frame, &call.arguments)?, self.passed(frame, &call.returns)?);
        let site = self.site;
        let kind = InstructionKind::Call(Box::new(code::RoutineCall { routine, arguments, results }));
        self.push(None, Decoded::plain(kind), site);
        Ok(())
    }

    /// Decodes the code of a routine.
    pub(super) fn routine_body(&mut self, index: usize) {
        let function = &self.module.functions()[index];
        let (start, first) = (self.next_pc(), self.registers.len());
        let mut layout = SpaceLayout::default();
        let mut home = |p: &Parameter| VariableLocation::Frame {
            offset: layout.add(&p.name, p.size(), p.alignment(), VARIABLE_GAP),
        };
        let parameters: Vec<VariableLocation> = function.parameters.iter().map(&mut home).collect();
        let returns: Vec<VariableLocation> = function.returns.iter().map(&mut home).collect();
        let mut frame = self.frame_with(index, parameters.clone(), returns.clone(), Some(&mut layout));
        let mut slots = |list: &[Parameter], homes: &[VariableLocation]| -> Vec<ParameterLocation> {
            let slot = |(p, home): (&Parameter, &VariableLocation)| match (p.register, home) {
                (Some(register), _) => {
                    let source = self.register(&mut frame, register);
                    source.map_or(ParameterLocation::Frame { offset: 0, bytes: 0 }, |source| {
                        ParameterLocation::Register(source.data())
                    })
                }
                (None, VariableLocation::Frame { offset }) => {
                    ParameterLocation::Frame { offset: *offset, bytes: p.size() }
                }
                (None, _) => ParameterLocation::Frame { offset: 0, bytes: 0 },
            };
            list.iter().zip(homes).map(slot).collect()
        };
        let parameters = slots(&function.parameters, &parameters);
        let returns = slots(&function.returns, &returns);
        self.function(&mut frame);
        let ends = frame.returns_at.take().unwrap_or_default();
        self.arrive_here(&ends);
        let site = self.new_site("}".to_string(), None, None, &function.name);
        self.push(None, Decoded::plain(InstructionKind::Return), site);
        let constant: HashSet<u32> =
            self.code.constants.iter().map(|c| c.1).chain(self.code.specials.iter().map(|s| s.1)).collect();
        let registers = self.registers[first..].iter().filter(|(_, id)| !constant.contains(id)).copied().collect();
        let (bytes, least_bytes) = (layout.bytes, least_frame_bytes(function));
        let routine = Routine { start, bytes, least_bytes, registers, parameters, returns };
        self.code.routines[self.routines[&index]] = routine;
    }

    /// Returns the locations of a call's arguments or results.
    fn passed(&mut self, frame: &mut Frame<'m>, operands: &[Operand]) -> Result<Vec<PassLocation>> {
        let mut list = Vec::new();
        for (home, operand) in self.passed_locations(frame, operands)?.into_iter().zip(operands) {
            list.push(match home {
                _ if *operand == Operand::Sink => PassLocation::Nothing,
                VariableLocation::Value(source) => PassLocation::Register(source.data()),
                VariableLocation::Constant { bits } => PassLocation::Constant(bits),
                VariableLocation::Memory { window, offset } => PassLocation::Memory { window, offset },
                VariableLocation::Frame { offset } => PassLocation::Frame { offset },
                VariableLocation::Buffer { .. } => {
                    return Err("a variable of the module is passed by value".to_string());
                }
            });
        }
        Ok(list)
    }

    /// Inlines the function's body here.
    fn inline(&mut self, frame: &mut Frame<'m>, call: &FunctionCall, index: usize) -> Result<()> {
        let callee = &self.module.functions()[index];
        if callee.parameters.len() != call.arguments.len() || callee.returns.len() != call.returns.len() {
            return Err(format!("`{}` has a different number of parameters or results", callee.name));
        }
        let site = self.site;
        let parameters = self.passed_locations(frame, &call.arguments)?;
        let returns = self.passed_locations(frame, &call.returns)?;
        let mut inlined = self.frame(index, parameters, returns);
        self.take_registers(&mut inlined)?;
        let stack = self.keep_stack(callee);
        self.function(&mut inlined);
        let returns = inlined.returns_at.take().unwrap_or_default();
        self.arrive_here(&returns);
        self.site = site;
        // The allocations of a function end with it.
        if let Some((stack, kept)) = stack {
            self.move_register(stack, kept);
        }
        self.give_registers(frame, &mut inlined, call)
    }

    /// Returns the locations of the arguments or results of a call.
    fn passed_locations(&mut self, frame: &mut Frame<'m>, operands: &[Operand]) -> Result<Vec<VariableLocation>> {
        let mut homes = Vec::new();
        for operand in operands {
            homes.push(match operand {
                Operand::Register(r) => VariableLocation::Value(self.register(frame, *r)?),
                Operand::Symbol(Symbol::Variable(i), 0) => frame.variables[*i as usize]
                    .ok_or_else(|| "the interpreter has no location for an argument".to_string())?,
                Operand::Symbol(Symbol::Parameter(i), 0) => frame.parameters[*i as usize],
                Operand::Symbol(Symbol::Return(i), 0) => frame.returns[*i as usize],
                Operand::Integer(n) => VariableLocation::Constant { bits: *n as u64 },
                Operand::Bits(n) | Operand::F64(n) => VariableLocation::Constant { bits: *n },
                Operand::F32(n) => VariableLocation::Constant { bits: u64::from(*n) },
                Operand::Sink => VariableLocation::Value(self.fresh(64)),
                _ => return Err("the interpreter does not support such an argument".to_string()),
            });
        }
        Ok(homes)
    }

    /// Copies arguments in registers to the callee's registers.
    fn take_registers(&mut self, callee: &mut Frame<'m>) -> Result<()> {
        let function = callee.function;
        for (i, parameter) in function.parameters.iter().enumerate() {
            let home = callee.parameters[i];
            let Some(register) = parameter.register else {
                // The callee expects this parameter in memory, so a value in a register is stored
                // first.
                match home {
                    VariableLocation::Value(from) => {
                        let to =
                            self.code.local.add(&parameter.name, parameter.size(), parameter.alignment(), VARIABLE_GAP);
                        self.store_local(from, to, parameter.size());
                        callee.parameters[i] = VariableLocation::local(to);
                    }
                    VariableLocation::Constant { bits } => {
                        let from = self.constant(bits, parameter.ty.bits());
                        let to =
                            self.code.local.add(&parameter.name, parameter.size(), parameter.alignment(), VARIABLE_GAP);
                        self.store_local(from, to, parameter.size());
                        callee.parameters[i] = VariableLocation::local(to);
                    }
                    VariableLocation::Memory { .. }
                    | VariableLocation::Frame { .. }
                    | VariableLocation::Buffer { .. } => {}
                }
                continue;
            };
            let to = self.register(callee, register)?;
            let from = match home {
                VariableLocation::Value(from) => from,
                VariableLocation::Constant { bits } => self.constant(bits, parameter.ty.bits()),
                VariableLocation::Memory { .. } | VariableLocation::Frame { .. } | VariableLocation::Buffer { .. } => {
                    return Err("bytes are passed where a register is expected".to_string());
                }
            };
            self.move_register(to, from);
        }
        for (i, result) in function.returns.iter().enumerate() {
            if result.register.is_none()
                && let VariableLocation::Value(_) | VariableLocation::Constant { .. } = callee.returns[i]
            {
                let to = self.code.local.add(&result.name, result.size(), result.alignment(), VARIABLE_GAP);
                callee.returns[i] = VariableLocation::local(to);
            }
        }
        Ok(())
    }

    /// Copies results in registers to the caller's registers.
    fn give_registers(&mut self, caller: &mut Frame<'m>, callee: &mut Frame<'m>, call: &FunctionCall) -> Result<()> {
        let function = callee.function;
        for (i, result) in function.returns.iter().enumerate() {
            let to = match call.returns.get(i) {
                Some(Operand::Register(r)) => Some(self.register(caller, *r)?),
                _ => None,
            };
            match (result.register, to) {
                (Some(from), Some(to)) => {
                    let from = self.register(callee, from)?;
                    self.move_register(to, from);
                }
                (None, Some(to)) => {
                    if let VariableLocation::Memory { window: Window::Local, offset } = callee.returns[i] {
                        self.load_local(to, offset, result.size());
                    }
                }
                (Some(_), None) => return Err("a register is returned where bytes are expected".to_string()),
                (None, None) => {}
            }
        }
        Ok(())
    }
}
