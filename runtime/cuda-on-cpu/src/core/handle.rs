//! Handles: numbers that identify an object and its type. A handle is never an address.
//!
//! ```text
//! 63       56 55        32 31         0
//! ┌──────────┬────────────┬───────────┐
//! │   kind   │ generation │   index   │      kinds start at 0x41: no handle is a valid pointer
//! └──────────┴────────────┴───────────┘
//! ```
//!
//! The highest bit is 0, because some programs keep handles as signed numbers. A handle is looked
//! up, not dereferenced. The lookup rejects null, handles of other types,
//! destroyed handles and arbitrary numbers. A freed slot is reused with the next generation.

use super::error::{Error, Result};
use super::origin::CallOrigin;
use cudarc::driver::sys::CUresult;
use runtime_simt::SharedLock;
use std::sync::Arc;

/// The value by which a program refers to an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub u64);

/// A type of object that has handles.
pub trait HandleType {
    /// The highest byte of the type's handles.
    const KIND: u8;
    /// The type's name in the log.
    const NAME: &'static str;
    /// The error code for an invalid handle.
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
}

/// The objects of one type.
#[derive(Debug)]
pub struct HandleTable<T>(SharedLock<Slots<T>>);

/// The slots of all objects of one type, and the indices of the free slots.
#[derive(Debug)]
struct Slots<T> {
    slots: Vec<HandleSlot<T>>,
    free: Vec<u32>,
}

/// The place of an object: its generation, the object while it is alive, and the call that created
/// the object.
#[derive(Debug)]
struct HandleSlot<T> {
    generation: u32,
    object: Option<Arc<T>>,
    origin: CallOrigin,
}

/// The number of generations of a slot, by the bits of a handle.
const GENERATIONS: u32 = 1 << 24;

impl<T> Default for HandleTable<T> {
    fn default() -> HandleTable<T> {
        HandleTable(SharedLock::new(Slots { slots: Vec::new(), free: Vec::new() }))
    }
}

impl<T: HandleType> HandleTable<T> {
    /// Adds the object that `make` creates from its handle.
    pub fn insert(&self, make: impl FnOnce(Handle) -> T) -> Arc<T> {
        let mut table = self.0.write();
        let index = table.free.pop().unwrap_or_else(|| {
            table.slots.push(HandleSlot { generation: 0, object: None, origin: CallOrigin::default() });
            table.slots.len() as u32 - 1
        });
        let slot = &mut table.slots[index as usize];
        let handle = Handle(u64::from(T::KIND) << 56 | u64::from(slot.generation) << 32 | u64::from(index));
        slot.origin = CallOrigin::current();
        slot.object.insert(Arc::new(make(handle))).clone()
    }

    /// Returns the object of a handle.
    pub fn get(&self, handle: Handle) -> Result<Arc<T>> {
        let table = self.0.read();
        let slot = place::<T>(handle).and_then(|(generation, index)| {
            table.slots.get(index as usize).filter(|slot| slot.generation == generation)?.object.clone()
        });
        slot.ok_or_else(|| refusal::<T>(handle))
    }

    /// Replaces the object of a handle, which must exist.
    pub fn replace(&self, handle: Handle, object: T) -> Result<Arc<T>> {
        let mut table = self.0.write();
        let slot = place::<T>(handle).and_then(|(generation, index)| {
            let slot = table.slots.get_mut(index as usize).filter(|slot| slot.generation == generation)?;
            slot.object.is_some().then_some(slot)
        });
        slot.map(|slot| slot.object.insert(Arc::new(object)).clone()).ok_or_else(|| refusal::<T>(handle))
    }

    /// Removes an object; its handle is invalid from now on.
    pub fn remove(&self, handle: Handle) -> Result<Arc<T>> {
        let mut table = self.0.write();
        let found = place::<T>(handle).and_then(|(generation, index)| {
            let slot = table.slots.get_mut(index as usize).filter(|slot| slot.generation == generation)?;
            let object = slot.object.take()?;
            slot.generation = (generation + 1) % GENERATIONS;
            table.free.push(index);
            Some(object)
        });
        found.ok_or_else(|| refusal::<T>(handle))
    }

