//! Arrays, textures and surfaces.

use super::Driver;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::memory::AllocationKind;
use crate::core::texture::{
    ArrayDescription, Reference, Resource, ResourceDescription, SurfaceObject, TexelArray, TextureDescription,
    TextureObject,
};
use cudarc::driver::sys::CUresult;
use std::sync::Arc;

impl Driver {
    /// Creates an array.
    pub fn create_array(&self, description: ArrayDescription) -> Result<Arc<TexelArray>> {
        let context = self.current()?;
        let texels = description.texels(0)?;
        let bytes = texels.layer * u64::from(texels.size[2]);
        let (address, allocation) = self.supply(context.device).allocate(AllocationKind::Array, bytes)?;
        context.memory().insert(address, allocation);
        let texels = description.texels(address)?;
        Ok(self.arrays.insert(|handle| TexelArray { handle, context, description, texels }))
    }

    /// Destroys an array after all submitted work is complete.
    pub fn destroy_array(&self, array: Handle) -> Result {
        self.arrays.get(array)?.context.check()?;
        let array = self.arrays.remove(array)?;
        self.engine.wait(self.engine.last());
        array.context.memory().remove(array.texels.start);
        Ok(())
    }

    /// Creates a texture object.
    pub fn create_texture(
        &self,
        resource: ResourceDescription,
        description: TextureDescription,
    ) -> Result<Arc<TextureObject>> {
        let context = self.current()?;
        let object = self.resource(&resource)?.texture(&description)?;
        let made =
            self.textures.insert(|handle| TextureObject { context: context.clone(), handle, resource, description });
        context.set_object(made.handle.0, Some(object));
        Ok(made)
    }

    /// Destroys a texture object. As in NVIDIA's driver, an unknown object is not an error.
    pub fn destroy_texture(&self, texture: Handle) -> Result {
        let Ok(texture) = self.textures.remove(texture) else { return Ok(()) };
        texture.context.set_object(texture.handle.0, None);
        Ok(())
    }

    /// Creates a surface object.
    pub fn create_surface(&self, resource: ResourceDescription) -> Result<Arc<SurfaceObject>> {
        let context = self.current()?;
        let object = self.resource(&resource)?.surface()?;
        let made = self.surfaces.insert(|handle| SurfaceObject { context: context.clone(), handle, resource });
        context.set_object(made.handle.0, Some(object));
        Ok(made)
    }

    /// Destroys a surface object. As in NVIDIA's driver, an unknown object is not an error.
    pub fn destroy_surface(&self, surface: Handle) -> Result {
        let Ok(surface) = self.surfaces.remove(surface) else { return Ok(()) };
        surface.context.set_object(surface.handle.0, None);
        Ok(())
    }

    /// Returns the memory that a description names.
    fn resource(&self, description: &ResourceDescription) -> Result<Resource> {
        let resource = Resource::of(description, |array| self.arrays.get(array))?;
        let texels = resource.texels();
        if let Resource::Linear(_) | Resource::Rows(_) = resource {
            self.current()?.memory().check(texels.start, 1)?;
        }
        Ok(resource)
    }

    /// Returns the reference of a module's `.texref` or `.surfref` variable.
    pub fn module_reference(&self, module: Handle, name: &str, is_surface: bool) -> Result<Arc<Reference>> {
        let module = self.modules.get(module)?;
        module.context.check()?;
        let address = module.object(name, is_surface)?;
        let variable = (module.handle, name.to_string());
        let known = self.references.all().into_iter().find(|known| known.variable.as_ref() == Some(&variable));
        Ok(known.unwrap_or_else(|| {
            let context = module.context.clone();
            self.references.insert(|handle| Reference::new(handle, context, Some(variable), Some(address), is_surface))
        }))
    }

    /// Creates a texture reference without a variable.
    pub fn create_reference(&self) -> Result<Arc<Reference>> {
        let context = self.current()?;
        Ok(self.references.insert(|handle| Reference::new(handle, context, None, None, false)))
    }

    /// Destroys a texture reference without a variable.
    pub fn destroy_reference(&self, reference: Handle) -> Result {
        if self.reference(reference, false)?.variable.is_some() {
            return Err(Error::value("the reference is a variable of a module"));
        }
        self.references.remove(reference).map(drop)
    }

    /// Returns a texture or surface reference.
    pub fn reference(&self, reference: Handle, is_surface: bool) -> Result<Arc<Reference>> {
        let found = self.references.get(reference)?;
        if found.bound().is_surface != is_surface {
            let what = if is_surface { "surface" } else { "texture" };
            let why = format!("{:#x} is not a reference to a {what}", reference.0);
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, why));
        }
        Ok(found)
    }
}
