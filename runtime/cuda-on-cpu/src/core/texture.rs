//! Arrays, texture objects, surface objects, and the references of modules.

use super::context::Context;
use super::error::{Error, Result};
use super::handle::{Handle, HandleType};
use runtime_ptx::texture::{self, Addressing, Channel, Texels, TextureSampler};
use runtime_simt::Lock;
use std::sync::{Arc, MutexGuard};

/// The alignment of linear memory under a texture, in bytes.
pub const TEXTURE_ALIGNMENT: u64 = 512;

/// The alignment of rows under a texture, in bytes.
const PITCH_ALIGNMENT: u64 = 32;

/// `CUDA_ARRAY3D_…`
const LAYERED: u32 = 1;
const SURFACE_LDST: u32 = 2;
const TEXTURE_GATHER: u32 = 8;
const COLOR_ATTACHMENT: u32 = 0x20;

/// `CU_TRSF_…`
const READ_AS_INTEGER: u32 = 1;
const NORMALIZED_COORDINATES: u32 = 2;
const SRGB: u32 = 0x10;
const DISABLE_TRILINEAR: u32 = 0x20;
const SEAMLESS_CUBEMAP: u32 = 0x40;

/// The largest sizes along x, y and z: of plain arrays of one to three axes, and of layered arrays
/// of one and two axes.
const MAX_PLAIN_EXTENTS: [[usize; 3]; 3] = [[131_072, 0, 0], [131_072, 65_536, 0], [16_384; 3]];
const LAYERED_SIZES: [[usize; 3]; 2] = [[32_768, 0, 2048], [32_768, 32_768, 2048]];

/// The maximum number of texels of linear memory under a texture.
pub const LINEAR_TEXELS: u64 = 1 << 28;

/// The description of an array: `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct ArrayDescription {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
}

impl ArrayDescription {
    /// Returns the layout of the array's texels in memory, from `start`.
    pub fn texels(&self, start: u64) -> Result<Texels> {
        let ArrayDescription { width, height, depth, flags, .. } = *self;
        let (channel, channels) = format_of(self.format, self.channels)?;
        if flags & !(LAYERED | SURFACE_LDST | TEXTURE_GATHER | COLOR_ATTACHMENT) != 0 {
            return Err(Error::unsupported(format!("arrays with flags {flags:#x}: cubes, depths and sparse arrays")));
        }
        let most = match (flags & LAYERED != 0, height, depth) {
            (true, 0, _) => LAYERED_SIZES[0],
            (true, ..) => LAYERED_SIZES[1],
            (false, 0, 0) => MAX_PLAIN_EXTENTS[0],
            (false, _, 0) => MAX_PLAIN_EXTENTS[1],
            (false, ..) => MAX_PLAIN_EXTENTS[2],
        };
        let given = [width, height, depth];
        let missing = given.iter().zip(most).any(|(given, most)| most > 0 && *given == 0);
        if missing || given.iter().zip(most).any(|(given, most)| *given > most) {
            return Err(Error::value(format!("an array of {width} x {height} x {depth} texels")));
        }
        let size = given.map(|n| n.max(1) as u32);
        Ok(Texels { queried: given.map(|n| n as u32), ..packed(start, size, channel, channels) })
    }

    /// Returns whether surfaces can access the array.
    pub fn has_surfaces(&self) -> bool {
        self.flags & SURFACE_LDST != 0
    }
}

/// Returns texels without gaps.
fn packed(start: u64, size: [u32; 3], channel: Channel, channels: u32) -> Texels {
    let row = u64::from(size[0]) * u64::from(channel.bytes() * channels);
    let layer = row * u64::from(size[1]);
    Texels { start, size, row, layer, channel, channels, queried: size, is_linear: false }
}

/// Returns the format of a `CUarray_format`, and the number of channels.
pub fn format_of(format: u32, channels: u32) -> Result<(Channel, u32)> {
    let channel = match format {
        0x01 => Channel::U8,
        0x02 => Channel::U16,
        0x03 => Channel::U32,
        0x08 => Channel::S8,
        0x09 => Channel::S16,
        0x0a => Channel::S32,
        0x10 => Channel::F16,
        0x20 => Channel::F32,
        0x50 | 0x91..=0xff => return Err(Error::unsupported(format!("texels of the format {format:#x}"))),
        _ => return Err(Error::value(format!("unknown format of texels: {format:#x}"))),
    };
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Error::value(format!("texels of {channels} channels, not of 1, 2 or 4")));
    }
    Ok((channel, channels))
}

/// An array: texels in memory that only copies, textures and surfaces access.
#[derive(Debug)]
pub struct TexelArray {
    /// The array's handle.
    pub handle: Handle,
    /// The context that the array belongs to.
    pub context: Arc<Context>,
    /// The description.
    pub description: ArrayDescription,
    /// The texels.
    pub texels: Texels,
}

/// The description of the memory under a texture or surface: `CUDA_RESOURCE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceDescription {
    /// `CUresourcetype`
    pub kind: u32,
    padding: u32,
    /// The fields of the resource, whose meaning depends on `kind`.
    pub fields: [u64; 16],
    /// Flags, which must be 0.
    pub flags: u32,
}

