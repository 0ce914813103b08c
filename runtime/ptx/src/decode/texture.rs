//! Textures and surfaces.

use super::super::code::{Data, InstructionKind, ObjectAccess, ObjectOperation, Outside, Query};
use super::memory::update;
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::words::TextureShape;
use kernel_dsl_compiler::ptx::{Base, Modifier, Opcode, Operand, Symbol, Texel, Type};
use smallvec::SmallVec;

/// The bound of a filtered value: a card may round the weights and the sum differently.
const FILTER_BOUND: &str = "2⁻⁸ of the difference between neighboring texels";

/// The opcodes that [`Decoder::object`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Suld, Suq, Sured, Sust, Tex, Tld4, Txq]
};

/// Cache hints.
const HINTS: [Modifier; 7] =
    [Modifier::Ca, Modifier::Cg, Modifier::Cs, Modifier::Cv, Modifier::Wb, Modifier::Wt, Modifier::Volatile];

impl<'m> Decoder<'m> {
    pub(super) fn object(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        match opcode {
            Opcode::Txq | Opcode::Suq => self.query(frame, words, operands),
            Opcode::Tex | Opcode::Tld4 => self.sample(frame, opcode, words, operands),
            _ => self.surface(frame, opcode, words, operands),
        }
    }

    fn query(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let query = words.take_as(|m| match m {
            Modifier::Width => Some(Query::Width),
            Modifier::Height => Some(Query::Height),
            Modifier::Depth | Modifier::ArraySize => Some(Query::Depth),
            Modifier::NumMipmapLevels => Some(Query::Levels),
            Modifier::NormalizedCoords => Some(Query::Normalized),
            _ => None,
        });
        let Some(query) = query else {
            let what = words.left().map_or(String::new(), |m| format!(" `.{m}`"));
            return Err(format!("the interpreter does not support the query{what}"));
        };
        words.ty()?;
        let result = self.to(frame, operands, 0)?;
        let Some(Operand::Address(address)) = operands.get(1) else {
            return Err("it has no texture or surface".to_string());
        };
        let handle = self.handle(frame, &address.base)?;
        let mut access = empty(ObjectOperation::Query(query), handle);
        access.results.push(Some(result.data()));
        Ok(decoded(access))
    }

    fn sample(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        // A texture has only its base level here, so `.base` has no effect.
        words.pass(&[Modifier::Base, Modifier::V4]);
        let operation = if opcode == Opcode::Tld4 {
            let channel = words.take_one(&[Modifier::R, Modifier::G, Modifier::B, Modifier::A]);
            ObjectOperation::Gather(match channel {
                Some(Modifier::G) => 1,
                Some(Modifier::B) => 2,
                Some(Modifier::A) => 3,
                _ => 0,
            })
        } else {
            ObjectOperation::Sample { integer_coordinates: false, halves: false }
        };
        let unused = match words.take_one(&[Modifier::Level, Modifier::Grad]) {
            Some(Modifier::Level) => 1,
            Some(_) => 2,
            None => 0,
        };
        let shape = shape(words)?;
        let (result, coordinate) = (words.ty()?, words.ty()?);
        let [Operand::Vector(to), Operand::Texel(texel), rest @ ..] = operands else {
            return Err("the interpreter does not support tests for resident texels".to_string());
        };
        if to.len() != 4 {
            return Err("the interpreter does not support pairs of halves from textures".to_string());
        }
        let operation = match operation {
            ObjectOperation::Sample { .. } => {
                ObjectOperation::Sample { integer_coordinates: coordinate == Type::S32, halves: result == Type::F16 }
            }
            other => other,
        };
        if matches!(operation, ObjectOperation::Gather(_)) && result == Type::F16 {
            return Err("the interpreter does not support `.f16` of `tld4`".to_string());
        }
        let mut access = self.located(frame, operation, shape, coordinate, texel)?;
        for part in to {
            access.results.push(match part {
                Operand::Sink => None,
                Operand::Register(r) => Some(self.register(frame, *r)?.data()),
                _ => return Err("its destination is not a register".to_string()),
            });
        }
        match rest.get(unused..) {
            Some([]) | None => {}
            Some([Operand::Vector(offset)]) => {
                for part in offset.iter().take(shape.axes.min(3)) {
                    access.offset.push(self.from(frame, part, Type::S32)?.data());
                }
            }
            Some([offset]) if shape.axes == 1 && is_integer(frame, offset) => {
                access.offset.push(self.from(frame, offset, Type::S32)?.data());
            }
            Some(_) => return Err("the interpreter does not support comparisons with a depth".to_string()),
        }
        if coordinate == Type::F32 && opcode == Opcode::Tex {
            self.code.bounds.insert(self.site, FILTER_BOUND);
        }
        Ok(decoded(access))
    }

