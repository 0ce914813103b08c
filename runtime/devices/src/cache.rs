//! Maps whose values are created on first use and kept.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Constant;
use runtime_simt::Lock;
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;
use std::ptr;
use std::sync::Arc;

/// Values by key. Threads that need the same missing value wait for one of them to create it;
/// threads with other keys do not wait. The hash is fast, because every launch looks up its
/// instance. Keys come from the program itself, so they are not chosen to collide.
pub(crate) struct ConcurrentCache<K, V> {
    entries: Lock<FxHashMap<K, Entry<V>>>,
}

/// A value that a thread may still be creating. The lock is held during the creation.
type Entry<V> = Arc<Lock<Option<Arc<V>>>>;

impl<K, V> Default for ConcurrentCache<K, V> {
    fn default() -> Self {
        ConcurrentCache { entries: Lock::default() }
    }
}

impl<K: Eq + Hash, V> ConcurrentCache<K, V> {
    /// Returns the value for `key`, created by `make` if it is missing. A failure is not kept. The
    /// key is copied only if it is new.
    pub fn get_or_make<Q, E>(&self, key: &Q, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let entry = self.entry(key);
        let mut slot = entry.lock();
        match &*slot {
            Some(value) => Ok(value.clone()),
            None => {
                let value = Arc::new(make()?);
                *slot = Some(value.clone());
                Ok(value)
            }
        }
    }

    fn entry<Q>(&self, key: &Q) -> Entry<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut entries = self.entries.lock();
        match entries.get(key) {
            Some(entry) => entry.clone(),
            None => entries.entry(key.to_owned()).or_default().clone(),
        }
    }
}

/// Values by kernel instance: the key is the artifact's static address and the generic arguments.
pub(crate) struct InstanceCache<V> {
    kernels: ConcurrentCache<usize, ConcurrentCache<Vec<Constant>, V>>,
}

impl<V> Default for InstanceCache<V> {
    fn default() -> Self {
        InstanceCache { kernels: ConcurrentCache::default() }
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
        self.kernels
            .get_or_make(&ptr::from_ref(kernel).addr(), || Ok(ConcurrentCache::default()))?
            .get_or_make(constants, make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn threads_share_one_value() {
        let (cache, made) = (ConcurrentCache::default(), AtomicU32::new(0));
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| cache.get_or_make(&1, || Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed))).unwrap());
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failures_are_not_cached() {
        let cache = ConcurrentCache::default();
        assert!(cache.get_or_make(&1, || Err::<u32, _>("no")).is_err());
        assert_eq!(cache.get_or_make(&1, || Ok::<_, &str>(7)).as_deref(), Ok(&7));
    }
}
