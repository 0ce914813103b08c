//! Functions of arrays, textures and surfaces.

use super::{check_result_pointer, exports, get, handle, no_flags, pointer, put, put_if, text};
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::texture::{
    ArrayDescription, LINEAR_TEXELS, Resource, ResourceDescription, TEXTURE_ALIGNMENT, TexelArray, TextureDescription,
    format_of,
};
use cudarc::driver::sys;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::size_of;

/// `CU_TRSA_OVERRIDE_FORMAT`
const OVERRIDE_FORMAT: c_uint = 1;

/// `CUDA_ARRAY_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlainArray {
    width: usize,
    height: usize,
    format: c_uint,
    channels: c_uint,
}

const _: () = assert!(
    size_of::<PlainArray>() == size_of::<sys::CUDA_ARRAY_DESCRIPTOR>()
        && size_of::<ArrayDescription>() == size_of::<sys::CUDA_ARRAY3D_DESCRIPTOR>()
        && size_of::<ResourceDescription>() == size_of::<sys::CUDA_RESOURCE_DESC>()
        && size_of::<TextureDescription>() == size_of::<sys::CUDA_TEXTURE_DESC>()
);

impl From<PlainArray> for ArrayDescription {
    fn from(array: PlainArray) -> ArrayDescription {
        let PlainArray { width, height, format, channels } = array;
        ArrayDescription { width, height, depth: 0, format, channels, flags: 0 }
    }
}

impl From<ArrayDescription> for PlainArray {
    fn from(array: ArrayDescription) -> PlainArray {
        let ArrayDescription { width, height, format, channels, .. } = array;
        PlainArray { width, height, format, channels }
    }
}

/// Returns the array to which a reference is bound.
fn bound_array(resource: &Option<Resource>) -> Result<Handle> {
    match resource {
        Some(Resource::Array(array)) => Ok(array.handle),
        _ => Err(Error::value("the reference is bound to no array")),
    }
}

/// Returns the axis of an addressing mode.
fn axis(axis: c_int) -> Result<usize> {
    usize::try_from(axis).ok().filter(|axis| *axis < 3).ok_or_else(|| Error::value(format!("there is no axis {axis}")))
}

/// Returns the resource of an array.
fn resource_of(array: std::sync::Arc<TexelArray>) -> Option<Resource> {
    Some(Resource::Array(array))
}

