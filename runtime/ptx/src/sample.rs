//! Accesses to textures and surfaces, lane by lane.

use super::Check;
use super::arithmetic::convert::to_float;
use super::arithmetic::float::{F16, F32, Rounding};
use super::code::{Inst, ObjectAccess, ObjectOperation, Outside, Query, Window};
use super::machine::Machine;
use super::memory::{RegionExtent, WarpMemory};
use super::registers::lanes;
use super::texture::{FULL_WEIGHT, FilterTap, TexelLocation, Texels, TextureOrSurface, TextureSampler};
use super::warp::{Warp, clear};
use smallvec::SmallVec;

/// The largest size of a surface access in bytes.
const MAX_SURFACE_BYTES: usize = 16;

/// An access of a lane that is suppressed.
struct TextureFault {
    check: Check,
    message: String,
}

/// The result of a lane's access.
#[derive(Default)]
struct SampledAccess {
    words: SmallVec<[u64; 4]>,
    /// Whether the values depend on an approximation that memory holds.
    approximate: bool,
    /// Whether the values were filtered.
    filtered: bool,
}

impl From<[u32; 4]> for SampledAccess {
    fn from(words: [u32; 4]) -> SampledAccess {
        SampledAccess { words: words.iter().map(|word| u64::from(*word)).collect(), ..SampledAccess::default() }
    }
}

impl Machine<'_, '_> {
    /// Executes an access to a texture or surface.
    pub fn access_object<const CHECKED: bool>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        access: &ObjectAccess,
        mask: u32,
    ) {
        let mut good = mask;
        if CHECKED {
            let surface = matches!(
                access.operation,
                ObjectOperation::Load { .. } | ObjectOperation::Store { .. } | ObjectOperation::Reduce { .. }
            );
            let located = access.layer.iter().chain(&access.coordinates).chain(&access.offset);
            for data in [&access.handle].into_iter().chain(located) {
                self.require_defined(warp, inst, data.id, mask, "has a location");
                if surface || data.id == access.handle.id {
                    self.warn_approximate(warp, inst, data.id, mask, "has a location");
                }
                good &= warp.registers.defined[data.id as usize];
            }
            for data in &access.values {
                self.require_defined(warp, inst, data.id, good, "stores a value");
            }
        }
        let mut faults: Vec<(usize, TextureFault)> = Vec::new();
        let (mut approximate, mut filtered) = (0, 0);
        for lane in lanes(good) {
            let given = self.access_of_lane(warp, access, lane).unwrap_or_else(|fault| {
                faults.push((lane, fault));
                SampledAccess::default()
            });
            approximate |= u32::from(given.approximate) << lane;
            filtered |= u32::from(given.filtered) << lane;
            for (i, data) in access.results.iter().enumerate() {
                let Some(data) = data else { continue };
                let word = given.words.get(i).copied().unwrap_or(0);
                warp.registers.set(data.place, lane, word & u64::MAX >> (64 - data.bits));
            }
        }
        if CHECKED {
            clear(warp, access.results.iter().flatten(), mask & !good);
            let registers = &mut warp.registers;
            let inherited = inst.reads.iter().find(|id| registers.approximate[**id as usize] & good != 0);
            let origin = inherited.map(|id| registers.approximations[*id as usize]);
            let of_operands = inst.reads.iter().fold(0, |all, id| all | registers.approximate[*id as usize]);
            let any = (of_operands | approximate | filtered) & good;
            let origin =
                if filtered != 0 { inst.site } else { origin.unwrap_or(self.program.code.first_approximation) };
            for data in access.results.iter().flatten() {
                registers.defined[data.id as usize] |= mask;
                let state = &mut registers.approximate[data.id as usize];
                *state = *state & !mask | any;
                if any != 0 {
                    registers.approximations[data.id as usize] = origin;
                }
            }
        }
        for check in Check::ALL {
            let all = faults.iter().filter(|(_, fault)| fault.check == check);
            let among = all.clone().fold(0, |mask, (lane, _)| mask | 1 << lane);
            if let Some((_, fault)) = all.clone().next() {
                self.report(warp, check, inst.site, among, || fault.message.clone());
            }
        }
    }

    fn access_of_lane(
        &mut self,
        warp: &mut Warp,
        access: &ObjectAccess,
        lane: usize,
    ) -> Result<SampledAccess, TextureFault> {
        let handle = warp.registers.get(access.handle.place, lane);
        let object = self.objects.get(&handle).copied();
        let missing = |what: &str| TextureFault {
            check: Check::OutOfBounds,
            message: format!("accesses a {what} by the handle {handle:#x}, and there is none"),
        };
        let word = |data: &super::code::Data| warp.registers.get(data.place, lane);
        let layer = access.layer.as_ref().map(|data| word(data) as u32);
        let mut coordinates = [0u32; 3];
        for (to, data) in coordinates.iter_mut().zip(&access.coordinates) {
            *to = word(data) as u32;
        }
        let mut offset = [0i32; 3];
        for (to, data) in offset.iter_mut().zip(&access.offset) {
            *to = word(data) as i32;
        }
        let axes = access.coordinates.len();
        let location = TexelLocation { coordinates: coordinates.map(f32::from_bits), offset, axes, layer };
        let place = TexelCoordinates { coordinates: coordinates.map(|c| c as i32), axes, layer };
        let values: SmallVec<[(u64, bool); 4]> = access
            .values
            .iter()
            .map(|data| (word(data), warp.registers.approximate[data.id as usize] >> lane & 1 == 1))
            .collect();
        let mut view = self.memory.view(&mut warp.local);
        match &access.operation {
            ObjectOperation::Query(query) => {
                let object = object.ok_or_else(|| missing("texture or surface"))?;
                let [width, height, depth] = object.texels().queried;
                let normalized =
                    matches!(object, TextureOrSurface::Texture(_, TextureSampler { normalized: true, .. }));
                let value = match query {
                    Query::Width => width,
                    Query::Height => height,
                    Query::Depth => depth,
                    Query::Levels => 1,
                    Query::Normalized => normalized.into(),
                };
                Ok([value, 0, 0, 0].into())
            }
            ObjectOperation::Sample { .. } | ObjectOperation::Gather(_) => {
                let Some(TextureOrSurface::Texture(texels, sampler)) = object else { return Err(missing("texture")) };
                sample(&mut view, &access.operation, (&texels, &sampler), &location, place)
            }
            operation => {
                let Some(TextureOrSurface::Surface(texels)) = object else { return Err(missing("surface")) };
                let elements = access.results.len().max(values.len());
                surface(&mut view, operation, &texels, place, elements, &values)
            }
        }
    }
}