    /// Returns all live objects.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.0.read().slots.iter().filter_map(|slot| slot.object.clone()).collect()
    }

    /// Returns all live objects, each with the call that created it.
    pub fn all_with_origins(&self) -> Vec<(Arc<T>, CallOrigin)> {
        let table = self.0.read();
        table.slots.iter().filter_map(|slot| Some((slot.object.clone()?, slot.origin.clone()))).collect()
    }

    /// Removes and returns all objects that satisfy `which`.
    pub fn remove_all(&self, which: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut table = self.0.write();
        let Slots { slots, free } = &mut *table;
        let mut removed = Vec::new();
        for (index, slot) in slots.iter_mut().enumerate() {
            if let Some(object) = slot.object.take_if(|object| which(object)) {
                slot.generation = (slot.generation + 1) % GENERATIONS;
                free.push(index as u32);
                removed.push(object);
            }
        }
        removed
    }
}

/// Returns the generation and index of a handle of that type.
fn place<T: HandleType>(handle: Handle) -> Option<(u32, u32)> {
    let generation = (handle.0 >> 32) as u32 & (GENERATIONS - 1);
    (handle.0 >> 56 == u64::from(T::KIND)).then_some((generation, handle.0 as u32))
}

#[cold]
fn refusal<T: HandleType>(handle: Handle) -> Error {
    let why = match place::<T>(handle) {
        _ if handle.0 == 0 => format!("the {} is null", T::NAME),
        Some(_) => format!("the {} {:#x} does not exist or has been destroyed", T::NAME, handle.0),
        None => format!("{:#x} is not a valid {}", handle.0, T::NAME),
    };
    Error::new(T::REFUSAL, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Cat(u32);
    struct Dog;
    impl HandleType for Cat {
        const KIND: u8 = 0x41;
        const NAME: &'static str = "cat";
    }
    impl HandleType for Dog {
        const KIND: u8 = 0x42;
        const NAME: &'static str = "dog";
    }

    #[test]
    fn handles_find_only_live_objects_of_their_type() {
        let (cats, dogs) = (HandleTable::<Cat>::default(), HandleTable::<Dog>::default());
        let mut handles = Vec::new();
        for i in 0..10 {
            cats.insert(|handle| {
                handles.push(handle);
                Cat(i)
            });
        }
        assert_eq!(cats.get(handles[7]).unwrap().0, 7);
        assert_eq!(cats.remove(handles[7]).unwrap().0, 7);
        let mut again = Handle(0);
        cats.insert(|handle| {
            again = handle;
            Cat(11)
        });
        assert_eq!(again.0 as u32, handles[7].0 as u32, "the place is used again");
        let mut dog = Handle(0);
        dogs.insert(|handle| {
            dog = handle;
            Dog
        });
        for (handle, why) in [
            (Handle(0), "the cat is null"),
            (handles[7], "does not exist or has been destroyed"),
            (dog, "is not a valid cat"),
            (Handle(0x7fff_1234_5678), "is not a valid cat"),
            (Handle(u64::MAX), "is not a valid cat"),
            (Handle(0x4100_0000_FFFF_FFFF), "does not exist"),
        ] {
            for error in [cats.get(handle).unwrap_err(), cats.remove(handle).unwrap_err()] {
                assert_eq!(error.code, CUresult::CUDA_ERROR_INVALID_HANDLE);
                assert!(error.why.contains(why), "{}", error.why);
            }
        }
        assert_eq!(cats.remove_all(|cat| cat.0 < 5).len(), 5);
        assert!(cats.get(handles[0]).is_err() && cats.get(handles[9]).is_ok());
    }
}