// SAFETY of all functions below: the caller's pointers are valid, as cuda.h requires.
exports! {
    fn cuArrayCreate_v2(array: *mut sys::CUarray, description: *const PlainArray) = call |driver| {
        check_result_pointer(array)?;
        // SAFETY: as above.
        unsafe { put(array, pointer(driver.create_array(get(description)?.into())?.handle)) }
    };

    fn cuArrayGetDescriptor_v2(description: *mut PlainArray, array: sys::CUarray) = call |driver| {
        // SAFETY: as above.
        unsafe { put(description, driver.arrays.get(handle(array))?.description.into()) }
    };

    fn cuArray3DCreate_v2(array: *mut sys::CUarray, description: *const ArrayDescription) = call |driver| {
        check_result_pointer(array)?;
        // SAFETY: as above.
        unsafe { put(array, pointer(driver.create_array(get(description)?)?.handle)) }
    };

    fn cuArray3DGetDescriptor_v2(description: *mut ArrayDescription, array: sys::CUarray) = call |driver| {
        // SAFETY: as above.
        unsafe { put(description, driver.arrays.get(handle(array))?.description) }
    };

    fn cuArrayDestroy(array: sys::CUarray) = call |driver| {
        driver.destroy_array(handle(array))
    };

    fn cuDeviceGetTexture1DLinearMaxWidth(
        width: *mut usize,
        format: c_uint,
        channels: c_uint,
        device: sys::CUdevice,
    ) = call |driver| {
        driver.device(device)?;
        format_of(format, channels)?;
        // SAFETY: as above.
        unsafe { put(width, LINEAR_TEXELS as usize) }
    };

    fn cuTexObjectCreate(
        object: *mut sys::CUtexObject,
        resource: *const ResourceDescription,
        description: *const TextureDescription,
        view: *const c_void,
    ) = call |driver| {
        check_result_pointer(object)?;
        if !view.is_null() {
            return Err(Error::unsupported("views of a resource in another format"));
        }
        // SAFETY: as above.
        unsafe { put(object, driver.create_texture(get(resource)?, get(description)?)?.handle.0) }
    };

    fn cuTexObjectDestroy(object: sys::CUtexObject) = call |driver| {
        driver.destroy_texture(Handle(object))
    };

    fn cuTexObjectGetResourceDesc(resource: *mut ResourceDescription, object: sys::CUtexObject) = call |driver| {
        // SAFETY: as above.
        unsafe { put(resource, driver.textures.get(Handle(object))?.resource) }
    };

    fn cuTexObjectGetTextureDesc(description: *mut TextureDescription, object: sys::CUtexObject) = call |driver| {
        // SAFETY: as above.
        unsafe { put(description, driver.textures.get(Handle(object))?.description) }
    };

    fn cuSurfObjectCreate(object: *mut sys::CUsurfObject, resource: *const ResourceDescription) = call |driver| {
        check_result_pointer(object)?;
        // SAFETY: as above.
        unsafe { put(object, driver.create_surface(get(resource)?)?.handle.0) }
    };

    fn cuSurfObjectDestroy(object: sys::CUsurfObject) = call |driver| {
        driver.destroy_surface(Handle(object))
    };

    fn cuSurfObjectGetResourceDesc(resource: *mut ResourceDescription, object: sys::CUsurfObject) = call |driver| {
        // SAFETY: as above.
        unsafe { put(resource, driver.surfaces.get(Handle(object))?.resource) }
    };

    fn cuModuleGetTexRef(reference: *mut sys::CUtexref, module: sys::CUmodule, name: *const c_char) = call |driver| {
        check_result_pointer(reference)?;
        // SAFETY: as above.
        unsafe { put(reference, pointer(driver.module_reference(handle(module), text(name)?, false)?.handle)) }
    };

    fn cuModuleGetSurfRef(reference: *mut sys::CUsurfref, module: sys::CUmodule, name: *const c_char) = call |driver| {
        check_result_pointer(reference)?;
        // SAFETY: as above.
        unsafe { put(reference, pointer(driver.module_reference(handle(module), text(name)?, true)?.handle)) }
    };

    fn cuTexRefCreate(reference: *mut sys::CUtexref) = call |driver| {
        check_result_pointer(reference)?;
        // SAFETY: as above.
        unsafe { put(reference, pointer(driver.create_reference()?.handle)) }
    };

    fn cuTexRefDestroy(reference: sys::CUtexref) = call |driver| {
        driver.destroy_reference(handle(reference))
    };

    fn cuParamSetTexRef(function: sys::CUfunction, _unit: c_int, reference: sys::CUtexref) = call |driver| {
        // A kernel finds the textures of its module by name.
        driver.functions.get(handle(function))?;
        driver.reference(handle(reference), false).map(drop)
    };

    fn cuTexRefSetArray(reference: sys::CUtexref, array: sys::CUarray, flags: c_uint) = call |driver| {
        if flags & !OVERRIDE_FORMAT != 0 {
            return Err(Error::value(format!("invalid flags of a texture's array: {flags:#x}")));
        }
        let array = driver.arrays.get(handle(array))?;
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.format = (array.description.format, array.description.channels);
            bound.resource = resource_of(array);
            Ok(())
        })
    };

    fn cuTexRefSetAddress_v2(
        offset: *mut usize,
        reference: sys::CUtexref,
        address: sys::CUdeviceptr,
        bytes: usize,
    ) = call |driver| {
        let reference = driver.reference(handle(reference), false)?;
        let behind = address % TEXTURE_ALIGNMENT;
        if behind != 0 && offset.is_null() {
            let why = format!("{address:#x} is not a multiple of {TEXTURE_ALIGNMENT}, and the offset is not requested");
            return Err(Error::value(why));
        }
        reference.context.memory().check(address, bytes as u64)?;
        let (start, bytes) = (address - behind, (bytes as u64).saturating_add(behind));
        reference.change(|bound| {
            bound.resource = Some(Resource::linear(start, bytes, bound.format)?);
            Ok(())
        })?;
        // SAFETY: as above.
        unsafe { put_if(offset, behind as usize) };
        Ok(())
    };

    fn cuTexRefSetAddress2D_v3(
        reference: sys::CUtexref,
        description: *const PlainArray,
        address: sys::CUdeviceptr,
        pitch: usize,
    ) = call |driver| {
        let reference = driver.reference(handle(reference), false)?;
        // SAFETY: as above.
        let PlainArray { width, height, format, channels } = unsafe { get(description)? };
        reference.context.memory().check(address, 1)?;
        let size = [width as u64, height as u64];
        reference.change(|bound| {
            bound.format = (format, channels);
            bound.resource = Some(Resource::rows(address, size, pitch as u64, bound.format)?);
            Ok(())
        })
    };

    fn cuTexRefSetFormat(reference: sys::CUtexref, format: c_uint, channels: c_int) = call |driver| {
        let channels = channels as c_uint;
        format_of(format, channels)?;
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.format = (format, channels);
            Ok(())
        })
    };

    fn cuTexRefSetAddressMode(reference: sys::CUtexref, of: c_int, mode: c_uint) = call |driver| {
        let of = axis(of)?;
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.description.addressing[of] = mode;
            bound.description.sampler().map(drop)
        })
    };

    fn cuTexRefSetFilterMode(reference: sys::CUtexref, mode: c_uint) = call |driver| {
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.description.filter = mode;
            bound.description.sampler().map(drop)
        })
    };

    fn cuTexRefSetFlags(reference: sys::CUtexref, flags: c_uint) = call |driver| {
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.description.flags = flags;
            bound.description.sampler().map(drop)
        })
    };

    fn cuTexRefSetBorderColor(reference: sys::CUtexref, color: *const [f32; 4]) = call |driver| {
        // SAFETY: as above.
        let color = unsafe { get(color)? };
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.description.border = color;
            Ok(())
        })
    };

    fn cuTexRefSetMaxAnisotropy(reference: sys::CUtexref, anisotropy: c_uint) = call |driver| {
        // Without levels of detail, this number has no effect.
        driver.reference(handle(reference), false)?.change(|bound| {
            bound.description.anisotropy = anisotropy;
            Ok(())
        })
    };

    fn cuTexRefGetArray(array: *mut sys::CUarray, reference: sys::CUtexref) = call |driver| {
        let found = bound_array(&driver.reference(handle(reference), false)?.bound().resource)?;
        // SAFETY: as above.
        unsafe { put(array, pointer(found)) }
    };

    fn cuTexRefGetAddress_v2(address: *mut sys::CUdeviceptr, reference: sys::CUtexref) = call |driver| {
        let reference = driver.reference(handle(reference), false)?;
        let start = match &reference.bound().resource {
            Some(Resource::Linear(texels) | Resource::Rows(texels)) => texels.start,
            _ => return Err(Error::value("the reference is bound to no linear memory")),
        };
        // SAFETY: as above.
        unsafe { put(address, start) }
    };

    fn cuTexRefGetAddressMode(mode: *mut c_uint, reference: sys::CUtexref, of: c_int) = call |driver| {
        let description = driver.reference(handle(reference), false)?.bound().description;
        // SAFETY: as above.
        unsafe { put(mode, description.addressing[axis(of)?]) }
    };

    fn cuTexRefGetFilterMode(mode: *mut c_uint, reference: sys::CUtexref) = call |driver| {
        let description = driver.reference(handle(reference), false)?.bound().description;
        // SAFETY: as above.
        unsafe { put(mode, description.filter) }
    };

    fn cuTexRefGetFormat(format: *mut c_uint, channels: *mut c_int, reference: sys::CUtexref) = call |driver| {
        let found = driver.reference(handle(reference), false)?.bound().format;
        // SAFETY: as above.
        unsafe {
            put_if(format, found.0);
            put_if(channels, found.1 as c_int);
        }
        Ok(())
    };

    fn cuTexRefGetFlags(flags: *mut c_uint, reference: sys::CUtexref) = call |driver| {
        let description = driver.reference(handle(reference), false)?.bound().description;
        // SAFETY: as above.
        unsafe { put(flags, description.flags) }
    };

    fn cuTexRefGetBorderColor(color: *mut [f32; 4], reference: sys::CUtexref) = call |driver| {
        let description = driver.reference(handle(reference), false)?.bound().description;
        // SAFETY: as above.
        unsafe { put(color, description.border) }
    };

    fn cuTexRefGetMaxAnisotropy(anisotropy: *mut c_int, reference: sys::CUtexref) = call |driver| {
        let description = driver.reference(handle(reference), false)?.bound().description;
        // SAFETY: as above.
        unsafe { put(anisotropy, description.anisotropy as c_int) }
    };

    fn cuSurfRefSetArray(reference: sys::CUsurfref, array: sys::CUarray, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        let array = driver.arrays.get(handle(array))?;
        driver.reference(handle(reference), true)?.change(|bound| {
            bound.resource = resource_of(array);
            Ok(())
        })
    };

    fn cuSurfRefGetArray(array: *mut sys::CUarray, reference: sys::CUsurfref) = call |driver| {
        let found = bound_array(&driver.reference(handle(reference), true)?.bound().resource)?;
        // SAFETY: as above.
        unsafe { put(array, pointer(found)) }
    };
}