/// The integer coordinates of a texel.
#[derive(Clone, Copy)]
struct TexelCoordinates {
    coordinates: [i32; 3],
    axes: usize,
    layer: Option<u32>,
}

fn unreachable_texel(address: u64) -> TextureFault {
    TextureFault { check: Check::OutOfBounds, message: format!("reads a texel at {address:#x}, which is in no buffer") }
}

/// Reads a texture.
fn sample(
    view: &mut WarpMemory<'_, '_>,
    operation: &ObjectOperation,
    (texels, sampler): (&Texels, &TextureSampler),
    location: &TexelLocation,
    place: TexelCoordinates,
) -> Result<SampledAccess, TextureFault> {
    let (mut lost, mut approximate) = (None, false);
    let mut read = |texel: [u32; 3], channel: u32| {
        let size = texels.channel.bytes();
        let address = texels.address(texel) + u64::from(channel * size);
        match load(view, address, size as usize) {
            Some((bytes, marked)) => {
                approximate |= marked;
                u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default()) as u32
            }
            None => {
                lost = Some(address);
                0
            }
        }
    };
    let filtered = sampler.filters(texels.channel);
    let (words, filtered) = match operation {
        ObjectOperation::Gather(channel) => {
            let words = sampler.corners(texels, location).map(|texel| {
                let taps = [FilterTap { texel, weight: FULL_WEIGHT }];
                sampler.value(texels, &taps, &mut read)[*channel as usize & 3]
            });
            (words, false)
        }
        ObjectOperation::Sample { integer_coordinates: true, .. } => {
            let taps = [FilterTap { texel: place.texel(texels, location.offset), weight: FULL_WEIGHT }];
            // Only linear memory can be read by one integer coordinate. An array gives 0 then.
            let of_array = place.axes == 1 && place.layer.is_none() && !texels.is_linear;
            let outside = taps[0].texel.is_none() || of_array;
            let words = sampler.value(texels, &taps, &mut read);
            (if outside { [0; 4] } else { words }, false)
        }
        _ => (sampler.value(texels, &sampler.taps(texels, location), &mut read), filtered),
    };
    if let Some(address) = lost {
        return Err(unreachable_texel(address));
    }
    let halves = matches!(operation, ObjectOperation::Sample { halves: true, .. });
    let words = words.map(|word| match halves && !sampler.gives_integers(texels.channel) {
        true => to_float(F32, F16, word.into(), Rounding::Nearest) as u32,
        false => word,
    });
    Ok(SampledAccess { approximate, filtered, ..SampledAccess::from(words) })
}