/// `CU_RESOURCE_TYPE_…`
pub const ARRAY: u32 = 0;
const MIPMAPPED: u32 = 1;
const LINEAR: u32 = 2;
const PITCH: u32 = 3;

/// The memory under a texture or surface.
#[derive(Clone, Debug)]
pub enum Resource {
    /// An array.
    Array(Arc<TexelArray>),
    /// A row of texels in linear memory, which only integer coordinates address.
    Linear(Texels),
    /// Rows of texels in linear memory.
    Rows(Texels),
}

impl Resource {
    /// Returns the resource of a description. `array` finds an array by its handle.
    pub fn of(
        description: &ResourceDescription,
        array: impl FnOnce(Handle) -> Result<Arc<TexelArray>>,
    ) -> Result<Resource> {
        let ResourceDescription { kind, fields, flags, .. } = description;
        if *flags != 0 {
            return Err(Error::value(format!("invalid flags of a resource: {flags:#x}")));
        }
        let format = (fields[1] as u32, (fields[1] >> 32) as u32);
        match *kind {
            ARRAY => array(Handle(fields[0])).map(Resource::Array),
            MIPMAPPED => Err(Error::unsupported("arrays with levels of detail")),
            LINEAR => Resource::linear(fields[0], fields[2], format),
            PITCH => Resource::rows(fields[0], [fields[2], fields[3]], fields[4], format),
            kind => Err(Error::value(format!("unknown type of a resource: {kind}"))),
        }
    }

    /// Returns `bytes` bytes of linear memory.
    pub fn linear(start: u64, bytes: u64, (format, channels): (u32, u32)) -> Result<Resource> {
        let (channel, channels) = format_of(format, channels)?;
        if !start.is_multiple_of(TEXTURE_ALIGNMENT) {
            let why = format!("{start:#x} is not a multiple of {TEXTURE_ALIGNMENT}, the alignment of textures");
            return Err(Error::value(why));
        }
        let texels = bytes / u64::from(channel.bytes() * channels);
        if texels > LINEAR_TEXELS {
            return Err(Error::value(format!("{texels} texels of linear memory are more than {LINEAR_TEXELS}")));
        }
        let texels = packed(start, [texels as u32, 1, 1], channel, channels);
        Ok(Resource::Linear(Texels { queried: [texels.size[0], 0, 0], is_linear: true, ..texels }))
    }

    /// Returns rows in linear memory, `pitch` bytes apart.
    pub fn rows(start: u64, size: [u64; 2], pitch: u64, (format, channels): (u32, u32)) -> Result<Resource> {
        let (channel, channels) = format_of(format, channels)?;
        let [width, height] = size;
        if !start.is_multiple_of(TEXTURE_ALIGNMENT) || !pitch.is_multiple_of(PITCH_ALIGNMENT) {
            return Err(Error::value(format!(
                "the address {start:#x} is not a multiple of {TEXTURE_ALIGNMENT}, or the pitch {pitch} none of \
                 {PITCH_ALIGNMENT}"
            )));
        }
        if !(1..=131_072).contains(&width) || !(1..=65_000).contains(&height) {
            return Err(Error::value(format!("a texture of {width} x {height} texels")));
        }
        let texels = packed(start, [width as u32, height as u32, 1], channel, channels);
        if pitch < texels.row {
            return Err(Error::value(format!("rows of {} bytes do not fit a pitch of {pitch}", texels.row)));
        }
        let queried = [width as u32, height as u32, 0];
        let texels = Texels { row: pitch, layer: pitch.saturating_mul(height), queried, ..texels };
        Ok(Resource::Rows(texels))
    }

    /// Returns the texels.
    pub fn texels(&self) -> Texels {
        match self {
            Resource::Array(array) => array.texels,
            Resource::Linear(texels) | Resource::Rows(texels) => *texels,
        }
    }

    /// Returns the texture of this resource.
    pub fn texture(&self, description: &TextureDescription) -> Result<texture::TextureOrSurface> {
        let sampler = description.sampler()?;
        let sampler = match self {
            Resource::Linear(_) => {
                TextureSampler { addressing: [Addressing::Clamp; 3], linear: false, normalized: false, ..sampler }
            }
            _ => sampler,
        };
        Ok(texture::TextureOrSurface::Texture(self.texels(), sampler))
    }

    /// Returns the surface of this resource.
    pub fn surface(&self) -> Result<texture::TextureOrSurface> {
        match self {
            Resource::Array(array) if array.description.has_surfaces() => {
                Ok(texture::TextureOrSurface::Surface(array.texels))
            }
            Resource::Array(_) => Err(Error::value("the array was created without CUDA_ARRAY3D_SURFACE_LDST")),
            _ => Err(Error::value("only an array has surfaces")),
        }
    }
}