    fn surface(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        if words.take(Modifier::P) {
            return Err("the interpreter does not support formatted accesses, `.p`".to_string());
        }
        words.take(Modifier::B);
        words.pass(&HINTS);
        let outside = words.take_as(|m| match m {
            Modifier::OrTrap => Some(Outside::Trap),
            Modifier::Clamp => Some(Outside::Clamp),
            Modifier::OrZero => Some(Outside::Zero),
            _ => None,
        });
        let outside = outside.unwrap_or(Outside::Trap);
        let shape = shape(words)?;
        let vector = words.take_as(Modifier::vector);
        let reduction = words.take_one(&[Modifier::Add, Modifier::Min, Modifier::Max, Modifier::And, Modifier::Or]);
        let ty = words.ty()?;
        let element = ty.bits() / 8;
        let (data, texel) = match (opcode, operands) {
            (Opcode::Suld, [data, Operand::Texel(texel)]) | (_, [Operand::Texel(texel), data]) => (data, texel),
            _ => return Err("it has wrong operands".to_string()),
        };
        let operation = match opcode {
            Opcode::Suld => ObjectOperation::Load { element, outside },
            Opcode::Sust => ObjectOperation::Store { element, outside },
            _ => {
                let Some(reduction) = reduction else { return Err("it has no operation".to_string()) };
                ObjectOperation::Reduce { element, outside, update: update(reduction, ty)? }
            }
        };
        let mut access = self.located(frame, operation, shape, Type::S32, texel)?;
        let parts = match data {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        if parts.len() != vector.unwrap_or(1) {
            let length = vector.unwrap_or(1);
            return Err(format!("it moves {length} elements, and has registers for {}", parts.len()));
        }
        for part in parts {
            match part {
                Operand::Sink if opcode == Opcode::Suld => access.results.push(None),
                Operand::Register(r) if opcode == Opcode::Suld => {
                    access.results.push(Some(self.register(frame, *r)?.data()));
                }
                part => access.values.push(self.from(frame, part, ty)?.data()),
            }
        }
        Ok(decoded(access))
    }

    /// Returns an access to a location, without results and values.
    fn located(
        &mut self,
        frame: &mut Frame<'m>,
        operation: ObjectOperation,
        shape: TextureShape,
        ty: Type,
        texel: &Texel,
    ) -> Result<ObjectAccess> {
        if texel.sampler.is_some() {
            return Err("the interpreter does not support separate samplers".to_string());
        }
        let handle = self.handle(frame, &texel.object)?;
        let mut access = empty(operation, handle);
        let mut coordinates = texel.coordinates.iter();
        if shape.indexed {
            let layer = coordinates.next().ok_or("it has no index of a layer")?;
            access.layer = Some(self.from(frame, layer, Type::U32)?.data());
        }
        for coordinate in coordinates.take(shape.axes.min(3)) {
            access.coordinates.push(self.from(frame, coordinate, ty)?.data());
        }
        Ok(access)
    }

    /// Returns the location of the handle of a texture or surface.
    fn handle(&mut self, frame: &mut Frame<'m>, object: &Base) -> Result<OperandLocation> {
        match object {
            Base::Register(register) => self.register(frame, *register),
            Base::Symbol(Symbol::Global(_)) => {
                let Base::Symbol(symbol) = object else { return Err("it has no texture".to_string()) };
                let (_, address) = self.symbol(frame, *symbol)?;
                Ok(self.constant(address, 64))
            }
            Base::Symbol(_) => Err("the interpreter does not support textures and surfaces as parameters".to_string()),
        }
    }
}

/// Returns an access without a location.
fn empty(operation: ObjectOperation, handle: OperandLocation) -> ObjectAccess {
    ObjectAccess {
        operation,
        handle: handle.data(),
        layer: None,
        coordinates: SmallVec::new(),
        offset: SmallVec::new(),
        results: SmallVec::new(),
        values: SmallVec::new(),
    }
}

fn decoded(access: ObjectAccess) -> Decoded {
    let ObjectAccess { handle, layer, coordinates, offset, results, values, .. } = &access;
    let located = layer.iter().chain(coordinates).chain(offset).chain(values);
    let reads = [handle].into_iter().chain(located).map(|data: &Data| data.id).collect();
    let writes = results.iter().flatten().map(|data| data.id).collect();
    Decoded { kind: InstructionKind::Object(Box::new(access)), reads, writes }
}

/// Returns whether an operand is an integer: an offset, not a depth to compare with.
fn is_integer(frame: &Frame<'_>, operand: &Operand) -> bool {
    match operand {
        Operand::Register(r) => matches!(frame.function.ty(*r), Type::S32 | Type::U32),
        operand => matches!(operand, Operand::Integer(_)),
    }
}

/// Takes the shape of a texture or surface.
fn shape(words: &mut Words) -> Result<TextureShape> {
    let found = words.take_as(|m| m.shape().map(|shape| (m, shape)));
    let Some((modifier, shape)) = found else { return Err("it has no shape".to_string()) };
    match modifier {
        Modifier::Cube | Modifier::Cubes | Modifier::Samples | Modifier::SamplePlanes => {
            Err(format!("the interpreter does not support textures of shape `.{modifier}`"))
        }
        Modifier::Volume => Ok(TextureShape { axes: 3, ..shape }),
        _ => Ok(shape),
    }
}