impl TexelCoordinates {
    /// Returns the texel at integer coordinates, or `None` outside. A layer outside is clamped.
    fn texel(&self, texels: &Texels, offset: [i32; 3]) -> Option<[u32; 3]> {
        let mut texel = [0; 3];
        if let Some(layer) = self.layer {
            texel[2] = layer.min(texels.size[2].saturating_sub(1));
        }
        for axis in 0..self.axes {
            let at = u32::try_from(i64::from(self.coordinates[axis]) + i64::from(offset[axis])).ok()?;
            texel[axis] = Some(at).filter(|at| *at < texels.size[axis])?;
        }
        Some(texel)
    }

    /// Returns the address of a surface access, or `None` if it has no effect.
    fn address(&self, texels: &Texels, bytes: u32, outside: Outside) -> Result<Option<u64>, TextureFault> {
        let [width, height, depth] = texels.size.map(i64::from);
        // The first coordinate counts bytes.
        let sizes = [width * i64::from(texels.texel_bytes()), height, depth];
        let mut at = [0; 3];
        for (to, coordinate) in at.iter_mut().zip(self.coordinates).take(self.axes) {
            *to = i64::from(coordinate);
        }
        if let Some(layer) = self.layer {
            at[2] = i64::from(layer);
        }
        let last = [sizes[0] - i64::from(bytes), sizes[1] - 1, sizes[2] - 1];
        let inside = at.iter().zip(last).all(|(at, last)| (0..=last).contains(at));
        match outside {
            _ if inside => {}
            Outside::Zero => return Ok(None),
            Outside::Clamp => at.iter_mut().zip(last).for_each(|(at, last)| *at = (*at).clamp(0, last.max(0))),
            Outside::Trap => {
                let message = format!(
                    "accesses byte {} of row {} in layer {}, outside of a surface of {} bytes, {height} rows and \
                     {depth} layers",
                    at[0], at[1], at[2], sizes[0]
                );
                return Err(TextureFault { check: Check::OutOfBounds, message });
            }
        }
        if at[0] % i64::from(bytes) != 0 {
            let message = format!("accesses {bytes} bytes at byte {} of a row of a surface", at[0]);
            return Err(TextureFault { check: Check::Misaligned, message });
        }
        let offset = at[2] as u64 * texels.layer + at[1] as u64 * texels.row + at[0] as u64;
        Ok(Some(texels.start.wrapping_add(offset)))
    }
}

/// Reads or writes a surface.
fn surface(
    view: &mut WarpMemory<'_, '_>,
    operation: &ObjectOperation,
    texels: &Texels,
    place: TexelCoordinates,
    elements: usize,
    values: &[(u64, bool)],
) -> Result<SampledAccess, TextureFault> {
    let (element, outside) = match operation {
        ObjectOperation::Load { element, outside }
        | ObjectOperation::Store { element, outside }
        | ObjectOperation::Reduce { element, outside, .. } => (*element as usize, *outside),
        _ => return Ok(SampledAccess::default()),
    };
    let size = element * elements;
    let Some(address) = place.address(texels, size as u32, outside)? else { return Ok(SampledAccess::default()) };
    let Some((mut bytes, approximate)) = load(view, address, size) else { return Err(unreachable_texel(address)) };
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..element].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    if let ObjectOperation::Load { .. } = operation {
        let words = bytes[..size].chunks(element).map(number).collect();
        return Ok(SampledAccess { words, approximate, filtered: false });
    }
    for (to, (value, _)) in bytes[..size].chunks_mut(element).zip(values) {
        let value = match operation {
            ObjectOperation::Reduce { update, .. } => update(number(to), *value, 0, false),
            _ => *value,
        };
        to.copy_from_slice(&value.to_le_bytes()[..element]);
    }
    let Ok(RegionExtent { region, base, .. }) = view.region(Window::Generic, address) else {
        return Err(unreachable_texel(address));
    };
    if let (true, Some(state)) = (values.iter().any(|(_, marked)| *marked), view.approximate(region)) {
        *state = true;
    }
    let at = (address - base) as usize;
    match view.bytes_mut(region, 0).get_mut(at..at + size) {
        Some(to) => to.copy_from_slice(&bytes[..size]),
        None => {
            let message = format!("writes a texel at {address:#x}, which it may only read");
            return Err(TextureFault { check: Check::ReadOnlyWrite, message });
        }
    }
    Ok(SampledAccess::default())
}

/// Returns bytes of global memory, and whether they may depend on an approximation.
fn load(view: &mut WarpMemory<'_, '_>, address: u64, size: usize) -> Option<([u8; MAX_SURFACE_BYTES], bool)> {
    let RegionExtent { region, base, .. } = view.region(Window::Generic, address).ok()?;
    let at = address.checked_sub(base)? as usize;
    let mut bytes = [0; MAX_SURFACE_BYTES];
    bytes.get_mut(..size)?.copy_from_slice(view.bytes(region, 0).get(at..at.checked_add(size)?)?);
    Some((bytes, view.approximate(region).is_some_and(|state| *state)))
}