/// The description of a sampler: `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct TextureDescription {
    pub addressing: [u32; 3],
    pub filter: u32,
    pub flags: u32,
    pub anisotropy: u32,
    pub level_filter: u32,
    pub level_bias: f32,
    pub level_range: [f32; 2],
    pub border: [f32; 4],
    reserved: [u32; 12],
}

impl Default for TextureDescription {
    /// Returns the description of a new reference, which clamps and reads single texels.
    fn default() -> TextureDescription {
        TextureDescription {
            addressing: [1; 3],
            filter: 0,
            flags: 0,
            anisotropy: 0,
            level_filter: 0,
            level_bias: 0.0,
            level_range: [0.0; 2],
            border: [0.0; 4],
            reserved: [0; 12],
        }
    }
}

impl TextureDescription {
    /// Returns the sampler.
    pub fn sampler(&self) -> Result<TextureSampler> {
        let TextureDescription { filter, flags, border, .. } = *self;
        let all = READ_AS_INTEGER | NORMALIZED_COORDINATES | SRGB | DISABLE_TRILINEAR | SEAMLESS_CUBEMAP;
        if flags & !all != 0 {
            return Err(Error::value(format!("invalid flags of a texture: {flags:#x}")));
        }
        if flags & (SRGB | SEAMLESS_CUBEMAP) != 0 {
            return Err(Error::unsupported("textures of sRGB, and seamless cubes"));
        }
        let linear = match filter {
            0 => false,
            1 => true,
            _ => return Err(Error::value(format!("unknown filter of a texture: {filter}"))),
        };
        let mut addressing = [Addressing::Clamp; 3];
        for (to, mode) in addressing.iter_mut().zip(self.addressing) {
            *to = match mode {
                0 => Addressing::Wrap,
                1 => Addressing::Clamp,
                2 => Addressing::Mirror,
                3 => Addressing::Border,
                _ => return Err(Error::value(format!("unknown addressing mode of a texture: {mode}"))),
            };
        }
        let (normalized, as_integer) = (flags & NORMALIZED_COORDINATES != 0, flags & READ_AS_INTEGER != 0);
        Ok(TextureSampler { addressing, linear, normalized, as_integer, border })
    }
}

/// A texture object.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TextureObject {
    pub context: Arc<Context>,
    pub handle: Handle,
    pub resource: ResourceDescription,
    pub description: TextureDescription,
}

/// A surface object.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct SurfaceObject {
    pub context: Arc<Context>,
    pub handle: Handle,
    pub resource: ResourceDescription,
}

/// A `.texref` or `.surfref` variable of a module, or a texture reference without a variable.
#[derive(Debug)]
pub struct Reference {
    /// The reference's handle.
    pub handle: Handle,
    /// The context that the reference belongs to.
    pub context: Arc<Context>,
    /// The module and the name of the variable.
    pub variable: Option<(Handle, String)>,
    /// The address of the variable, by which kernels find the texture.
    pub address: Option<u64>,
    bound: Lock<BoundTexture>,
}

/// The texture that a reference is bound to.
#[derive(Clone, Debug)]
pub struct BoundTexture {
    /// The memory, if the reference is bound.
    pub resource: Option<Resource>,
    /// The format of linear memory: a `CUarray_format`, and the number of channels.
    pub format: (u32, u32),
    /// The sampler.
    pub description: TextureDescription,
    /// Whether the variable is a `.surfref`.
    pub is_surface: bool,
}

impl Reference {
    /// Creates a reference that is not bound.
    pub fn new(
        handle: Handle,
        context: Arc<Context>,
        variable: Option<(Handle, String)>,
        address: Option<u64>,
        is_surface: bool,
    ) -> Reference {
        let (format, description) = ((0x20, 1), TextureDescription::default());
        let bound = Lock::new(BoundTexture { resource: None, format, description, is_surface });
        Reference { handle, context, variable, address, bound }
    }

    /// Locks the binding of the reference.
    pub fn bound(&self) -> MutexGuard<'_, BoundTexture> {
        self.bound.lock()
    }

    /// Changes the binding of the reference. Later launches use the result.
    pub fn change(&self, change: impl FnOnce(&mut BoundTexture) -> Result) -> Result {
        let mut bound = self.bound();
        let mut changed = bound.clone();
        change(&mut changed)?;
        let object = match &changed.resource {
            None => None,
            Some(resource) if changed.is_surface => Some(resource.surface()?),
            Some(resource) => Some(resource.texture(&changed.description)?),
        };
        if let Some(address) = self.address {
            self.context.set_object(address, object);
        }
        *bound = changed;
        Ok(())
    }
}

impl HandleType for TexelArray {
    const KIND: u8 = 0x4D;
    const NAME: &'static str = "array";
}

impl HandleType for TextureObject {
    const KIND: u8 = 0x4E;
    const NAME: &'static str = "texture object";
}

impl HandleType for SurfaceObject {
    const KIND: u8 = 0x4F;
    const NAME: &'static str = "surface object";
}

impl HandleType for Reference {
    const KIND: u8 = 0x50;
    const NAME: &'static str = "reference to a texture or surface";
}
