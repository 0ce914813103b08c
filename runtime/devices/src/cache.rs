//! Values of kernel instances that are created on first use and kept.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Constant;
use runtime_simt::Lock;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// Values by kernel instance. Threads that need the same missing value wait for one of them to
/// create it; threads with other instances do not wait.
pub(crate) struct InstanceCache<V> {
    /// The entries by the hash of their instance.
    entries: Lock<FxHashMap<u64, Vec<Entry<V>>>>,
}

/// The value of an instance.
struct Entry<V> {
    /// The artifact's static address.
    kernel: usize,
    /// The generic arguments.
    constants: Box<[Constant]>,
    value: Arc<CachedValue<V>>,
}

/// A value that a thread may still be creating.
struct CachedValue<V> {
    value: OnceLock<Arc<V>>,
    /// The lock that is held during the creation.
    creation: Lock<()>,
}

impl<V> Default for InstanceCache<V> {
    fn default() -> Self {
        InstanceCache { entries: Lock::default() }
    }
}

impl<V> Default for CachedValue<V> {
    fn default() -> Self {
        CachedValue { value: OnceLock::new(), creation: Lock::default() }
    }
}

impl<V> InstanceCache<V> {
    /// Returns the value for an instance, created by `make` if it is missing. A failure is not
    /// kept.
    pub fn get_or_make<E>(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        self.get_or_make_at(ptr::from_ref(kernel).addr(), constants, make)
    }

    fn get_or_make_at<E>(
        &self,
        kernel: usize,
        constants: &[Constant],
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let cached = {
            let mut entries = self.entries.lock();
            let alike = entries.entry(hash(kernel, constants)).or_default();
            let known = alike.iter().find(|entry| entry.kernel == kernel && *entry.constants == *constants);
            match known.map(|entry| &entry.value) {
                Some(cached) => match cached.value.get() {
                    Some(value) => return Ok(value.clone()),
                    None => cached.clone(),
                },
                None => {
                    let value = Arc::<CachedValue<V>>::default();
                    alike.push(Entry { kernel, constants: constants.into(), value: value.clone() });
                    value
                }
            }
        };
        let _creation = cached.creation.lock();
        match cached.value.get() {
            Some(value) => Ok(value.clone()),
            None => make().map(|value| cached.value.get_or_init(|| Arc::new(value)).clone()),
        }
    }
}

/// Returns the hash of an instance. The hash is fast, because every launch looks up its instance.
/// Instances come from the program itself, so they are not chosen to collide.
fn hash(kernel: usize, constants: &[Constant]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_usize(kernel);
    for constant in constants {
        match constant {
            Constant::Usize(n) => hasher.write_u32(*n),
            Constant::Bool(b) => hasher.write_u8(u8::from(*b)),
            Constant::Integer(n) => hasher.write_u64(*n as u64),
            Constant::Scalar(scalar) => scalar.hash(&mut hasher),
            Constant::Item(item) => hasher.write_u64(item.hash),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn threads_share_one_value() {
        let (cache, made) = (InstanceCache::default(), AtomicU32::new(0));
        let make = || Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed));
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| cache.get_or_make_at(1, &[], make).unwrap());
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert_eq!(cache.get_or_make_at(1, &[Constant::Usize(1)], make).as_deref(), Ok(&1));
        assert_eq!(cache.get_or_make_at(2, &[], make).as_deref(), Ok(&2));
        assert_eq!(cache.get_or_make_at(1, &[], make).as_deref(), Ok(&0));
    }

    #[test]
    fn failures_are_not_cached() {
        let cache = InstanceCache::default();
        assert!(cache.get_or_make_at(1, &[], || Err::<u32, _>("no")).is_err());
        assert_eq!(cache.get_or_make_at(1, &[], || Ok::<_, &str>(7)).as_deref(), Ok(&7));
    }
}
